//! Checks that several experiments make of their cells, and the notices that come of them.

use tare_results::model::{Cell, Record};
use tare_results::target::Kernel;

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::group::distinct;
use tare_figures::notices::{Notice, Severity, name_cells, name_some};
use tare_figures::rows::Row;

/// Returns the notice about some cases or primitives by name; `None` without any. `text` gets the
/// first of them and how many more there are.
pub fn about(
    (severity, id): (Severity, &'static str),
    names: &[String],
    text: impl FnOnce(&str) -> String,
) -> Option<Notice> {
    let text = (!names.is_empty()).then(|| text(&name_some(names)))?;
    Some(Notice { id, severity, text })
}

/// Returns the notice about some cells by number; `None` without any.
pub fn about_cells(
    (severity, id): (Severity, &'static str),
    cells: &[u32],
    text: impl FnOnce(&str) -> String,
) -> Option<Notice> {
    let text = (!cells.is_empty()).then(|| text(&name_cells(cells)))?;
    Some(Notice { id, severity, text })
}

/// A check of single cases.
pub struct Check {
    /// The severity and id of its notice.
    pub of: (Severity, &'static str),
    /// Returns whether the notice is about a case.
    pub holds: fn(&Case<'_>) -> bool,
    /// The notice's text, with `{}` for the names of the cases, and `{cpu}` for the measured CPU.
    pub text: &'static str,
}

/// Returns the notices of checks. `name` names a case by one of its rows.
pub fn of_cases(
    cases: &[Case<'_>],
    name: impl Fn(&Row) -> String,
    checks: &[Check],
) -> Vec<Notice> {
    let notices = checks.iter().filter_map(|check| {
        let held = cases.iter().filter(|case| (check.holds)(case));
        let names = held.filter_map(|case| case.rows().next().map(&name));
        about(check.of, &Vec::from_iter(names), |names| {
            let text = check.text.replace("{}", names);
            text.replace("{cpu}", &cases[0].run.plan.cpu.to_string())
        })
    });
    notices.collect()
}

/// Names the targets without the events of a kernel that others have, by an option; `each` are
/// targets, and whether they have some.
pub fn untraced(option: &str, each: impl Iterator<Item = (String, bool)>) -> Option<Notice> {
    let (traced, mut untraced): (Vec<_>, Vec<_>) = each.partition(|(_, is_traced)| *is_traced);
    let is_other = |target: &String| traced.iter().all(|(traced, _)| traced != target);
    untraced.retain(|(target, _)| !traced.is_empty() && is_other(target));
    let names = distinct(untraced.into_iter().map(|(target, _)| target));
    about((Severity::Warning, "not-traced"), &names, |names| {
        format!(
            "{option} recorded nothing on {names}: no kernel there lets tare record its events."
        )
    })
}

/// Returns the labels of the cases of which something holds.
pub fn labels(cases: &[Case<'_>], holds: impl Fn(&Case<'_>) -> bool) -> Vec<String> {
    let found = cases.iter().filter(|case| holds(case));
    found.map(|case| case.plan.label()).collect()
}

/// Returns the cells of an experiment in which /dev/cpu_dma_latency was not held, so that idle
/// states were allowed. The unikernel has none, and of imported results nothing is known.
pub fn latency_not_held(run: &Run, experiment: &str) -> Vec<u32> {
    let is_asleep = |cell: &&Cell| {
        let program = cell.outcome.record().and_then(Record::program);
        program.is_some_and(|program| {
            let kernel = cell.plan.target.group.capabilities().kernel;
            let may_be_asleep = !matches!(kernel, Kernel::None | Kernel::Unknown);
            !program.preparation.latency_held && may_be_asleep
        })
    };
    let cells = run.cells.iter();
    let own = cells.filter(|cell| cell.plan.experiment == experiment);
    own.filter(is_asleep).map(|cell| cell.plan.id).collect()
}
