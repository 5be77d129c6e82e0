//! Sentences that list figures with what they are of, and say how sure these are.

use tare_figures::analysis::much_other_work;
use tare_figures::cases::Case;
use tare_figures::format::Numbers;
use tare_figures::group::distinct;
use tare_figures::modes;
use tare_figures::rows::{Figure, Row, written};
use tare_figures::words;
use tare_results::target::Kernel;
use tare_stats::{Kind, Level};

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
/// one that may be in either of two modes as both of them.
#[must_use]
pub fn figure_or_modes(row: &Row, written: String, has_modes: bool) -> String {
    match row.modes.filter(|_| row.is_between_modes()) {
        Some(modes) => format!("{} (two modes)", modes::both(row, modes)),
        None if has_modes => format!("{written} ({})", row.figure),
        None => written,
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

/// Says how many emulated targets sentences leave out: their times say nothing of a machine.
#[must_use]
pub fn emulated_left_out<'a>(emulated: impl IntoIterator<Item = &'a Case<'a>>) -> Option<String> {
    let targets = distinct(emulated.into_iter().map(|case| &case.plan.target.text));
    match targets.as_slice() {
        [] => None,
        [one] => Some(format!(
            "These sentences leave out {one}, which was emulated."
        )),
        many => Some(format!(
            "These sentences leave out {} targets that were emulated.",
            many.len()
        )),
    }
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
    let cells = case.cells.iter().copied();
    let much = much_other_work(cells.filter(|cell| is_own(cell.plan.id)));
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
        false => format!(" alongside {}", words::list(&each)),
    }
}

/// Returns how sure the figures that [`few_or_ends`] names are, each with its text.
#[must_use]
pub fn certainty_of_ends<'a>(figures: impl IntoIterator<Item = (String, &'a Row)>) -> Vec<String> {
    let mut figures = Vec::from_iter(figures);
    if figures.len() > MANY {
        figures.retain(|(_, row)| row.estimate().is_some());
        let estimate = |row: &Row| row.estimate().unwrap_or_default();
        figures.sort_by(|a, b| estimate(a.1).total_cmp(&estimate(b.1)));
        let greatest = figures.split_off(figures.len().saturating_sub(1));
        figures.truncate(1);
        figures.extend(greatest);
    }
    certainty(figures)
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

/// Returns how sure the first figures are, each with its text: `Longest of a run on process: …`. A
/// figure that several have in common is stated once; one that may be in either of two modes has no
/// range that says anything.
#[must_use]
pub fn certainty<'a>(figures: impl IntoIterator<Item = (String, &'a Row)>) -> Vec<String> {
    let figures = figures.into_iter().take(MANY);
    let figures = figures.filter(|(_, row)| !row.is_between_modes());
    let mut sentences: Vec<String> = figures.map(|(what, row)| sure(&what, row)).collect();
    sentences.dedup();
    sentences
}

/// Says how sure a figure is: `Mean time lost: 1.5–2.2 % (95 % CI, 5 runs).`
#[must_use]
pub fn sure(what: &str, row: &Row) -> String {
    let over = match &row.over {
        Ok(over) => over,
        Err(refused) => return format!("{what}: {refused}."),
    };
    let range = |low: f64, high: f64| match row.unit {
        "1" => words::percent_range(Numbers::PLAIN, low, high),
        unit => format!("{} to {}", written(low, unit), written(high, unit)),
    };
    let one = written(over.lowest, row.unit);
    let text = match (&over.interval, over.runs) {
        (Ok(interval), _) => {
            let range = range(interval.low, interval.high);
            let runs = Numbers::PLAIN.count(over.runs);
            // The longest of all runs may be far beyond that of the longest of each.
            let of = match row.figure.kind() {
                Kind::Order => " of the median",
                _ => "",
            };
            format!("{range} (95 % CI{of}, {runs} runs)")
        }
        (Err(_), 1) if row.group.capabilities().kernel == Kernel::Unknown => {
            format!("{one} in a single run")
        }
        (Err(_), 1) => format!("{one} in a single run; measure several (--runs)"),
        (Err(_), runs) if one == written(over.highest, row.unit) => {
            format!("{one} in each of {runs} runs")
        }
        (Err(_), runs) => {
            let needed = row.figure.kind().runs_needed(Level::P95);
            let range = range(over.lowest, over.highest);
            format!("{range} in {runs} runs; an interval needs {needed} (--runs)")
        }
    };
    format!("{what}: {text}.")
}
