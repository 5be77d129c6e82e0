//! Undoes what one owner that died has left, as its journal tells.

use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::error::GuardError;
use crate::journal::{self, Contents, Damage, Journal, Unreadable, owner_of};
use crate::options::Options;
use crate::owned::Context;
use crate::owner::{OwnerId, Place, Relation};
use crate::processes;
use crate::record::{Record, undoing_order};
use crate::report::UndoReport;
use crate::state_dir::{Locked, StateDir};

/// What became of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JournalState {
    /// All that it listed is undone, and it was deleted.
    Cleaned,
    /// Its owner lives, or another sweep is at it.
    Live,
    /// It was not there any more.
    Gone,
    /// Something is left; the problems name it.
    Stored,
}

/// Cleans up after the owner of the journal of this name, if it is dead.
///
/// Must not be called while settings are locked, since it locks them itself.
pub(crate) fn sweep_journal(
    state: &StateDir,
    name: &str,
    options: &Options,
    here: &Place,
    report: &mut UndoReport,
) -> JournalState {
    sweep_dead(state, name, options, here, report).unwrap_or_else(|problem| {
        report.problems.push(problem);
        JournalState::Stored
    })
}

fn sweep_dead(
    state: &StateDir,
    name: &str,
    options: &Options,
    here: &Place,
    report: &mut UndoReport,
) -> Result<JournalState, GuardError> {
    let Some((owner, _)) = owner_of(name) else {
        return Ok(JournalState::Gone);
    };
    let owner = &owner;
    let path = state.path_of(name);
    let unread = |source| {
        let action = format!("read the journal {}", path.display());
        GuardError::io(action, source, "; it is tried again by the next command")
    };
    let opened = state.open_file(name);
    let mut file = match opened.and_then(|file| lock_of_the_dead(file, here)) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(JournalState::Live),
        Err(Errno::NOENT) => return Ok(JournalState::Gone),
        Err(errno) => return Err(unread(errno.into())),
    };
    // Its owner, or another sweep, may have finished with it between opening and locking.
    if rustix::fs::fstat(file.file()).is_ok_and(|status| status.st_nlink == 0) {
        return Ok(JournalState::Gone);
    }
    let contents = match journal::read(file.file()) {
        Ok(contents) if contents.header.owner == *owner => contents,
        Ok(_) => {
            let why = "it names another owner".into();
            let damage = Damage { line: 1, why };
            return Err(put_aside(state, (name, owner), damage, &[], report));
        }
        Err(Unreadable::Damaged(damage)) => {
            return Err(put_aside(state, (name, owner), damage, &[], report));
        }
        Err(Unreadable::Newer(version)) => return Err(GuardError::JournalNewer { path, version }),
        Err(Unreadable::Io(source)) => return Err(unread(source)),
    };
    let relation = contents.header.place.seen_from(here);
    if relation == Relation::Elsewhere {
        let host = contents.header.place.host;
        return Err(GuardError::JournalElsewhere { path, host });
    }
    let context = Context {
        owner,
        options,
        state,
        by_owner: false,
        same_boot: relation == Relation::Here,
    };
    let journal = Journal::adopt(file, name.to_owned(), path, &contents);
    undo_all(journal, (name, contents), context, report)
}

/// Takes the lock of a journal, which says that its owner is dead.
///
/// A child that the owner was just forking when it was killed has a copy of the lock until it
/// notices, which it does before it executes anything. So if the owner itself no longer runs, a
/// moment's patience is in place.
fn lock_of_the_dead(mut file: File, here: &Place) -> Result<Option<Locked>, Errno> {
    let give_up = Instant::now() + Duration::from_millis(500);
    loop {
        match Locked::take(file)? {
            Ok(locked) => return Ok(Some(locked)),
            Err(same) => file = same,
        }
        let dead = journal::read(&mut file).is_ok_and(|Contents { header, .. }| {
            header.place.seen_from(here) == Relation::Here && !processes::is_running(header.pid)
        });
        if !dead || Instant::now() > give_up {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn undo_all(
    mut journal: Journal,
    (name, contents): (&str, Contents),
    context: Context<'_>,
    report: &mut UndoReport,
) -> Result<JournalState, GuardError> {
    let problems = report.problems.len();
    let mut things = contents.in_force;
    let mut kept_settings = Vec::new();
    if contents.damage.is_some() {
        // Processes and folders carry the owner's id, which proves enough. That a setting is still
        // in force is known from the journal alone, and this one may have lost that it is not.
        things.retain(|(_, record)| match record {
            Record::Setting(setting) => {
                kept_settings.push(format!("{} (before: {:?})", setting.path, setting.before));
                false
            }
            _ => true,
        });
    }
    if context.same_boot {
        let strays = processes::end_marked(context.owner, None, &mut report.undone);
        if let Err(problem) = strays {
            report.problems.push(problem);
            // Already tried just now; they stay in the journal.
            things.retain(|(_, record)| !record.runs());
        }
    }
    undoing_order(&mut things, |(_, record)| record.runs());
    for (number, record) in things {
        match record.undo(number, context, &mut report.undone) {
            // Noted one by one: a sweep may be killed too. Without the line the next one would look
            // again and find nothing to undo.
            // A damaged journal stays as it is, for a person to read.
            Ok(()) if contents.damage.is_some() => {}
            Ok(()) => drop(journal.undone(number)),
            Err(problem) => report.problems.push(problem),
        }
    }
    if let Some(damage) = contents.damage {
        let (state, owner) = (context.state, context.owner);
        let whose = (name, owner);
        return Err(put_aside(state, whose, damage, &kept_settings, report));
    }
    if report.problems.len() > problems {
        journal.leave_as_told(context.state);
        return Ok(JournalState::Stored);
    }
    journal.remove(context.state)?;
    Ok(JournalState::Cleaned)
}

/// Gives a journal that cannot be believed another name, so that a person can look at it and the
/// next sweep does not stumble over it again. Returns what to tell about it.
fn put_aside(
    state: &StateDir,
    (name, owner): (&str, &OwnerId),
    damage: Damage,
    settings: &[String],
    report: &mut UndoReport,
) -> GuardError {
    // The file's name still tells the id that processes carry.
    let strays = processes::end_marked(owner, None, &mut report.undone);
    report.problems.extend(strays.err());
    let aside = format!("{owner}.jsonl.damaged");
    let path = match state.rename(name, &aside) {
        Ok(()) => state.path_of(&aside),
        Err(_) => state.path_of(name),
    };
    let settings = match settings {
        [] => String::new(),
        _ => format!(": {}", settings.join(", ")),
    };
    let Damage { line, why } = damage;
    GuardError::JournalDamaged {
        path,
        line,
        why,
        settings,
    }
}
