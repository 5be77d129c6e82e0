//! When the phases of a load really were.
//!
//! A load begins late where the one before took long to end. The measuring code does not know that;
//! the samples from before the load of a phase began are separated afterwards
//! ([`Received::into_record`](crate::receive::Received::into_record)).

use tare_wire::phases::{SLOTS, slots_apart};

use crate::model::{CellPlan, Load, LoadPhase};
use crate::receive::Phase;

impl CellPlan {
    /// Returns how long each phase is; `None` if there is but one.
    pub fn phase_ns(&self) -> Option<u64> {
        let seconds = self.phase_seconds.filter(|_| self.phases.len() > 1)?;
        Some((seconds * 1e9).round() as u64)
    }
}

impl LoadPhase {
    /// Returns how late its load began.
    pub fn late_ns(&self) -> u64 {
        self.started_ns.saturating_sub(self.due_ns)
    }

    /// Returns whether its load began so late that the samples from before are separated.
    pub fn is_late(&self, phase_ns: u64) -> bool {
        slots_apart(self.late_ns(), phase_ns) > 0
    }

    /// Says whether its load was not started, since most of the phase had passed.
    pub fn is_skipped(&self, phase_ns: u64) -> bool {
        slots_apart(self.late_ns(), phase_ns) == SLOTS
    }
}

impl Load {
    /// Returns when its phases were, counted from the first sample; none if it had but one.
    pub fn phases_of(&self, plan: &CellPlan) -> Vec<Phase> {
        let Some(phase_ns) = plan.phase_ns() else {
            return Vec::new();
        };
        let times = (0..).zip(&plan.phases).map(|(number, _)| {
            let due = u64::from(number) * phase_ns;
            let phase = self.phases.iter().find(|phase| phase.number == number);
            let late = match phase {
                Some(phase) if phase.is_skipped(phase_ns) => phase_ns,
                Some(phase) if phase.is_late(phase_ns) => phase.late_ns(),
                _ => 0,
            };
            Phase {
                due,
                began: due + late,
            }
        });
        times.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_begin_in_time_late_or_not_at_all() {
        let phase = |due_ns, started_ns| LoadPhase {
            number: 0,
            load: String::new(),
            due_ns,
            started_ns,
            stopping_ns: started_ns,
            stopped_ns: started_ns,
            last_tool: None,
            achieved: Vec::new(),
        };
        for (late_ns, is_late, is_skipped) in [
            (0, false, false),
            (1_000, false, false),
            (1_001, true, false),
            (32_000, true, false),
            (32_001, true, true),
        ] {
            let phase = phase(1_000, 1_000 + late_ns);
            assert_eq!(phase.late_ns(), late_ns);
            assert_eq!(
                (phase.is_late(64_000), phase.is_skipped(64_000)),
                (is_late, is_skipped),
                "{late_ns}"
            );
        }
    }
}
