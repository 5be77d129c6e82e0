//! `tare run`: runs what a study file says.

use std::path::Path;

use tare_results::RunFolder;
use tare_studies::{Study, Variant};

use super::measure::{Request, frame, measure};
use crate::cli::RunArguments;
use crate::error::CommandError;
use crate::terminal::Terminal;

/// Runs a study, or what is missing of it.
pub fn run(arguments: &RunArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    let variant = variant(arguments.quick);
    let study = match &arguments.study {
        Some(path) => Some(Study::read(path, variant)?),
        None => None,
    };
    if let (Some(study), Some(run)) = (&study, &arguments.resume) {
        same(study, run)?;
    }
    let request = Request {
        name: study.as_ref().map_or("study", |study| &study.name),
        resume: arguments.resume.as_deref(),
        cpus: study.iter().filter_map(|study| study.cpu).collect(),
        more_runs: arguments.runs,
        actions: &[],
        options: &arguments.options,
    };
    let Some(study) = &study else {
        return measure(&request, terminal, |_| {
            let why = "want a study file, or a run to --resume";
            Err(CommandError::Usage(why.to_owned()))
        });
    };
    run_as(study, &request, terminal)
}

/// Runs a study that was read.
pub fn run_as(
    study: &Study,
    request: &Request<'_>,
    terminal: &Terminal,
) -> Result<u8, CommandError> {
    measure(request, terminal, |host| {
        let frame = frame(
            host,
            study.seed,
            study.settings.clone(),
            request.options.start_engine,
        );
        Ok(study.plan(frame)?)
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
            "the study's file has changed since it was begun; without the file, it is continued \
             as it was planned"
        }
        Some(_) => return Ok(()),
    };
    let why = why.to_owned();
    Err(CommandError::NotResumable { why })
}
