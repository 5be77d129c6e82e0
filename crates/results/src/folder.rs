//! The run folder: created with a plan, filled cell by cell, never written over.
//!
//! A cell is there as a whole or not at all, so whatever ends a run, the cells before it are kept
//! and only the others are to be measured again. Nothing raw is ever replaced: an attempt that
//! failed stays beside the cell, and a cell that was damaged later or was cut short is set aside, not deleted.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cell::{Damage, Files, Recorded};
use crate::disk::{self, Unwritten, at};
use crate::error::{ResultsError, shell_word};
use crate::head::{self, Head};
use crate::layout::{self, Aside};
use crate::lock::{self, Lock};
use crate::machine::MachineRecord;
use crate::model::{Cell, CellPlan, Outcome, Plan, Samples};
use crate::sums;

/// Says how far a cell of the plan has come.
#[derive(Clone, Debug, PartialEq)]
pub enum CellState {
    /// It was not tried, or the attempt was cut off before anything could be kept.
    Missing,
    /// It ran to its end, or was cut short, and its files are as they were written.
    Done(Box<Cell>),
    /// It was tried and failed; this is the newest attempt.
    Failed(Box<Cell>),
    /// It was measured, but its files are not what was written.
    Damaged {
        /// The file that is damaged.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl CellState {
    /// Says whether the cell ran to its end, or was left out for good.
    fn is_whole(&self) -> bool {
        matches!(self, Self::Done(cell) if cell.outcome.cut_short().is_none())
    }
}

/// One run on the disk.
///
/// Plan and machine are read once; cells and samples are read whenever they are asked for, so that
/// a run of any length needs the memory of one cell.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    plan: Plan,
    machine: MachineRecord,
    lock: Option<Lock>,
}

impl RunFolder {
    /// Creates a run folder, with its parents, and opens it for writing.
    ///
    /// The folder may exist if it is empty, or if nothing but the beginning of a run is in it that
    /// was cut off before its plan was written.
    ///
    /// # Errors
    ///
    /// [`ResultsError::NotEmpty`], [`ResultsError::Locked`] if another process creates a run there
    /// at this moment, [`ResultsError::Plan`] if the cells of the plan are not numbered from 1 in
    /// sequence or a figure is not a number, and the errors of writing.
    pub fn create(path: &Path, plan: &Plan, machine: &MachineRecord) -> Result<Self, ResultsError> {
        const REMEDY: &str = "or choose another folder with --output";
        let head = Head::encode(plan, machine).map_err(|problem| ResultsError::Plan { problem })?;
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |error| ResultsError::io(action, &path, error, REMEDY)
        };
        let refuse_others = || match head::is_vacant(path).map_err(failed("read", path))? {
            true => Ok(()),
            false => Err(ResultsError::NotEmpty {
                path: path.to_owned(),
            }),
        };

        let is_new = !path.exists();
        fs::create_dir_all(path).map_err(failed("created", path))?;
        refuse_others()?;
        let begin = || {
            let lock = Lock::take(path, REMEDY)?;
            // Another process may have been faster until the lock was taken.
            refuse_others()?;
            head.write(path)
                .map_err(|(file, error)| failed("written", &file)(error))?;
            Ok(lock)
        };
        let lock = begin().inspect_err(|error| {
            if is_new && matches!(error, ResultsError::Io { .. }) {
                let _ = fs::remove_file(path.join(lock::NAME));
                let _ = fs::remove_dir(path);
            }
        })?;
        Ok(Self {
            path: path.to_owned(),
            plan: plan.clone(),
            machine: machine.clone(),
            lock: Some(lock),
        })
    }

    /// Opens a run folder for reading, even while another process writes it.
    ///
    /// # Errors
    ///
    /// [`ResultsError::NotARunFolder`], [`ResultsError::OtherSchema`], and
    /// [`ResultsError::Damaged`] if plan or machine are not what was written.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        let (plan, machine) = head::read(path)?;
        Ok(Self {
            path: path.to_owned(),
            plan,
            machine,
            lock: None,
        })
    }

    /// Opens a run folder to write what is missing.
    ///
    /// # Errors
    ///
    /// Those of [`RunFolder::open`], and [`ResultsError::Locked`] if another process writes it.
    pub fn open_for_writing(path: &Path) -> Result<Self, ResultsError> {
        let mut run = Self::open(path)?;
        run.lock = Some(Lock::take(path, &run.repeat("then"))?);
        Ok(run)
    }

    /// Returns the newest run folder directly below a folder of runs, by the time at which its plan
    /// was made; `None` if there is none.
    #[must_use]
    pub fn newest(folder: &Path) -> Option<PathBuf> {
        let entries = fs::read_dir(folder).ok()?.flatten();
        let runs = entries.filter_map(|entry| Some((head::created(&entry.path())?, entry.path())));
        runs.max().map(|(_, path)| path)
    }

    /// Returns the path of the folder, as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what the run is to do.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns what the run was made on.
    #[must_use]
    pub fn machine(&self) -> &MachineRecord {
        &self.machine
    }

    /// Says how far a cell has come; compares the checksums of all its files.
    ///
    /// A cell that the plan does not have is missing.
    #[must_use]
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
    #[must_use]
    pub fn read(&self, id: u32) -> (CellState, Samples) {
        let Ok(plan) = self.cell_plan(id) else {
            return (CellState::Missing, Samples::default());
        };
        let read = || match Recorded::read(layout::cell(&self.path, id), plan)? {
            Some(recorded) => {
                let samples = recorded.samples()?;
                Ok((CellState::Done(Box::new(recorded.cell)), samples))
            }
            None => Ok((self.not_done(plan)?, Samples::default())),
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
                    remedy: format!("the cell can be measured again with {}", self.resume()),
                });
            }
            (CellState::Failed(cell), _) => {
                format!("it failed ({})", cell.outcome.reason().unwrap_or_default())
            }
            (CellState::Missing, _) => "it was not measured".to_owned(),
        };
        Err(ResultsError::NotMeasured {
            run: self.path.clone(),
            id,
            problem,
            remedy: format!("measure it with {}", self.resume()),
        })
    }

    /// Adds cells to the plan, which begin where its own end. Whatever cuts it off, the folder is one of a whole plan: the
    /// old one or the new one.
    ///
    /// # Errors
    ///
    /// [`ResultsError::OpenForReading`], [`ResultsError::Plan`] if the cells are not numbered on in sequence, and the errors
    /// of writing.
    pub fn extend(&mut self, cells: Vec<CellPlan>) -> Result<(), ResultsError> {
        if self.lock.is_none() {
            return Err(ResultsError::OpenForReading {
                path: self.path.clone(),
            });
        }
        let mut plan = self.plan.clone();
        plan.cells.extend(cells);
        Head::encode(&plan, &self.machine)
            .map_err(|problem| ResultsError::Plan { problem })?
            .replace(&self.path)
            .map_err(|(path, error)| {
                ResultsError::io("written", &path, error, self.repeat("then"))
            })?;
        self.plan = plan;
        Ok(())
    }

    /// Returns the cells that are not done or were cut short, in running order: what a resumed run has to do.
    #[must_use]
    pub fn missing(&self) -> Vec<&CellPlan> {
        let is_missing = |cell: &&CellPlan| !self.state(cell.id).is_whole();
        self.plan.cells.iter().filter(is_missing).collect()
    }

    /// Writes a cell, with its samples if it is done, so that it is there as a whole or not at all.
    ///
    /// A failed one is kept beside those that failed before. One that was damaged or cut short is set aside.
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
                path: self.path.clone(),
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
                run: self.path.clone(),
                id,
            });
        }
        let before = match state {
            CellState::Done(_) => Aside::CutShort,
            _ => Aside::Damaged,
        };
        self.put(cell, &files, before)
            .map_err(|(path, error)| ResultsError::io("written", &path, error, self.repeat("then")))
    }

    /// Writes a file that is derived from the cells, such as the report, replacing an older one as
    /// a whole.
    ///
    /// # Errors
    ///
    /// [`ResultsError::DerivedName`] unless it is a plain file name that no raw file has, and the
    /// errors of writing.
    pub fn write_derived(&self, name: &str, content: &[u8]) -> Result<(), ResultsError> {
        const RAW: [&str; 5] = [
            layout::PLAN,
            layout::MACHINE,
            layout::CELLS,
            sums::NAME,
            lock::NAME,
        ];
        let is_plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']);
        if !is_plain || RAW.contains(&name) {
            return Err(ResultsError::DerivedName {
                name: name.to_owned(),
            });
        }
        let path = self.path.join(name);
        disk::replace(&path, &layout::scratch(&self.path, name), content).map_err(|error| {
            let run = shell_word(&self.path);
            let remedy =
                format!("then repeat the command; `tare report {run}` makes it from the cells");
            ResultsError::io("written", &path, error, remedy)
        })
    }

    fn cell_plan(&self, id: u32) -> Result<&CellPlan, ResultsError> {
        // Cells are numbered from 1 in sequence, as `check_plan` has seen.
        let place = usize::try_from(id).ok().and_then(|id| id.checked_sub(1));
        let plan = place.and_then(|place| self.plan.cells.get(place));
        plan.ok_or_else(|| ResultsError::UnknownCell {
            run: self.path.clone(),
            id,
            cells: self.plan.cells.len(),
        })
    }

    fn state_of(&self, plan: &CellPlan) -> Result<CellState, Damage> {
        let folder = layout::cell(&self.path, plan.id);
        match Recorded::read(folder, plan)? {
            Some(recorded) => {
                recorded.check_samples()?;
                Ok(CellState::Done(Box::new(recorded.cell)))
            }
            None => self.not_done(plan),
        }
    }

    /// Says how far a cell has come that has no folder of its own: its newest attempt failed, or there was none.
    fn not_done(&self, plan: &CellPlan) -> Result<CellState, Damage> {
        let newest = Aside::Failed
            .newest(&self.path, plan.id)
            .map_err(|error| Damage {
                path: self.path.join(layout::CELLS),
                reason: format!("cannot be read ({error})"),
            })?;
        let failed = match newest {
            Some((_, folder)) => Recorded::read(folder, plan)?,
            None => None,
        };
        Ok(failed.map_or(CellState::Missing, |failed| {
            CellState::Failed(Box::new(failed.cell))
        }))
    }

    /// Puts the files of a cell that is not done into their place.
    fn put(&self, cell: &Cell, files: &Files, before: Aside) -> Result<(), Unwritten> {
        let (run, id) = (self.path.as_path(), cell.plan.id);
        for stale in layout::partials(run, id).map_err(at(&run.join(layout::CELLS)))? {
            fs::remove_dir_all(&stale).map_err(at(&stale))?;
        }
        let partial = layout::partial(run, id);
        files.prepare(&partial)?;
        self.put_in_place(cell, &partial, before).inspect_err(|_| {
            // What cannot be removed either is removed by the next attempt at this cell.
            let _ = fs::remove_dir_all(&partial);
        })
    }

    fn put_in_place(&self, cell: &Cell, partial: &Path, before: Aside) -> Result<(), Unwritten> {
        let (run, id) = (self.path.as_path(), cell.plan.id);
        let cells = run.join(layout::CELLS);
        let aside = |why: Aside| why.next(run, id).map_err(at(&cells));
        let rename = |from: &Path, to: &Path| fs::rename(from, to).map_err(at(to));
        let done = layout::cell(run, id);
        let is_failed = matches!(cell.outcome, Outcome::Failed { .. });
        // A whole cell is not written again, so what is there is damaged or was cut short; of the latter there is more to
        // see than of an attempt that failed.
        let is_kept = is_failed && matches!(before, Aside::CutShort);
        if !is_kept && fs::exists(&done).map_err(at(&cells))? {
            rename(&done, &aside(before)?)?;
        }
        match cell.outcome {
            Outcome::Done { .. } | Outcome::LeftOut { .. } => rename(partial, &done)?,
            Outcome::Failed { .. } => rename(partial, &aside(Aside::Failed)?)?,
        }
        disk::sync_folder(&cells).map_err(at(&cells))
    }

    fn resume(&self) -> String {
        let command = self.plan.resume_command();
        format!("`{command} {}`", shell_word(&self.path))
    }

    fn repeat(&self, then: &str) -> String {
        format!("{then} go on with {}", self.resume())
    }
}
