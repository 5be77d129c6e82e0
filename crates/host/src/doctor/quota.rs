//! CPU quota of the control group: is the process stopped by the calendar?

use super::{Examination, Finding};
use crate::machine::{CpuQuota, tightest_quota};

/// Check whether a quota can stop measured code.
pub(super) fn cpu_quota(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "cpu-quota",
        "CPU quota of the control group",
        "When the processes of a group have used up their quota, all of them are stopped until \
         the period ends, typically for tens of milliseconds. Measured code that spins uses a \
         whole CPU, and tare itself needs some of a second one.",
    );
    match tightest_quota(e.source) {
        crate::Fact::Unknown { unknown } => finding.unknown(unknown),
        crate::Fact::Known(None) => finding.good("none"),
        crate::Fact::Known(Some((file, quota))) => judge(e, finding, &file, quota),
    }
}

fn judge(e: &Examination<'_>, finding: Finding, file: &str, quota: CpuQuota) -> Finding {
    let cpus = quota.cpus();
    let state = format!(
        "{} of every {} µs, that is {cpus:.2} CPUs",
        quota.quota_us, quota.period_us
    );
    let online = e
        .machine
        .topology
        .online
        .known()
        .map_or(1, |online| online.len());
    if cpus >= online as f64 {
        return finding.good(format!("{state}, no less than the machine has"));
    }
    let unlimited = if file.ends_with("cpu.max") {
        "max"
    } else {
        "-1"
    };
    let remedy = if e.in_container() {
        "start the container without a CPU limit (docker: without `--cpus`; Kubernetes: without \
         `limits.cpu`) and give it CPUs of its own with `--cpuset-cpus` or the static CPU manager"
            .to_owned()
    } else {
        format!("`echo {unlimited} | sudo tee {file}`")
    };
    if cpus < 1.0 {
        finding.problem(state).remedy(remedy)
    } else if cpus < 2.0 {
        finding.warning(state).remedy(remedy)
    } else {
        finding.note(state).remedy(remedy)
    }
}
