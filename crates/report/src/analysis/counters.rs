//! What was counted on the measured CPU while it measured: the unikernel's own interrupts.
//!
//! The count stands beside the number of listed delays: as many delays as interrupts means that each
//! was seen, and delays beyond them came from below.

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::Measurement;

use super::combine::Spread;

/// Says how often something happened on the measured CPU during the batches of a combination.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CounterFigure {
    /// What is counted: `timer interrupts`, for example.
    pub name: String,
    /// How often it happened, in all runs that count it.
    pub count: u64,
    /// How often per second, from first to last stamp; null if the TSC's frequency is not known.
    pub per_second: Option<Spread<f64>>,
    /// Delays above the threshold in the same runs, listed or not.
    pub delays: u64,
}

/// Adds up what the cells of a combination counted, in the order in which they name it.
pub(super) fn combine(cells: &[&Measurement], hz: Option<f64>) -> Vec<CounterFigure> {
    let mut names: Vec<&str> = Vec::new();
    for counter in cells.iter().flat_map(|cell| &cell.counters) {
        if !names.contains(&counter.name.as_str()) {
            names.push(&counter.name);
        }
    }
    let figure = |name: &str| {
        let of = |cell: &Measurement| {
            let counters = cell.counters.iter();
            let count = counters
                .filter(|c| c.name == name)
                .map(|c| c.count)
                .reduce(|a, b| a + b)?;
            Some((
                count,
                cell.batch.delays_seen,
                cell.batch.wall_cycles() as f64,
            ))
        };
        let counted: Vec<_> = cells.iter().filter_map(|cell| of(cell)).collect();
        let rates: Option<Vec<(f64, f64)>> = counted
            .iter()
            .map(|(count, _, wall)| Some((*count as f64, wall / hz?)))
            .collect();
        CounterFigure {
            name: name.to_owned(),
            count: counted.iter().map(|(count, ..)| count).sum(),
            per_second: rates.and_then(|rates| Spread::rate(&rates)),
            delays: counted.iter().map(|(_, delays, _)| delays).sum(),
        }
    };
    names.into_iter().map(figure).collect()
}
