//! Hypervisor, stolen time, container: what lies below and around.

use super::{Examination, Judgement, Severity::*, advise, good, note, percent, unknown};

/// A share of stolen time during the sample above which durations mean little: more than one unit
/// of the kernel's accounting, which is about 5 %.
const HEAVY_STEAL: f64 = 0.075;
/// A share of stolen time since boot that is worth mentioning.
const NOTABLE_STEAL: f64 = 0.001;

/// Reports the hypervisor.
pub(super) fn hypervisor(e: &Examination<'_>) -> Judgement {
    let virtualisation = &e.machine.virtualisation;
    let Some(name) = virtualisation.hypervisor.get()? else {
        return good("none, bare metal");
    };
    let product = virtualisation.product.known();
    let product = product.map_or_else(String::new, |product| format!(" ({product})"));
    let remedy = "to measure this kernel alone, use bare metal; to measure the guest as it is, ask \
                  for dedicated cores (`virsh vcpupin`) and compare instances (`tare compare`)";
    advise(Note, format!("guest of {name}{product}"), remedy)
}

/// Checks whether the hypervisor takes time from the measured CPU.
pub(super) fn steal(e: &Examination<'_>) -> Judgement {
    let stat = e.sample.stat.get()?;
    let times = match e.cpu {
        Some(cpu) => stat.cpu(cpu).copied().unwrap_or_default(),
        None => stat.sum(),
    };
    let now = times.steal_share();
    let since_boot = e.sample.since_boot.known();
    let since_boot = since_boot.and_then(|stat| stat.sum().steal_share());
    let now_text = match now {
        Some(share) => format!("{} of {} now", percent(share), e.cpu_name()),
        None => "unknown now".to_owned(),
    };
    let boot_text = match since_boot {
        Some(share) => format!("{} of all CPU time since boot", percent(share)),
        None => "unknown since boot".to_owned(),
    };
    let state = format!("{now_text}, {boot_text}");
    let remedy = "ask for dedicated cores, or measure when the neighbours are quiet; on the \
        hypervisor's host pin the virtual CPUs (`virsh vcpupin`) to cores that nothing else uses";
    match (now, since_boot) {
        (Some(share), _) if share > HEAVY_STEAL => advise(Problem, state, remedy),
        (Some(share), _) if share > 0.0 => advise(Warning, state, remedy),
        _ if !e.is_guest() && since_boot == Some(0.0) => good("none"),
        (_, Some(share)) if share > NOTABLE_STEAL => advise(Note, state, remedy),
        (_, Some(0.0)) => {
            note("none ever reported, which may only mean that the hypervisor does not report it")
        }
        (None, _) => unknown(state),
        _ => good(state),
    }
}

/// Reports a container around this process.
pub(super) fn container(e: &Examination<'_>) -> Judgement {
    let container = &e.machine.virtualisation.container;
    let marks = container.marks.join(", ");
    if container.inside {
        return note(format!("inside one ({marks})"));
    }
    container.separate_namespaces.get()?;
    if marks.is_empty() {
        return good("not in one");
    }
    good(format!(
        "not in one, although the file system comes from a container's image ({marks})"
    ))
}
