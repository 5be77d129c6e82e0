//! Which wake-ups of a schedule belong to the load of their phase.
//!
//! A load begins late where the one before took long to end. The measuring thread knows nothing of that: it counts each
//! phase in slots ([`SLOTS`]), and here, with the load's report at hand, those from before the load began are told
//! apart.

use tare_wire::wakeup::{MAX_PHASES, SLOTS, slot_begin_ns, slots_apart};

use crate::model::{CellPlan, LatencyCount, Load, LoadPhase};

/// Counts the wake-ups of one latency in one slot; slots are numbered through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotCount {
    pub(crate) thread: u32,
    pub(crate) slot: u32,
    pub(crate) latency_ns: u64,
    pub(crate) count: u64,
}

/// Puts the counts of slots into phases, in ascending order. The first `apart` slots of each phase are those between it
/// and the one before; none where nothing is said.
pub(crate) fn assign(slots: Vec<SlotCount>, apart: &[u32]) -> Vec<LatencyCount> {
    let rows = slots.into_iter().map(|row| {
        let phase = row.slot / SLOTS;
        let apart = apart.get(phase as usize).copied().unwrap_or(0);
        LatencyCount {
            thread: row.thread,
            phase,
            between: row.slot % SLOTS < apart,
            latency_ns: row.latency_ns,
            count: row.count,
        }
    });
    let mut rows: Vec<LatencyCount> = rows.collect();
    let key = |row: &LatencyCount| (row.thread, row.phase, row.between, row.latency_ns);
    rows.sort_unstable_by_key(key);
    rows.dedup_by(|row, kept| {
        let same = key(row) == key(kept);
        if same {
            // What does not fit is found when the sum is compared with the number of wake-ups.
            kept.count = kept.count.saturating_add(row.count);
        }
        same
    });
    rows
}

impl CellPlan {
    /// Returns how long each phase is; `None` if there is but one.
    #[must_use]
    pub fn phase_ns(&self) -> Option<u64> {
        let seconds = self.phase_seconds.filter(|_| self.phases.len() > 1)?;
        Some((seconds * 1e9).round() as u64)
    }
}

impl LoadPhase {
    /// Returns how late its load began.
    #[must_use]
    pub fn late_ns(&self) -> u64 {
        self.started_ns.saturating_sub(self.due_ns)
    }

    /// Returns how many of its slots were before its load began: all if it was skipped.
    #[must_use]
    pub fn slots_apart(&self, phase_ns: u64) -> u32 {
        slots_apart(self.late_ns(), phase_ns)
    }

    /// Says whether its load was not started, since most of the phase had passed.
    #[must_use]
    pub fn is_skipped(&self, phase_ns: u64) -> bool {
        self.slots_apart(phase_ns) == SLOTS
    }
}

impl Load {
    /// Returns how many slots of each phase were before its load began.
    #[must_use]
    pub fn slots_apart(&self, phase_ns: u64) -> Vec<u32> {
        let mut apart = vec![0; MAX_PHASES as usize];
        for phase in &self.phases {
            if let Some(apart) = apart.get_mut(phase.number as usize) {
                *apart = phase.slots_apart(phase_ns);
            }
        }
        apart
    }

    /// Says whether a wake-up that was planned so long after the origin came before the load of its phase began: its
    /// latency is counted as one between phases.
    #[must_use]
    pub fn is_between(&self, plan: &CellPlan, planned_ns: u64) -> bool {
        let Some(phase_ns) = plan.phase_ns().filter(|length| *length > 0) else {
            return false;
        };
        let number = (planned_ns / phase_ns).min(plan.phases.len() as u64 - 1);
        let phase = |phase: &&LoadPhase| u64::from(phase.number) == number;
        let apart = self.phases.iter().find(phase);
        match apart.map_or(0, |phase| phase.slots_apart(phase_ns)) {
            SLOTS => true,
            apart => planned_ns - number * phase_ns < slot_begin_ns(phase_ns, apart),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::model::LoadPlace;

    const PHASES: u64 = 3;

    fn plan(phase_ns: u64) -> CellPlan {
        CellPlan {
            id: 1,
            block: 1,
            experiment: "wakeup".to_owned(),
            target: "process".to_owned(),
            load: "idle;dd;idle".to_owned(),
            phases: vec!["idle".to_owned(), "dd".to_owned(), "idle".to_owned()],
            phase_seconds: Some(phase_ns as f64 / 1e9),
            workload: "wakeup".to_owned(),
            size: None,
            repetitions: 1,
            timing: "absolute".to_owned(),
            words: String::new(),
            estimate_seconds: 1.0,
            limit_seconds: 1.0,
        }
    }

    fn load(phase_ns: u64, late_ns: &[u64]) -> Load {
        let phase = |(number, late_ns): (u32, &u64)| {
            let due_ns = 1_000 + u64::from(number) * phase_ns;
            let started_ns = due_ns + late_ns;
            LoadPhase {
                number,
                load: String::new(),
                due_ns,
                started_ns,
                stopping_ns: started_ns,
                stopped_ns: started_ns,
                last_tool: None,
                achieved: Vec::new(),
            }
        };
        Load {
            place: LoadPlace::Beside,
            achieved: Vec::new(),
            notices: Vec::new(),
            phases: (0..).zip(late_ns).map(phase).collect(),
            left: Vec::new(),
        }
    }

    #[test]
    fn what_comes_before_the_load_is_no_figure_of_its_phase() {
        // Late by 1/8 of the phase and a bit: the slots up to 1/4 are apart.
        let load = load(64_000, &[0, 8_001, 32_001]);
        let apart = load.slots_apart(64_000);
        assert_eq!(apart[..4], [0, 5, 7, 0]);
        assert!(!load.phases[1].is_skipped(64_000) && load.phases[2].is_skipped(64_000));
        let row = |slot, count| SlotCount {
            thread: 0,
            slot,
            latency_ns: 5,
            count,
        };
        let rows = (0..21).map(|slot| row(slot, 1 << slot)).collect();
        let found: Vec<_> = assign(rows, &apart)
            .iter()
            .map(|row| (row.phase, row.between, row.count))
            .collect();
        assert_eq!(
            found,
            [
                (0, false, 0x7f),
                (1, false, 0x60 << 7),
                (1, true, 0x1f << 7),
                (2, true, 0x7f << 14),
            ]
        );
        let plan = plan(64_000);
        for (planned_ns, is_between) in [
            (0, false),
            (64_000, true),
            (79_999, true),
            (80_000, false),
            (128_000, true),
            (500_000, true),
        ] {
            assert_eq!(
                load.is_between(&plan, planned_ns),
                is_between,
                "{planned_ns}"
            );
        }
    }

    proptest! {
        #[test]
        fn every_wakeup_is_in_a_phase_or_between(
            phase_ns in 64_u64..1_000_000,
            late in prop::collection::vec(0.0..1.2_f64, 3),
            wakeups in prop::collection::vec((0.0..3.0_f64, 0_u64..20), 0..300),
        ) {
            let late: Vec<u64> = late.iter().map(|share| (share * phase_ns as f64) as u64).collect();
            let load = load(phase_ns, &late);
            let plan = plan(phase_ns);
            let mut slots = BTreeMap::<(u32, u64), u64>::new();
            let mut model = BTreeMap::<(u32, bool, u64), u64>::new();
            for (at, latency_ns) in wakeups {
                let planned_ns = (at * phase_ns as f64) as u64;
                let phase = (planned_ns / phase_ns).min(PHASES - 1);
                let within = planned_ns - phase * phase_ns;
                let slot = (1..SLOTS).rev().find(|slot| slot_begin_ns(phase_ns, *slot) <= within);
                let slot = phase as u32 * SLOTS + slot.unwrap_or(0);
                *slots.entry((slot, latency_ns)).or_default() += 1;
                let between = load.is_between(&plan, planned_ns);
                // What belongs to the load was planned when it had begun, or hardly before.
                let late_ns = late[phase as usize];
                prop_assert!(between || within >= late_ns || late_ns <= phase_ns >> 6);
                *model.entry((phase as u32, between, latency_ns)).or_default() += 1;
            }
            let rows = slots.into_iter().map(|((slot, latency_ns), count)| SlotCount {
                thread: 0,
                slot,
                latency_ns,
                count,
            });
            let found = assign(rows.collect(), &load.slots_apart(phase_ns));
            let found: Vec<_> = found
                .iter()
                .map(|row| ((row.phase, row.between, row.latency_ns), row.count))
                .collect();
            prop_assert_eq!(found, model.into_iter().collect::<Vec<_>>());
        }
    }
}
