//! Limits that a shift must not exceed: `noise/lost > +5%`, `latency.p99 > +2us`.

use std::str::FromStr;

use super::{CompareUnit, ComparedRow, Comparison};
use crate::rows::gate::{GateError, Selector, split_limit, written};

/// A limit on how far NEW may be above BASE.
#[derive(Clone, Debug, PartialEq)]
pub struct ShiftGate {
    text: String,
    selector: Selector,
    limit: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// As a share of BASE.
    Relative(f64),
    /// In a unit.
    Absolute(f64, &'static str),
}

/// What a gate says of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct ShiftJudgement {
    /// Whether a figure is beyond the limit, or can't be told.
    pub failed: bool,
    /// What decides, in one sentence.
    pub sentence: String,
}

impl FromStr for ShiftGate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        let wrong = |why: &str| GateError::Grammar {
            text: text.to_owned(),
            why: why.to_owned(),
        };
        let (selector, limit) = text
            .rsplit_once('>')
            .ok_or_else(|| wrong("it has no '>'"))?;
        let limit = match split_limit(limit.trim()).map_err(|why| wrong(&why))? {
            (number, "%") => Limit::Relative(number / 100.0),
            (number, "ns") => Limit::Absolute(number, "ns"),
            (number, "points") => Limit::Absolute(number / 100.0, "1"),
            (number, "/s") => Limit::Absolute(number, "1/s"),
            (_, "") => {
                return Err(wrong(
                    "its limit has no unit: write '+5%' of BASE, or '+2us'",
                ));
            }
            _ => return Err(wrong("its unit is none of %, points, ns, us, ms, s, /s")),
        };
        Ok(Self {
            text: text.trim().to_owned(),
            selector: Selector::parse(selector).map_err(|why| wrong(&why))?,
            limit,
        })
    }
}

impl ShiftGate {
    /// Judges a comparison. A single invocation against another is told, and judged only if `allow_single` says so.
    ///
    /// # Errors
    ///
    /// [`GateError::Nothing`] if no row matches, [`GateError::Unit`] if the limit is not in the figure's unit.
    pub fn judge(
        &self,
        comparison: &Comparison,
        allow_single: bool,
    ) -> Result<ShiftJudgement, GateError> {
        let rows: Vec<&ComparedRow> = comparison
            .rows
            .iter()
            .filter(|row| self.selector.is_of_compared(row))
            .collect();
        if rows.is_empty() {
            let mut names: Vec<String> = comparison
                .rows
                .iter()
                .map(|row| format!("{}/{}.{}", row.experiment, row.measure, row.figure))
                .collect();
            names.dedup();
            let there = format!("it compares {}", names.join(", "));
            let text = self.text.clone();
            return Err(GateError::Nothing { text, there });
        }
        if let Limit::Absolute(_, unit) = self.limit
            && let Some(row) = rows.iter().find(|row| row.unit != unit)
        {
            return Err(GateError::Unit {
                text: self.text.clone(),
                unit: row.unit.clone(),
            });
        }
        let judged = |failed, sentence| ShiftJudgement { failed, sentence };
        if comparison.unit == CompareUnit::TwoRuns && !allow_single {
            return Ok(judged(
                false,
                format!(
                    "Gate '{}' not judged: one invocation against another tells of these two runs only. Give {} of each \
                     side, or --allow-single.",
                    self.text, comparison.needed
                ),
            ));
        }
        let beyond = rows.iter().filter(|row| row.differs && self.is_beyond(row));
        if let Some(row) = beyond.max_by(|a, b| self.excess(a).total_cmp(&self.excess(b))) {
            return Ok(judged(
                true,
                format!(
                    "Gate failed: {} of {} is {} instead of {}, beyond '{}'.",
                    name(row),
                    row.new_place(),
                    told(row.new, &row.unit),
                    told(row.base, &row.unit),
                    self.text
                ),
            ));
        }
        if let Some(row) = rows.iter().find(|row| row.shift.is_none()) {
            let why = row.refused.as_deref().unwrap_or("a side lacks the figure");
            return Ok(judged(
                true,
                format!(
                    "Gate failed: whether {} of {} is beyond '{}' can't be told: {why}.",
                    name(row),
                    row.new_place(),
                    self.text
                ),
            ));
        }
        if !comparison.can_tell {
            let [base, new] = comparison.repetitions;
            return Ok(judged(
                true,
                format!(
                    "Gate failed: '{}' can't be told with {base} against {new} invocations; it needs {} of each.",
                    self.text, comparison.needed
                ),
            ));
        }
        Ok(judged(false, format!("Gate '{}' passed.", self.text)))
    }

    fn is_beyond(&self, row: &ComparedRow) -> bool {
        self.excess(row) > 0.0
    }

    /// Returns by how much a shift is beyond the limit, in the limit's unit.
    fn excess(&self, row: &ComparedRow) -> f64 {
        match self.limit {
            // From nothing to something is beyond any share.
            Limit::Relative(limit) => row.relative.unwrap_or(f64::INFINITY) - limit,
            Limit::Absolute(limit, _) => row.shift.unwrap_or(0.0) - limit,
        }
    }
}

impl Selector {
    fn is_of_compared(&self, row: &ComparedRow) -> bool {
        self.is_of_parts(
            &row.experiment,
            &row.measure,
            &row.figure,
            |key| match key {
                "target" => Some(row.new_target.as_str()),
                "load" => Some(row.new_load.as_str()),
                key => row.labels.get(key),
            },
        )
    }
}

impl ComparedRow {
    /// Names target, load and labels of NEW.
    #[must_use]
    pub fn new_place(&self) -> String {
        let mut name = self.new_target.clone();
        if self.new_load != "idle" {
            name.push_str(&format!(" under {}", self.new_load));
        }
        for (key, value) in self.labels.iter() {
            name.push_str(&format!(", {key}={value}"));
        }
        name
    }
}

fn name(row: &ComparedRow) -> String {
    format!("{}/{}.{}", row.experiment, row.measure, row.figure)
}

pub(super) fn told(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| "–".to_owned(), |value| written(value, unit))
}
