//! A comparison on a terminal, the conclusion first.

use anstyle::{AnsiColor, Style};
use tare_host::visible_in_line;

use super::N;
use crate::table::Table;
use crate::text::{Page, Text};
use tare_figures::compare::{ComparedRow, Comparison, SideDifference, signed, told};
use tare_figures::group::{distinct, grouped};
use tare_figures::rows::behind;
use tare_figures::words::{self, NONE};

/// The number of figures up to which all are listed; of more only those that differ.
const ALL: usize = 40;

/// The number of figures that a refusal names; of more it says how many.
const NAMED: usize = 4;

/// Says how to read a table.
fn read(comparison: &Comparison) -> String {
    let each = comparison.unit.plural();
    if !comparison.can_tell {
        return format!("Figures are medians over the {each}.");
    }
    format!(
        "Figures are medians over the {each}. The shift is the median of all differences between one of the {each} of one side \
         and one of the other (Hodges and Lehmann; the percentage is its share of the first median), so it need not be the \
         difference of the medians, and is unclear where it has the other sign; shares shift by percentage points (pp). p is adjusted over all \
         figures, by their means; the interval is of one figure, by ranks, and may hold 0 where p is small."
    )
}

/// Writes a comparison, the conclusion first.
#[must_use]
pub fn compare(comparison: &Comparison, width: usize) -> Text {
    let mut page = Page::new(width);
    for (place, sentence) in comparison.verdict.iter().enumerate() {
        let style = if place == 0 {
            Style::new().bold()
        } else {
            Style::new()
        };
        page.paragraph(sentence, style, "");
    }
    page.blank();
    let heads = heads(comparison);
    for ((name, head), runs) in comparison.names.iter().zip(heads).zip(&comparison.runs) {
        let folders: Vec<&str> = runs.iter().map(|run| run.run.as_str()).collect();
        let invocations: u64 = runs.iter().map(|run| run.invocations).sum();
        let counted = match invocations {
            1 => "1 invocation".to_owned(),
            n => format!("{n} invocations"),
        };
        let called = match head == name {
            true => String::new(),
            false => format!("{head}, "),
        };
        let text = format!("{called}{name}: {} ({counted})", folders.join(", "));
        page.paragraph(&text, Style::new(), "");
    }
    if !comparison.differences.is_empty() {
        page.heading("What differs besides the figures");
        let [base, new] = heads;
        // Both sides are shown at any width: texts are broken, figures would be hidden.
        let mut rows = Table::new(["what", base, new]).left(&[1, 2]);
        for difference in &comparison.differences {
            rows.row([&difference.what, &difference.base, &difference.new].map(String::clone));
        }
        page.table(&rows);
    }
    let shown = shown(comparison);
    if !shown.is_empty() {
        let [base, new] = &comparison.names;
        page.heading(&match comparison.can_tell {
            true => format!("{new} against {base}"),
            false => format!("Figures of {base} and {new}, not judged"),
        });
        page.note(&read(comparison));
        for (common, same) in tables(&shown) {
            page.paragraph(&common, Style::new().dimmed(), "");
            let columns = columns(&same);
            let mut rows = Table::new(columns.iter().map(|at| head(heads)[*at]));
            for cells in same {
                rows.row(columns.iter().map(|at| cells[*at].clone()));
            }
            page.table(&rows);
        }
    }
    for (text, is_warning) in notes(comparison, &shown) {
        match is_warning {
            true => page.paragraph(&text, AnsiColor::Yellow.on_default(), "! "),
            false => page.paragraph(&text, Style::new().dimmed(), ""),
        }
    }
    page.finish()
}

/// Returns what the sides are called above columns: BASE and NEW where their names would take the room
/// of the figures.
fn heads(comparison: &Comparison) -> [&str; 2] {
    const LONGEST: usize = 16;
    let names = comparison.names.each_ref().map(String::as_str);
    match names.iter().all(|name| name.chars().count() <= LONGEST) {
        true => names,
        false => ["BASE", "NEW"],
    }
}

/// Returns the heads of the columns.
fn head([base, new]: [&str; 2]) -> [&str; 7] {
    [
        "figure",
        base,
        new,
        "shift",
        "95 % interval",
        "adjusted p",
        "",
    ]
}

/// Returns the columns in which any row has a value.
fn columns(rows: &[[String; 7]]) -> Vec<usize> {
    let has_value = |at: &usize| rows.iter().any(|cells| cells[*at] != NONE);
    (0..7).filter(has_value).collect()
}

/// Returns the cells in these columns.
fn only<'a>(columns: &[usize], cells: [&'a str; 7]) -> Vec<&'a str> {
    columns.iter().map(|at| cells[*at]).collect()
}

/// Writes a comparison as Markdown, for a pull request.
#[must_use]
pub fn compare_markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (place, sentence) in comparison.verdict.iter().enumerate() {
        let bold = if place == 0 { "**" } else { "" };
        text.push_str(&format!("{bold}{}{bold}\n\n", escaped(sentence)));
    }
    let line = |cells: &[&str]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let [base, new] = &comparison.names;
    if !comparison.differences.is_empty() {
        text.push_str("What differs besides the figures:\n\n");
        text.push_str(&line(&["what", base, new]));
        text.push_str("|---|---|---|\n");
        for SideDifference { what, base, new } in &comparison.differences {
            text.push_str(&line(&[what, base, new]));
        }
        text.push('\n');
    }
    let shown = shown(comparison);
    for (common, same) in tables(&shown) {
        text.push_str(&format!("{}\n\n", escaped(&common)));
        const RULE: [&str; 7] = ["---", "--:", "--:", "--:", "--:", "--:", "---"];
        let columns = columns(&same);
        text.push_str(&line(&only(&columns, head([base, new]))));
        text.push_str(&format!("|{}|\n", only(&columns, RULE).join("|")));
        for cells in same {
            text.push_str(&line(&only(&columns, cells.each_ref().map(String::as_str))));
        }
        text.push('\n');
    }
    for (note, _) in notes(comparison, &shown) {
        text.push_str(&format!("- {}\n", escaped(&note)));
    }
    if text.ends_with('\n') && !text.ends_with("\n\n") {
        text.push('\n');
    }
    let compared = match comparison.compared().count() as u64 {
        0 => "No figure could be judged".to_owned(),
        compared => words::counted(N, compared, "figure was compared", "figures were compared"),
    };
    let [of_base, of_new] = comparison.repetitions;
    text.push_str(&format!(
        "{compared} (tare compare); {}: {} {of_base}, {} {of_new}.",
        comparison.unit.plural(),
        escaped(base),
        escaped(new)
    ));
    if !shown.is_empty() {
        text.push_str(&format!(" {}", read(comparison)));
    }
    text + "\n"
}

/// Escapes what would end a cell, or be more than text.
fn escaped(text: &str) -> String {
    let text = visible_in_line(text).replace('|', "\\|");
    text.replace('<', "&lt;").replace('[', "\\[")
}

/// Returns the rows that are listed.
fn shown(comparison: &Comparison) -> Vec<&ComparedRow> {
    let told: Vec<&ComparedRow> = comparison.listed().collect();
    let all = told.len() <= ALL;
    told.into_iter().filter(|row| all || row.differs).collect()
}

/// Returns a table for each place, with what all of its rows have in common.
fn tables(shown: &[&ComparedRow]) -> Vec<(String, Vec<[String; 7]>)> {
    let places = shown.chunk_by(|a, b| a.places() == b.places());
    let tables = places.map(|same| {
        let is_common = |(key, value): &(&str, &str)| {
            same.iter().all(|row| row.labels.get(key) == Some(*value))
        };
        let (common, own): (Vec<_>, Vec<_>) = same[0].labels.iter().partition(is_common);
        let [common, own] =
            [common, own].map(|labels| Vec::from_iter(labels.iter().map(|(key, _)| *key)));
        let rows = same.iter();
        let rows = rows.map(|row| cells(row, row.name() + &behind(&row.labels, &common)));
        (
            same[0].places() + &behind(&same[0].labels, &own),
            rows.collect(),
        )
    });
    tables.collect()
}

fn cells(row: &ComparedRow, name: String) -> [String; 7] {
    let unit = row.unit.as_str();
    let interval = row.low.zip(row.high).map_or_else(
        || NONE.to_owned(),
        |(low, high)| format!("{} to {}", signed(low, unit), signed(high, unit)),
    );
    let mark = match row.is_worse {
        _ if row.refused.is_some() && !row.is_of_few => "refused",
        _ if !row.differs => row.doubt().unwrap_or_default(),
        _ if row.is_of_emulator_alone() => "differs",
        true => "worse",
        false => "better",
    };
    [
        name,
        told(row.base, unit),
        told(row.new, unit),
        row.shift_in_words(),
        interval,
        match row.refused {
            Some(_) => NONE.to_owned(),
            None => row.chance(),
        },
        mark.to_owned(),
    ]
}

/// A sentence below the tables, and whether it warns.
type Note = (String, bool);

/// Returns the notes below the tables: which figures are not listed, refused, or only on one
/// side.
fn notes(comparison: &Comparison, shown: &[&ComparedRow]) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    let mut note = |text: String| notes.push((text, false));
    // Others without a shift are refused below.
    let is_all = shown.len() == comparison.listed().count();
    let left_out = comparison.listed().filter(|row| !is_all && !row.differs);
    let left_out = left_out.filter(|row| match comparison.can_tell {
        true => row.shift.is_some() && row.refused.is_none(),
        false => row.is_of_few,
    });
    let left_out = Vec::from_iter(left_out);
    if !left_out.is_empty() {
        let figures = words::counted(N, left_out.len() as u64, "figure", "figures");
        let are = if left_out.len() == 1 { "is" } else { "are" };
        let why = match comparison.can_tell {
            true => "not shown to differ",
            false => "not judged",
        };
        let intervals = match left_out.iter().any(|row| row.low.is_some()) {
            true => ", with their intervals",
            false => "",
        };
        note(format!("{figures} {why} {are} in --json only{intervals}."));
    }
    let judged = comparison.rows.iter().filter(|_| comparison.can_tell);
    let same = judged.filter_map(|row| {
        let same = row.same_as.as_deref()?;
        let of = (row.measure.as_str(), same, row.places());
        Some((of, row.figure.clone()))
    });
    let same = grouped(same).into_iter();
    let same = same.map(|((measure, same, place), figures)| {
        let figures = distinct(figures).join(", ");
        ((measure, same, figures), place)
    });
    for ((measure, same, figures), places) in grouped(same) {
        let rows = comparison.rows.iter();
        let all = distinct(
            rows.filter(|row| row.measure == measure)
                .map(ComparedRow::places),
        );
        let of = match places.len() == all.len() {
            true => String::new(),
            false => format!(" of {}", places.join("; ")),
        };
        note(format!(
            "{measure} is the same as {same} in {figures}{of}: judged once."
        ));
    }
    let once = comparison.rows.iter().filter(|row| row.same_as.is_none());
    let refused = grouped(once.filter_map(|row| {
        // That there are too few repetitions for any figure is the verdict.
        let is_own = comparison.can_tell || !row.is_of_few;
        let why = row.refused.as_deref().filter(|_| is_own)?;
        // How many samples a run has differs from row to row.
        let needed = row.samples_needed();
        let key = (needed, needed.is_none().then_some(why));
        let place = row.places() + &behind(&row.labels, &[]);
        let named = format!("{} of {place}", row.name());
        Some((key, (named, row)))
    }));
    for ((needed, _), rows) in refused {
        let (names, rows): (Vec<String>, Vec<&ComparedRow>) = rows.into_iter().unzip();
        let why = match (needed, rows.as_slice()) {
            (Some(needed), [row, _, ..]) => format!(
                "{} needs {} samples in each run, and runs of each of these have fewer: measure longer, not more often",
                row.figure,
                N.count(needed)
            ),
            _ => rows[0].refused.clone().unwrap_or_default(),
        };
        let names = words::first_of(&names, NAMED);
        note(format!("Refused: {names}: {why}."));
    }
    notes.extend(longest(comparison).map(|text| (text, false)));
    for unmatched in &comparison.unmatched {
        let name = &comparison.names[usize::from(unmatched.side == 2)];
        notes.push((format!("Only {name} has {}.", unmatched.what), true));
    }
    notes
}

/// Says of maxima that differ whether the sides measured for the same time.
fn longest(comparison: &Comparison) -> Option<String> {
    /// The factor up to which lengths are the same.
    const SAME: f64 = 1.1;
    let rows = comparison.rows.iter();
    let maxima = rows.filter(|row| row.figure == "max" && row.differs);
    let times: Vec<Option<f64>> = maxima.map(|row| row.times_as_long).collect();
    let known: Option<Vec<f64>> = times.iter().copied().collect();
    let ends = |known: Vec<f64>| {
        let least = known.iter().copied().reduce(f64::min)?;
        Some((least, known.into_iter().fold(0.0, f64::max)))
    };
    let [base, new] = &comparison.names;
    let which = match known.and_then(ends) {
        _ if times.is_empty() => return None,
        None => ": compare runs that measured for the same time".to_owned(),
        Some((least, most)) if least * SAME >= 1.0 && most <= SAME => {
            "; the runs of both sides measured for the same time".to_owned()
        }
        Some((least, most)) => {
            let times = distinct([least, most].map(|times| N.short(times))).join(" to ");
            format!(
                ". Where it differs, runs of {new} measured {times} times as long as those of {base}, which bears on that"
            )
        }
    };
    Some(format!(
        "The longest of a run grows with its length{which}."
    ))
}
