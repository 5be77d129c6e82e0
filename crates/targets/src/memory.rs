//! The memory of an instance for a plan, the same on every target, and whether it can be paged out.

use rustix::process::{Resource, getrlimit};
use rustix::system::sysinfo;
use rustix::thread::{CapabilitySet, capabilities};

use crate::options::Size;
use crate::qemu::accelerator::Accelerator;

/// Memory for everything but the plan's buffers: a kernel, an initramfs and a load; the unikernel
/// and a container need a twentieth of it. Untouched memory costs the host nothing, so every target
/// gets the same.
const REST: Size = Size::mib(512);

/// Returns the memory of an instance whose measured code has buffers of this size.
pub fn needed(buffer_bytes: u64) -> Size {
    Size::mib(buffer_bytes.div_ceil(1 << 20)).and(REST)
}

/// Says what a guest gets.
pub(crate) fn guest_resources(cpus: u32, memory: Size) -> String {
    let cpus = match cpus {
        1 => "one CPU".to_owned(),
        many => format!("{many} CPUs"),
    };
    format!("{cpus}, {} MiB of memory", memory.mib)
}

/// Whether this machine can page out a guest's memory while it measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locking {
    /// It can: QEMU locks nothing.
    Not,
    /// It cannot, since it has no swap.
    Needless,
    /// It cannot: QEMU locks what is touched.
    Touched,
    /// It cannot: QEMU locks all of its memory, so all of the guest's becomes resident.
    All,
}

impl Locking {
    /// Returns whether memory of a guest stays where it is.
    pub(crate) fn keeps_memory(self) -> bool {
        self != Self::Not
    }

    /// Returns the word for QEMU's `-overcommit mem-lock=`, if it locks.
    pub(crate) fn word(self) -> Option<&'static str> {
        match self {
            Self::Not | Self::Needless => None,
            Self::Touched => Some("on-fault"),
            Self::All => Some("on"),
        }
    }
}

/// Returns how a QEMU of this version locks memory, so that no page of the guest is missing while
/// it measures, and no page that the guest leaves alone becomes resident.
///
/// Only with KVM: TCG's figures are the emulator's anyhow, and locking would make it touch all of
/// the room for translated code, up to 1 GiB.
pub(crate) fn locking(accelerator: Accelerator, version: &str) -> Locking {
    match accelerator {
        Accelerator::Kvm => locking_with(version, sysinfo().totalswap > 0, may_lock()),
        Accelerator::Tcg => Locking::Not,
    }
}

fn locking_with(version: &str, has_swap: bool, may_lock: bool) -> Locking {
    /// The first version that locks memory when it is touched.
    const LOCKS_TOUCHED: u32 = 10;
    let major = version
        .split('.')
        .next()
        .and_then(|major| major.parse().ok());
    match (has_swap, may_lock) {
        (false, _) => Locking::Needless,
        (true, false) => Locking::Not,
        (true, true) if major >= Some(LOCKS_TOUCHED) => Locking::Touched,
        (true, true) => Locking::All,
    }
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
    fn memory_is_locked_where_it_could_be_swapped_out() {
        for (version, has_swap, may_lock, locking) in [
            ("7.2.22", false, true, Locking::Needless),
            ("7.2.22", true, false, Locking::Not),
            ("7.2.22", true, true, Locking::All),
            ("9.2.0", true, true, Locking::All),
            ("10.0.2", true, true, Locking::Touched),
        ] {
            assert_eq!(locking_with(version, has_swap, may_lock), locking);
        }
    }

    #[test]
    fn the_need_is_that_of_the_buffers_and_the_rest() {
        assert_eq!(needed(1), Size::mib(513));
        assert_eq!(needed(40 << 20), Size::mib(552));
        assert_eq!(needed(u64::MAX).mib, (1 << 44) + 512);
    }
}
