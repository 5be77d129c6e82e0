//! The verdict: what the run says, in a few plain sentences.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::Serialize;
use tare_host::{Finding, Severity as Bad};
use tare_results::model::CellPlan;
use tare_stats::{NoInterval, OverRuns};

use crate::claims::Reproduction;
use crate::modes;
use crate::notices::{NotMeasured, Notice, Severity, State};
use crate::run::Run;

/// The conclusion of a run, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Verdict {
    /// One or two sentences on the most important result.
    pub headline: String,
    /// Further sentences, one or two each.
    pub details: Vec<String>,
    /// Reasons to doubt the figures: first the notices, in their order.
    pub cautions: Vec<String>,
}

/// Puts together what the stories say. The first that has something to say has the headline, unless
/// the run was made to tell whether a study's claims hold: then their answers have it.
pub(crate) fn of(
    run: &Run,
    told: impl IntoIterator<Item = Verdict>,
    reproduction: Option<&Reproduction>,
    alarms: &[Notice],
    not_measured: &[NotMeasured],
) -> Verdict {
    let mut told = told.into_iter();
    let mut verdict = told.next().unwrap_or_else(|| nothing(run, not_measured));
    for other in told {
        verdict.details.push(other.headline);
        verdict.details.extend(other.details);
    }
    modes::tell(&run.rows, &mut verdict.details);
    if let Some(reproduction) = reproduction.filter(|_| !run.cells.is_empty()) {
        let headline = std::mem::replace(&mut verdict.headline, reproduction.in_short());
        verdict.details.insert(0, headline);
    }
    verdict.cautions = cautions(run, alarms, not_measured);
    verdict
}

fn nothing(run: &Run, not_measured: &[NotMeasured]) -> Verdict {
    let headline = match not_measured.first() {
        _ if !run.cells.is_empty() => {
            "What was measured has no figure for this line; the tables have the others.".to_owned()
        }
        Some(NotMeasured {
            id, label, reason, ..
        }) => {
            let reason = reason.trim_end_matches('.');
            format!("Nothing was measured: cell {id} ({label}): {reason}.")
        }
        None => "Nothing was measured: the plan has no cells.".to_owned(),
    };
    Verdict {
        headline,
        ..Verdict::default()
    }
}

/// The findings of the doctor that can lengthen or interrupt measured code, most telling first.
/// Others, such as missing privileges, say why something could not be done better, not what
/// disturbed.
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

fn cautions(run: &Run, alarms: &[Notice], not_measured: &[NotMeasured]) -> Vec<String> {
    let serious = alarms
        .iter()
        .filter(|alarm| alarm.severity >= Severity::Warning);
    let mut cautions: Vec<String> = serious.map(|alarm| alarm.text.clone()).collect();
    let failed = not_measured
        .iter()
        .filter(|cell| cell.state != State::LeftOut)
        .count();
    let is_measured = not_measured.len() < run.plan.cells.len();
    if failed > 0 && is_measured {
        cautions.push(format!(
            "{failed} of {} cells have no figures; the section on what was not measured says why.",
            run.plan.cells.len()
        ));
    }
    let machine = run.machine.as_ref();
    // A count of instructions is the same on any machine.
    let is_timed = |plan: &CellPlan| !plan.counts_instructions() || plan.work.cpus.is_none();
    let bears = is_measured && run.plan.cells.iter().any(is_timed);
    if let Some(machine) = machine.filter(|_| bears) {
        // Instances run on any CPU: what the others do bears on them as well.
        let is_pinned = run.plan.measured_cpu().is_some();
        // Other work and stolen time of the measurement each have a notice.
        let mut cells = run.cells.iter();
        let is_watched = cells.any(|cell| {
            let mut other = cell.other_work.iter();
            other.any(|other| cell.is_told_by(other))
        });
        let findings = machine.findings.iter();
        let findings = findings.filter(|finding| {
            // None was chosen where nothing is pinned.
            let is_of_chosen = finding.id == "cpu" && !is_pinned;
            !is_of_chosen && (!is_watched || !["load", "steal"].contains(&&*finding.id))
        });
        let findings: Vec<&Finding> = findings.collect();
        cautions.extend(disturbances(&findings, is_pinned));
    }
    cautions.extend(too_few_runs(run));
    cautions
}

/// Says how many runs intervals take if no figure has one because there are too few.
fn too_few_runs(run: &Run) -> Option<String> {
    let rows = run.rows.0.iter().filter(|row| !row.counts_instructions);
    let mut over = rows.filter_map(|row| row.over.as_ref().ok()).peekable();
    over.peek().filter(|_| !run.is_imported())?;
    use NoInterval::{Extreme, TooFew};
    let is_few = |over: &OverRuns| matches!(over.interval, Err(TooFew { .. } | Extreme));
    over.all(is_few).then(|| {
        "No figure has an interval: means and shares take three runs, quantiles six (--runs)."
            .to_owned()
    })
}

/// Names the most important findings that can bear on the figures.
fn disturbances(findings: &[&Finding], is_pinned: bool) -> Option<String> {
    let rank = |finding: &Finding| DISTURBING.iter().position(|id| *id == finding.id);
    let findings = || findings.iter().copied();
    let mut found: Vec<(&Finding, usize)> = findings()
        .filter(|finding| finding.severity >= Bad::Warning)
        .filter_map(|finding| Some((finding, rank(finding)?)))
        .collect();
    found.sort_by_key(|(finding, rank)| (Reverse(finding.severity), *rank));
    let under =
        findings().find(|finding| finding.id == "hypervisor" && finding.severity == Bad::Note);
    let mut named: Vec<String> = found
        .iter()
        .take(3)
        .map(|(finding, _)| in_short(finding, is_pinned || finding.id != "load"))
        .collect();
    named.extend(under.map(|finding| in_short(finding, true)));
    (!named.is_empty()).then(|| {
        format!(
            "What may have disturbed the measurement here: {}.",
            named.join("; ")
        )
    })
}

/// Writes the first clause of a finding, or those that come before what is listed.
fn in_short(finding: &Finding, is_first: bool) -> String {
    let state = &finding.state;
    let marks: &[&str] = match is_first {
        true => &[", ", "; ", ": ", " ("],
        false => &[", load average", "; ", " ("],
    };
    let end = marks.iter().filter_map(|mark| state.find(mark)).min();
    format!(
        "{}: {}",
        finding.title,
        &state[..end.unwrap_or(state.len())]
    )
}
