//! What `wakeup` measures: how late sleeping threads ran, and which activations they missed.

use std::collections::BTreeMap;

use tare_results::model::{Labels, SetHead, SetSamples};
use tare_results::target::Kernel;
use tare_stats::{Counts, Response};

use tare_figures::rows::{
    Better, CellData, Figure, INTERRUPTS, Measure, RunFigure, Sample, Samples,
};

use super::words::is_periodic;

const LATENCY: &[Figure] = &[
    Figure::Max,
    Figure::MEDIAN,
    Figure::P99,
    Figure::P99_9,
    Figure::P99_99,
    Figure::Mean,
    Figure::Sd,
    Figure::Min,
];
const SHARE: &[Figure] = &[Figure::Share, Figure::Total];
const TOTAL: &[Figure] = &[Figure::Total];
const ONE: &[Figure] = &[Figure::Value];

const BETWEEN: &str = "wake-ups before the load of their phase began";
const SKIPPED: &str = "activations that the threads skipped until the end";
const UNCOUNTED: &str = "wake-ups that there was no room to count";
const RECORDING: &str = "time that recording a wake-up takes, of the interval";

/// The measures, the most important first.
pub(super) const MEASURES: &[Measure] = &[
    Measure::time("latency", "wake-up latency", LATENCY, |data| {
        each(latencies(data)?, of_wakeups)
    }),
    Measure::time(
        "response",
        "response latency, including missed activations",
        LATENCY,
        |data| {
            each(activations(data)?, |threads| {
                Ok(Some(Sample::Response(threads.clone())))
            })
        },
    ),
    Measure::count("missed", "missed activations", SHARE, |data| {
        each(activations(data)?, |threads| {
            let (missed, all) = missed(threads)?;
            Ok((all > 0).then(|| Sample::ratio(missed, all)))
        })
    }),
    Measure::time(
        "average maximum",
        "maximum, averaged over the phases",
        ONE,
        average_maximum,
    ),
    Measure::count("wake-ups", "wake-ups", TOTAL, |data| {
        each(latencies(data)?, |threads| Ok(number(woken(threads))))
    })
    .better(Better::Neither),
    Measure::count("absent", "phases without a wake-up", TOTAL, |data| {
        each(phases(data, false)?, |threads| {
            Ok(number(u64::from(woken(threads) == 0)))
        })
    })
    .better(Better::Neither),
    Measure::count("between", BETWEEN, TOTAL, |data| {
        each(phases(data, true)?, |threads| {
            Ok(Some(Sample::Number(woken(threads) as f64)))
        })
    })
    .better(Better::Neither),
    Measure::count(
        "missed between",
        "activations that these wake-ups missed",
        TOTAL,
        |data| {
            each(phases(data, true)?, |threads| {
                Ok(Some(Sample::Number(missed(threads)?.0 as f64)))
            })
        },
    )
    .better(Better::Neither),
    Measure::count("skipped", SKIPPED, SHARE, |data| {
        // The threads of other tools count none.
        if data.plan().target.kernel() == Kernel::Unknown {
            return Ok(Vec::new());
        }
        let missed = all_missed(data);
        one(Sample::Ratio(missed, missed + all_woken(data)))
    })
    .better(Better::Neither),
    Measure::count("uncounted", UNCOUNTED, SHARE, |data| {
        let uncounted: u64 = data.record.sets.iter().map(|head| head.uncounted).sum();
        one(Sample::Ratio(uncounted as f64, all_woken(data)))
    })
    .better(Better::Neither),
    Measure::time(
        "recording",
        RECORDING,
        &[Figure::Share, Figure::Value],
        recording,
    )
    .better(Better::Neither),
    INTERRUPTS,
];

/// Latencies of threads with their intervals.
pub(super) type Threads = Vec<(Counts, u64)>;

/// What the latencies of some threads may be: those that were not counted one by one lie within a
/// range.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    /// The only possibility, if all were counted; else what they are at least comes first.
    possible: Vec<Threads>,
    /// Where quantiles of responses are least: all that were not counted are as low as they can be, and
    /// one activation more of each was missed.
    diluted: Threads,
    /// The mean of all in ns; `None` if it is unknown.
    mean: Option<RunFigure>,
    /// Whether none is longer than its interval, so that responses are the latencies.
    is_never_missed: bool,
}

impl Latencies {
    /// Takes sets of one phase, and those that may belong to it.
    fn of(own: &[Set<'_>], unknown: &[Set<'_>]) -> Result<Self, String> {
        let all = || own.iter().chain(unknown);
        let place = |sets: &[Set<'_>], rest: fn(&Set<'_>) -> Vec<(u64, u64)>| {
            let threads = sets
                .iter()
                .map(|set| Ok((with(set, rest(set))?, set.0.period)));
            threads.collect::<Result<Threads, String>>()
        };
        let both = [own, unknown].concat();
        let mut possible = vec![place(&both, |set| rest(set, false))?];
        if all().any(|(head, _)| head.uncounted > 0) {
            possible.push(place(&both, |set| rest(set, true))?);
        }
        if !unknown.is_empty() {
            possible.insert(0, place(own, |_| Vec::new())?);
        }
        // Of one alone the range is its value.
        possible.dedup();
        // Without any, all are the same.
        let diluted = match possible.len() {
            1 => Threads::new(),
            _ => place(&both, |(head, _)| {
                let missed = u64::from(head.uncounted_max > head.period) * head.uncounted;
                vec![(head.uncounted_min, head.uncounted), (0, missed)]
            })?,
        };
        let sum = |of: fn(&SetHead) -> u64| all().map(|(head, _)| of(head) as f64).sum::<f64>();
        let n = sum(|head| head.n);
        let mean = (n > 0.0 && unknown.is_empty()).then(|| {
            let (value, sums) = (sum(|head| head.sum) / n, None);
            match all().any(|(head, _)| head.sum_at_least) {
                true => RunFigure::AtLeast(value),
                false => RunFigure::Value { value, sums },
            }
        });
        Ok(Self {
            possible,
            diluted,
            mean,
            is_never_missed: all().all(|(head, _)| head.max <= head.period),
        })
    }

    /// Returns what they are at least.
    pub fn least(&self) -> &Threads {
        &self.possible[0]
    }

    /// Returns what they are at most.
    pub fn most(&self) -> &Threads {
        &self.possible[self.possible.len() - 1]
    }

    /// Takes a sample, if all that they may be has one.
    pub fn sample(
        &self,
        of: impl Fn(&Threads) -> Result<Option<Sample>, String>,
    ) -> Result<Option<Sample>, String> {
        if let [only] = &self.possible[..] {
            return of(only);
        }
        let ends: Result<Option<Vec<Sample>>, String> = self.possible.iter().map(&of).collect();
        let Some(ends) = ends? else {
            return Ok(None);
        };
        let (mut mean, mut least) = (None, None);
        match &ends[0] {
            Sample::Counts(..) => mean = self.mean,
            Sample::Response(_) if self.is_never_missed => mean = self.mean,
            Sample::Response(_) => least = of(&self.diluted)?.map(Box::new),
            _ => {}
        }
        Ok(Some(Sample::Between { ends, least, mean }))
    }
}

/// Counts the values of a set, with more of them.
fn with((_, set): &Set<'_>, more: Vec<(u64, u64)>) -> Result<Counts, String> {
    let counted = set.counts.iter().map(|row| (row.value, row.count));
    Counts::from_pairs(counted.chain(more)).map_err(|error| error.to_string())
}

/// Returns the values that were not counted, as low or as high as they can be. One of them is the
/// greatest; and one the least, which is that of all samples if none was counted.
fn rest((head, set): &Set<'_>, is_high: bool) -> Vec<(u64, u64)> {
    let ends = [
        (head.uncounted_max, 1),
        (head.uncounted_min, u64::from(set.counts.is_empty())),
    ];
    let mut left = head.uncounted;
    let mut values: Vec<(u64, u64)> = Vec::new();
    for (value, count) in ends {
        values.push((value, count.min(left)));
        left -= count.min(left);
    }
    values.push((
        if is_high {
            head.uncounted_max
        } else {
            head.uncounted_min
        },
        left,
    ));
    values
}

/// Takes a sample of each choice of labels that has one.
fn each(
    sets: Vec<(Labels, Latencies)>,
    of: fn(&Threads) -> Result<Option<Sample>, String>,
) -> Samples {
    let mut samples = Vec::new();
    for (labels, latencies) in sets {
        samples.extend(latencies.sample(of)?.map(|sample| (labels, sample)));
    }
    Ok(samples)
}

/// Takes the latencies of the wake-ups that happened.
pub(super) fn of_wakeups(threads: &Threads) -> Result<Option<Sample>, String> {
    let counts = Counts::merge_all(threads.iter().map(|(counts, _)| counts));
    let counts = counts.map_err(|error| error.to_string())?;
    Ok(Some(Sample::Counts(counts, Some(1.0))))
}

/// Takes a number above 0.
fn number(number: u64) -> Option<Sample> {
    (number > 0).then_some(Sample::Number(number as f64))
}

fn one(sample: Sample) -> Samples {
    Ok(vec![(Labels::default(), sample)])
}

fn woken(threads: &Threads) -> u64 {
    threads.iter().map(|(counts, _)| counts.total()).sum()
}

/// Returns how many activations were missed, and how many there were.
pub(super) fn missed(threads: &Threads) -> Result<(u64, u64), String> {
    let parts = threads.iter().map(|(counts, interval)| (counts, *interval));
    let response = Response::of(parts).map_err(|error| error.to_string())?;
    Ok((response.missed(), response.total()))
}

/// Returns the latencies of all threads together, once for each phase, and then of each thread
/// where there are several. What fell between two phases belongs to none.
fn latencies(data: &CellData<'_>) -> Result<Vec<(Labels, Latencies)>, String> {
    let mut all = phases(data, false)?;
    let thread = |(head, _): &Set<'_>| head.labels.number("thread");
    let several = sets(data, false).any(|set| thread(&set) > Some(0));
    for set in sets(data, false).filter(|_| several) {
        let mut unknown = unknown(data);
        unknown.retain(|other| thread(other) == thread(&set));
        all.push((set.0.labels.clone(), Latencies::of(&[set], &unknown)?));
    }
    Ok(all)
}

/// Returns the latencies of threads that are due at an interval, so that some activations may have
/// been missed.
fn activations(data: &CellData<'_>) -> Result<Vec<(Labels, Latencies)>, String> {
    match is_periodic(data.plan()) {
        true => latencies(data),
        false => Ok(Vec::new()),
    }
}

/// A set with its head.
type Set<'a> = (&'a SetHead, &'a SetSamples);

/// Returns the sets of threads in phases.
fn sets<'a>(data: &CellData<'a>, is_between: bool) -> impl Iterator<Item = Set<'a>> {
    let sets = data.sets("latency");
    sets.filter(move |set| {
        set.0.labels.get("between").is_some() == is_between && !is_of_unknown_phase(set)
    })
}

/// Returns the sets of what nobody knows the phase of.
fn unknown<'a>(data: &CellData<'a>) -> Vec<Set<'a>> {
    data.sets("latency").filter(is_of_unknown_phase).collect()
}

fn is_of_unknown_phase((head, _): &Set<'_>) -> bool {
    head.labels.get("phase") == Some("unknown")
}

/// Puts the threads together, once for each phase of the plan, and once for any other that the
/// samples name: what was woken after the load of the phase began, or before.
pub(super) fn phases(
    data: &CellData<'_>,
    is_between: bool,
) -> Result<Vec<(Labels, Latencies)>, String> {
    let planned = data.plan().phases.len() as u64;
    let planned = (0..planned).filter(|_| planned > 1);
    let mut phases: BTreeMap<Option<u64>, Vec<Set<'_>>> =
        planned.map(|phase| (Some(phase), Vec::new())).collect();
    for set in sets(data, is_between) {
        phases
            .entry(set.0.labels.number("phase"))
            .or_default()
            .push(set);
    }
    let unknown = unknown(data);
    let all = phases.into_iter().map(|(phase, own)| {
        let labels = phase.map(|phase| Labels::default().with("phase", phase));
        Ok((labels.unwrap_or_default(), Latencies::of(&own, &unknown)?))
    });
    all.collect()
}

/// Averages the maxima of the phases of a run, as landolfi-2018 gives it.
fn average_maximum(data: &CellData<'_>) -> Samples {
    let phases = phases(data, false)?;
    let average = |of: fn(&Latencies) -> Option<&Threads>| {
        let longest = |(_, latencies): &(Labels, Latencies)| {
            let maxima = of(latencies)?.iter().filter_map(|(counts, _)| counts.max());
            maxima.max().map(|max| max as f64)
        };
        let maxima: Option<Vec<f64>> = phases.iter().map(longest).collect();
        let several = maxima.filter(|maxima| maxima.len() > 1)?;
        Some(Sample::Number(
            several.iter().sum::<f64>() / several.len() as f64,
        ))
    };
    let ends = [
        average(|of| of.possible.first()),
        average(|of| of.possible.last()),
    ];
    match ends.into_iter().collect::<Option<Vec<_>>>() {
        Some(ends) => one(Sample::Between {
            ends,
            least: None,
            mean: None,
        }),
        None => Ok(Vec::new()),
    }
}

/// Returns the number of all wake-ups, counted or not.
pub(super) fn all_woken(data: &CellData<'_>) -> f64 {
    data.record.sets.iter().map(|head| head.n as f64).sum()
}

/// Returns the number of activations that the threads skipped.
pub(super) fn all_missed(data: &CellData<'_>) -> f64 {
    let values = data.record.values.iter();
    let missed = values.filter(|value| value.measure == "missed");
    missed.map(|value| value.value).sum()
}

/// Takes the time that recording one wake-up takes, of the thread that it costs most.
fn recording(data: &CellData<'_>) -> Samples {
    let mut slowest = None;
    for value in (data.record.values.iter()).filter(|value| value.measure == "recording time") {
        let thread = value.labels.get("thread");
        let mut sets = data.record.sets.iter();
        let own = sets.find(|head| head.labels.get("thread") == thread);
        let interval = own.map_or(1, |head| head.period.max(1)) as f64;
        if slowest.is_none_or(|(ns, of)| value.value / interval > ns / of) {
            slowest = Some((value.value, interval));
        }
    }
    slowest.map_or(Ok(Vec::new()), |(ns, interval)| {
        one(Sample::Ratio(ns, interval))
    })
}
