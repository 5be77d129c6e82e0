//! `tare report`: shows a run again, and writes its report anew.

use std::path::Path;

use tare_results::RunFolder;

use super::clean_up;
use super::run_folder::{RUNS, judge, present};
use crate::cli::ReportArguments;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// Reports on a run.
pub fn run(arguments: &ReportArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    clean_up(terminal);
    let path = match &arguments.run {
        Some(path) => path.clone(),
        None => RunFolder::newest(Path::new(RUNS)).ok_or_else(|| CommandError::NoRun {
            folder: RUNS.into(),
        })?,
    };
    let folder = RunFolder::open(&path)?;
    let analysis = present(&folder, arguments.result.json, terminal)?;
    match judge(
        &arguments.result.fail_if,
        &analysis,
        arguments.result.json,
        terminal,
    )? {
        true => Ok(exit::THRESHOLD),
        false => Ok(exit::DONE),
    }
}
