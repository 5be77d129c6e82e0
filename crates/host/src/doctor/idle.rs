//! Idle states: how late does a sleeping core wake?

use super::{Examination, Finding};

/// An exit latency up to which an idle state does not matter, in microseconds: that of polling and
/// C1.
const SHALLOW_US: u64 = 2;

/// Check how deep the measured CPU may sleep, and whether tare can prevent it.
pub(super) fn idle_states(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "idle-states",
        "Idle states (C-states)",
        "A core that sleeps deeply needs up to hundreds of microseconds to wake and finds its \
         caches cold: this is added to every wake-up latency. Code that never sleeps is not \
         affected on its own core.",
    );
    let power = &e.machine.power;
    if parameter(e, "idle=poll") {
        return finding.good("none: idle=poll");
    }
    if power.idle_states.known().is_none() {
        let because = power.idle_states.because().unwrap_or_default();
        return if e.is_guest() {
            finding
                .note(
                    "not visible from inside a guest: an idle virtual CPU gives its core back \
                    to the hypervisor",
                )
                .remedy(e.on_hardware(
                    "boot with `intel_idle.max_cstate=1` or \
                    `processor.max_cstate=1`; KVM can also let guests poll (`halt_poll_ns`)",
                ))
        } else {
            finding.unknown(because)
        };
    }
    let deepest = match e.cpu {
        Some(cpu) => power.deepest_idle_state(cpu),
        None => power
            .idle_states
            .known()
            .and_then(|states| states.iter().max_by_key(|state| state.exit_latency_us)),
    };
    let Some(deepest) = deepest else {
        return finding.good(format!("all disabled on {}", e.cpu_name()));
    };
    let driver = power
        .idle_driver
        .known()
        .map_or_else(String::new, |driver| format!(" (driver {driver})"));
    let state = format!(
        "deepest on {} is {}, exit latency {} µs{driver}",
        e.cpu_name(),
        deepest.name,
        deepest.exit_latency_us
    );
    if deepest.exit_latency_us <= SHALLOW_US {
        return finding.good(state);
    }
    let process = &e.machine.process;
    if process.dma_latency_opens {
        return finding.note(format!(
            "{state}; /dev/cpu_dma_latency can be opened, so cores can be kept awake during a \
             measurement"
        ));
    }
    let refusal = process
        .dma_latency_refusal
        .as_deref()
        .unwrap_or("it does not open");
    finding
        .warning(format!(
            "{state}; it cannot be prevented from here: {refusal}"
        ))
        .remedy(remedy(e))
}

fn remedy(e: &Examination<'_>) -> String {
    if e.in_container() {
        return "start the container with `--device /dev/cpu_dma_latency`".to_owned();
    }
    let disable = format!(
        "`sudo cpupower -c {} idle-set -D {}`",
        e.cpu_word(),
        SHALLOW_US + 1
    );
    if e.source.exists("/dev/cpu_dma_latency") {
        format!("run tare with sudo, or `sudo chmod o+w /dev/cpu_dma_latency`, or {disable}")
    } else {
        disable
    }
}

fn parameter(e: &Examination<'_>, wanted: &str) -> bool {
    e.machine
        .kernel
        .parameters
        .known()
        .is_some_and(|words| words.iter().any(|word| word == wanted))
}
