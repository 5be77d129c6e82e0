//! The measured CPU, its SMT siblings, its kind of core.

use super::{
    Examination, Judgement, SECOND_CPU, Severity::*, advise, good, note, percent, unknown,
};
use crate::choose::BUSY_SHARE;
use crate::error::HostError;

/// Reports which CPU would be measured and what is wrong with it.
pub(super) fn measured_cpu(e: &Examination<'_>) -> Judgement {
    match &e.choice {
        Err(error) => {
            let remedy = match error {
                HostError::CpuNotOnline { online: others, .. }
                | HostError::CpuNotAllowed {
                    allowed: others, ..
                } => format!("`--cpu {}`", others.iter().next().unwrap_or(0)),
                HostError::NoCpuKnown { .. } => {
                    "`sudo mount -t proc proc /proc && sudo mount -t sysfs sysfs /sys`".to_owned()
                }
            };
            advise(Problem, error.to_string(), remedy)
        }
        Ok(choice) if !choice.controller_shares() => match choice.warnings.is_empty() {
            true => good(&choice.reason),
            false => note(&choice.reason),
        },
        Ok(choice) => {
            let state = format!(
                "{}; tare itself has to run there too, so its own work shows in the measurement",
                choice.reason
            );
            let online = e.machine.topology.online.known();
            let remedy = match online.filter(|online| online.count() > 1) {
                Some(online) => format!(
                    "start tare with more than one CPU: `taskset -c {online} tare …`, or `docker run \
                     --cpuset-cpus={online}`"
                ),
                None => SECOND_CPU.to_owned(),
            };
            advise(Warning, state, remedy)
        }
    }
}

/// Checks whether the measured CPU shares its core, and with whom.
pub(super) fn smt(e: &Examination<'_>) -> Judgement {
    let topology = &e.machine.topology;
    let cores = topology.cores.get()?;
    let Some(cpu) = e.cpu else {
        return unknown("no CPU to measure on");
    };
    let siblings = topology.siblings(cpu);
    if siblings.is_empty() {
        if cores.iter().any(|core| core.count() > 1) {
            return good(format!("CPU {cpu} has its core to itself"));
        }
        if e.is_guest() {
            return note(
                "no siblings shown; the hypervisor may still run another guest on the other half \
                 of this core",
            );
        }
        return good("one CPU per core");
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
    let shares = format!("CPU {cpu} shares its core with CPU");
    match busiest {
        Some((sibling, share)) if share > BUSY_SHARE => {
            let share = percent(share);
            advise(
                Warning,
                format!("{shares} {sibling}, which is {share} busy"),
                remedy,
            )
        }
        Some(_) => advise(Note, format!("{shares} {siblings}, idle now"), remedy),
        None => advise(Note, format!("{shares} {siblings}, load unknown"), remedy),
    }
}

/// Checks whether the measured CPU is an efficiency core.
pub(super) fn core_type(e: &Examination<'_>) -> Judgement {
    e.machine.topology.online.get()?;
    let (slower, cpu) = (&e.machine.topology.slower_cpus, e.cpu_name());
    if slower.is_empty() {
        return good("the kernel shows all cores as equal");
    }
    if e.cpu_in(slower) {
        let state = format!("{cpu} is an efficiency core, as are {slower}");
        let online = e.machine.topology.online.get()?;
        let fast = online.without(slower).iter().next().unwrap_or(0);
        let remedy = format!("if the fast cores are meant: `--cpu {fast}`");
        return advise(Warning, state, remedy);
    }
    note(format!(
        "{cpu} is a performance core; efficiency cores are {slower}"
    ))
}
