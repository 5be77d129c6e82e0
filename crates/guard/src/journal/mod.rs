//! The file in which a guard announces what it is about to do.
//!
//! One JSON object per line. The first line says who writes and where; then an `intent` before
//! each act, an `update` if the act taught something that undoing needs, and `undone` at its end.
//! What has an intent and no `undone` is in force. The writer holds the exclusive lock of the file
//! as long as it lives, so that a reader who gets the lock knows that the owner is dead.
//!
//! A line is written by one call. After `kill -9` the page cache still has it, so only a power cut
//! can lose it, and what a power cut ends (processes, settings) needs no undoing. Only intents of
//! things that survive a restart are therefore forced to the disk: forcing each would cause the
//! very disk writes and wake-ups that a measurement is there to find.

mod reader;
mod writer;

use serde::{Deserialize, Serialize};

use crate::owner::{OwnerId, Place};
use crate::record::Record;

pub(crate) use reader::{Contents, Damage, Unreadable, read};
pub(crate) use writer::Journal;

/// The format's version. A reader leaves later versions alone. A new kind of owned thing is a new
/// version, since an older reader could not undo it.
pub(crate) const VERSION: u32 = 3;

/// The end of a journal's name; before it stands the owner's id.
pub(crate) const EXTENSION: &str = ".jsonl";

/// The end of a journal's name once a person has seen which of its things can't be undone. Later
/// sweeps try again, and keep silent about what still can't.
pub(crate) const TOLD_EXTENSION: &str = ".jsonl.told";

/// The end of a journal's name until its first line is written and its lock is held.
pub(crate) const UNBORN_EXTENSION: &str = ".jsonl.new";

/// The first line: who writes, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) version: u32,
    pub(crate) owner: OwnerId,
    pub(crate) pid: u32,
    pub(crate) place: Place,
}

/// Returns the owner whose journal has this name, and whether a person has seen its problems;
/// `None` if it is no journal.
pub(crate) fn owner_of(name: &str) -> Option<(OwnerId, bool)> {
    let of = |extension| name.strip_suffix(extension).and_then(OwnerId::parse);
    let fresh = of(EXTENSION).map(|owner| (owner, false));
    fresh.or_else(|| Some((of(TOLD_EXTENSION)?, true)))
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Line {
    Opened(Header),
    Intent { number: u64, thing: Record },
    Update { number: u64, thing: Record },
    Undone { number: u64 },
}
