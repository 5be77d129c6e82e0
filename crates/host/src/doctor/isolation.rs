//! isolcpus, nohz_full, rcu_nocbs: what the kernel itself does on the measured CPU.

use super::realtime::without_fair_server;
use super::{Examination, Judgement, SECOND_CPU, Severity::*, advise, good};
use tare_wire::cpus::Cpus;

/// The size of the kernel's command line on x86, in bytes, with its final zero.
const COMMAND_LINE_SIZE: usize = 2_048;

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
    if e.cpu_in(isolated) {
        return good(format!("{cpu} is isolated (isolcpus={isolated})"));
    }
    let all = isolated.union(&partition);
    if all.is_empty() {
        let parameters = format!("isolcpus=managed_irq,domain,{word} irqaffinity={others}");
        let remedy = boot(e, format!("boot with the kernel parameters `{parameters}`"));
        return match e.machine.kernel.parameter("isolcpus") {
            Some(value) => {
                let state = format!(
                    "no CPU is isolated, although the kernel was booted with `isolcpus={value}`"
                );
                advise(Warning, state, remedy)
            }
            None => advise(Note, "no CPU is isolated", remedy),
        };
    }
    let first = all.iter().next().unwrap_or(0);
    let remedy = format!("measure on an isolated CPU on which nothing else runs: `--cpu {first}`");
    advise(Warning, format!("isolated are {all}, {cpu} is not"), remedy)
}

/// Checks for kernel parameters that do something else than was meant.
pub(super) fn parameters(e: &Examination<'_>) -> Judgement {
    let kernel = &e.machine.kernel;
    let line = e.source.line("/proc/cmdline");
    if line.get()?.len() + 1 >= COMMAND_LINE_SIZE {
        let state = format!(
            "the command line fills the {COMMAND_LINE_SIZE} bytes that the kernel keeps, so its \
             end was cut off"
        );
        let remedy = "shorten it (`cat /proc/cmdline` shows what is left), or build parameters into \
                      the kernel (CONFIG_CMDLINE)";
        return advise(Warning, state, e.on_kernel(remedy));
    }
    let last = e.machine.topology.online.known().and_then(Cpus::last);
    let (asked, last) = (kernel.parameter("irqaffinity"), last.unwrap_or(0));
    let aimed = asked.map(|text| Cpus::parse_parameter(text, last).unwrap_or_default());
    if aimed.is_some_and(|cpus| cpus.is_empty()) {
        let state = format!("`irqaffinity={}` names no CPU", asked.unwrap_or_default());
        let remedy = format!(
            "boot with the kernel parameter `irqaffinity={}`",
            e.other_cpus()
        );
        return advise(Warning, state, boot(e, remedy));
    }
    let aimed = aimed.unwrap_or_default();
    let isolated = e.machine.isolation.isolated.get()?;
    let aimed = Cpus::from_iter(isolated.iter().filter(|cpu| aimed.contains(*cpu)));
    if !aimed.is_empty() {
        let state = format!("irqaffinity= sends device interrupts to isolated CPUs: {aimed}");
        let remedy = format!(
            "boot with the kernel parameter `irqaffinity={}`",
            e.other_cpus()
        );
        return advise(Warning, state, boot(e, remedy));
    }
    good("none contradicts another, is empty or cut off")
}

/// Checks whether the periodic tick stops on the measured CPU.
pub(super) fn tick(e: &Examination<'_>) -> Judgement {
    let (nohz_full, cpu) = (e.machine.isolation.nohz_full.get()?, e.cpu_name());
    if e.cpu_in(nohz_full) {
        let state = format!("stops on {cpu} (nohz_full={nohz_full})");
        return match without_fair_server(e) {
            None => good(state),
            Some(forbid) => {
                let state = format!("{state}, unless the fair server's timer keeps it going");
                advise(Note, state, e.on_kernel(forbid))
            }
        };
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
        return SECOND_CPU.to_owned();
    }
    e.on_kernel(remedy)
}
