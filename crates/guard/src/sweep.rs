//! Cleans up after owners that died.
//!
//! Every command does this first. A journal whose lock can be had belongs to a dead owner: what it
//! lists is undone as the owner itself would have done it. All else is left alone.

use std::path::Path;

use crate::claim;
use crate::error::GuardError;
use crate::journal::{UNBORN_EXTENSION, owner_of};
use crate::options::Options;
use crate::owned::dead::{JournalState, sweep_journal};
use crate::owner::{OwnerId, Place};
use crate::report::{SweepReport, UndoReport};
use crate::state_dir::{Locked, StateDir};

/// Undoes what runs that died have left behind, as their journals in a state folder tell.
///
/// Nothing of a run that lives is touched, nor anything that is not proven to be a dead run's. It
/// never fails as a whole: what cannot be undone is among the report's problems, and is tried again
/// the next time, but then told only on request ([`SweepReport::told`]). Several sweeps may go on
/// at once.
pub fn sweep(state_dir: &Path) -> SweepReport {
    sweep_with(state_dir, &Options::default())
}

/// Does the same for guards that were opened with other options.
pub fn sweep_with(state_dir: &Path, options: &Options) -> SweepReport {
    let mut report = SweepReport::default();
    claim::sweep(&options.claims_root);
    if let Err(problem) = sweep_all(state_dir, options, &mut report) {
        report.undo.problems.push(problem);
    }
    report
}

fn sweep_all(
    state_dir: &Path,
    options: &Options,
    report: &mut SweepReport,
) -> Result<(), GuardError> {
    let Some(state) = StateDir::open(state_dir)? else {
        return Ok(());
    };
    let here = Place::here()?;
    for name in state.names()? {
        if let Some((_, was_reported)) = owner_of(&name) {
            let mut undo = UndoReport::default();
            match sweep_journal(&state, &name, options, &here, &mut undo) {
                JournalState::Cleaned => report.cleaned += 1,
                JournalState::Live => report.live += 1,
                JournalState::Stored if was_reported => report.told.append(&mut undo.problems),
                JournalState::Stored => report.kept += 1,
                JournalState::Gone => {}
            }
            report.undo.undone.append(&mut undo.undone);
            report.undo.problems.append(&mut undo.problems);
        } else if is_unborn(&name) {
            remove_unborn(&state, &name);
        }
    }
    Ok(())
}

fn is_unborn(name: &str) -> bool {
    let owner = name.strip_suffix(UNBORN_EXTENSION);
    owner.and_then(OwnerId::parse).is_some()
}

/// Removes a journal whose owner died before it could own anything. If the owner only was about to
/// take the lock, it makes a new one.
fn remove_unborn(state: &StateDir, name: &str) {
    let Ok(file) = state.open_file(name) else {
        return;
    };
    if let Ok(Ok(_locked)) = Locked::take(file) {
        // Failing that, the next sweep tries again; an empty file does no harm.
        let _ = state.unlink(name);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::journal::Journal;

    #[test]
    fn a_journal_is_born_although_sweeps_take_its_beginnings_away() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDir::create(root.path()).unwrap();
        let here = Place::here().unwrap();
        thread::scope(|scope| {
            let births = scope.spawn(|| {
                for _ in 0..50 {
                    let owner = OwnerId::new(&here).unwrap();
                    let journal = Journal::create(&state, &owner, &here).unwrap();
                    journal.remove(&state).unwrap();
                }
            });
            while !births.is_finished() {
                for name in state.names().unwrap() {
                    if name.ends_with(UNBORN_EXTENSION) {
                        remove_unborn(&state, &name);
                    }
                }
            }
        });
        assert_eq!(state.names().unwrap(), [""; 0]);
    }
}
