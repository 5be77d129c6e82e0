//! isolcpus, nohz_full, rcu_nocbs: what the kernel itself does on the measured CPU.

use super::{Examination, Judgement, Severity::*, advise, good};
use tare_wire::cpus::Cpus;

/// Checks whether the scheduler keeps other tasks away from the measured CPU.
pub(super) fn scheduler(e: &Examination<'_>) -> Judgement {
    let (isolation, cpu) = (&e.machine.isolation, e.cpu_name());
    let partition = isolation.cpuset_isolated.known();
    let partition = partition.cloned().unwrap_or_default();
    if e.cpu_in(&partition) {
        return good(format!("{cpu} is in an isolated cpuset partition"));
    }
    let isolated = isolation.isolated.get()?;
    let (word, others) = (e.cpu_word(), e.other_cpus());
    let kernel = &e.machine.kernel;
    let last = e.machine.topology.online.known().and_then(Cpus::last);
    let aimed = kernel.parameter("irqaffinity").zip(last);
    let aimed = aimed.and_then(|(text, last)| Cpus::parse_parameter(text, last).ok());
    let aimed = aimed.unwrap_or_default();
    let aimed = Cpus::from_iter(isolated.iter().filter(|cpu| aimed.contains(*cpu)));
    if !aimed.is_empty() {
        let state = format!("irqaffinity= sends device interrupts to isolated CPUs: {aimed}");
        let remedy = format!("boot with the kernel parameter `irqaffinity={others}`");
        return advise(Warning, state, boot(e, remedy));
    }
    if e.cpu_in(isolated) {
        return good(format!("{cpu} is isolated (isolcpus={isolated})"));
    }
    let all = isolated.union(&partition);
    if all.is_empty() {
        let parameters = format!("isolcpus=managed_irq,domain,{word} irqaffinity={others}");
        let remedy = boot(e, format!("boot with the kernel parameters `{parameters}`"));
        return match kernel.parameter("isolcpus") {
            Some(value) => {
                let state = format!(
                    "no CPU is isolated, although the kernel was booted with `isolcpus={value}`"
                );
                advise(Warning, state, remedy)
            }
            None => advise(Note, "no CPU is isolated", remedy),
        };
    }
    let remedy =
        "measure on an isolated CPU: name one with --cpu, and see that nothing else runs there";
    advise(Warning, format!("isolated are {all}, {cpu} is not"), remedy)
}

/// Checks whether the periodic tick stops on the measured CPU.
pub(super) fn tick(e: &Examination<'_>) -> Judgement {
    let (nohz_full, cpu) = (e.machine.isolation.nohz_full.get()?, e.cpu_name());
    if e.cpu_in(nohz_full) {
        return good(format!("stops on {cpu} (nohz_full={nohz_full})"));
    }
    let rate = match e.machine.kernel.tick_hz.known() {
        Some(hz) => format!("{hz} times per second"),
        None => "at an unknown frequency".to_owned(),
    };
    let state = format!("interrupts {cpu} {rate} while it is busy");
    let parameter = format!("nohz_full={}", e.cpu_word());
    let remedy = boot_with(e, "NO_HZ_FULL", &parameter);
    match e.machine.kernel.parameter("nohz_full") {
        Some(asked) if nohz_full.is_empty() => {
            let state = format!("{state}: this kernel ignores `nohz_full={asked}`");
            advise(Warning, state, remedy)
        }
        _ => advise(Note, state, remedy),
    }
}

/// Checks whether RCU callbacks run on the measured CPU.
pub(super) fn rcu_callbacks(e: &Examination<'_>) -> Judgement {
    let (offloaded, cpu) = (e.machine.isolation.rcu_nocbs.get()?, e.cpu_name());
    if e.cpu_in(offloaded) {
        return good(format!("offloaded from {cpu}"));
    }
    let parameter = format!("rcu_nocbs={}", e.cpu_word());
    let remedy = boot_with(e, "RCU_NOCB_CPU", &parameter);
    advise(Note, format!("run on {cpu}"), remedy)
}

fn boot_with(e: &Examination<'_>, option: &str, parameter: &str) -> String {
    let remedy = format!("boot a kernel that has {option} with the kernel parameter `{parameter}`");
    boot(e, remedy)
}

/// Word a remedy that consists of kernel parameters for the measured CPU.
fn boot(e: &Examination<'_>, remedy: String) -> String {
    if e.other_cpus().is_empty() {
        return "needs a second CPU for everything else".to_owned();
    }
    e.on_kernel(remedy)
}
