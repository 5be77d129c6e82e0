//! Limits that rows must not exceed: `lost > 2%`, `latency.p99.9{load=dd} > 50us`; or fall below:
//! `rate < 60/s`.
//!
//! ```text
//! gate     = selector ( ">" | "<" ) limit
//! selector = [ experiment "/" ] measure [ "." figure ] [ "{" label "=" value { "," label "=" value } "}" ]
//! limit    = number [ "%" | "ns" | "us" | "ms" | "s" | "/s" | "cycles" | "B" | "KiB" | "MiB" | "GiB" ]
//! ```
//!
//! Without a figure, the measure's first one counts. The labels are those of the plan and of the
//! sample, and `target`, `group` and `load`; a comma inside a value is written twice. Any matching
//! row beyond the limit fails; of a maximum, that of any run. So does a matching cell that was
//! skipped while the run went on: its figure is unknown.
//!
//! A gate that can't be judged fails: a figure that the run can't carry is not within the limit,
//! and the sentence says how many samples or runs it takes. A selector that matches no row is an
//! error of usage, since a misspelt measure must not pass forever.

mod selector;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use tare_results::model::{CellPlan, Plan};
use thiserror::Error;

pub use selector::Selector;

use crate::analysis::{Analysis, Experiments};
use crate::format::Numbers;
use crate::group::distinct;
use crate::modes;
use crate::notices::{NotMeasured, State, name_cells};
use crate::rows::derive::Refused;
use crate::rows::{Figure, Measure, Row, written};
use crate::run::TimeLimit;

/// A limit that the rows of a selector must not exceed, or not fall below.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// As it was written.
    text: String,
    selector: Selector,
    side: Beyond,
    limit: f64,
    unit: LimitUnit,
}

/// The side of a limit on which a figure fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// Above it: `>`.
    Above,
    /// Below it: `<`.
    Below,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitUnit {
    /// None: for rows that have none either.
    Plain,
    /// Of 1.
    Share,
    /// Nanoseconds.
    Ns,
    /// Per second.
    PerSecond,
    /// Ticks of the TSC.
    Cycles,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Hertz.
    Hertz,
}

/// The reason why a gate can't be applied.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GateError {
    /// It is not of the grammar.
    #[error(
        "'{text}' is not a gate: {why}. Write '[EXPERIMENT/]MEASURE[.FIGURE][{{LABEL=VALUE,…}}] > LIMIT', such as 'lost > 2%' \
         or 'latency.p99.9{{load=dd}} > 50us', or with '<' for what must not be less"
    )]
    Grammar {
        /// The text as given.
        text: String,
        /// The reason.
        why: String,
    },
    /// No row is of its kind.
    #[error("the gate '{text}' matches no figure of this run: {there}")]
    Nothing {
        /// The gate.
        text: String,
        /// The figures of the run.
        there: String,
    },
    /// The plan has too few samples for the figure.
    #[error(
        "the gate '{text}' could not be judged: {figure} needs {} samples in each run, and the plan of {of} is sure of {} \
         only: measure longer, not more often",
        Numbers::PLAIN.count(*needed),
        Numbers::PLAIN.count(*planned)
    )]
    TooFew {
        /// The gate.
        text: String,
        /// The figure.
        figure: Figure,
        /// The number of samples that it needs.
        needed: u64,
        /// The number of samples that a run has for certain.
        planned: u64,
        /// The cell.
        of: String,
    },
    /// The limit is of another unit than the figure.
    #[error("the gate '{text}' has a different unit from its figure, which is in {unit}")]
    Unit {
        /// The gate.
        text: String,
        /// The unit of the figure.
        unit: String,
    },
}

/// The judgement of a gate on a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Whether a row is beyond the limit, or inconclusive.
    pub failed: bool,
    /// Whether a row is beyond it for certain.
    pub is_beyond: bool,
    /// The limit and the figure that decides, in one sentence.
    pub sentence: String,
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        let wrong = |why: String| GateError::Grammar {
            text: text.to_owned(),
            why,
        };
        let (selector, side, limit) = split(text).map_err(|why| wrong(why.to_owned()))?;
        let selector = Selector::parse(selector).map_err(wrong)?;
        let (limit, unit) = read_limit(limit.trim()).map_err(wrong)?;
        if let Some(never) = never(side, limit, unit) {
            return Err(wrong(format!("it can never {never}")));
        }
        Ok(Self {
            text: text.trim().to_owned(),
            selector,
            side,
            limit,
            unit,
        })
    }
}

/// Splits a gate into what it is of, the side that fails, and its limit. Targets and loads may hold
/// the sign, a limit can't.
pub(crate) fn split(text: &str) -> Result<(&str, Beyond, &str), &'static str> {
    let at = text.rfind(['>', '<']).ok_or("it has no '>' and no '<'")?;
    let (selector, rest) = text.split_at(at);
    let (limit, side) = (&rest[1..], rest.starts_with('<'));
    if selector.trim_end().ends_with('=') || limit.starts_with('=') {
        return Err(match side {
            true => "write < for what must not be less",
            false => "write > for what must not be more",
        });
    }
    let side = if side { Beyond::Below } else { Beyond::Above };
    Ok((selector, side, limit))
}

/// Says what a limit makes impossible, `pass` or `fail`: nothing is below 0, and no share above 1.
fn never(side: Beyond, limit: f64, unit: LimitUnit) -> Option<&'static str> {
    let is_share = unit == LimitUnit::Share;
    match side {
        Beyond::Above if limit < 0.0 => Some("pass"),
        Beyond::Below if limit <= 0.0 => Some("fail"),
        Beyond::Above if is_share && limit >= 1.0 => Some("fail"),
        Beyond::Below if is_share && limit > 1.0 => Some("pass"),
        Beyond::Above | Beyond::Below => None,
    }
}

impl Beyond {
    /// Returns by how much a figure is beyond a limit; 0 if only the last digits of a calculation
    /// differ.
    pub(crate) fn excess(self, value: f64, limit: f64) -> f64 {
        const ROUNDING: f64 = 1e-12;
        let excess = match self {
            Self::Above => value - limit,
            Self::Below => limit - value,
        };
        if excess.abs() <= ROUNDING * limit.abs() {
            return 0.0;
        }
        excess
    }

    /// Names it.
    fn word(self) -> &'static str {
        match self {
            Self::Above => "above",
            Self::Below => "below",
        }
    }
}

/// Splits a limit into its number and its unit, which may be empty; that of all times is ns, of all
/// sizes bytes.
pub(crate) fn split_limit(text: &str) -> Result<(f64, &str), String> {
    // The longest beginning that is a number, 1e6 among them; no unit begins with a digit.
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8()).rev();
    let number =
        ends.filter(|end| text[..*end].ends_with(|c: char| c.is_ascii_digit() || c == '.'));
    let number = number.filter_map(|end| Some((end, text[..end].parse::<f64>().ok()?)));
    let mut number = number.filter(|(_, number)| number.is_finite());
    let (end, number) = number
        .next()
        .ok_or_else(|| format!("'{text}' begins with no number"))?;
    let unit = &text[end..];
    Ok(match unit.trim() {
        "B" => (number, "bytes"),
        "KiB" => (number * 1024.0, "bytes"),
        "MiB" => (number * 1_048_576.0, "bytes"),
        "GiB" => (number * 1_073_741_824.0, "bytes"),
        // With the sign for micro, or the letter mu.
        "us" | "µs" | "\u{3bc}s" => (number * 1e3, "ns"),
        "ms" => (number * 1e6, "ns"),
        "s" => (number * 1e9, "ns"),
        "B/s" => (number, "bytes/s"),
        "kB/s" => (number * 1e3, "bytes/s"),
        "MB/s" => (number * 1e6, "bytes/s"),
        "GB/s" => (number * 1e9, "bytes/s"),
        "MHz" => (number * 1e6, "Hz"),
        "GHz" => (number * 1e9, "Hz"),
        unit => (number, unit),
    })
}

fn read_limit(text: &str) -> Result<(f64, LimitUnit), String> {
    let (number, unit) = split_limit(text)?;
    Ok(match unit {
        "" => (number, LimitUnit::Plain),
        "%" => (number * 0.01, LimitUnit::Share),
        "ns" => (number, LimitUnit::Ns),
        "/s" => (number, LimitUnit::PerSecond),
        "cycles" => (number, LimitUnit::Cycles),
        "bytes" => (number, LimitUnit::Bytes),
        "bytes/s" => (number, LimitUnit::BytesPerSecond),
        "Hz" => (number, LimitUnit::Hertz),
        other => return Err(format!("'{other}' is not a unit")),
    })
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Gate {
    /// Returns the limit, if it is one of a time.
    #[must_use]
    pub fn time_limit(&self) -> Option<TimeLimit> {
        (self.unit == LimitUnit::Ns).then(|| TimeLimit {
            experiment: self.selector.experiment.clone(),
            measure: self.selector.measure.clone(),
            ns: self.limit,
            text: self.text.clone(),
        })
    }

    /// Checks a plan before it is measured: whether one of its experiments has the measure and the
    /// figure, and a cell the target, the load and what else is planned of the labels; and whether
    /// each such cell can carry it.
    ///
    /// # Errors
    ///
    /// [`GateError::Nothing`] if no row can match, [`GateError::Unit`] if the limit can't be in the
    /// figure's unit, [`GateError::TooFew`] for a quantile that a run would be too short for.
    pub fn check(&self, plan: &Plan, known: &dyn Experiments) -> Result<(), GateError> {
        let selector = &self.selector;
        let nothing = |there: String| GateError::Nothing {
            text: self.text.clone(),
            there,
        };
        let found = |cell| Some((cell, selector.measure_of(cell, known)?));
        let found: Vec<(&CellPlan, &Measure)> = plan.cells.iter().filter_map(found).collect();
        let Some((_, measure)) = found.first() else {
            let all = plan.cells.iter().flat_map(|cell| {
                let measures = known.measures(&cell.experiment).unwrap_or_default();
                measures.iter().map(|measure| (&cell.experiment, measure))
            });
            let named = selector.head();
            let is_named = |figure: &Figure| figure.to_string() == named;
            let mut of = all.clone().map(|(_, measure)| measure);
            if let Some(of) = of.find(|measure| measure.figures.iter().any(is_named)) {
                return Err(nothing(format!(
                    "{named} is a figure: write {}.{named}",
                    of.id
                )));
            }
            let names = all.map(|(experiment, measure)| format!("{experiment}/{}", measure.id));
            return Err(nothing(format!("it has {}", distinct(names).join(", "))));
        };
        let Some(figure) = selector.figure_of(measure) else {
            let figures: Vec<String> = measure.figures.iter().map(Figure::to_string).collect();
            let there = format!("{} has {}", measure.id, figures.join(", "));
            return Err(nothing(there));
        };
        let unit = figure.unit(measure.unit);
        // Durations are cycles where nothing tells the frequency of the TSC.
        let may_be_cycles = unit == "ns" && self.unit == LimitUnit::Cycles;
        if !self.unit.fits(unit) && !may_be_cycles {
            return Err(self.in_another_unit(unit));
        }
        if let Some(elsewhere) = self.elsewhere(found.iter().map(|(cell, _)| *cell), known) {
            return Err(nothing(elsewhere));
        }
        let mut matching = found
            .iter()
            .filter(|(cell, _)| selector.may_be_of(cell, plan))
            .peekable();
        if matching.peek().is_some() {
            let too_few = matching.find_map(|(cell, measure)| {
                let figure = selector.figure_of(measure)?;
                let Figure::Quantile(quantile) = figure else {
                    return None;
                };
                let needed = quantile.samples_needed();
                let planned = known.samples(cell, measure.id)?;
                (planned < needed).then(|| GateError::TooFew {
                    text: self.text.clone(),
                    figure,
                    needed,
                    planned,
                    of: cell.label(),
                })
            });
            return too_few.map_or(Ok(()), Err);
        }
        let places: BTreeSet<String> = found
            .iter()
            .map(|(cell, _)| {
                let mut place = cell.target.text.clone();
                place.push_str(&cell.load.under());
                for (key, _) in &selector.labels {
                    if let Some(value) = cell.labels.get(key) {
                        place.push_str(&format!(" with {key}={value}"));
                    }
                }
                place
            })
            .collect();
        let places: Vec<String> = places.into_iter().collect();
        let there = format!("{} is measured of {}", measure.id, places.join(", "));
        Err(nothing(there))
    }

    /// Says of a label that none of some cells has which other runs have it.
    fn elsewhere<'a>(
        &self,
        cells: impl Iterator<Item = &'a CellPlan> + Clone,
        known: &dyn Experiments,
    ) -> Option<String> {
        self.selector.labels.iter().find_map(|(key, _)| {
            let mut all = cells.clone().map(|cell| known.elsewhere(cell, key));
            let first = all.next()??;
            all.all(|other| other.is_some())
                .then(|| format!("only {first} have the label '{key}'"))
        })
    }

    fn in_another_unit(&self, unit: &str) -> GateError {
        GateError::Unit {
            text: self.text.clone(),
            unit: unit_in_words(unit).to_owned(),
        }
    }

    /// Judges a run.
    ///
    /// # Errors
    ///
    /// [`GateError::Nothing`] if no row matches and no cell that was left out does,
    /// [`GateError::Unit`] if the limit is not in the figure's unit.
    pub fn judge(
        &self,
        analysis: &Analysis,
        known: &dyn Experiments,
    ) -> Result<Judgement, GateError> {
        let (rows, selector) = (analysis.rows(), &self.selector);
        let left_out = self.left_out(analysis, known);
        let matching: Vec<&Row> = rows
            .0
            .iter()
            .filter(|row| self.selector.matches(row))
            .collect();
        let of_one_mode = self
            .selector
            .of_one_mode(rows)
            .filter(|_| matching.is_empty());
        if let Some(row) = of_one_mode.filter(|_| left_out.is_none()) {
            let failed = self.side.excess(0.0, self.limit) > 0.0;
            return Ok(Judgement {
                failed,
                is_beyond: failed,
                sentence: format!(
                    "Gate {}: {} of {} has only one mode.",
                    if failed { "failed" } else { "passed" },
                    row.measure.id,
                    row.place()
                ),
            });
        }
        if matching.is_empty() && left_out.is_none() {
            let plan = &analysis.run().plan;
            let is_of = |cell: &&CellPlan| self.selector.measure_of(cell, known).is_some();
            let elsewhere = self.elsewhere(plan.cells.iter().filter(is_of), known);
            // A label that is there has another value.
            let is_there = |(key, _): &(String, String)| {
                let mut of = rows
                    .0
                    .iter()
                    .filter(|row| row.measure.id == selector.measure);
                of.any(|row| row.labels.get(key).is_some())
            };
            let elsewhere = elsewhere.filter(|_| !selector.labels.iter().any(is_there));
            return Err(GateError::Nothing {
                text: self.text.clone(),
                there: elsewhere.unwrap_or_else(|| selector.there(rows)),
            });
        }
        let (side, limit, word) = (self.side, self.limit, self.side.word());
        let (mut beyond, mut within, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        let fits = matching.iter().any(|row| self.unit.fits(row.unit));
        for row in matching {
            if !self.unit.fits(row.unit) {
                if !fits {
                    return Err(self.in_another_unit(row.unit));
                }
                let cells: Vec<u32> = row.each.iter().map(|each| each.cell).collect();
                unknown.push(format!(
                    "whether {} is {word} the limit in {} is inconclusive: it is in another unit there",
                    row.name(),
                    name_cells(&cells)
                ));
                continue;
            }
            let is_quantile = matches!(row.figure, Figure::Quantile(_));
            let split = row.modes.filter(|_| is_quantile && row.is_between_modes());
            if let Some(modes) = split
                && (side.excess(modes.low, limit) > 0.0) != (side.excess(modes.high, limit) > 0.0)
            {
                unknown.push(format!(
                    "whether {} is {word} {} is inconclusive: it may be in either of two modes, {}",
                    row.name(),
                    written(limit, row.unit),
                    modes::both(row, modes)
                ));
                continue;
            }
            let value = match &row.over {
                Ok(over) => over.estimate,
                // Known rows decide where unknown ones make no difference.
                Err(Refused::Beyond { at_least, .. })
                    if (side.excess(*at_least, limit) > 0.0) == (side == Beyond::Above) =>
                {
                    *at_least
                }
                Err(why) => {
                    let least = row.at_least();
                    let least = least
                        .map(|least| format!("it is at least {}, and ", written(least, row.unit)));
                    unknown.push(format!(
                        "whether {} is {word} {} is inconclusive: {}{why}",
                        row.name(),
                        written(limit, row.unit),
                        least.unwrap_or_default()
                    ));
                    continue;
                }
            };
            match side.excess(value, limit) > 0.0 {
                true => beyond.push((row, value)),
                false => within.push((row, value)),
            }
        }
        let by_excess = |a: &(&Row, f64), b: &(&Row, f64)| side.excess(b.1, a.1).total_cmp(&0.0);
        beyond.sort_by(by_excess);
        within.sort_by(by_excess);
        let mut matching = rows.0.iter().filter(|row| self.selector.matches(row));
        let limit = matching.find(|row| self.unit.fits(row.unit));
        let limit = limit.map_or_else(String::new, |row| written(self.limit, row.unit));
        let mut failed = Vec::new();
        if !beyond.is_empty() {
            let each = beyond.iter().map(|(row, value)| {
                // Rounded, it may equal the limit.
                let by = ((value - self.limit) / self.limit).abs();
                let is_as_much = written(*value, row.unit) == limit && by.is_finite();
                let by = is_as_much.then(|| format!(" ({} beyond)", Numbers::PLAIN.percent(by)));
                judged(row, *value) + &by.unwrap_or_default()
            });
            let each = each.collect::<Vec<_>>().join("; ");
            failed.push(format!("Gate failed: {each}, {word} {limit}."));
        }
        if let Some(cell) = left_out {
            failed.push(format!(
                "Gate not passed: '{self}' is inconclusive: cell {}, {}, was left out: {}.",
                cell.id, cell.label, cell.reason
            ));
        }
        if !unknown.is_empty() {
            failed.push(format!("Gate not passed: {}.", unknown.join("; ")));
        }
        Ok(Judgement {
            failed: !failed.is_empty(),
            is_beyond: !beyond.is_empty(),
            sentence: match within.first() {
                Some((row, value)) if failed.is_empty() => {
                    format!("Gate passed: {}, not {word} {limit}.", judged(row, *value))
                }
                _ => failed.join(" "),
            },
        })
    }

    /// Finds a cell of its kind that was left out while the run went on.
    fn left_out<'a>(
        &self,
        analysis: &'a Analysis,
        known: &dyn Experiments,
    ) -> Option<&'a NotMeasured> {
        let plan = &analysis.run().plan;
        let is_of = |cell: &CellPlan| {
            let measure = self.selector.measure_of(cell, known);
            measure.is_some_and(|of| self.selector.figure_of(of).is_some())
                && self.selector.may_be_of(cell, plan)
        };
        let cells = analysis.summary().not_measured.iter();
        let mut left_out = cells.filter(|cell| cell.state == State::LeftOut);
        left_out.find(|cell| plan.cells.iter().any(|own| own.id == cell.id && is_of(own)))
    }
}

/// Writes a row with the figure that a limit is compared with.
fn judged(row: &Row, value: f64) -> String {
    let least = row.at_least().map_or("", |_| "at least ");
    let of = match (row.figure, row.each.len()) {
        (Figure::Max, runs @ 2..) => format!(" (highest of {runs} runs)"),
        (Figure::Min, runs @ 2..) => format!(" (lowest of {runs} runs)"),
        (Figure::Best, runs @ 2..) => format!(" (median of {runs} runs)"),
        (Figure::Total, runs @ 2..) => format!(" (sum of {runs} runs)"),
        (Figure::Value, runs @ 2..) => format!(" (mean of {runs} runs)"),
        _ => String::new(),
    };
    format!("{} is {least}{}{of}", row.name(), written(value, row.unit))
}

impl LimitUnit {
    fn fits(self, unit: &str) -> bool {
        match self {
            Self::Plain => unit.is_empty(),
            Self::Share => unit == "1",
            Self::Ns => unit == "ns",
            Self::PerSecond => unit == "1/s",
            Self::Cycles => unit == "cycles",
            Self::Bytes => unit == "bytes",
            Self::BytesPerSecond => unit == "bytes/s",
            Self::Hertz => unit == "Hz",
        }
    }
}

fn unit_in_words(unit: &str) -> &str {
    match unit {
        "" => "mere numbers: write no unit",
        "1" => "shares: write a percentage, such as 2%",
        "ns" => "time: write ns, us, ms or s",
        "bytes/s" => "bytes per second: write MB/s or GB/s",
        "Hz" => "hertz: write MHz or GHz",
        "1/s" => "numbers per second: write /s",
        "bytes" => "bytes: write B, KiB, MiB or GiB",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_gate_is_read_as_its_grammar_says() {
        let gate: Gate = "wakeup/latency.p99.9{load=dd,,x, thread=1} > 50us"
            .parse()
            .unwrap();
        let labels = [("load", "dd,x"), ("thread", "1")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(gate.selector.experiment.as_deref(), Some("wakeup"));
        assert_eq!(gate.selector.measure, "latency");
        assert_eq!(gate.selector.figure.as_deref(), Some("p99.9"));
        assert_eq!(gate.selector.labels, labels);
        assert_eq!((gate.limit, gate.unit), (50_000.0, LimitUnit::Ns));
        // A load may hold the sign.
        let gate: Gate = "lost{load=sh -c a>b} > 2%".parse().unwrap();
        assert_eq!(gate.selector.labels[0].1, "sh -c a>b");
        assert_eq!((gate.limit, gate.unit), (0.02, LimitUnit::Share));
        assert_eq!(gate.selector.figure, None);
    }

    #[test]
    fn a_gate_may_be_of_what_must_not_be_less() {
        let gate: Gate = "rate{load=a>b} < 60/s".parse().unwrap();
        assert_eq!((gate.side, gate.limit), (Beyond::Below, 60.0));
        assert_eq!(gate.selector.labels[0].1, "a>b");
        let gate: Gate = "memory > 2MiB".parse().unwrap();
        assert_eq!((gate.side, gate.limit), (Beyond::Above, 2_097_152.0));
        assert_eq!(gate.unit, LimitUnit::Bytes);
        let gate: Gate = "bandwidth < 10GB/s".parse().unwrap();
        assert_eq!((gate.limit, gate.unit), (1e10, LimitUnit::BytesPerSecond));
        let gate: Gate = "core-clock < 2.5 GHz".parse().unwrap();
        assert_eq!((gate.limit, gate.unit), (2.5e9, LimitUnit::Hertz));
    }

    #[test]
    fn limits_are_numbers_as_people_write_them() {
        for (limit, ns) in [
            ("50us", 5e4),
            ("50µs", 5e4),
            ("50\u{3bc}s", 5e4),
            ("5e1 us", 5e4),
            ("1e6ns", 1e6),
        ] {
            let gate: Gate = format!("latency > {limit}").parse().unwrap();
            assert_eq!((gate.limit, gate.unit), (ns, LimitUnit::Ns), "{limit}");
        }
    }

    #[test]
    fn what_is_no_gate_says_why() {
        for (text, why) in [
            ("latency => 50us", "write > for"),
            ("latency >= 50us", "write > for"),
            ("rate =< 5/s", "write < for"),
            ("latency > -1us", "can never pass"),
            ("missed < 0%", "can never fail"),
            ("missed > 100%", "can never fail"),
            ("missed > 101%", "can never fail"),
            ("missed < 101%", "can never pass"),
            ("", "no '>'"),
            ("lost", "no '>'"),
            ("> 2%", "names no measure"),
            ("/lost > 2%", "names no measure"),
            ("lost > ", "begins with no number"),
            ("lost > much", "begins with no number"),
            ("lost > 2 parsecs", "'parsecs' is not a unit"),
            ("lost{load=dd > 2%", "no closing brace"),
            ("lost{dd} > 2%", "'dd' is not a label"),
            ("lost{} > 2%", "is not a label"),
        ] {
            let error = text.parse::<Gate>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
            assert!(error.contains("Write '"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_gate_or_refused(text in any::<String>(), limit in any::<String>()) {
            let _ = text.parse::<Gate>();
            let _ = Selector::parse(&text);
            let _ = format!("lost > {limit}").parse::<Gate>();
            let _ = format!("{text} > 2%").parse::<Gate>();
            let _ = format!("lost{{{text}}} > 2%").parse::<Gate>();
        }

        #[test]
        fn any_value_of_a_label_can_be_written(value in "[^{}>]*") {
            let doubled = value.replace(',', ",,");
            // At the ends, commas of the value look like those between labels, and blanks are
            // trimmed.
            prop_assume!(!value.starts_with(',') && !value.ends_with(',') && value.trim() == value);
            let selector = Selector::parse(&format!("lost{{a=1,load={doubled}}}")).unwrap();
            prop_assert_eq!(&selector.labels[1].1, &value);
        }
    }
}
