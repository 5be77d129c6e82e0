//! How often instances are started, as it is typed: `alone`, `250ms`, `1/64s`, `4s..1/1024s`; or as a rate: `16`, `1..1024`.
//!
//! A time is kept as a fraction until the plan needs nanoseconds, so that a ladder is halved exactly.

use tare_lab::units::{exact_word, nanoseconds};

/// A second, in ns.
const SECOND: u64 = 1_000_000_000;
/// The least interval: nothing starts more often on one machine.
const LEAST_NS: u64 = 10_000;
/// The greatest interval.
const MOST_NS: u64 = 3_600 * SECOND;
/// The word for starting each instance when the one before has ended.
pub(super) const ALONE: &str = "alone";

/// How often instances are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Each when the one before has ended.
    Alone,
    /// One after each interval, whatever became of those before.
    Every(Interval),
}

/// A time between two starts: a fraction of ns, above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    /// Nanoseconds.
    numerator: u64,
    /// What they are divided by.
    denominator: u64,
    /// Whether it was written as a fraction, and so is written as one again.
    is_fraction: bool,
}

impl Pace {
    /// Returns the interval in whole ns; None without one.
    pub(super) fn interval_ns(self) -> Option<u64> {
        match self {
            Self::Alone => None,
            Self::Every(interval) => Some(interval.ns()),
        }
    }

    /// Writes it as it is typed.
    pub(super) fn text(self) -> String {
        match self {
            Self::Alone => ALONE.to_owned(),
            Self::Every(interval) => interval.text(),
        }
    }
}

impl Interval {
    /// Makes an interval that is within the bounds.
    fn new(numerator: u64, denominator: u64, is_fraction: bool) -> Option<Self> {
        let interval = Self {
            numerator,
            denominator,
            is_fraction,
        };
        let is_within = denominator > 0 && (LEAST_NS..=MOST_NS).contains(&interval.ns());
        is_within.then_some(interval)
    }

    /// Reads a time: `4s`, `250ms`, `1/64s`. A number without a unit is of seconds.
    fn parse(text: &str) -> Option<Self> {
        let Some((above, below)) = text.split_once('/') else {
            return Self::new(nanoseconds(text, Some("s")).ok()?, 1, false);
        };
        let unit_at = below.find(|c: char| !c.is_ascii_digit());
        let (below, unit) = below.split_at(unit_at.unwrap_or(below.len()));
        let unit = if unit.is_empty() { "s" } else { unit };
        let unit = nanoseconds(&format!("1{unit}"), None).ok()?;
        let above: u64 = above.parse().ok()?;
        Self::new(above.checked_mul(unit)?, below.parse().ok()?, true)
    }

    /// Reads a rate in starts per second: `16`.
    fn of_rate(text: &str) -> Option<Self> {
        Self::new(SECOND, text.parse().ok()?, true)
    }

    /// Returns it in whole ns.
    pub(super) fn ns(self) -> u64 {
        let numerator = u128::from(self.numerator);
        let denominator = u128::from(self.denominator.max(1));
        let rounded = (numerator + denominator / 2) / denominator;
        u64::try_from(rounded).unwrap_or(u64::MAX)
    }

    /// Writes it as it is typed: as a part of a second where it was written as a fraction, and is one.
    fn text(self) -> String {
        let second = u128::from(SECOND) * u128::from(self.denominator);
        let numerator = u128::from(self.numerator);
        match self.is_fraction && second > numerator && second.is_multiple_of(numerator) {
            true => format!("1/{}s", second / numerator),
            false => exact_word(self.ns()),
        }
    }

    /// Returns how often it has to be halved to become another one; None if that is no whole number.
    fn halvings(self, last: Self) -> Option<u32> {
        let from = u128::from(self.numerator) * u128::from(last.denominator);
        let to = u128::from(last.numerator) * u128::from(self.denominator);
        let ratio = from.checked_div(to)?;
        (to * ratio == from && ratio.is_power_of_two()).then(|| ratio.ilog2())
    }

    /// Returns the intervals from this one to another, each half of the one before.
    fn down_to(self, last: Self) -> Option<Vec<Self>> {
        let halvings = self.halvings(last)?;
        let is_fraction = self.is_fraction || last.is_fraction;
        let steps = (0..=halvings).map(|step| {
            let denominator = self.denominator.checked_mul(1_u64.checked_shl(step)?)?;
            Self::new(self.numerator, denominator, is_fraction)
        });
        steps.collect()
    }
}

/// Says whether a text is a list of paces. Whether a ladder can be halved is said when it is read.
pub(super) fn is_list(text: &str) -> bool {
    let is_one = |text: &str| text == ALONE || has_ends(text, Interval::parse);
    text.split(',').all(is_one)
}

/// Says the same of rates.
pub(super) fn is_rates(text: &str) -> bool {
    text.split(',')
        .all(|text| has_ends(text, Interval::of_rate))
}

/// Says whether a text is an interval, or two as the ends of a ladder.
fn has_ends(text: &str, one: fn(&str) -> Option<Interval>) -> bool {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    one(first).is_some() && one(last).is_some()
}

/// Reads a pace, or the paces of a ladder: `alone`, `1/64s`, `4s..1/1024s`.
///
/// # Errors
///
/// Returns what would be right.
pub(super) fn read(text: &str) -> Result<Vec<Pace>, String> {
    if text == ALONE {
        return Ok(vec![Pace::Alone]);
    }
    ladder(text, Interval::parse, || {
        format!(
            "the ladder '{text}' can't be halved from its first to its last interval: choose ends whose ratio is a power of \
             two, the longer one first, such as 4s..1/1024s"
        )
    })
}

/// Reads a rate, or the rates of a ladder: `16`, `1..1024`.
///
/// # Errors
///
/// Returns what would be right.
pub(super) fn read_rate(text: &str) -> Result<Vec<Pace>, String> {
    ladder(text, Interval::of_rate, || {
        format!(
            "the ladder '{text}' can't be doubled from its first to its last rate: choose ends whose ratio is a power of two, \
             the lower one first, such as 1..1024"
        )
    })
}

/// Reads one or a ladder by what reads one, and says what is wrong with a ladder by `uneven`.
fn ladder(
    text: &str,
    one: fn(&str) -> Option<Interval>,
    uneven: impl Fn() -> String,
) -> Result<Vec<Pace>, String> {
    let read = |text| one(text).ok_or_else(|| format!("'{text}' is no interval and no rate"));
    let intervals = match text.split_once("..") {
        None => vec![read(text)?],
        Some((first, last)) => {
            let (first, last) = (read(first)?, read(last)?);
            first.down_to(last).ok_or_else(uneven)?
        }
    };
    Ok(intervals.into_iter().map(Pace::Every).collect())
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
        assert_eq!(texts("1s..250ms"), ["1s", "500ms", "250ms"]);
        assert_eq!(texts("8ms..1ms"), ["8ms", "4ms", "2ms", "1ms"]);
        let rates = read_rate("1..1024").unwrap();
        assert_eq!(rates.last().unwrap().interval_ns(), Some(976_563));
        assert_eq!(rates.last().unwrap().text(), "1/1024s");
        assert_eq!(read_rate("10").unwrap()[0].text(), "1/10s");
    }

    #[test]
    fn one_interval_is_written_as_it_is_typed() {
        for (text, written) in [
            ("alone", "alone"),
            ("4", "4s"),
            ("250ms", "250ms"),
            ("0.25s", "250ms"),
            ("1/64s", "1/64s"),
            ("1/64", "1/64s"),
            ("2/4s", "1/2s"),
            ("4/2s", "2s"),
            ("1/2ms", "1/2000s"),
            ("3/8s", "375ms"),
        ] {
            assert_eq!(texts(text), [written], "{text}");
        }
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
