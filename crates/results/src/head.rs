//! What makes a folder a run: the plan, the machine, and their checksums.

use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;

use crate::disk::{self, Unwritten, at};
use crate::error::ResultsError;
use crate::layout;
use crate::lock;
use crate::machine::MachineRecord;
use crate::model::{Plan, SCHEMA};
use crate::record::{self, Unusable};
use crate::sums::{self, Sums};

/// Holds the contents of the files, ready to be written.
#[derive(Debug)]
pub(crate) struct Head {
    sums: Vec<u8>,
    machine: Vec<u8>,
    plan: Vec<u8>,
}

impl Head {
    /// Encodes plan and machine after checking that they can be read back; says what is wrong.
    pub(crate) fn encode(plan: &Plan, machine: &MachineRecord) -> Result<Self, String> {
        if plan.schema != SCHEMA || machine.schema != SCHEMA {
            return Err(format!("its schema is not {SCHEMA}"));
        }
        check_plan(plan)?;
        let plan = record::encode(plan)?;
        let machine = record::encode(machine)?;
        let sums = Sums::of([
            (layout::PLAN, plan.as_slice()),
            (layout::MACHINE, machine.as_slice()),
        ]);
        let sums = sums.text().into_bytes();
        Ok(Self {
            sums,
            machine,
            plan,
        })
    }

    /// Writes the files, the plan last: with it, the folder is a run.
    ///
    /// Says which path it could not write; nothing is left of the files then.
    pub(crate) fn write(&self, run: &Path) -> Result<(), Unwritten> {
        let written = self.write_all(run);
        if written.is_err() {
            // What cannot be removed either does not hinder the next attempt: see `is_vacant`.
            let _ = fs::remove_dir(run.join(layout::CELLS));
            for name in [layout::PLAN, layout::MACHINE, sums::NAME] {
                let _ = fs::remove_file(run.join(name));
            }
        }
        written
    }

    /// Replaces the plan of a run. Until the new one is in its place, the checksums of both hold.
    ///
    /// Says which path it could not write; the run is as before then.
    pub(crate) fn replace(&self, run: &Path) -> Result<(), Unwritten> {
        let path = run.join(sums::NAME);
        let mut both = fs::read(&path).map_err(at(&path))?;
        both.extend(&self.sums);
        put(run, sums::NAME, &both)?;
        put(run, layout::PLAN, &self.plan)?;
        put(run, sums::NAME, &self.sums)
    }

    fn write_all(&self, run: &Path) -> Result<(), Unwritten> {
        let cells = run.join(layout::CELLS);
        match fs::create_dir(&cells) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err((cells, error));
            }
            _ => {}
        }
        put(run, sums::NAME, &self.sums)?;
        put(run, layout::MACHINE, &self.machine)?;
        put(run, layout::PLAN, &self.plan)?;
        disk::sync_parent(run).map_err(at(run))
    }
}

fn put(run: &Path, name: &str, content: &[u8]) -> Result<(), Unwritten> {
    let file = run.join(name);
    disk::replace(&file, &layout::scratch(run, name), content).map_err(at(&file))
}

/// Reads plan and machine, and compares them with their checksums.
pub(crate) fn read(run: &Path) -> Result<(Plan, MachineRecord), ResultsError> {
    let (plan, sums) = read_plan(run)?;
    let content = read_file(run, layout::MACHINE)?;
    sums.check(layout::MACHINE, &content)
        .map_err(|reason| damaged(run, layout::MACHINE, reason))?;
    let machine =
        record::decode(&content).map_err(|error| unusable(run, layout::MACHINE, error))?;
    Ok((plan, machine))
}

/// Says whether a run may be created in a folder: it is empty, or holds a lock and only what
/// [`Head::write`] writes before the plan.
pub(crate) fn is_vacant(path: &Path) -> io::Result<bool> {
    let (mut is_empty, mut has_lock) = (true, false);
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        is_empty = false;
        let name = entry.file_name();
        let is_ours = match name.to_str() {
            Some(lock::NAME) => {
                has_lock = true;
                true
            }
            Some(layout::CELLS) => {
                entry.file_type()?.is_dir() && fs::read_dir(entry.path())?.next().is_none()
            }
            Some(layout::MACHINE | sums::NAME) => true,
            Some(name) => [layout::PLAN, layout::MACHINE, sums::NAME]
                .iter()
                .any(|of| layout::scratch(path, of).ends_with(name)),
            None => false,
        };
        if !is_ours {
            return Ok(false);
        }
    }
    Ok(is_empty || has_lock)
}

/// Returns when the plan of a run folder was made, `None` if it is none.
pub(crate) fn created(run: &Path) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Created {
        created: Timestamp,
    }
    let content = fs::read(run.join(layout::PLAN)).ok()?;
    let plan: Created = serde_json::from_slice(&content).ok()?;
    Some(plan.created)
}

/// Reads the plan, and the checksums with which it was compared.
fn read_plan(run: &Path) -> Result<(Plan, Sums), ResultsError> {
    let not_ours = |problem: &str| ResultsError::NotARunFolder {
        path: run.to_owned(),
        problem: problem.to_owned(),
    };
    match fs::metadata(run) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Err(not_ours("it is not a folder")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(not_ours("it does not exist"));
        }
        Err(error) => return Err(unreadable(run, error)),
    }
    if !exists(run, layout::PLAN)? {
        return Err(not_ours("it has no plan.json"));
    }
    let content = read_file(run, layout::PLAN)?;
    // The version comes first: a newer one may do without the checksums, or have them elsewhere.
    let decoded = record::decode::<Plan>(&content);
    if let Err(error @ Unusable::OtherSchema { .. }) = decoded {
        return Err(unusable(run, layout::PLAN, error));
    }
    if decoded.is_err() && !exists(run, sums::NAME)? {
        return Err(not_ours("its plan.json was not written by tare"));
    }
    let sums = Sums::parse(&read_file(run, sums::NAME)?)
        .map_err(|reason| damaged(run, sums::NAME, reason))?;
    let plan = decoded.map_err(|error| unusable(run, layout::PLAN, error))?;
    sums.check(layout::PLAN, &content)
        .and_then(|()| check_plan(&plan).map_err(|problem| format!("is damaged: {problem}")))
        .map_err(|reason| damaged(run, layout::PLAN, reason))?;
    Ok((plan, sums))
}

fn exists(run: &Path, name: &str) -> Result<bool, ResultsError> {
    let path = run.join(name);
    fs::exists(&path).map_err(|error| unreadable(&path, error))
}

fn read_file(run: &Path, name: &str) -> Result<Vec<u8>, ResultsError> {
    let path = run.join(name);
    fs::read(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => damaged(run, name, "is missing".to_owned()),
        _ => unreadable(&path, error),
    })
}

fn unusable(run: &Path, name: &str, error: Unusable) -> ResultsError {
    match error {
        Unusable::OtherSchema { found, written_by } => ResultsError::OtherSchema {
            path: run.join(name),
            found,
            written_by,
        },
        Unusable::Broken(reason) => damaged(run, name, reason),
    }
}

fn damaged(run: &Path, name: &str, reason: String) -> ResultsError {
    ResultsError::Damaged {
        path: run.join(name),
        reason,
        remedy: "restore it from a copy, or measure again into a new run folder; the files in \
                 cells/ can still be read by any Parquet tool"
            .to_owned(),
    }
}

fn unreadable(path: &Path, error: io::Error) -> ResultsError {
    ResultsError::io("read", path, error, "then repeat the command")
}

/// Checks that a cell can be found by its number.
fn check_plan(plan: &Plan) -> Result<(), String> {
    let mut expected = 1..;
    match plan
        .cells
        .iter()
        .find(|cell| expected.next() != Some(cell.id))
    {
        Some(cell) => Err(format!(
            "cell {} is out of sequence, cells are numbered from 1",
            cell.id
        )),
        None => Ok(()),
    }
}
