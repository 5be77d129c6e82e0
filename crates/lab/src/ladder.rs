//! Ladders: cells that run upwards within their block, until the target no longer keeps up.
//!
//! The rungs behind a saturated one are skipped, with a notice. A rung that failed says nothing
//! about the next one, which runs. Both hold as well for rungs that were run before the run was
//! resumed.

use std::collections::HashMap;

use tare_results::model::{Arrived, Cell, CellPlan, Outcome, Rung};
use tare_results::{CellState, RunFolder};

/// The ladders of a run that have ended, each in a block, with what ended them.
#[derive(Debug, Default)]
pub(crate) struct Ladders(HashMap<(u32, String), (u32, String)>);

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
        let Outcome::Done {
            record,
            cut_short: None,
        } = &cell.outcome
        else {
            return;
        };
        let saturated = record
            .arrived
            .as_ref()
            .map(|Arrived { saturated, .. }| saturated);
        let (Some(rung), Some(Some(why))) = (&cell.plan.rung, saturated) else {
            return;
        };
        let reason = format!("{} was saturated: {why}", cell.plan.label());
        let ladder = (cell.plan.block, rung.ladder.clone());
        let ended = self.0.entry(ladder).or_insert((rung.step, reason.clone()));
        if rung.step < ended.0 {
            *ended = (rung.step, reason);
        }
    }

    /// Says why a cell is not worth running, if it is not.
    pub(crate) fn leave_out(&self, plan: &CellPlan) -> Option<String> {
        let Rung { ladder, step } = plan.rung.as_ref()?;
        let (ended, reason) = self.0.get(&(plan.block, ladder.clone()))?;
        (step > ended).then(|| reason.clone())
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
