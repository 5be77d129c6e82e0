//! The costs of `tare` itself.

use std::path::Path;
use std::time::Instant;

use tare_results::model::Labels;

use crate::service;
use crate::verdict::Verdicts;
use crate::{Measurement, Result, measurements, median, of_row, output, run as tare};

/// Measures the three costs against their bounds, and the sizes of services.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    loops(scratch.path(), verdicts)?;
    hundred_million(scratch.path(), verdicts)?;
    service::sizes(verdicts)
}

/// Compares the measured loops with their components, in the same launch of the agent.
fn loops(scratch: &Path, verdicts: &mut Verdicts) -> Result<()> {
    let words = "noise --workload gap --repetitions 10000000 --runs 21";
    let folder = tare(scratch, "gap", words, &[])?;
    let runs = measurements(&folder);
    let reads = || runs.iter().map(|m| m.program.calibration.bare_read_cycles);
    let over_read = |measure| {
        of_row(&folder, "noise", (measure, "mean"), &[], |row| {
            let figures = row.each.iter().filter_map(|each| each.figure.value());
            let cycles = figures.map(|ns| row.time(ns).cycles);
            Ok(median(
                cycles.zip(reads()).map(|(cycles, read)| cycles / read),
            ))
        })
    };
    println!(
        "       one unrolled rdtsc: {:.2} cycles; an iteration of gap, interruptions included: \
         {:.3} of that",
        median(reads()),
        over_read("iteration")?
    );
    verdicts.at_most(
        "iteration of gap that is not interrupted / unrolled rdtsc",
        over_read("quiet")?,
        1.1,
    );

    for (workload, size) in [("prime", "--limit 22"), ("copy", "--size 100")] {
        let words = format!("noise --workload {workload} {size} --repetitions 100000 --runs 21");
        let runs = measurements(&tare(scratch, workload, &words, &[])?);
        let ratios = runs.iter().map(|m| between(m) / between_empty(m));
        println!(
            "       {workload}: an empty region reads as {} cycles, and {:.1} lie between two; median of the ratio {:.3}",
            median(runs.iter().map(region)),
            median(runs.iter().map(between_empty)),
            median(ratios.clone())
        );
        // Interruptions between samples only add time: the least is the cost of the loop.
        verdicts.at_most(
            &format!(
                "dead time between samples of {workload} / between empty ones, least of 21 runs"
            ),
            ratios.fold(f64::INFINITY, f64::min),
            1.3,
        );
    }
    Ok(())
}

/// Returns the cycles between the end of one sample and the start of the next.
fn between(m: &Measurement) -> f64 {
    (m.head.length() - m.head.sum) as f64 / m.head.n as f64
}

/// Returns the time that the same loop around nothing needs between two samples, in cycles, as
/// calibrated in this run: fences and stores have different costs on each CPU. Too high by less
/// than one step of the timer, since an empty region is known by its least value.
fn between_empty(m: &Measurement) -> f64 {
    m.program.calibration.fenced_cost_cycles - region(m)
}

/// Returns the duration of an empty fenced region, in cycles.
fn region(m: &Measurement) -> f64 {
    m.program.calibration.fenced_region_cycles as f64
}

/// Folds, analyses and reports 100 million samples.
fn hundred_million(scratch: &Path, verdicts: &mut Verdicts) -> Result<()> {
    let words = "noise --workload prime --limit 22 --repetitions 10000000 --runs 10";
    let folder = tare(scratch, "many", words, &[])?;
    let runs = measurements(&folder);
    let samples: u64 = runs.iter().map(|m| m.head.n).sum();
    let folded: f64 = runs
        .iter()
        .filter_map(|m| m.record.value("fold time", &Labels::default()))
        .zip(runs.iter().map(|m| m.program.frequencies[0].hz))
        .map(|(cycles, hz)| cycles / hz)
        .sum();
    let begun = Instant::now();
    output(crate::tare("report")?.arg(folder.path()))?;
    let reported = begun.elapsed().as_secs_f64();
    println!("       {samples} samples: folded in {folded:.2} s, reported in {reported:.2} s");
    verdicts.at_most("folding, statistics and report, s", folded + reported, 10.0);
    verdicts.at_most(
        "most memory of tare or its agent, GB",
        peak_bytes() / 1e9,
        1.0,
    );
    Ok(())
}

/// Returns the peak resident size of all children so far, in bytes.
fn peak_bytes() -> f64 {
    // SAFETY: zeroed is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: a live value. It can only fail for an unknown `who`.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    usage.ru_maxrss as f64 * 1024.0
}
