//! `tare compare`: tells how two runs differ, and how sure that is.

use std::path::Path;

use tare_report::wakeup::compare::{Comparison, compare};
use tare_report::{Analysis, analyse, terminal as tables};
use tare_results::RunFolder;

use super::clean_up;
use crate::cli::compare::CompareArguments;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// Compares two runs.
pub fn run(arguments: &CompareArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    clean_up(terminal);
    let (first, second) = (read(&arguments.first)?, read(&arguments.second)?);
    let comparison = compare(&first, &second)?;
    if arguments.json {
        terminal.print_json(&comparison)?;
    } else {
        let (width, colour) = (terminal.width(), terminal.colours_results());
        terminal.print(&tables::compare(&comparison, width.into(), colour))?;
    }
    if arguments.fail_on_regression {
        return gate(&comparison);
    }
    Ok(exit::DONE)
}

/// Decides by the figures; a gate that cannot tell does not let anything pass.
fn gate(comparison: &Comparison) -> Result<u8, CommandError> {
    if comparison.has_regression() {
        return Ok(exit::THRESHOLD);
    }
    if !comparison.can_tell {
        return Err(CommandError::CannotTell {
            why: comparison.verdict.join(" "),
        });
    }
    Ok(exit::DONE)
}

fn read(path: &Path) -> Result<Analysis, CommandError> {
    Ok(analyse(&RunFolder::open(path)?)?)
}
