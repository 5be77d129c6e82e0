//! Sets whose counts come divided in time, put together by what really happened meanwhile.
//!
//! Measured code doesn't know when a load began. It counts in parts of time that are finer than the phases of a load;
//! which of them belong to a phase, and which to the time in which the load before still had to end, is known
//! when the load has told its times. Whatever else a set holds has times of its own.

use tare_wire::packed::{Malformed, Packed};

use super::{Received, Set};
use crate::model::{Agent, Count, Instance, Program, Record, Samples, SetHead, SetSamples};

/// A phase of a load, in the unit of the sets' times and counted from their first sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// When it was due.
    pub due: u64,
    /// When its load really began: not before it was due.
    pub began: u64,
}

/// A count of the samples of one value within one part of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartCount {
    pub part: u32,
    pub value: u64,
    pub count: u64,
}

/// The counts of a set as they come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Divided {
    /// How many parts there are to be.
    pub parts: u32,
    /// When each part begins, counted from the set's first sample; empty if there is but one.
    pub begins: Vec<u64>,
    /// By rising part, and value within each.
    pub counts: Vec<PartCount>,
}

/// The key of a set among those that one is divided into: number of the phase, and whether its load had not begun yet.
type Key = (usize, bool);

impl Divided {
    /// Takes the begins of parts: rows of (set, step).
    pub(super) fn parts(sets: &mut [Set], rows: Packed<'_>) -> Result<(), Malformed> {
        let mut of = None;
        let mut begin: u64 = 0;
        for row in rows.rows::<2>() {
            let [number, step] = row?;
            if of.replace(number) != Some(number) {
                begin = 0;
            }
            begin = begin.checked_add(step).ok_or(Malformed)?;
            let place = usize::try_from(number).map_err(|_| Malformed)?;
            let set = sets.get_mut(place).ok_or(Malformed)?;
            set.divided.begins.push(begin);
        }
        Ok(())
    }

    /// Says whether there are as many parts as were said, they rise from 0, and every count belongs to one.
    pub(super) fn is_sound(&self) -> bool {
        let parts = self.begins.len().max(1);
        parts == self.parts.max(1) as usize
            && self.begins.first().is_none_or(|first| *first == 0)
            && self.begins.is_sorted_by(|a, b| a < b)
            && self.counts.iter().all(|row| (row.part as usize) < parts)
    }

    /// Returns the phase to which a part belongs.
    fn key(&self, part: usize, phases: &[Phase]) -> Key {
        let begin = self.begins.get(part).copied().unwrap_or(0);
        let phase = phases.partition_point(|phase| phase.due <= begin).max(1) - 1;
        (phase, begin < phases[phase].began)
    }

    /// Returns the phase to which a time belongs, counted from the set's first sample.
    fn key_at(&self, time: u64, phases: &[Phase]) -> Key {
        let part = self.begins.partition_point(|begin| *begin <= time).max(1) - 1;
        self.key(part, phases)
    }
}

impl Received {
    /// Makes the record and the samples of a cell with one instance. `agent` is who ran it, as far as the laboratory knows;
    /// `phases` are those of its load, none if it had but one.
    #[must_use]
    pub fn into_record(
        self,
        agent: Agent,
        instance: Instance,
        phases: &[Phase],
    ) -> (Record, Samples, Vec<String>) {
        let mut record = Record {
            programs: vec![Program {
                agent: Agent {
                    version: self.version,
                    environment: self.environment,
                    ..agent
                },
                preparation: self.preparation,
                calibration: self.calibration,
                frequencies: self.frequencies,
                counters: self.counters,
                facts: self.facts,
            }],
            values: self.values,
            exceeded: self.exceeded,
            traces: self.traces,
            ..Record::default()
        };
        let mut sets = Vec::new();
        // Where each set went that came: its own number, or one for each phase.
        let mut places: Vec<Vec<(Key, u32)>> = Vec::new();
        let divisions: Vec<(SetHead, Divided)> = self
            .sets
            .iter()
            .map(|set| {
                (
                    set.head.clone(),
                    Divided {
                        counts: Vec::new(),
                        ..set.divided.clone()
                    },
                )
            })
            .collect();
        for set in self.sets {
            let mut own = Vec::new();
            for (key, head, samples) in divide(set, phases) {
                own.push((key, u32::try_from(sets.len()).unwrap_or(u32::MAX)));
                record.sets.push(head);
                sets.push(samples);
            }
            places.push(own);
        }
        let new_place = |set: u32, index: u64| {
            let own = &places[set as usize];
            let (head, divided) = &divisions[set as usize];
            let key = match own.as_slice() {
                [_] => return own[0].1,
                _ => divided.key_at(index.saturating_mul(head.period), phases),
            };
            let found = own.iter().find(|(of, _)| *of == key);
            found.or(own.first()).map_or(0, |(_, place)| *place)
        };
        for exceeded in &mut record.exceeded {
            exceeded.set = new_place(exceeded.set, exceeded.index);
        }
        for trace in &mut record.traces {
            trace.set = new_place(trace.set, trace.index);
        }
        let samples = Samples {
            instances: vec![instance],
            sets,
        };
        (record, samples, self.notices)
    }
}

/// Divides a set by the phases of its load; one without parts stays whole.
fn divide(set: Set, phases: &[Phase]) -> Vec<(Key, SetHead, SetSamples)> {
    let Set {
        head,
        samples,
        divided,
    } = set;
    if divided.begins.len() < 2 || phases.is_empty() {
        let samples = SetSamples {
            counts: merged(divided.counts.iter()),
            ..samples
        };
        return vec![((0, false), head, samples)];
    }
    // Two for each phase: of its load, and of the time before that began.
    let mut buckets = vec![(Vec::new(), SetSamples::default()); 2 * phases.len()];
    let place = |(phase, between): Key| 2 * phase + usize::from(between);
    let of_time = |time: u64| place(divided.key_at(time, phases));
    for row in &divided.counts {
        buckets[place(divided.key(row.part as usize, phases))]
            .0
            .push(*row);
    }
    for event in samples.events {
        buckets[of_time(event.at.wrapping_sub(head.first))]
            .1
            .events
            .push(event);
    }
    for event in samples.raw {
        buckets[of_time(event.at.wrapping_sub(head.first))]
            .1
            .raw
            .push(event);
    }
    for bin in samples.envelope {
        let time = u64::from(bin.bin).saturating_mul(head.bin);
        buckets[of_time(time)].1.envelope.push(bin);
    }
    let mut divisions = Vec::new();
    for (place, (counts, mut own)) in buckets.into_iter().enumerate() {
        own.counts = merged(counts.iter());
        let key = (place / 2, place % 2 == 1);
        // The time between two phases is there only if something fell into it.
        if !key.1 || own != SetSamples::default() {
            divisions.push((key, part_head(&head, key, &own), own));
        }
    }
    if head.uncounted > 0 {
        divisions.push(((usize::MAX, false), lost_head(&head), SetSamples::default()));
    }
    divisions
}

/// Adds counts per value up over parts.
fn merged<'a>(rows: impl Iterator<Item = &'a PartCount>) -> Vec<Count> {
    let mut counts: Vec<Count> = rows
        .map(|row| Count {
            value: row.value,
            count: row.count,
        })
        .collect();
    counts.sort_by_key(|row| row.value);
    counts.dedup_by(|row, before| {
        let same = row.value == before.value;
        if same {
            before.count += row.count;
        }
        same
    });
    counts
}

/// Sums up the samples of one phase.
fn part_head(whole: &SetHead, (phase, between): Key, own: &SetSamples) -> SetHead {
    let all = |from: u64| own.counts.iter().filter(move |row| row.value >= from);
    let number = |from| all(from).map(|row| row.count).sum::<u64>();
    let sum = |from| all(from).map(|row| row.value * row.count).sum::<u64>();
    let listed: u64 = own.events.iter().map(|event| event.value).sum();
    let (seen, kept) = (number(whole.threshold), own.events.len() as u64);
    let unkept_max = all(whole.threshold).rev().find(|row| {
        let events = own.events.iter();
        (events.filter(|event| event.value == row.value).count() as u64) < row.count
    });
    let labels = whole.labels.clone().with("phase", phase);
    SetHead {
        measure: whole.measure.clone(),
        labels: if between {
            labels.with("between", "yes")
        } else {
            labels
        },
        n: number(0),
        sum: sum(0),
        min: own.counts.first().map_or(0, |row| row.value),
        max: own.counts.last().map_or(0, |row| row.value),
        seen,
        kept,
        unkept_max: unkept_max
            .filter(|_| seen > kept)
            .map_or(0, |row| row.value),
        unkept_sum: sum(whole.threshold).saturating_sub(listed),
        uncounted: 0,
        uncounted_sum: 0,
        uncounted_max: 0,
        raw: own.raw.len() as u64,
        ..whole.clone()
    }
}

/// Sums up the samples of which nobody knows to which phase they belong, since no room was left to count them.
fn lost_head(whole: &SetHead) -> SetHead {
    SetHead {
        measure: whole.measure.clone(),
        labels: whole.labels.clone().with("phase", "unknown"),
        n: whole.uncounted,
        sum: whole.uncounted_sum,
        min: 0,
        max: whole.uncounted_max,
        seen: 0,
        kept: 0,
        raw: 0,
        ..whole.clone()
    }
}
