//! `tare noise`: measures how often and how long short work is delayed.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use tare_experiments::noise::{self, DEFAULT_LIMIT, DEFAULT_RUNS, DEFAULT_SIZE};
use tare_experiments::{Tally, execute};
use tare_guard::{Guard, Interrupt, default_state_dir};
use tare_host::{CpuList, Machine, Sample, Severity, Source, choose_cpu_with, doctor_with};
use tare_results::model::Plan;
use tare_results::{CellState, MachineRecord, RunFolder};
use tare_targets::{Availability, spec};
use tare_wire::plan::{self as wire, Threshold, Workload};

use super::run_folder::{new_path, present};
use super::{clean_up, resume};
use crate::cli::{NoiseArguments, WorkloadName};
use crate::error::CommandError;
use crate::exit;
use crate::progress::Progress;
use crate::terminal::Terminal;

/// Measures the noise of this machine.
pub fn run(arguments: &NoiseArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    run_as("noise", arguments, terminal)
}

/// Measures, into a folder that is named after the command.
pub fn run_as(
    name: &str,
    arguments: &NoiseArguments,
    terminal: &Terminal,
) -> Result<u8, CommandError> {
    // Before anything is started or written, so that no moment is left in which Ctrl-C does what
    // it does by default.
    let interrupt = Interrupt::install()?;
    clean_up(terminal);
    let guard = Guard::open(&default_state_dir()?)?;
    let host = Host::look(arguments, terminal)?;
    let folder = match &arguments.resume {
        Some(path) => resume::open(path, &host.record)?,
        None => {
            let plan = noise::plan(&options(arguments, &host)?)?;
            require_targets(&plan)?;
            if arguments.dry_run {
                terminal.print(&describe(&plan))?;
                return Ok(exit::DONE);
            }
            let path = arguments.output.clone().unwrap_or_else(|| new_path(name));
            RunFolder::create(&path, &plan, &host.record)?
        }
    };
    if arguments.dry_run {
        terminal.print(&describe_missing(&folder))?;
        return Ok(exit::DONE);
    }
    require_targets(folder.plan())?;
    introduce(&folder, &host, terminal);

    step_aside(&host.controller, terminal);
    let mut progress = Progress::new(&folder, terminal);
    let tally = execute(&folder, &guard, &interrupt, &mut progress);
    progress.close();
    for problem in guard.close().problems {
        terminal.warn(&problem.to_string());
    }
    let tally = match tally {
        Ok(tally) => tally,
        Err(error) => {
            // What was measured before is not lost: it is shown, if it can be.
            if done(&folder) > 0 {
                if let Err(error) = present(&folder, arguments.json, terminal) {
                    terminal.warn(&error.to_string());
                }
                terminal.note(&kept(&folder));
            }
            return Err(error.into());
        }
    };
    present(&folder, arguments.json, terminal)?;
    Ok(conclude(&folder, tally, terminal))
}

/// Is what is known of the machine before the run.
struct Host {
    record: MachineRecord,
    cpu: u32,
    /// Why that CPU; begins with its number.
    cpu_reason: String,
    cpu_warnings: Vec<String>,
    /// CPUs on which tare itself runs.
    controller: CpuList,
}

impl Host {
    fn look(arguments: &NoiseArguments, terminal: &Terminal) -> Result<Self, CommandError> {
        let source = Source::system();
        let (machine, sample) = (Machine::collect(&source), Sample::take(&source));
        let requested = match &arguments.resume {
            // The plan of the run decides; another CPU would be another measurement.
            Some(path) => Some(RunFolder::open(path)?.plan().cpu),
            None => arguments.cpu,
        };
        let choice = choose_cpu_with(&machine, &sample, requested)?;
        let findings = doctor_with(&source, &machine, &sample, Some(choice.cpu));
        for finding in findings.iter().filter(|f| f.severity == Severity::Problem) {
            let remedy = finding.remedy.as_deref().unwrap_or("see `tare doctor`");
            terminal.warn(&format!("{}: {}; {remedy}", finding.title, finding.state));
        }
        Ok(Self {
            record: MachineRecord::new(machine, findings),
            cpu: choice.cpu,
            cpu_reason: choice.reason,
            cpu_warnings: choice.warnings,
            controller: choice.controller_cpus,
        })
    }
}

fn options(arguments: &NoiseArguments, host: &Host) -> Result<noise::Options, CommandError> {
    let targets = match &arguments.target[..] {
        [] => vec!["process".to_owned()],
        targets => targets.to_vec(),
    };
    let targets: Result<Vec<String>, _> = targets
        .iter()
        .map(|target| spec::parse(target).map(|target| target.spec()))
        .collect();
    let mut targets = targets?;
    let asked = targets.len();
    targets.sort();
    targets.dedup();
    if targets.len() < asked {
        let why = "a target is named twice: repetitions are asked for by --runs";
        return Err(CommandError::Usage(why.to_owned()));
    }
    Ok(noise::Options {
        targets,
        workloads: workloads(arguments)?,
        repetitions: arguments.repetitions,
        warmup: arguments.warmup,
        runs: arguments.runs.unwrap_or(DEFAULT_RUNS),
        timing: arguments.timing.into(),
        threshold: arguments.threshold,
        window: arguments.window,
        cell_limit: arguments.cell_limit,
        seed: arguments.seed.unwrap_or_else(|| fastrand::u64(..)),
        cpu: host.cpu,
        cpu_reason: host.cpu_reason.clone(),
        settings: arguments.set.clone(),
        command: std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
    })
}

/// Returns the workloads asked for, each with every size asked for.
fn workloads(arguments: &NoiseArguments) -> Result<Vec<Workload>, CommandError> {
    let all = [WorkloadName::Gap, WorkloadName::Prime, WorkloadName::Copy];
    let chosen = match &arguments.workload[..] {
        [] => &all[..],
        chosen => chosen,
    };
    let needs = |given: bool, name, option: &str, word: &str| {
        if given && !chosen.contains(&name) {
            let text = format!("{option} is for the workload {word}, which is not asked for");
            return Err(CommandError::Usage(text));
        }
        Ok(())
    };
    needs(
        !arguments.limit.is_empty(),
        WorkloadName::Prime,
        "--limit",
        "prime",
    )?;
    needs(
        !arguments.size.is_empty(),
        WorkloadName::Copy,
        "--size",
        "copy",
    )?;

    let or_default = |given: &[u64], default| match given {
        [] => vec![default],
        given => given.to_vec(),
    };
    let limits: Vec<u64> = arguments
        .limit
        .iter()
        .map(|limit| (*limit).into())
        .collect();
    let mut workloads = Vec::new();
    for name in chosen {
        match name {
            WorkloadName::Gap => workloads.push(Workload::Gap),
            WorkloadName::Prime => workloads.extend(
                or_default(&limits, DEFAULT_LIMIT.into())
                    .into_iter()
                    .filter_map(|limit| u32::try_from(limit).ok())
                    .map(|limit| Workload::Prime { limit }),
            ),
            WorkloadName::Copy => workloads.extend(
                or_default(&arguments.size, DEFAULT_SIZE)
                    .into_iter()
                    .map(|size| Workload::Copy { size }),
            ),
        }
    }
    let mut seen = Vec::new();
    for workload in &workloads {
        if seen.contains(workload) {
            let why = "a workload is asked for twice: repetitions are asked for by --runs";
            return Err(CommandError::Usage(why.to_owned()));
        }
        seen.push(*workload);
    }
    Ok(workloads)
}

/// Refuses to start if a target of the plan can't be used here.
fn require_targets(plan: &Plan) -> Result<(), CommandError> {
    let mut names: Vec<&str> = plan.cells.iter().map(|cell| cell.target.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        if let Availability::Unusable { why, remedy } = spec::parse(name)?.availability() {
            return Err(CommandError::Unavailable {
                target: name.to_owned(),
                why,
                remedy,
            });
        }
    }
    Ok(())
}

/// Describes a plan: one line a cell, and the duration.
fn describe(plan: &Plan) -> String {
    let mut lines = vec![format!("on {}", plan.cpu_reason)];
    for setting in &plan.settings {
        lines.push(format!("set {} to {}", setting.path, setting.value));
    }
    lines.extend(plan.cells.iter().map(|cell| {
        format!(
            "{:>4}  block {:<3} {:<30} {:>12} × {:>8}",
            cell.id,
            cell.block,
            cell.label(),
            cell.repetitions,
            cell.timing
        )
    }));
    let seconds: f64 = plan.cells.iter().map(|cell| cell.estimate_seconds).sum();
    lines.push(format!(
        "{}, about {} in all; seed {}",
        counted(plan.cells.len(), "cell", "cells"),
        crate::progress::human(Duration::from_secs_f64(seconds)),
        plan.seed
    ));
    lines.join("\n")
}

fn describe_missing(folder: &RunFolder) -> String {
    let missing = folder.missing();
    let plan = Plan {
        cells: missing.into_iter().cloned().collect(),
        ..folder.plan().clone()
    };
    describe(&plan)
}

/// Says what is going to happen, before the first cell.
fn introduce(folder: &RunFolder, host: &Host, terminal: &Terminal) {
    let missing = folder.missing();
    let seconds: f64 = missing.iter().map(|cell| cell.estimate_seconds).sum();
    terminal.note(&format!(
        "{}, about {}, into {}",
        counted(missing.len(), "cell", "cells"),
        crate::progress::human(Duration::from_secs_f64(seconds)),
        folder.path().display()
    ));
    terminal.note(&format!("on {}", host.cpu_reason));
    for text in thresholds(folder.plan()) {
        terminal.note(&text);
    }
    for warning in &host.cpu_warnings {
        terminal.warn(warning);
    }
}

/// Says from which delay on each workload's samples are listed, and by which rule.
fn thresholds(plan: &Plan) -> BTreeSet<String> {
    let cells = plan.cells.iter();
    cells
        .filter_map(|cell| {
            let words = wire::Plan::parse(cell.words.split_whitespace()).ok()?;
            let is_gap = words.workload == Workload::Gap;
            let least = match words.threshold {
                Threshold::Auto if is_gap => "500 ns, or 20 steps of a coarser timer".to_owned(),
                Threshold::Auto => "400 cycles".to_owned(),
                Threshold::Cycles(cycles) => format!("{cycles} cycles"),
                Threshold::Ns(ns) => format!("{ns} ns"),
            };
            Some(if is_gap {
                format!("gap lists what takes at least {least}")
            } else {
                format!(
                    "{} lists what exceeds the run's mean by {least}",
                    cell.workload
                )
            })
        })
        .collect()
}

/// Keeps tare itself off the measured CPU.
fn step_aside(cpus: &CpuList, terminal: &Terminal) {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().filter(|cpu| (*cpu as usize) < CpuSet::MAX_CPU) {
        set.set(cpu as usize);
    }
    if let Err(error) = sched_setaffinity(None, &set) {
        terminal.warn(&format!(
            "tare itself can't be kept off the measured CPU ({error}): it may disturb it"
        ));
    }
}

/// Says what was not done, and decides the exit code.
fn conclude(folder: &RunFolder, tally: Tally, terminal: &Terminal) -> u8 {
    if tally.failed > 0 {
        terminal.warn(&format!(
            "{} of {} cells failed, see the report; `tare noise --resume {}` runs them again",
            tally.failed,
            folder.plan().cells.len(),
            folder.path().display()
        ));
    }
    if tally.left > 0 {
        terminal.note(&format!(
            "interrupted: {} missing; `tare noise --resume {}` goes on",
            counted(tally.left, "cell is", "cells are"),
            folder.path().display()
        ));
        return exit::INTERRUPTED;
    }
    if tally.failed > 0 {
        exit::FAILED
    } else {
        exit::DONE
    }
}

fn kept(folder: &RunFolder) -> String {
    format!(
        "{} kept; `tare noise --resume {}` goes on",
        counted(done(folder), "cell is", "cells are"),
        folder.path().display()
    )
}

/// Counts the cells that were measured.
fn done(folder: &RunFolder) -> usize {
    let cells = folder.plan().cells.iter();
    cells
        .filter(|cell| matches!(folder.state(cell.id), CellState::Done(_)))
        .count()
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
