//! `tare compare`: its rate of false alarms on a busy machine, and of true findings.
//!
//! A synthetic load uses the measured CPU for some seconds, pauses for some, and starts again,
//! while invocations are measured in alternation. Forty times six are compared with the six between
//! them: every reported difference is a false alarm. The first of each six against the first of the
//! other is one invocation against another, which must be reported as two runs and fail no gate.
//!
//! True differences are planted: the median of one invocation's runs is raised in tables drawn from
//! recorded quiet invocations, and once in reality, by a thread that competes with `gap` for the
//! CPU in every NEW invocation.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tare_experiments::catalogue;
use tare_figures::compare::{
    CompareUnit, Comparison, SIGNIFICANCE, ShiftGate, compare, is_compared, side,
};
use tare_figures::rows::Row;
use tare_pages::{Report, analyse};
use tare_stats::{Level, compare_groups};

use crate::hog::{last_cpu, wait_for_quiet};
use crate::verdict::Verdicts;
use crate::{Result, median, pin, run as tare};

/// Comparisons of the machine with itself, half of each command.
const COMPARISONS: usize = 40;
/// Invocations on each side.
const SIDE: usize = 6;
/// The number of quiet invocations recorded of each command, and of tables drawn from them.
const QUIET: usize = 24;
const TABLES: usize = 100;

/// The commands of an invocation: four runs, so that single invocations can be distinguished.
const COMMANDS: [&str; 2] = [
    "noise --workload prime,gap --limit 22 --repetitions 100000 --runs 4",
    "wakeup -i 1000 -l 50 --policy other --runs 4",
];
/// The raised figure of each: the median of a run.
const PLANTED: [&str; 2] = ["duration", "latency"];
/// A gate that any rise would fail.
const GATE: [&str; 2] = ["duration.p50 > +0%", "latency.p50 > +0%"];

/// Measures false alarms and true findings.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let cpu = last_cpu()?;
    wait_for_quiet(cpu);
    let mut found = 0;
    for (command, planted) in COMMANDS.iter().zip(PLANTED) {
        let quiet = measure_all(scratch.path(), command, cpu, QUIET)?;
        found += planted_are_found(&quiet, planted)?;
    }
    let tables = COMMANDS.len() * TABLES;
    let what = "planted shifts found in resampled quiet invocations, of 200";
    verdicts.at_least(what, found as f64, 0.9 * tables as f64);
    found_for_real(scratch.path(), cpu, verdicts)?;
    alarms(scratch.path(), cpu, verdicts)
}

/// Counts the comparisons with any alarm while a load comes and goes.
fn alarms(scratch: &Path, cpu: usize, verdicts: &mut Verdicts) -> Result<()> {
    let (mut with_alarm, mut judged, mut runs_differ, mut of_systems) = (0, 0, 0, 0);
    let started = Instant::now();
    let measured = with_load(cpu, true, || {
        let mut sides = Vec::new();
        for number in 0..COMPARISONS {
            let place = number % COMMANDS.len();
            // BASE and NEW in alternation.
            let all = measure_all(scratch, COMMANDS[place], cpu, 2 * SIDE)?;
            sides.push((place, all));
        }
        Ok(sides)
    })?;
    for (place, all) in &measured {
        let (base, new): (Vec<&Report>, Vec<&Report>) = (
            all.iter().step_by(2).collect(),
            all.iter().skip(1).step_by(2).collect(),
        );
        let compared = between(&base, &new)?;
        with_alarm += usize::from(compared.rows.iter().any(|row| row.differs));
        let single = between(&base[..1], &new[..1])?;
        let gate: ShiftGate = GATE[*place].parse()?;
        judged += usize::from(gate.judge(&single, false)?.failed);
        runs_differ += usize::from(single.rows.iter().any(|row| row.differs));
        let text = single.verdict.join(" ");
        let is_told = single.unit == CompareUnit::TwoRuns && !text.contains("than BASE");
        of_systems += usize::from(!is_told);
    }
    println!(
        "       {COMPARISONS} comparisons of {SIDE} against {SIDE} invocations in {} s; of single pairs, {runs_differ} were reported \
         as runs that differ",
        started.elapsed().as_secs()
    );
    let what = "comparisons of the machine with itself with any alarm, of 40";
    verdicts.at_most(what, with_alarm as f64, 5.0);
    let what = "one against one: gates that failed";
    verdicts.at_most(what, judged as f64, 0.0);
    let what = "one against one: said to be of systems, not of two runs";
    verdicts.at_most(what, of_systems as f64, 0.0);
    Ok(())
}

/// Counts the tables drawn from quiet invocations in which a raised median is found.
fn planted_are_found(quiet: &[Report], measure: &str) -> Result<usize> {
    let tables = tables(quiet);
    let is_planted = |row: &Row| row.measure.id == measure && row.figure.to_string() == "p50";
    let place = tables.iter().position(|(row, _)| is_planted(row));
    let place = place.ok_or("the quiet invocations lack the figure to be raised")?;
    let values = &tables[place].1;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let sd = (squares / (values.len() as f64 - 1.0)).sqrt();
    let middle = median(values.iter().copied());
    let shift = (0.2 * middle).max(3.0 * sd);
    let mut random = Rng::with_seed(40);
    let mut order: Vec<usize> = (0..quiet.len()).collect();
    let mut found = 0;
    for _ in 0..TABLES {
        random.shuffle(&mut order);
        let rows: Vec<(Vec<f64>, Vec<f64>)> = (0..)
            .zip(&tables)
            .map(|(row, (_, values))| {
                let raised = if row == place { shift } else { 0.0 };
                let of = |from: usize, by: f64| {
                    let chosen = order[from..from + SIDE].iter();
                    chosen.map(|at| values[*at] + by).collect()
                };
                (of(0, 0.0), of(SIDE, raised))
            })
            .collect();
        let compared = compare_groups(&rows, Level::P95, 1)?;
        found += usize::from(compared[place].differs(SIGNIFICANCE));
    }
    println!(
        "       {measure}.p50 of {middle:.0} ns (sd {sd:.0}) raised by {shift:.0} ns among {} figures: found in {found} of {TABLES}",
        tables.len()
    );
    Ok(found)
}

/// Compares invocations of `gap` in competition with a thread for the CPU with those without it.
fn found_for_real(scratch: &Path, cpu: usize, verdicts: &mut Verdicts) -> Result<()> {
    const GAP: &str = "noise --workload gap --repetitions 5000000 --runs 2";
    let (mut base, mut new) = (Vec::new(), Vec::new());
    for _ in 0..SIDE {
        base.extend(measure_all(scratch, GAP, cpu, 1)?);
        new.extend(with_load(cpu, false, || measure_all(scratch, GAP, cpu, 1))?);
    }
    let of = |all: &[Report]| {
        let rows = all.iter().flat_map(|run| run.rows().of("noise", "lost"));
        median(rows.filter_map(|row| Some(row.over.as_ref().ok()?.estimate)))
    };
    println!(
        "       time lost by `gap`, median: {:.2} % alone, {:.2} % next to a thread that computes",
        100.0 * of(&base),
        100.0 * of(&new)
    );
    let compared = between(
        &base.iter().collect::<Vec<_>>(),
        &new.iter().collect::<Vec<_>>(),
    )?;
    let gate: ShiftGate = "noise/lost > +20%".parse()?;
    let judged = gate.judge(&compared, false)?;
    println!("       {}", judged.sentence);
    let what = "a shift for real fails its gate";
    verdicts.at_least(what, f64::from(u8::from(judged.failed)), 1.0);
    Ok(())
}

/// Returns the figures common to all invocations, with the value of each.
fn tables(runs: &[Report]) -> Vec<(&Row, Vec<f64>)> {
    let same = |a: &Row, b: &Row| {
        (a.measure, a.figure, &a.labels, &a.load) == (b.measure, b.figure, &b.labels, &b.load)
    };
    let rows = runs.first().into_iter().flat_map(|run| &run.rows().0);
    let table = |row: &'_ Row| {
        let values = runs.iter().map(|run| {
            let own = run.rows().0.iter().find(|own| same(own, row))?;
            let is_whole = own.each.len() == row.each.len();
            own.over
                .as_ref()
                .ok()
                .filter(|_| is_whole)
                .map(|over| over.estimate)
        });
        values.collect::<Option<Vec<f64>>>()
    };
    rows.filter(|row| is_compared(row))
        .filter_map(|row| Some((row, table(row)?)))
        .collect()
}

fn between(base: &[&Report], new: &[&Report]) -> Result<Comparison> {
    let of = |name: &str, runs: &[&Report]| {
        side(name, runs.iter().map(|run| (name.to_owned(), run.run())))
    };
    Ok(compare(&of("BASE", base), &of("NEW", new))?)
}

/// Runs invocations one after the other.
fn measure_all(
    scratch: &Path,
    command: &str,
    cpu: usize,
    invocations: usize,
) -> Result<Vec<Report>> {
    let command = format!("{command} --cpu {cpu}");
    let once = |_| {
        let folder = tempfile::tempdir_in(scratch)?;
        Ok(analyse(
            &tare(folder.path(), "run", &command, &[])?,
            catalogue(),
        )?)
    };
    (0..invocations).map(once).collect()
}

/// Runs a function while an ordinary thread computes on the measured CPU, continuously or in bursts
/// of some seconds.
fn with_load<T>(cpu: usize, in_bursts: bool, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let over = AtomicBool::new(false);
    let started = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Elsewhere it would be no load of that CPU, which the figures then show.
            let _ = pin(cpu);
            let mut random = Rng::with_seed(1);
            let is_over = || over.load(Ordering::Relaxed);
            while !is_over() {
                let mut some = || Duration::from_millis(random.u64(1_000..5_000));
                let (busy, rest) = (some(), some());
                let begun = Instant::now();
                started.store(true, Ordering::Relaxed);
                while !is_over() && (!in_bursts || begun.elapsed() < busy) {
                    std::hint::spin_loop();
                }
                let begun = Instant::now();
                while !is_over() && begun.elapsed() < rest {
                    thread::sleep(Duration::from_millis(10));
                }
            }
        });
        while !started.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        let done = run();
        over.store(true, Ordering::Relaxed);
        done
    })
}
