//! The kernel's tracer osnoise and `tare` count the same interruptions.
//!
//! In a guest with Debian's real-time kernel, `tare noise --explain` measures a CPU, and osnoise
//! reports each interrupt, softirq and thread that takes it, at the same time
//! (`measured/agent/examples/osnoise.rs`). Both counts of each class, between the first and the last
//! read of the timer, must agree. Of Debian's kernels only the real-time ones have osnoise.

use std::time::Duration;

use tare_guard::{Guard, Interrupt};
use tare_results::model::{Agent, Instance, Record, TraceKind};
use tare_results::receive::Receiver;
use tare_results::work::Work;
use tare_targets::instance::OutputEvent;
use tare_targets::{Job, spec};

use crate::Result;
use crate::verdict::Verdicts;

/// The kernel: osnoise can do without its own workload from 6.3 on.
const TARGET: &str = "linux,kernel=debian-rt-6.12,accel=tcg,cpus=2";
/// All delays that are listed are explained.
const WORK: &str = "repetitions=200000000 explain=1ns";
const LIMIT: Duration = Duration::from_secs(300);
/// osnoise's classes.
const CLASSES: [&str; 4] = ["irq", "softirq", "thread", "nmi"];
/// How far two counts may be apart.
const APART: f64 = 0.1;

/// Measures in a guest and compares the counts.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    // Under emulated NMIs, one guest's kernel in twenty has panicked.
    let (record, lines) = measured().or_else(|why| {
        println!("       once more: {why}");
        measured()
    })?;
    let head = record.sets.first().ok_or("there is no set")?;
    let ours = counted(&record);
    let of = lines
        .iter()
        .find_map(|line| line.strip_prefix("osnoise: of "));
    let of = of.ok_or_else(|| format!("osnoise did not run: {}", lines.join("; ")))?;
    let inside = lines.iter().filter_map(|line| noise(line, of.trim()));
    let inside = inside.filter(|(_, tsc)| (head.first..head.last).contains(tsc));
    let mut theirs = [0_u64; CLASSES.len()];
    inside.for_each(|(class, _)| theirs[class] += 1);
    let unseen = record.traces.iter().filter(|trace| !trace.complete);
    let unseen: u64 = unseen.map(|trace| trace.samples).sum();
    println!("       {unseen} delays without events, of {}", head.seen);
    for ((class, ours), theirs) in CLASSES.iter().zip(ours).zip(theirs) {
        println!("       {class}: tare {ours}, osnoise {theirs}");
        // Where both count none, as of softirqs, which are threads there, nothing is compared.
        if (*class, ours, theirs) != ("softirq", 0, 0) {
            let what = format!("{class}: interruptions that tare counts / that osnoise counts");
            let ratio = ours as f64 / theirs as f64;
            verdicts.within(&what, ratio, 1.0 - APART, 1.0 + APART);
        }
    }
    Ok(())
}

/// Returns the record of a guest, and its other lines.
fn measured() -> Result<(Record, Vec<String>)> {
    let agent = "../../measured/target/x86_64-unknown-linux-gnu/release/examples/osnoise";
    let agent = std::env::current_exe()?.with_file_name(agent);
    if !agent.is_file() {
        return Err(format!("{} is missing: type `make small`", agent.display()).into());
    }
    let scratch = tempfile::tempdir()?;
    let guard = Guard::open(&scratch.path().join("state"))?;
    // SAFETY: no other thread runs.
    unsafe { std::env::set_var("TARE_AGENT", agent) };
    let target = spec::parse(TARGET)?;
    // SAFETY: likewise.
    unsafe { std::env::remove_var("TARE_AGENT") };
    target.program()?;
    let work = Work::new("gap", WORK);
    let instance = target.start(&Job::idle(&work), &guard)?;
    let (mut receiver, mut lines) = (Receiver::of(&work), Vec::new());
    let mut watcher = |event: OutputEvent<'_>| {
        if let OutputEvent::Line(line, _) = event {
            receiver.line(line);
            if !line.starts_with(b"tare3:") {
                lines.push(String::from_utf8_lossy(line).into_owned());
            }
        }
    };
    let ended = instance.watch(LIMIT, &Interrupt::detached()?, &mut watcher)?;
    let received = receiver.finish();
    let received = received.map_err(|why| format!("{why} ({:?})", ended.how))?;
    let (record, ..) = received.into_record(Agent::default(), Instance::default(), &[]);
    Ok((record, lines))
}

/// Counts each class in the delays. A real-time kernel runs softirqs in threads, and osnoise counts
/// them as such.
fn counted(record: &Record) -> [u64; CLASSES.len()] {
    let mut counts = [0; CLASSES.len()];
    for trace in &record.traces {
        let mut is_ours = true;
        let classes = trace.events.iter().filter_map(|event| match &event.what {
            TraceKind::InterruptEntry { name } if name == "NMI" => Some(3),
            TraceKind::InterruptEntry { .. } => Some(0),
            TraceKind::SoftirqEntry { .. } if is_ours => Some(1),
            TraceKind::Switch { to, ours, .. } => {
                is_ours = *ours;
                (!ours && to != "idle").then_some(2)
            }
            _ => None,
        });
        classes.for_each(|class| counts[class] += trace.samples);
    }
    counts
}

/// Reads a line of osnoise, such as
///
/// ```text
///  dd-87882  [001] d...3  12548771: thread_noise:      cc1:87882 start 548.771078243 duration 9909 ns
/// ```
///
/// Returns its class and the TSC at its end; nothing of the idle thread and of the one that measures.
fn noise(line: &str, of: &str) -> Option<(usize, u64)> {
    let is_of = |class: &&str| line.contains(&format!(": {class}_noise: "));
    let class = CLASSES.iter().position(is_of)?;
    let (before, noise) = line.split_once("_noise: ")?;
    let stamp = before.rsplit(' ').nth(1)?.strip_suffix(':')?;
    let who = noise.rsplit_once(" start ");
    let tid = who.and_then(|(who, _)| who.rsplit(':').next());
    let is_other = CLASSES[class] != "thread" || !["0", of].contains(&tid?);
    is_other.then_some((class, stamp.parse().ok()?))
}
