//! Rows as lines of one flat table, for `figures.parquet`, `figures.csv` and the list in
//! `summary.json`.
//!
//! A line is the figure of one block, or, where the block is empty, the figure over all of them.
//! One file of a run is a part of a data set: the files of a folder of runs are read as one table.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use tare_results::columns::Column;
use tare_results::csv::table;
use tare_results::model::{Labels, Plan};

use super::derive::{Each, Refused, Row, Rows};
use super::measure::{Figure, RunFigure};
use tare_results::target::{Group, Kernel};

/// The origin of the lines of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name of the run's folder.
    pub run: String,
    /// What distinguishes the machine from others, or nothing where that is not known.
    pub machine: Option<String>,
    /// CPU that was measured; none where instances run on any.
    pub cpu: Option<u32>,
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
            cpu: plan.measured_cpu(),
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
    /// CPU that was measured; null if it is unknown, or instances run on any.
    pub cpu: Option<u32>,
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
    /// The measure.
    pub measure: String,
    /// Its unit.
    pub unit: String,
    /// The figure: `mean`, `p99.9`, `share`.
    pub figure: String,
    /// The figure's value; null if it was refused.
    pub value: Option<f64>,
    /// Lower end of its interval; without a method, the lowest of the runs; without a value, what
    /// it is at least.
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
        cpu: origin
            .cpu
            .filter(|_| row.group.capabilities().kernel != Kernel::Unknown),
        created: origin.created,
        experiment: row.experiment.clone(),
        target: row.target.clone(),
        group: row.group,
        load: row.load.to_string(),
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
    let figure = row.figure.to_string();
    let refused = match each.figure {
        RunFigure::Value { .. } => None,
        RunFigure::TooFew { needed, has } => Some(Refused::Samples {
            figure,
            needed,
            has,
        }),
        RunFigure::Unlisted => Some(Refused::Unlisted { figure }),
        RunFigure::AtLeast(at_least) => Some(Refused::Beyond { figure, at_least }),
    };
    let refused = refused.map(|refused| refused.to_string());
    let value = each.figure.value();
    FlatRow {
        invocation: Some(each.invocation),
        block: Some(each.block),
        value,
        low: each.figure.at_least().filter(|_| value.is_none()),
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
            return FlatRow {
                low: row.at_least(),
                refused: Some(refused.to_string()),
                ..blank
            };
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
            // A sum of all runs is not among those of each.
            low: Some(over.lowest).filter(|_| row.figure != Figure::Total),
            high: Some(over.highest).filter(|_| row.figure != Figure::Total),
            refused: Some(why.to_string()),
            ..blank
        },
    }
}

/// The type of a column, and how a line fills it.
enum Of {
    Text(fn(&FlatRow) -> Option<String>),
    Real(fn(&FlatRow) -> Option<f64>),
    Whole(fn(&FlatRow) -> Option<u32>),
    Time(fn(&FlatRow) -> Option<Timestamp>),
    Truth(fn(&FlatRow) -> bool),
    Labels,
}

/// The columns of the files, in their order.
const COLUMNS: [(&str, Of); 23] = [
    ("run", Of::Text(|line| Some(line.run.clone()))),
    ("invocation", Of::Time(|line| line.invocation)),
    ("block", Of::Whole(|line| line.block)),
    ("machine", Of::Text(|line| line.machine.clone())),
    ("node", Of::Text(|line| line.node.clone())),
    ("cpu", Of::Whole(|line| line.cpu)),
    ("created", Of::Time(|line| Some(line.created))),
    ("experiment", Of::Text(|line| Some(line.experiment.clone()))),
    ("target", Of::Text(|line| Some(line.target.clone()))),
    (
        "group",
        Of::Text(|line| Some(line.group.capabilities().id.to_owned())),
    ),
    ("load", Of::Text(|line| Some(line.load.clone()))),
    ("labels", Of::Labels),
    ("measure", Of::Text(|line| Some(line.measure.clone()))),
    ("unit", Of::Text(|line| Some(line.unit.clone()))),
    ("figure", Of::Text(|line| Some(line.figure.clone()))),
    ("value", Of::Real(|line| line.value)),
    ("low", Of::Real(|line| line.low)),
    ("high", Of::Real(|line| line.high)),
    ("level", Of::Real(|line| line.level)),
    ("method", Of::Text(|line| line.method.clone())),
    ("runs", Of::Whole(|line| Some(line.runs))),
    ("refused", Of::Text(|line| line.refused.clone())),
    ("emulated", Of::Truth(|line| line.emulated)),
];

/// Writes lines as CSV with a head line. Labels are words `key=value`; missing values are empty.
#[must_use]
pub fn csv(lines: &[FlatRow]) -> String {
    let maybe = |value: Option<String>| value.unwrap_or_default();
    let field = |line: &FlatRow, of: &Of| match of {
        Of::Text(of) => maybe(of(line)),
        Of::Real(of) => maybe(of(line).map(|value| value.to_string())),
        Of::Whole(of) => maybe(of(line).map(|value| value.to_string())),
        Of::Time(of) => maybe(of(line).map(|value| value.to_string())),
        Of::Truth(of) => of(line).to_string(),
        Of::Labels => line.labels.to_string(),
    };
    let fields = lines
        .iter()
        .map(|line| COLUMNS.iter().map(move |(_, of)| field(line, of)));
    table(&COLUMNS.each_ref().map(|(name, _)| *name).join(","), fields)
}

/// Returns lines as the columns of a Parquet file. Labels are a JSON object.
#[must_use]
pub fn columns(lines: &[FlatRow]) -> Vec<(&'static str, Column)> {
    let micros = |at: Timestamp| at.as_microsecond();
    let json = |line: &FlatRow| Some(serde_json::to_string(&line.labels).unwrap_or_default());
    let column = |of: Of| match of {
        Of::Text(of) => Column::Text(lines.iter().map(of).collect()),
        Of::Real(of) => Column::Real(lines.iter().map(of).collect()),
        Of::Whole(of) => Column::Whole(lines.iter().map(of).collect()),
        Of::Time(of) => Column::Time(lines.iter().map(|line| of(line).map(micros)).collect()),
        Of::Truth(of) => Column::Truth(lines.iter().map(of).collect()),
        Of::Labels => Column::Text(lines.iter().map(json).collect()),
    };
    COLUMNS.map(|(name, of)| (name, column(of))).into()
}
