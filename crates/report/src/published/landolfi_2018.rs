//! landolfi-2018: how late is a task woken under load, by the kernel's preemption model?

use super::{Claim, Published, nothing_to_compare};

/// Is the study.
pub(super) const STUDY: Published = Published {
    name: "landolfi-2018",
    question: "How late is a task woken under load, by the kernel's preemption model?",
    claims: &[
        claim("The load DU is the worst for every kernel that is not real-time."),
        claim("PING has the highest mean under kernels that are not real-time."),
        claim("Only the real-time kernel bounds the maximum."),
        claim("Full preemption beats voluntary preemption and none."),
    ],
    tables: &[(
        "Wake-up latency by phase and kernel",
        include_str!("../../../../studies/published/landolfi-2018.csv"),
    )],
    compare: nothing_to_compare,
};

const fn claim(text: &'static str) -> Claim {
    Claim {
        text,
        experiment: "wakeup",
        measures: "wake-up latency",
        tell: None,
    }
}
