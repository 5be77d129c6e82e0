//! Makes cells of bandwidths whose figures are known.

use tare_results::model::{
    Cell, CellPlan, Count, Event, Labels, Record, Samples, Schedule, SetHead, SetSamples, Value,
};
use tare_results::work::Work;

use super::{HZ, Run, spec};

/// The bytes that a pass of Copy or Scale moves.
const BYTES: f64 = 160e6;

impl Run {
    /// Adds a cell whose passes of each kernel move this many GB/s, in turn.
    pub fn streamed(&mut self, block: u32, target: &str, rates: &[f64]) -> &mut Cell {
        let mut plan = CellPlan {
            id: self.plans.len() as u32 + 1,
            block,
            labels: self
                .further
                .into_iter()
                .fold(Labels::default(), |all, (key, value)| all.with(key, value)),
            limit_seconds: 60.0,
            ..CellPlan::new(
                "stream",
                spec(target),
                "stream",
                Work::new("stream", "kib=78125 passes=40 attempts=5"),
            )
        };
        if !self.load.is_empty() {
            plan.load = Schedule::parse(self.load).unwrap();
        }
        self.plans.push(plan.clone());
        let (mut record, mut samples) = (
            Record {
                programs: vec![self.program()],
                ..Record::default()
            },
            Samples::default(),
        );
        for (kernel, arrays) in [("copy", 2.0), ("scale", 2.0), ("add", 3.0), ("triad", 3.0)] {
            let labels = Labels::of([("kernel", kernel)]);
            let bytes = BYTES * arrays / 2.0;
            let times: Vec<u64> = rates
                .iter()
                .map(|rate| (bytes / (rate * 1e9) * HZ) as u64)
                .collect();
            let mut sorted = times.clone();
            sorted.sort_unstable();
            record.sets.push(SetHead {
                measure: "pass".to_owned(),
                labels: labels.clone(),
                n: times.len() as u64,
                sum: times.iter().sum(),
                min: sorted[0],
                max: sorted[times.len() - 1],
                raw: times.len() as u64,
                ..SetHead::default()
            });
            record.values.push(Value {
                measure: "bytes".to_owned(),
                labels,
                unit: "bytes".to_owned(),
                value: bytes,
            });
            let mut counts: Vec<Count> = Vec::new();
            for value in sorted {
                match counts.last_mut().filter(|row| row.value == value) {
                    Some(row) => row.count += 1,
                    None => counts.push(Count { value, count: 1 }),
                }
            }
            let mut at = 0;
            let raw = (0..).zip(&times).map(|(index, value)| {
                let event = Event {
                    index,
                    at,
                    value: *value,
                };
                at += value;
                event
            });
            samples.sets.push(SetSamples {
                counts,
                raw: raw.collect(),
                ..SetSamples::default()
            });
        }
        record.values.push(Value {
            measure: "attempts".to_owned(),
            labels: Labels::default(),
            unit: String::new(),
            value: 1.0,
        });
        self.push_samples(plan, record, samples)
    }
}
