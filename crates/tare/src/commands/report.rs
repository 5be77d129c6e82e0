//! `tare report`: shows a run and regenerates its report.

use super::clean_up;
use super::run_folder::{judge, open, present};
use crate::cli::ReportArguments;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// Reports on a run.
pub fn run(arguments: &ReportArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    if arguments.result.quiet {
        terminal.be_quiet();
    }
    clean_up(terminal);
    let folder = open(arguments.run.as_deref())?;
    let result = &arguments.result;
    let presented = present(&folder, arguments.output.as_deref(), result, terminal)?;
    let judged = judge(&result.fail_if, &presented.analysis, result.json, terminal)?;
    Ok(match presented.is_written {
        true => judged,
        false => exit::FAILED,
    })
}
