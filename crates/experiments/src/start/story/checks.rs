//! Checks of whether figures of starts may be believed.

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::group::grouped;
use tare_figures::notices::{Notice, Severity};
use tare_figures::rows::{Figure, with};
use tare_figures::words::counted;
use tare_pages::kit::checks::about;
use tare_pages::kit::series::Series;
use tare_results::model::Failure;

use super::ladder::{self, N, arrived, not_open_loop};

/// The share of all CPUs' time, used by neither instances nor daemons, from which on there is a
/// warning.
const MUCH: f64 = 0.25;

/// Finds what bears on the figures of starts.
pub(super) fn find(run: &Run) -> Vec<Notice> {
    use Severity::Warning;
    let all = ladder::all(run);
    let cases = || {
        all.iter()
            .flat_map(|one| one.cases.iter().map(move |case| (one, case)))
    };
    let some = |is: &dyn Fn(&Case<'_>) -> bool| -> Vec<String> {
        let found = cases().filter(|(_, case)| is(case));
        found.map(|(one, case)| named(one, case)).collect()
    };
    let late = some(&|case| not_open_loop(case).is_some());
    let why = cases()
        .find_map(|(_, case)| not_open_loop(case))
        .unwrap_or_default();
    let failing =
        some(&|case| arrived(case).any(|all| all.failures.iter().any(|one| one.count > 0)));
    let (failed, reasons) = failures(cases().map(|(_, case)| case));
    let busy = cases().filter_map(|(one, case)| Some((beside(case)?, named(one, case))));
    let mut busy = Vec::from_iter(busy.filter(|(share, _)| *share >= MUCH));
    busy.sort_by(|a, b| b.0.total_cmp(&a.0));
    let busiest = N.percent(busy.first().map_or(0.0, |(share, _)| *share));
    let busy = Vec::from_iter(busy.into_iter().map(|(_, name)| name));
    let silent = some(&|case| case.value("ready", Figure::Max).is_none());
    let notices = [
        about((Warning, "not-open-loop"), &late, |names| {
            format!(
                "{names} was not driven open-loop ({why}): the actual rate differed from the planned one, so these latencies \
                 do not characterise the target. Such points are marked, and do not count as sustained rates."
            )
        }),
        about((Warning, "instances-failed"), &failing, |names| {
            let within = cases().filter_map(|(_, case)| case.row("failed", Figure::Total, &[]));
            let within = within.flat_map(|row| &row.each);
            let within: f64 = within.filter_map(|run| run.figure.value()).sum();
            let instances = |count| counted(N, count, "instance", "instances");
            let failed = match (within as u64, failed.saturating_sub(within as u64)) {
                (0, before) => format!("{} of {names} failed in the warm-up", instances(before)),
                (within, 0) => format!("{} of {names} failed", instances(within)),
                (within, before) => format!(
                    "{} of {names} failed, and {} in the warm-up",
                    instances(within),
                    N.count(before)
                ),
            };
            format!("{failed}: {reasons}. They are in no latency.")
        }),
        about((Warning, "busy-beside"), &busy, |names| {
            format!(
                "While instances of {names} were started, up to {busiest} of the time of all CPUs in a run went to neither \
                 instances nor daemons, but to other work and to starting and reading them. Instances run on any CPU, so they may have waited: \
                 end what can be ended, and measure again."
            )
        }),
        about((Warning, "none-ready"), &silent, |names| {
            format!(
                "No instance of {names} became ready and ended as it should: there is no latency."
            )
        }),
    ];
    notices.into_iter().flatten().collect()
}

/// Returns the greatest share of a run of all CPUs' time in the window that neither instances nor
/// daemons had; `None` if that is not known: threads of the kernel may have worked for a load.
fn beside(case: &Case<'_>) -> Option<f64> {
    if !case.plan.load.is_idle() {
        return None;
    }
    let topology = &case.run.machine.as_ref()?.machine.topology;
    let cpus = f64::from(topology.online.known()?.count());
    let of_run = |measure, figure, cell: u32| {
        let each = &case.row(measure, figure, &[])?.each;
        each.iter().find(|run| run.cell == cell)?.figure.value()
    };
    let shares = case.cells.iter().filter_map(|cell| {
        let mean = |measure| of_run(measure, Figure::Mean, cell.plan.id);
        let each = mean("machine-cpu")? - mean("cpu")? - mean("daemon-cpu").unwrap_or(0.0);
        let share = each * of_run("rate", Figure::Rate, cell.plan.id)? / 1e9 / cpus;
        // The window and the CPUs' time are read one after the other.
        Some(share.min(1.0))
    });
    shares.max_by(f64::total_cmp)
}

/// Names a case: `process at 64/s`.
fn named(ladder: &Series<'_>, case: &Case<'_>) -> String {
    ladder::name(ladder) + &with(&ladder::pace(case))
}

/// Returns how many instances failed, and the most frequent reasons.
fn failures<'c>(cases: impl Iterator<Item = &'c Case<'c>>) -> (u64, String) {
    let all = cases
        .flat_map(arrived)
        .flat_map(|arrived| &arrived.failures);
    let reasons = grouped(all.map(|failure| (failure.reason.clone(), failure.count)));
    let reasons = reasons.into_iter().map(|(reason, counts)| Failure {
        reason,
        count: counts.into_iter().fold(0, u64::saturating_add),
    });
    let reasons = Vec::from_iter(reasons);
    let all = reasons.iter().map(|failure| failure.count).sum();
    (all, Failure::list(reasons))
}
