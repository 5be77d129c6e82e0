//! Sets whose counts come divided in time, put together by what really happened meanwhile.
//!
//! Measured code doesn't know when a load began. It counts in parts of time that are finer than the phases of a load;
//! which of them belong to a phase, and which to the time in which the load before still had to end, is known
//! when the load has told its times. Whatever else a set holds has times of its own.

use std::collections::BTreeMap;

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
            && self.begins.is_sorted()
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
            // Where nothing of that time is counted, it is among those that had no room.
            found.or(own.last()).map_or(0, |(_, place)| *place)
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
        let lost = lost_head(&head, &divisions);
        divisions.push(((usize::MAX, false), lost, SetSamples::default()));
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
    let sum = |from| {
        let values = all(from).map(|row| u128::from(row.value) * u128::from(row.count));
        u64::try_from(values.sum::<u128>()).unwrap_or(u64::MAX)
    };
    let mut listed = BTreeMap::<u64, u64>::new();
    for event in &own.events {
        *listed.entry(event.value).or_default() += 1;
    }
    let of_list = |value: &u64| listed.get(value).copied().unwrap_or(0);
    let in_list = listed.iter().map(|(value, count)| value * count);
    let unkept_max = all(whole.threshold)
        .rev()
        .find(|row| of_list(&row.value) < row.count);
    let labels = whole.labels.clone().with("phase", phase);
    SetHead {
        labels: match between {
            true => labels.with("between", "yes"),
            false => labels,
        },
        n: number(0),
        sum: sum(0),
        min: own.counts.first().map_or(0, |row| row.value),
        max: own.counts.last().map_or(0, |row| row.value),
        seen: number(whole.threshold),
        kept: own.events.len() as u64,
        unkept_max: unkept_max.map_or(0, |row| row.value),
        unkept_sum: sum(whole.threshold).saturating_sub(in_list.sum()),
        uncounted: 0,
        uncounted_sum: 0,
        uncounted_max: 0,
        raw: own.raw.len() as u64,
        ..whole.clone()
    }
}

/// Sums up the samples of which nobody knows to which phase they belong, since no room was left to count them: what the
/// phases do not have of the whole.
fn lost_head(whole: &SetHead, phases: &[(Key, SetHead, SetSamples)]) -> SetHead {
    let rest = |of: fn(&SetHead) -> u64| {
        let known: u64 = phases.iter().map(|(_, head, _)| of(head)).sum();
        of(whole).saturating_sub(known)
    };
    let unkept_sum = rest(|head| head.unkept_sum);
    SetHead {
        labels: whole.labels.clone().with("phase", "unknown"),
        n: whole.uncounted,
        sum: whole.uncounted_sum,
        min: 0,
        max: whole.uncounted_max,
        seen: rest(|head| head.seen),
        kept: 0,
        unkept_max: if unkept_sum > 0 {
            whole.uncounted_max
        } else {
            0
        },
        unkept_sum,
        raw: 0,
        ..whole.clone()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Bin, Calibration, Event, Exceeded, Labels, Preparation, Trace, Unit};
    use crate::samples;

    const PERIOD: u64 = 100;
    const PART: u64 = 1_000;

    /// Folds samples of (index, value) as measured code does that counts in parts of ten samples: it has room to count
    /// values below `room`, and for `capacity` values in its list from 500 on.
    fn folded(rows: &[(u64, u64)], parts: u64, room: u64, capacity: usize) -> Set {
        let mut set = Set {
            head: SetHead {
                measure: "latency".to_owned(),
                labels: Labels::of([("thread", "0")]),
                unit: Unit::Ns,
                first: 7_000,
                last: 7_000 + parts * PART,
                period: PERIOD,
                threshold: 500,
                bin: 333,
                ..SetHead::default()
            },
            samples: SetSamples::default(),
            divided: Divided {
                parts: u32::try_from(parts).unwrap(),
                begins: (0..parts).map(|part| part * PART).collect(),
                counts: Vec::new(),
            },
        };
        let Set { head, samples, .. } = &mut set;
        let mut counts = BTreeMap::<(u32, u64), u64>::new();
        for &(index, value) in rows {
            let due = index * PERIOD;
            head.n += 1;
            head.sum += value;
            head.max = head.max.max(value);
            let at = head.first + due;
            let event = Event { index, at, value };
            let is_long = value >= head.threshold;
            let is_listed = is_long && samples.events.len() < capacity;
            head.seen += u64::from(is_long);
            if is_listed {
                samples.events.push(event);
            } else if is_long {
                head.unkept_sum += value;
            }
            if samples.raw.len() < 5 {
                samples.raw.push(event);
            }
            // What is listed is counted in any case.
            if value < room || is_listed {
                let part = u32::try_from(due / PART).unwrap();
                *counts.entry((part, value)).or_default() += 1;
            } else {
                head.uncounted += 1;
                head.uncounted_sum += value;
                head.uncounted_max = head.uncounted_max.max(value);
            }
            let bin = u32::try_from(due / head.bin).unwrap();
            match samples.envelope.last_mut() {
                Some(last) if last.bin == bin => {
                    last.n += 1;
                    last.sum += value;
                    last.min = last.min.min(value);
                    last.max = last.max.max(value);
                }
                _ => samples.envelope.push(Bin {
                    bin,
                    n: 1,
                    sum: value,
                    min: value,
                    max: value,
                }),
            }
        }
        head.kept = samples.events.len() as u64;
        head.raw = samples.raw.len() as u64;
        let counts = counts.into_iter();
        set.divided.counts = counts
            .map(|((part, value), count)| PartCount { part, value, count })
            .collect();
        set
    }

    fn received(sets: Vec<Set>) -> Received {
        Received {
            version: String::new(),
            environment: String::new(),
            preparation: Preparation {
                cpu: None,
                buffer_bytes: 0,
                locked: true,
                latency_held: true,
            },
            calibration: Calibration {
                fenced_region_cycles: 0,
                fenced_cost_cycles: 0.0,
                published_region_cycles: 0,
                published_cost_cycles: 0.0,
                bare_read_cycles: 0.0,
                step_cycles: 1,
                loop_cycles: 0.0,
            },
            frequencies: Vec::new(),
            counters: Vec::new(),
            facts: Vec::new(),
            values: Vec::new(),
            exceeded: Vec::new(),
            traces: Vec::new(),
            notices: Vec::new(),
            sets,
        }
    }

    fn divided(received: Received, phases: &[Phase]) -> (Record, Samples) {
        let (record, samples, _) =
            received.into_record(Agent::default(), Instance::default(), phases);
        (record, samples)
    }

    fn phase(due: u64, began: u64) -> Phase {
        Phase { due, began }
    }

    fn labels(record: &Record) -> Vec<String> {
        let sets = record.sets.iter();
        sets.map(|head| head.labels.to_string()).collect()
    }

    /// Makes rows for rising indices without some, and phases of whole parts that begin some parts late.
    fn measured() -> impl Strategy<Value = (Vec<(u64, u64)>, u64, Vec<Phase>)> {
        let rows = vec((1_u64..4, 0_u64..2_000), 1..200);
        let phases = vec((1_u64..5, 0_u64..5), 1..6);
        (rows, phases).prop_map(|(rows, lengths)| {
            let mut index = 0;
            let rows: Vec<(u64, u64)> = rows
                .into_iter()
                .map(|(step, value)| {
                    index += step;
                    (index - 1, value)
                })
                .collect();
            let mut due = 0;
            let phases = lengths.into_iter().map(|(parts, late)| {
                let found = phase(due, due + late.min(parts) * PART);
                due += parts * PART;
                found
            });
            (rows, index * PERIOD / PART + 2, phases.collect())
        })
    }

    proptest! {
        #[test]
        fn what_is_divided_adds_up_to_the_whole(
            (rows, parts, phases) in measured(),
            room in prop_oneof![Just(u64::MAX), 0_u64..2_000],
            capacity in 0_usize..20,
        ) {
            let set = folded(&rows, parts, room, capacity);
            let (head, whole) = (set.head.clone(), set.samples.clone());
            let (record, samples) = divided(received(vec![set]), &phases);
            prop_assert_eq!(samples::check(&record, &samples), Ok(()));
            let sum = |of: fn(&SetHead) -> u64| record.sets.iter().map(of).sum::<u64>();
            let all: [fn(&SetHead) -> u64; 8] = [
                |h| h.n,
                |h| h.sum,
                |h| h.seen,
                |h| h.kept,
                |h| h.unkept_sum,
                |h| h.uncounted,
                |h| h.uncounted_sum,
                |h| h.raw,
            ];
            for (place, of) in all.into_iter().enumerate() {
                prop_assert_eq!(sum(of), of(&head), "figure {}", place);
            }
            let longest = record.sets.iter().map(|head| head.max).max();
            prop_assert_eq!(longest, Some(head.max));
            let mut events: Vec<Event> = samples.sets.iter().flat_map(|set| set.events.clone()).collect();
            events.sort_by_key(|event| event.index);
            prop_assert_eq!(events, whole.events);
            let bins: u64 = samples.sets.iter().flat_map(|set| &set.envelope).map(|bin| bin.n).sum();
            prop_assert_eq!(bins, head.n);
        }

        #[test]
        fn every_sample_is_in_the_phase_in_which_it_was_due((rows, parts, phases) in measured()) {
            let (record, samples) = divided(
                received(vec![folded(&rows, parts, u64::MAX, usize::MAX)]),
                &phases,
            );
            for (head, set) in record.sets.iter().zip(&samples.sets) {
                let Some(number) = head.labels.number("phase") else {
                    // A single part can't be divided.
                    prop_assert_eq!(record.sets.len(), 1);
                    continue;
                };
                let number = number as usize;
                let own = phases[number];
                let end = phases.get(number + 1).map_or(u64::MAX, |next| next.due);
                let (from, to) = match head.labels.get("between") {
                    Some(_) => (own.due, own.began),
                    None => (own.began, end),
                };
                let inside = |index: u64| (from..to).contains(&(index * PERIOD));
                let due: Vec<u64> = rows.iter().filter(|row| inside(row.0)).map(|row| row.1).collect();
                prop_assert_eq!(head.n, due.len() as u64);
                prop_assert_eq!(head.sum, due.iter().sum::<u64>());
                prop_assert_eq!(head.min, due.iter().copied().min().unwrap_or(0));
                prop_assert_eq!(head.max, due.iter().copied().max().unwrap_or(0));
                prop_assert!(set.events.iter().chain(&set.raw).all(|event| inside(event.index)));
                prop_assert_eq!((head.unkept_max, head.unkept_sum), (0, 0));
            }
        }
    }

    #[test]
    fn a_phase_whose_load_began_late_has_what_was_before_apart() {
        let rows: Vec<(u64, u64)> = (0..40).map(|index| (index, index)).collect();
        let phases = [phase(0, 0), phase(2_000, 3_000)];
        let (record, _) = divided(received(vec![folded(&rows, 4, u64::MAX, 9)]), &phases);
        let expected = [
            "phase=0 thread=0",
            "phase=1 thread=0",
            "between=yes phase=1 thread=0",
        ];
        assert_eq!(labels(&record), expected);
        let n: Vec<u64> = record.sets.iter().map(|head| head.n).collect();
        assert_eq!(n, [20, 10, 10]);
        assert_eq!((record.sets[1].min, record.sets[2].max), (30, 29));
    }

    #[test]
    fn sets_stay_whole_without_parts_or_phases() {
        let rows = [(0, 5), (12, 5)];
        for (parts, phases) in [(2, &[][..]), (1, &[phase(0, 0), phase(500, 500)])] {
            let mut set = folded(&rows, 2, u64::MAX, 9);
            if parts == 1 {
                set.divided = Divided {
                    parts,
                    begins: Vec::new(),
                    counts: vec![PartCount {
                        part: 0,
                        value: 5,
                        count: 2,
                    }],
                };
            }
            let (record, samples) = divided(received(vec![set]), phases);
            assert_eq!(labels(&record), ["thread=0"]);
            assert_eq!(samples.sets[0].counts, [Count { value: 5, count: 2 }]);
        }
    }

    #[test]
    fn what_exceeded_the_limit_or_was_traced_goes_with_its_sample() {
        let rows: Vec<(u64, u64)> = (0..20).map(|index| (index, 600 + index)).collect();
        let sets = vec![
            folded(&rows, 2, u64::MAX, 99),
            // The later half of the second set was not counted.
            folded(&rows, 2, 610, 0),
        ];
        let mut received = received(sets);
        let places = [(0, 3), (0, 13), (1, 3), (1, 13)];
        for (set, index) in places {
            let value = 600 + index;
            received.exceeded.push(Exceeded { set, index, value });
            received.traces.push(Trace {
                set,
                index,
                value,
                complete: true,
                events: Vec::new(),
            });
        }
        // The load of the second phase never began.
        let phases = [phase(0, 0), phase(1_000, 2_000)];
        let (record, _) = divided(received, &phases);
        let expected = [
            "phase=0 thread=0",
            "phase=1 thread=0",
            "between=yes phase=1 thread=0",
            "phase=0 thread=0",
            "phase=1 thread=0",
            "between=yes phase=1 thread=0",
            "phase=unknown thread=0",
        ];
        assert_eq!(labels(&record), expected);
        let exceeded: Vec<u32> = record.exceeded.iter().map(|found| found.set).collect();
        let traced: Vec<u32> = record.traces.iter().map(|trace| trace.set).collect();
        assert_eq!(exceeded, traced);
        assert_eq!(exceeded, [0, 2, 3, 5]);
        let lost = &record.sets[6];
        assert_eq!(
            (lost.n, lost.max, lost.seen, lost.unkept_max),
            (10, 619, 10, 619)
        );
    }
}
