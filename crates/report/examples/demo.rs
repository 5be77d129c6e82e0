//! Renders the report of a run that never was, for people who work on the report:
//! `cargo run -p tare-report --example demo -- gap|prime|sweep|targets|dozen|bad|wakeup|wakeups|landolfi FILE.html`.
//!
//! The machine and its findings are those of where the example runs.

#[path = "../tests/it/synthetic/mod.rs"]
mod synthetic;

use std::process::ExitCode;

use fastrand::Rng;
use synthetic::wakeups::{self, Schedule};
use synthetic::{Fold, HZ, Run, gaps_like, linux_like, measured, record, spin, timed};
use tare_host::{Machine, Sample, Source, doctor};
use tare_report::{html, terminal};
use tare_results::MachineRecord;
use tare_results::model::{
    Achieved, Cell, Counter, Event, Fact, Labels, Load, LoadPlace, Trace, TraceEvent, TraceKind,
};

const STEP: u64 = 26;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, path] = arguments.as_slice() else {
        eprintln!(
            "usage: demo gap|prime|sweep|targets|dozen|bad|wakeup|wakeups|landolfi FILE.html"
        );
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
        "dozen" => dozen(&mut run, &mut random),
        "bad" => bad(&mut run, &mut random),
        "wakeup" => wakeup(&mut run, &["idle"], 1, &mut random),
        "wakeups" => {
            for load in ["idle", "dd", "hackbench"] {
                wakeup(&mut run, &[load], 6, &mut random);
            }
        }
        "landolfi" => {
            run.reproduces = Some("landolfi-2018");
            landolfi(&mut run, &mut random);
        }
        other => {
            eprintln!("no such run: {other}");
            return ExitCode::from(2);
        }
    }
    let mut data = run.data();
    let source = Source::system();
    let machine = Machine::collect(&source);
    let findings = doctor(&source, &machine, &Sample::take(&source), None);
    data.machine = Some(MachineRecord::new(machine, findings));
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
    prime_times(1_000_000, run, (target, block), limit, noise, random);
}

fn prime_times(
    repetitions: usize,
    run: &mut Run,
    (target, block): (&str, u32),
    limit: u64,
    noise: f64,
    random: &mut Rng,
) {
    let work: u64 = (2..limit).map(|n| smallest_factor(n) - 1).sum();
    let result = (2..limit).filter(|&n| smallest_factor(n) == n).count() as u64;
    let durations = linux_like(repetitions, 60 + 12 * work, STEP, noise, random);
    let fold = Fold {
        work,
        result,
        ..Fold::default()
    };
    run.done(block, target, "prime", Some(limit), timed(&durations, fold));
}

fn gap(run: &mut Run, target: &str, runs: u32, others: f64, random: &mut Rng) {
    for block in 1..=runs {
        gap_in(run, target, block, others, random);
    }
}

fn gap_in(run: &mut Run, target: &str, block: u32, others: f64, random: &mut Rng) {
    let fold = Fold {
        threshold: 1_300,
        ..Fold::default()
    };
    let mut gaps = gaps_like(2.0, others, random);
    if others == 0.0 {
        gaps.clear();
    }
    // Without interrupts of its own there is no tick.
    if target.contains("irq=off") {
        gaps.retain(|_| random.f64() < 0.1);
    }
    run.done(
        block,
        target,
        "gap",
        None,
        spin(200_000_000, 25, &gaps, fold),
    );
}

/// Makes a run of a dozen targets of every group under two loads.
fn dozen(run: &mut Run, random: &mut Rng) {
    let targets = [
        ("process", 1.0),
        ("docker", 1.2),
        ("podman", 1.15),
        ("runc", 1.05),
        ("crun", 1.02),
        ("linux,kernel=debian", 1.4),
        ("linux,kernel=debian-cloud,preempt=voluntary", 1.3),
        ("linux,kernel=debian-rt,preempt=full", 0.7),
        ("linux,kernel=debian,cpus=2,isolate=1,nohz_full=1", 0.2),
        ("linux,root=debian", 2.1),
        ("unikernel", 0.3),
        ("unikernel,irq=off", 0.1),
    ];
    for block in 1..=3 {
        for (load, factor) in [("idle", 1.0), ("dd", 3.0)] {
            run.load = load;
            for (place, (target, noise)) in targets.into_iter().enumerate() {
                let is_guest = place >= 5;
                run.accelerator = is_guest.then_some("KVM of QEMU 9.0");
                // One of them is executed by an emulator.
                run.emulated = place == 10;
                let noise = noise * factor * (0.9 + 0.2 * random.f64());
                let prime_from = run.len();
                gap_in(run, target, block, 700.0 * noise, random);
                prime_times(100_000, run, (target, block), 22, noise, random);
                for cell in run.done_from(prime_from) {
                    describe(cell, load, is_guest, random);
                }
            }
        }
    }
    run.load = "";
}

/// Adds what a cell of the dozen tells beside its samples.
fn describe(cell: &mut Cell, load: &str, is_guest: bool, random: &mut Rng) {
    let (block, target) = (cell.plan.block, cell.plan.target.clone());
    if load == "dd" {
        cell.load = Some(Load {
            left: Vec::new(),
            place: if is_guest && target.text.starts_with("linux") {
                LoadPlace::Inside
            } else {
                LoadPlace::Beside
            },
            phases: Vec::new(),
            achieved: vec![Achieved {
                what: "bytes written".to_owned(),
                amount: 400_000_000 + random.u64(..50_000_000),
                ns: 2_000_000_000,
            }],
            notices: vec!["conv=fsync is added: without it dd measures memory".to_owned()],
        });
    }
    if target == "docker" {
        cell.daemons = vec!["dockerd".to_owned(), "containerd".to_owned()];
    }
    let seconds = record(cell).sets[0].length() as f64 / HZ;
    let measured = measured(cell);
    if target.text.starts_with("unikernel") {
        measured.preparation.cpu = Some(0);
        measured.counters = vec![Counter {
            name: "timer interrupts".to_owned(),
            count: if target.text.contains("off") {
                0
            } else {
                (seconds * 250.0) as u64
            },
        }];
    } else {
        let release = if target.text.contains("rt") {
            "6.1.0-49-rt-amd64"
        } else if is_guest {
            "6.1.0-49-amd64"
        } else {
            "6.18.0"
        };
        let fact = |name: &str, value: &str| Fact {
            name: name.to_owned(),
            labels: Labels::default(),
            value: value.to_owned(),
        };
        measured.facts = vec![
            fact("kernel release", release),
            fact("preemption model", "voluntary"),
            fact(
                "isolated CPUs",
                if target.text.contains("isolate") {
                    "1"
                } else {
                    "none"
                },
            ),
            fact(
                "nohz_full CPUs",
                if target.text.contains("nohz") {
                    "1"
                } else {
                    "none"
                },
            ),
            fact(
                "clock source",
                if target == "linux,root=debian" && block == 2 {
                    "hpet"
                } else {
                    "tsc"
                },
            ),
        ];
        if is_guest {
            measured.preparation.cpu = Some(0);
        }
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

/// Makes runs of one place under some loads.
fn wakeup(run: &mut Run, loads: &[&str], runs: u32, random: &mut Rng) {
    for block in 1..=runs {
        let schedule = Schedule {
            loads,
            activations: 40_000,
            model: Some("voluntary"),
            ..Schedule::default()
        };
        let stalls = if loads == ["idle"] { 1e-5 } else { 3e-4 };
        run.woken(block, schedule, |_, _, _| {
            wakeups::linux_like(4_000.0, 3_000.0, stalls, random)
        });
    }
}

/// Makes a run as the study's: the seven phases on four kernels and the host, and one of them traced.
fn landolfi(run: &mut Run, random: &mut Rng) {
    const LOADS: [&str; 7] = ["idle", "ping", "idle", "dd+hackbench", "du", "tar", "nc"];
    // How often stalls come in each phase.
    const OFTEN: [f64; 7] = [0.0, 1e-5, 1e-6, 4e-4, 2e-4, 1e-4, 1e-5];
    let kernels = [
        ("process", "voluntary", 1.5),
        (
            "linux,kernel=debian,preempt=none,mem=1G,disk=scratch:4G",
            "none",
            2.5,
        ),
        (
            "linux,kernel=debian,preempt=voluntary,mem=1G,disk=scratch:4G",
            "voluntary",
            1.6,
        ),
        (
            "linux,kernel=debian,preempt=full,mem=1G,disk=scratch:4G",
            "full",
            0.5,
        ),
        ("linux,kernel=debian-rt,mem=1G,disk=scratch:4G", "rt", 0.0),
    ];
    for block in 1..=2 {
        for (target, model, factor) in kernels {
            let schedule = Schedule {
                target,
                loads: &LOADS,
                activations: 30_000,
                model: Some(model),
                ..Schedule::default()
            };
            run.accelerator = (target != "process").then_some("KVM of QEMU 9.0");
            let mut late = |_, phase: usize, _| {
                let stalls = OFTEN[phase] * factor;
                let base = if phase == 1 { 6_000.0 } else { 2_500.0 };
                wakeups::linux_like(base, 1_000.0 + 2_000.0 * factor, stalls, random)
            };
            run.woken(block, schedule, &mut late);
            if block == 1 && target == "process" {
                let traced = Schedule {
                    traced: true,
                    ..schedule
                };
                run.woken(block, traced, &mut late);
                let worst = run.last_worst();
                let place = run.len() - 1;
                run.done_from(place).for_each(|cell| blamed(cell, worst));
            }
        }
    }
}

/// Adds what the kernel did around the worst wake-up of a cell.
fn blamed(cell: &mut Cell, (set, worst): (u32, Event)) {
    let longest = worst.value;
    let at = |share: f64| (longest as f64 * share) as i64;
    let event = |at_ns: i64, what: TraceKind| TraceEvent {
        at_ns,
        from_user: false,
        stack: Vec::new(),
        what,
    };
    let name = |name: &str| name.to_owned();
    let thread = |name: &str| name.to_owned();
    wakeups::trace(
        cell,
        Trace {
            set,
            index: worst.index,
            value: longest,
            complete: true,
            events: vec![
                event(
                    -900,
                    TraceKind::SoftirqEntry {
                        name: name("NET_RX"),
                    },
                ),
                event(
                    at(0.6),
                    TraceKind::SoftirqExit {
                        name: name("NET_RX"),
                    },
                ),
                event(
                    at(0.62),
                    TraceKind::InterruptEntry {
                        name: name("local timer"),
                    },
                ),
                event(
                    at(0.65),
                    TraceKind::Waking {
                        thread: thread("tare-agent/100"),
                        ours: true,
                        priority: 4,
                    },
                ),
                event(
                    at(0.66),
                    TraceKind::InterruptExit {
                        name: name("local timer"),
                    },
                ),
            ],
        },
    );
}

fn smallest_factor(n: u64) -> u64 {
    (2..=n)
        .find(|divisor| n.is_multiple_of(*divisor))
        .unwrap_or(n)
}
