//! Planted disturbers are named in the delays that are theirs, and nowhere else.
//!
//! Each notes its bursts by the TSC (`measured/agent/examples/planted.rs`), on its own or as a thread
//! of the agent. A delay that overlaps a burst is the disturber's. Of these, at least 90 % must be
//! named so, and of all that are named so, at most 1 % may be of no burst.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tare_results::RunFolder;
use tare_results::model::Event;
use tare_trace::takers::{takers, way_in_ns};

use crate::hog::{last_cpu, wait_for_quiet};
use crate::verdict::Verdicts;
use crate::{Measurement, Owned, Result, output, tare};

/// The number of timer reads: about five seconds.
const READS: u64 = 500_000_000;
/// The least delay that is explained.
const LEAST: &str = "5us";
/// How far the times of a burst and of its delay may be apart, in cycles.
const SLACK: u64 = 20_000;

/// A disturber.
struct Plant {
    kind: &'static str,
    /// Whether it is a thread of the agent, and not a process.
    is_within: bool,
    /// The names that are right, by their beginnings.
    names: &'static [&'static str],
}

const PLANTS: [Plant; 6] = [
    Plant {
        kind: "thread",
        is_within: false,
        names: &["thread plant", "interrupt local timer (hrtimer_wakeup"],
    },
    Plant {
        kind: "timer",
        is_within: false,
        names: &["thread plant", "interrupt local timer (hrtimer_wakeup"],
    },
    Plant {
        kind: "packets",
        is_within: false,
        names: &[
            "softirq NET_RX",
            "thread ksoftirqd",
            "interrupt call function single",
        ],
    },
    Plant {
        kind: "membarrier",
        is_within: true,
        names: &["interrupt call function"],
    },
    Plant {
        kind: "mprotect",
        is_within: true,
        names: &["interrupt call function"],
    },
    Plant {
        kind: "fault",
        is_within: true,
        // Other CPUs have to forget a page that is taken away.
        names: &["page faults", "interrupt call function"],
    },
];

/// Plants one after the other.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let cpu = last_cpu()?;
    let scratch = tempfile::tempdir()?;
    for plant in PLANTS {
        wait_for_quiet(cpu);
        let (folder, bursts) = plant.measure(cpu, scratch.path())?;
        plant.judge(&folder, &bursts, verdicts)?;
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
        let words = format!(
            "noise --workload gap --repetitions {READS} --runs 1 --cpu {cpu} --explain {LEAST}"
        );
        let mut measuring = tare(&words)?;
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
        let least = (5e-6 * hz) as u64;
        let gaps = sets.iter().flat_map(|set| &set.events);
        let gaps = gaps.filter(|gap| gap.value >= least);
        let is_its = |gap: &&Event| {
            let (from, to) = (gap.at.saturating_sub(SLACK), gap.at + gap.value + SLACK);
            let first = bursts.partition_point(|[_, end]| *end < from);
            bursts.get(first).is_some_and(|[start, _]| *start <= to)
        };
        let (all, its) = gaps.fold((0, 0), |(all, its), gap| {
            (all + 1, its + u64::from(is_its(&gap)))
        });
        let (mut named, mut others) = (0, Vec::new());
        let way_ns = way_in_ns(&measured.record.traces, 0);
        for trace in &measured.record.traces {
            let first = takers(trace, 0, way_ns).takers.into_iter().next();
            let first = first.map_or_else(String::new, |(taker, _)| taker.to_string());
            let is_right = self.names.iter().any(|right| first.starts_with(right));
            match is_right {
                true => named += trace.samples,
                false => others.push((trace.samples, first)),
            }
        }
        others.sort_by(|one, other| other.cmp(one));
        others.truncate(4);
        println!(
            "       {kind}: {} bursts, {all} delays of {LEAST} or more, {its} of them its, {named} named so; others: {others:?}",
            bursts.len()
        );
        let what = format!("{kind}: delays that are named so / that are its");
        verdicts.within(&what, named as f64 / its as f64, 0.9, 1.01);
        Ok(())
    }
}
