//! The run folder: created with a plan, filled cell by cell, never written over.
//!
//! A cell is there as a whole or not at all, so whatever ends a run, the cells before it are kept
//! and only the others are to be measured again. Nothing raw is ever replaced: an attempt that
//! failed stays next to the cell, and a cell that was damaged later or was cut short is set aside,
//! not deleted.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::cell::{Damage, Files, Recorded, unreadable};
use crate::derived::Derived;
use crate::disk::{Folder, Unwritten, at};
use crate::error::{ResultsError, shell_word};
use crate::head::{self, Head};
use crate::layout::{self, Aside};
use crate::lock::{self, Lock};
use crate::machine::MachineRecord;
use crate::model::{Cell, CellPlan, Outcome, Plan, SCHEMA, Samples};

/// Says how far a cell of the plan has come.
#[derive(Clone, Debug, PartialEq)]
pub enum CellState {
    /// It was not tried, or the attempt was cut off before anything could be kept.
    Missing,
    /// It ran to its end, or was cut short, and its files are as they were written.
    Done(Box<Cell>),
    /// It failed, or was not tried since another one failed; this is the newest attempt.
    Failed(Box<Cell>),
    /// It was measured, but its files are not what was written.
    Damaged {
        /// The file that is damaged.
        path: PathBuf,
        /// The problem with it.
        reason: String,
    },
}

impl CellState {
    /// Says whether the cell ran to its end, or was left out for good: above a saturated rung, not
    /// since a right was missing, which a resumed run may have.
    fn is_whole(&self) -> bool {
        let Self::Done(cell) = self else {
            return false;
        };
        match &cell.outcome {
            Outcome::LeftOut { .. } => cell.plan.rung.is_some(),
            outcome => outcome.cut_short().is_none(),
        }
    }
}

/// One run on the disk.
///
/// Plan and machine are read once; cells and samples are read whenever they are asked for, so that
/// a run of any length needs the memory of one cell.
#[derive(Debug)]
pub struct RunFolder {
    folder: Folder,
    plan: Plan,
    machine: MachineRecord,
    lock: Option<Lock>,
    /// The names in the folder of cells, in order, once an attempt that was set aside was looked for:
    /// of each cell that is missing.
    names: Mutex<Option<Arc<[String]>>>,
}

impl RunFolder {
    /// Creates a run folder, with its parents, and opens it for writing.
    ///
    /// The folder may exist if it is empty, or if nothing but the beginning of a run is in it that
    /// was cut off before its plan was written.
    ///
    /// # Errors
    ///
    /// [`ResultsError::NotEmpty`], [`ResultsError::NotYours`], [`ResultsError::Locked`] if another
    /// process creates a run there at this moment, [`ResultsError::Plan`] if the cells of the plan
    /// are not numbered from 1 in sequence or a figure is not a number, and the errors of writing.
    pub fn create(path: &Path, plan: &Plan, machine: &MachineRecord) -> Result<Self, ResultsError> {
        const REMEDY: &str = "or choose another folder with --output";
        let head = Head::encode(plan, machine).map_err(|problem| ResultsError::Plan { problem })?;
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |error| ResultsError::io(action, &path, error, REMEDY)
        };
        let (folder, is_new) = Folder::create(path).map_err(failed("created", path))?;
        let refuse_others = || match head::is_vacant(&folder).map_err(failed("read", path))? {
            true => Ok(()),
            false => Err(ResultsError::NotEmpty {
                path: path.to_owned(),
            }),
        };

        refuse_others()?;
        refuse_foreign(&folder, "choose another folder with --output")?;
        let begin = || {
            let lock = Lock::take(&folder, REMEDY)?;
            // Another process may have been faster until the lock was taken.
            refuse_others()?;
            head.write(&folder)
                .map_err(|(file, error)| failed("written", &file)(error))?;
            Ok(lock)
        };
        let lock = begin().inspect_err(|error| {
            if is_new && matches!(error, ResultsError::Io { .. }) {
                let _ = folder.remove(lock::NAME);
                let _ = fs::remove_dir(path);
            }
        })?;
        Ok(Self {
            folder,
            plan: plan.clone(),
            machine: machine.clone(),
            lock: Some(lock),
            names: Mutex::default(),
        })
    }

    /// Opens a run folder for reading, even while another process writes it.
    ///
    /// # Errors
    ///
    /// [`ResultsError::NotARunFolder`], [`ResultsError::OtherSchema`], and
    /// [`ResultsError::Damaged`] if plan or machine are not what was written.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        let (folder, plan, machine) = head::open(path)?;
        Ok(Self {
            folder,
            plan,
            machine,
            lock: None,
            names: Mutex::default(),
        })
    }

    /// Opens a run folder to write what is missing.
    ///
    /// # Errors
    ///
    /// Those of [`RunFolder::open`], [`ResultsError::OtherSchema`] if it began in an older version,
    /// [`ResultsError::NotYours`], and [`ResultsError::Locked`] if another process writes it.
    pub fn open_for_writing(path: &Path) -> Result<Self, ResultsError> {
        let mut run = Self::open(path)?;
        if run.plan.schema != SCHEMA {
            return Err(ResultsError::OtherSchema {
                path: run.folder.path_of(layout::PLAN),
                found: run.plan.schema,
                written_by: Some(run.plan.tare_version),
            });
        }
        refuse_foreign(&run.folder, "measure again into a folder of your own")?;
        run.lock = Some(Lock::take(&run.folder, &run.repeat("then"))?);
        Ok(run)
    }

    /// Returns the newest run folder directly below a folder of runs, by the time at which its plan
    /// was made; `None` if there is none.
    pub fn newest(folder: &Path) -> Option<PathBuf> {
        let entries = fs::read_dir(folder).ok()?.flatten();
        let runs = entries.filter_map(|entry| Some((head::created(&entry.path())?, entry.path())));
        runs.max().map(|(_, path)| path)
    }

    /// Returns the path of the folder, as it was given.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns what the run is to do.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns what the run was made on.
    pub fn machine(&self) -> &MachineRecord {
        &self.machine
    }

    /// Says how far a cell has come; compares the checksums of all its files.
    ///
    /// A cell that the plan does not have is missing.
    pub fn state(&self, id: u32) -> CellState {
        let Ok(plan) = self.cell_plan(id) else {
            return CellState::Missing;
        };
        self.state_of(plan)
            .unwrap_or_else(|Damage { path, reason }| CellState::Damaged { path, reason })
    }

    /// Reads a cell with its samples, each file once. Samples of a cell that is not done are empty.
    ///
    /// A cell that the plan does not have is missing.
    pub fn read(&self, id: u32) -> (CellState, Samples) {
        let Ok(plan) = self.cell_plan(id) else {
            return (CellState::Missing, Samples::default());
        };
        let read = || {
            let cells = self.cells()?;
            match Recorded::read(&cells, &layout::cell(id), plan)? {
                Some(recorded) => {
                    let samples = recorded.samples()?;
                    Ok((CellState::Done(Box::new(recorded.cell)), samples))
                }
                None => Ok((self.not_done(&cells, plan)?, Samples::default())),
            }
        };
        read().unwrap_or_else(|Damage { path, reason }| {
            (CellState::Damaged { path, reason }, Samples::default())
        })
    }

    /// Reads the samples of a cell that is done.
    ///
    /// # Errors
    ///
    /// [`ResultsError::UnknownCell`], [`ResultsError::NotMeasured`], and [`ResultsError::Damaged`]
    /// if a file is not what was written, or contradicts the record of the cell.
    pub fn samples(&self, id: u32) -> Result<Samples, ResultsError> {
        self.cell_plan(id)?;
        let problem = match self.read(id) {
            (CellState::Done(cell), samples) => match cell.outcome.reason() {
                None => return Ok(samples),
                Some(reason) => format!("it was left out ({reason})"),
            },
            (CellState::Damaged { path, reason }, _) => {
                return Err(ResultsError::Damaged {
                    path,
                    reason,
                    remedy: format!(
                        "the cell can be measured again with {}",
                        self.resume_command()
                    ),
                });
            }
            (CellState::Failed(cell), _) => {
                format!("it failed ({})", cell.outcome.reason().unwrap_or_default())
            }
            (CellState::Missing, _) => "it was not measured".to_owned(),
        };
        Err(ResultsError::NotMeasured {
            run: self.path().to_owned(),
            id,
            problem,
            remedy: format!("measure it with {}", self.resume_command()),
        })
    }

    /// Adds cells to the plan, which begin where its own end. Whatever cuts it off, the folder is
    /// one of a whole plan: the old one or the new one.
    ///
    /// # Errors
    ///
    /// [`ResultsError::OpenForReading`], [`ResultsError::Plan`] if the cells are not numbered on in
    /// sequence, and the errors of writing.
    pub fn extend(&mut self, cells: Vec<CellPlan>) -> Result<(), ResultsError> {
        if self.lock.is_none() {
            return Err(ResultsError::OpenForReading {
                path: self.path().to_owned(),
            });
        }
        let mut plan = self.plan.clone();
        plan.cells.extend(cells);
        Head::encode(&plan, &self.machine)
            .map_err(|problem| ResultsError::Plan { problem })?
            .replace(&self.folder)
            .map_err(|(path, error)| {
                ResultsError::io("written", &path, error, self.repeat("then"))
            })?;
        self.plan = plan;
        Ok(())
    }

    /// Returns the cells that are not done or were cut short, in running order: what a resumed run
    /// has to do.
    pub fn missing(&self) -> Vec<&CellPlan> {
        let is_missing = |cell: &&CellPlan| !self.state(cell.id).is_whole();
        self.plan.cells.iter().filter(is_missing).collect()
    }

    /// Writes a cell, with its samples if it is done, so that it is there as a whole or not at all.
    ///
    /// A failed one is kept next to those that failed before. One that was damaged, cut short or
    /// left out is set aside.
    ///
    /// # Errors
    ///
    /// [`ResultsError::OpenForReading`], [`ResultsError::UnknownCell`],
    /// [`ResultsError::CellExists`] if the cell is done already, [`ResultsError::Inconsistent`] if
    /// record and samples contradict each other or the plan, and the errors of writing. The cell is
    /// as before then.
    pub fn write_cell(&self, cell: &Cell, samples: Option<&Samples>) -> Result<(), ResultsError> {
        let id = cell.plan.id;
        let plan = self.cell_plan(id)?;
        if self.lock.is_none() {
            return Err(ResultsError::OpenForReading {
                path: self.path().to_owned(),
            });
        }
        let plan_schema = self.plan.schema;
        let inconsistent = |problem| ResultsError::Inconsistent { id, problem };
        if cell.plan != *plan {
            let problem = "it was made by another plan than the run's".to_owned();
            return Err(inconsistent(problem));
        }
        if cell.schema != plan_schema {
            let problem = format!("its schema is {}, the run's {plan_schema}", cell.schema);
            return Err(inconsistent(problem));
        }
        let files = Files::encode(cell, samples).map_err(inconsistent)?;
        let state = self.state(id);
        if state.is_whole() {
            return Err(ResultsError::CellExists {
                run: self.path().to_owned(),
                id,
            });
        }
        let before = match state {
            CellState::Done(cell) if cell.outcome.record().is_none() => Aside::LeftOut,
            CellState::Done(_) => Aside::CutShort,
            _ => Aside::Damaged,
        };
        self.put(cell, &files, before)
            .map_err(|(path, error)| ResultsError::io("written", &path, error, self.repeat("then")))
    }

    /// Opens the folder for files that are derived from the cells, such as the report: that of the
    /// run, or another one that is new or empty.
    ///
    /// # Errors
    ///
    /// Returns [`ResultsError::NotYours`]; of another folder also [`ResultsError::NotEmpty`] and
    /// the errors of creating it.
    pub fn derived<'a>(&'a self, elsewhere: Option<&Path>) -> Result<Derived<'a>, ResultsError> {
        let run = shell_word(self.path());
        match elsewhere {
            Some(path) => Derived::create(path),
            None => {
                let elsewhere =
                    format!("write the report elsewhere with `tare report {run} --output DIR`");
                refuse_foreign(&self.folder, &elsewhere)?;
                let remedy = format!("then repeat `tare report {run}`, or {elsewhere}");
                Ok(Derived::of_run(&self.folder, remedy))
            }
        }
    }

    fn cell_plan(&self, id: u32) -> Result<&CellPlan, ResultsError> {
        // Cells are numbered from 1 in sequence, as `check_plan` has seen.
        let place = usize::try_from(id).ok().and_then(|id| id.checked_sub(1));
        let plan = place.and_then(|place| self.plan.cells.get(place));
        plan.ok_or_else(|| ResultsError::UnknownCell {
            run: self.path().to_owned(),
            id,
            cells: self.plan.cells.len(),
        })
    }

    fn cells(&self) -> Result<Folder, Damage> {
        let cells = self.folder.folder(layout::CELLS);
        cells.map_err(|error| unreadable(&self.folder, layout::CELLS, &error))
    }

    fn state_of(&self, plan: &CellPlan) -> Result<CellState, Damage> {
        let cells = self.cells()?;
        match Recorded::read(&cells, &layout::cell(plan.id), plan)? {
            Some(recorded) => {
                recorded.check_samples()?;
                Ok(CellState::Done(Box::new(recorded.cell)))
            }
            None => self.not_done(&cells, plan),
        }
    }

    /// Returns the state of a cell without a folder: its newest attempt failed, or there was none.
    fn not_done(&self, cells: &Folder, plan: &CellPlan) -> Result<CellState, Damage> {
        let unread = |error| Damage {
            path: cells.path().to_owned(),
            reason: format!("cannot be read ({error})"),
        };
        let names = {
            let mut known = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            if known.is_none() {
                *known = Some(cells.names().map_err(unread)?.into());
            }
            known.clone().unwrap_or_default()
        };
        let failed = match Aside::Failed.newest(&names, plan.id) {
            Some((_, name)) => Recorded::read(cells, name, plan)?,
            None => None,
        };
        Ok(failed.map_or(CellState::Missing, |failed| {
            CellState::Failed(Box::new(failed.cell))
        }))
    }

    /// Puts the files of a cell that is not done into their place.
    fn put(&self, cell: &Cell, files: &Files, before: Aside) -> Result<(), Unwritten> {
        let id = cell.plan.id;
        let cells = self.folder.folder(layout::CELLS);
        let cells = cells.map_err(at(&self.folder.path_of(layout::CELLS)))?;
        self.names
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let names = cells.names().map_err(at(cells.path()))?;
        for stale in names.iter().filter(|name| layout::is_partial(id, name)) {
            cells.remove(stale).map_err(at(&cells.path_of(stale)))?;
        }
        let partial = layout::partial(id);
        files.prepare(&cells, &partial)?;
        put_in_place(cell, (&cells, &names), &partial, before).inspect_err(|_| {
            // What cannot be removed either is removed by the next attempt at this cell.
            let _ = cells.remove(&partial);
        })
    }

    /// Returns the command that goes on with this run, between backticks.
    pub fn resume_command(&self) -> String {
        let command = self.plan.resume_command();
        format!("`{command} {}`", shell_word(self.path()))
    }

    fn repeat(&self, then: &str) -> String {
        format!("{then} go on with {}", self.resume_command())
    }
}

/// Renames a prepared cell into its place in the folder of cells, which holds `names`.
fn put_in_place(
    cell: &Cell,
    (cells, names): (&Folder, &[String]),
    partial: &str,
    before: Aside,
) -> Result<(), Unwritten> {
    let id = cell.plan.id;
    let rename = |from: &str, to: &str| cells.rename(from, to).map_err(at(&cells.path_of(to)));
    let done = layout::cell(id);
    let is_failed = matches!(
        cell.outcome,
        Outcome::Failed { .. } | Outcome::NotTried { .. }
    );
    // A whole cell is not written again, so what is there is damaged, or was cut short or left out.
    // Of one that was cut short there is more to see than of an attempt that failed.
    let is_kept = is_failed && matches!(before, Aside::CutShort);
    if !is_kept && cells.has(&done).map_err(at(cells.path()))? {
        rename(&done, &before.next(names, id))?;
    }
    match is_failed {
        false => rename(partial, &done)?,
        true => rename(partial, &Aside::Failed.next(names, id))?,
    }
    cells.sync().map_err(at(cells.path()))
}

/// Refuses to write into a folder of another user, who could put anything in the way.
fn refuse_foreign(folder: &Folder, remedy: &str) -> Result<(), ResultsError> {
    match folder.foreign_owner() {
        None => Ok(()),
        Some(owner) => Err(ResultsError::NotYours {
            path: folder.path().to_owned(),
            owner,
            remedy: remedy.to_owned(),
        }),
    }
}
