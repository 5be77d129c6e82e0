//! Device interrupts on the measured CPU, and the daemon that moves them about.

use super::{Examination, Finding, Severity};
use crate::cpulist::CpuList;
use crate::sample::Interrupt;

/// How many interrupts are named in a state or a command.
const NAMED: usize = 4;
/// How many device interrupts in a sample of 200 ms are worth a warning: 20 per second. Fewer are
/// lost among the 100 to 1,000 ticks per second that an ordinary CPU has anyway.
const MANY: u64 = 4;

/// Check whether device interrupts arrive on the measured CPU, or may.
pub(super) fn affinity(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "irq-affinity",
        "Device interrupts",
        "Each device interrupt stops the measured code for microseconds, more when network or \
         block work follows in a soft interrupt; how many arrive depends on what others do.",
    );
    let Some(cpu) = e.cpu else {
        return finding.unknown("no CPU to measure on");
    };
    let Some(interrupts) = e.sample.interrupts.known() else {
        return finding.unknown(e.sample.interrupts.because().unwrap_or_default());
    };
    let mut arrived: Vec<&Interrupt> = interrupts
        .iter()
        .filter(|line| line.number().is_some() && line.on(cpu) > 0)
        .collect();
    arrived.sort_by_key(|line| std::cmp::Reverse(line.on(cpu)));
    let aimed = aimed_at(e, cpu, interrupts);
    if !arrived.is_empty() {
        let total: u64 = arrived
            .iter()
            .map(|line| line.on(cpu))
            .fold(0, u64::saturating_add);
        let names = arrived
            .iter()
            .take(NAMED)
            .map(|line| format!("{} {} ×{}", line.name, line.device(), line.on(cpu)))
            .collect::<Vec<_>>()
            .join(", ");
        let state = format!("{total} arrived on CPU {cpu} during the sample ({names})");
        let numbers: Vec<&str> = arrived
            .iter()
            .take(NAMED)
            .map(|line| line.name.as_str())
            .collect();
        let severity = if total >= MANY {
            Severity::Warning
        } else {
            Severity::Note
        };
        return with_remedy(e, finding.with(severity, state), &numbers);
    }
    if aimed.is_empty() {
        return finding.good(format!("none arrived on CPU {cpu}, none is aimed at it"));
    }
    let state = format!(
        "none arrived on CPU {cpu} during the sample, but {} are aimed at it ({}{})",
        aimed.len(),
        aimed
            .iter()
            .take(NAMED)
            .map(|line| format!("{} {}", line.name, line.device()))
            .collect::<Vec<_>>()
            .join(", "),
        if aimed.len() > NAMED { ", …" } else { "" },
    );
    let numbers: Vec<&str> = aimed.iter().map(|line| line.name.as_str()).collect();
    with_remedy(e, finding.note(state), &numbers)
}

/// Check whether irqbalance may move interrupts to the measured CPU.
pub(super) fn irqbalance(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "irqbalance",
        "irqbalance",
        "irqbalance moves device interrupts between CPUs every ten seconds, so the noise of one \
         CPU changes in the middle of a measurement. It leaves isolated CPUs alone by default.",
    );
    let Some(names) = e.sample.names.known() else {
        return finding.unknown(e.sample.names.because().unwrap_or_default());
    };
    let namespaces = e
        .machine
        .virtualisation
        .container
        .separate_namespaces
        .known();
    if namespaces.is_some_and(|apart| apart.iter().any(|kind| kind == "pid")) {
        return finding.unknown("the processes of the host cannot be seen from this PID namespace");
    }
    if !names.iter().any(|name| name == "irqbalance") {
        return finding.good("not running");
    }
    if e.cpu_in(&e.machine.isolation.set_apart()) {
        return finding.note(format!("running, but {} is isolated", e.cpu_name()));
    }
    finding.warning("running").remedy(format!(
        "`sudo systemctl stop irqbalance`, or keep it away with IRQBALANCE_BANNED_CPULIST={} in \
         its environment",
        e.cpu_word()
    ))
}

/// Find the interrupts that the kernel delivers to this CPU when they come.
fn aimed_at<'a>(e: &Examination<'_>, cpu: u32, interrupts: &'a [Interrupt]) -> Vec<&'a Interrupt> {
    interrupts
        .iter()
        .filter(|line| {
            line.number().is_some_and(|number| {
                e.source
                    .value::<CpuList>(&format!("/proc/irq/{number}/effective_affinity_list"))
                    .or_else(|| {
                        e.source
                            .value(&format!("/proc/irq/{number}/smp_affinity_list"))
                    })
                    .known()
                    .is_some_and(|list| list.contains(cpu))
            })
        })
        .collect()
}

fn with_remedy(e: &Examination<'_>, finding: Finding, numbers: &[&str]) -> Finding {
    let others = e.other_cpus();
    if others.is_empty() {
        return finding;
    }
    finding.remedy(e.on_kernel(format!(
        "`for irq in {}; do echo {others} | sudo tee /proc/irq/$irq/smp_affinity_list; done` (an \
         interrupt that the kernel manages refuses this; then boot with \
         `isolcpus=managed_irq,domain,{}`)",
        numbers.join(" "),
        e.cpu_word()
    )))
}
