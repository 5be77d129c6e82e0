//! Figures in texts and pages: what a test asserts to be those that were derived.

use std::collections::BTreeSet;

/// The units after which a number is a figure. None of the times of tests is as long as a
/// second: in seconds stands when something was.
const UNITS: [&str; 10] = [
    "ns", "µs", "ms", "%", "cycles", "KiB", "MiB", "MB/s", "GB/s", "/s",
];

/// Returns the figures in a text: numbers with a unit behind them.
#[must_use]
pub fn figures_in(text: &str) -> BTreeSet<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_number = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word
                .chars()
                .all(|c| c.is_ascii_digit() || matches!(c, '.' | ','))
    };
    let pairs = words.windows(2).filter_map(|pair| {
        let (number, unit) = (pair[0].trim_start_matches(['(', '>', '±']), pair[1]);
        let unit = unit.trim_end_matches([')', '.', ',', ';', ':']);
        (is_number(number) && UNITS.contains(&unit)).then(|| format!("{number} {unit}"))
    });
    let rates = words.iter().filter_map(|word| {
        let word = word
            .trim_end_matches([')', '.', ',', ';', ':'])
            .trim_start_matches('(');
        let number = word.strip_suffix("/s")?;
        is_number(number).then(|| word.to_owned())
    });
    pairs.chain(rates).collect()
}

/// Returns the differences in a text: numbers with a sign in front and a unit behind them.
#[must_use]
pub fn differences_in(text: &str) -> BTreeSet<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let pairs = words.windows(2).filter_map(|pair| {
        let unit = pair[1].trim_end_matches([')', '.', ',', ';', ':']);
        let number = pair[0].trim_start_matches('(');
        let is_signed = number.starts_with(['+', '−']) && number.ends_with(char::is_numeric);
        (is_signed && (unit == "%" || unit.starts_with(char::is_alphabetic)))
            .then(|| format!("{number} {unit}"))
    });
    pairs.collect()
}

/// Takes away what lies between two marks, wherever they are.
#[must_use]
pub fn without(text: &str, from: &str, to: &str) -> String {
    let mut pieces = text.split(from);
    let mut rest = pieces.next().unwrap_or_default().to_owned();
    rest.extend(pieces.filter_map(|piece| Some(piece.split_once(to)?.1)));
    rest
}

/// Returns the text of a page, without the samples that its pictures draw and the marks at their
/// axes. Thin spaces within numbers are commas, as elsewhere.
#[must_use]
pub fn shown(page: &str) -> String {
    let page = without(page, "<g class=\"axis\">", "</g>");
    let page = without(&page, "<title>", "</title>");
    let mut text = String::new();
    for piece in page.split('<') {
        let (tag, rest) = piece.split_once('>').unwrap_or(("", piece));
        // Words of a sentence may be marked; what else has tags are cells and labels.
        let is_in_a_sentence = matches!(tag.trim_start_matches('/'), "b" | "code" | "kbd" | "wbr");
        text.push_str(if is_in_a_sentence { "" } else { " " });
        text.push_str(rest);
    }
    let chars: Vec<char> = text.chars().collect();
    let is_within = |at: usize| {
        let digit = |at: Option<&char>| at.is_some_and(char::is_ascii_digit);
        at > 0 && digit(chars.get(at - 1)) && digit(chars.get(at + 1))
    };
    let written = chars.iter().enumerate().map(|(at, c)| match c {
        '\u{202f}' | '\u{a0}' if is_within(at) => ',',
        c => *c,
    });
    let text = written.collect::<String>().replace("&gt;", "> ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
