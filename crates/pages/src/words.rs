//! Phrases that only terminal and page share.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use tare_figures::analysis::Daemon;
use tare_figures::group::grouped;
use tare_figures::notices::{AgentNotice, name_cells};
use tare_figures::words::{list, numbered, without_figures};

/// Says which daemons ran while something was measured: `dockerd (blocks 1–3)`.
#[must_use]
pub(crate) fn daemons(daemons: &[Daemon]) -> String {
    let each: Vec<String> = daemons
        .iter()
        .map(|daemon| format!("{} ({})", daemon.name, numbered("cell", &daemon.cells)))
        .collect();
    list(&each)
}

/// Returns the pieces of a name, which may be broken behind its commas, but for those within a
/// figure.
pub(crate) fn pieces(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let mut ends = rest.match_indices(',').map(|(comma, _)| comma + 1);
        let is_within = |c: char| c.is_ascii_digit() || c == ' ';
        let end = ends.find(|end| !rest[*end..].starts_with(is_within));
        let (piece, left) = rest.split_at(end.unwrap_or(rest.len()));
        rest = left;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Turns a plain sentence into a typeset one: thin spaces between thousands, and no line break
/// between a number and its unit.
#[must_use]
pub(crate) fn typeset(sentence: &str) -> String {
    let words = with_units(sentence.split(' '), "\u{a0}");
    let words: Vec<String> = words.iter().map(|word| with_thin_spaces(word)).collect();
    words.join(" ")
}

/// Puts words together that no line break may part: a number and its unit.
pub(crate) fn with_units<'a>(words: impl Iterator<Item = &'a str>, between: &str) -> Vec<String> {
    const UNITS: [&str; 17] = [
        "%", "pp", "ns", "µs", "ms", "s", "Hz", "MHz", "GHz", "B", "KiB", "MiB", "GiB", "MB/s",
        "GB/s", "cycles", "times",
    ];
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
pub(crate) fn with_thin_spaces(word: &str) -> String {
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

/// How many notices and facts of agents a report has; the others are in summary.json.
pub(crate) const MOST_TOLD: usize = 50;

/// Returns the numbers in a text, in their order.
fn numbers(text: &str) -> Vec<f64> {
    let is_of_none = |c: char| !c.is_ascii_digit() && c != '.';
    text.split(is_of_none)
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// Writes each notice with its cells; those that differ in their figures only, once.
pub(crate) fn in_short(notices: &[AgentNotice]) -> Vec<String> {
    // Of more than that nobody compares the words.
    let few = notices.iter().take(20 * MOST_TOLD);
    let told = grouped(few.map(|notice| (without_figures(&notice.text), notice)));
    let unread = notices.len().saturating_sub(20 * MOST_TOLD);
    let left_out = told.len().saturating_sub(MOST_TOLD) + unread;
    let told = told
        .into_iter()
        .take(MOST_TOLD)
        .filter_map(|(_, mut same)| {
            // The one with the greatest figures stands for all.
            same.sort_by(|a, b| {
                numbers(&b.text)
                    .partial_cmp(&numbers(&a.text))
                    .unwrap_or(Ordering::Equal)
            });
            let (first, others) = same.split_first()?;
            let mut text = format!("{} ({}", first.text, name_cells(&first.cells));
            if !others.is_empty() {
                let others = others.iter().flat_map(|other| other.cells.clone());
                let cells = Vec::from_iter(BTreeSet::from_iter(others));
                text.push_str(&format!("; with other figures in {}", name_cells(&cells)));
            }
            Some(text + ")")
        });
    let more = (left_out > 0).then(|| format!("{left_out} more are in summary.json"));
    told.chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_ends_between_a_number_and_its_unit() {
        let text = "a mean of 22.4 GB/s, 16 MiB, 1,200 ns and 3 runs";
        let parts = "a|mean|of|22.4 GB/s,|16 MiB,|1,200 ns|and|3|runs";
        assert_eq!(with_units(text.split(' '), " ").join("|"), parts);
    }

    #[test]
    fn notices_that_differ_in_figures_are_one_and_those_of_other_cpus_are_not() {
        let notice = |text: &str, cell| AgentNotice {
            text: text.to_owned(),
            cells: vec![cell],
        };
        let notices = [
            notice("it took 40 ns", 1),
            notice("it took 55 ns", 2),
            notice("it shares (CPU 0): late", 3),
            notice("it shares (CPU 1): late", 4),
        ];
        assert_eq!(
            in_short(&notices),
            [
                "it took 55 ns (cell 2; with other figures in cell 1)",
                "it shares (CPU 0): late (cell 3)",
                "it shares (CPU 1): late (cell 4)",
            ]
        );
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
}
