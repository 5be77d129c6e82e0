//! Transparent huge pages, swap, NUMA balancing: when does memory get in the way?

use super::frequency::INVISIBLE;
use super::{Examination, Judgement, Severity::*, advise, good, note, unknown};

/// Checks whether the kernel collapses pages of measured code behind its back.
pub(super) fn transparent_hugepages(e: &Examination<'_>) -> Judgement {
    const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    if e.lacks(ENABLED) {
        return good("this kernel has none");
    }
    let enabled = e.machine.memory.transparent_hugepages.get()?;
    if enabled != "always" {
        return good(enabled);
    }
    let remedy = format!("`echo madvise | sudo tee {ENABLED}`");
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

/// Checks whether memory modules are run as fast as they can be.
pub(super) fn memory_speed(e: &Examination<'_>) -> Judgement {
    if e.is_guest() {
        return note(INVISIBLE);
    }
    let modules = e.machine.devices.memory_modules.get()?;
    let both = modules
        .iter()
        .filter_map(|module| Some((module.mega_transfers?, module.rated_mega_transfers?)));
    // The slowest in proportion to what it can do.
    let slowest = both.min_by_key(|(run, rated)| u32::from(*run) * 1_000 / u32::from(*rated));
    match slowest {
        None => unknown("the firmware does not tell the speed of memory modules"),
        Some((run, rated)) if run < rated => {
            let state = format!("{run} MT/s, of {rated} MT/s that the modules are capable of");
            let remedy = "set the memory frequency to its maximum in the firmware's setup; some \
                          boards reach it only with one module for each channel (`sudo dmidecode -t memory` \
                          lists them)";
            advise(Warning, state, e.on_hardware(remedy))
        }
        Some((run, _)) => good(format!("{run} MT/s, as fast as the modules can")),
    }
}
