//! Rows as lines of one flat table, for `figures.parquet`, `figures.csv` and the list in `summary.json`.
//!
//! A line is the figure of one block, or, where the block is empty, the figure over all of them. One file of a run is a
//! part of a data set: the files of a folder of runs are read as one table.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use tare_results::columns::Column;
use tare_results::csv::table;
use tare_results::model::{Labels, Plan};

use super::derive::{Each, Row, Rows};
use super::measure::RunFigure;
use tare_results::target::Group;

/// What all lines of a run have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name of the run's folder.
    pub run: String,
    /// What distinguishes the machine from others, or nothing where that is not known.
    pub machine: Option<String>,
    /// CPU that was measured.
    pub cpu: u32,
    /// When the run was planned.
    pub created: Timestamp,
}

impl Origin {
    /// Takes what a plan says; the run has no name yet.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        Self {
            run: String::new(),
            machine: None,
            cpu: plan.cpu,
            created: plan.created,
        }
    }
}

/// One line: a figure of one block, or over all of them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FlatRow {
    /// Name of the run's folder.
    pub run: String,
    /// When the invocation began that measured it, UTC; null over blocks.
    #[schemars(with = "Option<String>")]
    pub invocation: Option<Timestamp>,
    /// Number of the block; null for the figure over all of them.
    pub block: Option<u32>,
    /// What distinguishes the machine from others; null where that is not known.
    pub machine: Option<String>,
    /// The machine among several of one run; null if there is but one.
    pub node: Option<String>,
    /// CPU that was measured.
    pub cpu: u32,
    /// When the run was planned, UTC.
    #[schemars(with = "String")]
    pub created: Timestamp,
    /// Name of the experiment.
    pub experiment: String,
    /// Target as it is written on the command line.
    pub target: String,
    /// The group that the target belongs to.
    pub group: Group,
    /// The load.
    pub load: String,
    /// What else distinguishes the row.
    pub labels: Labels,
    /// What is measured.
    pub measure: String,
    /// Its unit.
    pub unit: String,
    /// The figure: `mean`, `p99.9`, `share`.
    pub figure: String,
    /// The figure's value; null if it was refused.
    pub value: Option<f64>,
    /// Lower end of its interval; without a method, the lowest of the runs.
    pub low: Option<f64>,
    /// Upper end of its interval; without a method, the highest of the runs.
    pub high: Option<f64>,
    /// Confidence of the interval as a fraction of 1; null if there is none.
    pub level: Option<f64>,
    /// The method of the interval; null if there is none.
    pub method: Option<String>,
    /// Runs that the figure stands for.
    pub runs: u32,
    /// Why a value or an interval is not there; null if both are.
    pub refused: Option<String>,
    /// Whether an emulator executed the measured code.
    pub emulated: bool,
}

impl Rows {
    /// Returns the figures over all blocks, a line for each row.
    #[must_use]
    pub fn over_blocks(&self, origin: &Origin) -> Vec<FlatRow> {
        self.0.iter().map(|row| over_blocks(row, origin)).collect()
    }

    /// Returns all lines: for each row that over all blocks, and then one for each of them.
    #[must_use]
    pub fn flat(&self, origin: &Origin) -> Vec<FlatRow> {
        let lines = self.0.iter().flat_map(|row| {
            let each = row.each.iter().map(|each| of_block(row, each, origin));
            std::iter::once(over_blocks(row, origin)).chain(each)
        });
        lines.collect()
    }
}

fn blank(row: &Row, origin: &Origin) -> FlatRow {
    FlatRow {
        run: origin.run.clone(),
        invocation: None,
        block: None,
        machine: origin.machine.clone(),
        node: None,
        cpu: origin.cpu,
        created: origin.created,
        experiment: row.experiment.clone(),
        target: row.target.clone(),
        group: row.group,
        load: row.load.clone(),
        labels: row.labels.clone(),
        measure: row.measure.id.to_owned(),
        unit: row.unit.to_owned(),
        figure: row.figure.to_string(),
        value: None,
        low: None,
        high: None,
        level: None,
        method: None,
        runs: 1,
        refused: None,
        emulated: row.emulated,
    }
}

fn of_block(row: &Row, each: &Each, origin: &Origin) -> FlatRow {
    let refused = match each.figure {
        RunFigure::Value { .. } => None,
        RunFigure::TooFew { needed, has } => Some(format!("needs {needed} samples, has {has}")),
        RunFigure::Unlisted => Some("needs all samples, the list was full".to_owned()),
    };
    FlatRow {
        invocation: Some(each.invocation),
        block: Some(each.block),
        value: each.figure.value(),
        refused,
        ..blank(row, origin)
    }
}

fn over_blocks(row: &Row, origin: &Origin) -> FlatRow {
    let blank = FlatRow {
        runs: u32::try_from(row.each.len()).unwrap_or(u32::MAX),
        ..blank(row, origin)
    };
    let over = match &row.over {
        Ok(over) => over,
        Err(refused) => {
            let refused = Some(refused.to_string());
            return FlatRow { refused, ..blank };
        }
    };
    let value = Some(over.estimate);
    match &over.interval {
        Ok(interval) => FlatRow {
            value,
            low: Some(interval.low),
            high: Some(interval.high),
            level: Some(interval.level.fraction()),
            method: Some(interval.method.name().to_owned()),
            ..blank
        },
        Err(why) => FlatRow {
            value,
            low: Some(over.lowest),
            high: Some(over.highest),
            refused: Some(why.to_string()),
            ..blank
        },
    }
}

/// Names the columns of the files, in their order.
pub const COLUMNS: [&str; 23] = [
    "run",
    "invocation",
    "block",
    "machine",
    "node",
    "cpu",
    "created",
    "experiment",
    "target",
    "group",
    "load",
    "labels",
    "measure",
    "unit",
    "figure",
    "value",
    "low",
    "high",
    "level",
    "method",
    "runs",
    "refused",
    "emulated",
];

/// Writes lines as CSV with a head line. Labels are words `key=value`; what is not there is empty.
#[must_use]
pub fn csv(lines: &[FlatRow]) -> String {
    let real = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let fields = |line: &FlatRow| {
        [
            line.run.clone(),
            line.invocation
                .map_or_else(String::new, |at| at.to_string()),
            line.block
                .map_or_else(String::new, |block| block.to_string()),
            text(&line.machine),
            text(&line.node),
            line.cpu.to_string(),
            line.created.to_string(),
            line.experiment.clone(),
            line.target.clone(),
            line.group.id().to_owned(),
            line.load.clone(),
            line.labels.to_string(),
            line.measure.clone(),
            line.unit.clone(),
            line.figure.clone(),
            real(line.value),
            real(line.low),
            real(line.high),
            real(line.level),
            text(&line.method),
            line.runs.to_string(),
            text(&line.refused),
            line.emulated.to_string(),
        ]
    };
    table(&COLUMNS.join(","), lines.iter().map(fields))
}

/// Returns lines as the columns of a Parquet file. Labels are a JSON object.
#[must_use]
pub fn columns(lines: &[FlatRow]) -> Vec<(&'static str, Column)> {
    let text = |of: &dyn Fn(&FlatRow) -> String| {
        Column::Text(lines.iter().map(|line| Some(of(line))).collect())
    };
    let maybe =
        |of: &dyn Fn(&FlatRow) -> Option<String>| Column::Text(lines.iter().map(of).collect());
    let real = |of: fn(&FlatRow) -> Option<f64>| Column::Real(lines.iter().map(of).collect());
    let whole = |of: fn(&FlatRow) -> Option<u32>| Column::Whole(lines.iter().map(of).collect());
    let time = |of: fn(&FlatRow) -> Option<Timestamp>| {
        let micros = |line| of(line).map(|at: Timestamp| at.as_microsecond());
        Column::Time(lines.iter().map(micros).collect())
    };
    let json = |line: &FlatRow| serde_json::to_string(&line.labels).unwrap_or_default();
    let columns = [
        text(&|line| line.run.clone()),
        time(|line| line.invocation),
        whole(|line| line.block),
        maybe(&|line| line.machine.clone()),
        maybe(&|line| line.node.clone()),
        whole(|line| Some(line.cpu)),
        time(|line| Some(line.created)),
        text(&|line| line.experiment.clone()),
        text(&|line| line.target.clone()),
        text(&|line| line.group.id().to_owned()),
        text(&|line| line.load.clone()),
        text(&json),
        text(&|line| line.measure.clone()),
        text(&|line| line.unit.clone()),
        text(&|line| line.figure.clone()),
        real(|line| line.value),
        real(|line| line.low),
        real(|line| line.high),
        real(|line| line.level),
        maybe(&|line| line.method.clone()),
        whole(|line| Some(line.runs)),
        maybe(&|line| line.refused.clone()),
        Column::Truth(lines.iter().map(|line| line.emulated).collect()),
    ];
    COLUMNS.into_iter().zip(columns).collect()
}
