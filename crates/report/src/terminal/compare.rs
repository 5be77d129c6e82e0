//! Two runs against each other, on a terminal.

use anstyle::{AnsiColor, Style};

use super::{N, Page, none, table};
use crate::wakeup::compare::{Comparison, Figure, ShiftRow, written};

/// Is the number of figures up to which all are listed; of more only those that differ.
const ALL: usize = 40;

/// Writes a comparison of two runs, the conclusion last.
#[must_use]
pub fn compare(comparison: &Comparison, width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    for (name, run) in ["A", "B"].into_iter().zip(&comparison.runs) {
        page.paragraph(
            &format!("{name}: {} ({})", run.command, run.created),
            Style::new(),
            "",
        );
    }
    if !comparison.differences.is_empty() {
        page.heading("What differs beside the figures");
        let mut rows = table(&["what", "A", "B"]);
        for difference in &comparison.differences {
            rows.add_row([&difference.what, &difference.first, &difference.second]);
        }
        page.table(rows);
    }
    let is_shown = |row: &&ShiftRow| comparison.rows.len() <= ALL || row.differs;
    let shown: Vec<&ShiftRow> = comparison.rows.iter().filter(is_shown).collect();
    if !shown.is_empty() {
        page.heading("Response latency, B against A");
        let head = [
            "under",
            "figure",
            "A",
            "B",
            "shift",
            "95 % interval",
            "p, Holm",
            "",
        ];
        for same in shown.chunk_by(|a, b| place(a) == place(b)) {
            page.paragraph(&place(same[0]), Style::new().dimmed(), "");
            let mut rows = table(&head);
            for row in same {
                rows.add_row(cells(row));
            }
            page.table(rows);
        }
    }
    let left_out = comparison.rows.len() - shown.len();
    if left_out > 0 {
        let text = format!("{left_out} figures that are not said to differ are in --json only.");
        page.paragraph(&text, Style::new().dimmed(), "");
    }
    notes(&mut page, comparison);
    page.text.push('\n');
    for (place, sentence) in comparison.verdict.iter().enumerate() {
        let style = if place == 0 {
            Style::new().bold()
        } else {
            Style::new()
        };
        page.paragraph(sentence, style, "");
    }
    page.text
}

fn place(row: &ShiftRow) -> String {
    if row.first_target == row.second_target {
        return row.first_target.clone();
    }
    format!("A: {}; B: {}", row.first_target, row.second_target)
}

fn cells(row: &ShiftRow) -> Vec<String> {
    let signed = |value: f64| {
        let sign = if value < 0.0 { "−" } else { "+" };
        match value {
            0.0 => "0".to_owned(),
            value => format!("{sign}{}", written(row.figure, Some(value.abs()))),
        }
    };
    let interval = row.interval.map_or_else(none, |interval| {
        format!("{} to {}", signed(interval.low), signed(interval.high))
    });
    let p = match (row.exact, row.adjusted_p_value) {
        (true, _) => "exact".to_owned(),
        (false, Some(p)) => N.short(p),
        (false, None) => none(),
    };
    let mark = match (row.differs, row.is_worse) {
        (true, true) => "worse",
        (true, false) => "better",
        (false, _) => "",
    };
    vec![
        row.phase_load.clone(),
        row.figure.name().to_owned(),
        written(row.figure, row.first),
        written(row.figure, row.second),
        row.shift.map_or_else(none, signed),
        interval,
        p,
        mark.to_owned(),
    ]
}

fn notes(page: &mut Page, comparison: &Comparison) {
    let mut refused: Vec<&str> = Vec::new();
    for why in comparison
        .rows
        .iter()
        .filter_map(|row| row.refused.as_deref())
    {
        if !refused.contains(&why) {
            refused.push(why);
        }
    }
    for why in refused {
        page.paragraph(&format!("Refused: {why}."), Style::new().dimmed(), "");
    }
    for unmatched in &comparison.unmatched {
        let run = if unmatched.run == 1 { "A" } else { "B" };
        let text = format!("Only {run} has {}.", unmatched.label);
        page.paragraph(&text, AnsiColor::Yellow.on_default(), "! ");
    }
    let max = comparison
        .rows
        .iter()
        .any(|row| row.figure == Figure::Max && row.differs);
    if max {
        page.paragraph(
            "The longest of a run grows with its length: compare runs that measured for the same time.",
            Style::new().dimmed(),
            "",
        );
    }
}
