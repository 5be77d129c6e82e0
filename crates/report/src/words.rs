//! Phrases that terminal, page and summary share, so that they say the same.

use tare_results::model::{LoadPlace, Record};

use crate::analysis::{Daemon, LoadFigure, LoadRate, Placement, Run, Time};
use crate::format::Numbers;

/// Stands where there is no figure.
pub const NONE: &str = "–";

/// Writes a duration in its own unit, in cycles if nothing else is known: `402 ns`.
#[must_use]
pub fn time(numbers: Numbers, time: Time, step: Option<Time>) -> String {
    match time.ns {
        Some(ns) => numbers.ns(ns, step.and_then(|step| step.ns)),
        None => cycles(numbers, time),
    }
}

/// Writes a duration in µs: three or four significant digits, no more than ns: `4.031`, `183.4`, `12,345`.
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

/// Writes a number of cycles: whole ones and large ones without a fraction, others with three digits.
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
        if width > 0.0 {
            numbers.within(value, width)
        } else {
            numbers.rounded(value)
        }
    };
    let range = format!("{}–{}", text(low), text(high));
    numbers.with_unit(&range, "%")
}

/// Writes the ends of an interval of a difference of shares, which may be below 0: `−0.12 to 0.03 %`.
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

/// Writes how much a load did per second: `412 MB/s`, `1,203/s`; of CPU time how many CPUs that is.
fn load_rate(numbers: Numbers, what: &str, per_second: f64) -> String {
    if what == "ns of CPU time" {
        return numbers.with_unit(&numbers.short(per_second / 1e9), "CPUs");
    }
    if !what.starts_with("bytes") {
        return numbers.rate(per_second);
    }
    let (value, unit) = match per_second {
        v if v < 999.5 => (v, "B/s"),
        v if v < 999.5e3 => (v / 1e3, "kB/s"),
        v if v < 999.5e6 => (v / 1e6, "MB/s"),
        v => (v / 1e9, "GB/s"),
    };
    numbers.with_unit(&numbers.short(value), unit)
}

/// Puts the loads of one place together, below the target's name and where they ran, places in the order in which they
/// come.
#[must_use]
pub fn loads_by_place(loads: &[LoadFigure]) -> Vec<(String, Vec<&LoadFigure>)> {
    let mut places: Vec<(String, Vec<&LoadFigure>)> = Vec::new();
    for load in loads {
        let name = format!("{}, loads {}", load.target, load_place(load.place));
        match places.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => known.push(load),
            None => places.push((name, vec![load])),
        }
    }
    places
}

/// Writes a row of the table of loads: load, what, median, range. The first row of a load has its name.
#[must_use]
pub fn load_row(
    numbers: Numbers,
    load: &LoadFigure,
    rate: &LoadRate,
    is_first: bool,
) -> [String; 4] {
    let [median, lowest, highest] = load_rates(numbers, rate);
    [
        if is_first {
            load.load.clone()
        } else {
            String::new()
        },
        rate.what.trim_start_matches("ns of ").to_owned(),
        median,
        // A single block has no range.
        match rate.blocks.len() {
            0 | 1 => NONE.to_owned(),
            _ => format!("{lowest} to {highest}"),
        },
    ]
}

/// Writes median, lowest and highest of what a load did per second.
fn load_rates(numbers: Numbers, rate: &LoadRate) -> [String; 3] {
    let spread = &rate.per_second;
    [spread.figure, spread.lowest, spread.highest].map(|v| load_rate(numbers, &rate.what, v))
}

/// Says on which CPUs guests were measured, the host's and their own; `None` without guests.
#[must_use]
pub fn guests(run: &Run) -> Option<String> {
    let mut places: Vec<(String, Vec<String>)> = Vec::new();
    for cell in &run.cells {
        let Some(program) = cell.outcome.record().and_then(Record::program) else {
            continue;
        };
        let placement = Placement::of(&run.plan, &cell.plan, program);
        if placement.guest_cpu.is_none() {
            continue;
        }
        let (cpu, target) = (placement.words(), &cell.plan.target.text);
        match places.iter_mut().find(|(known, _)| *known == cpu) {
            Some((_, targets)) if targets.contains(target) => {}
            Some((_, targets)) => targets.push(target.clone()),
            None => places.push((cpu, vec![target.clone()])),
        }
    }
    places.sort();
    let each = places.into_iter().map(|(cpu, mut targets)| {
        targets.sort();
        match targets.len() {
            ..=2 => format!("{}: {cpu}", list(&targets)),
            many => format!("{many} guests: {cpu}"),
        }
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| each.join(". "))
}

/// Says where a load ran, as seen from the measured code.
#[must_use]
pub fn load_place(place: LoadPlace) -> &'static str {
    match place {
        LoadPlace::Beside => "beside it",
        LoadPlace::Inside => "inside",
    }
}

/// Says which daemons ran while something was measured: `dockerd (blocks 1–3)`.
#[must_use]
pub fn daemons(daemons: &[Daemon]) -> String {
    let each: Vec<String> = daemons
        .iter()
        .map(|daemon| format!("{} ({})", daemon.name, numbered("block", &daemon.blocks)))
        .collect();
    list(&each)
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

/// Turns a plain sentence into a typeset one: thin spaces between thousands, and no line break
/// between a number and its unit.
#[must_use]
pub fn typeset(sentence: &str) -> String {
    let words = with_units(sentence.split(' '), "\u{a0}");
    let words: Vec<String> = words.iter().map(|word| with_thin_spaces(word)).collect();
    words.join(" ")
}

/// Puts words together that no line break may part: a number and its unit.
pub(crate) fn with_units<'a>(words: impl Iterator<Item = &'a str>, between: &str) -> Vec<String> {
    const UNITS: [&str; 9] = ["%", "ns", "µs", "ms", "s", "Hz", "MHz", "cycles", "times"];
    let mut together: Vec<String> = Vec::new();
    for word in words {
        let bare = word.trim_end_matches([',', ';', '.', ')', ':']);
        let before = together
            .last_mut()
            .filter(|before| before.ends_with(|c: char| c.is_ascii_digit()));
        match before {
            Some(before) if UNITS.contains(&bare) => before.push_str(&format!("{between}{word}")),
            _ => together.push(word.to_owned()),
        }
    }
    together
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
        assert_eq!(percent_range(N, 0.004_012, 0.004_389), "0.401–0.439 %");
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }
}
