//! Wake-ups on a terminal: a table per phase, and the worst with who is to blame.

use anstyle::Style;
use comfy_table::{CellAlignment, Table};

use super::{N, Page, table};
use crate::wakeup::WakeupCombination;
use crate::wakeup::table::{COLUMNS, Column, Line, WORST, phases, refused, worst};
use crate::wakeup::words::place;

/// Marks a line of a table that stands for a heading; no load begins with it.
const HEADING: char = '§';

/// Is the width from which the table has all columns.
const WIDE: usize = 130;

impl Page {
    /// Writes what was measured of wake-ups.
    pub(super) fn wakeups(&mut self, combinations: &[WakeupCombination]) {
        let (traced, plain): (Vec<&WakeupCombination>, Vec<&WakeupCombination>) =
            combinations.iter().partition(|c| c.traced);
        if !plain.is_empty() {
            self.phases("Wake-up latency, µs", &plain);
        }
        if !traced.is_empty() {
            self.phases(
                "With the kernel's events recorded, which costs time, µs",
                &traced,
            );
        }
        // Of what was traced the reasons are known.
        let told: Vec<&WakeupCombination> = if traced.is_empty() { plain } else { traced };
        self.worst(&told);
    }

    fn phases(&mut self, heading: &str, combinations: &[&WakeupCombination]) {
        self.heading(heading);
        self.paragraph(
            "Of the wake-ups that happened, as cyclictest counts; resp. is of all activations, each missed one with \
             what it waited. The longest is the same for both.",
            Style::new().dimmed(),
            "",
        );
        let columns: Vec<Column> = COLUMNS
            .into_iter()
            .filter(|column| self.width >= WIDE || !column.wide)
            .collect();
        let mut head = vec!["under"];
        head.extend(columns.iter().map(|column| column.name));
        let mut rows = table(&head);
        let mut headings = Vec::new();
        for line in phases(N, combinations, &columns) {
            match line {
                Line::Heading(heading) => {
                    rows.add_row([format!("{HEADING}{}", headings.len())]);
                    headings.push(heading);
                }
                Line::Row(name, cells) => {
                    rows.add_row(std::iter::once(name).chain(cells).collect::<Vec<_>>());
                }
            }
        }
        self.with_headings(rows, &headings);
        if let Some(refused) = refused(N, combinations) {
            self.paragraph(&refused, Style::new().dimmed(), "");
        }
    }

    /// Writes a table whose lines that begin with [`HEADING`] stand for headings, by number.
    fn with_headings(&mut self, rows: Table, headings: &[String]) {
        let from = self.text.len();
        self.table(rows);
        for line in self.text.split_off(from).lines() {
            let number = line
                .strip_prefix(HEADING)
                .and_then(|n| n.trim().parse::<usize>().ok());
            match number.and_then(|number| headings.get(number)) {
                Some(heading) => {
                    // A blank line sets places apart, but not the first from the head of the table.
                    if number != Some(0) {
                        self.text.push('\n');
                    }
                    self.paragraph(heading, Style::new().dimmed(), "");
                }
                None => self.text.push_str(&format!("{line}\n")),
            }
        }
    }

    /// Writes the worst wake-ups: of each place if their reasons are known, else only a few.
    fn worst(&mut self, combinations: &[&WakeupCombination]) {
        const UNTRACED: usize = 3;
        if combinations.iter().all(|c| c.worst.is_empty()) {
            return;
        }
        let blamed = combinations
            .iter()
            .any(|c| c.worst.iter().any(|w| w.blame.is_some()));
        self.heading("Worst wake-ups");
        // Without a trace there are no parts.
        let columns = if blamed { WORST.len() } else { 4 };
        let mut rows = table(&WORST[..columns]);
        if let Some(culprit) = rows.column_mut(8) {
            culprit.set_cell_alignment(CellAlignment::Left);
        }
        if let Some(load) = rows.column_mut(3) {
            load.set_cell_alignment(CellAlignment::Left);
        }
        let mut headings = Vec::new();
        for combination in combinations.iter().filter(|c| !c.worst.is_empty()) {
            rows.add_row([format!("{HEADING}{}", headings.len())]);
            headings.push(place(combination));
            let shown = if blamed {
                combination.worst.len()
            } else {
                UNTRACED
            };
            for figure in combination.worst.iter().take(shown) {
                let mut cells = worst(N, combination, figure);
                cells.truncate(columns);
                rows.add_row(cells);
            }
        }
        self.with_headings(rows, &headings);
    }
}
