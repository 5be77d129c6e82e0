//! calder-2020: how long do instances take to start, as processes, containers, Linux guests and unikernels, and which rate is kept up?

use tare_report::claims::{Claim, Published, nothing_to_compare};

/// The study.
pub(super) const STUDY: Published = Published {
    name: "calder-2020",
    question: "How long do instances take to start, as processes, containers, Linux guests and unikernels, and which rate is kept up?",
    claims: &[
        claim(
            "Without contention a process starts in some ms, a unikernel in about 0.25 s, a container in just under 1 s, Linux in about 4 s with KVM and 16 s without.",
        ),
        claim("The unikernel's latency does not rise under load down to the smallest interval."),
        claim(
            "Docker's latency rises sharply between intervals of 0.5 and 0.25 s, and its throughput falls to almost zero between 1/8 and 1/16 s.",
        ),
        claim("Linux with KVM holds until an interval of 1/8 s."),
        claim("Linux without KVM hangs at an interval of 0.5 s."),
        claim("The unikernel without KVM carries a load 64 times heavier than Linux with KVM."),
    ],
    tables: &[(
        "Start latency and throughput by interval",
        include_str!("../../../../studies/published/calder-2020.csv"),
    )],
    note: "",
    compare: nothing_to_compare,
};

const fn claim(text: &'static str) -> Claim {
    Claim {
        text,
        experiment: "start",
        measures: "how long instances take to start",
        tell: None,
    }
}
