//! `tare run`: runs what study files say.

use std::path::Path;

use tare_results::RunFolder;
use tare_studies::{Study, Variant};

use super::measure::{Request, frame, measure};
use super::resume::not_by_that;
use super::trust;
use crate::cli::RunArguments;
use crate::cli::measure::RunOptions;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// Runs studies one after the other, or what is missing of one.
pub fn run(arguments: &RunArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    let variant = variant(arguments.quick);
    let read = arguments
        .studies
        .iter()
        .map(|path| Study::read(path, variant));
    let studies: Vec<Study> = read.collect::<Result<_, _>>()?;
    let options = &arguments.options;
    if let Some(path) = &arguments.resume {
        match &studies[..] {
            [] => {}
            [study] => same(study, path)?,
            [_, ..] => {
                let why = "--resume continues one run: give no study file, or that of the run";
                return Err(CommandError::Usage(why.to_owned()));
            }
        }
        return resume(path, arguments.runs, options, terminal);
    }
    if studies.len() > 1 && options.output.is_some() {
        let why = "--output names the folder of one run: leave it out with several study files";
        return Err(CommandError::Usage(why.to_owned()));
    }
    let mut worst = exit::DONE;
    for (number, study) in (1..).zip(&studies) {
        let request = Request {
            name: &study.name,
            resume: None,
            cpus: study.cpu.into_iter().collect(),
            more_runs: None,
            actions: &[],
            options,
        };
        let path = &arguments.studies[number - 1];
        let code = run_as(study, Some(path), &request, terminal);
        let left = &arguments.studies[number..];
        if matches!(code, Err(_) | Ok(exit::INTERRUPTED)) && !left.is_empty() {
            let left: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
            terminal.note(&format!(
                "not begun: {0}; `tare run {0}` runs what is left",
                left.join(" ")
            ));
            return code;
        }
        // A figure that is missing is worse than one above its limit.
        worst = match (worst, code?) {
            (exit::DONE, code) | (_, code @ (exit::FAILED | exit::INTERRUPTED)) => code,
            (worst, _) => worst,
        };
    }
    Ok(worst)
}

/// Runs what is missing from the run of a study.
pub fn resume(
    run: &Path,
    more_runs: Option<u32>,
    options: &RunOptions,
    terminal: &Terminal,
) -> Result<u8, CommandError> {
    let request = Request {
        name: "study",
        resume: Some(run),
        cpus: Vec::new(),
        more_runs,
        actions: &[],
        options,
    };
    measure(&request, terminal, |_| unreachable!("the run has its plan"))
}

/// Runs a study that was read, from a file if it does not come with `tare`.
pub fn run_as(
    study: &Study,
    file: Option<&Path>,
    request: &Request<'_>,
    terminal: &Terminal,
) -> Result<u8, CommandError> {
    measure(request, terminal, |host| {
        let frame = frame(
            host,
            study.seed,
            study.settings.clone(),
            study.start_engine || request.options.start_engine,
        );
        let plan = study.plan(frame)?;
        if let Some(file) = file.filter(|_| !request.options.dry_run) {
            trust::study(file, &plan, request.options)?;
        }
        Ok(plan)
    })
}

/// Returns the variant that an argument asks for.
pub fn variant(quick: bool) -> Variant {
    if quick { Variant::Quick } else { Variant::Full }
}

/// Refuses to go on with a run by a study file that has changed since: what is missing would still
/// be measured as it was planned.
fn same(study: &Study, run: &Path) -> Result<(), CommandError> {
    let folder = RunFolder::open(run)?;
    let why = match &folder.plan().study {
        None => "it was not made by a study",
        Some(then) if then.text != study.text => {
            "the study's file has changed since, and what is missing would be measured as it was \
             planned"
        }
        Some(_) => return Ok(()),
    };
    Err(not_by_that(&folder, why))
}
