//! How often instances are started, as it is typed: `alone`, `250ms`, `1/64s`, `4s..1/1024s`; or as
//! a rate: `16`, `1..1024`.

use tare_figures::format::Numbers;
use tare_lab::units::{exact_word, nanoseconds, whole};

/// A second, in ns.
const SECOND: f64 = 1e9;
/// The least interval: nothing starts more often on one machine.
const LEAST_NS: f64 = 10_000.0;
/// The greatest interval.
const MOST_NS: f64 = 3_600.0 * SECOND;
/// The word for starting each instance when the one before has ended.
pub(super) const ALONE: &str = "alone";

/// The number of parts into which a second is divided at most: microseconds.
const MOST_PARTS: u32 = 1_000_000;

/// How often instances are started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pace {
    /// Each when the one before has ended.
    Alone,
    /// One after each interval in ns, whatever became of those before. It is not rounded: a ladder
    /// is halved exactly.
    Every(f64),
}

impl Pace {
    /// Makes an interval that is within the bounds.
    fn every(ns: f64) -> Option<Self> {
        (LEAST_NS..=MOST_NS)
            .contains(&ns.round())
            .then_some(Self::Every(ns))
    }

    /// Reads a time: `4s`, `250ms`, `1/64s`. A number without a unit is of seconds.
    fn of_time(text: &str) -> Option<Self> {
        let Some((above, below)) = text.split_once('/') else {
            return Self::every(nanoseconds(text, Some("s")).ok()? as f64);
        };
        let unit_at = below.find(|c: char| !c.is_ascii_digit());
        let (below, unit) = below.split_at(unit_at.unwrap_or(below.len()));
        let unit = if unit.is_empty() { "s" } else { unit };
        let above = nanoseconds(&format!("{}{unit}", above.parse::<u64>().ok()?), None).ok()?;
        Self::every(above as f64 / below.parse::<u64>().ok()? as f64)
    }

    /// Reads a rate in starts per second: `16`.
    fn of_rate(text: &str) -> Option<Self> {
        Self::every(SECOND / whole(text)? as f64)
    }

    /// Returns the interval in whole ns; `None` without one.
    pub(super) fn interval_ns(self) -> Option<u64> {
        match self {
            Self::Alone => None,
            Self::Every(ns) => Some(ns.round() as u64),
        }
    }

    /// Writes it as the value of a label, however it was typed: `alone`, parts of a second: `1/64s`,
    /// `3/8s`, or a longer time: `2s`.
    pub(super) fn text(self) -> String {
        let Self::Every(ns) = self else {
            return ALONE.to_owned();
        };
        let parts = |below: &u32| ns / SECOND * f64::from(*below);
        let is_whole = |parts: f64| (parts - parts.round()).abs() < 1e-9 * parts;
        let mut belows = (2..=MOST_PARTS).filter(|_| ns < SECOND);
        match belows.find(|below| is_whole(parts(below))) {
            Some(below) => format!("{}/{below}s", parts(&below).round()),
            None => exact_word(ns.round() as u64),
        }
    }

    /// Writes it within the name of a cell: `alone`, `at 64/s`.
    pub(super) fn name(self) -> String {
        match self {
            Self::Alone => ALONE.to_owned(),
            Self::Every(ns) => format!("at {}", Numbers::PLAIN.rate(SECOND / ns)),
        }
    }

    /// Returns the intervals from this one to another, each half of the one before.
    fn down_to(self, last: Self) -> Option<Vec<Self>> {
        let (Self::Every(ns), Self::Every(to)) = (self, last) else {
            return None;
        };
        let halvings = (ns / to).log2();
        let is_ladder = halvings >= 0.0 && halvings.fract() == 0.0;
        let steps = (0..=halvings as i32).map(|step| Self::every(ns / 2_f64.powi(step)));
        is_ladder.then(|| steps.collect())?
    }
}

/// Returns whether a text is a list of paces. Whether a ladder can be halved is checked when it is
/// read.
pub(super) fn is_list(text: &str) -> bool {
    let is_one = |text: &str| text == ALONE || has_ends(text, Pace::of_time);
    text.split(',').all(is_one)
}

/// Returns whether a text is a list of rates.
pub(super) fn is_rates(text: &str) -> bool {
    text.split(',').all(|text| has_ends(text, Pace::of_rate))
}

/// Returns whether a text is an interval, or two as the ends of a ladder.
fn has_ends(text: &str, one: fn(&str) -> Option<Pace>) -> bool {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    one(first).is_some() && one(last).is_some()
}

/// Reads a pace, or the paces of a ladder: `alone`, `1/64s`, `4s..1/1024s`.
///
/// # Errors
///
/// Returns what would be right.
pub(super) fn read(text: &str) -> Result<Vec<Pace>, String> {
    match text {
        ALONE => Ok(vec![Pace::Alone]),
        _ => ladder(text, Pace::of_time, "interval", "longer", "4s..1/1024s"),
    }
}

/// Reads a rate, or the rates of a ladder: `16`, `1..1024`.
///
/// # Errors
///
/// Returns what would be right.
pub(super) fn read_rate(text: &str) -> Result<Vec<Pace>, String> {
    ladder(text, Pace::of_rate, "rate", "lower", "1..1024")
}

/// Reads one or a ladder by what reads one; an error names what it is, which end comes first, and
/// an example.
fn ladder(
    text: &str,
    one: fn(&str) -> Option<Pace>,
    what: &str,
    first_is: &str,
    example: &str,
) -> Result<Vec<Pace>, String> {
    let read = |text| one(text).ok_or_else(|| format!("'{text}' is not a valid {what}"));
    let Some((first, last)) = text.split_once("..") else {
        return Ok(vec![read(text)?]);
    };
    read(first)?.down_to(read(last)?).ok_or_else(|| {
        format!(
            "the ladder '{text}' has no steps by a factor of two from its first to its last {what}: choose ends whose ratio is \
             a power of two, the {first_is} one first, such as {example}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let read = read(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        read.into_iter().map(Pace::text).collect()
    }

    #[test]
    fn a_ladder_is_halved_exactly() {
        let all = [
            "4s", "2s", "1s", "1/2s", "1/4s", "1/8s", "1/16s", "1/32s", "1/64s", "1/128s",
            "1/256s", "1/512s", "1/1024s",
        ];
        assert_eq!(texts("4s..1/1024s"), all);
        assert_eq!(texts("1s..250ms"), ["1s", "1/2s", "1/4s"]);
        assert_eq!(texts("8ms..1ms"), ["1/125s", "1/250s", "1/500s", "1/1000s"]);
        let rates = read_rate("1..1024").unwrap();
        assert_eq!(rates.last().unwrap().interval_ns(), Some(976_563));
        assert_eq!(rates.last().unwrap().text(), "1/1024s");
        assert_eq!(read_rate("10").unwrap()[0].text(), "1/10s");
        assert_eq!(read_rate("1e3").unwrap()[0].text(), "1/1000s");
    }

    #[test]
    fn an_interval_is_written_in_one_form_however_it_is_typed() {
        for (text, written) in [
            ("alone", "alone"),
            ("4", "4s"),
            ("250ms", "1/4s"),
            ("0.25s", "1/4s"),
            ("20ms", "1/50s"),
            ("1/64s", "1/64s"),
            ("1/64", "1/64s"),
            ("2/4s", "1/2s"),
            ("4/2s", "2s"),
            ("1/2ms", "1/2000s"),
            ("375ms", "3/8s"),
            ("2/3s", "2/3s"),
        ] {
            assert_eq!(texts(text), [written], "{text}");
        }
        let names = ["4s", "250ms", "1/64s", "375ms"].map(|text| read(text).unwrap()[0].name());
        assert_eq!(names, ["at 0.25/s", "at 4/s", "at 64/s", "at 2.67/s"]);
    }

    #[test]
    fn what_is_none_is_refused() {
        for wrong in [
            "",
            "0",
            "1/0s",
            "4s..",
            "..1s",
            "1s..4s",
            "4s..3s",
            "alone..1s",
            "1ns",
            "2h",
            "1/64parsecs",
            "99999999999999999999s",
            "1/99999999999999999999s",
            "x",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let why = read("4s..3s").unwrap_err();
        assert!(why.contains("a power of two"), "{why}");
        for wrong in ["0", "1024..1", "1..1000", "alone", "1.5", "200000"] {
            assert!(read_rate(wrong).is_err(), "{wrong}");
        }
    }
}
