//! `summary.json`: everything that is derived from a run, for programs.
//!
//! Raw facts stay in the run folder's other files; here are only figures that were computed from
//! them, so that the file can be made anew at any time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::loads::{Daemon, LoadFigure};
use crate::claims::Reproduction;
use crate::notices::{AgentNotice, NotMeasured, Notice};
use crate::places::Place;
use crate::rows::FlatRow;
use crate::verdict::Verdict;

/// The version of the schema of `summary.json`. It is raised when a reader of the old version
/// would misread the new one; fields that are only added do not raise it.
pub const SCHEMA: u32 = 3;

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
    /// CPU that was measured; null of imported results, and where instances run on any.
    pub cpu: Option<u32>,
    /// Cells planned.
    pub planned: u64,
    /// Cells whose figures are here.
    pub done: u64,
    /// The conclusion, in words.
    pub verdict: Verdict,
    /// What bears on whether the figures may be believed, worst first.
    pub alarms: Vec<Notice>,
    /// Achieved rates of the loads, by load and target; empty if none ran.
    pub loads: Vec<LoadFigure>,
    /// Daemons that were running on this machine and may have disturbed.
    pub daemons: Vec<Daemon>,
    /// The targets as they look from inside, as far as they report it.
    pub places: Vec<Place>,
    /// Cells without figures, and why.
    pub not_measured: Vec<NotMeasured>,
    /// Notices of the agents, with the cells concerned.
    pub notices: Vec<AgentNotice>,
    /// The claims of the published study that the run reproduces; null if it reproduces none.
    pub reproduction: Option<Reproduction>,
    /// Every figure of every experiment over all blocks, in one shape; `figures.parquet` has those
    /// of each block, too.
    pub figures: Vec<FlatRow>,
    /// What only an experiment knows to tell, by its name.
    pub stories: BTreeMap<String, Value>,
}
