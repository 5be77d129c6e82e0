//! Which CPUs this process may use, asked for and unasked.

use crate::cpulist::CpuList;
use crate::error::HostError;
use crate::fact::Fact;
use crate::machine::Machine;
use crate::sample::Sample;

/// The CPUs that matter to the choice.
pub(super) struct Reach {
    /// The CPUs that are online.
    pub(super) online: CpuList,
    /// Online CPUs of the affinity mask.
    pub(super) mask: CpuList,
    /// Online CPUs that were set apart and lie in the cpuset or the mask.
    isolated: CpuList,
    /// The mask holds everything that a process gets without being told otherwise.
    mask_is_default: bool,
}

impl Reach {
    pub(super) fn of(machine: &Machine, sample: &Sample) -> Result<Self, HostError> {
        let affinity = &machine.process.affinity;
        let sampled = || {
            let list: CpuList = sample.stat.known()?.cpus().collect();
            (!list.is_empty()).then_some(list)
        };
        let online = match (&machine.topology.online, affinity) {
            (Fact::Known(online), _) => online.clone(),
            (_, Fact::Known(mask)) => sampled().unwrap_or_else(|| mask.clone()),
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
            .unwrap_or_else(|| {
                cpuset.map_or_else(|| online.clone(), |set| set.intersection(&online))
            });
        if mask.is_empty() {
            return Err(HostError::NoCpuKnown {
                why: format!(
                    "neither the affinity mask nor the cpuset holds an online CPU; online are \
                     {online}"
                ),
            });
        }
        let set_apart = machine.isolation.set_apart().intersection(&online);
        let limit = cpuset.map_or_else(
            || mask.clone(),
            |set| set.intersection(&online).union(&mask),
        );
        Ok(Self {
            mask_is_default: limit.without(&set_apart).is_subset(&mask),
            isolated: set_apart.intersection(&limit),
            mask,
            online,
        })
    }

    /// The same without some CPUs; `None` if nothing would remain to choose from.
    pub(super) fn without(&self, taken: &CpuList) -> Option<Self> {
        let mask = self.mask.without(taken);
        (!mask.is_empty()).then(|| Self {
            online: self.online.clone(),
            isolated: self.isolated.without(taken),
            mask,
            mask_is_default: self.mask_is_default,
        })
    }

    /// The CPUs that may be requested.
    pub(super) fn on_request(&self) -> CpuList {
        self.mask.union(&self.isolated)
    }

    /// The isolated CPUs that may be chosen unasked.
    pub(super) fn isolated_unasked(&self) -> CpuList {
        if self.mask_is_default {
            self.isolated.clone()
        } else {
            self.isolated.intersection(&self.mask)
        }
    }
}
