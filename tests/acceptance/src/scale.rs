//! `tare scale` against barriers on this machine's CPUs.
//!
//! A thread on each CPU computes until it had a step's time by the TSC without gaps, and then spins
//! at a barrier until all have. `tare scale` computes the slowdown of such steps from the noise of
//! the same CPUs: measured on all of them at once, as the threads compute at once. Both alternate.
//! Noise changes by more than the two differ, so the figure is how much more all CPUs lose than one
//! does: of the threads, relative to the gaps in their own work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use fastrand::Rng;
use tare_results::RunFolder;
use tare_stats::{Level, NoiseRun, Program, at_scale};
use tare_workloads::timing::bare_rdtsc;

use crate::verdict::Verdicts;
use crate::{Measurement, Result, hog, output, pin, tare};

/// Turns, each of noise on all CPUs and of steps of each length.
const TURNS: usize = 24;
/// The lengths of steps in µs, and how many are one turn.
const STEPS: [(u64, u64); 2] = [(1_000, 1_000), (100, 10_000)];
/// Time between two reads of the timer from which on it is a gap, as in `tare noise`.
const GAP_NS: f64 = 500.0;

/// Compares both, and measures how long a million nodes take to compute.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let cpus: Vec<usize> = (0..=hog::last_cpu()?).collect();
    let scratch = tempfile::tempdir()?;
    let mut folders = Vec::new();
    let mut slowdowns = [[0.0; 2]; STEPS.len()];
    for turn in 0..TURNS {
        let noise = cpus.iter().map(|cpu| {
            let path = scratch.path().join(format!("{turn}-{cpu}"));
            let words = format!(
                "noise --workload gap --repetitions 200000000 --runs 1 --cpu {cpu} --quiet"
            );
            let mut command = tare(&words)?;
            command.arg("--output").arg(&path);
            folders.push(path);
            Ok(thread::spawn(move || {
                output(&mut command).map_err(|error| error.to_string())
            }))
        });
        for measured in noise.collect::<Result<Vec<_>>>()? {
            measured.join().map_err(|_| "a thread panicked")??;
        }
        let first = RunFolder::open(&folders[0])?;
        let measured = Measurement::of(&first, 1).ok_or("the cell failed")?;
        let ticks = measured.program.frequencies[0].hz / 1e9;
        let [crossing, _] = barriers(&cpus, 0.0, 20_000, ticks)?;
        for ([one, all], (us, steps)) in slowdowns.iter_mut().zip(STEPS) {
            let step_ns = us as f64 * 1e3;
            let [time, lost] = barriers(&cpus, step_ns, steps, ticks)?;
            *one += lost / step_ns / TURNS as f64;
            *all += ((time - crossing) / step_ns - 1.0) / TURNS as f64;
        }
    }
    let nodes = cpus.len();
    for ([one, all], (us, _)) in slowdowns.into_iter().zip(STEPS) {
        let words = format!("scale --json --step {us}us --nodes 1,{nodes}");
        let page = scratch.path().join(format!("page-{us}"));
        let json = output(tare(&words)?.args(&folders).arg("--output").arg(page))?;
        let scaled: serde_json::Value = serde_json::from_str(&json)?;
        let points = &scaled["series"][0]["points"];
        let of = |node: usize| {
            points[node]["slowdown"]["value"]
                .as_f64()
                .unwrap_or(f64::NAN)
        };
        println!(
            "       steps of {us} µs, computed: {:.3} % longer on one CPU, {:.3} % on {nodes}; \
             measured: {:.3} %, {:.3} %",
            100.0 * of(0),
            100.0 * of(1),
            100.0 * one,
            100.0 * all
        );
        let what = format!("slowdown of {us} µs on {nodes} CPUs / on one, computed / measured");
        verdicts.within(&what, of(1) / of(0) / (all / one), 0.8, 1.25);
    }
    million(verdicts)
}

/// Runs steps on all CPUs. Returns the mean time from one barrier to the next (the median for steps
/// without work), and of it the time that a CPU lost while it computed, in ns.
fn barriers(cpus: &[usize], step_ns: f64, steps: u64, ticks: f64) -> Result<[f64; 2]> {
    let arrived = AtomicU64::new(0);
    let nodes = cpus.len() as u64;
    let (work, gap) = ((step_ns * ticks) as u64, (GAP_NS * ticks) as u64);
    let node = |cpu: usize| -> std::result::Result<(Vec<u64>, u64), String> {
        pin(cpu).map_err(|error| error.to_string())?;
        let (mut passed, mut lost) = (Vec::with_capacity(steps as usize + 1), 0);
        for step in 0..=steps {
            let (mut done, mut before) = (0, bare_rdtsc());
            // The first one only waits for the others.
            while step > 0 && done < work {
                let now = bare_rdtsc();
                let took = now.wrapping_sub(before);
                match took < gap {
                    true => done += took,
                    false => lost += took,
                }
                before = now;
            }
            arrived.fetch_add(1, Ordering::AcqRel);
            while arrived.load(Ordering::Acquire) < nodes * (step + 1) {
                std::hint::spin_loop();
            }
            passed.push(bare_rdtsc());
        }
        Ok((passed, lost))
    };
    let passed = thread::scope(|scope| {
        let nodes = cpus.iter().map(|cpu| scope.spawn(|| node(*cpu)));
        let nodes: Vec<_> = nodes.collect();
        let passed = nodes
            .into_iter()
            .map(|node| node.join().map_err(|_| "a thread panicked".to_owned())?);
        passed.collect::<std::result::Result<Vec<_>, _>>()
    })?;
    let each = passed[0].0.windows(2);
    let each = each.map(|pair| pair[1].wrapping_sub(pair[0]) as f64 / ticks);
    let time = match work {
        0 => crate::median(each),
        _ => each.sum::<f64>() / steps as f64,
    };
    let lost: u64 = passed.iter().map(|(_, lost)| lost).sum();
    Ok([time, lost as f64 / ticks / (steps * nodes) as f64])
}

/// Computes the longest of exponential delays on up to a million nodes, which is known.
fn million(verdicts: &mut Verdicts) -> Result<()> {
    const STEP: f64 = 1e6;
    let mut rng = Rng::with_seed(7);
    let mut run = || {
        let mut length_ns = 0.0;
        let gaps = (0..1_300_000).map(|_| {
            let gap = (length_ns + STEP / 2.0, -(1.0 - rng.f64()).ln() * 1e3);
            length_ns += gap.1 + STEP;
            gap
        });
        let gaps = gaps.collect();
        NoiseRun { length_ns, gaps }
    };
    let noise: Vec<NoiseRun> = (0..8).map(|_| run()).collect();
    let program = Program {
        step_ns: STEP,
        correlated: 0.0,
        noise: &noise,
        bad: None,
    };
    let begun = Instant::now();
    let points = at_scale(
        &program,
        &[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000],
        Level::P95,
    )?;
    let took = begun.elapsed().as_secs_f64();
    for point in &points {
        let harmonic: f64 = (1..=point.nodes).map(|node| 1.0 / node as f64).sum();
        let interval = point.slowdown.interval?;
        let what = format!(
            "longest of {} exponential delays of 1 on average",
            point.nodes
        );
        verdicts.within(&what, harmonic, interval.low * 1e3, interval.high * 1e3);
    }
    verdicts.at_most("seconds that up to a million nodes take", took, 5.0);
    Ok(())
}
