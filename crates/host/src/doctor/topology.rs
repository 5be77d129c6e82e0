//! The measured CPU, its SMT siblings, its kind of core.

use super::{Examination, Finding, percent};
use crate::choose::BUSY_SHARE;

/// Report which CPU would be measured and what is wrong with it.
pub(super) fn measured_cpu(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "cpu",
        "CPU to measure on",
        "Noise differs from CPU to CPU: interrupts, housekeeping and other processes are not \
         spread evenly, so a result belongs to the CPU on which it was measured. The other \
         findings are about this one.",
    );
    match &e.choice {
        Err(error) => finding.problem(error.to_string()),
        Ok(choice) if choice.controller_shares() => finding
            .warning(format!(
                "{}; tare itself has to run there too, so its own work shows in the measurement",
                choice.reason
            ))
            .remedy(if e.machine.topology.online.known().is_some_and(|online| online.len() > 1) {
                "start tare with more than one CPU (taskset, cpuset, `docker run --cpuset-cpus`)"
            } else {
                "give the machine a second CPU"
            }),
        Ok(choice) => finding.good(choice.reason.clone()),
    }
}

/// Check whether the measured CPU shares its core, and with whom.
pub(super) fn smt(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "smt",
        "SMT siblings",
        "Two SMT siblings share the execution units and the first caches of one core: work on one \
         slows the other by tens of percent without any interruption that could be counted.",
    );
    let topology = &e.machine.topology;
    let Some(cores) = topology.cores.known() else {
        return finding.unknown(topology.cores.because().unwrap_or_default());
    };
    let Some(cpu) = e.cpu else {
        return finding.unknown("no CPU to measure on");
    };
    let siblings = topology.siblings(cpu);
    if siblings.is_empty() {
        if cores.iter().any(|core| core.len() > 1) {
            return finding.good(format!("CPU {cpu} has its core to itself"));
        }
        if e.is_guest() {
            return finding.note(
                "no siblings shown; the hypervisor may still run another guest on the other half \
                 of this core",
            );
        }
        return finding.good("one CPU per core");
    }
    let remedy = e.on_hardware(format!(
        "take the sibling away with `echo 0 | sudo tee /sys/devices/system/cpu/cpu{}/online`, or \
         all of them with `echo off | sudo tee /sys/devices/system/cpu/smt/control`",
        siblings.iter().next().unwrap_or(cpu)
    ));
    let busiest = siblings
        .iter()
        .filter_map(|sibling| Some((sibling, e.sample.busy(sibling)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    match busiest {
        Some((sibling, share)) if share > BUSY_SHARE => finding
            .warning(format!(
                "CPU {cpu} shares its core with CPU {sibling}, which is {} busy",
                percent(share)
            ))
            .remedy(remedy),
        Some(_) => finding
            .note(format!(
                "CPU {cpu} shares its core with CPU {siblings}, idle now"
            ))
            .remedy(remedy),
        None => finding
            .note(format!(
                "CPU {cpu} shares its core with CPU {siblings}, load unknown"
            ))
            .remedy(remedy),
    }
}

/// Check whether the measured CPU is an efficiency core.
pub(super) fn core_type(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "core-type",
        "Kind of core",
        "A hybrid processor has cores of different speed and cache; results from one kind say \
         little about the other.",
    );
    if let Some(because) = e.machine.topology.online.because() {
        return finding.unknown(because);
    }
    let slower = &e.machine.topology.slower_cpus;
    if slower.is_empty() {
        return finding.good("the kernel shows all cores as equal");
    }
    if e.cpu_in(slower) {
        return finding
            .warning(format!(
                "{} is an efficiency core, as are {slower}",
                e.cpu_name()
            ))
            .remedy("name another CPU with --cpu if the fast cores are meant");
    }
    finding.note(format!(
        "{} is a performance core; efficiency cores are {slower}",
        e.cpu_name()
    ))
}
