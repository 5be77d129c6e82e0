//! From the cells of a run to its rows.
//!
//! Cells are taken one after the other; of each only its figures stay. The unit of replication is
//! the run (block): a row keeps the figure of each, and puts them together by the rule of the
//! figure's kind.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use tare_results::model::{CellPlan, Labels, Schedule};
use tare_stats::{Kind, Level, NoInterval, OverRuns, over_runs, rate_over_runs, share_over_runs};

use super::cell::CellData;
use super::measure::{
    Better, CONTEXT_SWITCHES, Figure, INTERRUPTS, Measure, RunFigure, RunModes, Sample,
};
use crate::format::Numbers;
use crate::interval::Time;
use crate::words;
use tare_results::target::{Group, Kernel};

/// One figure of one measure, of one target under one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The experiment.
    pub experiment: String,
    /// Target as it is written on the command line.
    pub target: String,
    /// The group that the target belongs to.
    pub group: Group,
    /// The load; of loads one after the other, that of the row's phase.
    pub load: Schedule,
    /// What else distinguishes the row: parameters of the plan, threads, phases.
    pub labels: Labels,
    /// Those among them that are the plan's.
    pub plan: Labels,
    /// The measure.
    pub measure: &'static Measure,
    /// The place of the measure in its experiment's list.
    place: usize,
    /// The figure.
    pub figure: Figure,
    /// Its unit: `1` for a share, `1/s` for a rate, else the measure's.
    pub unit: &'static str,
    /// Whether its samples are cycles of unknown length.
    pub in_cycles: bool,
    /// Frequency of the TSC in whose ticks it was measured, that of its first cell; `None` if it
    /// was measured in ns, or it is unknown.
    pub tsc_hz: Option<f64>,
    /// By how much that frequency may be off, in parts per million: the most in any of its cells.
    clock_ppm: f64,
    /// The least difference of two of its times; `None` if it is unknown.
    pub resolution_ns: Option<f64>,
    /// Whether an emulator executed the measured code.
    pub emulated: bool,
    /// Whether the clock counted instructions.
    pub counts_instructions: bool,
    /// Why its times and rates are not those of the planned rate in one of its cells.
    pub doubt: Option<&'static str>,
    /// The figure of each run, in running order.
    pub each: Vec<Each>,
    /// The figure over all runs, or the reason why there is none.
    pub over: Result<OverRuns, Refused>,
    /// The modes of its samples, if they have two.
    pub modes: Option<TwoModes>,
    /// The modes of each run, of [`Figure::Slow`].
    found: Vec<RunModes>,
}

/// The two modes of samples over all runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoModes {
    /// The median of the lower one, in the unit of the measure.
    pub low: f64,
    /// The median of the upper one.
    pub high: f64,
    /// The border between them.
    pub border: f64,
    /// Whether that is only the least that it can be: most of its samples lie beyond the end of a
    /// histogram.
    pub is_least: bool,
    /// Whether the median of another run may be in either: about as many samples of all runs are in
    /// one as in the other, or those of some runs mostly in one, and of some in the other.
    pub split_median: bool,
}

/// The figure of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Each {
    /// Number of the cell.
    pub cell: u32,
    /// Number of the block.
    pub block: u32,
    /// When the invocation of tare began that measured it.
    pub invocation: Timestamp,
    /// The figure, or how many samples it needs.
    pub figure: RunFigure,
    /// Frequency of the TSC in whose ticks it was measured, as with the row.
    pub tsc_hz: Option<f64>,
}

/// The same for figures with a lower bound and without one, so that they stand together.
const BEYOND: &str = "depends on samples beyond the end of a list, a histogram or a limit, which were \
                      not measured one by one";

/// The reason why a figure is not there.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refused {
    /// A run has too few samples.
    #[error(
        "{figure} needs {} samples in each run, a run has {}: measure longer, not more often",
        Numbers::PLAIN.count(*needed),
        Numbers::PLAIN.count(*has)
    )]
    Samples {
        /// The figure.
        figure: String,
        /// How many it needs.
        needed: u64,
        /// How many the run with the fewest has.
        has: u64,
    },
    /// The list of a run had no room for all samples.
    #[error("{figure} {}", BEYOND)]
    Unlisted {
        /// The figure.
        figure: String,
    },
    /// In a run it lies among samples that were not counted one by one.
    #[error("{figure} {}", BEYOND)]
    Beyond {
        /// The figure.
        figure: String,
        /// Its lower bound over the runs, in the unit of its row.
        at_least: f64,
    },
    /// Its values are none that can be put together.
    #[error("{why}")]
    Values {
        /// The reason.
        why: String,
    },
}

/// By how many steps of the clock two modes are apart at least.
const STEPS: f64 = 2.5;

/// All rows of a run, in the order of its report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows(pub Vec<Row>);

/// Collects the figures of a run's cells.
#[derive(Debug, Default)]
pub struct Collector {
    rows: Vec<Row>,
    places: Places,
}

/// The places of rows or lines, by their labels: a cell may have thousands, each with its own.
#[derive(Clone, Debug, Default)]
pub struct Places(HashMap<Labels, Vec<usize>>);

impl Places {
    /// Adds one.
    pub fn add(&mut self, labels: Labels, place: usize) {
        self.0.entry(labels).or_default().push(place);
    }

    /// Returns the first one with these labels that fits.
    pub fn find(&self, labels: &Labels, fits: impl Fn(usize) -> bool) -> Option<usize> {
        let mut places = self.0.get(labels)?.iter().copied();
        places.find(|place| fits(*place))
    }
}

/// The sample of a cell for one measure under one choice of labels.
#[derive(Debug)]
pub struct Derived {
    /// The measure, with its place in the experiment's list.
    measure: (usize, &'static Measure),
    labels: Labels,
    sample: Sample,
}

impl Collector {
    /// Takes the figures of a cell that is done.
    ///
    /// # Errors
    ///
    /// The problem with the cell's samples. None of its figures is taken then.
    pub fn take(
        &mut self,
        measures: &'static [Measure],
        data: &CellData<'_>,
    ) -> Result<(), String> {
        let taken = self.derive(measures, data)?;
        self.add_all(taken, data);
        Ok(())
    }

    /// Derives what a cell says of each measure, to be taken by [`Self::add_all`] if nothing else
    /// is wrong with it.
    ///
    /// # Errors
    ///
    /// The problem with the cell's samples.
    pub(crate) fn derive(
        &self,
        measures: &'static [Measure],
        data: &CellData<'_>,
    ) -> Result<Vec<Derived>, String> {
        let mut taken = Vec::new();
        for data in data.parts() {
            for (place, measure) in measures.iter().enumerate() {
                for (labels, sample) in measure.samples(&data)? {
                    taken.push(Derived {
                        measure: (place, measure),
                        labels: merged(&data, &labels),
                        sample,
                    });
                }
            }
        }
        Ok(taken)
    }

    /// Takes what was derived of a cell.
    pub(crate) fn add_all(&mut self, taken: Vec<Derived>, data: &CellData<'_>) {
        for Derived {
            measure,
            labels,
            sample,
        } in taken
        {
            let unit = match sample.is_in_cycles() {
                true => "cycles",
                false => measure.1.unit,
            };
            for figure in measure.1.figures {
                if let Some(run) = measure.1.figure(*figure, &sample) {
                    let unit = figure.unit(unit);
                    let of = (*figure, unit, sample.is_in_cycles());
                    self.add(data, measure, of, labels.clone(), run);
                }
            }
            let has_median = measure.1.figures.contains(&Figure::MEDIAN);
            // Next to each other are steps of a coarse clock, no modes.
            let step = step_ns(data.plan().target.group, data.resolution_ns());
            let step = step.filter(|_| unit == "ns").unwrap_or(0.0);
            if let Some(modes) = sample.modes().filter(|_| has_median) {
                let modes = modes.further_than(STEPS * step);
                let unit = Figure::Slow.unit(unit);
                let of = (Figure::Slow, unit, sample.is_in_cycles());
                let row = self.add(data, measure, of, labels, RunFigure::Unlisted);
                row.found.push(modes);
            }
        }
    }

    fn add(
        &mut self,
        data: &CellData<'_>,
        (place, measure): (usize, &'static Measure),
        (figure, unit, in_cycles): (Figure, &'static str, bool),
        labels: Labels,
        run: RunFigure,
    ) -> &mut Row {
        let plan = data.plan();
        let load = load(plan, &labels);
        let each = Each {
            cell: plan.id,
            block: plan.block,
            invocation: data.cell.invocation,
            figure: run,
            tsc_hz: data.hz(),
        };
        let emulated = data.program().is_some_and(|program| program.agent.emulated);
        let is_of_pace = matches!(unit, "ns" | "1/s");
        let doubt = data.cell.doubts().next().filter(|_| is_of_pace);
        let known = self.places.find(&labels, |place| {
            let row = &self.rows[place];
            row.measure == measure
                && row.figure == figure
                && row.unit == unit
                && row.in_cycles == in_cycles
                && plan.target.text == row.target
                && row.load == *load
                && row.experiment == plan.experiment
        });
        let place_of_row = known.unwrap_or(self.rows.len());
        if known.is_some() {
            let row = &mut self.rows[place_of_row];
            row.each.push(each);
            row.emulated |= emulated;
            row.doubt = row.doubt.into_iter().chain(doubt).min();
            row.clock_ppm = row.clock_ppm.max(data.clock_ppm());
            return row;
        }
        self.places.add(labels.clone(), place_of_row);
        self.rows.push(Row {
            experiment: plan.experiment.clone(),
            target: plan.target.text.clone(),
            group: plan.target.group,
            load: load.clone(),
            labels,
            plan: plan.labels.clone(),
            measure,
            place,
            figure,
            unit,
            in_cycles,
            tsc_hz: data.hz(),
            clock_ppm: data.clock_ppm(),
            resolution_ns: data.resolution_ns(),
            emulated,
            counts_instructions: plan.counts_instructions(),
            doubt,
            each: vec![each],
            over: Err(Refused::Values { why: String::new() }),
            modes: None,
            found: Vec::new(),
        });
        &mut self.rows[place_of_row]
    }

    /// Puts the runs of each row together.
    #[must_use]
    pub fn finish(mut self) -> Rows {
        let is_of_one_mode = |row: &Row| row.figure == Figure::Slow && row.divide().is_none();
        self.rows.retain(|row| !is_of_one_mode(row));
        // Figures of what is in cycles in some cells and in ns in others are of the latter.
        if self.rows.iter().any(|row| row.in_cycles) {
            let in_ns = by_labels(&self.rows, |row| !row.in_cycles);
            self.rows.retain(|row| {
                let is_known = |of: &Row| of.figure == row.figure && of.is_of_samples_of(row);
                let mut known = in_ns.get(&row.labels).into_iter().flatten();
                !row.in_cycles || !known.any(is_known)
            });
        }
        add_zeros(&mut self.rows);
        for row in &mut self.rows {
            if let Some((each, _)) = row.divide() {
                row.each = each;
            }
            row.over = over(row.figure, &row.each);
        }
        let slow = by_labels(&self.rows, |row| row.figure == Figure::Slow);
        for row in &mut self.rows {
            let mut slow = slow.get(&row.labels).into_iter().flatten();
            let own = slow.find(|slow| slow.is_sibling(row));
            row.modes = own.and_then(Row::two_modes);
        }
        // The order within a block is drawn at random; a row should have its place in every report.
        // Measures and figures of one cell stay in the order in which they were taken.
        self.rows.sort_by(order);
        Rows(self.rows)
    }
}

/// Adds the runs that lack a counter which other runs of the case have: only counts above 0 are
/// written, so it was 0. Where as many were written as may be, it may have been more.
fn add_zeros(rows: &mut [Row]) {
    /// The most counters that are written.
    const MOST: usize = 24;
    let is_counted = |row: &Row| [INTERRUPTS, CONTEXT_SWITCHES].contains(row.measure);
    let case = |row: &Row| {
        let own = row.labels.clone().without("counter").without("kind");
        let place = (row.experiment.clone(), row.target.clone(), row.load.clone());
        (place, own, row.figure.to_string())
    };
    let mut runs: HashMap<_, BTreeMap<u32, (Each, usize)>> = HashMap::new();
    for row in rows.iter().filter(|row| is_counted(row)) {
        let known = runs.entry(case(row)).or_default();
        for each in &row.each {
            known.entry(each.cell).or_insert((*each, 0)).1 +=
                usize::from(INTERRUPTS == *row.measure);
        }
    }
    for row in rows.iter_mut().filter(|row| INTERRUPTS == *row.measure) {
        let known = runs.get(&case(row)).into_iter().flat_map(BTreeMap::values);
        for (each, written) in known {
            let is_lacking = row.each.iter().all(|own| own.cell != each.cell);
            if let RunFigure::Value { sums, .. } = each.figure
                && is_lacking
                && *written < MOST
            {
                let sums = sums.map(|(_, whole)| (0.0, whole));
                let figure = RunFigure::Value { value: 0.0, sums };
                row.each.push(Each { figure, ..*each });
            }
        }
        row.each.sort_by_key(|each| each.cell);
    }
}

/// Returns those rows that fit, by their labels.
fn by_labels(rows: &[Row], fits: impl Fn(&Row) -> bool) -> HashMap<Labels, Vec<Row>> {
    let mut found: HashMap<_, Vec<Row>> = HashMap::new();
    for row in rows.iter().filter(|row| fits(row)) {
        found
            .entry(row.labels.clone())
            .or_default()
            .push(row.clone());
    }
    found
}

/// Puts the figures of some runs together; the runs may be those of one invocation only. An
/// interval stays within the bounds of what is measured.
///
/// # Errors
///
/// Returns [`Refused`] if a run does not carry the figure.
pub fn over(figure: Figure, each: &[Each]) -> Result<OverRuns, Refused> {
    together(figure, each, of_all)
}

/// Puts the same together for a comparison: of extremes the median, since those of all runs grow with
/// their number.
///
/// # Errors
///
/// As for [`over`].
pub(crate) fn typical(figure: Figure, each: &[Each]) -> Result<OverRuns, Refused> {
    together(figure, each, |_, _, _| {})
}

fn together(
    figure: Figure,
    each: &[Each],
    of_all: impl Fn(Figure, &[f64], &mut OverRuns),
) -> Result<OverRuns, Refused> {
    let (mut values, mut sums) = (Vec::new(), Vec::new());
    let mut refused: Option<(u64, u64)> = None;
    let mut is_beyond = false;
    for run in each {
        match run.figure {
            RunFigure::AtLeast(value) => {
                values.push(value);
                is_beyond = true;
            }
            RunFigure::Value { value, sums: both } => {
                values.push(value);
                sums.extend(both);
            }
            RunFigure::TooFew { needed, has } => {
                let fewest = refused.map_or(has, |(_, before)| before.min(has));
                refused = Some((needed, fewest));
            }
            RunFigure::Unlisted => {
                let figure = figure.to_string();
                return Err(Refused::Unlisted { figure });
            }
        }
    }
    if let Some((needed, has)) = refused {
        let figure = figure.to_string();
        return Err(Refused::Samples {
            figure,
            needed,
            has,
        });
    }
    let put = match figure {
        _ if is_beyond => over_runs(figure.kind(), &values, Level::P95),
        Figure::Share if sums.len() == values.len() => share_over_runs(&sums, Level::P95),
        Figure::Rate | Figure::Mean if sums.len() == values.len() => {
            rate_over_runs(&sums, Level::P95)
        }
        _ => over_runs(figure.kind(), &values, Level::P95),
    };
    let mut over = put.map_err(|error| Refused::Values {
        why: error.to_string(),
    })?;
    of_all(figure, &values, &mut over);
    if is_beyond {
        return Err(Refused::Beyond {
            figure: figure.to_string(),
            at_least: over.estimate,
        });
    }
    // Measured values are never below 0, but Student's interval of a mean may be. Signed values
    // have no such bound.
    if let Ok(interval) = &mut over.interval
        && over.lowest >= 0.0
    {
        interval.low = interval.low.max(0.0);
    }
    Ok(over)
}

/// Makes an extreme or a sum that of all runs: what one run has seen has happened, however rarely.
fn of_all(figure: Figure, values: &[f64], over: &mut OverRuns) {
    match figure {
        Figure::Max => (over.estimate, over.interval) = (over.highest, Err(NoInterval::Extreme)),
        Figure::Min => (over.estimate, over.interval) = (over.lowest, Err(NoInterval::Extreme)),
        Figure::Total => {
            let runs = over.runs as f64;
            over.estimate = values.iter().sum();
            if let Ok(interval) = &mut over.interval {
                interval.estimate = over.estimate;
                interval.low *= runs;
                interval.high *= runs;
            }
        }
        _ => {}
    }
}

/// Returns the least difference of two samples in ns: the tools whose files are imported count whole
/// µs.
fn step_ns(group: Group, resolution_ns: Option<f64>) -> Option<f64> {
    match group.capabilities().kernel {
        Kernel::Unknown => Some(1_000.0),
        _ => resolution_ns,
    }
}

impl Row {
    /// Returns whether a shift of the figure may be a step of the clock alone: the value of a sample moves
    /// by whole steps, however little moved it.
    pub(crate) fn is_a_step(&self, shift: f64) -> bool {
        use Figure as F;
        let is_of_a_sample = matches!(self.figure, F::Quantile(_) | F::Max | F::Min | F::Best);
        let step_ns = step_ns(self.group, self.resolution_ns).filter(|_| self.unit == "ns");
        is_of_a_sample && step_ns.is_some_and(|step_ns| shift.abs() <= 1.01 * step_ns)
    }

    /// Returns the shift that errors of both sides' clocks alone may make of equal figures; 0 of
    /// figures that are neither times nor rates.
    pub(crate) fn clock_error(&self, base: &Self) -> f64 {
        let is_by_clock = matches!(self.unit, "ns" | "1/s" | "bytes/s" | "Hz");
        let of = |row: &Self| row.estimate().unwrap_or(0.0).abs() * row.clock_ppm * 1e-6;
        if is_by_clock {
            of(self) + of(base)
        } else {
            0.0
        }
    }

    /// Returns, of [`Figure::Slow`], the share of each run, the medians of both modes, and what is
    /// between them; `None` if the samples of all runs together do not have two.
    fn divide(&self) -> Option<(Vec<Each>, (f64, f64, f64))> {
        let (low, high, border) = RunModes::together(&self.found)?;
        let each = self.each.iter().zip(&self.found).map(|(each, run)| {
            let (above, all) = run.beyond(border);
            let slow = match self.measure.better {
                Better::More => all - above,
                Better::Less | Better::Neither => above,
            };
            // Without its sums: a run that is fast has more samples, but counts no more.
            let figure = RunFigure::Value {
                value: slow / all,
                sums: None,
            };
            Each { figure, ..*each }
        });
        Some((each.collect(), (low, high, border)))
    }

    /// Returns the modes of its samples, of [`Figure::Slow`].
    fn two_modes(&self) -> Option<TwoModes> {
        /// How far from a half the shares may be, over the runs, for a median to be in either mode.
        const NEAR: f64 = 0.05;
        let (each, (low, high, border)) = self.divide()?;
        let shares = each.iter().filter_map(|each| each.figure.value());
        let shares = Vec::from_iter(shares);
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        Some(TwoModes {
            low,
            high,
            border,
            is_least: self.found.iter().any(|run| run.is_least),
            split_median: (mean - 0.5).abs() < NEAR
                || shares.iter().any(|share| *share <= 0.5)
                    && shares.iter().any(|share| *share >= 0.5),
        })
    }

    /// Returns whether another row is of the same samples.
    #[must_use]
    pub fn is_sibling(&self, other: &Self) -> bool {
        self.in_cycles == other.in_cycles && self.is_of_samples_of(other)
    }

    /// Returns whether another row is of the same figure, measured in the same place.
    #[must_use]
    pub fn is_figure_of(&self, other: &Self) -> bool {
        self.figure == other.figure && self.unit == other.unit && self.is_sibling(other)
    }

    /// Returns the same, whatever the unit of the samples.
    fn is_of_samples_of(&self, other: &Self) -> bool {
        self.experiment == other.experiment
            && self.measure == other.measure
            && self.target == other.target
            && self.load == other.load
            && self.labels == other.labels
    }

    /// Returns whether the figure is none that describes either of two modes: a median that may be
    /// in both, a quantile that is in one in some runs and in the other in others, a mean, a standard
    /// deviation.
    #[must_use]
    pub fn is_between_modes(&self) -> bool {
        let Some(modes) = self.modes else {
            return false;
        };
        let values = || self.each.iter().filter_map(|each| each.figure.value());
        let border = modes.border;
        match self.figure {
            Figure::Mean | Figure::Sd => true,
            figure if figure == Figure::MEDIAN && modes.split_median => true,
            // Over the runs it is between what it is in some of them and in others.
            Figure::Quantile(_) => {
                values().any(|value| value <= border) && values().any(|value| value > border)
            }
            _ => false,
        }
    }

    /// Returns whether its median over the runs lies between the two in the middle, which are far
    /// apart.
    #[must_use]
    pub fn is_between_runs(&self) -> bool {
        /// The factor from which on two runs are far apart.
        const FAR: f64 = 2.0;
        let each = self.each.iter().map(|e| e.figure);
        let known = each.filter_map(|figure| figure.value().or(figure.at_least()));
        let mut values: Vec<f64> = known.collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let is_even = middle > 0 && values.len().is_multiple_of(2);
        let is_median =
            self.figure.kind() == Kind::Order && !matches!(self.figure, Figure::Max | Figure::Min);
        is_even && is_median && values[middle] > FAR * values[middle - 1]
    }

    /// Returns whether it stands for its samples no more than another value would.
    #[must_use]
    pub fn is_marked(&self) -> bool {
        self.is_between_modes() || self.is_between_runs()
    }

    /// Returns the figure over its runs; `None` if there is none.
    #[must_use]
    pub fn estimate(&self) -> Option<f64> {
        Some(self.over.as_ref().ok()?.estimate)
    }

    /// Returns what the figure over its runs is at least, where it lies beyond the end of a
    /// histogram.
    #[must_use]
    pub fn at_least(&self) -> Option<f64> {
        match self.over {
            Err(Refused::Beyond { at_least, .. }) => Some(at_least),
            _ => None,
        }
    }

    /// Returns the figure of one cell; `None` if there is none.
    #[must_use]
    pub fn of_cell(&self, cell: u32) -> Option<f64> {
        let mut each = self.each.iter();
        each.find(|each| each.cell == cell)?.figure.value()
    }

    /// Adds up part and whole of a share, or of a rate, of all runs.
    #[must_use]
    pub fn sums(&self) -> (f64, f64) {
        let sums = self.each.iter().filter_map(|each| match each.figure {
            RunFigure::Value { sums, .. } => sums,
            RunFigure::TooFew { .. } | RunFigure::Unlisted | RunFigure::AtLeast(_) => None,
        });
        sums.fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1))
    }

    /// Returns a figure of it as a duration; in cycles of the TSC of the run that has it, or of the
    /// first.
    #[must_use]
    pub fn time(&self, value: f64) -> Time {
        let mut each = self.each.iter();
        let own = each.find(|run| run.figure.value() == Some(value));
        let hz = own.and_then(|run| run.tsc_hz).or(self.tsc_hz);
        match hz.filter(|_| self.unit == "ns") {
            Some(hz) => Time {
                cycles: whole(value * hz / 1e9),
                ns: Some(value),
            },
            None => Time {
                cycles: value,
                ns: (self.unit == "ns").then_some(value),
            },
        }
    }

    /// Writes a figure of it as a duration: `402 ns`.
    #[must_use]
    pub fn in_time(&self, numbers: Numbers, value: f64) -> String {
        match self.unit {
            "ns" => numbers.ns(value, self.resolution_ns),
            _ => words::cycles(numbers, self.time(value)),
        }
    }

    /// Writes a figure of it as a duration both ways: `1,043 cycles (402 ns)`.
    #[must_use]
    pub fn both(&self, numbers: Numbers, value: f64) -> String {
        let time = self.in_time(numbers, value);
        match self.tsc_hz.filter(|_| self.unit == "ns") {
            Some(_) => format!("{} ({time})", words::cycles(numbers, self.time(value))),
            None => time,
        }
    }
}

/// Takes away what a way into ns and back has added to whole cycles.
fn whole(cycles: f64) -> f64 {
    match (cycles - cycles.round()).abs() < 1e-6 * cycles.abs().max(1.0) {
        true => cycles.round(),
        false => cycles,
    }
}

impl Rows {
    /// Returns the rows of a measure of an experiment.
    pub fn of<'a>(
        &'a self,
        experiment: &'a str,
        measure: &'a str,
    ) -> impl Iterator<Item = &'a Row> {
        let rows = self.0.iter();
        rows.filter(move |row| row.experiment == experiment && row.measure.id == measure)
    }
}

/// Returns the labels of the plan with those of the sample.
fn merged(data: &CellData<'_>, labels: &Labels) -> Labels {
    let (plan, part) = (data.plan().labels.clone(), data.labels());
    let further = part.iter().chain(labels.iter());
    further.fold(plan, |all, (key, value)| all.with(key, value))
}

/// Returns the load that a row is of: that of its phase, if it is of one.
fn load<'a>(plan: &'a CellPlan, labels: &Labels) -> &'a Schedule {
    let phase = labels
        .number("phase")
        .and_then(|phase| usize::try_from(phase).ok());
    let of_phase = phase.and_then(|phase| plan.phases.get(phase));
    of_phase.unwrap_or(&plan.load)
}

fn order(a: &Row, b: &Row) -> Ordering {
    let key = |row: &Row| (!row.load.is_idle(), row.labels.number("phase"), row.group);
    a.experiment
        .cmp(&b.experiment)
        .then_with(|| key(a).cmp(&key(b)))
        .then_with(|| a.load.as_str().cmp(b.load.as_str()))
        .then_with(|| a.target.cmp(&b.target))
        .then_with(|| labels(&a.plan, &b.plan))
        .then_with(|| a.place.cmp(&b.place))
        .then_with(|| labels(&a.labels, &b.labels))
}

/// Orders labels by key and then by value: numbers by their size, then other words.
fn labels(a: &Labels, b: &Labels) -> Ordering {
    let by_value = |(ak, av): (&str, &str), (bk, bv): (&str, &str)| {
        ak.cmp(bk)
            .then_with(|| match (av.parse::<f64>(), bv.parse::<f64>()) {
                (Ok(a), Ok(b)) => a.total_cmp(&b),
                // A number among words would be in no order with other numbers: 32 < 4K < 8.
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => av.cmp(bv),
            })
    };
    let mut pairs = a.iter().zip(b.iter());
    let differing = pairs.find_map(|(a, b)| Some(by_value(a, b)).filter(|order| order.is_ne()));
    differing.unwrap_or_else(|| a.iter().count().cmp(&b.iter().count()))
}

impl Sample {
    /// Returns a sample of a ratio of whole numbers.
    #[must_use]
    pub fn ratio(part: u64, whole: u64) -> Self {
        Self::Ratio(part as f64, whole as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_means_with_sums_are_those_of_all_samples() {
        let run = |block, part, whole| Each {
            cell: block,
            block,
            invocation: Timestamp::UNIX_EPOCH,
            figure: RunFigure::Value {
                value: part / whole,
                sums: Some((part, whole)),
            },
            tsc_hz: None,
        };
        // A run of ten samples weighs less than one of a thousand, of a share of all time.
        let each = [run(1, 10.0, 10.0), run(2, 250.0, 1_000.0)];
        assert_eq!(over(Figure::Slow, &each).unwrap().estimate, 0.625);
        for figure in [Figure::Share, Figure::Mean] {
            let estimate = over(figure, &each).unwrap().estimate;
            assert!(
                (estimate - 260.0 / 1_010.0).abs() < 1e-12,
                "{figure}: {estimate}"
            );
        }
    }

    #[test]
    fn numbers_come_before_words_and_by_their_size() {
        let of = |value: &str| Labels::default().with("pages", value);
        let mut all = ["4K", "32", "2M", "8"].map(of);
        all.sort_by(labels);
        assert_eq!(all, ["8", "32", "2M", "4K"].map(of));
    }
}
