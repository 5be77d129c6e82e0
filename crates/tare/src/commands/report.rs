//! `tare report`: shows a run and regenerates its report.

use super::clean_up;
use super::run_folder::{judge, open, present};
use crate::cli::ReportArguments;
use crate::error::CommandError;
use crate::terminal::Terminal;

/// Reports on a run.
pub fn run(arguments: &ReportArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    if arguments.result.quiet {
        terminal.be_quiet();
    }
    clean_up(terminal);
    let folder = open(arguments.run.as_deref())?;
    let result = &arguments.result;
    let analysis = present(&folder, result, terminal)?;
    judge(&result.fail_if, &analysis, result.json, terminal)
}
