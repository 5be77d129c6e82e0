//! Work that somebody wrote by hand, in the words that the agent takes.

use tare_results::work::Work;
use tare_wire::work::Work as Plan;

use crate::{noise, wakeup};

/// Makes the work of these words, if they are a plan.
#[must_use]
pub fn work(words: &str) -> Option<Work> {
    Some(match Plan::parse(words.split_whitespace()).ok()? {
        Plan::Batch(plan) => noise::work(&plan),
        Plan::Wakeup(plan) => wakeup::work(&plan),
    })
}
