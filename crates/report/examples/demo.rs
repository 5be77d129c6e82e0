//! Renders the report of a run that never was, for people who work on the report:
//! `cargo run -p tare-report --example demo -- gap|prime|sweep|targets|bad FILE.html`.
//!
//! The machine and its findings are those of where the example runs.

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use std::process::ExitCode;

use fastrand::Rng;
use synthetic::{Fold, Run, gaps_like, linux_like, spin, timed};
use tare_host::{Machine, Source, doctor};
use tare_report::{html, terminal};
use tare_results::MachineRecord;

const STEP: u64 = 26;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, path] = arguments.as_slice() else {
        eprintln!("usage: demo gap|prime|sweep|targets|bad FILE.html");
        return ExitCode::from(2);
    };
    let mut random = Rng::with_seed(2019);
    let mut run = Run::new(STEP);
    match kind.as_str() {
        "gap" => gap(&mut run, "process", 5, 700.0, &mut random),
        "prime" => prime(&mut run, "process", 1, 22, 1.0, &mut random),
        "sweep" => {
            for block in 1..=5 {
                for limit in (10..=46).step_by(4) {
                    prime(&mut run, "process", block, limit, 1.0, &mut random);
                    prime(&mut run, "unikernel", block, limit, 0.02, &mut random);
                }
            }
        }
        "targets" => {
            for (target, noise) in [
                ("process", 1.0),
                ("unikernel", 0.05),
                ("unikernel,irq=off", 0.0),
            ] {
                run.emulated = target == "unikernel,irq=off";
                gap(&mut run, target, 3, 700.0 * noise, &mut random);
                for block in 1..=3 {
                    prime(&mut run, target, block, 22, noise, &mut random);
                }
            }
        }
        "bad" => bad(&mut run, &mut random),
        other => {
            eprintln!("no such run: {other}");
            return ExitCode::from(2);
        }
    }
    let mut data = run.data();
    let source = Source::system();
    data.machine = Some(MachineRecord::new(
        Machine::collect(&source),
        doctor(&source, None),
    ));
    let analysis = data.analyse();
    print!("{}", terminal::render(&analysis, 100, true));
    match std::fs::write(path, html::render(&analysis)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{path} cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}

fn prime(run: &mut Run, target: &str, block: u32, limit: u64, noise: f64, random: &mut Rng) {
    let work: u64 = (2..limit).map(|n| smallest_factor(n) - 1).sum();
    let result = (2..limit).filter(|&n| smallest_factor(n) == n).count() as u64;
    let durations = linux_like(1_000_000, 60 + 12 * work, STEP, noise, random);
    let fold = Fold {
        work,
        result,
        ..Fold::default()
    };
    run.done(block, target, "prime", Some(limit), timed(&durations, fold));
}

fn gap(run: &mut Run, target: &str, runs: u32, others: f64, random: &mut Rng) {
    let fold = Fold {
        threshold: 1_300,
        ..Fold::default()
    };
    for block in 1..=runs {
        let mut gaps = gaps_like(2.0, others, random);
        if others == 0.0 {
            gaps.clear();
        }
        run.done(
            block,
            target,
            "gap",
            None,
            spin(200_000_000, 25, &gaps, fold),
        );
    }
}

/// Makes a run in which about everything went wrong.
fn bad(run: &mut Run, random: &mut Rng) {
    let small = Fold {
        capacity: 200,
        ..Fold::default()
    };
    let durations = linux_like(1_000_000, 1_043, STEP, 1.0, random);
    let cell = run.done(1, "process", "prime", Some(22), timed(&durations, small));
    cell.notices
        .push("the process has no access to /dev/cpu_dma_latency".to_owned());
    run.failed(
        1,
        "docker",
        "prime",
        "the container ended with signal 11; see its output in the run folder",
    );
    let gaps = gaps_like(2.0, 700.0, random);
    let fold = Fold {
        threshold: 200,
        capacity: 300,
        ..Fold::default()
    };
    run.done(
        1,
        "process",
        "gap",
        None,
        spin(200_000_000, 25, &gaps, fold),
    );
    run.emulated = true;
    let other_work = Fold {
        result: 9,
        ..Fold::default()
    };
    let durations = linux_like(1_000_000, 4_043, 260, 1.0, random);
    run.done(
        1,
        "unikernel",
        "prime",
        Some(22),
        timed(&durations, other_work),
    );
    run.missing(2, "process", "prime");
}

fn smallest_factor(n: u64) -> u64 {
    (2..=n)
        .find(|divisor| n.is_multiple_of(*divisor))
        .unwrap_or(n)
}
