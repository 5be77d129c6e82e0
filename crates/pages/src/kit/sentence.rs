//! Sentences that list figures with what they are of.

use tare_figures::analysis::much_other_work;
use tare_figures::cases::Case;
use tare_figures::format::Numbers;
use tare_figures::modes;
use tare_figures::rows::{self, Figure, Row};
use tare_figures::words;

/// The number of targets up to which a sentence names each.
pub const MANY: usize = 4;

/// How many names of other work a sentence has.
const NAMED: usize = 2;

/// Lists figures, each with its text: all of a few; of many the least and the greatest, and their
/// number.
#[must_use]
pub fn few_or_ends(figures: &[(f64, String)]) -> String {
    let mut sorted: Vec<&(f64, String)> = figures.iter().collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    match sorted.as_slice() {
        [least, .., greatest] if sorted.len() > MANY => {
            format!("{} to {}, {} in all", least.1, greatest.1, sorted.len())
        }
        _ => {
            let all = figures.iter().map(|(_, text)| text.clone());
            words::list(&all.collect::<Vec<_>>())
        }
    }
}

/// Writes a figure in a sentence: as it is written, named if others of the sentence have two modes;
/// one that may be in either of two modes as both of them, and a median between two runs that are
/// far apart as their range.
#[must_use]
pub fn figure_or_modes(row: &Row, written: String, has_modes: bool) -> String {
    let modes = row.modes.filter(|_| row.is_between_modes());
    match (modes, &row.over) {
        // A median is one of both, if by chance; a mean lies between them.
        (Some(modes), _) => {
            let mean = match row.figure {
                Figure::Mean => format!(", mean {written}"),
                _ => String::new(),
            };
            format!("{} (two modes{mean})", modes::both(row, modes))
        }
        (None, Ok(over)) if row.is_between_runs() => {
            let [low, high] = [over.lowest, over.highest].map(|end| rows::written(end, row.unit));
            format!("{low} to {high} (runs far apart)")
        }
        _ if has_modes => format!("{written} ({})", row.figure),
        _ => written,
    }
}

/// Names the figure that all of a sentence are, before them; nothing if each has its own name.
#[must_use]
pub fn name_before(figure: Figure, has_modes: bool) -> &'static str {
    match figure {
        _ if has_modes => "",
        Figure::Mean => "a mean of ",
        _ => "a median of ",
    }
}

/// Joins the texts of the first of many, if there is any: `begin` first, `between` them, how many
/// more there are, and `end` last.
#[must_use]
pub fn joined(
    begin: &str,
    texts: impl IntoIterator<Item = String>,
    between: &str,
    end: &str,
) -> Option<String> {
    let mut texts = Vec::from_iter(texts);
    let more = texts.len().saturating_sub(MANY);
    texts.truncate(MANY);
    texts.extend((more > 0).then(|| format!("{more} more")));
    (!texts.is_empty()).then(|| format!("{begin}{}{end}", texts.join(between)))
}

/// Names other work that had much of the measured CPU in all cells of a case:
/// ` alongside sh (66 % of the CPU's time)`.
#[must_use]
pub fn alongside(case: &Case<'_>) -> String {
    alongside_in(case, |_| true)
}

/// Names the same of some cells: of what happened in one, others say nothing.
#[must_use]
pub fn alongside_in(case: &Case<'_>, is_own: impl Fn(u32) -> bool) -> String {
    let own = case.cells.iter().copied();
    let own = Vec::from_iter(own.filter(|cell| is_own(cell.plan.id)));
    let cell = match own.as_slice() {
        [only] if case.cells.len() > 1 => format!(" in cell {}", only.plan.id),
        _ => String::new(),
    };
    let much = much_other_work(own.into_iter());
    let more = much.len().saturating_sub(NAMED) as u64;
    let mut each: Vec<String> = much.into_iter().take(NAMED).collect();
    if more > 0 {
        each.push(words::counted(
            Numbers::PLAIN,
            more,
            "more name",
            "more names",
        ));
    }
    match each.is_empty() {
        true => String::new(),
        false => format!(" alongside {}{cell}", words::list(&each)),
    }
}

/// Joins remarks on one thing among several, to stand behind it:
/// ` (4.2 ms; alongside sh (66 % of the CPU's time))`.
#[must_use]
pub fn aside(texts: impl IntoIterator<Item = String>) -> String {
    let texts = texts.into_iter().filter(|text| !text.is_empty());
    let texts: Vec<String> = texts.collect();
    match texts.is_empty() {
        true => String::new(),
        false => format!(" ({})", texts.join("; ")),
    }
}
