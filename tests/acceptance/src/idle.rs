//! Linux guests are measured when their boot is over.
//!
//! A kernel that tests its ciphers at boot, which takes seconds where the clock counts
//! instructions, has the figures of one that does not; and no guest of a busy machine is measured
//! while it still boots, as its own kernel counts.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tare_experiments::catalogue;
use tare_pages::analyse;
use tare_results::{CellState, RunFolder};

use crate::verdict::Verdicts;
use crate::{Result, run as tare};

const QUIET: &str = "linux,kernel=debian-cloud-6.12";
const TESTING: &str = "linux,kernel=debian-cloud-6.12,cmdline=cryptomgr.notests=0";
const OTHER: &str = "linux,kernel=debian-cloud-6.1";

/// The experiments with their figures. Maxima and sums of few delays are of single events, which a
/// few instructions more at boot move.
const FIGURES: [(&str, &[(&str, &str)]); 2] = [
    (
        "noise",
        &[
            ("duration", "mean"),
            ("duration", "p50"),
            ("duration", "p99"),
            ("iteration", "mean"),
            ("lost", "share"),
            ("gaps", "rate"),
            ("gap", "p50"),
        ],
    ),
    (
        "wakeup",
        &[
            ("latency", "mean"),
            ("latency", "p50"),
            ("latency", "p99"),
            ("latency", "p99.9"),
        ],
    ),
];
/// The most that they may differ.
const MOST: f64 = 0.05;
/// Boots of each guest on a busy machine.
const BOOTS: usize = 20;
/// The most of its time that a guest may be busy with something else while it is measured: what the
/// agent waits for.
const BUSY: f64 = 0.05;

/// Compares the figures, and boots guests next to as many threads that spin as there are CPUs.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    for (experiment, figures) in FIGURES {
        let targets = [QUIET, TESTING].map(|target| format!("{target},clock=instructions"));
        let words = format!(
            "{experiment} --runs 1 --target {} --target {}",
            targets[0], targets[1]
        );
        let folder = tare(scratch.path(), experiment, &words, &[])?;
        compare(&folder, &targets, experiment, figures, verdicts)?;
    }
    boots(scratch.path(), verdicts)
}

/// Compares the figures of two targets, label by label.
fn compare(
    folder: &RunFolder,
    [quiet, testing]: &[String; 2],
    experiment: &str,
    figures: &[(&str, &str)],
    verdicts: &mut Verdicts,
) -> Result<()> {
    let analysis = analyse(folder, catalogue())?;
    for (measure, figure) in figures {
        let of = |target: &str| -> Vec<_> {
            let rows = analysis.rows().of(experiment, measure);
            let rows = rows.filter(|row| row.target == target && row.figure.to_string() == *figure);
            rows.collect()
        };
        let (quiet, testing) = (of(quiet), of(testing));
        if quiet.is_empty() || quiet.len() != testing.len() {
            return Err(format!("{measure}.{figure} is not on both targets").into());
        }
        for row in quiet {
            let estimate = |row: &tare_figures::rows::Row| -> Result<f64> {
                Ok(row.over.as_ref().map_err(ToString::to_string)?.estimate)
            };
            let other = testing.iter().find(|other| other.labels == row.labels);
            let other = other.ok_or_else(|| format!("{:?} is on one target", row.labels))?;
            let what = format!(
                "{experiment} {}, {measure}.{figure}: kernel that tests itself / that does not",
                row.labels
            );
            let ratio = estimate(other)? / estimate(row)?;
            verdicts.within(&what, ratio, 1.0 - MOST, 1.0 + MOST);
        }
    }
    Ok(())
}

/// Boots guests on a busy machine.
fn boots(scratch: &Path, verdicts: &mut Verdicts) -> Result<()> {
    let words = format!(
        "noise --workload prime --repetitions 200000 --runs {BOOTS} --target {OTHER},accel=tcg \
         --target {TESTING},accel=tcg"
    );
    let is_over = AtomicBool::new(false);
    let folder = thread::scope(|scope| {
        for _ in 0..thread::available_parallelism()?.get() {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let folder = tare(scratch, "boots", &words, &[]);
        is_over.store(true, Ordering::Relaxed);
        folder
    })?;
    let mut busiest: f64 = 0.0;
    for plan in &folder.plan().cells {
        let CellState::Done(cell) = folder.state(plan.id) else {
            return Err(format!("cell {} has no result", plan.id).into());
        };
        let work = cell.guest_work.filter(|work| work.is_telling());
        let work = work.ok_or_else(|| format!("cell {} lacks its guest's work", plan.id))?;
        let busy_ns: u64 = work.tasks.iter().map(|task| task.ns).sum();
        busiest = busiest.max(busy_ns as f64 / work.watched_ns as f64);
    }
    let what = format!(
        "other work in {} guests of a busy machine while each is measured, most",
        folder.plan().cells.len()
    );
    verdicts.at_most(&what, busiest, BUSY);
    Ok(())
}
