//! In which phase a planned time lies.

use tare_wire::phases::MAX_DURATION_NS;

use super::plan::Plan;

/// Tells the phase of planned times that come in order, without a division for each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phases {
    length_ns: u64,
    last: u64,
    current: u64,
    /// End of the current phase, counted from the origin.
    current_end_ns: u64,
}

/// Returns how long a plan takes, from the origin to its end.
pub(super) fn total_ns(plan: &Plan) -> u64 {
    plan.duration_ns
        .unwrap_or_else(|| plan.expected_ns())
        .clamp(1, MAX_DURATION_NS)
}

impl Phases {
    /// Divides the plan's duration into its phases; what is planned later belongs to the last one.
    pub(super) fn new(plan: &Plan) -> Self {
        let number = u64::from(plan.phases.max(1));
        let mut phases = Self {
            length_ns: (total_ns(plan) / number).max(1),
            last: number - 1,
            current: 0,
            current_end_ns: 0,
        };
        phases.restart();
        phases
    }

    /// Goes back to the first phase.
    pub(super) fn restart(&mut self) {
        self.enter(0);
    }

    /// Returns the phase of any planned time.
    pub(super) fn of(&self, planned_ns: u64) -> u64 {
        self.last.min(planned_ns / self.length_ns)
    }

    /// Returns the phase of a planned time that is not before those of earlier calls.
    #[inline]
    pub(super) fn advance(&mut self, planned_ns: u64) -> u64 {
        if planned_ns >= self.current_end_ns {
            self.enter(self.of(planned_ns));
        }
        self.current
    }

    fn enter(&mut self, phase: u64) {
        self.current = phase;
        self.current_end_ns = if phase == self.last {
            u64::MAX
        } else {
            (phase + 1) * self.length_ns
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_of_equal_length_and_the_last_one_takes_the_rest() {
        let plan = Plan {
            phases: 3,
            ..Plan::new(1_000, 10_000_000)
        };
        let mut phases = Phases::new(&plan);
        for (planned_ns, phase) in [
            (0, 0),
            (3_333_332, 0),
            (3_333_333, 1),
            (6_666_665, 1),
            (6_666_666, 2),
            (10_000_000, 2),
            (u64::MAX, 2),
        ] {
            assert_eq!(phases.of(planned_ns), phase, "{planned_ns}");
            assert_eq!(phases.advance(planned_ns), phase, "{planned_ns}");
        }
    }

    #[test]
    fn a_phase_can_be_leapt_over() {
        let plan = Plan {
            phases: 100,
            ..Plan::new(1_000, 1_000_000)
        };
        let mut phases = Phases::new(&plan);
        assert_eq!(phases.advance(9_999), 0);
        assert_eq!(phases.advance(505_000), 50);
        assert_eq!(phases.advance(510_000), 51);
    }
}
