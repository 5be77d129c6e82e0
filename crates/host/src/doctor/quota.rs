//! CPU quota of the control group: is the process stopped by the calendar?

use super::{Examination, Judgement, Severity::*, advise, good};
use crate::machine::tightest_quota;

/// Checks whether a quota can stop measured code.
pub(super) fn cpu_quota(e: &Examination<'_>) -> Judgement {
    let quota = tightest_quota(e.source);
    let Some((file, quota)) = quota.get()? else {
        return good("none");
    };
    let cpus = quota.cpus();
    let state = format!(
        "{} of every {} µs, that is {cpus:.2} CPUs",
        quota.quota_us, quota.period_us
    );
    if cpus >= e.online().max(1) as f64 {
        return good(format!("{state}, no less than the machine has"));
    }
    let severity = match cpus {
        ..1.0 => Problem,
        ..2.0 => Warning,
        _ => Note,
    };
    if e.in_container() {
        let remedy = "start the container without a CPU limit (docker: without `--cpus`; \
                      Kubernetes: without `limits.cpu`) and give it its own CPUs with \
                      `--cpuset-cpus` or the static CPU manager";
        return advise(severity, state, remedy);
    }
    let is_two = file.ends_with("cpu.max");
    let unlimited = if is_two { "max" } else { "-1" };
    let remedy = format!("`echo {unlimited} | sudo tee {file}`");
    advise(severity, state, remedy)
}
