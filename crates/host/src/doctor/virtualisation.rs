//! Hypervisor, stolen time, container: what lies below and around.

use super::{Examination, Finding, percent};

/// A share of stolen time during the sample above which durations mean little: more than one unit
/// of the kernel's accounting, which is about 5 %.
const HEAVY_STEAL: f64 = 0.075;
/// A share of stolen time since boot that is worth mentioning.
const NOTABLE_STEAL: f64 = 0.001;

/// Report the hypervisor.
pub(super) fn hypervisor(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "hypervisor",
        "Hypervisor",
        "A hypervisor takes the CPU from the guest for its own interrupts and for other guests. \
         Such gaps look like noise of this kernel, yet no setting in the guest removes them.",
    );
    let virtualisation = &e.machine.virtualisation;
    match virtualisation.hypervisor.known() {
        None => finding.unknown(virtualisation.hypervisor.because().unwrap_or_default()),
        Some(None) => finding.good("none, bare metal"),
        Some(Some(name)) => {
            let product = virtualisation
                .product
                .known()
                .map_or_else(String::new, |product| format!(" ({product})"));
            finding.note(format!("guest of {name}{product}")).remedy(
                "to measure this kernel alone, use bare metal; to measure the guest as it is, ask \
                 for dedicated cores and compare several instances",
            )
        }
    }
}

/// Check whether the hypervisor takes time from the measured CPU.
pub(super) fn steal(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "steal",
        "Stolen time",
        "Steal is time in which the guest wanted to run and the hypervisor ran something else; it \
         lengthens whatever is being measured by milliseconds. Not every hypervisor reports it, \
         and what it does on behalf of the guest itself does not count.",
    );
    let Some(stat) = e.sample.stat.known() else {
        return finding.unknown(e.sample.stat.because().unwrap_or_default());
    };
    let times = match e.cpu {
        Some(cpu) => stat.cpu(cpu).copied().unwrap_or_default(),
        None => stat.sum(),
    };
    let now = times.steal_share();
    let since_boot = e
        .sample
        .since_boot
        .known()
        .and_then(|stat| stat.sum().steal_share());
    let boot_text = since_boot.map_or_else(
        || "unknown since boot".to_owned(),
        |share| format!("{} of all CPU time since boot", percent(share)),
    );
    let now_text = now.map_or_else(
        || "unknown now".to_owned(),
        |share| format!("{} of {} now", percent(share), e.cpu_name()),
    );
    let state = format!("{now_text}, {boot_text}");
    let remedy = "ask for dedicated cores, or measure when the neighbours are quiet; on the \
        hypervisor's host pin the virtual CPUs (`virsh vcpupin`) to cores that nothing else uses";
    match (now, since_boot) {
        (Some(share), _) if share > HEAVY_STEAL => finding.problem(state).remedy(remedy),
        (Some(share), _) if share > 0.0 => finding.warning(state).remedy(remedy),
        _ if !e.is_guest() && since_boot == Some(0.0) => finding.good("none"),
        (_, Some(share)) if share > NOTABLE_STEAL => finding.note(state).remedy(remedy),
        (_, Some(0.0)) => finding
            .note("none ever reported, which may only mean that the hypervisor does not report it"),
        (None, _) => finding.unknown(state),
        _ => finding.good(state),
    }
}

/// Report a container around this process.
pub(super) fn container(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "container",
        "Container",
        "A container shares the host's kernel: its processes are scheduled among all others, its \
         view of the machine is partial, and most settings can only be changed outside. \
         Namespaces themselves do not slow running code.",
    );
    let container = &e.machine.virtualisation.container;
    if container.inside {
        return finding.note(format!("inside one ({})", container.marks.join(", ")));
    }
    match container.separate_namespaces.because() {
        Some(because) => finding.unknown(because),
        None if container.marks.is_empty() => finding.good("not in one"),
        None => finding.good(format!(
            "not in one, although the file system comes from a container's image ({})",
            container.marks.join(", ")
        )),
    }
}
