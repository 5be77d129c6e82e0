//! `summary.json`: everything that is derived from a run, for programs.
//!
//! Raw facts stay in the run folder's other files; here are only figures that were computed from
//! them, so that the file can be made anew at any time.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::FrequencySource;
use tare_results::target::{Group, TargetSpec};

use super::alarm::AlarmFigure;
use super::attribution::Attribution;
use super::combine::CombinedFigures;
use super::counters::CounterFigure;
use super::figures::Time;
use super::gap::GapFigures;
use super::loads::{Daemon, LoadFigure};
use super::places::{Place, Placement};
use super::timed::TimedFigures;
use crate::published::Reproduction;
use crate::rows::FlatRow;
use crate::verdict::Verdict;
use crate::wakeup::WakeupCombination;

/// Is the version of the schema of `summary.json`. It is raised when a reader of the old version
/// would misread the new one; fields that are only added do not raise it.
pub const SCHEMA: u32 = 2;

/// Is `summary.json`: the figures of a run, derived from its facts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// Version of the schema.
    pub schema: u32,
    /// Version of the tare that derived the figures; the plan names the one that measured.
    pub tare_version: String,
    /// Name of the experiment, `noise` or `wakeup`; of several joined by `+`.
    pub experiment: String,
    /// When the run was planned, UTC.
    #[schemars(with = "String")]
    pub created: Timestamp,
    /// CPU that the workloads were pinned to.
    pub cpu: u32,
    /// Cells planned.
    pub planned: u64,
    /// Cells whose figures are here.
    pub done: u64,
    /// What the run says, in words.
    pub verdict: Verdict,
    /// What bears on whether the figures may be believed, worst first.
    pub alarms: Vec<AlarmFigure>,
    /// What is lost below any operating system, and what the operating system adds.
    pub attribution: Attribution,
    /// Noise: figures of each combination over its runs, in the order of the plan.
    pub combinations: Vec<Combination>,
    /// Wake-up latencies of each combination over its runs; empty if none were measured.
    pub wakeups: Vec<WakeupCombination>,
    /// What the loads did, by load and target; empty if none ran.
    pub loads: Vec<LoadFigure>,
    /// Daemons that ran on this machine meanwhile and may have disturbed.
    pub daemons: Vec<Daemon>,
    /// What the targets look like from inside, as far as they tell.
    pub places: Vec<Place>,
    /// Figures of each cell that measured noise, in running order; those of wake-ups are in `wakeups`.
    pub cells: Vec<CellSummary>,
    /// Cells without figures, and why.
    pub not_measured: Vec<NotMeasured>,
    /// What the agents remarked, with the cells concerned.
    pub notices: Vec<Notice>,
    /// What the run tells of the published study that it reproduces; null if it reproduces none.
    pub reproduction: Option<Reproduction>,
    /// Every figure of every experiment over all blocks, in one shape; `figures.parquet` has those of each block, too.
    pub figures: Vec<FlatRow>,
}

/// Holds the figures of cells that differ only in their run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Combination {
    /// Its name: `process prime 22`.
    pub label: String,
    /// Target as it is written on the command line.
    pub target: String,
    /// The group that the target belongs to.
    pub group: Group,
    /// The target with its options.
    #[serde(skip)]
    pub spec: TargetSpec,
    /// CPUs that it was measured on: one, unless the runs were placed differently.
    pub placements: Vec<Placement>,
    /// Load as it is written on the command line.
    pub load: String,
    /// Workload: `prime`, `copy` or `gap`.
    pub workload: String,
    /// Limit of `prime`, elements of `copy`; null for `gap`.
    pub size: Option<u64>,
    /// Timing: `fenced` or `published`.
    pub timing: String,
    /// Whether an emulator executed the measured code.
    pub emulated: bool,
    /// Repetitions asked for in each run; for `gap`, timer reads.
    pub repetitions: u64,
    /// Runs planned.
    pub planned_runs: u64,
    /// Runs whose figures are in it.
    pub runs: u64,
    /// Their cells.
    pub cells: Vec<u32>,
    /// TSC frequency by which its cycles became nanoseconds, that of its first cell; null if it is
    /// not known.
    pub tsc_hz: Option<f64>,
    /// The timer's step, the largest of its cells.
    pub timer_step: Time,
    /// What was counted on the measured CPU: interrupts of the unikernel. Empty elsewhere.
    pub counters: Vec<CounterFigure>,
    /// The figures.
    pub figures: CombinedFigures,
}

/// Holds the figures of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CellSummary {
    /// Number of the cell.
    pub id: u32,
    /// Number of the block (run) that it belongs to.
    pub block: u32,
    /// The combination's name.
    pub label: String,
    /// TSC frequency by which cycles became nanoseconds; null if it is not known.
    pub tsc: Option<Tsc>,
    /// The figures.
    pub figures: CellFigures,
}

/// Holds the figures of a cell, by the kind of its workload.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CellFigures {
    /// Every repetition was timed: `prime`, `copy`.
    Timed(Box<TimedFigures>),
    /// Interruptions were recorded: `gap`.
    Gap(Box<GapFigures>),
}

/// Says how fast a TSC ticks and how that is known.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Tsc {
    /// Frequency in Hz.
    pub hz: f64,
    /// Where the figure comes from.
    pub source: FrequencySource,
    /// How far it may be off in parts per million; null if nothing tells it.
    pub uncertainty_ppm: Option<f64>,
    /// The independent source that agrees with it; null if there is none.
    pub confirmed_by: Option<FrequencySource>,
    /// How it was found and confirmed.
    pub note: String,
    /// Which sources contradict it, and by how much; null if none does.
    pub contradiction: Option<String>,
}

/// Names a cell that has no figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotMeasured {
    /// Number of the cell.
    pub id: u32,
    /// Number of its block (run).
    pub block: u32,
    /// The combination's name.
    pub label: String,
    /// How far it came.
    pub state: State,
    /// Why there are no figures, and what to do.
    pub reason: String,
}

/// Says how far a cell without figures came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It was not tried, or cut off.
    Missing,
    /// It was tried and failed.
    Failed,
    /// It was left out while the run went on, because what came before made it pointless.
    LeftOut,
    /// It was measured, but its files are not what was written.
    Damaged,
    /// Its files are in order, but contradict themselves.
    Contradictory,
}

/// Is a remark that one or more agents made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Notice {
    /// The remark.
    pub text: String,
    /// The cells in which it was made.
    pub cells: Vec<u32>,
}

impl Notice {
    /// Adds a remark of one cell to a list of remarks.
    pub(super) fn add(notices: &mut Vec<Self>, text: &str, cell: u32) {
        match notices.iter_mut().find(|notice| notice.text == text) {
            Some(notice) => notice.cells.push(cell),
            None => notices.push(Self {
                text: text.to_owned(),
                cells: vec![cell],
            }),
        }
    }
}

impl CellFigures {
    /// Returns the figures of a timed workload.
    #[must_use]
    pub fn timed(&self) -> Option<&TimedFigures> {
        match self {
            Self::Timed(figures) => Some(figures),
            Self::Gap(_) => None,
        }
    }

    /// Returns the figures of `gap`.
    #[must_use]
    pub fn gap(&self) -> Option<&GapFigures> {
        match self {
            Self::Gap(figures) => Some(figures),
            Self::Timed(_) => None,
        }
    }
}
