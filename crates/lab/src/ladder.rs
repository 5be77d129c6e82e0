//! Ladders: cells that run upwards within their block, until the target no longer keeps up.
//!
//! The rungs behind a saturated one are skipped, with a notice, also where it was run before the run
//! was resumed. Where no instance of the lowest rung did its work, the others are not tried: nothing
//! easier is left. A rung that failed otherwise says nothing about the next one, which runs.

use std::collections::HashMap;

use tare_results::model::{Cell, CellPlan, Outcome, Rung};
use tare_results::{CellState, RunFolder};

use crate::many::NOTHING;

/// The ladders of a run that have ended, each in a block, with the rung that ended them and what
/// becomes of those above it.
#[derive(Debug, Default)]
pub(crate) struct Ladders(HashMap<(u32, String), (u32, Outcome)>);

impl Ladders {
    /// Takes the cells that a folder already has.
    pub(crate) fn of(folder: &RunFolder) -> Self {
        let mut ladders = Self::default();
        let on_ladders = folder
            .plan()
            .cells
            .iter()
            .filter(|plan| plan.rung.is_some());
        for plan in on_ladders {
            if let CellState::Done(cell) = folder.state(plan.id) {
                ladders.take(&cell);
            }
        }
        ladders
    }

    /// Takes a cell that has run.
    pub(crate) fn take(&mut self, cell: &Cell) {
        let Some(rung) = &cell.plan.rung else {
            return;
        };
        let above = match &cell.outcome {
            Outcome::Done {
                record,
                cut_short: None,
            } => {
                let arrived = record.arrived.as_ref();
                let saturated = arrived.and_then(|arrived| arrived.saturated.as_ref());
                saturated.map(|why| Outcome::LeftOut {
                    reason: format!("{} was saturated: {why}", cell.plan.label()),
                })
            }
            Outcome::Failed { reason } if rung.step == 0 && reason.starts_with(NOTHING) => {
                Some(Outcome::NotTried {
                    reason: format!("{} failed", cell.plan.label()),
                })
            }
            _ => None,
        };
        let Some(above) = above else {
            return;
        };
        let ladder = (cell.plan.block, rung.ladder.clone());
        let ended = self.0.entry(ladder);
        let ended = ended.or_insert_with(|| (rung.step, above.clone()));
        if rung.step < ended.0 {
            *ended = (rung.step, above);
        }
    }

    /// Returns what becomes of a cell that is not worth running.
    pub(crate) fn above(&self, plan: &CellPlan) -> Option<Outcome> {
        let Rung { ladder, step } = plan.rung.as_ref()?;
        let (ended, above) = self.0.get(&(plan.block, ladder.clone()))?;
        (step > ended).then(|| above.clone())
    }
}

/// Puts the cells of each ladder of a block into the order of their steps, on the places that they
/// have together.
pub(crate) fn upwards(block: &mut [usize], rung: impl Fn(usize) -> Option<Rung>) {
    let mut ladders: HashMap<String, Vec<usize>> = HashMap::new();
    for (place, item) in block.iter().enumerate() {
        if let Some(Rung { ladder, .. }) = rung(*item) {
            ladders.entry(ladder).or_default().push(place);
        }
    }
    for places in ladders.values() {
        let mut items: Vec<usize> = places.iter().map(|place| block[*place]).collect();
        items.sort_by_key(|item| rung(*item).map(|rung| rung.step));
        for (place, item) in places.iter().zip(items) {
            block[*place] = item;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ladder_goes_upwards_on_its_own_places() {
        let rungs = [
            Some(("a", 1)),
            None,
            Some(("b", 0)),
            Some(("a", 0)),
            Some(("b", 2)),
        ];
        let rung = |item: usize| {
            rungs[item].map(|(ladder, step)| Rung {
                ladder: ladder.to_owned(),
                step,
            })
        };
        let mut block = [4, 0, 1, 3, 2];
        upwards(&mut block, rung);
        assert_eq!(block, [2, 3, 1, 0, 4]);
    }
}
