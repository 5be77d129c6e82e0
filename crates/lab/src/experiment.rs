//! What all experiments have in common.
//!
//! An experiment describes its parameters, with their bounds and defaults, as data
//! ([`crate::parameter`]). So the command line, study files, their explanations and the
//! documentation are made of one table.

use std::fmt::Debug;
use std::time::Duration;

use tare_results::model::{CellPlan, Schedule};
use tare_results::target::TargetSpec;
use tare_results::work::Work;
use tare_wire::cpus::Cpus;

use crate::error::ExperimentError;
use crate::estimate::{limit_seconds, limit_seconds_under_load, under_load};
use crate::parameter::{Parameter, Values};
use crate::stage::{Driven, Stage};

/// A protocol: which work on which targets, and with which parameters.
pub trait Experiment: Debug + Sync {
    /// Returns the name of its command, and by which a study calls it.
    fn name(&self) -> &'static str;

    /// Says in a few words what it shows: "how often …".
    fn summary(&self) -> &'static str;

    /// Says in a sentence or two what is measured by default.
    fn without_arguments(&self) -> &'static str;

    /// Lists its parameters, beyond those of every experiment.
    fn parameters(&self) -> &'static [Parameter];

    /// Lists what can be chosen of it, for `--list`; None if there is nothing to choose.
    fn listing(&self) -> Option<String> {
        None
    }

    /// Says whether it needs no agent on its targets: then it takes those that run no plans, too.
    fn without_agent(&self) -> bool {
        false
    }

    /// Returns the conditions that it can't be measured under, by their option and key, each with
    /// the reason.
    fn refuses(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns how often each combination runs by default: as often as needed for the intervals
    /// that the report shows.
    fn default_runs(&self, _values: &Values) -> u32 {
        DEFAULT_RUNS
    }

    /// Returns the CPUs of this machine that the values ask for, of those that may be used; None if
    /// one is to be chosen.
    fn cpus(&self, _values: &Values, _allowed: &Cpus) -> Option<Cpus> {
        None
    }

    /// Returns one cell for each combination, with its estimated duration, not yet numbered.
    ///
    /// # Errors
    ///
    /// Returns [`ExperimentError`] if a value is out of bounds, values contradict each other, or
    /// there would be more cells than a run can have.
    fn combinations(
        &self,
        conditions: &Conditions,
        values: &Values,
    ) -> Result<Vec<CellPlan>, ExperimentError>;

    /// Plays a cell of it: by one instance that measures, unless it needs others.
    ///
    /// # Errors
    ///
    /// Returns why there is no record.
    fn drive(&self, stage: &mut Stage<'_>) -> Driven {
        stage.one()
    }

    /// Says how often a combination runs if `asked` runs are asked for: as often, unless it is
    /// there for another purpose than to be repeated.
    fn runs_of(&self, _cell: &CellPlan, asked: u32) -> u32 {
        asked
    }

    /// Says whether a cell is one of a run of hours, which is judged after each cell.
    fn is_long(&self, _cell: &CellPlan) -> bool {
        false
    }

    /// Makes the work of words that the agent takes, if they are a plan of this experiment.
    fn work(&self, _words: &str) -> Option<Work> {
        None
    }

    /// Says in a sentence what is to be known of a cell before it runs: which samples it lists, for
    /// example.
    fn announces(&self, _cell: &CellPlan) -> Option<String> {
        None
    }

    /// Names the parameter that makes the loads run one after the other in one cell, each for the
    /// given time, so that a load may be repeated. Without it each load has its own cells.
    fn phase_parameter(&self) -> Option<&'static str> {
        None
    }

    /// Says whether the loads run one after the other in one cell.
    fn has_phases(&self, values: &Values) -> bool {
        self.phase_parameter().is_some_and(|name| values.has(name))
    }
}

/// The default number of runs: quantiles and medians have an interval from six on.
pub const DEFAULT_RUNS: u32 = 6;

/// The conditions under which an experiment runs: what holds for every one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// Targets.
    pub targets: Vec<TargetSpec>,
    /// Loads.
    pub loads: Vec<Schedule>,
    /// CPU that the workloads are pinned to.
    pub cpu: u32,
    /// CPUs that [`Experiment::cpus`] returned.
    pub cpus: Option<Cpus>,
    /// Time after which a cell counts as hung; by the estimate if None.
    pub cell_limit: Option<Duration>,
    /// Whether somebody watches, who is shown the current result.
    pub is_watched: bool,
}

impl Conditions {
    /// Returns a cell under a load, with estimate and limit. `quiet_seconds` is its duration
    /// without.
    pub fn under(&self, load: &Schedule, cell: CellPlan, quiet_seconds: f64) -> CellPlan {
        let (estimate_seconds, default_limit) = match load.is_idle() {
            true => (quiet_seconds, limit_seconds(quiet_seconds)),
            false => {
                let seconds = under_load(quiet_seconds);
                (seconds, limit_seconds_under_load(seconds))
            }
        };
        let limit = self.cell_limit.map(|limit| limit.as_secs_f64());
        CellPlan {
            load: load.clone(),
            estimate_seconds,
            limit_seconds: limit.unwrap_or(default_limit),
            ..cell
        }
    }
}
