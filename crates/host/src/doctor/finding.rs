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
    /// The thing that was checked.
    pub title: Cow<'static, str>,
    /// Its state.
    pub state: String,
    /// How much it matters.
    pub severity: Severity,
    /// Its effect on a measurement.
    pub why: String,
    /// What to do about it; null when nothing is to be done.
    pub remedy: Option<String>,
}

/// The result of a check; the error is the reason why it is unknown.
pub(super) type Judgement = Result<Verdict, String>;

/// How a check judges the machine.
pub(super) struct Verdict {
    pub(super) severity: Severity,
    pub(super) state: String,
    pub(super) remedy: Option<String>,
}

impl Verdict {
    pub(super) fn new(severity: Severity, state: impl Into<String>) -> Self {
        Self {
            severity,
            state: state.into(),
            remedy: None,
        }
    }

    pub(super) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        let remedy = Some(remedy.into());
        Self { remedy, ..self }
    }
}

/// Judges that it is as it should be.
pub(super) fn good(state: impl Into<String>) -> Judgement {
    Ok(Verdict::new(Severity::Good, state))
}

/// Judges that it is worth knowing, and nothing is to be done.
pub(super) fn note(state: impl Into<String>) -> Judgement {
    Ok(Verdict::new(Severity::Note, state))
}

/// Judges that something can be done.
pub(super) fn advise(
    severity: Severity,
    state: impl Into<String>,
    remedy: impl Into<String>,
) -> Judgement {
    Ok(Verdict::new(severity, state).with_remedy(remedy))
}

/// Gives up.
pub(super) fn unknown(because: impl Into<String>) -> Judgement {
    Err(because.into())
}
