//! Makes cells of primitives whose figures are known.

use tare_results::model::{
    Cell, CellPlan, Count, Expected, Fact, Labels, Record, Samples, Schedule, SetHead, SetSamples,
    Value,
};
use tare_results::work::Work;

use super::{HZ, Run, spec};

/// What a cell measured. Labels are words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Primitives<'a> {
    pub target: &'a str,
    pub area: &'a str,
    /// Values: measure, labels, number in ns, or in its own unit where that is not a time.
    pub values: &'a [(&'a str, &'a str, f64)],
    /// Sets: measure, labels, samples in cycles.
    pub sets: &'a [(&'a str, &'a str, &'a [u64])],
    /// What was expected: measure, labels, value.
    pub expected: &'a [(&'a str, &'a str, f64)],
    /// Facts: name, labels, text.
    pub facts: &'a [(&'a str, &'a str, &'a str)],
}

impl Run {
    /// Adds a cell.
    pub fn measured(&mut self, block: u32, told: Primitives<'_>) -> &mut Cell {
        let labels = |words: &str| Labels::parse(words).unwrap();
        let expected = told
            .expected
            .iter()
            .map(|(measure, words, value)| Expected {
                measure: (*measure).to_owned(),
                labels: labels(words),
                value: *value,
                why: "worked out before".to_owned(),
            });
        let mut plan = CellPlan {
            id: self.plans.len() as u32 + 1,
            block,
            labels: Labels::default().with("area", told.area),
            expected: expected.collect(),
            limit_seconds: 60.0,
            ..CellPlan::new(
                "primitives",
                spec(told.target),
                told.area,
                Work::new("primitives", &format!("area={}", told.area)),
            )
        };
        if !self.load.is_empty() {
            plan.load = Schedule::parse(self.load).unwrap();
        }
        self.plans.push(plan.clone());
        let is_time = |measure: &str| ["cost", "mean", "clock"].contains(&measure);
        let values = told.values.iter().map(|(measure, words, value)| Value {
            measure: (*measure).to_owned(),
            labels: labels(words),
            unit: if is_time(measure) { "cycles" } else { "" }.to_owned(),
            value: if is_time(measure) {
                value * HZ / 1e9
            } else {
                *value
            },
        });
        let mut program = self.program();
        program.facts = told
            .facts
            .iter()
            .map(|(name, words, value)| Fact {
                name: (*name).to_owned(),
                labels: labels(words),
                value: (*value).to_owned(),
            })
            .collect();
        let sets = told.sets.iter().map(|(measure, words, samples)| SetHead {
            measure: (*measure).to_owned(),
            labels: labels(words),
            n: samples.len() as u64,
            sum: samples.iter().sum(),
            min: samples.iter().copied().min().unwrap_or(0),
            max: samples.iter().copied().max().unwrap_or(0),
            ..SetHead::default()
        });
        let record = Record {
            programs: vec![program],
            values: values.collect(),
            sets: sets.collect(),
            ..Record::default()
        };
        let counts = |samples: &[u64]| {
            let mut rows: Vec<Count> = Vec::new();
            let mut samples = samples.to_vec();
            samples.sort_unstable();
            for value in samples {
                match rows.last_mut().filter(|row| row.value == value) {
                    Some(row) => row.count += 1,
                    None => rows.push(Count { value, count: 1 }),
                }
            }
            SetSamples {
                counts: rows,
                ..SetSamples::default()
            }
        };
        let samples = Samples {
            sets: told
                .sets
                .iter()
                .map(|(.., samples)| counts(samples))
                .collect(),
            ..Samples::default()
        };
        self.push_samples(plan, record, samples)
    }
}
