//! What was counted on the measured CPU while it measured: the unikernel's own interrupts.
//!
//! The count stands beside the number of listed delays: as many delays as interrupts means that each
//! was seen, and delays beyond them came from below.

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::{Record, Unit};

use super::interval::Spread;

/// Says how often something happened on the measured CPU during the runs of a combination.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CounterFigure {
    /// What is counted: `timer interrupts`, for example.
    pub name: String,
    /// How often it happened, in all runs that count it.
    pub count: u64,
    /// How often per second, from the first sample to the last; null if the TSC's frequency is needed and not known.
    pub per_second: Option<Spread<f64>>,
    /// Samples at or above the threshold in the same runs, listed or not: delays, gaps, late wake-ups.
    pub delays: u64,
}

/// What one cell counted.
#[derive(Clone, Debug)]
pub struct Counted {
    counters: Vec<(String, u64)>,
    seconds: Option<f64>,
    delays: u64,
}

impl Counted {
    /// Takes the record of a cell whose TSC has this frequency.
    pub fn of(record: &Record, hz: Option<f64>) -> Self {
        let counters = record.programs.iter().flat_map(|program| &program.counters);
        let seconds = record.sets.iter().map(|head| {
            let ticks = head.length() as f64;
            match head.unit {
                Unit::Cycles => Some(ticks / hz?),
                Unit::Ns => Some(ticks / 1e9),
            }
        });
        let seconds: Option<Vec<f64>> = seconds.collect();
        Self {
            counters: counters.map(|c| (c.name.clone(), c.count)).collect(),
            seconds: seconds.and_then(|all| all.into_iter().max_by(f64::total_cmp)),
            delays: record.sets.iter().map(|head| head.seen).sum(),
        }
    }

    fn count(&self, name: &str) -> Option<u64> {
        let counters = self.counters.iter();
        counters
            .filter(|counter| counter.0 == name)
            .map(|counter| counter.1)
            .reduce(|a, b| a + b)
    }
}

/// Adds up what the cells of a combination counted, in the order in which they name it.
pub fn combine(cells: &[Counted]) -> Vec<CounterFigure> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in cells.iter().flat_map(|cell| &cell.counters) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let figure = |name: &str| {
        let counted = || {
            cells
                .iter()
                .filter_map(|cell| Some((cell.count(name)?, cell)))
        };
        let rates: Option<Vec<(f64, f64)>> = counted()
            .map(|(count, cell)| Some((count as f64, cell.seconds?)))
            .collect();
        CounterFigure {
            name: name.to_owned(),
            count: counted().map(|(count, _)| count).sum(),
            per_second: rates.and_then(|rates| Spread::rate(&rates)),
            delays: counted().map(|(_, cell)| cell.delays).sum(),
        }
    };
    names.into_iter().map(figure).collect()
}
