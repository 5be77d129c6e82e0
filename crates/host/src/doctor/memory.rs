//! Transparent huge pages, swap, NUMA balancing: when does memory get in the way?

use super::{Examination, Finding};

/// Check whether the kernel collapses pages of measured code behind its back.
pub(super) fn transparent_hugepages(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "thp",
        "Transparent huge pages",
        "With \"always\", the kernel joins small pages to huge ones while a program runs: the \
         pages are copied, the program faults, all its CPUs flush their TLBs, and the cost of a \
         memory access changes halfway through.",
    );
    let memory = &e.machine.memory;
    let Some(enabled) = memory.transparent_hugepages.known() else {
        return finding.unknown(memory.transparent_hugepages.because().unwrap_or_default());
    };
    if enabled != "always" {
        return finding.good(enabled.clone());
    }
    finding.note("always").remedy(
        e.on_kernel("`echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled`"),
    )
}

/// Check whether memory of measured code may be written to disk.
pub(super) fn swap(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "swap",
        "Swap",
        "A page that was swapped out costs its owner a major fault of tens of microseconds to \
         many milliseconds. Locked memory is never swapped.",
    );
    let Some(&bytes) = e.machine.memory.swap_total_bytes.known() else {
        return finding.unknown(
            e.machine
                .memory
                .swap_total_bytes
                .because()
                .unwrap_or_default(),
        );
    };
    if bytes == 0 {
        return finding.good("none");
    }
    let state = format!("{} MiB", bytes >> 20);
    let process = &e.machine.process;
    if process.may_lock_memory.known() == Some(&true) {
        return finding.good(format!("{state}, but this process may lock its memory"));
    }
    finding
        .note(format!("{state}; see \"Locked memory\""))
        .remedy(e.on_kernel("`sudo swapoff -a`, or let tare lock its memory"))
}

/// Check whether the kernel takes pages away to learn who uses them.
pub(super) fn numa_balancing(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "numa-balancing",
        "Automatic NUMA balancing",
        "To learn which node uses a page, the kernel unmaps pages of running programs from time \
         to time; each first access afterwards is a minor fault, and the page may be copied to \
         another node.",
    );
    if e.machine.topology.numa_nodes.len() == 1 {
        return finding.good("one node, nothing to balance");
    }
    match e.machine.memory.numa_balancing.known() {
        Some(0) => finding.good("off"),
        Some(_) => finding
            .warning(format!("on, {} nodes", e.machine.topology.numa_nodes.len()))
            .remedy(e.on_kernel("`sudo sysctl kernel.numa_balancing=0`")),
        None => finding.unknown(
            e.machine
                .memory
                .numa_balancing
                .because()
                .unwrap_or_default(),
        ),
    }
}
