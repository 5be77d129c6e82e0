//! The type that a run holds and that owns all it starts or changes.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io, mem};

use crate::error::GuardError;
use crate::journal::Journal;
use crate::options::Options;
use crate::owned::cgroup::OwnedCgroup;
use crate::owned::child::OwnedChild;
use crate::owned::engine::OwnedAtEngine;
use crate::owned::scratch::ScratchDir;
use crate::owned::setting::Setting;
use crate::owned::{Context, Live, Record, undoing_order};
use crate::owner::{OwnerId, Place};
use crate::processes;
use crate::report::UndoReport;
use crate::spawner::Spawner;
use crate::state_dir::StateDir;

/// Owns what a run starts or changes, and undoes it.
///
/// Each thing has a handle, and is undone when the handle is dropped. What is left is undone by
/// [`close`](Guard::close), or when the guard is dropped, on a return as well as in a panic: first
/// children, then the rest, each in the reverse of the order in which it was made. A handle that
/// outlives the guard does nothing any more.
///
/// If the process is killed before, [`sweep`](crate::sweep) does the same from the journal.
#[derive(Debug)]
pub struct Guard {
    inner: Arc<Inner>,
}

impl Guard {
    /// Opens a guard whose journal is in a state folder, usually
    /// [`default_state_dir`](crate::default_state_dir).
    ///
    /// # Errors
    ///
    /// If the folder cannot be made, is not this user's alone, or cannot be locked (some network
    /// file systems).
    pub fn open(state_dir: &Path) -> Result<Guard, GuardError> {
        Guard::open_with(state_dir, Options::default())
    }

    /// Opens a guard that acts in other places than the usual ones.
    ///
    /// # Errors
    ///
    /// As [`open`](Guard::open).
    pub fn open_with(state_dir: &Path, options: Options) -> Result<Guard, GuardError> {
        let here = Place::here()?;
        let owner = OwnerId::new(&here)?;
        let state = StateDir::create(state_dir)?;
        let journal = Journal::create(&state, &owner, &here)?;
        let inner = Inner {
            process: std::process::id(),
            here,
            owner,
            options,
            state,
            journal: Mutex::new(Some(journal)),
            entries: Mutex::default(),
            spawner: Mutex::default(),
            report: Mutex::default(),
        };
        Ok(Guard {
            inner: Arc::new(inner),
        })
    }

    /// Gives the id that all that is owned carries.
    pub fn owner(&self) -> &OwnerId {
        &self.inner.owner
    }

    /// Starts a child in a process group of its own.
    ///
    /// The child and its descendants find [`OWNER_VARIABLE`](crate::OWNER_VARIABLE) in their
    /// environment. The kernel kills the child when this process dies; descendants are found by
    /// the variable. The command can be used again afterwards.
    ///
    /// A child does not get the terminal's Ctrl-C, since it is not in the terminal's foreground
    /// group; for the same reason it stops if it reads from the terminal, so give it another
    /// standard input. It inherits CPU affinity and scheduling policy from the thread that started
    /// the guard's first child.
    ///
    /// # Errors
    ///
    /// [`GuardError::Spawn`] if the program cannot be executed, [`GuardError::JournalWrite`] if it
    /// cannot be announced; nothing is left running then.
    pub fn spawn(&self, command: &mut Command) -> Result<OwnedChild, GuardError> {
        OwnedChild::spawn(&self.inner, command)
    }

    /// Makes an empty scratch folder for this user only.
    ///
    /// It is named `tare-<prefix>-<owner's id>-<number>`.
    ///
    /// # Errors
    ///
    /// [`GuardError::ScratchPrefix`] or [`GuardError::Scratch`].
    pub fn scratch(&self, prefix: &str) -> Result<ScratchDir, GuardError> {
        ScratchDir::create(&self.inner, prefix)
    }

    /// Makes a control group with the given controllers; with none it only keeps processes together.
    ///
    /// It is named `tare-<prefix>-<owner's id>-<number>` and stands at the top of each controller's
    /// hierarchy, or in the group of this process where only that is allowed. Its files are those
    /// of version 1 or 2, see [`OwnedCgroup::folder`].
    ///
    /// # Errors
    ///
    /// [`GuardError::NoController`] if this machine lacks one, [`GuardError::Cgroup`] if the
    /// kernel refuses (only root may, as a rule), [`GuardError::ScratchPrefix`].
    pub fn cgroup(&self, prefix: &str, controllers: &[&str]) -> Result<OwnedCgroup, GuardError> {
        OwnedCgroup::create(&self.inner, prefix, controllers)
    }

    /// Reserves the name of a control group that somebody else makes, such as a container engine:
    /// whatever groups of that name stand at the top of a hierarchy are ours.
    ///
    /// # Errors
    ///
    /// As [`cgroup`](Guard::cgroup).
    pub fn reserve_cgroup(&self, prefix: &str) -> Result<OwnedCgroup, GuardError> {
        OwnedCgroup::reserve(&self.inner, prefix)
    }

    /// Announces that containers and images will be made at the Docker engine behind a socket. They
    /// are ours by their label [`OWNER_LABEL`](crate::OWNER_LABEL).
    ///
    /// # Errors
    ///
    /// [`GuardError::JournalWrite`], or [`GuardError::Engine`] if the path is not UTF-8.
    pub fn at_engine(&self, socket: &Path) -> Result<OwnedAtEngine, GuardError> {
        OwnedAtEngine::announce(&self.inner, socket)
    }

    /// Changes a setting of the kernel, a file of one line, until the handle is dropped.
    ///
    /// The file is read back afterwards: [`Setting::value`] is what the kernel made of the value.
    /// Of a file that shows its choices, as in `always [madvise] never`, the value is the word in
    /// brackets.
    ///
    /// # Errors
    ///
    /// [`GuardError::SettingRefused`] if the path is not under one of
    /// [`Options::setting_roots`] or the file is not one line of text that can be read;
    /// [`GuardError::SettingInUse`] or [`GuardError::SettingLocked`] if another run has changed it;
    /// [`GuardError::Setting`] or
    /// [`GuardError::SettingNoEffect`] if the kernel refuses. The setting has its old value then.
    pub fn set(&self, path: &Path, value: &str) -> Result<Setting, GuardError> {
        Setting::change(&self.inner, path, value)
    }

    /// Undoes everything that is left and tells what was undone since the guard was opened.
    ///
    /// What cannot be undone stays in the journal for the next [`sweep`](crate::sweep).
    pub fn close(self) -> UndoReport {
        self.inner.close()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        use io::Write;
        let report = self.inner.close();
        // There is nobody to return it to. Not `eprintln`, which panics if it cannot write.
        for problem in report.problems {
            let _ = writeln!(io::stderr(), "tare: {problem}");
        }
    }
}

/// What a guard and its handles share.
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
pub(crate) struct Hold {
    inner: Arc<Inner>,
    entry: Arc<Entry>,
    left_to_guard: bool,
}

impl Inner {
    /// Announces something, which is then owned: make it, or drop the hold.
    pub(crate) fn announce(
        self: &Arc<Inner>,
        make: impl FnOnce(u64) -> Record,
    ) -> Result<Hold, GuardError> {
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
        Ok(Hold {
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

    fn close(&self) -> UndoReport {
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
        if let Some(journal) = lock(&self.journal).take()
            && nothing_left
        {
            report.problems.extend(journal.remove(&self.state).err());
        }
        report
    }
}

impl Hold {
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

impl Drop for Hold {
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
