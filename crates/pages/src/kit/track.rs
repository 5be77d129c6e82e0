//! Runs over time, reduced to columns of pixels.
//!
//! A plot has some hundreds of columns and a run has millions of samples, so samples are brought to
//! columns cell by cell and then let go: a report of a hundred cells needs the memory of one. The
//! longest event of every column stays exact, and of the events in one column only those are
//! dropped that differ by less than can be seen.

use std::cmp::Reverse;

use tare_results::model::{CellPlan, Event, Plan, SetHead, SetSamples};

use crate::svg::band::{self, COLUMNS, Column};
use tare_figures::interval::Time;

/// The least number of columns of one run.
const LEAST_COLUMNS: usize = 4;
/// The number of longest events that keep their place and time exactly.
const PEAKS: usize = 20;
/// The number of events of one run beyond which durations are distinguished less finely.
const MARKS: usize = 30_000;

/// One run over time. Times and values are in ticks of its own clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    /// The block that the run belongs to, from 1.
    pub block: u32,
    /// The number of columns that its time is divided into.
    pub columns: usize,
    /// How long it took.
    pub length: u64,
    /// The frequency of its clock, if that is known: an emulator's may differ from run to run.
    pub hz: Option<f64>,
    /// Samples that are drawn as bands, the lowest layer first, each with its class; without one in
    /// the strip's colour.
    pub bands: Vec<(&'static str, Vec<Column>)>,
    /// Single events with their columns, and the longest samples where events are missing in the
    /// list.
    pub marks: Vec<Mark>,
    /// The longest events, longest first.
    pub peaks: Vec<Peak>,
    /// When the list of events was full, as a fraction of the run's time.
    pub full_from: Option<f64>,
}

/// An event in its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The column, from 0.
    pub column: usize,
    /// How long it was.
    pub value: u64,
}

/// One of the longest events with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The number of the sample, from 0.
    pub index: u64,
    /// The time from the start of the run to the event.
    pub after: u64,
    /// How long it was.
    pub value: u64,
}

impl Track {
    /// Reduces one run of a plan, which shares the width of the picture with the runs that repeat
    /// it. Values above `limit` are listed as events, all else is drawn as a band; without a limit
    /// there are only events.
    #[must_use]
    pub fn of_events(
        run: &Plan,
        plan: &CellPlan,
        (head, set): (&SetHead, &SetSamples),
        limit: Option<u64>,
        hz: Option<f64>,
    ) -> Self {
        let runs = run.cells.iter().filter(|cell| cell.repeats(plan)).count();
        let columns = (COLUMNS / runs.max(1)).max(LEAST_COLUMNS);
        let track = Self::new(columns, (head, set), limit);
        Self {
            block: plan.block,
            hz,
            ..track
        }
    }

    fn new(columns: usize, (head, set): (&SetHead, &SetSamples), limit: Option<u64>) -> Self {
        let length = head.length().max(1);
        let after = |event: &Event| event.at.wrapping_sub(head.first);
        let column = |after: u64| column_of(after, columns, length);
        let full_from = (head.kept < head.seen).then(|| set.events.last().map_or(0, after));
        let mut marks = marks(set, |event| column(after(event)));
        let mut bands = Vec::new();
        if let Some(limit) = limit {
            let start = |bin: u32| u64::from(bin).saturating_mul(head.bin);
            let within = band::joined(set.envelope.iter().map(|bin| {
                let whole = Column::of(bin, column(start(bin.bin)));
                Column {
                    high: bin.max.min(limit.max(bin.min)),
                    ..whole
                }
            }));
            bands.push(("", within));
            // Where the list was full, of each bin at least the longest sample is known.
            let late = set.envelope.iter().filter(|bin| {
                let end = start(bin.bin).saturating_add(head.bin);
                full_from.is_some_and(|full| end > full) && bin.max > limit
            });
            marks.extend(late.map(|bin| Mark {
                column: column(start(bin.bin)),
                value: bin.max,
            }));
        }
        Self {
            columns,
            length,
            bands,
            marks,
            peaks: peaks(set, after),
            full_from: full_from.map(|after| after as f64 / length as f64),
            ..Self::default()
        }
    }

    /// Converts ticks to a time.
    #[must_use]
    pub fn time(&self, ticks: u64) -> Time {
        Time::new(ticks as f64, self.hz)
    }

    /// Returns the least and the greatest value that is drawn.
    #[must_use]
    pub fn ends(&self) -> Option<(u64, u64)> {
        let columns = || self.bands.iter().flat_map(|(_, columns)| columns);
        let marks = || self.marks.iter().map(|mark| mark.value);
        let low = marks().chain(columns().map(|column| column.low)).min()?;
        let high = marks().chain(columns().map(|column| column.high)).max()?;
        Some((low, high))
    }

    /// Returns the column and the length of the longest event, or else of the longest sample of its
    /// uppermost band.
    #[must_use]
    pub fn longest(&self) -> Option<Mark> {
        if let Some(peak) = self.peaks.first() {
            return Some(self.mark(peak));
        }
        let (_, columns) = self.bands.last()?;
        let longest = columns.iter().max_by_key(|column| column.high)?;
        Some(Mark {
            column: longest.place,
            value: longest.high,
        })
    }

    /// Returns the column of one of its longest events.
    #[must_use]
    pub fn mark(&self, peak: &Peak) -> Mark {
        let column = column_of(peak.after, self.columns.max(1), self.length.max(1));
        Mark {
            column,
            value: peak.value,
        }
    }
}

fn column_of(after: u64, columns: usize, length: u64) -> usize {
    let column = u128::from(after) * columns as u128 / u128::from(length);
    usize::try_from(column).map_or(columns - 1, |column| column.min(columns - 1))
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
        value: event.value,
    };
    longest.into_iter().map(peak).collect()
}

/// Brings events to columns and drops indistinguishable ones, coarser until few enough are left.
fn marks(set: &SetSamples, column: impl Fn(&Event) -> usize) -> Vec<Mark> {
    // 1/2,048 of a duration is less than a pixel on any axis that starts near 0 or is logarithmic;
    // 1/32 is about a pixel on an axis of twenty factors of two. Only such an axis can have too
    // many marks for a finer step.
    const FINEST: u32 = 11;
    const COARSEST: u32 = 5;
    let mark = |event: &Event| Mark {
        column: column(event),
        value: event.value,
    };
    let mut marks: Vec<Mark> = Vec::new();
    for events in set.events.chunk_by(|a, b| column(a) == column(b)) {
        let mut of_column: Vec<Mark> = events.iter().map(mark).collect();
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
    marks.sort_unstable_by_key(|mark| (mark.column, Reverse(mark.value)));
    marks.dedup_by_key(|mark| (mark.column, leading(mark.value, bits)));
}

/// Sets all but the first bits of a number to 0.
#[must_use]
pub fn leading(number: u64, bits: u32) -> u64 {
    let dropped = (u64::BITS - number.leading_zeros()).saturating_sub(bits);
    number >> dropped << dropped
}

#[cfg(test)]
mod tests {
    use tare_results::model::Bin;

    use super::*;

    #[test]
    fn leading_bits_are_lower_by_less_than_the_last_of_them() {
        for number in (0..70_000).chain([u64::MAX - 1, u64::MAX]) {
            let lost = number - leading(number, 8);
            assert!(
                lost <= number / 128 && (number > 255 || lost == 0),
                "{number}"
            );
        }
    }

    fn head(length: u64, seen: u64, kept: u64) -> SetHead {
        let first = u64::MAX - 500;
        SetHead {
            n: length / 100,
            first,
            last: first.wrapping_add(length),
            bin: length / 100,
            seen,
            kept,
            ..SetHead::default()
        }
    }

    fn event(head: &SetHead, index: u64, after: u64, value: u64) -> Event {
        let at = head.first.wrapping_add(after);
        Event { index, at, value }
    }

    #[test]
    fn the_longest_event_of_every_column_stays_exact() {
        let head = head(1_000_000, 200_000, 200_000);
        let mut random = fastrand::Rng::with_seed(7);
        let mut set = SetSamples::default();
        for index in 0..200_000 {
            let bits = random.u32(..30);
            let ticks = 200 + random.u64(..1 << bits);
            set.events.push(event(&head, index, index * 5, ticks));
        }
        let drawn = Track::new(100, (&head, &set), Some(150));
        // 16 steps for each of 22 factors of two in every column.
        assert!(drawn.marks.len() <= 100 * 22 * 16, "{}", drawn.marks.len());
        assert_eq!(drawn.full_from, None);
        for column in 0..100 {
            let inside = (0..200_000_u64).filter(|i| i * 5 / 10_000 == column);
            let longest = inside.map(|i| set.events[i as usize].value).max();
            let marks = drawn.marks.iter().filter(|m| m.column as u64 == column);
            assert_eq!(marks.map(|mark| mark.value).max(), longest);
        }
        let longest = set.events.iter().map(|event| event.value).max().unwrap();
        assert_eq!(drawn.peaks.len(), PEAKS);
        assert_eq!(drawn.peaks[0].value, longest);
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
            events: vec![event(&head, 20, 2_050, 400)],
            envelope: vec![bin(10, 120), bin(20, 400), bin(50, 130), bin(90, 700)],
            ..SetSamples::default()
        };
        let drawn = Track::new(10, (&head, &set), Some(150));
        assert_eq!(drawn.full_from, Some(0.205));
        let highs: Vec<u64> = drawn.bands[0].1.iter().map(|band| band.high).collect();
        assert_eq!(highs, [120, 150, 130, 150]);
        // The bin in which the list ended may hold more than is listed.
        let marks: Vec<_> = drawn.marks.iter().map(|m| (m.column, m.value)).collect();
        assert_eq!(marks, [(2, 400), (2, 400), (9, 700)]);
        assert_eq!(drawn.ends(), Some((100, 700)));
    }
}
