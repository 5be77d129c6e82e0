//! `tare noise`: measures how often and how long short work is delayed.

use tare_experiments::noise::{self, DEFAULT_RUNS};
use tare_lab::ExperimentError;
use tare_lab::experiment::Place;
use tare_services::noise::Workload;

use super::measure::{Request, frame, measure};
use super::place;
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
        cpus: arguments.cpu.into_iter().collect(),
        dry_run: arguments.dry_run,
        json: arguments.json,
        fail_if: &arguments.fail_if,
        more_runs: arguments.runs,
        start_engine: arguments.start_engine,
        actions: &[],
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
            targets: place::targets(&arguments.target)?,
            loads: place::loads(&arguments.load, arguments.load_cpus.as_ref())?,
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
