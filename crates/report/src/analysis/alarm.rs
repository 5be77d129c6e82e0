//! What a reader must know before believing a figure.

use schemars::JsonSchema;
use serde::Serialize;

use crate::words;

/// Something that bears on whether the figures may be believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Alarm {
    /// Short name that stays the same between versions.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What was seen, what it does to the figures, what to do.
    pub text: String,
}

/// How much an alarm matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Some figures are worse than they could be, or incomplete.
    Warning,
    /// Some figures are wrong or mean something else.
    Error,
}

impl Alarm {
    /// Makes an alarm that says that some figures are wrong or mean something else.
    #[must_use]
    pub fn error(id: &'static str, text: String) -> Self {
        let severity = Severity::Error;
        Self { id, severity, text }
    }

    /// Makes an alarm that says that some figures are worse than they could be, or incomplete.
    #[must_use]
    pub fn warning(id: &'static str, text: String) -> Self {
        let severity = Severity::Warning;
        Self { id, severity, text }
    }

    /// Makes an alarm that is worth knowing.
    #[must_use]
    pub fn note(id: &'static str, text: String) -> Self {
        let severity = Severity::Note;
        Self { id, severity, text }
    }
}

/// Writes cell numbers in short: `cells 1–4, 7`.
#[must_use]
pub fn name_cells(cells: &[u32]) -> String {
    words::numbered("cell", cells)
}

/// Names the first of several.
#[must_use]
pub fn name_some(labels: &[String]) -> String {
    match labels {
        [] => String::new(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_numbers_are_written_in_short() {
        assert_eq!(name_cells(&[3]), "cell 3");
        assert_eq!(name_cells(&[2, 1]), "cells 1, 2");
        assert_eq!(name_cells(&[1, 2, 3, 4, 7]), "cells 1–4, 7");
    }
}
