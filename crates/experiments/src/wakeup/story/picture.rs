//! Reduces the wake-ups of one cell to what pictures can show.
//!
//! The envelope has the least, the mean and the greatest latency of each bin of time; bins are brought to columns
//! of pixels without losing any maximum. Counts stay exact, for what adds up over time.

use tare_results::model::CellPlan;
use tare_stats::Counts;

use super::run::phase_ns;
use super::threads::Thread;

/// Is the number of columns of pixels of one run.
pub const COLUMNS: usize = 720;

/// Holds what the pictures of one combination are drawn from.
#[derive(Clone, Debug, Default)]
pub struct WakeupPictures {
    /// Every run over time, in the order of the runs.
    pub runs: Vec<RunPicture>,
    /// For each phase the service latencies of all runs, by the interval of the thread.
    pub phases: Vec<Vec<(u64, Counts)>>,
}

/// Is one run over time, in columns, all threads together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPicture {
    /// Number of the block that the run belongs to, from 1.
    pub block: u32,
    /// How long it was planned to take.
    pub length_ns: u64,
    /// How long each phase was; `None` if there was but one.
    pub phase_ns: Option<f64>,
    /// The columns that have wake-ups.
    pub columns: Vec<LatencyColumn>,
    /// The longest latency with its planned time.
    pub longest: Option<(u64, u64)>,
}

/// Is the range of the latencies in one column, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyColumn {
    /// The column, from 0.
    pub column: usize,
    /// Wake-ups.
    pub count: u64,
    /// Shortest latency.
    pub low: u64,
    /// Mean.
    pub mean: f64,
    /// Longest latency.
    pub high: u64,
}

impl RunPicture {
    /// Reduces one cell.
    pub(super) fn new(plan: &CellPlan, threads: &[Thread<'_>]) -> Self {
        let length = |thread: &Thread<'_>| {
            (thread.woken() + thread.missed()).saturating_mul(thread.interval_ns)
        };
        let length_ns = threads.iter().map(length).max().unwrap_or(0).max(1);
        let column = |at_ns: u64| {
            let column = u128::from(at_ns) * COLUMNS as u128 / u128::from(length_ns);
            usize::try_from(column).map_or(COLUMNS - 1, |column| column.min(COLUMNS - 1))
        };
        let mut columns: Vec<Option<(u64, u64, u128, u64)>> = vec![None; COLUMNS];
        let mut longest: Option<(u64, u64)> = None;
        let sets = threads.iter().flat_map(|thread| &thread.sets);
        let bins = sets.flat_map(|set| set.samples.envelope.iter().map(|bin| (set.head.bin, bin)));
        for (width, bin) in bins {
            let middle = u64::from(bin.bin) * width + width / 2;
            let sum = u128::from(bin.sum);
            let known = &mut columns[column(middle)];
            *known = Some(match *known {
                None => (bin.n, bin.min, sum, bin.max),
                Some((n, low, before, high)) => {
                    (n + bin.n, low.min(bin.min), before + sum, high.max(bin.max))
                }
            });
            if longest.is_none_or(|(_, ns)| bin.max > ns) {
                longest = Some((middle, bin.max));
            }
        }
        let columns = columns.into_iter().enumerate();
        Self {
            block: plan.block,
            length_ns,
            phase_ns: phase_ns(plan),
            longest,
            columns: columns
                .filter_map(|(column, found)| {
                    let (count, low, sum, high) = found?;
                    Some(LatencyColumn {
                        column,
                        count,
                        low,
                        mean: sum as f64 / count.max(1) as f64,
                        high,
                    })
                })
                .collect(),
        }
    }

    /// Lays several runs over each other: of each column the whole range of all.
    pub(crate) fn merged(runs: &[Self]) -> Self {
        let mut merged = runs.first().cloned().unwrap_or_default();
        for run in runs.iter().skip(1) {
            merged.length_ns = merged.length_ns.max(run.length_ns);
            if run.longest.map(|(_, ns)| ns) > merged.longest.map(|(_, ns)| ns) {
                merged.longest = run.longest;
            }
            for column in &run.columns {
                let places = merged
                    .columns
                    .binary_search_by_key(&column.column, |c| c.column);
                match places {
                    Ok(place) => merged.columns[place].add(column),
                    Err(place) => merged.columns.insert(place, *column),
                }
            }
        }
        merged
    }
}

impl LatencyColumn {
    /// Adds the wake-ups of another column.
    pub(crate) fn add(&mut self, other: &Self) {
        let count = self.count + other.count;
        let sum = self.mean * self.count as f64 + other.mean * other.count as f64;
        *self = Self {
            column: self.column,
            count,
            low: self.low.min(other.low),
            mean: sum / count.max(1) as f64,
            high: self.high.max(other.high),
        };
    }
}

impl WakeupPictures {
    /// Adds the exact counts of one cell.
    pub(super) fn count(&mut self, phases: Vec<Vec<(u64, Counts)>>) -> Result<(), String> {
        self.phases
            .resize(self.phases.len().max(phases.len()), Vec::new());
        for (known, added) in self.phases.iter_mut().zip(phases) {
            for (interval, counts) in added {
                match known.iter_mut().find(|(of, _)| *of == interval) {
                    Some((_, before)) => {
                        *before = before.merge(&counts).map_err(|error| error.to_string())?;
                    }
                    None => known.push((interval, counts)),
                }
            }
        }
        Ok(())
    }
}
