//! Device interrupts on the measured CPU, and the daemon that moves them about.

use super::{
    Examination, Judgement, SECOND_CPU, Severity::*, Verdict, advise, good, note, unknown,
};
use crate::sample::Interrupt;
use tare_wire::cpus::Cpus;

/// How many interrupts are named in a state or a command.
const NAMED: usize = 4;
/// How many device interrupts in a sample of 200 ms are worth a warning: 20 per second. Fewer are
/// lost among the 100 to 1,000 ticks per second that an ordinary CPU has anyway.
const MANY: u64 = 4;

/// Checks whether device interrupts arrive on the measured CPU, or may.
pub(super) fn affinity(e: &Examination<'_>) -> Judgement {
    let Some(cpu) = e.cpu else {
        return unknown("no CPU to measure on");
    };
    let interrupts = e.sample.interrupts.get()?;
    let arrived = |line: &&Interrupt| line.number().is_some() && line.on(cpu) > 0;
    let mut arrived: Vec<&Interrupt> = interrupts.iter().filter(arrived).collect();
    arrived.sort_by_key(|line| std::cmp::Reverse(line.on(cpu)));
    if !arrived.is_empty() {
        let total = arrived.iter().map(|line| line.on(cpu));
        let total = total.fold(0, u64::saturating_add);
        arrived.truncate(NAMED);
        let name = |line: &&Interrupt| format!("{} {} ×{}", line.name, line.device(), line.on(cpu));
        let names = arrived.iter().map(name).collect::<Vec<_>>().join(", ");
        let severity = if total >= MANY { Warning } else { Note };
        let state = format!("{total} arrived on CPU {cpu} during the sample ({names})");
        return with_remedy(e, Verdict::new(severity, state), &arrived);
    }
    let aimed = |line: &&Interrupt| is_aimed_at(e, cpu, line);
    let aimed: Vec<&Interrupt> = interrupts.iter().filter(aimed).collect();
    if aimed.is_empty() {
        return good(format!("none arrived on CPU {cpu}, none is aimed at it"));
    }
    let name = |line: &&Interrupt| format!("{} {}", line.name, line.device());
    let mut names: Vec<String> = aimed.iter().take(NAMED).map(name).collect();
    if aimed.len() > NAMED {
        names.push("…".to_owned());
    }
    let (number, names) = (aimed.len(), names.join(", "));
    let state = format!(
        "none arrived on CPU {cpu} during the sample, but {number} are aimed at it ({names})"
    );
    with_remedy(e, Verdict::new(Note, state), &aimed)
}

/// Checks whether irqbalance may move interrupts to the measured CPU.
pub(super) fn irqbalance(e: &Examination<'_>) -> Judgement {
    let names = e.visible_names()?;
    if !names.iter().any(|name| name == "irqbalance") {
        return good("not running");
    }
    if e.cpu_in(&e.machine.isolation.set_apart()) {
        return note(format!("running, but {} is isolated", e.cpu_name()));
    }
    let remedy = format!(
        "`sudo systemctl stop irqbalance`, or keep it away with IRQBALANCE_BANNED_CPULIST={} in \
         its environment",
        e.cpu_word()
    );
    advise(Warning, "running", remedy)
}

/// Checks for interrupts that can go to no other CPU.
pub(super) fn bound(e: &Examination<'_>) -> Judgement {
    let cpu = e.cpu.ok_or("no CPU to measure on")?;
    let interrupts = e.sample.interrupts.get()?;
    if e.online() == 1 {
        return good("only one CPU");
    }
    let is_bound = |line: &&Interrupt| {
        let allowed = line.number().map(|number| {
            let path = format!("/proc/irq/{number}/smp_affinity_list");
            e.source.value::<Cpus>(&path)
        });
        allowed.is_some_and(|allowed| allowed.is(&Cpus::one(cpu)))
    };
    let bound: Vec<&Interrupt> = interrupts.iter().filter(is_bound).collect();
    if bound.is_empty() {
        return good(format!("none is for CPU {cpu} alone"));
    }
    let name = |line: &&Interrupt| format!("{} {}", line.name, line.device());
    let names: Vec<String> = bound.iter().take(NAMED).map(name).collect();
    let state = format!(
        "{} are for CPU {cpu} alone ({})",
        bound.len(),
        names.join(", ")
    );
    let remedy = "where writing to /proc/irq/N/smp_affinity_list fails, the kernel manages it, and \
                  `isolcpus=managed_irq` does not move it: give the device fewer queues (`sudo \
                  ethtool -L INTERFACE combined 1`), or do no input and output on this CPU";
    advise(Note, state, e.on_kernel(remedy))
}

/// Returns whether the kernel delivers an interrupt to this CPU when it comes.
fn is_aimed_at(e: &Examination<'_>, cpu: u32, line: &Interrupt) -> bool {
    let Some(number) = line.number() else {
        return false;
    };
    let list = |name| {
        e.source
            .value::<Cpus>(&format!("/proc/irq/{number}/{name}"))
    };
    list("effective_affinity_list")
        .or_else(|| list("smp_affinity_list"))
        .known()
        .is_some_and(|list| list.contains(cpu))
}

fn with_remedy(e: &Examination<'_>, verdict: Verdict, lines: &[&Interrupt]) -> Judgement {
    let others = e.other_cpus();
    if others.is_empty() {
        return Ok(verdict.with_remedy(SECOND_CPU));
    }
    let numbers: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    let (numbers, cpu) = (numbers.join(" "), e.cpu_word());
    Ok(verdict.with_remedy(e.on_kernel(format!(
        "`for irq in {numbers}; do echo {others} | sudo tee /proc/irq/$irq/smp_affinity_list; \
         done` (an interrupt that the kernel manages refuses this; then boot with \
         `isolcpus=managed_irq,domain,{cpu}`)"
    ))))
}
