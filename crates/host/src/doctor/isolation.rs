//! isolcpus, nohz_full, rcu_nocbs: what the kernel itself does on the measured CPU.

use super::{Examination, Finding};
use crate::cpulist::CpuList;

/// Check whether the scheduler keeps other tasks away from the measured CPU.
pub(super) fn scheduler(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "isolation",
        "Isolation from the scheduler",
        "The scheduler puts other tasks on any CPU that is not isolated; while they run, measured \
         code stands still, for up to milliseconds at a time.",
    );
    let isolation = &e.machine.isolation;
    let partition = isolation
        .cpuset_isolated
        .known()
        .cloned()
        .unwrap_or_default();
    if e.cpu_in(&partition) {
        return finding.good(format!(
            "{} is in an isolated cpuset partition",
            e.cpu_name()
        ));
    }
    let Some(isolated) = isolation.isolated.known() else {
        return finding.unknown(isolation.isolated.because().unwrap_or_default());
    };
    if e.cpu_in(isolated) {
        return finding.good(format!(
            "{} is isolated (isolcpus={isolated})",
            e.cpu_name()
        ));
    }
    let all = isolated.union(&partition);
    if all.is_empty() {
        return finding
            .note("no CPU is isolated")
            .remedy(boot(e, |cpu, others| {
                format!(
                    "boot with the kernel parameters `isolcpus=managed_irq,domain,{cpu} \
                    irqaffinity={others}`"
                )
            }));
    }
    finding
        .warning(format!("isolated are {all}, {} is not", e.cpu_name()))
        .remedy(
            "measure on an isolated CPU: name one with --cpu, and see that nothing else runs there",
        )
}

/// Check whether the periodic tick stops on the measured CPU.
pub(super) fn tick(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "tick",
        "Periodic tick",
        "The tick interrupts running code at a fixed frequency for one to several microseconds, \
         and deferred kernel work follows it. On a CPU of nohz_full= it stops while a single task \
         runs.",
    );
    let isolation = &e.machine.isolation;
    let Some(nohz_full) = isolation.nohz_full.known() else {
        return finding.unknown(isolation.nohz_full.because().unwrap_or_default());
    };
    if e.cpu_in(nohz_full) {
        return finding.good(format!("stops on {} (nohz_full={nohz_full})", e.cpu_name()));
    }
    let rate = e.machine.kernel.tick_hz.known().map_or_else(
        || "at an unknown frequency".to_owned(),
        |hz| format!("{hz} times per second"),
    );
    finding
        .note(format!(
            "interrupts {} {rate} while it is busy",
            e.cpu_name()
        ))
        .remedy(boot(e, |cpu, _| {
            format!("boot a kernel that has NO_HZ_FULL with the kernel parameter `nohz_full={cpu}`")
        }))
}

/// Check whether RCU callbacks run on the measured CPU.
pub(super) fn rcu_callbacks(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "rcu-callbacks",
        "RCU callbacks",
        "Memory that the kernel frees through RCU is freed in batches in a soft interrupt, on the \
         CPU that asked for it. With rcu_nocbs= this work goes to threads that can run elsewhere.",
    );
    let isolation = &e.machine.isolation;
    let Some(offloaded) = isolation.rcu_nocbs.known() else {
        return finding.unknown(isolation.rcu_nocbs.because().unwrap_or_default());
    };
    if e.cpu_in(offloaded) {
        return finding.good(format!("offloaded from {}", e.cpu_name()));
    }
    finding
        .note(format!("run on {}", e.cpu_name()))
        .remedy(boot(e, |cpu, _| {
            format!(
                "boot a kernel that has RCU_NOCB_CPU with the kernel parameter \
                `rcu_nocbs={cpu}`"
            )
        }))
}

/// Word a remedy that consists of kernel parameters for the measured CPU.
fn boot(e: &Examination<'_>, parameters: impl FnOnce(&str, &CpuList) -> String) -> String {
    let others = e.other_cpus();
    if others.is_empty() {
        return "needs a second CPU for everything else".to_owned();
    }
    e.on_kernel(parameters(&e.cpu_word(), &others))
}
