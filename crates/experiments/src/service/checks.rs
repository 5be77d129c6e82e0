//! Checks of whether the figures of a service may be believed.

use tare_figures::cases::Case;
use tare_figures::format::Numbers;
use tare_figures::group::grouped;
use tare_figures::notices::{Notice, Severity, name_some};
use tare_figures::rows::{Figure, Row};
use tare_figures::words;
use tare_measured::service::Plan;
use tare_pages::kit::checks::{Check, about, of_cases};
use tare_results::model::Labels;

use super::measures::{is_ping, lacks_cpu};
use super::{HIGHEST, NAME, RATE};

/// The time of a measurement over the planned one from which on its client was late.
const LONGER: f64 = 1.05;
/// The share of requests that is answered at the highest rate.
const HELD: f64 = 0.9999;

const CHECKS: &[Check] = &[
    Check {
        of: (Severity::Warning, "cost-unknown"),
        holds: |case| !is_ping(case.plan) && case.records().any(lacks_cpu),
        text: "The CPU time of the server is unknown in a run of {}, which is in no figure of its cost: it could not be read before \
               the first request, as when this machine is busy. Measure again.",
    },
    Check {
        of: (Severity::Warning, "rate-not-held"),
        holds: is_not_held,
        text: "The highest rate that the search found was not held when it was offered once more for {}: less than 99.99 % was \
               answered within the limit. Each rate is tried once: take a longer --duration, and more runs.",
    },
    Check {
        of: (Severity::Warning, "user-network"),
        holds: |case| case.plan.has_user_network(),
        text: "There was no TAP device for {}: QEMU's user-mode network forwarded ports of 127.0.0.1. Its TCP/IP in QEMU's process is \
               part of the CPU time outside and of each latency: run tare as root, with /dev/net/tun.",
    },
    Check {
        of: (Severity::Note, "client-shares"),
        holds: |case| {
            let server = case.plan.server.as_ref().and_then(|server| server.cpus);
            server.is_some() && server == case.plan.work.cpus
        },
        text: "Server and client shared CPU {cpu} for {}: this process may use no other. Latencies include the client's own work.",
    },
    Check {
        of: (Severity::Note, "client-with-hypervisor"),
        holds: |case| {
            let server = case.plan.server.as_ref().and_then(|server| server.cpus);
            let machine = case.run.machine.as_ref().map(|record| &record.machine);
            let online = machine.and_then(|machine| machine.topology.online.known());
            case.plan.target.kernel().is_guest()
                && server.is_some_and(|own| case.plan.work.cpus.is_some_and(|other| other != own))
                && online.is_some_and(|online| online.count() == 2)
        },
        text: "This machine has two CPUs: the client shared its own with the hypervisor's other threads, such as those of devices, \
               for {}. Latencies and the highest rate include what these threads do.",
    },
];

/// Returns the notices about cases that `place` names.
pub(super) fn find(cases: &[Case<'_>], place: impl Fn(&Row) -> String) -> Vec<Notice> {
    // Each case with its own reasons.
    let late = cases.iter().filter(|case| is_late(case));
    let late = late.filter_map(|case| Some((delays(case), place(case.rows().next()?))));
    let late = grouped(late).into_iter().map(|(why, names)| {
        let why = words::list(&why.into_iter().map(str::to_owned).collect::<Vec<_>>());
        format!("for {}: in a run it {why}", name_some(&names))
    });
    let late = Vec::from_iter(late);
    let late = (!late.is_empty()).then(|| {
        let text = format!(
            "The client was late or had no CPU time left {}. Latencies and rates there are partly its own, or of other work on \
             its CPU.",
            late.join("; ")
        );
        Notice::warning("client-behind", text)
    });
    let wrong = cases.iter().filter(|case| has_wrong(case));
    let wrong = wrong.filter_map(|case| {
        let sum = |measure: &str| Numbers::PLAIN.count(values(case, measure).sum::<f64>() as u64);
        let [wrong, requests] = ["wrong", "requests"].map(sum);
        let place = place(case.rows().next()?);
        Some(format!("{wrong} for {requests} requests on {place}"))
    });
    let of = (Severity::Warning, "wrong-answers");
    let wrong = about(of, &Vec::from_iter(wrong), |each| {
        format!("The client found wrong answers, which count as lost: {each}.")
    });
    let others = of_cases(cases, &place, CHECKS);
    wrong.into_iter().chain(late).chain(others).collect()
}

/// Returns whether the client of a case was late, or limited the rate.
pub(super) fn is_late(case: &Case<'_>) -> bool {
    !delays(case).is_empty()
}

/// Returns the greatest share of a run of a case.
fn most(case: &Case<'_>, measure: &str) -> f64 {
    let row = case.row(measure, Figure::Share, &[]);
    let each = row.into_iter().flat_map(|row| &row.each);
    each.filter_map(|run| run.figure.value())
        .fold(0.0, f64::max)
}

/// Returns whether the client of a case had no CPU time left.
fn is_saturated(case: &Case<'_>) -> bool {
    most(case, "client") > 0.9
}

/// Returns the mark of a case whose client did not keep its times.
pub(super) fn mark(case: &Case<'_>) -> &'static str {
    match (is_saturated(case) || is_limited(case), is_late(case)) {
        (true, _) => " (limited by the client)",
        (_, true) => " (client late)",
        _ => "",
    }
}

/// Says how the client was late, or limited the rate, in a run of a case.
fn delays(case: &Case<'_>) -> Vec<&'static str> {
    let late = "sent more than 1 % of its requests a millisecond or more late";
    let each = [
        (most(case, "behind") > 0.01).then_some(late),
        took_longer(case).then_some("took longer than planned"),
        has_some(case, "dropped").then_some("had no time to read its answers"),
        is_saturated(case).then_some("used more than 90 % of its CPU"),
        is_limited(case).then_some("ended the search for the highest rate"),
    ];
    each.into_iter().flatten().collect()
}

/// Returns whether the client of a case ended the search for the highest rate.
pub(super) fn is_limited(case: &Case<'_>) -> bool {
    has_some(case, "limited")
}

/// Returns whether a case has wrong answers.
pub(super) fn has_wrong(case: &Case<'_>) -> bool {
    has_some(case, "wrong")
}

fn has_some(case: &Case<'_>, measure: &str) -> bool {
    values(case, measure).any(|number| number > 0.0)
}

/// Returns a value of each run.
fn values(case: &Case<'_>, measure: &str) -> impl Iterator<Item = f64> {
    case.records()
        .filter_map(move |record| record.value(measure, &Labels::default()))
}

/// Returns whether a client that does not say whether it was late needed more time than it had,
/// apart from that until its last requests were lost.
fn took_longer(case: &Case<'_>) -> bool {
    let words = format!("workload={NAME} {}", case.plan.work.words);
    let Ok(plan) = Plan::parse(words.split_whitespace()) else {
        return false;
    };
    let planned_ns = plan.interval_ns.unwrap_or_default() * plan.requests;
    let most_ns = planned_ns as f64 * LONGER + plan.limit_ns as f64;
    planned_ns > 0 && values(case, "window").any(|ns| ns > most_ns)
}

/// Returns whether a search's rate lost too much when it was offered once more.
pub(super) fn is_not_held(case: &Case<'_>) -> bool {
    let share = case.value("answered", Figure::Share);
    case.plan.labels.get(RATE) == Some(HIGHEST) && share.is_some_and(|share| share < HELD)
}
