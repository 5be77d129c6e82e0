//! Two sides against each other: which rows differ, by how much, with intervals.
//!
//! The unit is the invocation: runs of one invocation share their minute, so they say what another
//! run of that minute would be, not what the system is. Each side has the invocations of its
//! folders, best taken in alternation; a folder that was resumed holds several. All rows are judged
//! together ([`tare_stats::compare_groups`]), so that of a table without any difference one in
//! twenty says that there is one.
//!
//! A single invocation against another is compared by their runs, and says that these two differ.
//! Two conditions within one invocation (its targets, its loads) met the same minutes in turn, so
//! that their runs are the unit.
//!
//! Where an emulator counted instructions there is no chance: if all values of both sides agree
//! among themselves, a difference between the sides needs no test. Its cause is another question.

mod context;
mod gate;
mod loads;
mod pair;
mod sides;
mod verdict;
mod within;

use std::collections::BTreeSet;

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use tare_results::model::{Labels, Schedule};
use tare_stats::{
    Difference, Kind, Level, NoInterval, compare_groups, invocations_needed, least_p_value,
    over_runs,
};
use thiserror::Error;

pub use gate::{ShiftGate, ShiftJudgement};
pub use sides::{ComparedRun, RunIdentity, Side, Unmatched, by as sides_by};
pub use within::targets;

use crate::format::Numbers;
use crate::rows::derive::Refused;
use crate::rows::{Better, Figure, Places, Row, written};
use crate::run::Run;
use crate::words::NONE;
use pair::{Figures, Pair};
use sides::Matched;

/// The version of the schema of a comparison. It is raised when a reader of the old version would
/// misread the new one.
pub const SCHEMA: u32 = 3;

/// The probability that a table of two alike sides says of any figure that it differs.
pub const SIGNIFICANCE: f64 = 0.05;

/// The seed of the divisions that are drawn where there are too many to try all: a comparison gives
/// the same again.
const SEED: u64 = 5;

/// The reason why two sides can't be compared.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CompareError {
    /// A side has no figures.
    #[error("{run} has no figures: measure it, or continue it with `--resume`")]
    Empty {
        /// The run's folder.
        run: String,
    },
    /// The sides have nothing in common.
    #[error(
        "the two sides have no target, load and measure in common: the first has {base}; the second has {new}. Measure the \
         same in both"
    )]
    NothingInCommon {
        /// The places of the first side.
        base: String,
        /// The places of the second side.
        new: String,
    },
    /// They are of different experiments.
    #[error("{base} and {new} can't be compared: give two runs of one experiment")]
    Experiments {
        /// Those of the first side.
        base: String,
        /// Those of the second side.
        new: String,
    },
    /// They are results of tools that measure different things.
    #[error(
        "{base} and {new} can't be compared: they measure different things. Give results of one tool"
    )]
    Tools {
        /// That of the first side.
        base: String,
        /// That of the second side.
        new: String,
    },
    /// There is but one target or load.
    #[error("the run has only one {of}, {only}: there is nothing to compare within it")]
    OnlyOne {
        /// `target` or `load`.
        of: &'static str,
        /// The one.
        only: String,
    },
    /// The statistics refused.
    #[error("the figures can't be compared: {why}")]
    Figures {
        /// Why.
        why: String,
    },
}

/// The unit of independent repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompareUnit {
    /// Invocations: a difference is one of the systems.
    Invocations,
    /// Runs of one invocation each: a difference is one of these two runs.
    TwoRuns,
    /// Runs of conditions that met the same minutes in turn.
    Conditions,
}

/// What `tare compare --json` prints: one comparison, or with `--by` one for each pair of
/// conditions.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparisons {
    /// Version of the schema.
    pub schema: u32,
    /// The comparisons; each is judged by itself.
    pub comparisons: Vec<Comparison>,
}

/// How two sides differ.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// What BASE and NEW are called.
    pub names: [String; 2],
    /// The runs of BASE and NEW.
    pub runs: [Vec<RunIdentity>; 2],
    /// The unit of independent repetitions.
    pub unit: CompareUnit,
    /// Repetitions of BASE and NEW.
    pub repetitions: [u64; 2],
    /// Differences of the sides besides their figures: machine, kernels, CPU.
    pub differences: Vec<SideDifference>,
    /// The figures, in the order of the report.
    pub rows: Vec<ComparedRow>,
    /// What only one of the sides has.
    pub unmatched: Vec<Unmatched>,
    /// The fewest repetitions of BASE and NEW of which a figure is.
    #[serde(skip)]
    pub(crate) fewest: [u64; 2],
    /// How many figures were judged together.
    pub tests: u64,
    /// How many repetitions each side needs so that any figure can be said to differ.
    pub needed: u64,
    /// Whether any figure could be said to differ, with as many as there are.
    pub can_tell: bool,
    /// The conclusion, in words.
    pub verdict: Vec<String>,
    /// What loads did more on one side, in words.
    #[serde(skip)]
    pub(crate) more_work: Vec<String>,
}

/// Something that the sides do not have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub struct SideDifference {
    /// What differs: `processor`, for example.
    pub what: String,
    /// What BASE has.
    pub base: String,
    /// What NEW has.
    pub new: String,
}

/// One figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparedRow {
    /// The experiment.
    pub experiment: String,
    /// The target of BASE.
    pub base_target: String,
    /// The target of NEW: another one only if targets are compared, or each side has but one.
    pub new_target: String,
    /// The load of BASE.
    #[schemars(with = "String")]
    pub base_load: Schedule,
    /// The load of NEW: another one only if loads are compared.
    #[schemars(with = "String")]
    pub new_load: Schedule,
    /// What else distinguishes the row.
    pub labels: Labels,
    /// The measure.
    pub measure: String,
    /// The figure.
    pub figure: String,
    /// The unit of its values.
    pub unit: String,
    /// Median over the repetitions of BASE; null if one of them lacks the figure.
    pub base: Option<f64>,
    /// Median over the repetitions of NEW; likewise.
    pub new: Option<f64>,
    /// By how much NEW is above BASE: Hodges and Lehmann's estimate, the median of all differences
    /// between a repetition of NEW and one of BASE. It need not be the difference of the medians;
    /// null if the figure was not judged.
    pub shift: Option<f64>,
    /// Lower end of the shift's interval at 95 %, by itself; null if there are too few repetitions.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The shift as a share of BASE; null where that is 0.
    pub relative: Option<f64>,
    /// Probability of as large a difference in this figure alone, if the sides do not differ.
    pub p_value: Option<f64>,
    /// The same, adjusted over all figures.
    pub adjusted_p_value: Option<f64>,
    /// Whether both sides repeat themselves exactly, so that no difference is chance.
    pub exact: bool,
    /// Whether it differs: of the systems, or of these two runs, by the comparison's unit.
    pub differs: bool,
    /// Whether it differs and NEW is worse.
    pub is_worse: bool,
    /// Why something is missing; null if nothing is.
    pub refused: Option<String>,
    /// The measure above whose figure is the same in all repetitions, as that of `latency` is where
    /// no activation was missed: it is judged once, there. Null if there is none.
    pub same_as: Option<String>,
    /// Whether it is refused since there are too few repetitions.
    #[serde(skip)]
    pub is_of_few: bool,
    /// How many times as long a run of NEW measured as one of BASE, by their medians; `None` if
    /// that is unknown.
    #[serde(skip)]
    pub times_as_long: Option<f64>,
    /// The row of NEW, by which gates know it.
    #[serde(skip)]
    pub(crate) of: Row,
    /// The row of BASE.
    #[serde(skip)]
    pub(crate) base_row: Row,
}

/// Compares two sides.
///
/// # Errors
///
/// [`CompareError`] if a side has no figures, or they have nothing in common.
pub fn compare(base: &Side, new: &Side) -> Result<Comparison, CompareError> {
    let Matched {
        unit,
        pairs,
        unmatched,
    } = sides::matched(base, new)?;
    let mut rows: Vec<ComparedRow> = pairs.iter().map(blank).collect();
    let mut places = Places::default();
    let copies = pairs.iter().enumerate().map(|(place, pair)| {
        let labels = &pair.base.row.labels;
        let known = places.find(labels, |known| pairs[known].is_same(pair));
        places.add(labels.clone(), place);
        known
    });
    let copies: Vec<Option<usize>> = copies.collect();
    let tested: Vec<usize> = (0..pairs.len())
        .filter(|place| {
            if copies[*place].is_some() {
                return false;
            }
            let pair = &pairs[*place];
            let between = pair.doubt().or_else(|| pair.between_modes());
            let exact = pair.is_exact() && between.is_none();
            if let Some(why) = between {
                fill_between(&mut rows[*place], pair, why);
                return false;
            }
            if exact {
                fill_exact(&mut rows[*place], pair.base.values(), pair.new.values());
            }
            !exact && pair.base.refused().is_none() && pair.new.refused().is_none()
        })
        .collect();
    let values: Vec<(Vec<f64>, Vec<f64>)> = tested
        .iter()
        .map(|place| (pairs[*place].base.values(), pairs[*place].new.values()))
        .collect();
    let shapes = shapes(&values);
    let significance = SIGNIFICANCE / shapes.len().max(1) as f64;
    let needed = invocations_needed(significance).unwrap_or(u64::MAX);
    let can_differ = |(base, new): &Shape| least_p_value(*base as u64, *new as u64) <= significance;
    let found = values.iter().zip(differences(&values)?);
    for (place, (values, difference)) in tested.iter().zip(found) {
        let (row, shape) = (&mut rows[*place], shape(values));
        (row.base, row.new) = (Some(difference.base), Some(difference.new));
        row.is_of_few = !can_differ(&shape);
        match row.is_of_few {
            true => row.refused = Some(too_few(needed, shape.0.min(shape.1) as u64)),
            false => fill(row, &difference, needed),
        }
    }
    for (place, of) in copies.into_iter().enumerate() {
        if let Some(of) = of {
            let own = blank(&pairs[place]);
            rows[place] = ComparedRow {
                measure: own.measure,
                same_as: Some(rows[of].measure.clone()),
                of: own.of,
                ..rows[of].clone()
            };
        }
    }
    for row in &mut rows {
        let worse = match row.of.measure.better {
            Better::More => row.shift < Some(0.0),
            Better::Less | Better::Neither => row.shift > Some(0.0),
        };
        row.is_worse = row.differs && worse && !row.is_of_emulator_alone();
    }
    let exact = rows.iter().any(|row| row.exact);
    let judged = tested.iter().filter(|place| !rows[**place].is_of_few);
    let tests = judged.count() as u64;
    let (of_loads, more_work) = loads::differences(base, new);
    let repetitions = [base, new].map(|side| side.repetitions(unit));
    let fewest = |of: fn(&Shape) -> usize| shapes.iter().map(of).min().map(|least| least as u64);
    let mut comparison = Comparison {
        names: [base.name.clone(), new.name.clone()],
        runs: [base.identities(), new.identities()],
        unit,
        repetitions,
        fewest: [
            fewest(|shape| shape.0).unwrap_or(repetitions[0]),
            fewest(|shape| shape.1).unwrap_or(repetitions[1]),
        ],
        differences: [context::differences(base, new), of_loads].concat(),
        more_work,
        rows,
        unmatched,
        tests,
        needed,
        can_tell: exact || shapes.iter().any(can_differ),
        verdict: Vec::new(),
    };
    comparison.verdict = verdict::of(&comparison);
    Ok(comparison)
}

/// Says whether a figure is worth comparing: sums grow with the time measured, and a standard
/// deviation says what quantiles say better.
#[must_use]
pub fn is_compared(row: &Row) -> bool {
    row.measure.better != Better::Neither
        && !matches!(row.figure, Figure::Sd | Figure::Min | Figure::Total)
}

/// How many repetitions BASE and NEW have of a figure.
type Shape = (usize, usize);

fn shapes(values: &[(Vec<f64>, Vec<f64>)]) -> BTreeSet<Shape> {
    values.iter().map(shape).collect()
}

fn shape((base, new): &(Vec<f64>, Vec<f64>)) -> Shape {
    (base.len(), new.len())
}

/// Judges figures together. Those with other numbers of repetitions (a cell failed, or ran less
/// often) were not taken together, so they are another table, and probabilities are multiplied by
/// the number of tables (Bonferroni).
fn differences(values: &[(Vec<f64>, Vec<f64>)]) -> Result<Vec<Difference>, CompareError> {
    let tables = shapes(values);
    let mut found: Vec<Option<Difference>> = vec![None; values.len()];
    for table in &tables {
        let (places, rows): (Vec<usize>, Vec<_>) = (0..)
            .zip(values)
            .filter(|(_, row)| shape(row) == *table)
            .map(|(place, row)| (place, row.clone()))
            .unzip();
        let compared = compare_groups(&rows, Level::P95, SEED).map_err(|error| {
            let why = error.to_string();
            CompareError::Figures { why }
        })?;
        for (place, mut difference) in places.into_iter().zip(compared) {
            let adjusted = difference.adjusted_p_value * tables.len() as f64;
            difference.adjusted_p_value = adjusted.min(1.0);
            found[place] = Some(difference);
        }
    }
    Ok(found.into_iter().flatten().collect())
}

fn blank(pair: &Pair<'_>) -> ComparedRow {
    let (base, new) = (pair.base.row, pair.new.row);
    // That of the side with the fewest samples.
    let has = |row: &Row| match row.over {
        Err(Refused::Samples { has, .. }) => has,
        _ => u64::MAX,
    };
    let refused = match has(new) < has(base) {
        true => pair.new.refused().or(pair.base.refused()),
        false => pair.base.refused().or(pair.new.refused()),
    };
    ComparedRow {
        experiment: base.experiment.clone(),
        base_target: base.target.clone(),
        new_target: new.target.clone(),
        base_load: base.load.clone(),
        new_load: new.load.clone(),
        labels: base.labels.clone(),
        measure: base.measure.id.to_owned(),
        figure: base.figure.to_string(),
        unit: base.unit.to_owned(),
        base: None,
        new: None,
        shift: None,
        low: None,
        high: None,
        relative: None,
        p_value: None,
        adjusted_p_value: None,
        exact: false,
        differs: false,
        is_worse: false,
        refused,
        same_as: None,
        is_of_few: false,
        times_as_long: pair.times_as_long(),
        of: pair.new.doubted_row(),
        base_row: pair.base.doubted_row(),
    }
}

/// Says that there are too few repetitions to judge a figure.
fn too_few(needed: u64, got: u64) -> String {
    NoInterval::TooFewOfEach { needed, got }.to_string()
}

fn fill(row: &mut ComparedRow, found: &Difference, needed: u64) {
    row.shift = Some(found.shift.estimate);
    row.relative = relative(row);
    row.p_value = Some(found.p_value);
    row.adjusted_p_value = Some(found.adjusted_p_value);
    let below = below_resolution(row, found.shift.estimate);
    row.differs = found.differs(SIGNIFICANCE) && !row.is_unclear() && below.is_none();
    row.refused = below.filter(|_| found.differs(SIGNIFICANCE));
    match &found.shift.interval {
        Ok(interval) => (row.low, row.high) = (Some(interval.low), Some(interval.high)),
        // An interval alone would need fewer, but of a figure that can't be judged it says nothing.
        Err(NoInterval::TooFewOfEach { got, .. }) => row.refused = Some(too_few(needed, *got)),
        Err(why) => row.refused = Some(why.to_string()),
    }
}

/// Returns the shift as a share of BASE; `None` where that is 0.
fn relative(row: &ComparedRow) -> Option<f64> {
    let (base, shift) = row.base.zip(row.shift)?;
    (base != 0.0).then_some(shift / base)
}

/// Returns why a shift is too small for the clocks by which it was measured.
fn below_resolution(row: &ComparedRow, shift: f64) -> Option<String> {
    if row.of.is_a_step(shift) {
        return Some("a shift by one step of the clock may be any smaller one".to_owned());
    }
    let error = row.of.clock_error(&row.base_row);
    (error > 0.0 && shift.abs() <= error)
        .then(|| "the shift is within the uncertainty of the frequencies of the clocks".to_owned())
}

/// Fills in what both sides have of a figure whose shift says nothing.
fn fill_between(row: &mut ComparedRow, pair: &Pair<'_>, why: String) {
    let side = |figures: &Figures<'_>| {
        let over = over_runs(Kind::Order, &figures.values(), Level::P95);
        over.ok().map(|over| over.estimate)
    };
    (row.base, row.new) = (side(&pair.base), side(&pair.new));
    row.refused = Some(why);
}

fn fill_exact(row: &mut ComparedRow, base: Vec<f64>, new: Vec<f64>) {
    row.exact = true;
    row.base = base.first().copied();
    row.new = new.first().copied();
    row.shift = row.new.zip(row.base).map(|(new, base)| new - base);
    row.relative = relative(row);
    row.differs = row.shift.is_some_and(|shift| shift != 0.0);
}

impl ComparedRow {
    /// Returns whether an emulator executed the measured code of one side, and the processor that of
    /// the other: which is better says nothing.
    #[must_use]
    pub fn is_of_emulator_alone(&self) -> bool {
        let is_native = |row: &Row| !row.emulated && !row.counts_instructions;
        let (base, new) = (&self.base_row, &self.of);
        (base.emulated && is_native(new)) || (new.emulated && is_native(base))
    }

    /// Returns why its figures are not those of the planned rate.
    #[must_use]
    pub fn doubt(&self) -> Option<&'static str> {
        self.base_row.doubt.or(self.of.doubt)
    }

    /// Returns how many samples each run needs, if the figure was refused since one has fewer.
    #[must_use]
    pub fn samples_needed(&self) -> Option<u64> {
        let why = self.refused.as_deref()?;
        let needed = |row: &Row| match &row.over {
            Err(of @ Refused::Samples { needed, .. }) if of.to_string() == why => Some(*needed),
            _ => None,
        };
        needed(&self.base_row).or(needed(&self.of))
    }

    /// Names its figure: `latency.p99`; `latency.max (median)`, as the median of the runs' maxima is not
    /// the maximum of all.
    #[must_use]
    pub fn name(&self) -> String {
        let median = match self.of.figure {
            Figure::Max => " (median)",
            _ => "",
        };
        format!("{}.{}{median}", self.measure, self.figure)
    }

    /// Returns where both sides were measured: `process`, `process and crun under dd`.
    #[must_use]
    pub fn places(&self) -> String {
        let base = self.base_row.marked_target() + &self.base_load.under();
        let new = self.of.marked_target() + &self.new_load.under();
        match base == new {
            true => base,
            false => format!("{base} and {new}"),
        }
    }

    /// Writes the shift, in the unit of the figure and as a share of BASE.
    #[must_use]
    pub fn shift_in_words(&self) -> String {
        let unit = self.unit.as_str();
        self.shift.map_or_else(
            || NONE.to_owned(),
            |shift| match self.relative.filter(|_| unit != "1") {
                _ if self.is_unclear() => "unclear".to_owned(),
                Some(share) => format!("{} ({})", signed(shift, unit), signed(share, "%")),
                None => signed(shift, unit),
            },
        )
    }

    /// Writes the adjusted p-value, or that chance has no part in it.
    #[must_use]
    pub fn chance(&self) -> String {
        match (self.exact, self.adjusted_p_value) {
            (true, _) => "exact".to_owned(),
            (false, Some(p)) => Numbers::PLAIN.short(p),
            (false, None) => NONE.to_owned(),
        }
    }

    /// Returns whether the medians moved one way and the shift the other: the sides overlap so
    /// widely that neither is a direction.
    #[must_use]
    pub fn is_unclear(&self) -> bool {
        let medians = self.new.zip(self.base).map(|(new, base)| new - base);
        medians
            .zip(self.shift)
            .is_some_and(|(medians, shift)| medians * shift < 0.0)
    }
}

impl Comparison {
    /// Returns the rows that both sides have, each figure once.
    pub fn listed(&self) -> impl Iterator<Item = &ComparedRow> {
        let rows = self.rows.iter();
        rows.filter(|row| row.base.is_some() && row.same_as.is_none())
    }

    /// Returns those among them that have a shift.
    pub fn compared(&self) -> impl Iterator<Item = &ComparedRow> {
        self.listed().filter(|row| row.shift.is_some())
    }

    /// Returns those among them of which better and worse can be said.
    pub fn judged(&self) -> impl Iterator<Item = &ComparedRow> {
        self.compared().filter(|row| !row.is_of_emulator_alone())
    }

    /// Says how many repetitions of each side there are: `2 and 1 to 2`.
    fn counted(&self, between: &str) -> String {
        let [base, new] = [0, 1].map(|side| match (self.fewest[side], self.repetitions[side]) {
            (fewest, most) if fewest < most => format!("{fewest} to {most}"),
            (_, most) => most.to_string(),
        });
        format!("{base} {between} {new}")
    }

    /// Says whether chance has no part in any figure that is there: all were counted, and repeat
    /// themselves.
    fn is_exact(&self) -> bool {
        let mut told = self.judged().peekable();
        told.peek().is_some() && told.all(|row| row.exact)
    }
}

/// Writes a figure, or that there is none.
#[must_use]
pub fn told(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| written(value, unit))
}

/// Writes a shift of a figure in its unit; that of a share in percentage points. The unit `%` is
/// for a share of BASE.
#[must_use]
pub fn signed(shift: f64, unit: &str) -> String {
    let size = match (unit, shift.abs()) {
        (_, 0.0) => return "0".to_owned(),
        ("%", share) => written(share, "1"),
        ("1", share) => written(share, "1").replace('%', "pp"),
        (unit, size) => written(size, unit),
    };
    match (shift < 0.0, size.strip_prefix("< ")) {
        (true, None) => format!("−{size}"),
        (true, Some(limit)) => format!("> −{limit}"),
        (false, None) => format!("+{size}"),
        (false, Some(_)) => size,
    }
}

impl CompareUnit {
    /// Returns what its repetitions are called.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::Invocations => "invocations",
            Self::TwoRuns | Self::Conditions => "runs",
        }
    }
}

/// Returns the schema of what `tare compare --json` prints.
#[must_use]
pub fn schema() -> Schema {
    schema_for!(Comparisons)
}

/// Makes a side of runs, each with the name of its folder.
#[must_use]
pub fn side<'a>(name: &str, runs: impl IntoIterator<Item = (String, &'a Run)>) -> Side {
    let runs = runs
        .into_iter()
        .map(|(folder, run)| ComparedRun::of(&folder, run, run.rows.clone()));
    Side {
        name: name.to_owned(),
        runs: runs.collect(),
    }
}
