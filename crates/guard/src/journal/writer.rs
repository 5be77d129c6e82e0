//! The writer's side: announce, act, note that it was undone.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;

use super::{Contents, EXTENSION, Header, Line, TOLD_EXTENSION, UNBORN_EXTENSION, VERSION};
use crate::error::GuardError;
use crate::owner::{OwnerId, Place};
use crate::record::Record;
use crate::state_dir::{Locked, StateDir, failed};

/// A journal that is being written, with its lock held.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Locked,
    name: String,
    path: PathBuf,
    /// Length up to the last whole line, in bytes.
    length: u64,
    /// Length of the first line, in bytes.
    header_length: u64,
    next: u64,
    in_force: usize,
}

impl Journal {
    /// Makes the journal of a new owner and takes its lock.
    pub(crate) fn create(
        state: &StateDir,
        owner: &OwnerId,
        here: &Place,
    ) -> Result<Journal, GuardError> {
        // Between creating and locking, a sweeper may take the file for that of a dead owner. So it
        // is born under a name that promises no content; a sweeper may delete it, and then it is
        // made once more.
        const ATTEMPTS: u32 = 100;
        let unborn = format!("{owner}{UNBORN_EXTENSION}");
        let name = format!("{owner}{EXTENSION}");
        let path = state.path_of(&name);
        let failed = |action, errno: Errno| failed(action, &path, errno);
        for _ in 0..ATTEMPTS {
            let file = match state.create_file(&unborn) {
                Ok(file) => file,
                Err(Errno::EXIST) => {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                Err(errno) => return Err(failed("create the journal", errno)),
            };
            let locked = Locked::take(file).map_err(|errno| failed("lock the journal", errno))?;
            let Ok(file) = locked else { continue };
            let header = Header {
                version: VERSION,
                owner: owner.clone(),
                pid: std::process::id(),
                place: here.clone(),
            };
            let mut journal = Journal {
                file,
                name: name.clone(),
                path: path.clone(),
                length: 0,
                header_length: 0,
                next: 1,
                in_force: 0,
            };
            if let Err(error) = journal.append(&Line::Opened(header), true) {
                // Nothing was announced, so it may go; if it cannot, a sweep takes it away.
                let _ = state.unlink(&unborn);
                return Err(error);
            }
            journal.header_length = journal.length;
            match state.rename(&unborn, &journal.name) {
                Ok(()) => return Ok(journal),
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(failed("name the journal", errno)),
            }
        }
        Err(failed("create the journal", Errno::TIMEDOUT))
    }

    /// Continues the journal of a dead owner, whose lock has been taken.
    pub(crate) fn adopt(file: Locked, name: String, path: PathBuf, contents: &Contents) -> Journal {
        Journal {
            file,
            name,
            path,
            length: contents.length,
            header_length: contents.header_length,
            next: contents.next,
            in_force: contents.in_force.len(),
        }
    }

    /// Announces something that will be made from its own number; returns the number and the
    /// announced thing.
    pub(crate) fn intend(
        &mut self,
        make: impl FnOnce(u64) -> Record,
    ) -> Result<(u64, Record), GuardError> {
        let number = self.next;
        let thing = make(number);
        let sync = thing.survives_restart();
        let line = Line::Intent {
            number,
            thing: thing.clone(),
        };
        self.append(&line, sync)?;
        self.next += 1;
        self.in_force += 1;
        Ok((number, thing))
    }

    /// Replaces what was announced by what is known now.
    pub(crate) fn update(&mut self, number: u64, thing: &Record) -> Result<(), GuardError> {
        let thing = thing.clone();
        self.append(&Line::Update { number, thing }, false)
    }

    /// Notes that something is no longer in force.
    ///
    /// An error may be ignored: undoing once more finds nothing to undo.
    pub(crate) fn undone(&mut self, number: u64) -> Result<(), GuardError> {
        /// A run that starts a child per sample must not fill the disk with their history.
        const HISTORY_LIMIT_BYTES: u64 = 256 * 1024;
        self.in_force = self.in_force.saturating_sub(1);
        if self.in_force == 0 && self.length - self.header_length > HISTORY_LIMIT_BYTES {
            let shortened = self.shorten(self.header_length);
            return shortened.map_err(|source| self.write_error(source));
        }
        self.append(&Line::Undone { number }, false)
    }

    /// Deletes the journal, when nothing in it is in force; then gives up its lock.
    pub(crate) fn remove(self, state: &StateDir) -> Result<(), GuardError> {
        state
            .unlink(&self.name)
            .map_err(|errno| self.write_error(errno.into()))
    }

    /// Leaves the journal to later sweeps, now that a person has seen which of its things can't be
    /// undone; then gives up its lock. If it can't be renamed, they are reported once more.
    pub(crate) fn leave_as_told(self, state: &StateDir) {
        if let Some(owner) = self.name.strip_suffix(EXTENSION) {
            let _ = state.rename(&self.name, &format!("{owner}{TOLD_EXTENSION}"));
        }
    }

    fn append(&mut self, line: &Line, sync: bool) -> Result<(), GuardError> {
        let mut text = serde_json::to_string(line)
            .map_err(|error| self.write_error(io::Error::other(error)))?;
        text.push('\n');
        // The rest of a line that was not written whole would spoil the next one.
        let outcome = self.shorten(self.length).and_then(|()| {
            self.file.file().write_all(text.as_bytes())?;
            match sync {
                true => self.file.file().sync_data(),
                false => Ok(()),
            }
        });
        outcome.map_err(|source| self.write_error(source))?;
        self.length += text.len() as u64;
        Ok(())
    }

    fn shorten(&mut self, length: u64) -> io::Result<()> {
        let file = self.file.file();
        if file.metadata()?.len() > length {
            file.set_len(length)?;
        }
        self.length = length;
        Ok(())
    }

    fn write_error(&self, source: io::Error) -> GuardError {
        let action = format!("write the journal {}", self.path.display());
        GuardError::io(action, source, "; free some space there, then try again")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::journal::reader::parse;
    use crate::record::{ChildRecord, ScratchRecord};

    pub(crate) fn open() -> (tempfile::TempDir, StateDir, Journal) {
        let root = tempfile::tempdir().unwrap();
        let state = StateDir::create(root.path()).unwrap();
        let here = Place::here().unwrap();
        let journal = Journal::create(&state, &OwnerId::new(&here).unwrap(), &here).unwrap();
        (root, state, journal)
    }

    pub(crate) fn child(_: u64) -> Record {
        Record::Child(ChildRecord {
            program: "sleep".into(),
        })
    }

    fn scratch(number: u64) -> Record {
        Record::Scratch(ScratchRecord {
            path: format!("/tmp/x-{number}"),
        })
    }

    pub(crate) fn bytes(journal: &Journal) -> Vec<u8> {
        std::fs::read(&journal.path).unwrap()
    }

    #[test]
    fn what_is_announced_and_not_undone_is_in_force() {
        let (_root, state, mut journal) = open();
        journal.intend(child).unwrap();
        journal.intend(scratch).unwrap();
        journal.intend(scratch).unwrap();
        journal.undone(2).unwrap();
        journal.update(1, &scratch(9)).unwrap();
        let contents = parse(&bytes(&journal)).unwrap();
        assert_eq!(contents.in_force, [(1, scratch(9)), (3, scratch(3))]);
        assert_eq!((contents.damage, contents.next), (None, 4));
        journal.remove(&state).unwrap();
        assert_eq!(state.names().unwrap(), [""; 0]);
    }

    #[test]
    fn another_opening_cannot_take_the_lock() {
        let (_root, state, journal) = open();
        let other = state.open_file(&journal.name).unwrap();
        let other = Locked::take(other)
            .unwrap()
            .expect_err("the journal holds it");
        drop(journal);
        assert!(Locked::take(other).unwrap().is_ok());
    }

    #[test]
    fn half_a_line_is_cut_off_before_the_next_one() {
        let (_root, _state, mut journal) = open();
        journal.intend(child).unwrap();
        journal
            .file
            .file()
            .write_all(b"{\"record\":\"inte")
            .unwrap();
        journal.intend(scratch).unwrap();
        let contents = parse(&bytes(&journal)).unwrap();
        assert_eq!(contents.in_force, [(1, child(1)), (2, scratch(2))]);
        assert_eq!(contents.damage, None);
    }

    #[test]
    fn a_long_history_of_undone_things_is_forgotten() {
        let (_root, _state, mut journal) = open();
        for _ in 0..5000 {
            let (number, _) = journal.intend(child).unwrap();
            journal.undone(number).unwrap();
        }
        assert!(bytes(&journal).len() < 512 * 1024);
        let (number, _) = journal.intend(child).unwrap();
        assert_eq!(number, 5001);
        assert_eq!(
            parse(&bytes(&journal)).unwrap().in_force,
            [(5001, child(1))]
        );
    }

    proptest! {
        // Each case writes a real file.
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_journal_cut_anywhere_lists_what_its_whole_lines_list(
            steps in proptest::collection::vec(0_u8..3, 0..12),
            cut in 0.0_f64..=1.0,
        ) {
            let (_root, _state, mut journal) = open();
            let mut announced: Vec<u64> = Vec::new();
            // Each length of the file at which a line was whole, with what was in force then.
            let mut whole = vec![(journal.length, Vec::new())];
            for step in steps {
                match (step, announced.pop()) {
                    (0, Some(number)) => journal.undone(number).unwrap(),
                    (step, last) => {
                        announced.extend(last);
                        let make = if step == 1 { child } else { scratch };
                        announced.push(journal.intend(make).unwrap().0);
                    }
                }
                whole.push((journal.length, announced.clone()));
            }
            let text = bytes(&journal);
            let first = usize::try_from(journal.header_length).unwrap();
            let cut = first + ((text.len() - first) as f64 * cut) as usize;
            let contents = parse(&text[..cut]).unwrap();
            let (_, expected) = whole.iter().rfind(|(length, _)| *length <= cut as u64).unwrap();
            let found: Vec<u64> = contents.in_force.iter().map(|(number, _)| *number).collect();
            prop_assert_eq!(&found, expected);
            prop_assert!(contents.damage.is_none());
        }
    }
}
