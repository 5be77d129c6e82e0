//! Reduces the samples of cells to what pictures can show.
//!
//! A plot has some hundreds of columns of pixels and a run has millions of samples, so the samples are brought to columns
//! here and then let go: a report of a hundred cells needs the memory of one. Two rules keep the pictures honest: the
//! longest delay of every column is kept exactly, and of delays in one column only those are dropped that differ by less
//! than can be seen.

use std::cmp::Reverse;

use tare_figures::interval::Time;
use tare_figures::rows::{CellData, counts};
use tare_pages::svg::band::{self, COLUMNS, Column};
use tare_results::model::{CellPlan, Event, Labels, Plan, SetHead, SetSamples};
use tare_stats::Counts;

use super::measures::Spin;

/// The least number of columns of one run.
const LEAST_COLUMNS: usize = 4;
/// How many of the longest delays keep their place and time exactly.
const PEAKS: usize = 20;
/// The number of delays of one run beyond which what counts as the same duration gets coarser.
const MARKS: usize = 30_000;

/// What the pictures of one case are drawn from.
#[derive(Clone, Debug, Default)]
pub(super) struct Pictures {
    /// Durations of all repetitions; of a spin the lengths of all listed gaps.
    pub counts: Counts,
    /// Times from gap to gap, to 1 %.
    pub between: Counts,
    /// Raw samples of the first run, one after the other.
    pub window: Vec<u64>,
    /// Every run over time, in running order.
    pub runs: Vec<Timeline>,
}

/// One run over time, in columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Timeline {
    /// Number of the block that the run belongs to, from 1.
    pub block: u32,
    /// Number of columns that the run's time is divided into.
    pub columns: usize,
    /// What lies below the listed delays; nothing of a spin.
    pub band: Vec<Column>,
    /// The listed delays with their columns, and the longest samples where delays are missing in the list.
    pub marks: Vec<Mark>,
    /// The longest delays, longest first.
    pub peaks: Vec<Peak>,
    /// Time from first to last stamp, in cycles.
    pub wall: u64,
    /// How fast these tick, if that is known: an emulator's may differ from run to run.
    pub hz: Option<f64>,
    /// When the list was full, as a fraction of the run's time.
    pub full_from: Option<f64>,
}

/// A delay in its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The column, from 0.
    pub column: usize,
    /// Duration of the sample, in cycles.
    pub cycles: u64,
}

/// One of the longest delays with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peak {
    /// Number of the repetition, from 0.
    pub index: u64,
    /// Time from the first stamp of the run to its start, in cycles.
    pub after: u64,
    /// Duration, in cycles.
    pub cycles: u64,
}

/// Takes what pictures need of a cell, and returns its gaps if it spun.
pub(super) fn take<'a>(
    all: &mut Vec<(CellPlan, Pictures)>,
    run: &Plan,
    data: &CellData<'a>,
) -> Result<Option<Spin<'a>>, String> {
    let plan = data.plan();
    let runs = run.cells.iter().filter(|cell| cell.repeats(plan)).count();
    let columns = (COLUMNS / runs.max(1)).max(LEAST_COLUMNS);
    let (spin, set) = match Spin::of(data)? {
        Some(spin) => (Some(spin), data.sets("gap").next()),
        None => (None, data.sets("duration").next()),
    };
    let (head, set) = set.ok_or("its record has no samples of noise")?;
    let known = all.iter().position(|(of, _)| of.repeats(plan));
    let at = known.unwrap_or_else(|| {
        all.push((plan.clone(), Pictures::default()));
        all.len() - 1
    });
    let told = |error: tare_stats::StatsError| error.to_string();
    let pictures = &mut all[at].1;
    let own = counts(set)?;
    let mean = own.mean().unwrap_or_default();
    pictures.counts = pictures.counts.merge(&own).map_err(told)?;
    if let Some(spin) = &spin {
        let times = spin.trace(usize::MAX)?.inter_arrivals().into_iter();
        let times = Counts::from_samples(times.map(|time| leading(time, 8)).collect());
        pictures.between = pictures.between.merge(&times).map_err(told)?;
    }
    if pictures.runs.is_empty() {
        pictures.window = set.raw.iter().map(|sample| sample.value).collect();
    }
    let threshold = data.record.value("threshold", &Labels::default());
    let threshold = threshold.unwrap_or_default() as u64;
    let limit = (spin.is_none()).then(|| (mean as u64).saturating_add(threshold));
    let mut timeline = Timeline::new(plan.block, columns, head, set, limit);
    timeline.hz = data.hz();
    pictures.runs.push(timeline);
    Ok(spin)
}

/// Sets all but the first bits of a number to 0.
fn leading(number: u64, bits: u32) -> u64 {
    let dropped = (u64::BITS - number.leading_zeros()).saturating_sub(bits);
    number >> dropped << dropped
}

impl Timeline {
    /// Reduces one cell to so many columns. `limit` is the longest duration that is no delay; none of a spin.
    fn new(
        block: u32,
        columns: usize,
        head: &SetHead,
        set: &SetSamples,
        limit: Option<u64>,
    ) -> Self {
        let wall = head.length().max(1);
        let after = |delay: &Event| delay.at.wrapping_sub(head.first);
        let column = |after: u64| {
            let column = u128::from(after) * columns as u128 / u128::from(wall);
            usize::try_from(column).map_or(columns - 1, |column| column.min(columns - 1))
        };
        let full_from = (head.kept < head.seen).then(|| set.events.last().map_or(0, after));
        let mut marks = marks(set, |delay| column(after(delay)));
        let mut band = Vec::new();
        if let Some(limit) = limit {
            let start = |bin: u32| u64::from(bin).saturating_mul(head.bin);
            band = band::joined(set.envelope.iter().map(|bin| Column {
                place: column(start(bin.bin)),
                n: bin.n,
                low: bin.min,
                mean: bin.sum as f64 / bin.n.max(1) as f64,
                high: bin.max.min(limit.max(bin.min)),
            }));
            // Where the list was full, of each bin at least the longest sample is known.
            let late = set.envelope.iter().filter(|bin| {
                let end = start(bin.bin).saturating_add(head.bin);
                full_from.is_some_and(|full| end > full) && bin.max > limit
            });
            marks.extend(late.map(|bin| Mark {
                column: column(start(bin.bin)),
                cycles: bin.max,
            }));
        }
        Self {
            block,
            columns,
            band,
            marks,
            peaks: peaks(set, after),
            wall,
            hz: None,
            full_from: full_from.map(|after| after as f64 / wall as f64),
        }
    }

    /// Returns so many of its cycles as a time.
    pub(super) fn time(&self, cycles: u64) -> Time {
        Time::new(cycles as f64, self.hz)
    }

    /// Returns the shortest and the longest sample that is drawn.
    pub(super) fn ends(&self) -> Option<(u64, u64)> {
        let marks = || self.marks.iter().map(|mark| mark.cycles);
        let low = marks().chain(self.band.iter().map(|band| band.low)).min()?;
        let high = marks()
            .chain(self.band.iter().map(|band| band.high))
            .max()?;
        Some((low, high))
    }
}

fn peaks(set: &SetSamples, after: impl Fn(&Event) -> u64) -> Vec<Peak> {
    let mut longest: Vec<&Event> = set.events.iter().collect();
    let order = |event: &&Event| (Reverse(event.value), event.index);
    if longest.len() > PEAKS {
        longest.select_nth_unstable_by_key(PEAKS - 1, order);
        longest.truncate(PEAKS);
    }
    longest.sort_unstable_by_key(order);
    let peak = |event: &Event| Peak {
        index: event.index,
        after: after(event),
        cycles: event.value,
    };
    longest.into_iter().map(peak).collect()
}

/// Brings delays to columns and drops what can't be told apart, coarser until few enough are left.
fn marks(set: &SetSamples, column: impl Fn(&Event) -> usize) -> Vec<Mark> {
    // 1/2,048 of a duration is less than a pixel on any axis that starts near 0 or is logarithmic; 1/32 is about a pixel
    // on an axis of twenty factors of two, where alone so many are possible.
    const FINEST: u32 = 11;
    const COARSEST: u32 = 5;
    let mark = |event: &Event| Mark {
        column: column(event),
        cycles: event.value,
    };
    let mut marks: Vec<Mark> = Vec::new();
    for delays in set.events.chunk_by(|a, b| column(a) == column(b)) {
        let mut of_column: Vec<Mark> = delays.iter().map(mark).collect();
        dedup(&mut of_column, FINEST);
        marks.extend(of_column);
    }
    for bits in (COARSEST..FINEST).rev() {
        if marks.len() <= MARKS {
            break;
        }
        dedup(&mut marks, bits);
    }
    marks
}

/// Keeps the longest of the marks that agree in column and leading bits.
fn dedup(marks: &mut Vec<Mark>, bits: u32) {
    marks.sort_unstable_by_key(|mark| (mark.column, Reverse(mark.cycles)));
    marks.dedup_by_key(|mark| (mark.column, leading(mark.cycles, bits)));
}

#[cfg(test)]
mod tests {
    use tare_results::model::Bin;

    use super::*;

    fn head(wall: u64, seen: u64, kept: u64) -> SetHead {
        let first = u64::MAX - 500;
        SetHead {
            n: wall / 100,
            first,
            last: first.wrapping_add(wall),
            bin: wall / 100,
            seen,
            kept,
            ..SetHead::default()
        }
    }

    fn delay(head: &SetHead, index: u64, after: u64, value: u64) -> Event {
        let at = head.first.wrapping_add(after);
        Event { index, at, value }
    }

    #[test]
    fn the_longest_delay_of_every_column_stays_exact() {
        let head = head(1_000_000, 200_000, 200_000);
        let mut random = fastrand::Rng::with_seed(7);
        let mut set = SetSamples::default();
        for index in 0..200_000 {
            let bits = random.u32(..30);
            let cycles = 200 + random.u64(..1 << bits);
            set.events.push(delay(&head, index, index * 5, cycles));
        }
        let drawn = Timeline::new(1, 100, &head, &set, Some(150));
        // 16 steps for each of 22 factors of two in every column.
        assert!(drawn.marks.len() <= 100 * 22 * 16, "{}", drawn.marks.len());
        assert_eq!(drawn.full_from, None);
        for column in 0..100 {
            let inside = (0..200_000_u64).filter(|i| i * 5 / 10_000 == column);
            let longest = inside.map(|i| set.events[i as usize].value).max();
            let marks = drawn.marks.iter().filter(|m| m.column as u64 == column);
            assert_eq!(marks.map(|mark| mark.cycles).max(), longest);
        }
        let longest = set.events.iter().map(|d| d.value).max().unwrap();
        assert_eq!(drawn.peaks.len(), PEAKS);
        assert_eq!(drawn.peaks[0].cycles, longest);
        assert_eq!(drawn.ends().unwrap().1, longest);
    }

    #[test]
    fn where_the_list_is_full_the_envelope_shows_the_longest() {
        let head = head(10_000, 3, 1);
        let bin = |bin, max| Bin {
            bin,
            n: 1,
            sum: 100,
            min: 100,
            max,
        };
        let set = SetSamples {
            events: vec![delay(&head, 20, 2_050, 400)],
            envelope: vec![bin(10, 120), bin(20, 400), bin(50, 130), bin(90, 700)],
            ..SetSamples::default()
        };
        let drawn = Timeline::new(1, 10, &head, &set, Some(150));
        assert_eq!(drawn.full_from, Some(0.205));
        let highs: Vec<u64> = drawn.band.iter().map(|band| band.high).collect();
        assert_eq!(highs, [120, 150, 130, 150]);
        // The bin in which the list ended may hold more than is listed.
        let marks: Vec<_> = drawn.marks.iter().map(|m| (m.column, m.cycles)).collect();
        assert_eq!(marks, [(2, 400), (2, 400), (9, 700)]);
        assert_eq!(drawn.ends(), Some((100, 700)));
    }
}
