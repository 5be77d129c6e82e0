//! A study that was read, and the plan that it makes.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use tare_lab::experiment::Conditions;
use tare_lab::parameter::{Value, Values};
use tare_lab::plan::{Frame, Repeated, Starts, assemble, combinations};
use tare_lab::{Experiment, ExperimentError};
use tare_results::model::{CellPlan, Plan, Schedule, SettingPlan, StudyPlan};
use tare_results::target::TargetSpec;

use crate::error::StudyError;
use crate::exclude::Exclusion;
use crate::read;

/// The greatest size of a study in bytes: whatever is larger was not written by hand.
pub const MOST_BYTES: u64 = 1 << 20;

/// Says which variant of a study is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// As it stands.
    #[default]
    Full,
    /// With what its `[quick]` tables say instead.
    Quick,
}

/// A study: what is to be measured, checked and with defaults filled in.
#[derive(Clone, Debug)]
pub struct Study {
    /// Its name, which is also that of its runs' folders.
    pub name: String,
    /// Its subject.
    pub title: Option<String>,
    /// The published study that it reproduces.
    pub reproduces: Option<String>,
    /// Which variant of it this is.
    pub variant: Variant,
    /// Seed of the order; random if None.
    pub seed: Option<u64>,
    /// CPU to measure on; chosen if None.
    pub cpu: Option<u32>,
    /// Kernel settings to change for the time of the run.
    pub settings: Vec<SettingPlan>,
    /// Whether Docker's engine is started for the cells that need it.
    pub start_engine: bool,
    /// The experiments, in the order of the file.
    pub parts: Vec<Part>,
    /// Combinations that are left out.
    pub(crate) exclusions: Vec<Exclusion>,
    /// The file's text.
    pub text: String,
}

/// One experiment of a study.
#[derive(Clone, Debug)]
pub struct Part {
    /// The experiment.
    pub experiment: &'static dyn Experiment,
    /// Its targets.
    pub targets: Vec<TargetSpec>,
    /// Its loads.
    pub loads: Vec<Schedule>,
    /// Runs of each combination.
    pub runs: u32,
    /// Time after which a cell counts as hung; by the estimate if None.
    pub cell_limit: Option<Duration>,
    /// The parameters that are given.
    pub values: Values,
    /// Which of the above, by their key, stand in the experiment itself or in the study.
    pub(crate) given: Vec<&'static str>,
    /// Where it begins in the file.
    pub(crate) place: Range<usize>,
}

impl Study {
    /// Reads a study from a file.
    ///
    /// # Errors
    ///
    /// Returns [`StudyError`] with all problems of the file's contents at once.
    pub fn read(path: &Path, variant: Variant) -> Result<Self, StudyError> {
        let unreadable = |source| StudyError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        // A pipe or a device may have no end.
        let read = file.take(MOST_BYTES + 1).read_to_end(&mut bytes);
        if read.map_err(unreadable)? as u64 > MOST_BYTES {
            return Err(StudyError::TooLarge {
                path: path.to_owned(),
                most: MOST_BYTES,
            });
        }
        let text = String::from_utf8(bytes).map_err(|error| StudyError::NotText {
            path: path.to_owned(),
            at: error.utf8_error().valid_up_to(),
        })?;
        Self::parse(&path.to_string_lossy(), &text, variant)
    }

    /// Reads a study from the text of a file of this name. Both variants are checked, whichever is
    /// asked for.
    ///
    /// # Errors
    ///
    /// Returns [`StudyError::Wrong`] with all that is wrong, or [`StudyError::NoQuick`].
    pub fn parse(file: &str, text: &str, variant: Variant) -> Result<Self, StudyError> {
        read::study(file, text, variant)
    }

    /// Changes how long each phase is, where loads run one after the other. Says whether there are
    /// such.
    pub fn set_phase(&mut self, ns: u64) -> bool {
        let mut any = false;
        for part in &mut self.parts {
            if let Some(name) = part.experiment.phase_parameter()
                && part.values.has(name)
            {
                part.values.give(name, vec![Value::Number(ns)]);
                any = true;
            }
        }
        any
    }

    /// Makes the plan of a run.
    ///
    /// # Errors
    ///
    /// Returns [`ExperimentError`] if there is nothing to run, or more than fits into one run.
    pub fn plan(&self, frame: Frame) -> Result<Plan, ExperimentError> {
        let cells = self.cells(frame.cpu, frame.starts)?;
        let study = StudyPlan {
            name: self.name.clone(),
            reproduces: self.reproduces.clone(),
            quick: self.variant == Variant::Quick,
            text: self.text.clone(),
        };
        let frame = Frame {
            study: Some(study),
            ..frame
        };
        assemble(&cells, frame)
    }

    /// Returns all cells, each with how often it runs.
    ///
    /// # Errors
    ///
    /// Returns [`ExperimentError`] if an experiment does not take its values.
    pub fn cells(&self, cpu: u32, starts: Starts) -> Result<Vec<Repeated>, ExperimentError> {
        let mut all = Vec::new();
        for part in &self.parts {
            let cells = self.cells_of(part, cpu, starts)?;
            all.extend(cells.into_iter().map(|cell| Repeated {
                runs: part.experiment.runs_of(&cell, part.runs),
                cell,
            }));
        }
        Ok(all)
    }

    /// Returns the cells of one part, without those that are left out.
    ///
    /// # Errors
    ///
    /// Returns [`ExperimentError`] if the experiment does not take its values.
    pub fn cells_of(
        &self,
        part: &Part,
        cpu: u32,
        starts: Starts,
    ) -> Result<Vec<CellPlan>, ExperimentError> {
        let mut cells = part.combinations(cpu, starts)?;
        cells.retain(|cell| !self.exclusions.iter().any(|excluded| excluded.covers(cell)));
        Ok(cells)
    }
}

impl Part {
    /// Returns all cells, also those that the study leaves out.
    pub(crate) fn combinations(
        &self,
        cpu: u32,
        starts: Starts,
    ) -> Result<Vec<CellPlan>, ExperimentError> {
        let conditions = Conditions {
            targets: self.targets.clone(),
            loads: self.loads.clone(),
            cpu,
            cpus: None,
            cell_limit: self.cell_limit,
            is_watched: false,
        };
        combinations(self.experiment, &conditions, &self.values, starts)
    }
}
