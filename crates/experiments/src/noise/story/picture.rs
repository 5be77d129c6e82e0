//! Reduces the samples of one cell to what its pictures can show.
//!
//! A plot has some hundreds of columns of pixels and a run has millions of samples, so the samples
//! are brought to columns here and then let go: a report of a hundred cells needs the memory of one.
//! Two rules keep the pictures honest: the longest delay of every column is kept exactly, and of
//! delays in one column only those are dropped that differ by less than can be seen.

use tare_results::model::{Event, SetHead, SetSamples};

use super::Batch;

/// Is the number of columns of pixels that all runs of a combination share.
pub const COLUMNS: usize = 720;

/// Is the least number of columns of one run.
const LEAST_COLUMNS: usize = 4;

/// Is how many of the longest delays keep their place and time exactly.
pub const PEAKS: usize = 20;

/// Is the number of delays of one run beyond which what counts as the same duration gets coarser.
const MARKS: usize = 30_000;

/// Is one run over time, in columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimePicture {
    /// Number of the block that the run belongs to, from 1.
    pub block: u32,
    /// Number of columns that the run's time is divided into.
    pub columns: usize,
    /// What lies below the listed delays, by column; empty for `gap`.
    pub band: Vec<Band>,
    /// The listed delays, by column.
    pub marks: Vec<Mark>,
    /// Longest samples of bins of time in which delays are missing in the list.
    pub unlisted: Vec<Mark>,
    /// The longest delays, longest first.
    pub peaks: Vec<Peak>,
    /// Time from first to last stamp.
    pub wall_cycles: u64,
    /// For `gap` the least length of a gap; else the delay above the mean beyond which a sample is
    /// listed.
    pub threshold_cycles: u64,
    /// Number of delays that are in `marks` or were too close to one of them.
    pub listed: u64,
    /// When the list was full, as a fraction of the run's time.
    pub full_from: Option<f64>,
}

/// Is the range of the samples in one column that are not delays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// The column, from 0.
    pub column: usize,
    /// Shortest sample.
    pub low: u64,
    /// Mean of all samples.
    pub mean: f64,
    /// Longest sample, at most the limit from which delays are listed.
    pub high: u64,
}

/// Is a delay in its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The column, from 0.
    pub column: usize,
    /// Duration of the sample, in cycles.
    pub cycles: u64,
}

/// Is one of the longest delays with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// Number of the repetition, from 0.
    pub index: u64,
    /// Time from the first stamp of the run to its start, in cycles.
    pub after_cycles: u64,
    /// Duration, in cycles.
    pub cycles: u64,
}

/// Returns the number of columns for each of `runs` runs side by side.
pub fn columns_for(runs: usize) -> usize {
    (COLUMNS / runs.max(1)).max(LEAST_COLUMNS)
}

impl TimePicture {
    /// Reduces one cell to `columns` columns; `mean` is that of its samples, in cycles.
    pub(crate) fn new(
        block: u32,
        columns: usize,
        batch: &Batch<'_>,
        samples: &SetSamples,
        mean: f64,
    ) -> Self {
        let head = batch.head;
        let wall = head.length().max(1);
        let columns = columns.max(1);
        let after = |delay: &Event| delay.at.wrapping_sub(head.first);
        let column = |after: u64| {
            let column = u128::from(after) * columns as u128 / u128::from(wall);
            usize::try_from(column).map_or(columns - 1, |column| column.min(columns - 1))
        };
        let listed_until = (head.kept < head.seen).then(|| samples.events.last().map_or(0, after));
        let limit = mean as u64 + batch.threshold;
        let bins = Bins {
            head,
            limit,
            listed_until,
        };
        let mut picture = Self {
            block,
            columns,
            wall_cycles: wall,
            threshold_cycles: batch.threshold,
            listed: samples.events.len() as u64,
            full_from: listed_until.map(|until| until as f64 / wall as f64),
            peaks: peaks(samples, after),
            marks: marks(samples, |delay| column(after(delay))),
            ..Self::default()
        };
        if !batch.is_gap() {
            picture.band = bins.band(samples, column);
            picture.unlisted = bins.unlisted(samples, column);
        }
        picture
    }

    /// Returns the longest sample that is drawn.
    #[must_use]
    pub fn longest(&self) -> Option<u64> {
        let marks = self.marks.iter().chain(&self.unlisted);
        let band = self.band.iter().map(|band| band.high);
        marks.map(|mark| mark.cycles).chain(band).max()
    }

    /// Returns the shortest sample that is drawn.
    #[must_use]
    pub fn shortest(&self) -> Option<u64> {
        let marks = self.marks.iter().chain(&self.unlisted);
        let band = self.band.iter().map(|band| band.low);
        marks.map(|mark| mark.cycles).chain(band).min()
    }
}

/// Reads the envelope.
struct Bins<'a> {
    head: &'a SetHead,
    /// The longest duration that is no delay.
    limit: u64,
    listed_until: Option<u64>,
}

impl Bins<'_> {
    fn start(&self, bin: u32) -> u64 {
        u64::from(bin).saturating_mul(self.head.bin)
    }

    fn band(&self, samples: &SetSamples, column: impl Fn(u64) -> usize) -> Vec<Band> {
        let mut columns: Vec<(Band, u64, u128)> = Vec::new();
        for bin in &samples.envelope {
            let column = column(self.start(bin.bin));
            let low = bin.min;
            let high = bin.max.min(self.limit.max(low));
            let (count, sum) = (bin.n, u128::from(bin.sum));
            match columns.last_mut() {
                Some((band, counts, sums)) if band.column == column => {
                    band.low = band.low.min(low);
                    band.high = band.high.max(high);
                    *counts += count;
                    *sums += sum;
                }
                _ => {
                    let mean = 0.0;
                    let band = Band {
                        column,
                        low,
                        mean,
                        high,
                    };
                    columns.push((band, count, sum));
                }
            }
        }
        columns
            .into_iter()
            .map(|(band, count, sum)| Band {
                mean: sum as f64 / count.max(1) as f64,
                ..band
            })
            .collect()
    }

    /// Returns the longest sample of each bin after the list was full.
    fn unlisted(&self, samples: &SetSamples, column: impl Fn(u64) -> usize) -> Vec<Mark> {
        let Some(until) = self.listed_until else {
            return Vec::new();
        };
        let late = samples.envelope.iter().filter(|bin| {
            let end = self.start(bin.bin).saturating_add(self.head.bin);
            end > until && bin.max > self.limit
        });
        late.map(|bin| Mark {
            column: column(self.start(bin.bin)),
            cycles: bin.max,
        })
        .collect()
    }
}

fn peaks(samples: &SetSamples, after: impl Fn(&Event) -> u64) -> Vec<Peak> {
    let mut longest: Vec<&Event> = samples.events.iter().collect();
    let order = |a: &&Event, b: &&Event| b.value.cmp(&a.value).then(a.index.cmp(&b.index));
    if longest.len() > PEAKS {
        longest.select_nth_unstable_by(PEAKS - 1, order);
        longest.truncate(PEAKS);
    }
    longest.sort_unstable_by(order);
    longest
        .into_iter()
        .map(|delay| Peak {
            index: delay.index,
            after_cycles: after(delay),
            cycles: delay.value,
        })
        .collect()
}

/// Brings delays to columns and drops what cannot be told apart, coarser until few enough are left.
fn marks(samples: &SetSamples, column: impl Fn(&Event) -> usize) -> Vec<Mark> {
    // 1/2,048 of a duration is less than a pixel on any axis that starts near 0 or is logarithmic.
    const FINEST: u32 = 11;
    // 1/32 is about a pixel on an axis of twenty factors of two, where alone so many are possible.
    const COARSEST: u32 = 5;
    let mut marks: Vec<Mark> = Vec::new();
    let mut from = 0;
    for delay in &samples.events {
        let column = column(delay);
        if marks[from..]
            .first()
            .is_some_and(|first| first.column != column)
        {
            dedup(&mut marks, from, FINEST);
            from = marks.len();
        }
        marks.push(Mark {
            column,
            cycles: delay.value,
        });
    }
    dedup(&mut marks, from, FINEST);
    for bits in (COARSEST..FINEST).rev() {
        if marks.len() <= MARKS {
            break;
        }
        dedup(&mut marks, 0, bits);
    }
    marks
}

/// Keeps of the marks from `from` on the longest of those that agree in column and leading bits.
fn dedup(marks: &mut Vec<Mark>, from: usize, bits: u32) {
    let leading = |cycles: u64| cycles >> (u64::BITS - cycles.leading_zeros()).saturating_sub(bits);
    // The number of bits that were shifted out belongs to the key.
    let key = |mark: &Mark| {
        (
            mark.column,
            mark.cycles.leading_zeros(),
            leading(mark.cycles),
        )
    };
    let mut tail = marks.split_off(from);
    tail.sort_unstable_by_key(|mark| (mark.column, std::cmp::Reverse(mark.cycles)));
    tail.dedup_by_key(|mark| key(mark));
    marks.append(&mut tail);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::batch::program;
    use tare_results::model::{Bin, Program};

    fn head(wall: u64) -> SetHead {
        let first = u64::MAX - 500;
        SetHead {
            n: wall / 100,
            first,
            last: first.wrapping_add(wall),
            bin: wall / 100,
            ..SetHead::default()
        }
    }

    fn batch<'a>(program: &'a Program, head: &'a SetHead) -> Batch<'a> {
        Batch {
            program,
            head,
            result: 0,
            work: 1,
            threshold: 50,
        }
    }

    fn delay(head: &SetHead, index: u64, after: u64, value: u64) -> Event {
        let at = head.first.wrapping_add(after);
        Event { index, at, value }
    }

    #[test]
    fn the_longest_delay_of_every_column_stays_exact() {
        let program = program();
        let mut head = head(1_000_000);
        let mut random = fastrand::Rng::with_seed(7);
        let mut samples = SetSamples::default();
        for index in 0..200_000 {
            let bits = random.u32(..30);
            let cycles = 200 + random.u64(..1 << bits);
            samples.events.push(delay(&head, index, index * 5, cycles));
        }
        head.seen = 200_000;
        head.kept = 200_000;
        let picture = TimePicture::new(1, 100, &batch(&program, &head), &samples, 100.0);
        // 16 steps for each of 22 factors of two in every column.
        assert!(
            picture.marks.len() <= 100 * 22 * 16,
            "{}",
            picture.marks.len()
        );
        assert_eq!(picture.full_from, None);
        for column in 0..100 {
            let inside = (0..200_000_u64).filter(|i| i * 5 / 10_000 == column);
            let longest = inside.map(|i| samples.events[i as usize].value).max();
            let drawn = picture.marks.iter().filter(|m| m.column as u64 == column);
            assert_eq!(drawn.map(|mark| mark.cycles).max(), longest);
        }
        let longest = samples.events.iter().map(|d| d.value).max().unwrap();
        assert_eq!(picture.peaks.len(), PEAKS);
        assert_eq!(picture.peaks[0].cycles, longest);
        assert_eq!(picture.longest(), Some(longest));
    }

    #[test]
    fn where_the_list_is_full_the_envelope_shows_the_longest() {
        let program = program();
        let mut head = head(10_000);
        head.seen = 3;
        head.kept = 1;
        let bin = |bin, max| Bin {
            bin,
            n: 1,
            sum: 100,
            min: 100,
            max,
        };
        let samples = SetSamples {
            events: vec![delay(&head, 20, 2_050, 400)],
            envelope: vec![bin(10, 120), bin(20, 400), bin(50, 130), bin(90, 700)],
            ..SetSamples::default()
        };
        let picture = TimePicture::new(1, 10, &batch(&program, &head), &samples, 100.0);
        assert_eq!(picture.full_from, Some(0.205));
        let highs: Vec<u64> = picture.band.iter().map(|band| band.high).collect();
        assert_eq!(highs, [120, 150, 130, 150]);
        // The bin in which the list ended may hold more than is listed.
        let marks: Vec<_> = picture
            .unlisted
            .iter()
            .map(|m| (m.column, m.cycles))
            .collect();
        assert_eq!(marks, [(2, 400), (9, 700)]);
        assert_eq!(picture.longest(), Some(700));
    }
}
