//! The slot and phase of a planned time.

use tare_wire::phases::{MAX_DURATION_NS, SLOTS, slot_begin_ns};

use super::plan::Plan;

/// Maps rising planned times to slots, without a division for each. Slots are numbered
/// consecutively: phase 1 begins with slot [`SLOTS`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    phase_ns: u64,
    last_phase: u64,
    current: u64,
    /// End of the current slot, from the origin.
    current_end_ns: u64,
}

/// Returns the duration of a plan.
pub(super) fn total_ns(plan: &Plan) -> u64 {
    plan.duration_ns
        .unwrap_or_else(|| plan.expected_ns())
        .clamp(1, MAX_DURATION_NS)
}

impl Slots {
    /// Divides the plan's duration into phases, and each into slots if there are several phases;
    /// later times belong to the last one.
    pub(super) fn new(plan: &Plan) -> Self {
        let number = u64::from(plan.phases.max(1));
        let mut slots = Self {
            phase_ns: (total_ns(plan) / number).max(1),
            last_phase: number - 1,
            current: 0,
            current_end_ns: 0,
        };
        slots.restart();
        slots
    }

    /// Returns the beginning of each slot, from the origin.
    pub(super) fn begins(&self) -> impl ExactSizeIterator<Item = u64> {
        let (phase_ns, last_phase) = (self.phase_ns, self.last_phase as u32);
        let slots = if last_phase == 0 {
            1
        } else {
            (last_phase + 1) * SLOTS
        };
        (0..slots).map(move |slot| {
            u64::from(slot / SLOTS) * phase_ns + slot_begin_ns(phase_ns, slot % SLOTS)
        })
    }

    /// Returns to the first slot.
    pub(super) fn restart(&mut self) {
        self.enter(0);
    }

    /// Returns the slot of any planned time.
    pub(super) fn of(&self, planned_ns: u64) -> u64 {
        let phase = self.last_phase.min(planned_ns / self.phase_ns);
        let within_ns = planned_ns - phase * self.phase_ns;
        let begun = |slot: &u32| slot_begin_ns(self.phase_ns, *slot) <= within_ns;
        let slot = (1..SLOTS).rev().find(begun);
        let slot = slot.filter(|_| self.last_phase > 0).unwrap_or(0);
        phase * u64::from(SLOTS) + u64::from(slot)
    }

    /// Returns the slot of a planned time that is not before those of earlier calls.
    #[inline]
    pub(super) fn advance(&mut self, planned_ns: u64) -> u64 {
        if planned_ns >= self.current_end_ns {
            self.enter(planned_ns);
        }
        self.current
    }

    fn enter(&mut self, planned_ns: u64) {
        self.current = self.of(planned_ns);
        let (phase, slot) = (
            self.current / u64::from(SLOTS),
            (self.current % u64::from(SLOTS)) as u32,
        );
        self.current_end_ns = match slot + 1 {
            _ if self.last_phase == 0 => u64::MAX,
            SLOTS if phase == self.last_phase => u64::MAX,
            SLOTS => (phase + 1) * self.phase_ns,
            next => phase * self.phase_ns + slot_begin_ns(self.phase_ns, next),
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slots(phases: u32, total_ns: u64) -> Slots {
        Slots::new(&Plan {
            phases,
            ..Plan::new(1_000, total_ns)
        })
    }

    #[test]
    fn phases_are_of_equal_length_and_the_last_one_takes_the_rest() {
        let mut slots = slots(3, 10_000_000);
        for (planned_ns, slot) in [
            (0, 0),
            (52_082, 0),
            (52_083, 1),
            (1_666_665, 5),
            (1_666_666, 6),
            (3_333_332, 6),
            (3_333_333, 7),
            (6_666_665, 13),
            (6_666_666, 14),
            (10_000_000, 20),
            (u64::MAX, 20),
        ] {
            assert_eq!(slots.of(planned_ns), slot, "{planned_ns}");
            assert_eq!(slots.advance(planned_ns), slot, "{planned_ns}");
        }
    }

    #[test]
    fn a_single_phase_is_not_divided() {
        let mut slots = slots(1, 10_000_000);
        assert_eq!(slots.advance(9_999_999), 0);
        assert_eq!(slots.of(u64::MAX), 0);
    }

    #[test]
    fn phases_can_be_leapt_over() {
        let mut slots = slots(100, 1_000_000);
        assert_eq!(slots.advance(9_999), 6);
        assert_eq!(slots.advance(505_000), 50 * 7 + 6);
        assert_eq!(slots.advance(510_000), 51 * 7);
    }

    proptest! {
        #[test]
        fn walking_finds_what_a_division_finds(
            phases in 1_u32..5,
            total_ns in 1_000_u64..10_000_000,
            steps in prop::collection::vec(0_u64..200_000, 1..200),
        ) {
            let mut slots = slots(phases, total_ns);
            let mut planned_ns = 0;
            for step in steps {
                planned_ns += step;
                prop_assert_eq!(slots.advance(planned_ns), slots.of(planned_ns));
                prop_assert!(slots.current_end_ns > planned_ns);
            }
        }
    }
}
