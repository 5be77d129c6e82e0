//! What stands between the figures and the truth.

use tare_host::{Finding, Severity as Bad};

use crate::analysis::{Alarm, Severity, State};

use super::Evidence;

/// Findings of the doctor that can lengthen or interrupt measured code, most telling first. Others,
/// such as missing privileges, say why something could not be done better, not what disturbed.
const DISTURBING: [&str; 15] = [
    "cpu",
    "load",
    "steal",
    "cpu-quota",
    "tsc",
    "governor",
    "turbo",
    "idle-states",
    "smt",
    "core-type",
    "isolation",
    "tick",
    "irq-affinity",
    "irqbalance",
    "debug-kernel",
];

pub(super) fn cautions(evidence: &Evidence<'_>) -> Vec<String> {
    let mut cautions: Vec<String> = evidence
        .alarms
        .iter()
        .filter(|alarm| alarm.severity() >= Severity::Warning)
        .map(Alarm::to_string)
        .collect();
    let not_measured = evidence.not_measured.iter();
    let failed = not_measured
        .filter(|cell| cell.state != State::LeftOut)
        .count();
    if failed > 0 {
        cautions.push(format!(
            "{failed} of {} cells have no figures; the section on what was not measured says why.",
            evidence.planned
        ));
    }
    if let Some(machine) = evidence.machine {
        cautions.extend(disturbances(&machine.findings));
    }
    cautions
}

/// Names the most important findings that can bear on the figures.
fn disturbances(findings: &[Finding]) -> Option<String> {
    let rank = |finding: &Finding| DISTURBING.iter().position(|id| *id == finding.id);
    let mut found: Vec<(&Finding, usize)> = findings
        .iter()
        .filter(|finding| finding.severity >= Bad::Warning)
        .filter_map(|finding| Some((finding, rank(finding)?)))
        .collect();
    found.sort_by_key(|(finding, rank)| (std::cmp::Reverse(finding.severity), *rank));
    let under = findings
        .iter()
        .find(|finding| finding.id == "hypervisor" && finding.severity == Bad::Note);
    let mut named: Vec<String> = found
        .iter()
        .take(3)
        .map(|(finding, _)| in_short(finding))
        .collect();
    named.extend(under.map(in_short));
    (!named.is_empty()).then(|| format!("What here may have added to it: {}.", named.join("; ")))
}

/// Writes the first clause of a finding.
fn in_short(finding: &Finding) -> String {
    let state = &finding.state;
    let end = [", ", "; ", ": ", " ("]
        .iter()
        .filter_map(|mark| state.find(mark))
        .min();
    format!(
        "{}: {}",
        finding.title,
        &state[..end.unwrap_or(state.len())]
    )
}
