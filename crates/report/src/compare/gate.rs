//! Limits that a shift must not exceed: `noise/lost > +5%`, `latency.p99 > +2us`.

use std::str::FromStr;

use super::{CompareUnit, ComparedRow, Comparison};
use crate::rows::gate::{GateError, split_limit};
use crate::rows::{Selector, written};

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
            .filter(|row| self.selector.matches(&row.of))
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
                    row.of.place(),
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
                    row.of.place(),
                    self.text
                ),
            ));
        }
        if !comparison.can_tell {
            let [base, new] = comparison.repetitions;
            return Ok(judged(
                true,
                format!(
                    "Gate failed: '{}' can't be told with {base} against {new} {}; it needs {} of each.",
                    self.text,
                    comparison.unit.plural(),
                    comparison.needed
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
            // From nothing to something is beyond any share, and back is below.
            Limit::Relative(limit) => match (row.relative, row.shift) {
                (Some(relative), _) => relative - limit,
                (None, Some(shift)) if shift > 0.0 => f64::INFINITY,
                (None, _) => f64::NEG_INFINITY,
            },
            Limit::Absolute(limit, _) => row.shift.unwrap_or(0.0) - limit,
        }
    }
}

fn name(row: &ComparedRow) -> String {
    format!("{}/{}.{}", row.experiment, row.measure, row.figure)
}

pub(super) fn told(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| "–".to_owned(), |value| written(value, unit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_limit_on_a_shift_has_a_unit() {
        let limit = |text: &str| text.parse::<ShiftGate>().map(|gate| gate.limit);
        assert_eq!(limit("noise/lost > +5%"), Ok(Limit::Relative(0.05)));
        assert_eq!(
            limit("latency.p99 > +2us"),
            Ok(Limit::Absolute(2_000.0, "ns"))
        );
        assert_eq!(limit("lost > 1points"), Ok(Limit::Absolute(0.01, "1")));
        for (text, why) in [
            ("lost > 5", "has no unit"),
            ("lost > +%", "begins with no number"),
            ("lost > 5 parsecs", "its unit is none of"),
            ("lost", "has no '>'"),
        ] {
            let error = limit(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_gate_or_refused(text in any::<String>()) {
            let _ = text.parse::<ShiftGate>();
            let _ = format!("lost > {text}").parse::<ShiftGate>();
        }
    }
}
