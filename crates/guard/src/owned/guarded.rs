//! What a guard and the handles of what it owns have in common.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io, mem};

use crate::error::GuardError;
use crate::journal::Journal;
use crate::options::Options;
use crate::owned::{Context, Live};
use crate::owner::{OwnerId, Place};
use crate::processes;
use crate::record::{Record, undoing_order};
use crate::report::UndoReport;
use crate::spawner::Spawner;
use crate::state_dir::StateDir;

/// The state that a guard and its handles share.
pub(crate) struct Inner {
    /// A fork that drops a copy of the guard must not undo what belongs to its parent.
    process: u32,
    pub(crate) here: Place,
    pub(crate) owner: OwnerId,
    pub(crate) options: Options,
    pub(crate) state: StateDir,
    /// `None` once the guard is closed.
    journal: Mutex<Option<Journal>>,
    entries: Mutex<Vec<Arc<Entry>>>,
    spawner: Mutex<Option<Spawner>>,
    report: Mutex<UndoReport>,
}

/// One owned thing.
pub(crate) struct Entry {
    number: u64,
    record: Mutex<Record>,
    live: Mutex<Option<Arc<dyn Live>>>,
    undone: Mutex<bool>,
}

/// The part that all handles have in common: the thing is undone when this is dropped.
#[derive(Debug)]
pub(crate) struct Guarded {
    inner: Arc<Inner>,
    entry: Arc<Entry>,
    left_to_guard: bool,
}

impl Inner {
    /// Opens the journal of a new owner.
    pub(crate) fn open(state_dir: &Path, options: Options) -> Result<Inner, GuardError> {
        let here = Place::here()?;
        let owner = OwnerId::new(&here)?;
        let state = StateDir::create(state_dir)?;
        let journal = Journal::create(&state, &owner, &here)?;
        Ok(Inner {
            process: std::process::id(),
            here,
            owner,
            options,
            state,
            journal: Mutex::new(Some(journal)),
            entries: Mutex::default(),
            spawner: Mutex::default(),
            report: Mutex::default(),
        })
    }

    /// Announces something, which is then owned: make it, or drop the handle.
    pub(crate) fn announce(
        self: &Arc<Inner>,
        make: impl FnOnce(u64) -> Record,
    ) -> Result<Guarded, GuardError> {
        let mut journal = lock(&self.journal);
        // Only a guard announces, and it cannot while it is being closed.
        let journal = journal.as_mut().expect("an open guard has a journal");
        let (number, record) = journal.intend(make)?;
        let entry = Arc::new(Entry {
            number,
            record: Mutex::new(record),
            live: Mutex::default(),
            undone: Mutex::new(false),
        });
        lock(&self.entries).push(Arc::clone(&entry));
        Ok(Guarded {
            inner: Arc::clone(self),
            entry,
            left_to_guard: false,
        })
    }

    /// Starts a child from the thread that lives as long as the guard.
    pub(crate) fn start(&self, command: &mut Command) -> io::Result<std::process::Child> {
        let mut spawner = lock(&self.spawner);
        match spawner.as_ref() {
            Some(spawner) => spawner.spawn(command),
            None => spawner.insert(Spawner::new()?).spawn(command),
        }
    }

    /// Adds to the report that `close` will give.
    pub(crate) fn report(&self, more: UndoReport) {
        let mut report = lock(&self.report);
        report.undone.extend(more.undone);
        report.problems.extend(more.problems);
    }

    fn undo(&self, entry: &Arc<Entry>) -> Result<(), GuardError> {
        let mut undone = lock(&entry.undone);
        if *undone || !self.is_open() {
            return Ok(());
        }
        let mut done = Vec::new();
        let context = Context {
            owner: &self.owner,
            options: &self.options,
            state: &self.state,
            by_owner: true,
            same_boot: true,
        };
        let live = lock(&entry.live).clone();
        let ended = live.map_or(Ok(()), |live| live.end(&mut done));
        let record = lock(&entry.record).clone();
        let outcome = ended.and_then(|()| record.undo(entry.number, context, &mut done));
        self.report(UndoReport {
            undone: done,
            problems: Vec::new(),
        });
        outcome?;
        *undone = true;
        *lock(&entry.live) = None;
        lock(&self.entries).retain(|other| !Arc::ptr_eq(other, entry));
        if let Some(journal) = lock(&self.journal).as_mut() {
            // Without this line a sweep would look once more and find nothing to undo.
            let _ = journal.undone(entry.number);
        }
        Ok(())
    }

    fn is_open(&self) -> bool {
        lock(&self.journal).is_some() && self.process == std::process::id()
    }

    pub(crate) fn close(&self) -> UndoReport {
        if !self.is_open() {
            return UndoReport::default();
        }
        let mut entries = lock(&self.entries).clone();
        undoing_order(&mut entries, |entry| lock(&entry.record).runs());
        let outcomes: Vec<_> = entries.iter().map(|entry| self.undo(entry)).collect();
        let mut report = mem::take(&mut *lock(&self.report));
        report
            .problems
            .extend(outcomes.into_iter().filter_map(Result::err));
        // What escaped from a child and came to light only after that was undone.
        let strays = processes::end_marked(&self.owner, None, &mut report.undone);
        let nothing_left = strays.is_ok() && lock(&self.entries).is_empty();
        report.problems.extend(strays.err());
        drop(lock(&self.spawner).take());
        match lock(&self.journal).take() {
            Some(journal) if nothing_left => {
                report.problems.extend(journal.remove(&self.state).err());
            }
            Some(journal) => journal.leave_as_told(&self.state),
            None => {}
        }
        report
    }
}

impl Guarded {
    /// Says which number the thing has in the journal.
    pub(crate) fn number(&self) -> u64 {
        self.entry.number
    }

    /// Gives the thing the part that only this process has.
    pub(crate) fn set_live(&self, live: Arc<dyn Live>) {
        *lock(&self.entry.live) = Some(live);
    }

    /// Replaces what was announced by what is known now.
    pub(crate) fn update(&self, record: Record) -> Result<(), GuardError> {
        // In memory first: if the journal cannot take it, undoing should still know.
        *lock(&self.entry.record) = record.clone();
        match lock(&self.inner.journal).as_mut() {
            Some(journal) => journal.update(self.entry.number, &record),
            None => Ok(()),
        }
    }

    /// Undoes the thing now; if that fails, the guard tries again when it is closed.
    pub(crate) fn undo(&self) -> Result<(), GuardError> {
        self.inner.undo(&self.entry)
    }

    /// Lets the thing outlive its handle, until the guard is closed.
    pub(crate) fn leave_to_guard(&mut self) {
        self.left_to_guard = true;
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if !self.left_to_guard {
            // If it fails, it is tried again, and reported, when the guard is closed.
            let _ = self.undo();
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// Locks also after a panic: undoing must go on, and none of these values can be half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
