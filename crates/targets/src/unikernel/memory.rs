//! How much memory a plan needs in the guest.

use tare_wire::plan::{Plan, Workload};

use crate::options::Size;

/// Is what a delay in the list takes: its number, start and length.
const LISTED_BYTES: u64 = 24;
/// Is what a bin of the envelope takes: a count, a sum, the shortest and the longest.
const BIN_BYTES: u64 = 32;
/// Is what the two stamps of a repetition take.
const STAMPS_BYTES: u64 = 16;
/// Is what an element of an array takes; there are two arrays.
const ELEMENT_BYTES: u64 = 2 * 8;

/// Is added for the image and its stacks (about 1 MiB), the calibration's samples, the table by
/// which samples are counted (256 KiB), and what firmware keeps for itself. Memory that the guest
/// does not touch costs the host nothing.
const REST: Size = Size::mib(32);

/// Returns how much memory a guest is given for a plan.
///
/// The figures repeat what the measured code takes (`measured/services/src/bench/batch.rs`). Were
/// they too small, the guest would say so and end.
pub(super) fn needed(plan: &Plan) -> Size {
    let listed = plan.capacity.min(plan.repetitions);
    let lists = listed
        .saturating_mul(LISTED_BYTES)
        .saturating_add(u64::from(plan.bins) * BIN_BYTES);
    let stamps = plan.repetitions.saturating_mul(STAMPS_BYTES);
    let bytes = match plan.workload {
        Workload::Gap => lists,
        Workload::Prime { .. } => lists.saturating_add(stamps),
        Workload::Copy { size } => lists
            .saturating_add(stamps)
            .saturating_add(size.saturating_mul(ELEMENT_BYTES)),
    };
    Size::mib(bytes.div_ceil(1 << 20) + REST.mib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_need_follows_what_is_kept() {
        let prime = |repetitions| Plan::new(Workload::Prime { limit: 22 }, repetitions);
        assert_eq!(needed(&prime(1)), Size::mib(33));
        // 16 MB of stamps and 24 MB of listed delays.
        assert_eq!(needed(&prime(1_000_000)), Size::mib(32 + 39));
        // Timer reads are not kept, gaps are.
        let gap = Plan::new(Workload::Gap, 100_000_000_000);
        assert_eq!(needed(&gap), Size::mib(32 + 25));
        let copy = Plan::new(Workload::Copy { size: 1 << 24 }, 1);
        assert_eq!(needed(&copy), Size::mib(32 + 257));
    }
}
