//! cse221-2022: what do the primitives of an operating system cost?

use tare_report::claims::{Claim, Published, nothing_to_compare};

/// The study.
pub(super) const STUDY: Published = Published {
    name: "cse221-2022",
    question: "What do the primitives of an operating system cost?",
    claims: &[
        claim("A procedure call costs 22 to 31 cycles, with no visible trend per argument."),
        claim("Creating a thread costs far less than creating a process."),
        claim("Switching between threads costs far less than switching between processes."),
        claim(
            "The levels of the memory hierarchy and the line size can be read off the latency curve.",
        ),
    ],
    tables: &[(
        "Predicted and measured cost of each primitive",
        include_str!("../../../../studies/published/cse221-2022.csv"),
    )],
    note: "",
    compare: nothing_to_compare,
};

const fn claim(text: &'static str) -> Claim {
    Claim {
        text,
        experiment: "primitives",
        measures: "what primitives cost",
        tell: None,
    }
}
