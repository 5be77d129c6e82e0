//! Sets whose counts come divided in time, put together by the times at which the loads really ran.
//!
//! Measured code doesn't know when a load began. It counts in parts of time that are finer than the
//! phases of a load; which of them belong to a phase, and which to the time in which the load
//! before still had to end, is known when the load has reported its times. All else in a set comes
//! with its own times.

use std::collections::BTreeMap;
use std::mem::take;

use tare_wire::rows;

use super::Received;
use super::sets::Set;
use crate::bounds;
use crate::model::{Agent, Count, Instance, Record, Samples, SetHead, SetSamples};

/// A phase of a load, in the unit of the sets' times and counted from their first sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// When it was due.
    pub due: u64,
    /// When its load really began: not before it was due.
    pub began: u64,
}

impl Received {
    /// Makes the record and the samples of a cell with one instance. `agent` is who ran it, as far
    /// as the laboratory knows; `phases` are those of its load, none if it had but one. More sets
    /// than a cell can have are not divided further: writing the cell refuses them.
    pub fn into_record(
        self,
        agent: Agent,
        instance: Instance,
        phases: &[Phase],
    ) -> (Record, Samples, Vec<String>) {
        let (mut record, mut program) = (self.record, self.program);
        program.agent = Agent {
            version: take(&mut program.agent.version),
            environment: take(&mut program.agent.environment),
            ..agent
        };
        record.programs.push(program);
        let sets = self.sets.0;
        // What names a sample goes with it.
        let division = |set: u32, index: u64| {
            let of = &sets[set as usize];
            let time = index.saturating_mul(of.head.period);
            (set, division_of(&of.begins, phases, time))
        };
        let exceeded = record.exceeded.iter().map(|it| division(it.set, it.index));
        let traces = record.traces.iter().map(|it| division(it.set, it.index));
        let (exceeded, traces): (Vec<_>, Vec<_>) = (exceeded.collect(), traces.collect());

        let mut samples = Samples {
            instances: vec![instance],
            sets: Vec::new(),
        };
        let mut places = Vec::new();
        for (number, set) in (0..).zip(sets) {
            if record.sets.len() > bounds::MOST_SETS {
                break;
            }
            for (division, head, own) in divide(set, phases) {
                places.push((number, division));
                record.sets.push(head);
                samples.sets.push(own);
            }
        }
        let place = |of: (u32, usize)| {
            // Where nothing of that time is counted, it is among those that had no room: the last
            // ones.
            let found = places.binary_search(&of);
            found.unwrap_or_else(|_| places.partition_point(|place| place.0 <= of.0).max(1) - 1)
                as u32
        };
        for (it, of) in record.exceeded.iter_mut().zip(exceeded) {
            it.set = place(of);
        }
        for (it, of) in record.traces.iter_mut().zip(traces) {
            it.set = place(of);
        }
        (record, samples, self.notices)
    }
}

/// Returns the number of the division to which a time belongs, counted from the first sample. Each
/// phase has two: that of its load, and that of the time before it began. A set that stays whole
/// has number 0 alone.
fn division_of(begins: &[u64], phases: &[Phase], time: u64) -> usize {
    if begins.len() < 2 || phases.is_empty() {
        return 0;
    }
    let part = begins.partition_point(|begin| *begin <= time).max(1) - 1;
    let begin = begins[part];
    let phase = phases.partition_point(|phase| phase.due <= begin).max(1) - 1;
    2 * phase + usize::from(begin < phases[phase].began)
}

/// Divides a set by the phases of its load; one without parts stays whole.
fn divide(set: Set, phases: &[Phase]) -> Vec<(usize, SetHead, SetSamples)> {
    let Set {
        head,
        samples,
        counts,
        begins,
        ..
    } = set;
    if begins.len() < 2 || phases.is_empty() {
        let counts = merged(counts);
        return vec![(0, head, SetSamples { counts, ..samples })];
    }
    let mut divisions = vec![(Vec::new(), SetSamples::default()); 2 * phases.len()];
    let of_time = |time| division_of(&begins, phases, time);
    for row in counts {
        divisions[of_time(begins[row.part as usize])].0.push(row);
    }
    let of_event = |at: u64| of_time(at.wrapping_sub(head.first));
    for event in samples.events {
        divisions[of_event(event.at)].1.events.push(event);
    }
    for event in samples.raw {
        divisions[of_event(event.at)].1.raw.push(event);
    }
    for bin in samples.envelope {
        let time = u64::from(bin.bin).saturating_mul(head.bin);
        divisions[of_time(time)].1.envelope.push(bin);
    }
    let mut divided = Vec::new();
    for (number, (counts, mut own)) in divisions.into_iter().enumerate() {
        own.counts = merged(counts);
        let labels = head.labels.clone().with("phase", number / 2);
        let (is_between, labels) = match number % 2 {
            0 => (false, labels),
            _ => (true, labels.with("between", "yes")),
        };
        // The time between two phases is there only if something fell into it.
        if !is_between || own != SetSamples::default() {
            let head = SetHead {
                labels,
                ..head_of(&head, &own)
            };
            divided.push((number, head, own));
        }
    }
    if head.uncounted > 0 {
        let lost = lost_head(&head, &divided);
        divided.push((usize::MAX, lost, SetSamples::default()));
    }
    divided
}

/// Adds counts per value up over parts.
fn merged(mut rows: Vec<rows::Count>) -> Vec<Count> {
    rows.sort_by_key(|row| row.value);
    rows.chunk_by(|a, b| a.value == b.value)
        .map(|same| Count {
            value: same[0].value,
            count: same.iter().map(|row| row.count).sum(),
        })
        .collect()
}

/// Sums up the samples of one division.
fn head_of(whole: &SetHead, own: &SetSamples) -> SetHead {
    let from = |least: u64| own.counts.iter().filter(move |row| row.value >= least);
    let number = |least| from(least).map(|row| row.count).sum::<u64>();
    let sum = |least| {
        let values = from(least).map(|row| row.value.saturating_mul(row.count));
        values.fold(0, u64::saturating_add)
    };
    let mut listed = BTreeMap::<u64, u64>::new();
    for event in &own.events {
        *listed.entry(event.value).or_default() += 1;
    }
    let in_list = own.events.iter().map(|event| event.value);
    let in_list = in_list.fold(0, u64::saturating_add);
    let mut unkept = from(whole.threshold).rev();
    let unkept_max = unkept.find(|row| listed.get(&row.value).is_none_or(|n| *n < row.count));
    SetHead {
        n: number(0),
        sum: sum(0),
        min: own.counts.first().map_or(0, |row| row.value),
        max: own.counts.last().map_or(0, |row| row.value),
        seen: number(whole.threshold),
        kept: own.events.len() as u64,
        unkept_max: unkept_max.map_or(0, |row| row.value),
        unkept_sum: sum(whole.threshold).saturating_sub(in_list),
        uncounted: 0,
        uncounted_sum: 0,
        uncounted_min: 0,
        uncounted_max: 0,
        raw: own.raw.len() as u64,
        ..whole.clone()
    }
}

/// Sums up the samples of which nobody knows to which phase they belong, since no room was left to
/// count them: what the phases do not have of the whole.
fn lost_head(whole: &SetHead, divided: &[(usize, SetHead, SetSamples)]) -> SetHead {
    let rest = |of: fn(&SetHead) -> u64| {
        let known = divided.iter().map(|(_, head, _)| of(head));
        of(whole).saturating_sub(known.fold(0, u64::saturating_add))
    };
    let unkept_sum = rest(|head| head.unkept_sum);
    SetHead {
        labels: whole.labels.clone().with("phase", "unknown"),
        n: whole.uncounted,
        sum: whole.uncounted_sum,
        min: whole.uncounted_min,
        max: whole.uncounted_max,
        seen: rest(|head| head.seen),
        kept: 0,
        unkept_max: match unkept_sum {
            0 => 0,
            _ => whole.uncounted_max,
        },
        unkept_sum,
        raw: 0,
        ..whole.clone()
    }
}
