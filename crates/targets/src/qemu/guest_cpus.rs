//! The CPUs of a guest that measure, and the CPUs of the host to which their threads are pinned.
//!
//! A plan's CPUs are those of the host. In the guest they become the last ones of those that may
//! measure, in the same order.

use tare_results::work::Work;

use super::Pin;

/// The measuring CPUs of a guest, ascending.
#[derive(Debug)]
pub(crate) struct GuestCpus(Vec<u32>);

impl GuestCpus {
    /// Takes the last of the CPUs that may measure, as many as there are up to `number`.
    pub(crate) fn last(mut candidates: Vec<u32>, number: u32) -> Self {
        let surplus = candidates.len().saturating_sub(number as usize);
        Self(candidates.split_off(surplus))
    }

    /// Returns the plan as the guest gets it.
    pub(crate) fn work(&self, work: &Work) -> Work {
        work.on(Some(self.0.iter().copied().collect()))
    }

    /// Returns where their threads are to run; nothing if the plan names no CPUs.
    pub(crate) fn pins(&self, work: &Work) -> Vec<Pin> {
        let pin = |(place, guest_cpu): (u32, &u32)| {
            Some(Pin {
                guest_cpu: *guest_cpu,
                cpu: work.cpu_of(place)?,
            })
        };
        (0..).zip(&self.0).filter_map(pin).collect()
    }
}
