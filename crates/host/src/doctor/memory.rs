//! Transparent huge pages, swap, NUMA balancing: when does memory get in the way?

use super::{Examination, Judgement, Severity::*, advise, good};

/// Checks whether the kernel collapses pages of measured code behind its back.
pub(super) fn transparent_hugepages(e: &Examination<'_>) -> Judgement {
    let enabled = e.machine.memory.transparent_hugepages.get()?;
    if enabled != "always" {
        return good(enabled);
    }
    let remedy = "`echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled`";
    advise(Note, enabled, e.on_kernel(remedy))
}

/// Checks whether memory of measured code may be written to disk.
pub(super) fn swap(e: &Examination<'_>) -> Judgement {
    let bytes = *e.machine.memory.swap_total_bytes.get()?;
    if bytes == 0 {
        return good("none");
    }
    let state = format!("{} MiB", bytes >> 20);
    if e.machine.process.may_lock_memory.is(&true) {
        return good(format!("{state}, but this process may lock its memory"));
    }
    let remedy = e.on_kernel("`sudo swapoff -a`, or let tare lock its memory");
    advise(Note, format!("{state}; see \"Locked memory\""), remedy)
}

/// Checks whether the kernel takes pages away to learn who uses them.
pub(super) fn numa_balancing(e: &Examination<'_>) -> Judgement {
    let nodes = e.machine.topology.numa_nodes.len();
    if nodes == 1 {
        return good("one node, nothing to balance");
    }
    if *e.machine.memory.numa_balancing.get()? == 0 {
        return good("off");
    }
    let remedy = e.on_kernel("`sudo sysctl kernel.numa_balancing=0`");
    advise(Warning, format!("on, {nodes} nodes"), remedy)
}
