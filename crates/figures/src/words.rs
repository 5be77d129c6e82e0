//! Phrases that sentences of figures share, so that terminal, page and summary say the same.

use tare_results::model::Schedule;

use crate::format::Numbers;
use crate::interval::Time;

/// Stands where there is no figure.
pub const NONE: &str = "–";

/// Names a load where there are others, as the end of a sentence: ` under dd`, ` without a load`.
#[must_use]
pub fn under(load: &Schedule) -> String {
    match load.is_idle() {
        true => " without a load".to_owned(),
        false => load.under(),
    }
}

/// Writes a duration in its own unit, in cycles if nothing else is known: `402 ns`.
#[must_use]
pub fn time(numbers: Numbers, time: Time, step: Option<Time>) -> String {
    match time.ns {
        Some(ns) => numbers.ns(ns, step.and_then(|step| step.ns)),
        None => cycles(numbers, time),
    }
}

/// Writes a duration in µs: three or four significant digits, no more than ns: `4.031`, `183.4`,
/// `12,345`.
#[must_use]
pub fn microseconds(numbers: Numbers, ns: f64) -> String {
    let us = ns / 1e3;
    let decimals = match us {
        us if us < 9.9995 => 3,
        us if us < 99.995 => 2,
        us if us < 999.95 => 1,
        _ => 0,
    };
    numbers.fixed(us, decimals)
}

/// Writes the step of a timer: `10 ns`.
#[must_use]
pub fn step(numbers: Numbers, step: Time) -> String {
    match step.ns {
        Some(ns) => numbers.with_unit(&numbers.short(ns), "ns"),
        None => cycles(numbers, step),
    }
}

/// Writes a duration in cycles: `1,043 cycles`.
#[must_use]
pub fn cycles(numbers: Numbers, time: Time) -> String {
    numbers.with_unit(&cycles_figure(numbers, time.cycles), "cycles")
}

/// Writes a number of cycles: whole ones and large ones without a fraction, others with three
/// digits.
#[must_use]
pub fn cycles_figure(numbers: Numbers, cycles: f64) -> String {
    if cycles.fract() == 0.0 {
        numbers.fixed(cycles, 0)
    } else {
        numbers.rounded(cycles)
    }
}

/// Writes a duration both ways: `1,043 cycles (402 ns)`.
#[must_use]
pub fn both(numbers: Numbers, duration: Time, step: Option<Time>) -> String {
    match duration.ns {
        Some(_) => format!(
            "{} ({})",
            cycles(numbers, duration),
            time(numbers, duration, step)
        ),
        None => cycles(numbers, duration),
    }
}

/// Writes the ends of a range of shares: `0.40–0.44 %`.
#[must_use]
pub fn percent_range(numbers: Numbers, low: f64, high: f64) -> String {
    let (low, high) = (low * 100.0, high * 100.0);
    let width = high - low;
    let text = |value: f64| {
        let within = numbers.within(value, width);
        // An end that is not 0 is not written as 0, however wide the range is.
        let is_nothing = value > 0.0 && !within.contains(|digit| matches!(digit, '1'..='9'));
        if width > 0.0 && !is_nothing {
            within
        } else {
            numbers.rounded(value)
        }
    };
    let range = format!("{}–{}", text(low), text(high));
    numbers.with_unit(&range, "%")
}

/// Writes the ends of an interval of a difference of shares, which may be below 0:
/// `−0.12 to 0.03 %`.
#[must_use]
pub fn signed_percent_range(numbers: Numbers, low: f64, high: f64) -> String {
    let percent = signed_range(numbers, low * 100.0, high * 100.0);
    numbers.with_unit(&percent, "%")
}

/// Writes the ends of an interval that may be below 0: `−12 to 3`.
#[must_use]
pub fn signed_range(numbers: Numbers, low: f64, high: f64) -> String {
    let text = |value: f64| numbers.within(value, high - low);
    format!("{} to {}", text(low), text(high))
}

/// Writes numbers of things in short: `cells 1–4, 7`.
#[must_use]
pub fn numbered(one: &str, numbers: &[u32]) -> String {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let plural = if numbers.len() == 1 { "" } else { "s" };
    let runs: Vec<String> = numbers
        .chunk_by(|a, b| b - a == 1)
        .map(|run| match run {
            [only] => only.to_string(),
            [first, last] => format!("{first}, {last}"),
            _ => format!("{}–{}", run[0], run[run.len() - 1]),
        })
        .collect();
    format!("{one}{plural} {}", runs.join(", "))
}

/// Writes the first letter large.
#[must_use]
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(chars).collect()
}

/// Writes one of several words by number: `1 run`, `5 runs`.
#[must_use]
pub fn counted(numbers: Numbers, count: u64, one: &str, many: &str) -> String {
    let word = if count == 1 { one } else { many };
    numbers.with_unit(&numbers.count(count), word)
}

/// Joins words: `a`, `a and b`, `a, b and c`.
#[must_use]
pub fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Joins the first of several: `a; b; and 3 more`.
#[must_use]
pub fn first_of(all: &[String], most: usize) -> String {
    let first = all[..all.len().min(most)].join("; ");
    match all.len().saturating_sub(most) {
        0 => first,
        more => format!("{first}; and {more} more"),
    }
}

/// Removes the figures from a text, so that texts that differ in figures alone become equal. The
/// number of a CPU is a name and stays.
#[must_use]
pub fn without_figures(text: &str) -> String {
    let mut after_cpu = false;
    let words = text.split_inclusive(' ').map(|word| {
        let is_name = std::mem::replace(&mut after_cpu, word.trim_matches(['(', ' ']) == "CPU");
        match is_name {
            true => word.to_owned(),
            false => word.replace(|digit: char| digit.is_ascii_digit(), ""),
        }
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: Numbers = Numbers::PLAIN;

    #[test]
    fn durations_are_in_cycles_where_nothing_else_is_known() {
        let known = Time::new(1_043.0, Some(2.6e9));
        assert_eq!(both(N, known, None), "1,043 cycles (401 ns)");
        let unknown = Time::new(1_043.5, None);
        assert_eq!(both(N, unknown, None), "1,044 cycles");
        assert_eq!(time(N, unknown, None), "1,044 cycles");
    }

    #[test]
    fn microseconds_have_three_or_four_digits_and_none_below_a_nanosecond() {
        for (ns, text) in [
            (4_031.0, "4.031"),
            (40_314.0, "40.31"),
            (183_449.0, "183.4"),
            (12_345_678.0, "12,346"),
            (0.0, "0.000"),
            (9_999.9, "10.00"),
        ] {
            assert_eq!(microseconds(N, ns), text);
        }
    }

    #[test]
    fn ranges_show_what_they_can_tell() {
        assert_eq!(percent_range(N, 0.004_012, 0.004_389), "0.401–0.439 %");
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }

    #[test]
    fn an_end_of_a_range_that_is_not_0_is_not_written_as_0() {
        let range = |low, high| percent_range(Numbers::PLAIN, low, high);
        assert_eq!(range(0.0025, 0.64), "0.250–64 %");
        assert_eq!(range(0.0, 0.64), "0–64 %");
    }
}
