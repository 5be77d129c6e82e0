//! A comparison on a terminal, the conclusion first.

use anstyle::{AnsiColor, Style};

use super::{N, Page, Table};
use crate::compare::{ComparedRow, Comparison};
use crate::rows::written;
use crate::words::NONE;

/// The number of figures up to which all are listed; of more only those that differ.
const ALL: usize = 40;

/// Writes a comparison, the conclusion first.
#[must_use]
pub fn compare(comparison: &Comparison, width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    for (place, sentence) in comparison.verdict.iter().enumerate() {
        let style = if place == 0 {
            Style::new().bold()
        } else {
            Style::new()
        };
        page.paragraph(sentence, style, "");
    }
    page.text.push('\n');
    for (name, runs) in comparison.names.iter().zip(&comparison.runs) {
        let folders: Vec<&str> = runs.iter().map(|run| run.run.as_str()).collect();
        let invocations: u64 = runs.iter().map(|run| run.invocations).sum();
        let counted = match invocations {
            1 => "1 invocation".to_owned(),
            n => format!("{n} invocations"),
        };
        let text = format!("{name}: {} ({counted})", folders.join(", "));
        page.paragraph(&text, Style::new(), "");
    }
    if !comparison.differences.is_empty() {
        page.heading("What differs beside the figures");
        let [base, new] = &comparison.names;
        let mut rows = Table::new(&["what", base, new]);
        for difference in &comparison.differences {
            rows.row([&difference.what, &difference.base, &difference.new].map(String::clone));
        }
        page.table(&rows);
    }
    let shown = shown(comparison);
    if !shown.is_empty() {
        let [base, new] = &comparison.names;
        page.heading(&format!("{new} against {base}"));
        let head = ["figure", base, new, "shift", "95 % interval", "p", ""];
        for same in shown.chunk_by(|a, b| place(a) == place(b)) {
            page.paragraph(&place(same[0]), Style::new().dimmed(), "");
            let mut rows = Table::new(&head);
            for row in same {
                rows.row(cells(row));
            }
            page.table(&rows);
        }
    }
    let told = comparison.rows.iter().filter(|row| row.base.is_some());
    let left_out = told.count() - shown.len();
    if left_out > 0 {
        let text = format!("{left_out} figures that do not differ are in --json only.");
        page.paragraph(&text, Style::new().dimmed(), "");
    }
    notes(&mut page, comparison);
    page.text
}

/// Writes a comparison as Markdown, for a pull request.
#[must_use]
pub fn compare_markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (place, sentence) in comparison.verdict.iter().enumerate() {
        let bold = if place == 0 { "**" } else { "" };
        text.push_str(&format!("{bold}{sentence}{bold}\n\n"));
    }
    let [base, new] = &comparison.names;
    let head = [
        "measured",
        "figure",
        base,
        new,
        "shift",
        "95 % interval",
        "p",
        "",
    ];
    let line = |cells: &[&str]| format!("| {} |\n", cells.map_escaped().join(" | "));
    let shown = shown(comparison);
    if !shown.is_empty() {
        text.push_str(&line(&head));
        text.push_str("|---|---|--:|--:|--:|--:|--:|---|\n");
        for row in shown {
            let place = place(row);
            let cells = cells(row);
            let cells: Vec<&str> = std::iter::once(place.as_str())
                .chain(cells.iter().map(String::as_str))
                .collect();
            text.push_str(&line(&cells));
        }
        text.push('\n');
    }
    let [base_repetitions, new_repetitions] = comparison.repetitions;
    text.push_str(&format!(
        "{} figures judged together; {base}: {base_repetitions}, {new}: {new_repetitions} repetitions; p-values are adjusted over \
         the table (tare compare).\n",
        comparison.tests
    ));
    for difference in &comparison.differences {
        text.push_str(&format!(
            "\n- {} differs: {} and {}",
            difference.what, difference.base, difference.new
        ));
    }
    if !comparison.differences.is_empty() {
        text.push('\n');
    }
    text
}

/// Escapes what would end a cell.
trait Escaped {
    fn map_escaped(&self) -> Vec<String>;
}

impl Escaped for [&str] {
    fn map_escaped(&self) -> Vec<String> {
        self.iter().map(|cell| cell.replace('|', "\\|")).collect()
    }
}

/// Returns the rows that are listed.
fn shown(comparison: &Comparison) -> Vec<&ComparedRow> {
    let told: Vec<&ComparedRow> = comparison
        .rows
        .iter()
        .filter(|row| row.base.is_some())
        .collect();
    let all = told.len() <= ALL;
    told.into_iter().filter(|row| all || row.differs).collect()
}

fn place(row: &ComparedRow) -> String {
    let side = |target: &str, load: &str| match load {
        "idle" => target.to_owned(),
        load => format!("{target} under {load}"),
    };
    let base = side(&row.base_target, &row.base_load);
    let new = side(&row.new_target, &row.new_load);
    if base == new {
        return base;
    }
    format!("{base} and {new}")
}

/// Names the figure with its labels: `delays.total class=C`.
fn name(row: &ComparedRow) -> String {
    let labels: String = (row.labels.iter())
        .map(|(key, value)| format!(" {key}={value}"))
        .collect();
    format!("{}.{}{labels}", row.measure, row.figure)
}

fn cells(row: &ComparedRow) -> Vec<String> {
    let signed = |value: f64| {
        let sign = if value < 0.0 { "−" } else { "+" };
        match value {
            0.0 => "0".to_owned(),
            value => format!("{sign}{}", written(value.abs(), &row.unit)),
        }
    };
    let told = |value: Option<f64>| {
        value.map_or_else(|| NONE.to_owned(), |value| written(value, &row.unit))
    };
    let interval = row.low.zip(row.high).map_or_else(
        || NONE.to_owned(),
        |(low, high)| format!("{} to {}", signed(low), signed(high)),
    );
    let p = match (row.exact, row.adjusted_p_value) {
        (true, _) => "exact".to_owned(),
        (false, Some(p)) => N.short(p),
        (false, None) => NONE.to_owned(),
    };
    let shift = row.shift.map_or_else(
        || NONE.to_owned(),
        |shift| {
            let relative = row.relative.filter(|_| row.unit != "1");
            match relative {
                Some(share) => {
                    let sign = if share < 0.0 { "−" } else { "+" };
                    format!("{} ({sign}{})", signed(shift), N.percent(share.abs()))
                }
                None => signed(shift),
            }
        },
    );
    let mark = match (row.differs, row.is_worse) {
        (true, true) => "worse",
        (true, false) => "better",
        (false, _) => "",
    };
    vec![
        name(row),
        told(row.base),
        told(row.new),
        shift,
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
        let name = &comparison.names[usize::from(unmatched.side == 2)];
        let text = format!("Only {name} has {}.", unmatched.what);
        page.paragraph(&text, AnsiColor::Yellow.on_default(), "! ");
    }
    let max = comparison
        .rows
        .iter()
        .any(|row| row.figure == "max" && row.differs);
    if max {
        page.paragraph(
            "The longest of a run grows with its length: compare runs that measured for the same time.",
            Style::new().dimmed(),
            "",
        );
    }
}
