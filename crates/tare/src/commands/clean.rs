//! `tare clean`: undoes what an earlier command left behind.

use tare_guard::{default_state_dir, sweep};

use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// Sweeps, and reports the actions.
pub fn run(terminal: &Terminal) -> Result<u8, CommandError> {
    let report = sweep(&default_state_dir()?);
    if report.is_quiet() && report.told.is_empty() {
        terminal.print_lines("nothing was left behind")?;
    }
    for sentence in report.sentences() {
        terminal.print_lines(&sentence)?;
    }
    for problem in &report.told {
        terminal.print_lines(&format!("still left: {problem}"))?;
    }
    let complete = report.kept == 0 && report.undo.is_complete() && report.told.is_empty();
    Ok(if complete { exit::DONE } else { exit::FAILED })
}
