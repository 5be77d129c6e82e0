//! `tare report`: shows a run again, and writes its report anew.

use std::path::Path;

use tare_results::RunFolder;

use super::clean_up;
use super::run_folder::{RUNS, judge, present};
use crate::cli::ReportArguments;
use crate::error::CommandError;
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
    let json = arguments.result.json;
    let analysis = present(&folder, json, terminal)?;
    judge(&arguments.result.fail_if, &analysis, json, terminal)
}
