//! includeos-2015: what does a service cost on a unikernel, against the same service on Linux?

use tare_figures::claims::{Claim, Published, nothing_to_compare};

/// The study.
pub(super) const STUDY: Published = Published {
    name: "includeos-2015",
    question: "What does a service cost on a unikernel, against the same service on Linux?",
    claims: &[
        claim("The DNS service takes 5.5 to 20 % less CPU in all."),
        claim("It takes 66 to 70 % less CPU inside the guest, but more outside it."),
        claim("Its image with everything in it has 158 kB."),
        claim("The minimal image boots in about 0.3 s."),
        claim("Ping goes unanswered while a request computes for seconds."),
        claim("There are fewer VM exits."),
        Claim {
            experiment: "stream",
            measures: "memory bandwidth",
            ..claim("STREAM's bandwidth differs by less than 0.5 %.")
        },
    ],
    tables: &[],
    note: "",
    compare: nothing_to_compare,
};

const fn claim(text: &'static str) -> Claim {
    Claim {
        text,
        experiment: "service",
        measures: "what a service costs",
        tell: None,
    }
}
