//! What makes a folder a run: the plan, the machine, and their checksums.

use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;

use crate::bounds;
use crate::disk::{self, Folder, Unwritten, at};
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
        let plan = record::encode(plan, true)?;
        let machine = record::encode(machine, true)?;
        let sums = Sums::of([
            (layout::PLAN, plan.as_slice()),
            (layout::MACHINE, machine.as_slice()),
        ]);
        let sums = sums.text().into_bytes();
        for (name, content) in [(layout::PLAN, &plan), (layout::MACHINE, &machine)] {
            layout::check_size(name, content)?;
        }
        Ok(Self {
            sums,
            machine,
            plan,
        })
    }

    /// Writes the files, the plan last: with it, the folder is a run.
    ///
    /// Says which path it could not write; nothing is left of the files then.
    pub(crate) fn write(&self, run: &Folder) -> Result<(), Unwritten> {
        let written = self.write_all(run);
        if written.is_err() {
            // What cannot be removed either does not hinder the next attempt: see `is_vacant`.
            for name in [layout::CELLS, layout::PLAN, layout::MACHINE, sums::NAME] {
                let _ = run.remove(name);
            }
        }
        written
    }

    /// Replaces the plan of a run. Until the new one is in its place, the checksums of both hold.
    ///
    /// Says which path it could not write; the run is as before then.
    pub(crate) fn replace(&self, run: &Folder) -> Result<(), Unwritten> {
        let sums = run.read(sums::NAME, layout::most_bytes(sums::NAME));
        let mut both = sums.map_err(at(&run.path_of(sums::NAME)))?;
        both.extend(&self.sums);
        put(run, sums::NAME, &both)?;
        put(run, layout::PLAN, &self.plan)?;
        put(run, sums::NAME, &self.sums)
    }

    fn write_all(&self, run: &Folder) -> Result<(), Unwritten> {
        match run.make_folder(layout::CELLS) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err((run.path_of(layout::CELLS), error));
            }
            _ => {}
        }
        put(run, sums::NAME, &self.sums)?;
        put(run, layout::MACHINE, &self.machine)?;
        put(run, layout::PLAN, &self.plan)?;
        disk::sync_parent(run.path()).map_err(at(run.path()))
    }
}

fn put(run: &Folder, name: &str, content: &[u8]) -> Result<(), Unwritten> {
    run.replace(name, content).map_err(at(&run.path_of(name)))
}

/// Opens a run folder, reads plan and machine, and compares them with their checksums.
pub(crate) fn open(path: &Path) -> Result<(Folder, Plan, MachineRecord), ResultsError> {
    let run = Folder::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotADirectory => not_a_run(path, "it is not a folder"),
        io::ErrorKind::NotFound => not_a_run(path, "it does not exist"),
        _ => unreadable(path, error),
    })?;
    let (plan, sums) = read_plan(&run)?;
    let content = read_file(&run, layout::MACHINE)?;
    sums.check(layout::MACHINE, &content)
        .and_then(|()| layout::check_size(layout::MACHINE, &content))
        .map_err(|reason| damaged(&run, layout::MACHINE, reason))?;
    let machine =
        record::decode(&content).map_err(|error| unusable(&run, layout::MACHINE, error))?;
    Ok((run, plan, machine))
}

/// Says whether a run may be created in a folder: it is empty, or holds a lock and only what
/// [`Head::write`] writes before the plan.
pub(crate) fn is_vacant(run: &Folder) -> io::Result<bool> {
    let names = run.names()?;
    for name in &names {
        let is_ours = match name.as_str() {
            lock::NAME | layout::MACHINE | sums::NAME => true,
            layout::CELLS => match run.folder(name) {
                Ok(cells) => cells.names()?.is_empty(),
                Err(_) => false,
            },
            name => [layout::PLAN, layout::MACHINE, sums::NAME]
                .iter()
                .any(|of| name.starts_with(&disk::scratch(of))),
        };
        if !is_ours {
            return Ok(false);
        }
    }
    Ok(names.is_empty() || names.iter().any(|name| name == lock::NAME))
}

/// Returns when the plan of a run folder was made, `None` if it is none.
pub(crate) fn created(run: &Path) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Created {
        created: Timestamp,
    }
    let folder = Folder::open(run).ok()?;
    let content = folder.read(layout::PLAN, layout::most_bytes(layout::PLAN));
    let plan: Created = serde_json::from_slice(&content.ok()?).ok()?;
    Some(plan.created)
}

/// Reads the plan, and the checksums with which it was compared.
fn read_plan(run: &Folder) -> Result<(Plan, Sums), ResultsError> {
    if !has(run, layout::PLAN)? {
        return Err(not_a_run(run.path(), "it has no plan.json"));
    }
    let content = read_file(run, layout::PLAN)?;
    // The version comes first: a newer one may do without the checksums, or have them elsewhere.
    let decoded = record::decode::<Plan>(&content);
    if let Err(error @ Unusable::OtherSchema { .. }) = decoded {
        return Err(unusable(run, layout::PLAN, error));
    }
    if decoded.is_err() && !has(run, sums::NAME)? {
        return Err(not_a_run(
            run.path(),
            "its plan.json was not written by tare",
        ));
    }
    let sums = Sums::parse(&read_file(run, sums::NAME)?)
        .map_err(|reason| damaged(run, sums::NAME, reason))?;
    let plan = decoded.map_err(|error| unusable(run, layout::PLAN, error))?;
    sums.check(layout::PLAN, &content)
        .and_then(|()| check_plan(&plan).map_err(|problem| format!("is damaged: {problem}")))
        .map_err(|reason| damaged(run, layout::PLAN, reason))?;
    Ok((plan, sums))
}

fn has(run: &Folder, name: &str) -> Result<bool, ResultsError> {
    run.has(name)
        .map_err(|error| unreadable(&run.path_of(name), error))
}

fn read_file(run: &Folder, name: &str) -> Result<Vec<u8>, ResultsError> {
    let read = run.read(name, layout::most_bytes(name));
    read.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => damaged(run, name, "is missing".to_owned()),
        io::ErrorKind::InvalidData => damaged(run, name, error.to_string()),
        _ => unreadable(&run.path_of(name), error),
    })
}

fn not_a_run(path: &Path, problem: &str) -> ResultsError {
    ResultsError::NotARunFolder {
        path: path.to_owned(),
        problem: problem.to_owned(),
    }
}

fn unusable(run: &Folder, name: &str, error: Unusable) -> ResultsError {
    match error {
        Unusable::OtherSchema { found, written_by } => ResultsError::OtherSchema {
            path: run.path_of(name),
            found,
            written_by,
        },
        Unusable::Broken(reason) => damaged(run, name, reason),
    }
}

fn damaged(run: &Folder, name: &str, reason: String) -> ResultsError {
    ResultsError::Damaged {
        path: run.path_of(name),
        reason,
        remedy: "restore it from a copy, or measure again into a new run folder; the files in \
                 cells/ can still be read by any Parquet tool"
            .to_owned(),
    }
}

fn unreadable(path: &Path, error: io::Error) -> ResultsError {
    ResultsError::io("read", path, error, "then repeat the command")
}

/// Checks that a cell can be found by its number, and that its times are such.
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
        None => plan.cells.iter().try_for_each(bounds::check_plan),
    }
}
