//! Combinations that are left out of a matrix.

use tare_results::model::{CellPlan, Schedule};
use tare_results::target::TargetSpec;

/// Describes the combinations that are left out: those that have one of the values of every list
/// that is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exclusion {
    pub kinds: Vec<String>,
    pub targets: Vec<TargetSpec>,
    pub loads: Vec<Schedule>,
    /// Values of the experiments' parameters, by name.
    pub labels: Vec<(String, Vec<String>)>,
}

impl Exclusion {
    /// Returns whether a combination is excluded.
    pub fn covers(&self, cell: &CellPlan) -> bool {
        let is_in = |list: &[String], value: &str| {
            list.is_empty() || list.iter().any(|known| known == value)
        };
        is_in(&self.kinds, &cell.experiment)
            && (self.targets.is_empty() || self.targets.contains(&cell.target))
            && (self.loads.is_empty() || self.loads.contains(&cell.load))
            && self.labels.iter().all(|(name, values)| {
                let own = cell.labels.get(name);
                own.is_some_and(|own| values.iter().any(|value| value == own))
            })
    }
}
