//! What `primitives` measures: costs, times, latencies and bandwidths, what was expected of them,
//! and what the machine turns out to be.

use std::cmp::Reverse;

use tare_figures::rows::{Better, CellData, Figure, Measure, Sample, Samples};
use tare_measured::primitives::memory;
use tare_results::model::Labels;
use tare_stats::{MemoryLevel, memory_levels};

use super::super::PRIMITIVE;

/// The primitives whose costs are points of a curve or a map.
pub(super) const CURVES: [&str; 4] = ["latency", "latency-stride", "line", "tlb"];

/// The measures, the most important first.
pub(super) const MEASURES: &[Measure] = &[
    Measure::time(
        "cost",
        "intrinsic cost of a primitive",
        &[Figure::Best],
        |data| Ok(costs(data, "cost", |id| !CURVES.contains(&id))),
    ),
    Measure::time("in-a-row", MEAN, &[Figure::Mean], |data| {
        Ok(costs(data, "mean", |id| !CURVES.contains(&id)))
    }),
    Measure::time("single", "time of a single one", Figure::OF_TIMES, |data| {
        data.sampled("time")
    }),
    Measure::time(
        "latency",
        "latency of a load from memory",
        &[Figure::Best],
        |data| Ok(costs(data, "cost", |id| CURVES.contains(&id))),
    ),
    Measure::time(
        "bandwidth",
        "bandwidth",
        &[Figure::Best, Figure::MEDIAN],
        bandwidths,
    )
    .unit("bytes/s")
    .better(Better::More),
    Measure::time(
        "expected",
        "expected cost of a primitive",
        &[Figure::Value],
        |data| Ok(expected(data, "cost")),
    )
    .better(Better::Neither),
    Measure::time(
        "expected-bandwidth",
        "expected bandwidth",
        &[Figure::Value],
        |data| Ok(expected(data, "bandwidth")),
    )
    .unit("bytes/s")
    .better(Better::Neither),
    Measure::time(
        "expected-share",
        "expected share of a CPU",
        &[Figure::Value],
        |data| Ok(expected(data, "share")),
    )
    .unit("1")
    .better(Better::Neither),
    Measure::count(
        "ratio",
        "measured divided by expected",
        &[Figure::MEDIAN],
        |data| Ok(ratios(data)),
    )
    .better(Better::Neither),
    Measure::time("level-latency", LEVEL_LATENCY, &[Figure::Best], |data| {
        let found = Points::of(data).levels();
        Ok(levels(found.iter().map(|level| Some(level.latency))))
    }),
    Measure::time("level-size", LEVEL_SIZE, &[Figure::MEDIAN], |data| {
        let found = Points::of(data).levels();
        Ok(levels(found.iter().map(|level| level.capacity)))
    })
    .unit("bytes")
    .better(Better::More),
    Measure::time(
        "line-size",
        "effective size of a cache line",
        &[Figure::MEDIAN],
        |data| Ok(one(Points::of(data).line_size())),
    )
    .unit("bytes")
    .better(Better::Neither),
    Measure::time("tlb-reach", TLB_REACH, &[Figure::MEDIAN], |data| {
        Ok(levels(Points::of(data).tlb_reach().into_iter().map(Some)))
    })
    .unit("bytes")
    .better(Better::More),
    Measure::time("core-clock", CORE_CLOCK, &[Figure::MEDIAN], |data| {
        Ok(one(core_clock(data)))
    })
    .unit("Hz")
    .better(Better::More),
    Measure::value("share", "share of a CPU")
        .figures(&[Figure::MEDIAN])
        .unit("1")
        .better(Better::Neither),
    Measure::value("number", "number counted").better(Better::Neither),
];

const MEAN: &str = "mean cost of a primitive among many in a row";
const LEVEL_LATENCY: &str = "latency of a level of the memory hierarchy";
const LEVEL_SIZE: &str = "effective size of a level of the memory hierarchy";
const TLB_REACH: &str = "memory that a level of the TLB reaches";
const CORE_CLOCK: &str = "effective frequency of the core's clock";

/// Returns the primitive that labels are of.
pub(super) fn id_of(labels: &Labels) -> &str {
    labels.get(PRIMITIVE).unwrap_or_default()
}

/// Returns numbers of a measure in ns; where nothing tells the TSC's frequency, none.
fn costs(data: &CellData<'_>, measure: &str, is_wanted: fn(&str) -> bool) -> Vec<(Labels, Sample)> {
    // A time of zero was not done, or is below the resolution: no figure.
    let all = times(data, measure).filter(|(labels, ns)| is_wanted(id_of(labels)) && *ns > 0.0);
    all.map(|(labels, ns)| (labels.clone(), Sample::Number(ns)))
        .collect()
}

/// Returns the values of a measure in ns, which were measured in ticks of the TSC.
pub(super) fn times<'a>(
    data: &CellData<'a>,
    measure: &str,
) -> impl Iterator<Item = (&'a Labels, f64)> + use<'a> {
    let ns = data.tsc().map(|tsc| 1e9 / tsc.hz);
    let values = data.record.values.iter();
    let measure = measure.to_owned();
    values
        .filter(move |value| value.measure == measure && value.unit == "cycles")
        .filter_map(move |value| Some((&value.labels, value.value * ns?)))
}

/// Returns the bandwidths that can be.
fn bandwidths(data: &CellData<'_>) -> Samples {
    let mut all = data.bandwidths("pass")?;
    // What disturbed the small arrays may have disturbed others.
    let too_fast = too_fast(&all);
    all.retain(|(labels, _)| !too_fast.iter().any(|fast| id_of(fast) == id_of(labels)));
    Ok(all)
}

/// Returns whether a primitive is of memory.
fn is_memory(id: &str) -> bool {
    memory::TABLE.iter().any(|primitive| primitive.id == id)
}

/// Returns the bandwidths of memory that are above those of the caches.
pub(super) fn too_fast(all: &[(Labels, Sample)]) -> Vec<Labels> {
    /// By how much memory may seem faster than the caches before it is called implausible.
    const FASTER: f64 = 1.1;
    /// The largest of the arrays that caches are to hold, in bytes.
    const WITHIN: u64 = 1 << 20;
    let rates = all.iter().filter_map(|(labels, sample)| {
        let rate = sample.figure(Figure::Max)?.value()?;
        Some((labels, labels.number("size")?, rate))
    });
    let rates: Vec<(&Labels, u64, f64)> = rates.collect();
    let cached = |labels: &Labels| {
        let own = rates
            .iter()
            .filter(|(own, size, _)| id_of(own) == id_of(labels) && *size <= WITHIN);
        own.map(|(.., rate)| *rate).max_by(f64::total_cmp)
    };
    let too_fast = rates.iter().filter(|(labels, size, rate)| {
        is_memory(id_of(labels))
            && *size > WITHIN
            && cached(labels).is_some_and(|cached| *rate > cached * FASTER)
    });
    too_fast.map(|(labels, ..)| (*labels).clone()).collect()
}

/// Returns what was expected, of what was measured: where an emulator executes code, expectations
/// of a machine mean nothing.
fn expected(data: &CellData<'_>, measure: &str) -> Vec<(Labels, Sample)> {
    if data.program().is_some_and(|program| program.agent.emulated) {
        return Vec::new();
    }
    let own = data.plan().expected.iter();
    own.filter(|expected| expected.measure == measure)
        .map(|expected| (full(data, expected), Sample::Number(expected.value)))
        .collect()
}

/// Returns the labels that an expectation is for: without a size, of the largest one, which for
/// arrays is one that no cache holds, and of the nearest other side, which is measured first.
fn full(data: &CellData<'_>, expected: &tare_results::model::Expected) -> Labels {
    let id = id_of(&expected.labels);
    let mut words = data.plan().work.words.split_whitespace();
    let cache = words.find_map(|word| word.strip_prefix("cache=")?.parse().ok());
    let least = match expected.labels.get("size") {
        None if is_memory(id) => memory::array(cache) as u64,
        _ => 0,
    };
    let sets = data.record.sets_of("pass").map(|(_, head)| &head.labels);
    let is_of = |labels: &Labels| {
        let mut all = expected.labels.iter();
        let is_large = labels.number("size").is_none_or(|size| size >= least);
        id_of(labels) == id && is_large && all.all(|(key, value)| labels.get(key) == Some(value))
    };
    let own = sets.filter(|labels| is_of(labels));
    let largest = own.min_by_key(|labels| Reverse(labels.number("size")));
    largest.unwrap_or(&expected.labels).clone()
}

/// Divides what was measured by what was expected of it.
fn ratios(data: &CellData<'_>) -> Vec<(Labels, Sample)> {
    let costs: Vec<(&Labels, f64)> = times(data, "cost").collect();
    let singles = data.sampled("time").unwrap_or_default();
    let of_costs = expected(data, "cost")
        .into_iter()
        .filter_map(|(labels, sample)| {
            let cost = costs.iter().find(|(own, _)| **own == labels);
            // Slices of time have no cost.
            let single = || {
                let (_, own) = singles.iter().find(|(own, _)| *own == labels)?;
                own.figure(Figure::MEDIAN)?.value()
            };
            let ns = cost.map(|(_, ns)| *ns).or_else(single)?;
            Some((labels, ns, sample))
        });
    let bandwidths = bandwidths(data).unwrap_or_default();
    let of_bandwidths = expected(data, "bandwidth")
        .into_iter()
        .filter_map(|(labels, sample)| {
            let (_, own) = bandwidths.iter().find(|(own, _)| *own == labels)?;
            Some((labels, own.figure(Figure::Max)?.value()?, sample))
        });
    let shares = data.valued("share").unwrap_or_default();
    let of_shares = expected(data, "share")
        .into_iter()
        .filter_map(|(labels, sample)| {
            let (_, own) = shares.iter().find(|(own, _)| *own == labels)?;
            Some((labels, own.figure(Figure::Value)?.value()?, sample))
        });
    let all = of_costs.chain(of_bandwidths).chain(of_shares);
    all.filter_map(|(labels, measured, expected)| {
        let expected = expected.figure(Figure::Value)?.value()?;
        Some((labels, Sample::Number(measured / expected)))
    })
    .collect()
}

/// The costs, in ns, of which curves are made: those of one run, or the least of several.
pub(super) struct Points<'a>(pub(super) Vec<(&'a Labels, f64)>);

impl<'a> Points<'a> {
    fn of(data: &CellData<'a>) -> Self {
        Self(times(data, "cost").collect())
    }

    /// Returns the points of one primitive by a label that is a number.
    fn curve(&self, id: &str, with: &[(&str, &str)], by: &str) -> Vec<(f64, f64)> {
        let has = |labels: &Labels| {
            let mut all = with.iter();
            all.all(|(key, value)| labels.get(key) == Some(*value))
        };
        let points = self
            .0
            .iter()
            .filter(|(own, _)| id_of(own) == id && has(own));
        let points = points.filter_map(|(labels, ns)| Some((labels.number(by)? as f64, *ns)));
        let mut points: Vec<(f64, f64)> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    }

    /// Returns the largest working set of the curve in such pages, in bytes; 0 without any.
    fn largest_in(&self, pages: &str) -> f64 {
        let curve = self.curve("latency", &[("pages", pages)], "size");
        curve.last().map_or(0.0, |(size, _)| *size)
    }

    /// Returns the pages whose curve shows the levels: huge ones, since they show caches and not
    /// the TLB, unless there were so few that the curve ends early.
    pub(super) fn pages(&self) -> &'static str {
        let (huge, small) = (self.largest_in("2M"), self.largest_in("4K"));
        if huge > 0.0 && 2.0 * huge >= small {
            "2M"
        } else {
            "4K"
        }
    }

    /// Returns the largest working set of that curve, in bytes.
    pub(super) fn largest(&self) -> f64 {
        self.largest_in(self.pages())
    }

    /// Returns the levels of the memory hierarchy.
    pub(super) fn levels(&self) -> Vec<MemoryLevel> {
        memory_levels(&self.curve("latency", &[("pages", self.pages())], "size"))
    }

    /// Returns the size of a line: the least distance at which the second load of a pair no longer
    /// comes with the first.
    pub(super) fn line_size(&self) -> Option<f64> {
        /// Loads of which all miss the first level take at least so many times as long as those of
        /// which half hit.
        const MISS: f64 = 1.15;
        let curve = self.curve("line", &[], "distance");
        let (_, least) = curve.first()?;
        let beyond = curve.iter().find(|(_, ns)| *ns > least * MISS)?;
        Some(beyond.0)
    }

    /// Returns how much memory the levels of the TLB reach: pages times their size, where one line
    /// of each page costs more than as many lines side by side.
    pub(super) fn tlb_reach(&self) -> Vec<f64> {
        const PAGE: f64 = 4_096.0;
        const LINE: f64 = 64.0;
        let caches = self.curve("latency", &[("pages", "2M")], "size");
        let apart = self.curve("tlb", &[], "pages");
        // What as many lines cost that lie side by side: on a straight line between the nearest
        // sizes, both logarithmic.
        let beside = |pages: f64| {
            let size = pages * LINE;
            let above = caches.iter().position(|(own, _)| *own >= size)?;
            let (to, from) = (caches.get(above)?, caches.get(above.checked_sub(1)?)?);
            let part = (size / from.0).ln() / (to.0 / from.0).ln();
            Some((from.1.ln() + part * (to.1 / from.1).ln()).exp())
        };
        let extra = apart
            .iter()
            .filter_map(|(pages, ns)| Some((*pages, ns / beside(*pages)?)));
        let levels = memory_levels(&extra.collect::<Vec<_>>());
        let ends = levels.iter().filter_map(|level| level.capacity);
        ends.map(|pages| pages * PAGE).collect()
    }
}

/// Names the levels by their numbers, and by how many there are: where a run has not seen the first
/// cache, its first level is another one's second.
fn levels(all: impl ExactSizeIterator<Item = Option<f64>>) -> Vec<(Labels, Sample)> {
    let count = all.len();
    let all = (1..).zip(all);
    let of = |(number, value): (usize, Option<f64>)| {
        let labels = Labels::default()
            .with("level", number)
            .with("levels", count);
        Some((labels, Sample::Number(value?)))
    };
    all.filter_map(of).collect()
}

/// Returns the frequency of the core's clock: that of the additions that wait for each other.
fn core_clock(data: &CellData<'_>) -> Option<f64> {
    let mut costs = times(data, "cost");
    let (_, ns) = costs.find(|(labels, _)| id_of(labels) == "core-cycle")?;
    (ns > 0.0).then(|| 1e9 / ns)
}

fn one(number: Option<f64>) -> Vec<(Labels, Sample)> {
    let labelled = number.map(|number| (Labels::default(), Sample::Number(number)));
    labelled.into_iter().collect()
}
