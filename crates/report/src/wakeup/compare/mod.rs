//! Two runs of wake-ups against each other: which latencies are shifted, by how much, and how sure that is.
//!
//! A run gives one value of each figure per block. The shift of a figure is Hodges and Lehmann's estimate, its interval
//! and its p-value come from the ranks of the blocks; neither assumes how maxima and tail quantiles are distributed.
//! Of many figures in a table some differ by chance: a figure is said to differ only if its p-value,
//! adjusted by Holm's method over the whole table, is at most [`SIGNIFICANCE`].
//!
//! The latencies are response latencies, in which missed activations count.
//!
//! Where an emulator counted instructions there is no chance: a run gives the same latencies again. If all blocks
//! of both runs agree among themselves, any difference between the runs is one.

mod pair;
mod rows;

use schemars::JsonSchema;
use serde::Serialize;
use tare_stats::{holm, runs_needed};
use thiserror::Error;

use super::WakeupCombination;
use crate::analysis::{Analysis, Interval};
use pair::{Pair, pairs};
pub(crate) use rows::written;

/// Is the version of the schema of a comparison. It is raised when a reader of the old version would misread the
/// new one.
pub const SCHEMA: u32 = 1;

/// Is the probability that a table of two alike runs says of any figure that it differs.
pub const SIGNIFICANCE: f64 = 0.05;

/// Says why two runs cannot be compared.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CompareError {
    /// A run has nothing that can be compared.
    #[error(
        "the {which} run ({command}) has no wake-ups that ran undisturbed by tracing; `tare compare` compares those of \
         `tare wakeup` and of studies with them"
    )]
    NoWakeups {
        /// Whether it is the `first` or the `second`.
        which: &'static str,
        /// The command that made it.
        command: String,
    },
    /// The runs have nothing in common.
    #[error(
        "the runs have no target, load and plan in common: the first has {first}; the second has {second}. Measure the \
         same in both"
    )]
    NothingInCommon {
        /// What the first run has.
        first: String,
        /// What the second run has.
        second: String,
    },
}

/// Says how two runs differ.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Version of the schema.
    pub schema: u32,
    /// Name of the experiment: `wakeup`.
    pub experiment: String,
    /// The two runs.
    pub runs: [RunIdentity; 2],
    /// In what the runs differ beside their figures: machine, kernels, CPU.
    pub differences: Vec<Difference>,
    /// The figures, in the order of the report.
    pub rows: Vec<ShiftRow>,
    /// What only one of the runs has.
    pub unmatched: Vec<Unmatched>,
    /// How many figures were tested; p-values are adjusted for so many.
    pub tests: u64,
    /// How many runs each side needs so that one figure of that many can be said to differ; null if more than 60.
    pub runs_needed: Option<u64>,
    /// Whether any figure could be said to differ, with as many runs as there are.
    pub can_tell: bool,
    /// The conclusion, in words.
    pub verdict: Vec<String>,
}

/// Names a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunIdentity {
    /// When it was planned, UTC.
    pub created: String,
    /// Version of tare that measured it.
    pub tare_version: String,
    /// The command.
    pub command: String,
}

/// Is something that two runs do not have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// What differs: `processor`, for example.
    pub what: String,
    /// What the first run has.
    pub first: String,
    /// What the second run has.
    pub second: String,
}

/// Is a combination that only one of the runs has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unmatched {
    /// The run: 1 or 2.
    pub run: u32,
    /// The combination's name.
    pub label: String,
}

/// Is a figure that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Median response latency, in ns.
    Median,
    /// Its 99th percentile, in ns.
    P99,
    /// Its 99.9th percentile, in ns.
    P999,
    /// The longest, in ns.
    Max,
    /// Share of the activations that were missed.
    MissedShare,
}

impl Figure {
    /// Lists all figures.
    pub const ALL: [Self; 5] = [
        Self::Median,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::MissedShare,
    ];

    /// Names the figure as tables do.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "p50",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
            Self::MissedShare => "missed",
        }
    }
}

/// Compares one figure of one phase. Latencies are in ns, shares are of 1.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ShiftRow {
    /// The place in the first run.
    pub first_target: String,
    /// The place in the second run: another one only if each run has but one.
    pub second_target: String,
    /// The load, or schedule of loads.
    pub load: String,
    /// Number of the phase, from 0.
    pub phase: u32,
    /// The load of that phase.
    pub phase_load: String,
    /// The figure.
    pub figure: Figure,
    /// Median over the first run's blocks; null if a block has too few latencies for the figure.
    pub first: Option<f64>,
    /// Median over the second run's blocks; null likewise.
    pub second: Option<f64>,
    /// Blocks of each.
    pub blocks: [u64; 2],
    /// By how much the second run's is above the first run's: Hodges and Lehmann's estimate; null if there is none.
    pub shift: Option<f64>,
    /// Its interval at 95 %, by itself; null if there are too few blocks, or nothing is left to chance.
    pub interval: Option<Interval>,
    /// Probability of as large a difference of ranks by chance; null if it was not tested.
    pub p_value: Option<f64>,
    /// The same, adjusted by Holm's method over the table.
    pub adjusted_p_value: Option<f64>,
    /// Whether both runs repeat themselves exactly, so that any difference is one.
    pub exact: bool,
    /// Whether it is said to differ.
    pub differs: bool,
    /// Whether it differs and the second run's is greater, which is worse.
    pub is_worse: bool,
    /// Why something is missing; null if nothing is.
    pub refused: Option<String>,
}

/// Compares two runs.
///
/// # Errors
///
/// [`CompareError`] if a run has no wake-ups, or the runs have nothing in common.
pub fn compare(first: &Analysis, second: &Analysis) -> Result<Comparison, CompareError> {
    let plain = |analysis: &'_ Analysis, which: &'static str| {
        if analysis.summary().wakeups.iter().any(|c| !c.traced) {
            return Ok(());
        }
        let command = analysis.plan().command.join(" ");
        Err(CompareError::NoWakeups { which, command })
    };
    plain(first, "first")?;
    plain(second, "second")?;
    let (pairs, unmatched) = pairs(&first.summary().wakeups, &second.summary().wakeups);
    if pairs.is_empty() {
        let labels = |analysis: &Analysis| {
            let wakeups = analysis.summary().wakeups.iter().filter(|c| !c.traced);
            wakeups
                .map(|c| c.label.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        return Err(CompareError::NothingInCommon {
            first: labels(first),
            second: labels(second),
        });
    }
    let mut rows: Vec<ShiftRow> = pairs.iter().flat_map(rows::of).collect();
    let p_values: Vec<f64> = rows.iter().filter_map(|row| row.p_value).collect();
    let mut adjusted = holm(&p_values).into_iter();
    for row in rows.iter_mut().filter(|row| row.p_value.is_some()) {
        row.adjusted_p_value = adjusted.next();
        row.differs = row.adjusted_p_value.is_some_and(|p| p <= SIGNIFICANCE);
    }
    for row in &mut rows {
        row.is_worse = row.differs && row.shift.is_some_and(|shift| shift > 0.0);
    }
    let tests = p_values.len() as u64;
    let least = |row: &ShiftRow| tare_stats::least_p_value(row.blocks[0], row.blocks[1]);
    let can_tell = rows.iter().any(|row| {
        row.exact || (row.p_value.is_some() && least(row) * tests as f64 <= SIGNIFICANCE)
    });
    let mut comparison = Comparison {
        schema: SCHEMA,
        experiment: "wakeup".to_owned(),
        runs: [identity(first), identity(second)],
        differences: differences(first, second, &pairs),
        rows,
        unmatched,
        tests,
        runs_needed: runs_needed(SIGNIFICANCE, tests),
        can_tell,
        verdict: Vec::new(),
    };
    comparison.verdict = rows::verdict(&comparison);
    Ok(comparison)
}

impl Comparison {
    /// Says whether the second run is worse in some figure.
    #[must_use]
    pub fn has_regression(&self) -> bool {
        self.rows.iter().any(|row| row.is_worse)
    }
}

fn identity(analysis: &Analysis) -> RunIdentity {
    let plan = analysis.plan();
    RunIdentity {
        created: plan.created.to_string(),
        tare_version: plan.tare_version.clone(),
        command: plan.command.join(" "),
    }
}

/// Finds in what two runs differ that bears on their figures.
fn differences(first: &Analysis, second: &Analysis, pairs: &[Pair<'_>]) -> Vec<Difference> {
    let mut found: Vec<Difference> = Vec::new();
    let mut add = |what: String, first: String, second: String| {
        let difference = Difference {
            what,
            first,
            second,
        };
        if difference.first != difference.second && !found.contains(&difference) {
            found.push(difference);
        }
    };
    let described = |analysis: &Analysis, of: fn(&tare_host::Machine) -> String| {
        let machine = analysis.machine();
        machine.map_or_else(|| "not described".to_owned(), |record| of(&record.machine))
    };
    type Of = fn(&tare_host::Machine) -> String;
    let of_machine: [(&str, Of); 5] = [
        ("processor", |m| m.processor.model_name.to_string()),
        ("microcode", |m| m.processor.microcode.to_string()),
        ("kernel of the machine", |m| m.kernel.release.to_string()),
        ("its preemption model", |m| {
            m.kernel.preemption.model.to_string()
        }),
        ("clock source", |m| m.clock.current.to_string()),
    ];
    for (what, of) in of_machine {
        add(what.to_owned(), described(first, of), described(second, of));
    }
    let cpu = |analysis: &Analysis| analysis.summary().cpu.to_string();
    add("measured CPU".to_owned(), cpu(first), cpu(second));
    let version = |analysis: &Analysis| analysis.plan().tare_version.clone();
    add(
        "version of tare".to_owned(),
        version(first),
        version(second),
    );
    for pair in pairs {
        let told = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "not told".to_owned());
        let (a, b) = (pair.first, pair.second);
        let mut of_place = |what: &str, of: &dyn Fn(&WakeupCombination) -> String| {
            add(format!("{what} of {}", a.target), of(a), of(b));
        };
        of_place("name", &|c| c.target.clone());
        of_place("kernel", &|c| told(&c.kernel));
        of_place("preemption model", &|c| told(&c.preemption));
        of_place("priority", &|c| c.priority.to_string());
        of_place("execution", &|c| {
            if c.emulated {
                "emulated"
            } else {
                "by the processor"
            }
            .to_owned()
        });
    }
    found
}
