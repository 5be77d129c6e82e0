//! What each command does: one file a command.

pub mod clean;
pub mod compare;
pub mod cyclictest;
mod describe;
pub mod doctor;
pub mod experiment;
pub mod export;
mod host;
pub mod image;
pub mod import;
pub mod kernel;
mod measure;
mod place;
pub mod quick;
mod realtime;
pub mod report;
pub mod reproduce;
mod resume;
mod run_folder;
pub mod run_study;
pub mod study;
pub mod targets;

use tare_guard::{default_state_dir, sweep};

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
