//! Phrases that terminal, page and summary share, so that they say the same.

use crate::analysis::{Interval, Over, Time};
use crate::format::Numbers;

/// Writes a duration in its own unit, in cycles if nothing else is known: `402 ns`.
pub(crate) fn time(numbers: Numbers, time: Time, step: Option<Time>) -> String {
    match time.ns {
        Some(ns) => numbers.ns(ns, step.and_then(|step| step.ns)),
        None => cycles(numbers, time),
    }
}

/// Writes the step of a timer: `10 ns`.
pub(crate) fn step(numbers: Numbers, step: Time) -> String {
    match step.ns {
        Some(ns) => numbers.with_unit(&numbers.short(ns), "ns"),
        None => cycles(numbers, step),
    }
}

/// Writes a duration in cycles: `1,043 cycles`.
pub(crate) fn cycles(numbers: Numbers, time: Time) -> String {
    numbers.with_unit(&cycles_figure(numbers, time.cycles), "cycles")
}

/// Writes a number of cycles: whole ones and large ones without a fraction, others with three digits.
pub(crate) fn cycles_figure(numbers: Numbers, cycles: f64) -> String {
    if cycles.fract() == 0.0 {
        numbers.fixed(cycles, 0)
    } else {
        numbers.rounded(cycles)
    }
}

/// Writes a duration both ways: `1,043 cycles (402 ns)`.
pub(crate) fn both(numbers: Numbers, duration: Time, step: Option<Time>) -> String {
    match duration.ns {
        Some(_) => format!(
            "{} ({})",
            cycles(numbers, duration),
            time(numbers, duration, step)
        ),
        None => cycles(numbers, duration),
    }
}

/// Says from what an interval was computed: `5 runs`.
pub(crate) fn over(interval: &Interval) -> String {
    let unit = match interval.over {
        Over::Samples => "samples",
        Over::Blocks => "blocks of one run",
        Over::Runs => "runs",
    };
    format!("{} {unit}", Numbers::PLAIN.count(interval.repetitions))
}

/// Writes the ends of an interval of a share: `0.40–0.44 %`. A share is not below 0.
pub(crate) fn share_range(numbers: Numbers, interval: &Interval) -> String {
    let (low, high) = (
        interval.low.max(0.0) * 100.0,
        interval.high.max(0.0) * 100.0,
    );
    let width = high - low;
    let text = |value: f64| {
        if width > 0.0 {
            numbers.within(value, width)
        } else {
            numbers.rounded(value)
        }
    };
    let range = format!("{}–{}", text(low), text(high));
    numbers.with_unit(&range, "%")
}

/// Turns a plain sentence into a typeset one: thin spaces between thousands, and no line break
/// between a number and its unit.
pub(crate) fn typeset(sentence: &str) -> String {
    const UNITS: [&str; 9] = ["%", "ns", "µs", "ms", "s", "Hz", "MHz", "cycles", "times"];
    let mut words: Vec<String> = Vec::new();
    for word in sentence.split(' ') {
        let bare = word.trim_end_matches([',', ';', '.', ')', ':']);
        let before = words
            .last_mut()
            .filter(|before| before.ends_with(|c: char| c.is_ascii_digit()));
        match before {
            Some(before) if UNITS.contains(&bare) => before.push_str(&format!("\u{a0}{word}")),
            _ => words.push(with_thin_spaces(word)),
        }
    }
    words.join(" ")
}

/// Replaces commas between groups of three digits.
fn with_thin_spaces(word: &str) -> String {
    let characters: Vec<char> = word.chars().collect();
    let digit = |place: Option<usize>| {
        let character = place.and_then(|place| characters.get(place));
        character.is_some_and(char::is_ascii_digit)
    };
    let is_group = |place: usize| {
        digit(place.checked_sub(1))
            && (1..=3).all(|after| digit(Some(place + after)))
            && !digit(Some(place + 4))
    };
    let replaced = characters.iter().enumerate().map(|(place, &c)| match c {
        ',' if is_group(place) => '\u{202f}',
        c => c,
    });
    replaced.collect()
}

/// Writes one of several words by number: `1 run`, `5 runs`.
pub(crate) fn counted(numbers: Numbers, count: u64, one: &str, many: &str) -> String {
    let word = if count == 1 { one } else { many };
    numbers.with_unit(&numbers.count(count), word)
}

/// Joins words: `a`, `a and b`, `a, b and c`.
pub(crate) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
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
    fn typeset_sentences_keep_numbers_together() {
        let typeset = |text| {
            typeset(text)
                .replace('\u{a0}', "~")
                .replace('\u{202f}', "_")
        };
        assert_eq!(
            typeset("lost 1.50 % of 1,234,567 cycles (430 ns) in 3 runs, 5"),
            "lost 1.50~% of 1_234_567~cycles (430~ns) in 3 runs, 5"
        );
        assert_eq!(
            typeset("linux,a=1,b 1,23 12,3456"),
            "linux,a=1,b 1,23 12,3456"
        );
    }

    #[test]
    fn ranges_show_what_they_can_tell() {
        let interval = |low, high| Interval {
            estimate: 0.0,
            low,
            high,
            level: 0.95,
            over: Over::Runs,
            repetitions: 5,
        };
        assert_eq!(
            share_range(N, &interval(0.004_012, 0.004_389)),
            "0.401–0.439 %"
        );
        assert_eq!(share_range(N, &interval(-0.01, 0.02)), "0.0–2.0 %");
        assert_eq!(over(&interval(0.0, 1.0)), "5 runs");
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }
}
