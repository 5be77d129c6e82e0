//! Idle states: how late does a sleeping core wake?

use super::{Examination, Judgement, Severity::*, advise, good, note};

/// An exit latency up to which an idle state does not matter, in microseconds: that of polling and
/// C1.
const SHALLOW_US: u64 = 2;

/// Checks how deep the measured CPU may sleep, and whether tare can prevent it.
pub(super) fn idle_states(e: &Examination<'_>) -> Judgement {
    let (power, process) = (&e.machine.power, &e.machine.process);
    let parameters = e.machine.kernel.parameters.known();
    if parameters.is_some_and(|words| words.iter().any(|word| word == "idle=poll")) {
        return good("none: idle=poll");
    }
    if e.is_guest() && power.idle_states.known().is_none() {
        let state = "not visible from inside a guest: an idle virtual CPU gives its core back to \
                     the hypervisor";
        let remedy = "boot with `intel_idle.max_cstate=1` or `processor.max_cstate=1`; KVM can \
                      also let guests poll (`halt_poll_ns`)";
        return advise(Note, state, e.on_hardware(remedy));
    }
    let states = power.idle_states.get()?;
    let deepest = match e.cpu {
        Some(cpu) => power.deepest_idle_state(cpu),
        None => states.iter().max_by_key(|state| state.exit_latency_us),
    };
    let cpu = e.cpu_name();
    let Some(deepest) = deepest else {
        return good(format!("all disabled on {cpu}"));
    };
    let driver = power.idle_driver.known();
    let driver = driver.map_or_else(String::new, |driver| format!(" (driver {driver})"));
    let (name, latency) = (&deepest.name, deepest.exit_latency_us);
    let state = format!("deepest on {cpu} is {name}, exit latency {latency} µs{driver}");
    if latency <= SHALLOW_US {
        return good(state);
    }
    if process.dma_latency_opens {
        return note(format!(
            "{state}; /dev/cpu_dma_latency can be opened, so cores can be kept awake during a \
             measurement"
        ));
    }
    let refusal = process.dma_latency_refusal.as_deref();
    let refusal = refusal.unwrap_or("it does not open");
    let state = format!("{state}; it cannot be prevented from here: {refusal}");
    advise(Warning, state, remedy(e))
}

fn remedy(e: &Examination<'_>) -> String {
    if e.in_container() {
        return "start the container with `--device /dev/cpu_dma_latency`".to_owned();
    }
    let (cpu, deep) = (e.cpu_word(), SHALLOW_US + 1);
    let disable = format!("`sudo cpupower -c {cpu} idle-set -D {deep}`");
    if !e.source.exists("/dev/cpu_dma_latency") {
        return disable;
    }
    format!("run tare with sudo, or `sudo chmod o+w /dev/cpu_dma_latency`, or {disable}")
}
