//! Any plan: the words say by `workload=…` which kind it is.

use core::fmt;

use crate::cpus::Cpus;
use crate::plan::{self, PlanError};
use crate::wakeup;

/// Is what measured code can be asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one lives for the whole program, and nothing can be boxed here"
)]
pub enum Work {
    /// One batch of repetitions.
    Batch(plan::Plan),
    /// Wake-ups at absolute times.
    Wakeup(wakeup::Plan),
}

impl Work {
    /// Reads a plan from words.
    ///
    /// # Errors
    ///
    /// Returns [`PlanError`] as the plan of that workload does.
    pub fn parse<'a>(
        words: impl IntoIterator<Item = &'a str, IntoIter: Clone>,
    ) -> Result<Self, PlanError<'a>> {
        let words = words.into_iter();
        let is_wakeup = |word: &str| word.split_once('=') == Some(("workload", wakeup::NAME));
        if words.clone().any(is_wakeup) {
            return wakeup::Plan::parse(words).map(Self::Wakeup);
        }
        plan::Plan::parse(words).map(Self::Batch)
    }

    /// Returns the first CPU that the code is pinned to, if it is.
    #[must_use]
    pub fn cpu(&self) -> Option<u32> {
        match self {
            Self::Batch(plan) => plan.cpu,
            Self::Wakeup(plan) => plan.cpu.as_ref()?.first(),
        }
    }

    /// Returns all CPUs that the code is pinned to; none if it is not.
    #[must_use]
    pub fn cpus(&self) -> Cpus {
        match self {
            Self::Batch(plan) => plan.cpu.into_iter().collect(),
            Self::Wakeup(plan) => (0..plan.threads)
                .filter_map(|thread| plan.cpu_of(thread))
                .collect(),
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Batch(plan) => plan.fmt(f),
            Self::Wakeup(plan) => plan.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workload_says_which_plan_it_is() {
        let parse = |text: &'static str| Work::parse(text.split_whitespace());
        let wakeup = parse("interval=1ms duration=1s workload=wakeup cpu=2-3").unwrap();
        assert!(matches!(wakeup, Work::Wakeup(_)));
        assert_eq!(wakeup.cpu(), Some(2));
        let batch = parse("workload=gap repetitions=1 cpu=1").unwrap();
        assert!(matches!(batch, Work::Batch(_)));
        assert_eq!(batch.cpu(), Some(1));
        assert_eq!(batch.cpus(), Cpus::one(1));
        // A single thread takes the first one only.
        assert_eq!(wakeup.cpus(), Cpus::one(2));
        let three = parse("interval=1ms duration=1s workload=wakeup cpu=2-3 threads=3").unwrap();
        assert_eq!(three.cpus(), Cpus::parse("2-3").unwrap());
        assert!(parse("workload=sieve").is_err());
    }
}
