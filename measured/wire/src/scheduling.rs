//! Scheduling policies.

use serde::{Deserialize, Serialize};

/// A scheduling policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// SCHED_FIFO.
    #[default]
    Fifo,
    /// SCHED_RR.
    #[serde(rename = "rr")]
    RoundRobin,
    /// SCHED_DEADLINE.
    Deadline,
    /// SCHED_OTHER.
    Other,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 4] = [Self::Fifo, Self::RoundRobin, Self::Deadline, Self::Other];

    /// Returns the word for the policy.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::RoundRobin => "rr",
            Self::Deadline => "deadline",
            Self::Other => "other",
        }
    }

    /// Finds a policy by its word.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// Returns whether the policy has priorities from 1 to 99.
    pub const fn has_priority(self) -> bool {
        matches!(self, Self::Fifo | Self::RoundRobin)
    }
}
