//! The kinds of things that a guard owns: one file per kind.
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
//! To add one: a file here, a variant of [`Record`] with its arms below, and the next
//! [`VERSION`](crate::journal::VERSION) of the journal.

pub(crate) mod cgroup;
pub(crate) mod child;
pub(crate) mod engine;
pub(crate) mod scratch;
pub(crate) mod setting;

use serde::{Deserialize, Serialize};

use crate::error::GuardError;
use crate::options::Options;
use crate::owner::OwnerId;
use crate::report::Undone;
use crate::state_dir::StateDir;

use cgroup::CgroupRecord;
use child::ChildRecord;
use engine::EngineRecord;
use scratch::ScratchRecord;
use setting::SettingRecord;

/// What the journal says about an owned thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Record {
    Child(ChildRecord),
    Scratch(ScratchRecord),
    Setting(SettingRecord),
    Cgroup(CgroupRecord),
    Engine(EngineRecord),
}

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
        match self {
            Record::Child(child) => child.undo(number, context, done),
            Record::Scratch(scratch) => scratch.undo(number, context, done),
            Record::Setting(setting) => setting.undo(context, done),
            Record::Cgroup(group) => group.undo(number, context, done),
            Record::Engine(engine) => engine.undo(context, done),
        }
    }

    /// Says whether the thing runs by itself.
    ///
    /// Such things are ended first, whatever the order in which they were made: a process that
    /// still writes would refill the folder that is being removed.
    pub(crate) fn runs(&self) -> bool {
        match self {
            Record::Child(_) | Record::Cgroup(_) | Record::Engine(_) => true,
            Record::Scratch(_) | Record::Setting(_) => false,
        }
    }

    /// Says whether the thing is still there after the machine was restarted.
    pub(crate) fn survives_restart(&self) -> bool {
        match self {
            Record::Scratch(_) | Record::Engine(_) => true,
            Record::Child(_) | Record::Cgroup(_) | Record::Setting(_) => false,
        }
    }
}

/// Puts things into the order in which they are undone: first what runs, then the rest, each in
/// the reverse of the order in which it was made.
pub(crate) fn undoing_order<T>(things: &mut [T], runs: impl Fn(&T) -> bool) {
    things.reverse();
    things.sort_by_key(|thing| !runs(thing));
}
