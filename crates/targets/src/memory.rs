//! The memory of an instance for a plan, the same on every target, and whether the host locks it.

use rustix::process::{Resource, getrlimit};
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

/// Says whether QEMU shall lock its memory, so that no page of the guest is missing while it
/// measures.
///
/// Only with KVM: TCG's figures are the emulator's anyhow, and locking would make it touch all of
/// the room for translated code, up to 1 GiB.
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
    fn the_need_is_that_of_the_buffers_and_the_rest() {
        assert_eq!(needed(1), Size::mib(513));
        assert_eq!(needed(40 << 20), Size::mib(552));
        assert_eq!(needed(u64::MAX).mib, (1 << 44) + 512);
    }
}
