//! Notices: what a reader must know before believing a figure.

use schemars::JsonSchema;
use serde::Serialize;

use crate::group::entry;
use crate::words;

/// Something that bears on whether the figures may be believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Notice {
    /// Short name that stays the same between versions.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The observation, its effect on the figures, and the remedy.
    pub text: String,
}

/// How much a notice matters.
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

impl Notice {
    const fn new(id: &'static str, severity: Severity, text: String) -> Self {
        Self { id, severity, text }
    }

    /// Makes a notice that some figures are wrong or mean something else.
    #[must_use]
    pub const fn error(id: &'static str, text: String) -> Self {
        Self::new(id, Severity::Error, text)
    }

    /// Makes a notice that some figures are worse than they could be, or incomplete.
    #[must_use]
    pub const fn warning(id: &'static str, text: String) -> Self {
        Self::new(id, Severity::Warning, text)
    }

    /// Makes a notice that is worth knowing.
    #[must_use]
    pub const fn note(id: &'static str, text: String) -> Self {
        Self::new(id, Severity::Note, text)
    }
}

/// A cell without figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotMeasured {
    /// Number of the cell.
    pub id: u32,
    /// Number of its block (run).
    pub block: u32,
    /// The combination's name.
    pub label: String,
    /// How far it came.
    pub state: State,
    /// Why there are no figures, and what to do.
    pub reason: String,
}

/// How far a cell without figures came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The run did not come to it, or was cut off.
    Missing,
    /// It was tried and failed.
    Failed,
    /// It was skipped while the run went on, because an earlier result made it pointless.
    LeftOut,
    /// It was not tried, because what must work before it failed.
    NotTried,
    /// It was measured, but its files are not what was written.
    Damaged,
    /// Its files are in order, but contradict themselves.
    Contradictory,
    /// It ended, and nothing could be measured: no cell of the run has a figure.
    Empty,
}

impl State {
    /// Returns its name in sentences and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Failed => "failed",
            Self::LeftOut => "left out",
            Self::NotTried => "not tried",
            Self::Damaged => "damaged",
            Self::Contradictory => "contradictory",
            Self::Empty => "without a figure",
        }
    }
}

/// A notice of one or more agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgentNotice {
    /// The text.
    pub text: String,
    /// The cells in which it was given.
    pub cells: Vec<u32>,
}

impl AgentNotice {
    /// Adds a notice of one cell to a list, if that is not full.
    pub(crate) fn add(notices: &mut Vec<Self>, text: &str, cell: u32) {
        /// How many different ones are kept: each is compared with those before.
        const MOST: usize = 1_000;
        if notices.len() == MOST && !notices.iter().any(|notice| notice.text == text) {
            return;
        }
        let new = || Self {
            text: text.to_owned(),
            cells: Vec::new(),
        };
        let notice = entry(notices, |notice| notice.text == text, new);
        notice.cells.push(cell);
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
