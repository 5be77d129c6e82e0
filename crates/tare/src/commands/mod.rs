//! What each command does: one file a command.

mod claim;
pub mod clean;
pub mod compare;
mod conditions;
pub mod cyclictest;
mod describe;
pub mod doctor;
pub mod experiment;
pub mod export;
pub(crate) mod host;
pub mod image;
pub mod import;
pub mod kernel;
mod measure;
pub mod quick;
pub mod report;
pub mod reproduce;
mod resume;
mod run_folder;
pub mod run_study;
pub mod scale;
pub mod share;
pub mod study;
pub mod targets;
pub mod top;
mod trust;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tare_guard::{Guard, UndoReport, Undone, default_state_dir, sweep};

use crate::error::CommandError;
use crate::terminal::Terminal;

/// Undoes what killed commands left behind, and tells if there was something. Every command calls
/// this first.
fn clean_up(terminal: &Terminal) {
    match default_state_dir() {
        Ok(state) => {
            for sentence in sweep(&state).sentences() {
                terminal.note(&sentence);
            }
        }
        // A command that starts something fails by this itself; one that only reads need not.
        Err(error) => terminal.warn(&error.to_string()),
    }
}

/// Ends the processes of a command, restores its changes, and warns of failures, and of settings that
/// another program has changed since, which keep their values.
fn close(guard: Guard, terminal: &Terminal) {
    let UndoReport { undone, problems } = guard.close();
    let foreign = undone.iter().filter(|one| {
        matches!(
            one,
            Undone::SettingLeftAlone { .. } | Undone::SettingGone { .. }
        )
    });
    let foreign: BTreeSet<String> = foreign.map(ToString::to_string).collect();
    for text in foreign {
        terminal.warn(&text);
    }
    for problem in &problems {
        terminal.warn(&problem.to_string());
    }
    if !problems.is_empty() {
        terminal.note("every command tries that again; `tare clean` shows what remains");
    }
}

/// Returns the words of the command line, program name first.
fn command_line() -> Vec<String> {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    words.collect()
}

/// Writes a file that was asked for.
fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    fs::write(path, text).map_err(|source| CommandError::Write {
        path: path.to_owned(),
        source,
    })
}
