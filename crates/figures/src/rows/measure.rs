//! What an experiment measures, as data: units, which direction is better, the figures that make
//! sense.

use std::fmt;

use tare_results::model::Labels;
use tare_stats::{Counts, Kind, Modes, Moments, Quantile, QuantileEstimate, Response};

use super::cell::CellData;
use crate::group::grouped;

/// Something that an experiment measures or derives.
#[derive(Clone, Copy)]
pub struct Measure {
    /// Its name in rows, gates and files: `latency`.
    pub id: &'static str,
    /// Its name for a reader: `wake-up latency`.
    pub title: &'static str,
    /// Its unit in rows.
    pub unit: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// The figures that it has, the one that stands for it first.
    pub figures: &'static [Figure],
    from: Source,
}

/// Takes a measure from a cell, once for each choice of labels; nothing where the cell doesn't have
/// it.
#[derive(Clone, Copy)]
enum Source {
    Cell(fn(&CellData<'_>) -> Samples),
    /// By the measure's id.
    Id(fn(&CellData<'_>, &str) -> Samples),
}

/// The samples of a cell for a measure, one for each choice of labels; or what is wrong with them.
pub type Samples = Result<Vec<(Labels, Sample)>, String>;

/// Which direction of a measure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The less, the better.
    Less,
    /// The more, the better.
    More,
    /// It says what was done, not how well.
    Neither,
}

/// A figure of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The least value, of all runs.
    Min,
    /// The mean.
    Mean,
    /// The standard deviation of the population.
    Sd,
    /// A quantile by nearest rank.
    Quantile(Quantile),
    /// The greatest value, of all runs.
    Max,
    /// The best value of a run, of several the median: the least, or the greatest where more is
    /// better.
    Best,
    /// A sum or number, of all runs.
    Total,
    /// A part of a whole, from 0 to 1.
    Share,
    /// A number for each unit of something else, mostly of time.
    Rate,
    /// One number that is not sampled.
    Value,
    /// Where samples have two modes, the share of those in the slow one. Every measure with a
    /// median has it.
    Slow,
}

/// The sample of one run for a measure.
#[derive(Clone, Debug)]
pub enum Sample {
    /// Exact counts per value, with the factor that turns values into the measure's unit; `None`
    /// where they are cycles of unknown length.
    Counts(Counts, Option<f64>),
    /// The greatest of samples of which a full list holds only some, with the factor as with
    /// counts: no other figure of them is known.
    Greatest(u64, Option<f64>),
    /// Samples of which a full list holds only some: no figure is known.
    Unlisted,
    /// A number that is not whole, for any figure but the standard deviation of the population.
    Mean {
        /// The number.
        mean: f64,
        /// The standard deviation; `None` if a full list does not hold all that it needs.
        sd: Option<f64>,
        /// As with counts.
        factor: Option<f64>,
    },
    /// Those of threads with their intervals, all activations counted: missed ones with what they
    /// waited.
    Response(Vec<(Counts, u64)>),
    /// A sum and what it is divided by: a share or a rate.
    Ratio(f64, f64),
    /// A number.
    Number(f64),
    /// What it may be, from the least to the greatest, where values of some samples are known by
    /// their range only: a figure is known where all agree.
    Between {
        /// The samples that it lies between.
        ends: Vec<Self>,
        /// Where quantiles and the minimum are least, if not at an end: missed activations may add small
        /// values.
        least: Option<Box<Self>>,
        /// What else is known of the mean.
        mean: Option<RunFigure>,
    },
}

/// One figure of one run, or the reason why the run doesn't carry it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunFigure {
    /// The figure; of a share or rate as the two sums whose ratio it is.
    Value {
        /// The figure, in the measure's unit.
        value: f64,
        /// Numerator and denominator of a share or a rate.
        sums: Option<(f64, f64)>,
    },
    /// The run has too few samples for it.
    TooFew {
        /// How many it needs.
        needed: u64,
        /// How many it has.
        has: u64,
    },
    /// A full list holds only some of its samples.
    Unlisted,
    /// It lies among samples that were not counted one by one: beyond the end of a histogram.
    AtLeast(f64),
}

impl Measure {
    /// Returns a measure in ns, of which less is better.
    #[must_use]
    pub const fn time(
        id: &'static str,
        title: &'static str,
        figures: &'static [Figure],
        from: fn(&CellData<'_>) -> Samples,
    ) -> Self {
        Self {
            id,
            title,
            unit: "ns",
            better: Better::Less,
            figures,
            from: Source::Cell(from),
        }
    }

    /// Returns a number of things, of which fewer are better, that has its id in the record.
    #[must_use]
    pub const fn recorded(
        id: &'static str,
        title: &'static str,
        figures: &'static [Figure],
        from: fn(&CellData<'_>, &str) -> Samples,
    ) -> Self {
        let from = Source::Id(from);
        Self {
            from,
            ..Self::count(id, title, figures, |_| Ok(Vec::new()))
        }
    }

    /// Returns a number that is a value of the record, with its id.
    #[must_use]
    pub const fn value(id: &'static str, title: &'static str) -> Self {
        Self::recorded(id, title, &[Figure::Value], |data, id| data.valued(id))
    }

    /// Changes the figures.
    #[must_use]
    pub const fn figures(self, figures: &'static [Figure]) -> Self {
        Self { figures, ..self }
    }

    /// Takes it from a cell.
    ///
    /// # Errors
    ///
    /// The problem with the samples of the cell.
    pub fn samples(&self, data: &CellData<'_>) -> Samples {
        match self.from {
            Source::Cell(take) => take(data),
            Source::Id(take) => take(data, self.id),
        }
    }

    /// Returns a number of things, of which fewer are better.
    #[must_use]
    pub const fn count(
        id: &'static str,
        title: &'static str,
        figures: &'static [Figure],
        from: fn(&CellData<'_>) -> Samples,
    ) -> Self {
        Self::time(id, title, figures, from).unit("")
    }

    /// Changes the unit.
    #[must_use]
    pub const fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// Changes which direction is better.
    #[must_use]
    pub const fn better(self, better: Better) -> Self {
        Self { better, ..self }
    }

    /// Returns a figure of one run; `None` if such a sample has no such figure.
    #[must_use]
    pub fn figure(&self, figure: Figure, sample: &Sample) -> Option<RunFigure> {
        sample.figure(match (figure, self.better) {
            (Figure::Best, Better::More) => Figure::Max,
            (Figure::Best, _) => Figure::Min,
            _ => figure,
        })
    }
}

impl Figure {
    /// The median.
    pub const MEDIAN: Self = Self::Quantile(Quantile::MEDIAN);
    /// The 99th percentile.
    pub const P99: Self = Self::Quantile(Quantile::P99);
    /// The 99.9th percentile.
    pub const P99_9: Self = Self::Quantile(Quantile::P99_9);
    /// The figures of times that are sampled one by one.
    pub const OF_TIMES: &[Self] = &[Self::MEDIAN, Self::P99, Self::P99_9, Self::Max, Self::Mean];
    /// The 99.99th percentile.
    pub const P99_99: Self = Self::Quantile(Quantile::P99_99);

    /// Returns its unit, of a measure with this one: `1` for a share, `1/s` for a rate.
    #[must_use]
    pub fn unit(self, of_measure: &'static str) -> &'static str {
        match self {
            Self::Share | Self::Slow => "1",
            Self::Rate => "1/s",
            _ => of_measure,
        }
    }

    /// Returns how runs are put together.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Sd | Self::Min | Self::Quantile(_) | Self::Max | Self::Best => Kind::Order,
            Self::Mean => Kind::Mean,
            Self::Total | Self::Rate | Self::Value => Kind::Rate,
            Self::Share | Self::Slow => Kind::Share,
        }
    }
}

/// Writes the name by which rows and gates call a figure: `min`, `p99.9`, `share`.
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Min => f.write_str("min"),
            Self::Mean => f.write_str("mean"),
            Self::Sd => f.write_str("sd"),
            Self::Quantile(quantile) => {
                // A whole number of billionths: two more digits than a percentage has.
                let percent = format!("{:.7}", quantile.fraction() * 100.0);
                write!(
                    f,
                    "p{}",
                    percent.trim_end_matches('0').trim_end_matches('.')
                )
            }
            Self::Max => f.write_str("max"),
            Self::Best => f.write_str("best"),
            Self::Total => f.write_str("total"),
            Self::Share => f.write_str("share"),
            Self::Rate => f.write_str("rate"),
            Self::Value => f.write_str("value"),
            Self::Slow => f.write_str("slow"),
        }
    }
}

impl fmt::Debug for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Measure({})", self.id)
    }
}

impl PartialEq for Measure {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Sample {
    /// Returns a figure of the run; `None` if such a sample has no such figure.
    #[must_use]
    pub fn figure(&self, figure: Figure) -> Option<RunFigure> {
        match self {
            Self::Counts(counts, factor) => of_counts(figure, counts, *factor),
            Self::Greatest(max, factor) if figure == Figure::Max => {
                Some(RunFigure::number(*max as f64 * factor.unwrap_or(1.0)))
            }
            Self::Greatest(..) | Self::Unlisted => Some(RunFigure::Unlisted),
            Self::Mean { mean, sd, factor } => {
                let value = match figure {
                    Figure::Sd => *sd,
                    _ => Some(*mean),
                };
                let number = |value| RunFigure::number(value * factor.unwrap_or(1.0));
                Some(value.map_or(RunFigure::Unlisted, number))
            }
            Self::Response(parts) => {
                let parts = parts.iter().map(|(counts, interval)| (counts, *interval));
                let response = Response::of(parts).ok()?;
                of_distribution(
                    figure,
                    response.moments()?,
                    (response.min()?, response.max()?),
                    response.tally().sum as f64,
                    |quantile| response.supported_quantile(quantile),
                )
            }
            Self::Ratio(part, whole) => match figure {
                Figure::Share | Figure::Rate | Figure::Mean if *whole > 0.0 => {
                    Some(RunFigure::Value {
                        value: part / whole,
                        sums: Some((*part, *whole)),
                    })
                }
                Figure::Total | Figure::Value => Some(RunFigure::number(*part)),
                _ => None,
            },
            Self::Number(number) => Some(RunFigure::number(*number)),
            Self::Between { mean, .. } if figure == Figure::Mean && mean.is_some() => *mean,
            // Two that are equal by chance bound nothing if what they are of differs.
            Self::Between { ends, .. } if figure == Figure::Sd => {
                let mut means = ends.iter().map(|end| end.figure(Figure::Mean));
                let first = means.next()?;
                let is_known = means.all(|mean| mean == first);
                let sd = ends.first()?.figure(figure);
                sd.map(|sd| if is_known { sd } else { RunFigure::Unlisted })
            }
            Self::Between { ends, least, .. } => {
                let is_least = matches!(figure, Figure::Quantile(_) | Figure::Min);
                let least = least.iter().filter(|_| is_least).map(Box::as_ref);
                let each = least.chain(ends).map(|end| end.figure(figure));
                let found = each.reduce(between)?;
                let is_response = matches!(ends.first(), Some(Self::Response(_)));
                // These are not least where all values are.
                let is_bounded = match figure {
                    Figure::Mean | Figure::Min => !is_response,
                    _ => true,
                };
                match found {
                    Some(RunFigure::AtLeast(_)) if !is_bounded => Some(RunFigure::Unlisted),
                    found => found,
                }
            }
        }
    }
}

/// The distribution of the samples of a run, as modes are looked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunModes {
    /// Values in rising order, in the measure's unit, with the number of samples: of those that are
    /// closer than [`RunModes::STEP`], the median stands for all.
    values: Vec<(f64, f64)>,
    /// The difference between its two modes; 0 if it has only one.
    apart: f64,
    /// The least difference of two modes.
    least: f64,
    /// Whether the upper one's place is only the least that it can be: most of its samples were not
    /// counted one by one.
    pub is_least: bool,
}

impl RunModes {
    /// The least quotient of two values of the distribution that is kept.
    const STEP: f64 = 1.02;

    /// Returns the samples beyond a border that all runs share, and all.
    pub(crate) fn beyond(&self, border: f64) -> (f64, f64) {
        let count = |from: usize| {
            self.values[from..]
                .iter()
                .fold(0.0, |sum, (_, count)| sum + count)
        };
        let below = self.values.partition_point(|(value, _)| *value <= border);
        (count(below), count(0))
    }

    /// Takes modes that are no further apart for one.
    pub(crate) fn further_than(self, least: f64) -> Self {
        Self { least, ..self }
    }

    /// Finds the modes of all runs together, each of the same weight: their medians, and what is
    /// between them. `None` unless one of the runs has two by itself: runs that differ are no
    /// modes.
    pub(crate) fn together(runs: &[Self]) -> Option<(f64, f64, f64)> {
        /// Parts of the unit in which values are counted, since those of less than ten ns differ.
        const PARTS: f64 = 1_000.0;
        /// The least weight of a sample: that of the run that has most.
        const LEAST_WEIGHT: f64 = 1_000.0;
        let least = runs.iter().map(|run| run.least).fold(0.0, f64::max);
        if !runs.iter().any(|run| run.apart > least) {
            return None;
        }
        let total = |run: &Self| run.beyond(f64::INFINITY).1;
        let most = runs.iter().map(total).fold(0.0, f64::max);
        let weighed = runs.iter().flat_map(|run| {
            let weight = (LEAST_WEIGHT * most / total(run)).round();
            let values = run.values.iter();
            values.map(move |(value, count)| ((value * PARTS) as u64, (count * weight) as u64))
        });
        let modes = Modes::of(&Counts::from_pairs(weighed).ok()?)?;
        let [low, high, border] =
            [modes.low, modes.high, modes.border].map(|value| value as f64 / PARTS);
        let has_both = runs.iter().any(|run| {
            let (beyond, all) = run.beyond(border);
            beyond.min(all - beyond) >= Modes::LEAST as f64
        });
        (has_both && high - low > least).then_some((low, high, border))
    }
}

impl Sample {
    /// Finds the modes of a distribution; `None` if it is none, or not known in full.
    pub(crate) fn modes(&self) -> Option<RunModes> {
        match self {
            Self::Counts(counts, factor) => {
                let scaled = |value: u64| value as f64 * factor.unwrap_or(1.0);
                let modes = Modes::of(counts);
                let mut values: Vec<(f64, f64)> = Vec::new();
                let all: Vec<(u64, u64)> = counts.iter().collect();
                let mut rest = all.as_slice();
                while let Some((first, _)) = rest.first() {
                    let end = (*first as f64 * RunModes::STEP) as u64;
                    let near = rest.partition_point(|(value, _)| *value <= end);
                    let (own, others) = rest.split_at(near);
                    let count: u64 = own.iter().map(|(_, count)| count).sum();
                    let middle = own.iter().scan(0, |sum, (value, count)| {
                        *sum += count;
                        Some((*sum, *value))
                    });
                    let mut middle = middle.skip_while(|(sum, _)| 2 * sum < count);
                    let value = middle.next().map_or(*first, |(_, value)| value);
                    values.push((scaled(value), count as f64));
                    rest = others;
                }
                Some(RunModes {
                    values,
                    apart: modes.map_or(0.0, |modes| scaled(modes.high) - scaled(modes.low)),
                    least: 0.0,
                    is_least: false,
                })
            }
            Self::Response(parts) => {
                /// Those of a longer stall are not worth their memory.
                const MISSED: u64 = 1_000_000;
                let parts = parts.iter().map(|(counts, interval)| (counts, *interval));
                let all = Response::of(parts).ok();
                let all = all.filter(|all| all.missed() <= MISSED)?.expand().ok()?;
                Self::Counts(all, Some(1.0)).modes()
            }
            // Values beyond the end of a histogram lie in the upper mode, wherever they are there.
            Self::Between { ends, .. } => {
                let mut each = ends.iter().map(Self::modes);
                let first = each.next()??;
                let others: Vec<RunModes> = each.collect::<Option<_>>()?;
                let has_two = |run: &RunModes| run.apart > 0.0;
                let is_same = others.iter().all(|other| has_two(other) == has_two(&first));
                let is_least = others.iter().any(|other| other.apart != first.apart);
                is_same.then_some(RunModes { is_least, ..first })
            }
            _ => None,
        }
    }
}

/// Returns what is known of a figure that may be either of two, or lie between them.
fn between(one: Option<RunFigure>, other: Option<RunFigure>) -> Option<RunFigure> {
    let (one, other) = (one?, other?);
    Some(match (one.at_least(), other.at_least()) {
        (Some(_), Some(_)) if one == other => one,
        (Some(a), Some(b)) => RunFigure::AtLeast(a.min(b)),
        (None, _) => one,
        (_, None) => other,
    })
}

impl Sample {
    /// Says whether its values are cycles that nothing turns into a time.
    #[must_use]
    pub(crate) fn is_in_cycles(&self) -> bool {
        match self {
            Self::Counts(_, factor) | Self::Greatest(_, factor) | Self::Mean { factor, .. } => {
                factor.is_none()
            }
            Self::Between { ends, .. } => ends.iter().any(Self::is_in_cycles),
            Self::Unlisted | Self::Response(_) | Self::Ratio(..) | Self::Number(_) => false,
        }
    }
}

impl RunFigure {
    fn number(value: f64) -> Self {
        Self::Value { value, sums: None }
    }

    /// Returns the figure.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Value { value, .. } => Some(value),
            Self::TooFew { .. } | Self::Unlisted | Self::AtLeast(_) => None,
        }
    }

    /// Returns the figure, or what it is at least; `None` if nothing is known.
    #[must_use]
    pub fn at_least(self) -> Option<f64> {
        match self {
            Self::Value { value, .. } | Self::AtLeast(value) => Some(value),
            Self::TooFew { .. } | Self::Unlisted => None,
        }
    }
}

fn of_counts(figure: Figure, counts: &Counts, factor: Option<f64>) -> Option<RunFigure> {
    let carried = of_distribution(
        figure,
        counts.moments()?,
        (counts.min()?, counts.max()?),
        counts.sum() as f64,
        |quantile| counts.supported_quantile(quantile),
    );
    scaled(carried?, factor.unwrap_or(1.0))
}

fn scaled(carried: RunFigure, factor: f64) -> Option<RunFigure> {
    Some(match carried {
        RunFigure::Value { value, .. } => RunFigure::number(value * factor),
        refused => refused,
    })
}

fn of_distribution(
    figure: Figure,
    moments: Moments,
    (min, max): (u64, u64),
    sum: f64,
    quantile: impl Fn(Quantile) -> QuantileEstimate,
) -> Option<RunFigure> {
    Some(RunFigure::number(match figure {
        Figure::Min => min as f64,
        Figure::Mean => moments.mean,
        Figure::Sd => moments.population_sd,
        Figure::Max => max as f64,
        Figure::Total => sum,
        Figure::Quantile(of) => match quantile(of) {
            QuantileEstimate::Value(value) => value as f64,
            QuantileEstimate::Refused { needed } => {
                let has = moments.count;
                return Some(RunFigure::TooFew { needed, has });
            }
        },
        Figure::Best | Figure::Share | Figure::Rate | Figure::Value | Figure::Slow => return None,
    }))
}

/// What programs counted on the measured CPU, from first to last sample: interrupts of the
/// unikernel; of Linux interrupts and softirqs, where its events can't be recorded.
pub const INTERRUPTS: Measure = Measure::count(
    "interrupts",
    "interrupts counted beneath",
    COUNTED,
    |data| {
        counters(data, |name| {
            switches(name).is_none().then_some(("counter", name))
        })
    },
)
.better(Better::Neither);

/// How often the measured thread gave its CPU to another one, from first to last sample: Linux
/// counts that.
pub const CONTEXT_SWITCHES: Measure = Measure::count(
    "context-switches",
    "context switches of the measured thread",
    COUNTED,
    |data| counters(data, |name| Some(("kind", switches(name)?))),
);

const COUNTED: &[Figure] = &[Figure::Rate, Figure::Total];

/// Returns of which kind the context switches are that a counter counts, if it does.
fn switches(name: &str) -> Option<&str> {
    name.strip_suffix(" context switches")
}

/// Returns the counters that have a label.
fn counters(data: &CellData<'_>, label: fn(&str) -> Option<(&'static str, &str)>) -> Samples {
    let longest = data.heads().max_by_key(|head| head.length());
    let seconds = longest.and_then(|head| Some(head.length() as f64 * data.ns(head)? / 1e9));
    let Some(seconds) = seconds else {
        return Ok(Vec::new());
    };
    let counters = data.counters().filter_map(|counter| {
        let (key, value) = label(&counter.name)?;
        Some((counter.labels.clone().with(key, value), counter.count))
    });
    let counters = grouped(counters).into_iter().map(|(labels, counts)| {
        let count: u64 = counts.iter().sum();
        (labels, Sample::Ratio(count as f64, seconds))
    });
    Ok(counters.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_named_as_gates_call_them() {
        let names = [
            Figure::MEDIAN,
            Figure::P99,
            Figure::P99_9,
            Figure::P99_99,
            Figure::Max,
        ]
        .map(|figure| figure.to_string());
        assert_eq!(names, ["p50", "p99", "p99.9", "p99.99", "max"]);
    }

    #[test]
    fn a_run_says_what_it_can_carry() {
        let counts = Counts::from_pairs([(10, 990), (90, 10)]).unwrap();
        let sample = Sample::Counts(counts, Some(0.5));
        let value = |figure| sample.figure(figure).unwrap().value();
        assert_eq!(value(Figure::MEDIAN), Some(5.0));
        assert_eq!(value(Figure::Max), Some(45.0));
        assert_eq!(value(Figure::Total), Some(5_400.0));
        assert_eq!(
            sample.figure(Figure::P99_9),
            Some(RunFigure::TooFew {
                needed: 10_000,
                has: 1_000
            })
        );
        assert_eq!(sample.figure(Figure::Share), None);
        let share = Sample::Ratio(1.0, 4.0).figure(Figure::Share).unwrap();
        assert_eq!(share.value(), Some(0.25));
        assert_eq!(Sample::Ratio(0.0, 0.0).figure(Figure::Share), None);
        let total = Sample::Ratio(7.0, 0.0).figure(Figure::Total).unwrap();
        assert_eq!(total.value(), Some(7.0));
    }

    #[test]
    fn a_full_list_knows_the_greatest_of_all_and_a_number_has_no_deviation_of_its_own() {
        let listed = Sample::Greatest(50, None);
        let value = |sample: &Sample, figure| sample.figure(figure).and_then(RunFigure::value);
        assert_eq!(value(&listed, Figure::Max), Some(50.0));
        assert_eq!(listed.figure(Figure::MEDIAN), Some(RunFigure::Unlisted));
        assert!(listed.is_in_cycles());
        let mean = Sample::Mean {
            mean: 1.5,
            sd: None,
            factor: Some(2.0),
        };
        assert_eq!(value(&mean, Figure::Mean), Some(3.0));
        assert_eq!(value(&mean, Figure::Sd), None);
    }
}
