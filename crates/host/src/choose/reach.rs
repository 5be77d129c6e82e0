//! Which CPUs this process may use, asked for and unasked.

use crate::error::HostError;
use crate::fact::Fact;
use crate::machine::Machine;
use crate::sample::Sample;
use tare_wire::cpus::Cpus;

/// The CPUs that matter to the choice.
pub(super) struct Reach {
    /// The CPUs that are online.
    pub(super) online: Cpus,
    /// Online CPUs of the affinity mask.
    pub(super) mask: Cpus,
    /// Online CPUs that were set apart and lie in the cpuset or the mask.
    isolated: Cpus,
    /// The mask holds everything that a process gets without being told otherwise.
    mask_is_default: bool,
}

impl Reach {
    pub(super) fn of(machine: &Machine, sample: &Sample) -> Result<Self, HostError> {
        let affinity = &machine.process.affinity;
        let sampled = || {
            let cpus = Cpus::checked(sample.stat.known()?.cpus())?;
            (!cpus.is_empty()).then_some(cpus)
        };
        let online = match (&machine.topology.online, affinity) {
            (Fact::Known(online), _) => *online,
            (_, Fact::Known(mask)) => sampled().unwrap_or(*mask),
            (_, Fact::Unknown { unknown }) => {
                return Err(HostError::NoCpuKnown {
                    why: unknown.clone(),
                });
            }
        };
        // Every process has a mask, so an unknown one is taken to be the cpuset or everything.
        let cpuset = machine.process.cpuset.known();
        let mask = affinity
            .known()
            .map(|mask| mask.intersection(&online))
            .filter(|mask| !mask.is_empty())
            .unwrap_or_else(|| cpuset.map_or_else(|| online, |set| set.intersection(&online)));
        if mask.is_empty() {
            return Err(HostError::NoCpuKnown {
                why: format!(
                    "neither the affinity mask nor the cpuset holds an online CPU; online are \
                     {online}"
                ),
            });
        }
        let set_apart = machine.isolation.set_apart().intersection(&online);
        let limit = cpuset.map_or_else(|| mask, |set| set.intersection(&online).union(&mask));
        Ok(Self {
            mask_is_default: limit.without(&set_apart).without(&mask).is_empty(),
            isolated: set_apart.intersection(&limit),
            mask,
            online,
        })
    }

    /// The same without some CPUs; `None` if nothing would remain to choose from.
    pub(super) fn without(&self, taken: &Cpus) -> Option<Self> {
        let mask = self.mask.without(taken);
        (!mask.is_empty()).then(|| Self {
            online: self.online,
            isolated: self.isolated.without(taken),
            mask,
            mask_is_default: self.mask_is_default,
        })
    }

    /// The CPUs that may be requested.
    pub(super) fn on_request(&self) -> Cpus {
        self.mask.union(&self.isolated)
    }

    /// The isolated CPUs that may be chosen unasked.
    pub(super) fn isolated_unasked(&self) -> Cpus {
        if self.mask_is_default {
            self.isolated
        } else {
            self.isolated.intersection(&self.mask)
        }
    }
}
