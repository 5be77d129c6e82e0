//! Planted disturbers are named in the delays that are theirs, and nowhere else.
//!
//! Each notes its bursts by the TSC (`measured/agent/examples/planted.rs`), on its own or as a thread
//! of the agent. A delay that overlaps a burst is the disturber's, but for as many as overlap by
//! chance: as of the others overlap the beginnings of bursts that are moved in time. Of these, at least 90 % must be
//! named so, and of all that are named so, at most 1 % may overlap no burst: of delays that are added
//! up, the longest is looked at. Where a guest is measured, whose TSC is its own, or a thread that is
//! throttled, the long delays are the disturber's. Where no events may be recorded, the kernel's count
//! must be that of the bursts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tare_results::RunFolder;
use tare_results::model::{Event, Trace};
use tare_trace::takers::{takers, way_in_ns};

use crate::hog::{last_cpu, wait_for_quiet};
use crate::verdict::Verdicts;
use crate::{Measurement, Owned, Result, output, tare};

/// The number of timer reads: about five seconds.
const READS: u64 = 500_000_000;
/// How far the times of a burst and of its delay may be apart, in cycles.
const SLACK: u64 = 20_000;
/// By how much bursts are moved: no multiple of a disturber's or the tick's period.
const MOVED_SECONDS: f64 = 370e-6;

/// A disturber.
struct Plant {
    kind: &'static str,
    /// Whether it is a thread of the agent, and not a process.
    is_within: bool,
    /// The command that starts `tare`; none if it is empty.
    by: &'static str,
    /// The target, and the number of timer reads.
    measured: (&'static str, u64),
    /// The least delay that is explained, in µs.
    least_us: u8,
    /// The names that are right, by a part of them.
    names: &'static [&'static str],
    by_what: By,
}

/// How the names are checked.
enum By {
    /// The times of bursts.
    Times,
    /// The least length of its delays, and how many of them there are in a second, if that is known.
    Length(Duration, Option<f64>),
    /// The number of bursts, and how many interrupts each sends.
    Count(f64),
    /// How many there are in a second, at least.
    Rate(f64),
}

impl Plant {
    const fn of(kind: &'static str, names: &'static [&'static str]) -> Self {
        Self {
            kind,
            is_within: false,
            by: "",
            measured: ("process", READS),
            least_us: 5,
            names,
            by_what: By::Times,
        }
    }

    const fn within(self) -> Self {
        Self {
            is_within: true,
            ..self
        }
    }

    /// One whose delays are shorter, where a hypervisor takes little of the way into an interrupt.
    const fn of_2_us(self) -> Self {
        Self {
            least_us: 2,
            ..self
        }
    }

    const fn without_events(self, interrupts: f64) -> Self {
        Self {
            by: "setpriv --bounding-set -perfmon,-sys_admin",
            by_what: By::Count(interrupts),
            ..self
        }
    }
}

const BY_TIMER: &[&str] = &["process plant", "interrupt local timer (hrtimer_wakeup"];

const PLANTS: [Plant; 11] = [
    Plant::of("thread", BY_TIMER),
    Plant::of("timer", BY_TIMER),
    Plant::of(
        "packets",
        &[
            "softirq NET_RX",
            "thread ksoftirqd",
            "interrupt call function single",
        ],
    ),
    Plant::of(
        "membarrier",
        &[
            "interrupt call function single (ipi_mb) from plant",
            "interrupt call function (ipi_mb) from plant",
        ],
    )
    .of_2_us()
    .within(),
    Plant::of(
        "mprotect",
        &[
            "interrupt call function single (flush_tlb_func) from plant",
            "interrupt call function (flush_tlb_func) from plant",
        ],
    )
    .of_2_us()
    .within(),
    // Other CPUs have to forget a page that is taken away.
    Plant::of("fault", &["page faults (file ", "interrupt call function"]).within(),
    Plant {
        measured: ("linux,kernel=debian-6.12", READS / 2),
        by_what: By::Length(Duration::from_millis(4), Some(1e3 / 50.0)),
        ..Plant::of("hog", &["outside this kernel"])
    },
    // The kernel folds the counts of a CPU that takes and returns pages once a second
    // (vm.stat_interval), mostly in more than the least delay.
    Plant {
        by_what: By::Rate(0.5),
        ..Plant::of("pages", &["(vmstat_update"])
    },
    // The kernel lets other threads run in a part of each second.
    Plant {
        by: "chrt -f 1",
        by_what: By::Length(Duration::from_millis(30), None),
        ..Plant::of("busy", &["throttling of this thread"])
    },
    Plant::of("membarrier", &["interrupt CAL"])
        .within()
        .without_events(1.0),
    Plant::of("mprotect", &["interrupt TLB"])
        .within()
        // Other CPUs forget the page when it may not be written, and (Linux 6.18) when it may again.
        .without_events(2.0),
];

/// Plants one after the other.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let cpu = last_cpu()?;
    let scratch = tempfile::tempdir()?;
    for plant in PLANTS {
        wait_for_quiet(cpu);
        let scratch = tempfile::tempdir_in(scratch.path())?;
        let (folder, bursts) = plant.measure(cpu, scratch.path())?;
        let cell = folder.plan().cells.first().ok_or("the plan is empty")?.id;
        let measured = Measurement::of(&folder, cell).ok_or("the cell failed")?;
        match plant.by_what {
            By::Times => plant.judge(&folder, &bursts, verdicts)?,
            By::Length(least, rate) => plant.judge_long(&measured, (least, rate), verdicts),
            By::Count(each) => plant.judge_counts(&measured, &bursts, each, verdicts),
            By::Rate(rate) => plant.judge_rate(&measured, rate, verdicts),
        }
    }
    Ok(())
}

/// The agent that disturbs itself.
fn planted() -> Result<PathBuf> {
    let built = "../../measured/target/x86_64-unknown-linux-gnu/release/examples/planted";
    let path = std::env::current_exe()?.with_file_name(built);
    match path.is_file() {
        true => Ok(path),
        false => Err(format!("{} is missing: type `make small`", path.display()).into()),
    }
}

impl Plant {
    /// Measures a CPU with it; also returns its bursts.
    fn measure(&self, cpu: usize, scratch: &Path) -> Result<(RunFolder, Vec<[u64; 2]>)> {
        let file = scratch.join(format!("{}.bursts", self.kind));
        let run = scratch.join(self.kind);
        let ((target, reads), least) = (self.measured, self.least_us);
        let words = format!(
            "noise --workload gap --repetitions {reads} --runs 1 --cpu {cpu} --explain {least}us --target {target}"
        );
        let mut measuring = tare(&words)?;
        if let Some((by, before)) = self.by.split_once(' ') {
            let mut other = Command::new(by);
            other.args(before.split(' '));
            other
                .arg(measuring.get_program())
                .args(measuring.get_args());
            measuring = other;
        }
        measuring.arg("--output").arg(&run);
        let disturber = if self.is_within {
            let planting = format!("{}:{cpu}:{}", self.kind, file.display());
            measuring.env("TARE_AGENT", planted()?);
            measuring.env("PLANTED", planting);
            None
        } else {
            let mut plant = Command::new(planted()?);
            plant.args(["plant", self.kind, &cpu.to_string()]);
            let plant = Owned(plant.arg(&file).stdin(Stdio::null()).spawn()?);
            thread::sleep(Duration::from_millis(200));
            Some(plant)
        };
        output(&mut measuring)?;
        drop(disturber);
        let numbers = std::fs::read(&file)?;
        let (numbers, _) = numbers.as_chunks::<8>();
        let (rows, _) = numbers.as_chunks::<2>();
        let bursts = rows.iter().map(|row| row.map(u64::from_le_bytes));
        let bursts = bursts.take_while(|[start, _]| *start > 0).collect();
        Ok((RunFolder::open(&run)?, bursts))
    }

    /// Returns whether a name is right.
    fn is_right(&self, name: &str) -> bool {
        self.names.iter().any(|right| name.contains(right))
    }

    /// Compares the names of long delays, and how many there are.
    fn judge_long(
        &self,
        measured: &Measurement,
        (least, rate): (Duration, Option<f64>),
        verdicts: &mut Verdicts,
    ) {
        let (kind, head) = (self.kind, &measured.head);
        let seconds = head.length() as f64 / measured.program.frequencies[0].hz;
        let least_ns = least.as_nanos() as u64;
        let (mut all, mut right, mut others) = (0, 0, Vec::new());
        for trace in &measured.record.traces {
            if trace.value / trace.samples.max(1) < least_ns {
                continue;
            }
            all += trace.samples;
            match takers(trace, 0, 0).takers.into_iter().next() {
                Some((taker, _)) if self.is_right(&taker.to_string()) => right += trace.samples,
                other => others.push((trace.samples, other.map(|(taker, _)| taker.to_string()))),
            }
        }
        println!(
            "       {kind}: {all} delays of {least:?} or more in {seconds:.1} s; others: {others:?}"
        );
        let what = format!("{kind}: long delays that are named so / all");
        verdicts.within(&what, right as f64 / all as f64, 0.9, 1.0);
        if let Some(rate) = rate {
            let what = format!("{kind}: long delays that are named so / bursts");
            verdicts.within(&what, right as f64 / (rate * seconds), 0.9, 1.1);
        }
    }

    /// Counts the delays in which one of the names took time.
    fn judge_rate(&self, measured: &Measurement, rate: f64, verdicts: &mut Verdicts) {
        let seconds = measured.head.length() as f64 / measured.program.frequencies[0].hz;
        let has_part = |trace: &&Trace| {
            let takers = takers(trace, 0, 0).takers;
            let mut names = takers.iter().map(|(taker, _)| taker.to_string());
            names.any(|name| self.is_right(&name))
        };
        let traces = measured.record.traces.iter().filter(has_part);
        let number = traces.map(|trace| trace.samples).sum::<u64>();
        println!(
            "       {}: {number} delays have {:?}",
            self.kind, self.names
        );
        let what = format!("{}: delays that have the name, per second", self.kind);
        verdicts.within(&what, number as f64 / seconds, rate, 1.5);
    }

    /// Compares the number of events that the kernel counted with that of the bursts.
    fn judge_counts(
        &self,
        measured: &Measurement,
        bursts: &[[u64; 2]],
        each: f64,
        verdicts: &mut Verdicts,
    ) {
        let head = &measured.head;
        let within = bursts.iter().filter(|[start, _]| {
            let from = start.wrapping_sub(head.first);
            *start >= head.first && from < head.length()
        });
        let within = within.count() as f64;
        let counted = measured.program.counters.iter();
        let counted = counted.filter(|counter| self.is_right(&counter.name));
        let counted = counted.map(|counter| counter.count).sum::<u64>();
        let what = format!(
            "{} without events: the kernel's count / that of the bursts",
            self.kind
        );
        verdicts.within(&what, counted as f64 / (each * within), 0.9, 1.1);
    }

    /// Compares what was named with the bursts.
    fn judge(
        &self,
        folder: &RunFolder,
        bursts: &[[u64; 2]],
        verdicts: &mut Verdicts,
    ) -> Result<()> {
        let kind = self.kind;
        let cell = folder.plan().cells.first().ok_or("the plan is empty")?.id;
        let measured = Measurement::of(folder, cell).ok_or("the cell failed")?;
        let sets = folder.samples(cell)?.sets;
        let hz = measured.program.frequencies[0].hz;
        let least = (f64::from(self.least_us) * 1e-6 * hz) as u64;
        let gaps = sets.iter().flat_map(|set| &set.events);
        let gaps: Vec<&Event> = gaps.filter(|gap| gap.value >= least).collect();
        let overlaps = |gap: &Event, bursts: &[[u64; 2]]| {
            let (from, to) = (gap.at.saturating_sub(SLACK), gap.at + gap.value + SLACK);
            let first = bursts.partition_point(|[_, end]| *end < from);
            bursts.get(first).is_some_and(|[start, _]| *start <= to)
        };
        let moved = bursts
            .iter()
            .map(|[start, _]| start + (MOVED_SECONDS * hz) as u64);
        let moved = Vec::from_iter(moved.map(|start| [start; 2]));
        let by_index: HashMap<u64, bool> = gaps
            .iter()
            .map(|gap| (gap.index, overlaps(gap, bursts)))
            .collect();
        let all = gaps.len();
        let rest = gaps.iter().filter(|gap| !by_index[&gap.index]);
        let by_chance = rest.clone();
        let by_chance = by_chance.filter(|gap| overlaps(gap, &moved));
        let (rest, by_chance) = (rest.count(), by_chance.count());
        // Of all delays of something else, as many overlap as of those that are known to be.
        let by_chance = by_chance as f64 * rest as f64 / (rest - by_chance).max(1) as f64;
        let its = (all - rest) as f64 - by_chance;
        let (mut named, mut wrong, mut others) = (0, 0, Vec::new());
        let way_ns = way_in_ns(&measured.record.traces, 0);
        for trace in &measured.record.traces {
            let first = takers(trace, 0, way_ns).takers.into_iter().next();
            let first = first.map_or_else(String::new, |(taker, _)| taker.to_string());
            match self.is_right(&first) {
                true => {
                    named += trace.samples;
                    // The one of them whose number is known stands for the others.
                    let is_its = by_index
                        .get(&trace.index)
                        .ok_or("an unknown delay is named")?;
                    wrong += trace.samples * u64::from(!is_its);
                }
                false => others.push((trace.samples, first)),
            }
        }
        others.sort_by(|one, other| other.cmp(one));
        others.truncate(4);
        println!(
            "       {kind}: {} bursts, {all} delays of {} µs or more, {its:.0} of them its and {by_chance:.0} by chance, {named} named so; others: {others:?}",
            bursts.len(),
            self.least_us
        );
        let what = format!("{kind}: delays that are named so / that are its");
        verdicts.within(&what, named as f64 / its, 0.9, 1.1);
        let what = format!("{kind}: delays that are named so and are not its / named so");
        verdicts.within(&what, wrong as f64 / named as f64, 0.0, 0.01);
        Ok(())
    }
}
