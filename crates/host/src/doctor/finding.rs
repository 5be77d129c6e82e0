//! What a check says: state, how bad, why it matters, what to do.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a finding matters to measurements of noise and latency. The order is from best to
/// worst.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Good,
    /// Worth knowing when results are read; part of what is measured rather than a fault.
    Note,
    /// Could not be found out.
    Unknown,
    /// Makes results worse or less repeatable than this machine can do.
    Warning,
    /// Results will be wrong or mean something else.
    Problem,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Problem => "problem",
        })
    }
}

/// The result of one check. May name processes and control groups of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// A short name that stays the same between versions, such as "governor".
    pub id: Cow<'static, str>,
    /// What was looked at.
    pub title: Cow<'static, str>,
    /// What was found.
    pub state: String,
    /// How much it matters.
    pub severity: Severity,
    /// What it does to a measurement.
    pub why: String,
    /// What to do about it; null when nothing is to be done.
    pub remedy: Option<String>,
}

impl Finding {
    /// Start a finding; `why` says what the thing looked at does to a measurement.
    pub(super) fn new(id: &'static str, title: &'static str, why: impl Into<String>) -> Self {
        Self {
            id: Cow::Borrowed(id),
            title: Cow::Borrowed(title),
            state: String::new(),
            severity: Severity::Unknown,
            why: why.into(),
            remedy: None,
        }
    }

    pub(super) fn good(self, state: impl Into<String>) -> Self {
        self.with(Severity::Good, state)
    }

    pub(super) fn note(self, state: impl Into<String>) -> Self {
        self.with(Severity::Note, state)
    }

    pub(super) fn warning(self, state: impl Into<String>) -> Self {
        self.with(Severity::Warning, state)
    }

    pub(super) fn problem(self, state: impl Into<String>) -> Self {
        self.with(Severity::Problem, state)
    }

    pub(super) fn unknown(self, because: impl Into<String>) -> Self {
        self.with(Severity::Unknown, because)
    }

    pub(super) fn with(mut self, severity: Severity, state: impl Into<String>) -> Self {
        self.severity = severity;
        self.state = state.into();
        self
    }

    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}
