//! `summary.json`: everything that is derived from a run, for programs.
//!
//! Raw facts stay in the run folder's other files; here are only figures that were computed from
//! them, so that the file can be made anew at any time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::alarm::Alarm;
use super::loads::{Daemon, LoadFigure};
use super::places::Place;
use crate::claims::Reproduction;
use crate::rows::FlatRow;
use crate::verdict::Verdict;

/// The version of the schema of `summary.json`. It is raised when a reader of the old version
/// would misread the new one; fields that are only added do not raise it.
pub const SCHEMA: u32 = 2;

/// `summary.json`: the figures of a run, derived from its facts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// Version of the schema.
    pub schema: u32,
    /// Version of the tare that derived the figures; the plan names the one that measured.
    pub tare_version: String,
    /// Name of the experiment; of several joined by `+`.
    pub experiment: String,
    /// When the run was planned, UTC.
    #[schemars(with = "String")]
    pub created: Timestamp,
    /// CPU that was measured.
    pub cpu: u32,
    /// Cells planned.
    pub planned: u64,
    /// Cells whose figures are here.
    pub done: u64,
    /// What the run says, in words.
    pub verdict: Verdict,
    /// What bears on whether the figures may be believed, worst first.
    pub alarms: Vec<Alarm>,
    /// What the loads did, by load and target; empty if none ran.
    pub loads: Vec<LoadFigure>,
    /// Daemons that ran on this machine meanwhile and may have disturbed.
    pub daemons: Vec<Daemon>,
    /// What the targets look like from inside, as far as they tell.
    pub places: Vec<Place>,
    /// Cells without figures, and why.
    pub not_measured: Vec<NotMeasured>,
    /// What the agents remarked, with the cells concerned.
    pub notices: Vec<Notice>,
    /// What the run tells of the published study that it reproduces; null if it reproduces none.
    pub reproduction: Option<Reproduction>,
    /// Every figure of every experiment over all blocks, in one shape; `figures.parquet` has those of each block, too.
    pub figures: Vec<FlatRow>,
    /// What only an experiment knows to tell, by its name.
    pub stories: BTreeMap<String, Value>,
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

/// A remark that one or more agents made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Notice {
    /// The remark.
    pub text: String,
    /// The cells in which it was made.
    pub cells: Vec<u32>,
}

impl Notice {
    /// Adds a remark of one cell to a list of remarks.
    pub(crate) fn add(notices: &mut Vec<Self>, text: &str, cell: u32) {
        match notices.iter_mut().find(|notice| notice.text == text) {
            Some(notice) => notice.cells.push(cell),
            None => notices.push(Self {
                text: text.to_owned(),
                cells: vec![cell],
            }),
        }
    }
}
