//! The protocol between loads that run in phases and the measurement next to them.

/// The time before the first sample at which it is announced ([`crate::record::Begins`]), so that a
/// load with phases can begin then. Where the target has another clock, the laboratory assumes that
/// the first sample is due this long after it has read the record; the error is the time of
/// transmission, some ms over a serial line and less elsewhere.
pub const LEAD_NS: u64 = 250_000_000;

/// Maximum number of phases.
pub const MAX_PHASES: u32 = 100;
/// Maximum duration: 31 days.
pub const MAX_DURATION_NS: u64 = 31 * 24 * 3_600 * 1_000_000_000;
/// The number of slots of each phase, if there are several phases. Samples are counted per slot, so
/// that those before the real start of the phase's load can be separated.
pub const SLOTS: u32 = 7;

/// Returns the beginning of a slot, from the beginning of its phase: 0, 1/64 of the phase, and
/// twice as far each time, up to one half.
pub const fn slot_begin_ns(phase_ns: u64, slot: u32) -> u64 {
    match slot {
        0 => 0,
        later => phase_ns >> SLOTS.saturating_sub(later),
    }
}

/// Returns how many slots of a phase, the first ones, don't belong to its load, which began
/// `late_ns` after the phase.
///
/// A slot belongs to the load if the load began no later. The first slot also does if the load
/// began within it: less is not worth speaking of. A load that began in the second half of its
/// phase has none.
pub fn slots_apart(late_ns: u64, phase_ns: u64) -> u32 {
    if late_ns <= slot_begin_ns(phase_ns, 1) {
        return 0;
    }
    let before = |slot: &u32| slot_begin_ns(phase_ns, *slot) < late_ns;
    (0..SLOTS).take_while(before).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_belong_to_a_load_that_began_no_later() {
        let begins: [u64; 7] = core::array::from_fn(|slot| slot_begin_ns(6_400, slot as u32));
        assert_eq!(begins, [0, 100, 200, 400, 800, 1_600, 3_200]);
        for (late_ns, apart) in [
            (0, 0),
            (100, 0),
            (101, 2),
            (200, 2),
            (201, 3),
            (1_600, 5),
            (3_200, 6),
            (3_201, 7),
            (u64::MAX, 7),
        ] {
            assert_eq!(slots_apart(late_ns, 6_400), apart, "{late_ns}");
        }
    }
}
