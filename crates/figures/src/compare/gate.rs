//! Limits that a shift must not exceed: `noise/lost > +5%`, `latency.p99 > +2us`; or fall below:
//! `rate < -5%`.

use std::str::FromStr;

use super::{CompareUnit, ComparedRow, Comparison, signed, told};
use crate::gates::{Beyond, GateError, Selector, split, split_limit};

/// A limit on how far NEW may be above BASE, or below.
#[derive(Clone, Debug, PartialEq)]
pub struct ShiftGate {
    text: String,
    selector: Selector,
    side: Beyond,
    limit: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// As a share of BASE.
    Relative(f64),
    /// In a unit.
    Absolute(f64, &'static str),
}

/// The judgement of a gate on a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct ShiftJudgement {
    /// Whether a figure is beyond the limit, or inconclusive.
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
        let (selector, side, limit) = split(text).map_err(wrong)?;
        let limit = match split_limit(limit.trim()).map_err(|why| wrong(&why))? {
            (number, "%") => Limit::Relative(number / 100.0),
            (number, "ns") => Limit::Absolute(number, "ns"),
            (number, "points" | "pp") => Limit::Absolute(number / 100.0, "1"),
            (number, "bytes") => Limit::Absolute(number, "bytes"),
            (number, "/s") => Limit::Absolute(number, "1/s"),
            (_, "") => {
                return Err(wrong(
                    "its limit has no unit: write '+5%' of BASE, or '+2us'",
                ));
            }
            _ => {
                return Err(wrong(
                    "its unit is none of %, pp, ns, us, ms, s, /s, B, KiB, MiB, GiB",
                ));
            }
        };
        if let Some(never) = never(side, limit) {
            return Err(wrong(&format!("it can never {never}")));
        }
        Ok(Self {
            text: text.trim().to_owned(),
            selector: Selector::parse(selector).map_err(|why| wrong(&why))?,
            side,
            limit,
        })
    }
}

/// Returns what a limit can never do: nothing falls by more than all of it, and a share rises by 100
/// points at most.
fn never(side: Beyond, limit: Limit) -> Option<&'static str> {
    let (least, most) = match limit {
        Limit::Relative(_) => (-1.0, f64::INFINITY),
        Limit::Absolute(_, "1") => (-1.0, 1.0),
        Limit::Absolute(..) => return None,
    };
    let (Limit::Relative(limit) | Limit::Absolute(limit, _)) = limit;
    match side {
        Beyond::Above if limit >= most => Some("fail"),
        Beyond::Above if limit < least => Some("pass"),
        Beyond::Below if limit <= least => Some("fail"),
        Beyond::Below if limit > most => Some("pass"),
        _ => None,
    }
}

impl ShiftGate {
    /// Judges several comparisons, those of `--by`: each that has a matching row. Equal judgements
    /// are given once.
    ///
    /// # Errors
    ///
    /// As for [`Self::judge`]; [`GateError::Nothing`] only if no comparison has a matching row.
    pub fn judge_all(
        &self,
        comparisons: &[Comparison],
        allow_single: bool,
    ) -> Result<Vec<ShiftJudgement>, GateError> {
        let mut judged = Vec::new();
        let mut nothing = Ok(());
        for comparison in comparisons {
            match self.judge(comparison, allow_single) {
                Ok(judgement) => judged.push(judgement),
                Err(error @ GateError::Nothing { .. }) => nothing = nothing.and(Err(error)),
                Err(error) => return Err(error),
            }
        }
        if judged.is_empty() {
            nothing?;
        }
        judged.dedup();
        Ok(judged)
    }

    /// Judges a comparison. A single invocation against another is reported, and judged only with
    /// `allow_single`, or where instructions were counted: then chance has no part in it.
    ///
    /// # Errors
    ///
    /// [`GateError::Nothing`] if no row matches, [`GateError::Unit`] if the limit is not in the
    /// figure's unit.
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
        let single = comparison.unit == CompareUnit::TwoRuns && !allow_single;
        // Where instructions were counted, one invocation is enough, so a figure is refused for
        // other reasons.
        let is_sure = |row: &ComparedRow| {
            row.exact || (row.of.counts_instructions && row.shift.is_none()) || !single
        };
        let (rows, by_chance): (Vec<&ComparedRow>, Vec<&ComparedRow>) =
            rows.into_iter().partition(|row| is_sure(row));
        let beyond = rows
            .iter()
            .filter(|row| row.differs && self.excess(row) > 0.0 && !row.is_of_emulator_alone());
        let mut beyond = Vec::from_iter(beyond);
        beyond.sort_by(|a, b| self.excess(b).total_cmp(&self.excess(a)));
        let beyond = beyond.into_iter().map(|row| {
            format!(
                "{} of {} shifted by {} (medians {} and {})",
                name(row),
                row.of.place(),
                self.shift(row),
                told(row.base, &row.unit),
                told(row.new, &row.unit)
            )
        });
        let beyond = Vec::from_iter(beyond);
        if beyond.is_empty() && !by_chance.is_empty() {
            return Ok(judged(
                false,
                format!(
                    "Gate '{}' not judged: one invocation on each side describes these two runs only. Give {} of each \
                     side, or --allow-single.",
                    self.text, comparison.needed
                ),
            ));
        }
        let unknown = rows
            .iter()
            .filter(|row| row.shift.is_none() || row.is_of_emulator_alone())
            .filter(|row| comparison.can_tell || !row.is_of_few);
        let unknown = unknown.map(|row| {
            let why = match row.is_of_emulator_alone() {
                true => Some("an emulator executed one side, and a processor the other"),
                false => row.refused.as_deref(),
            };
            let why = why.unwrap_or("a side lacks the figure");
            format!(
                "whether {} of {} is beyond '{}' is inconclusive: {why}",
                name(row),
                row.of.place(),
                self.text
            )
        });
        let mut unknown = Vec::from_iter(unknown);
        if !comparison.can_tell && unknown.len() < rows.len() {
            unknown.push(format!(
                "'{}' is inconclusive with {} {}; it needs {} of each",
                self.text,
                comparison.counted("against"),
                comparison.unit.plural(),
                comparison.needed
            ));
        }
        let mut failed = Vec::new();
        if !beyond.is_empty() {
            let each = beyond.join("; ");
            failed.push(format!("Gate failed: {each}, beyond '{}'.", self.text));
        }
        if !unknown.is_empty() {
            failed.push(format!("Gate not passed: {}.", unknown.join("; ")));
        }
        Ok(match failed.is_empty() {
            true => judged(false, format!("Gate '{}' passed.", self.text)),
            false => judged(true, failed.join(" ")),
        })
    }

    /// Returns by how much a shift is beyond the limit, in the limit's unit.
    fn excess(&self, row: &ComparedRow) -> f64 {
        match self.limit {
            Limit::Relative(limit) => self.side.excess(relative(row), limit),
            Limit::Absolute(limit, _) => self.side.excess(row.shift.unwrap_or(0.0), limit),
        }
    }

    /// Writes the shift that is compared with the limit.
    fn shift(&self, row: &ComparedRow) -> String {
        match (self.limit, relative(row)) {
            (Limit::Relative(_), share) if share.is_finite() => signed(share, "%"),
            _ => signed(row.shift.unwrap_or(0.0), &row.unit),
        }
    }
}

/// Returns a shift as a share of BASE; from nothing to something it is infinite.
fn relative(row: &ComparedRow) -> f64 {
    let both = row.shift.zip(row.base);
    both.map_or(0.0, |(shift, base)| shift / base)
}

fn name(row: &ComparedRow) -> String {
    format!("{}/{}.{}", row.experiment, row.measure, row.figure)
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
        for text in ["lost > 1points", "lost > +1pp"] {
            assert_eq!(limit(text), Ok(Limit::Absolute(0.01, "1")));
        }
        for (text, why) in [
            ("lost > 5", "has no unit"),
            ("lost > +%", "begins with no number"),
            ("lost > 5 parsecs", "its unit is none of"),
            ("lost", "has no '>'"),
            ("missed > +150pp", "it can never fail"),
            ("missed < -101pp", "it can never fail"),
            ("latency < -100%", "it can never fail"),
            ("latency > -101%", "it can never pass"),
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
