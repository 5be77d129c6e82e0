//! Arrivals on time at a rate that a shell loop does not reach, and the highest rate of a unikernel
//! compared with that of a Linux guest.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use tare_results::RunFolder;
use tare_results::model::{Instance, InstanceOutcome};

use crate::verdict::Verdicts;
use crate::{Result, median, output, run as tare};

/// The offered rate, the study's highest.
const RATE: u32 = 1024;
/// The rate of the interval at which both are compared. An interval of 1/1024 s limits the rate to
/// 1,024 per second, and a shell's loop starts more than a fifth of that on a fast machine.
const BESIDE_SHELL: u32 = 2048;
/// The duration of each way in a turn in seconds, and the number of turns.
const SECONDS: u32 = 10;
const ROUNDS: usize = 3;
/// The limit on the delay of an instance's start, in ns.
const IN_TIME_NS: u64 = 1_000_000;
/// The compared targets, on the same accelerator.
const GUESTS: [&str; 2] = ["unikernel,accel=tcg", "linux,accel=tcg"];

/// Measures both.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    rate(scratch.path(), verdicts)?;
    guests(scratch.path(), verdicts)
}

/// Measures processes at the highest rate, and the shell's loop in alternation.
fn rate(scratch: &Path, verdicts: &mut Verdicts) -> Result<()> {
    let [mut in_time, mut done, mut ratios] = [const { Vec::new() }; 3];
    for round in 0..ROUNDS {
        let offered = |rate: u32| -> Result<Vec<Instance>> {
            let words = format!("start --rate {rate} --warmup 1 --measure {SECONDS} --runs 1");
            let folder = tare(scratch, &format!("rate-{rate}-{round}"), &words, &[])?;
            let mut all = instances(&folder, 1);
            all.retain(|one| one.counts == 1);
            Ok(all)
        };
        let counted = offered(RATE)?;
        let share = |is: &dyn Fn(&Instance) -> bool| {
            counted.iter().filter(|one| is(one)).count() as f64 / counted.len() as f64
        };
        let is_in_time =
            |one: &Instance| one.started_ns > 0 && one.started_ns - one.planned_ns < IN_TIME_NS;
        in_time.push(share(&is_in_time));
        done.push(share(&|one| one.outcome() == InstanceOutcome::Done));
        for rate in [RATE, BESIDE_SHELL] {
            let ours = match rate {
                RATE => achieved(&counted),
                _ => achieved(&offered(rate)?),
            };
            let [study, bare] = [shell(scratch, STUDY, rate)?, shell(scratch, BARE, rate)?];
            println!(
                "       every 1/{rate} s, started per second: {ours:.0} by tare start, {study:.0} by a shell's loop that does what \
                 the study's does, {bare:.0} by one that looks at no clock"
            );
            if rate == BESIDE_SHELL {
                ratios.push(ours / study);
            }
        }
    }
    let what = format!("share of {RATE} starts per second within 1 ms of their time");
    verdicts.at_least(&what, median(in_time), 0.99);
    verdicts.at_least("share of them that ended as they should", median(done), 1.0);
    let what =
        format!("starts per second / those of the study's shell loop, every 1/{BESIDE_SHELL} s");
    verdicts.at_least(&what, median(ratios), 5.0);
    Ok(())
}

/// Returns the number of successful instances started per second.
fn achieved(counted: &[Instance]) -> f64 {
    let done = counted
        .iter()
        .filter(|one| one.outcome() == InstanceOutcome::Done);
    let mut started: Vec<u64> = done.map(|one| one.started_ns).collect();
    started.sort_unstable();
    let [first, .., last] = started[..] else {
        return 0.0;
    };
    (started.len() - 1) as f64 / ((last - first) as f64 / 1e9)
}

/// The study's script for every start: another shell that reads the clock three times, creates the
/// folder of its outputs, and writes beginning, output and end to a file there.
const STUDY: &str = r#"named=$(date +%s%N)
mkdir -p "$2"
out="$2/process-$named"
echo "$(date +%s%N) begun" >> "$out"
"$1" workload=start >> "$out"
ended=$(date +%s%N)
echo "$ended ended with $?" >> "$out"
echo "$named" >> "$2/all"
"#;
/// The minimal script.
const BARE: &str = r#""$1" workload=start > /dev/null
"#;

/// Returns the starts per second of a loop in bash that forks another shell with `script`, and
/// sleeps the interval.
fn shell(scratch: &Path, script: &str, rate: u32) -> Result<f64> {
    let agent = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../measured/target/x86_64-unknown-linux-gnu/release/tare-agent");
    let file = scratch.join("start.sh");
    std::fs::write(&file, script)?;
    let number = 500;
    let begun = Instant::now();
    output(
        Command::new("bash")
            .args(["-c", LOOP, "loop"])
            .args([&file, &agent, &scratch.join("outputs")])
            .arg((1.0 / f64::from(rate)).to_string())
            .arg(number.to_string()),
    )?;
    Ok(f64::from(number) / begun.elapsed().as_secs_f64())
}

/// A loop that starts a file a number of times. Arguments: the file, the agent, a folder, the
/// interval in s and the number.
const LOOP: &str = r#"for ((i = 0; i < $5; i++)); do bash "$1" "$2" "$3" & sleep "$4"; done; wait"#;

/// Measures the highest rate of each guest, and the unikernel at half of that for a minute.
fn guests(scratch: &Path, verdicts: &mut Verdicts) -> Result<()> {
    let mut kept = Vec::new();
    for (place, target) in GUESTS.into_iter().enumerate() {
        // A slow target needs a longer window; it ends its ladder sooner.
        let (interval, measure) = [("1/4s..1/128s", "6"), ("16s..1/2s", "48")][place];
        let words = format!(
            "start --interval {interval} --warmup 1 --measure {measure} --runs 1 --target {target}"
        );
        let folder = tare(scratch, &format!("kept-{place}"), &words, &[])?;
        let rate = highest(&folder);
        println!("       {target} keeps up {rate} starts per second");
        kept.push(rate);
    }
    let what = "rate that a unikernel keeps up / that of a Linux guest (TCG)";
    let ratio = if kept[1] > 0.0 {
        kept[0] / kept[1]
    } else {
        0.0
    };
    verdicts.at_least(what, ratio, 20.0);
    let words = format!(
        "start --interval 1/{}s --warmup 1 --measure 60 --runs 1 --target {}",
        (kept[0] / 2.0).max(1.0),
        GUESTS[0]
    );
    let all = instances(&tare(scratch, "half", &words, &[])?, 1);
    let lost = all
        .iter()
        .filter(|one| one.outcome() != InstanceOutcome::Done)
        .count();
    println!(
        "       unikernels at half of that for 60 s: {} started",
        all.len()
    );
    verdicts.at_most("of them not as they should", lost as f64, 0.0);
    Ok(())
}

/// Returns the highest rate at which a target was not saturated, nor at any lower one; 0 if there
/// is none.
fn highest(folder: &RunFolder) -> f64 {
    let kept = folder.plan().cells.iter().map_while(|plan| {
        let (state, _) = folder.read(plan.id);
        let tare_results::CellState::Done(cell) = state else {
            return None;
        };
        let arrived = cell.outcome.record()?.arrived.as_ref()?;
        let interval_ns = plan.arrivals.as_ref()?.interval_ns?;
        arrived
            .saturated
            .is_none()
            .then_some(1e9 / interval_ns as f64)
    });
    kept.last().unwrap_or(0.0)
}

fn instances(folder: &RunFolder, cell: u32) -> Vec<Instance> {
    folder.read(cell).1.instances
}
