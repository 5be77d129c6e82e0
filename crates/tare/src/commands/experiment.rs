//! `tare noise`, `tare wakeup` and whatever else is in the table of experiments: measures by what
//! is given on the command line.

use std::path::Path;

use tare_lab::experiment::Conditions;
use tare_lab::plan;
use tare_results::RunFolder;
use tare_wire::cpus::Cpus;

use super::conditions;
use super::host::allowed_cpus;
use super::measure::{Request, frame, measure};
use super::resume::not_by_that;
use crate::cli::measure::MeasureCommand;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// Refuses to go on with a run of another experiment: its parameters are not those that were typed.
fn same_experiment(run: &Path, name: &str) -> Result<(), CommandError> {
    let folder = RunFolder::open(run)?;
    let plan = folder.plan();
    match plan.cells.iter().all(|cell| cell.experiment == name) {
        true => Ok(()),
        false => Err(not_by_that(
            &folder,
            &format!("it is a run of {}", plan.experiment),
        )),
    }
}

/// Measures by one experiment.
pub fn run(asked: &MeasureCommand, terminal: &Terminal) -> Result<u8, CommandError> {
    let MeasureCommand {
        experiment,
        values,
        arguments,
        ..
    } = asked;
    if let Some(listing) = experiment.listing().filter(|_| asked.list) {
        terminal.print_lines(&listing)?;
        return Ok(exit::DONE);
    }
    if let Some(run) = &arguments.resume {
        same_experiment(run, experiment.name())?;
    }
    let cpus = experiment.cpus(values, &allowed_cpus()?);
    let named = cpus.iter().flat_map(Cpus::iter);
    let request = Request {
        name: experiment.name(),
        resume: arguments.resume.as_deref(),
        cpus: named.chain(asked.cpu.cpu).collect(),
        more_runs: arguments.runs,
        actions: &asked.actions,
        options: &arguments.options,
    };
    measure(&request, terminal, |host| {
        let load_cpus = arguments.load_cpus.as_ref();
        let conditions = Conditions {
            targets: conditions::targets(&arguments.target, experiment.without_agent())?,
            loads: match experiment.has_phases(values) {
                true => conditions::phases(&arguments.load, load_cpus),
                false => conditions::loads(&arguments.load, load_cpus)?,
            },
            cpu: host.cpu,
            cpus,
            cell_limit: arguments.cell_limit,
            is_watched: terminal.is_watched(),
        };
        let runs = arguments.runs;
        let runs = runs.unwrap_or_else(|| experiment.default_runs(values));
        let settings = arguments.set.clone();
        let frame = frame(
            host,
            arguments.seed,
            settings,
            arguments.options.start_engine,
        );
        Ok(plan::of_one(*experiment, &conditions, values, runs, frame)?)
    })
}
