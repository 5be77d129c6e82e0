//! What is compared with what: the runs of both sides, their repetitions, and the rows that they
//! have in common.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::{Cell, Labels, STARTED, Schedule};
use tare_results::target::Kernel;
use tare_stats::invocations_needed;

use super::context::{Context, facts_of};
use super::pair::{Figures, Pair};
use super::{CompareError, CompareUnit, SIGNIFICANCE, is_compared};
use crate::analysis::{Disturbances, LoadFigure};
use crate::group::{distinct, grouped};
use crate::rows::derive::{Each, Refused, typical};
use crate::rows::{Figure, Places, Row, Rows, behind};
use crate::run::Run;
use crate::words;

/// One side of a comparison: BASE or NEW.
#[derive(Clone, Debug)]
pub struct Side {
    /// Its name: `BASE`, or what distinguishes it.
    pub name: String,
    /// Its runs.
    pub runs: Vec<ComparedRun>,
}

/// A run, as far as a comparison needs it.
#[derive(Clone, Debug)]
pub struct ComparedRun {
    pub(super) identity: RunIdentity,
    pub(super) rows: Rows,
    /// How long its cells measured, in ns.
    lengths: HashMap<u32, f64>,
    /// The work of its loads.
    pub(super) loads: Vec<LoadFigure>,
    /// What surrounded its cells.
    pub(super) context: Context,
}

/// The name of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunIdentity {
    /// Its folder.
    pub run: String,
    /// When it was planned, UTC.
    pub created: String,
    /// Version of tare that measured it.
    pub tare_version: String,
    /// The command.
    pub command: String,
    /// Its invocations.
    pub invocations: u64,
    /// CPU that was measured; null where instances run on any.
    pub cpu: Option<u32>,
    /// Cells that were cut short: their figures are of less time than those of the others.
    pub cut_short: Vec<u32>,
    /// Whether that is when it measured: of imported results it may be when they were imported.
    #[serde(skip)]
    pub(super) is_time_known: bool,
}

/// Measures in places that only one of the sides has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unmatched {
    /// The side: 1 is BASE, 2 is NEW.
    pub side: u32,
    /// The measures, and in which places: `rate and lag of process, 32/s; process, 64/s`.
    pub what: String,
}

/// The rows that both sides have.
pub(super) struct Matched<'a> {
    pub unit: CompareUnit,
    pub pairs: Vec<Pair<'a>>,
    pub unmatched: Vec<Unmatched>,
}

impl ComparedRun {
    /// Takes the rows of one side, and what is known of the cells that they are of.
    pub(super) fn of(folder: &str, run: &Run, rows: Rows) -> Self {
        let plan = &run.plan;
        let each = rows.0.iter().flat_map(|row| &row.each);
        let own: BTreeSet<u32> = each.map(|each| each.cell).collect();
        let cells = || run.cells.iter().filter(|cell| own.contains(&cell.plan.id));
        let identity = RunIdentity {
            run: folder.to_owned(),
            created: plan.created.to_string(),
            tare_version: plan.tare_version.clone(),
            command: plan.command.join(" "),
            invocations: invocations(&run.rows).len() as u64,
            cpu: plan.measured_cpu(),
            cut_short: {
                let cut = run.cut_short();
                cut.map(|cell| cell.plan.id).collect()
            },
            is_time_known: run.cells.iter().all(|cell| {
                let imported = cell.plan.target.kernel() == Kernel::Unknown;
                !imported || facts_of(cell).any(|fact| fact.name == STARTED)
            }),
        };
        let mut loads = Disturbances::default();
        cells().for_each(|cell| loads.take(cell));
        Self {
            identity,
            rows,
            loads: loads.finish().0,
            lengths: cells()
                .filter_map(|cell| Some((cell.plan.id, length_ns(cell)?)))
                .collect(),
            context: Context::of(run, &Vec::from_iter(cells())),
        }
    }
}

/// Returns how long a cell was measured, in ns: of starts, the window in which they count.
fn length_ns(cell: &Cell) -> Option<f64> {
    let window = || {
        let arrived = cell.outcome.record()?.arrived.as_ref()?;
        Some(arrived.until_ns.checked_sub(arrived.from_ns)? as f64)
    };
    cell.measured_ns().or_else(window)
}

/// The rows of a run by what they are looked for.
struct Index<'a> {
    places: Places,
    /// The most measurements that a row of a condition has.
    most: HashMap<(&'a str, &'a str, &'a str, &'a Labels), usize>,
}

impl<'a> Index<'a> {
    fn of(run: &'a ComparedRun) -> Self {
        let (mut places, mut most) = (Places::default(), HashMap::new());
        for (place, row) in run.rows.0.iter().enumerate() {
            places.add(row.labels.clone(), place);
            let all = most.entry(Self::condition(row)).or_default();
            *all = row.each.len().max(*all);
        }
        Self { places, most }
    }

    fn condition(row: &Row) -> (&str, &str, &str, &Labels) {
        (&row.experiment, &row.target, row.load.as_str(), &row.plan)
    }

    /// Says if a run of the same target and load lacks a figure: a mean delay where there was no
    /// delay. Those that have it are not a sample of all.
    fn all_have(&self, row: &Row) -> Result<(), String> {
        let all = self.most.get(&Self::condition(row)).copied().unwrap_or(0);
        match row.each.len() {
            has if has < all => Err(format!("{has} of {all} runs have it")),
            _ => Ok(()),
        }
    }
}

impl Side {
    pub(super) fn identities(&self) -> Vec<RunIdentity> {
        self.runs.iter().map(|run| run.identity.clone()).collect()
    }

    /// Returns how many repetitions there are: invocations, or runs of the one invocation.
    pub(super) fn repetitions(&self, unit: CompareUnit) -> u64 {
        let most = |run: &ComparedRun| {
            let of_rows = run.rows.0.iter().map(|row| repetitions(row, unit).len());
            of_rows.max()
        };
        self.runs.iter().filter_map(most).sum::<usize>() as u64
    }

    /// Returns whether the other side is of the same runs, so that each block has both.
    pub(super) fn is_of_same_runs(&self, other: &Self) -> bool {
        let mut runs = self.runs.iter().zip(&other.runs);
        runs.all(|(a, b)| a.identity == b.identity)
    }

    fn invocations(&self) -> u64 {
        self.runs.iter().map(|run| run.identity.invocations).sum()
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.runs
            .iter()
            .flat_map(|run| &run.rows.0)
            .filter(|row| is_compared(row))
    }

    fn indices(&self) -> Vec<Index<'_>> {
        self.runs.iter().map(Index::of).collect()
    }

    pub(super) fn targets(&self) -> BTreeSet<&str> {
        self.rows().map(|row| row.target.as_str()).collect()
    }

    /// Returns what other tools' results are called, if it has nothing else.
    fn tools(&self) -> Option<BTreeSet<&str>> {
        let is_imported = |row: &Row| row.group.capabilities().kernel == Kernel::Unknown;
        self.rows().all(is_imported).then(|| self.targets())
    }

    /// Returns one figure, once for each repetition, from all runs that should have it; `None` if
    /// no run has.
    fn figures(
        &self,
        of: &Key<'_>,
        unit: CompareUnit,
        indices: &[Index<'_>],
    ) -> Option<Figures<'_>> {
        let mut found = None;
        let mut values: Result<Vec<f64>, String> = Ok(Vec::new());
        let (mut doubt, mut lengths) = (None, Vec::new());
        for (run, index) in self.runs.iter().zip(indices) {
            let rows = &run.rows.0;
            let place = index.places.find(of.labels, |place| of.is_of(&rows[place]));
            let row = place.map(|place| &rows[place]);
            let each = row.into_iter().flat_map(|row| &row.each);
            lengths.extend(each.filter_map(|each| run.lengths.get(&each.cell)));
            let more = match row {
                Some(row) => index
                    .all_have(row)
                    .and_then(|()| each_repetition(row, unit)),
                None => Err(format!("{} lacks it", run.identity.run)),
            };
            values = values.and_then(|mut values| {
                values.extend(more?);
                Ok(values)
            });
            doubt = doubt.or(row.and_then(|row| row.doubt));
            found = found.or(row);
        }
        found.map(|row| Figures {
            row,
            values,
            doubt,
            lengths,
        })
    }
}

/// Returns what a row has of each repetition: of each invocation by its time, or of each run by its
/// block. A cell that failed was redone by a later invocation, so those of one need not be
/// neighbours.
fn repetitions(row: &Row, unit: CompareUnit) -> BTreeMap<(Option<Timestamp>, u32), Vec<Each>> {
    let mut all: BTreeMap<_, Vec<Each>> = BTreeMap::new();
    for each in &row.each {
        let repetition = match unit {
            CompareUnit::Invocations => (Some(each.invocation), 0),
            CompareUnit::TwoRuns | CompareUnit::Conditions => (None, each.block),
        };
        all.entry(repetition).or_default().push(*each);
    }
    all
}

/// Returns a row's figure of each repetition.
fn each_repetition(row: &Row, unit: CompareUnit) -> Result<Vec<f64>, String> {
    let all = repetitions(row, unit);
    let figures: Vec<_> = all.values().map(|each| typical(row.figure, each)).collect();
    // The refusal names the run with the fewest samples.
    let fewest = figures.iter().filter_map(|over| match over {
        Err(Refused::Samples { has, .. }) => Some(*has),
        _ => None,
    });
    let fewest = fewest.min();
    let estimates = figures.into_iter().map(|over| match over {
        Err(Refused::Samples {
            figure,
            needed,
            has,
        }) => Err(Refused::Samples {
            figure,
            needed,
            has: fewest.unwrap_or(has),
        }),
        over => Ok(over?.estimate),
    });
    let estimates: Result<_, Refused> = estimates.collect();
    estimates.map_err(|why| why.to_string())
}

/// What two rows of different sides have in common.
struct Key<'a> {
    experiment: &'a str,
    /// `None` if targets are not compared by their names.
    target: Option<&'a str>,
    load: Option<&'a Schedule>,
    labels: &'a Labels,
    measure: &'a str,
    figure: Figure,
    unit: &'a str,
}

impl<'a> Key<'a> {
    fn of(row: &'a Row, any_target: bool, any_load: bool) -> Self {
        Self {
            experiment: &row.experiment,
            target: (!any_target).then_some(&row.target),
            load: (!any_load).then_some(&row.load),
            labels: &row.labels,
            measure: row.measure.id,
            figure: row.figure,
            unit: row.unit,
        }
    }

    fn is_of(&self, row: &Row) -> bool {
        self.experiment == row.experiment
            && self.target.is_none_or(|target| target == row.target)
            && self.load.is_none_or(|load| *load == row.load)
            && *self.labels == row.labels
            && self.measure == row.measure.id
            && self.figure == row.figure
            && self.unit == row.unit
    }
}

/// Finds the rows that both sides have, and what only one has.
///
/// If each side has only one target, they are compared even if their names differ: that is what a
/// change of the kernel looks like. Sides made by [`by`] differ in their target or load by
/// intention.
pub(super) fn matched<'a>(base: &'a Side, new: &'a Side) -> Result<Matched<'a>, CompareError> {
    for side in [base, new] {
        if let Some(empty) = side.runs.iter().find(|run| run.rows.0.is_empty()) {
            let run = empty.identity.run.clone();
            return Err(CompareError::Empty { run });
        }
    }
    let within = base.is_of_same_runs(new);
    let invocations = [base, new].map(Side::invocations);
    let needed = invocations_needed(SIGNIFICANCE).unwrap_or(u64::MAX);
    let unit = match invocations {
        [few, _] if within && few < needed => CompareUnit::Conditions,
        [1, 1] => CompareUnit::TwoRuns,
        _ => CompareUnit::Invocations,
    };
    let one_target = base.targets().len() == 1 && new.targets().len() == 1;
    let tools = [base, new].map(Side::tools);
    if let [Some(of_base), Some(of_new)] = &tools
        && of_base.is_disjoint(of_new)
    {
        let named = |of: &BTreeSet<&str>| {
            let of: Vec<String> = of.iter().map(|name| (*name).to_owned()).collect();
            words::list(&of)
        };
        return Err(CompareError::Tools {
            base: named(of_base),
            new: named(of_new),
        });
    }
    let one_load = within && loads(base).len() == 1 && loads(new).len() == 1;
    let mut pairs: Vec<Pair<'_>> = Vec::new();
    // For each side and place the measures that the other side lacks.
    let mut lacking: BTreeMap<(u32, String), Vec<String>> = BTreeMap::new();
    let mut lacks = |side: u32, other: &Side, row: &Row| {
        let is_there = |own: &Row| {
            (one_target || own.target == row.target) && (one_load || own.load == row.load)
        };
        if !other.rows().any(is_there) {
            let place = row.marked_target() + &row.load.under();
            lacking.insert((side, place), vec!["figures".to_owned()]);
            return;
        }
        // Where there is no second mode, there is no share of it.
        let name = match row.figure {
            Figure::Slow => format!("{}.{}", row.measure.id, row.figure),
            // Times of a cell in which nothing told the length of a cycle.
            _ if row.in_cycles && row.measure.unit != row.unit => {
                format!("{} in cycles", row.measure.id)
            }
            _ => row.measure.id.to_owned(),
        };
        let measures = lacking.entry((side, row.place())).or_default();
        if !measures.contains(&name) {
            measures.push(name);
        }
    };
    let [of_base, of_new] = [base, new].map(Side::indices);
    let mut seen: Vec<&Row> = Vec::new();
    let mut places = Places::default();
    for row in base.rows() {
        let key = Key::of(row, one_target, one_load);
        let is_known = places.find(key.labels, |place| key.is_of(seen[place]));
        if is_known.is_some() {
            continue;
        }
        places.add(row.labels.clone(), seen.len());
        seen.push(row);
        let figures = |side: &'a Side, index: &[Index<'_>]| side.figures(&key, unit, index);
        match (figures(base, &of_base), figures(new, &of_new)) {
            (Some(base), Some(new)) => pairs.push(Pair { base, new }),
            _ => lacks(1, new, row),
        }
    }
    for row in new.rows() {
        let key = Key::of(row, one_target, one_load);
        if base.figures(&key, unit, &of_base).is_none() {
            lacks(2, base, row);
        }
    }
    let experiments =
        [base, new].map(|side| distinct(side.rows().map(|row| row.experiment.clone())));
    let [of_base, of_new] = &experiments;
    if !of_base.iter().any(|of| of_new.contains(of)) {
        return Err(CompareError::Experiments {
            base: words::list(of_base),
            new: words::list(of_new),
        });
    }
    if pairs.is_empty() {
        let there = |side: &Side| {
            const MOST: usize = 12;
            let place =
                |row: &Row| row.marked_target() + &row.load.under() + &behind(&row.plan, &[]);
            words::first_of(&distinct(side.rows().map(place)), MOST)
        };
        return Err(CompareError::NothingInCommon {
            base: there(base),
            new: there(new),
        });
    }
    let alike = lacking
        .into_iter()
        .map(|((side, place), measures)| ((side, measures), place));
    let unmatched = grouped(alike)
        .into_iter()
        .map(|((side, measures), places)| {
            let what = format!("{} of {}", words::list(&measures), places.join("; "));
            Unmatched { side, what }
        });
    Ok(Matched {
        unit,
        pairs,
        unmatched: unmatched.collect(),
    })
}

pub(super) fn loads(side: &Side) -> BTreeSet<&str> {
    side.rows().map(|row| row.load.as_str()).collect()
}

fn invocations(rows: &Rows) -> BTreeSet<Timestamp> {
    let each = rows.0.iter().flat_map(|row| &row.each);
    each.map(|each| each.invocation).collect()
}

/// Makes the sides of a comparison within one run: the first target or load against each other one.
///
/// # Errors
///
/// [`CompareError::OnlyOne`] if there is but one, [`CompareError::Empty`] if there is none.
pub fn by(of: &'static str, folder: &str, run: &Run) -> Result<Vec<(Side, Side)>, CompareError> {
    within(of, folder, run, |_| true)
}

/// Makes the same of some of its rows.
pub(super) fn within(
    of: &'static str,
    folder: &str,
    run: &Run,
    is_wanted: impl Fn(&Row) -> bool,
) -> Result<Vec<(Side, Side)>, CompareError> {
    let pick = |row: &Row| match of {
        "load" => row.load.to_string(),
        _ => row.target.clone(),
    };
    let rows = run.rows.0.iter();
    let rows = || {
        rows.clone()
            .filter(|row| is_compared(row) && is_wanted(row))
    };
    let mut values = distinct(rows().map(pick));
    // Figures of a schedule as a whole have nothing in common with those of its loads.
    let measures = |value: &String| -> BTreeSet<&str> {
        let own = rows().filter(|row| pick(row) == *value);
        own.map(|row| row.measure.id).collect()
    };
    let first = values.first().map(&measures).unwrap_or_default();
    values.retain(|value| !first.is_disjoint(&measures(value)));
    let side = |value: &String| {
        let own = rows().filter(|row| pick(row) == *value).cloned();
        let mut own = Rows(own.collect());
        if of == "load" {
            own = without_phases(own);
        }
        Side {
            name: value.clone(),
            runs: vec![ComparedRun::of(folder, run, own)],
        }
    };
    match values.as_slice() {
        [] => Err(CompareError::Empty {
            run: folder.to_owned(),
        }),
        [only] => Err(CompareError::OnlyOne {
            of,
            only: only.clone(),
        }),
        [first, others @ ..] => Ok(others
            .iter()
            .map(|other| (side(first), side(other)))
            .collect()),
    }
}

/// Takes rows by their load alone: phases of one measurement are loads, too. A load may have
/// several; what a repetition says of it is its figure over all of them.
fn without_phases(rows: Rows) -> Rows {
    let mut merged: Vec<Row> = Vec::new();
    let mut places = Places::default();
    for mut row in rows.0 {
        row.labels = row.labels.without("phase");
        let key = Key::of(&row, false, false);
        match places.find(&row.labels, |place| key.is_of(&merged[place])) {
            Some(known) => merged[known].each.append(&mut row.each),
            None => {
                places.add(row.labels.clone(), merged.len());
                merged.push(row);
            }
        }
    }
    Rows(merged)
}
