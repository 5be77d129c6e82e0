//! `tare report`: shows a run and regenerates its report.

use super::clean_up;
use super::run_folder::{judge, open, present};
use crate::cli::ReportArguments;
use crate::error::CommandError;
use crate::terminal::Terminal;

/// Reports on a run.
pub fn run(arguments: &ReportArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    clean_up(terminal);
    let folder = open(arguments.run.as_deref())?;
    let json = arguments.result.json;
    let analysis = present(&folder, json, terminal)?;
    judge(&arguments.result.fail_if, &analysis, json, terminal)
}
