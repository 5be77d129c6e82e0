//! `tare report`: shows a run and regenerates its report.

use tare_figures::notices::{NotMeasured, State};
use tare_pages::Report;

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
    Ok(
        match presented.is_written && is_sound(&presented.analysis) {
            true => judged,
            false => exit::FAILED,
        },
    )
}

/// Returns whether a run has figures, and no cell of which they are lost. The report has said why.
fn is_sound(analysis: &Report) -> bool {
    let is_lost = |cell: &NotMeasured| matches!(cell.state, State::Damaged | State::Contradictory);
    !analysis.run().cells.is_empty() && !analysis.summary().not_measured.iter().any(is_lost)
}
