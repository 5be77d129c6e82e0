//! `tare reproduce`: repeats a published study, and reports which of its claims are reproduced.

use std::path::Path;

use tare_experiments::catalogue;
use tare_figures::claims::Published;
use tare_results::RunFolder;
use tare_studies::included;

use super::measure::Request;
use super::resume::not_by_that;
use super::run_study::{resume, run_as, variant};
use crate::cli::ReproduceArguments;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// Repeats a published study, or lists them.
pub fn run(arguments: &ReproduceArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    if let Some(run) = &arguments.resume {
        is_of(run, arguments.name.as_deref())?;
        return resume(run, None, &arguments.options, terminal);
    }
    let Some(name) = arguments.name.as_deref().filter(|_| !arguments.list) else {
        terminal.print_lines(&list())?;
        return Ok(exit::DONE);
    };
    let file = catalogue().study(name).and(included::find(name));
    let file = file.ok_or_else(|| unknown(name))?;
    let file = match (arguments.deterministic, included::deterministic(name)) {
        (false, _) => file,
        (true, Some(deterministic)) => deterministic,
        (true, None) => {
            let why = format!("{name} has no deterministic variant: leave --deterministic out");
            return Err(CommandError::Usage(why));
        }
    };
    let mut study = file.study(variant(arguments.quick))?;
    if let Some(ns) = arguments.phase
        && !study.set_phase(ns)
    {
        let why = format!("{name} has no phases: leave --phase out");
        return Err(CommandError::Usage(why));
    }
    let request = Request {
        name: file.name,
        resume: None,
        cpus: study.cpu.into_iter().collect(),
        more_runs: None,
        actions: &[],
        options: &arguments.options,
    };
    run_as(&study, None, &request, terminal)
}

/// Refuses to go on with a run of another study.
fn is_of(run: &Path, name: Option<&str>) -> Result<(), CommandError> {
    let folder = RunFolder::open(run)?;
    let study = folder.plan().study.as_ref();
    let reproduces = study.and_then(|study| study.reproduces.as_deref());
    let why = match (reproduces, name) {
        (None, _) => "it reproduces no published study".to_owned(),
        (Some(of), Some(name)) if of != name => format!("it reproduces {of}, not {name}"),
        (Some(_), _) => return Ok(()),
    };
    Err(not_by_that(&folder, &why))
}

fn unknown(name: &str) -> CommandError {
    CommandError::Usage(format!(
        "there is no published study '{name}'; known: {}",
        studies()
    ))
}

/// Lists the names of the published studies.
pub fn studies() -> String {
    let names: Vec<&str> = catalogue().studies.iter().map(|study| study.name).collect();
    names.join(", ")
}

fn list() -> String {
    let line = |study: &&'static Published| format!("{:<15} {}", study.name, study.question);
    catalogue()
        .studies
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_study_has_a_file() {
        for study in &catalogue().studies {
            assert!(included::find(study.name).is_some(), "{}", study.name);
        }
    }
}
