//! The kinds of things that a guard owns: one file per kind, and `guarded`, which all handles have,
//! and `dead`, which undoes what an owner that died has left.
//!
//! A kind consists of
//!
//! * a **record**: what the journal must say so that somebody else can undo it later, knowing
//!   nothing but the record and the owner's id. Its `undo` acts only on proof that the thing is
//!   ours, does nothing if there is nothing to undo, and may be repeated;
//! * a **handle** that a run holds; it undoes the thing when it is dropped;
//! * a method of [`Guard`](crate::Guard) that announces the record, then acts, then makes the
//!   handle;
//! * if this process itself has something that a later one cannot have, like a child that only its
//!   parent can reap: a [`Live`] part.
//!
//! To add one: a file here, a variant of [`Record`] with its arms there and below, and the next
//! [`VERSION`](crate::journal::VERSION) of the journal.

pub(crate) mod cgroup;
pub(crate) mod child;
pub(crate) mod children;
pub(crate) mod dead;
pub(crate) mod engine;
pub(crate) mod guarded;
pub(crate) mod scratch;
pub(crate) mod setting;

use crate::error::GuardError;
use crate::options::Options;
use crate::owned::cgroup::{empty, release};
use crate::owner::OwnerId;
use crate::record::Record;
use crate::report::Undone;
use crate::state_dir::StateDir;

/// What undoing needs to know apart from the record.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) owner: &'a OwnerId,
    pub(crate) options: &'a Options,
    pub(crate) state: &'a StateDir,
    /// Whether the owner undoes it itself, and not a sweep.
    pub(crate) by_owner: bool,
    /// Whether the machine has not been restarted since; if it has, only files are still there.
    pub(crate) same_boot: bool,
}

/// The part of an owned thing that only the process that made it has: a child to reap, a lock to
/// hold. It is dropped when the thing is undone.
pub(crate) trait Live: Send + Sync {
    /// Does what only this process can do, before the record is undone. Repeatable like that.
    fn end(&self, _done: &mut Vec<Undone>) -> Result<(), GuardError> {
        Ok(())
    }
}

impl Record {
    /// Undoes the thing and adds what was done to `done`.
    pub(crate) fn undo(
        &self,
        number: u64,
        context: Context<'_>,
        done: &mut Vec<Undone>,
    ) -> Result<(), GuardError> {
        // A restart has ended all processes, taken all groups away, and set settings anew, to
        // whatever the administrator wants.
        if !context.same_boot && !self.survives_restart() {
            return Ok(());
        }
        match self {
            Record::Child(child) => child.undo(number, context, done),
            Record::Scratch(scratch) => scratch.undo(number, context, done),
            Record::Setting(setting) => setting.undo(context, done),
            Record::Cgroup(group) => group.undo(number, context, empty, done),
            Record::CgroupOfOthers(group) => group.undo(number, context, release, done),
            Record::Engine(engine) => engine.undo(context, done),
        }
    }
}

/// Checks what the name of a folder or control group shall begin with.
fn check_prefix(prefix: &str, signs: &str) -> Result<(), GuardError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    match (1..=64).contains(&prefix.len()) && prefix.chars().all(is_allowed) {
        true => Ok(()),
        false => Err(GuardError::ScratchPrefix {
            prefix: prefix.to_owned(),
        }),
    }
}

/// How the name of an owner's folder or control group ends.
fn mark(owner: &OwnerId, number: u64) -> String {
    format!("-{owner}-{number}")
}
