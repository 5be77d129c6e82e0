//! How much memory an instance is given for a plan, the same in every place, and whether the host
//! keeps it.

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use tare_wire::plan::{Plan, Workload};
use tare_wire::wakeup;
use tare_wire::work::Work;

use crate::options::Size;
use crate::qemu::accelerator::Accelerator;

/// Is what a delay in the list takes: its number, start and length.
const LISTED_BYTES: u64 = 24;
/// Is what a bin of the envelope takes: a count, a sum, the shortest and the longest.
const BIN_BYTES: u64 = 32;
/// Is what the two stamps of a repetition take.
const STAMPS_BYTES: u64 = 16;
/// Is what an element of an array takes; there are two arrays.
const ELEMENT_BYTES: u64 = 2 * 8;

/// Is what the table of exact counts takes at most, for each thread that measures wake-ups.
const COUNTS_BYTES: u64 = 16 << 20;
/// Is what a wake-up in a list takes: its activation and its latency.
const WAKEUP_BYTES: u64 = 16;

/// Is added for everything but the plan's buffers: a kernel, an initramfs and what a load needs; the
/// unikernel and a container need a twentieth of it. Memory that is not touched costs the host nothing,
/// and so every place gets the same.
const REST: Size = Size::mib(512);

/// Returns how much memory an instance is given for a plan.
///
/// The figures repeat what the measured code takes (`measured/services/src/bench/batch.rs` and
/// `measured/services/src/wakeup/recorder.rs`). Were they too small, the guest would say so and end.
pub(crate) fn needed(work: &Work) -> Size {
    let bytes = match work {
        Work::Batch(plan) => batch_bytes(plan),
        Work::Wakeup(plan) => wakeup_bytes(plan),
    };
    Size::mib(bytes.div_ceil(1 << 20) + REST.mib)
}

fn batch_bytes(plan: &Plan) -> u64 {
    let listed = plan.capacity.min(plan.repetitions);
    let lists = listed
        .saturating_mul(LISTED_BYTES)
        .saturating_add(u64::from(plan.bins) * BIN_BYTES);
    let stamps = plan.repetitions.saturating_mul(STAMPS_BYTES);
    match plan.workload {
        Workload::Gap => lists,
        Workload::Prime { .. } => lists.saturating_add(stamps),
        Workload::Copy { size } => lists
            .saturating_add(stamps)
            .saturating_add(size.saturating_mul(ELEMENT_BYTES)),
    }
}

fn wakeup_bytes(plan: &wakeup::Plan) -> u64 {
    let thread = |number| {
        let activations = plan.activations(number);
        let listed = plan.raw.min(activations) + plan.capacity.min(activations);
        COUNTS_BYTES + u64::from(plan.bins) * BIN_BYTES + listed * WAKEUP_BYTES
    };
    (0..plan.threads).map(thread).sum()
}

/// Says what a guest gets for a plan in words, if they are one.
pub(crate) fn guest_resources(words: &str, cpus: u32, given: Option<Size>) -> Option<String> {
    let work = Work::parse(words.split_whitespace()).ok()?;
    let memory = given.unwrap_or_else(|| needed(&work));
    let cpus = match cpus {
        1 => "one CPU".to_owned(),
        many => format!("{many} CPUs"),
    };
    Some(format!("{cpus}, {} MiB of memory", memory.mib))
}

/// Says whether QEMU shall lock its memory, so that no page of the guest is missing while it measures.
///
/// Only with KVM: TCG's figures are the emulator's anyhow, and locking would make it touch all of the
/// room for translated code, up to 1 GiB.
pub(crate) fn is_locked(accelerator: Accelerator) -> bool {
    accelerator == Accelerator::Kvm && may_lock()
}

fn may_lock() -> bool {
    let privileged =
        capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK));
    privileged || getrlimit(Resource::Memlock).current.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_need_follows_what_is_kept() {
        let batch = |workload, repetitions| Work::Batch(Plan::new(workload, repetitions));
        let prime = |repetitions| batch(Workload::Prime { limit: 22 }, repetitions);
        assert_eq!(needed(&prime(1)), Size::mib(513));
        // 16 MB of stamps and 24 MB of listed delays.
        assert_eq!(needed(&prime(1_000_000)), Size::mib(512 + 39));
        // Timer reads are not kept, gaps are.
        let gap = batch(Workload::Gap, 100_000_000_000);
        assert_eq!(needed(&gap), Size::mib(512 + 25));
        let copy = batch(Workload::Copy { size: 1 << 24 }, 1);
        assert_eq!(needed(&copy), Size::mib(512 + 257));
    }

    #[test]
    fn each_thread_of_wakeups_keeps_its_own() {
        let short = wakeup::Plan::new(100_000, 1_000_000_000);
        assert_eq!(needed(&Work::Wakeup(short)), Size::mib(512 + 17));
        // A day: 64 MB of wake-ups as they were, 4 MiB of those above the threshold.
        let threads = 2;
        let day = wakeup::Plan {
            threads,
            ..wakeup::Plan::new(100_000, 86_400_000_000_000)
        };
        assert_eq!(needed(&Work::Wakeup(day)), Size::mib(512 + 163));
    }
}
