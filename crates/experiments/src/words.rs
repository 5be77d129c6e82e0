//! Work that somebody wrote by hand, in the words that the agent takes.

use tare_results::work::Work;

use crate::experiment::EXPERIMENTS;

/// Makes the work of these words, if they are a plan.
#[must_use]
pub fn work(words: &str) -> Option<Work> {
    let mut experiments = EXPERIMENTS.iter();
    experiments.find_map(|experiment| experiment.work(words))
}
