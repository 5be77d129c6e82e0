//! `tare noise`: measures how often and how long short work is delayed.

use tare_experiments::ExperimentError;
use tare_experiments::experiment::Place;
use tare_experiments::noise::{self, DEFAULT_RUNS};
use tare_loads::{Cpus, Load};
use tare_targets::{TargetError, spec};
use tare_wire::plan::Workload;

use super::measure::{Request, frame, measure};
use crate::cli::{NoiseArguments, WorkloadName};
use crate::error::CommandError;
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
    let request = Request {
        name,
        output: arguments.output.clone(),
        resume: arguments.resume.clone(),
        cpu: arguments.cpu,
        dry_run: arguments.dry_run,
        json: arguments.json,
        start_engine: arguments.start_engine,
    };
    measure(&request, terminal, |host| {
        let options = noise::Options {
            workloads: workloads(arguments)?,
            repetitions: arguments.repetitions,
            warmup: arguments.warmup,
            timing: arguments.timing.into(),
            threshold: arguments.threshold,
            window: arguments.window,
        };
        let place = Place {
            targets: targets(arguments)?,
            loads: loads(arguments)?,
            cpu: host.cpu,
            cell_limit: arguments.cell_limit,
        };
        let runs = arguments.runs.unwrap_or(DEFAULT_RUNS);
        let frame = frame(
            host,
            arguments.seed,
            arguments.set.clone(),
            arguments.start_engine,
        );
        Ok(noise::plan(&options, &place, runs, frame)?)
    })
}

/// Returns the targets asked for, in canonical form.
fn targets(arguments: &NoiseArguments) -> Result<Vec<String>, CommandError> {
    let targets = match &arguments.target[..] {
        [] => vec!["process".to_owned()],
        targets => targets.to_vec(),
    };
    let targets: Result<Vec<String>, TargetError> = targets
        .iter()
        .map(|target| {
            let target = spec::parse(target)?;
            if target.runs_plans() {
                Ok(target.spec())
            } else {
                Err(TargetError::RunsNoPlans {
                    target: target.spec(),
                })
            }
        })
        .collect();
    let mut targets = targets?;
    let asked = targets.len();
    targets.sort();
    targets.dedup();
    if targets.len() < asked {
        let why = "a target is named twice: repetitions are asked for by --runs";
        return Err(CommandError::Usage(why.to_owned()));
    }
    Ok(targets)
}

/// Returns the loads asked for.
fn loads(arguments: &NoiseArguments) -> Result<Vec<String>, CommandError> {
    let asked = match &arguments.load[..] {
        [] => &[Load::idle()],
        loads => loads,
    };
    let placed = |load: &Load| match &arguments.load_cpus {
        // What stands before a load itself is the nearer word.
        Some(cpus) if *load.cpus() == Cpus::All => load.clone().on(cpus.clone()),
        _ => load.clone(),
    };
    let mut loads: Vec<String> = asked.iter().map(|load| placed(load).to_string()).collect();
    loads.sort();
    loads.dedup();
    if loads.len() < asked.len() {
        let why = "a load is named twice: repetitions are asked for by --runs";
        return Err(CommandError::Usage(why.to_owned()));
    }
    Ok(loads)
}

/// Returns the workloads asked for, each with every size asked for.
fn workloads(arguments: &NoiseArguments) -> Result<Vec<Workload>, CommandError> {
    let names: Vec<&str> = arguments.workload.iter().map(|name| word(*name)).collect();
    let limits = arguments.limit.iter().map(|limit| u64::from(*limit));
    let limits: Vec<u64> = limits.collect();
    let workloads =
        noise::workloads(&names, &limits, &arguments.size).map_err(|error| match error {
            // A list has a plural in a study and none on the command line.
            ExperimentError::Misfit {
                parameter,
                workload,
            } => CommandError::Usage(format!(
                "--{} is for the workload {workload}, which is not asked for",
                parameter.trim_end_matches('s')
            )),
            other => other.into(),
        })?;
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

fn word(name: WorkloadName) -> &'static str {
    match name {
        WorkloadName::Prime => "prime",
        WorkloadName::Copy => "copy",
        WorkloadName::Gap => "gap",
    }
}
