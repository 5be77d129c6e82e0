//! Going on with a run that was interrupted.
//!
//! Cells measured under other circumstances do not belong into one run: a mixture would look like
//! noise. So a run is only resumed on the same processor, under the same kernel, with the same
//! agent or image, run by the same accelerator.

use std::collections::HashSet;
use std::path::Path;

use tare_results::model::Record;
use tare_results::{CellState, MachineRecord, ResultsError, RunFolder};
use tare_targets::spec;

use super::trust;
use crate::cli::measure::RunOptions;
use crate::error::CommandError;

/// Opens a run in order to run what is missing.
pub fn open(
    path: &Path,
    here: &MachineRecord,
    options: &RunOptions,
) -> Result<RunFolder, CommandError> {
    let what = format!("the run {}", path.display());
    let opened = RunFolder::open_for_writing(path);
    let folder = opened.map_err(|error| match error {
        ResultsError::NotYours { owner, .. } => CommandError::Usage(format!(
            "{what} belongs to user {owner}: read it, and continue a copy of your own, with --trust if the programs that \
             it names are to run"
        )),
        other => other.into(),
    })?;
    // Before any of it is asked for.
    trust::programs(folder.plan(), &what, options)?;
    same_machine(&folder, here)?;
    let mut compared = HashSet::new();
    for plan in &folder.plan().cells {
        // All cells of a target were made by one program, or this would have refused before.
        if !compared.contains(&plan.target)
            && let CellState::Done(cell) = folder.state(plan.id)
            && let Some(program) = cell.outcome.record().and_then(Record::program)
        {
            let then = &program.agent;
            let now = spec::of(&plan.target)?.program()?;
            same("agent or image", &then.sha256, &now.sha256)?;
            same("accelerator", &then.accelerator, &now.accelerator)?;
            same("kernel in the guest", &then.kernel, &now.kernel)?;
            compared.insert(plan.target.clone());
        }
    }
    Ok(folder)
}

/// Refuses to go on with the run of another machine, or under another kernel.
pub fn same_machine(folder: &RunFolder, here: &MachineRecord) -> Result<(), CommandError> {
    let then = folder.machine();
    same(
        "processor",
        &then.machine.processor,
        &here.machine.processor,
    )?;
    same(
        "kernel",
        &then.machine.kernel.release,
        &here.machine.kernel.release,
    )
}

/// Says why a run is not continued by what was typed, and what continues it.
pub fn not_by_that(folder: &RunFolder, why: &str) -> CommandError {
    CommandError::Usage(format!(
        "{} can't be continued by that: {why}; {} continues it",
        folder.path().display(),
        folder.resume_command()
    ))
}

fn same<T: PartialEq>(what: &str, then: &T, now: &T) -> Result<(), CommandError> {
    if then == now {
        return Ok(());
    }
    let why = format!("it was begun with another {what} than there is now");
    Err(CommandError::NotResumable { why })
}
