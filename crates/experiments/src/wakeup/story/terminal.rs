//! Wake-ups on a terminal: a table per phase, and the worst with who is to blame.

use anstyle::Style;
use comfy_table::CellAlignment;

use super::{Interleaved, N, Page, table};
use crate::wakeup::WakeupCombination;
use crate::wakeup::table::{COLUMNS, Column, Line, WIDE, WORST, phases, refused, worst};
use crate::wakeup::words::place;

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
            .filter(|column| self.width >= column.from)
            .collect();
        let mut head = vec!["under"];
        head.extend(columns.iter().map(|column| column.name));
        let mut rows = Interleaved::new(table(&head));
        for line in phases(N, combinations, &columns) {
            match line {
                Line::Heading(heading) => rows.heading(heading),
                Line::Row(name, cells) => {
                    let cells = std::iter::once(name).chain(cells);
                    rows.table.add_row(cells.collect::<Vec<_>>());
                }
            }
        }
        self.interleaved(rows);
        if let Some(refused) = refused(N, combinations) {
            self.paragraph(&refused, Style::new().dimmed(), "");
        }
    }

    /// Writes the worst wake-ups: of each place if their reasons are known, else only a few.
    fn worst(&mut self, combinations: &[&WakeupCombination]) {
        const UNTRACED: usize = 3;
        const UNTRACED_COLUMNS: usize = 4;
        if combinations.iter().all(|c| c.worst.is_empty()) {
            return;
        }
        let blamed = combinations
            .iter()
            .any(|c| c.worst.iter().any(|w| w.blame.is_some()));
        self.heading("Worst wake-ups");
        // Without a trace there are no parts. The culprit takes more room than all figures together.
        let columns = match (blamed, self.width >= WIDE) {
            (false, _) => UNTRACED_COLUMNS,
            (true, false) => WORST.len() - 1,
            (true, true) => WORST.len(),
        };
        let mut rows = Interleaved::new(table(&WORST[..columns]));
        for left in [3, WORST.len() - 1] {
            if let Some(column) = rows.table.column_mut(left) {
                column.set_cell_alignment(CellAlignment::Left);
            }
        }
        for combination in combinations.iter().filter(|c| !c.worst.is_empty()) {
            rows.heading(place(combination));
            let shown = if blamed {
                combination.worst.len()
            } else {
                UNTRACED
            };
            for figure in combination.worst.iter().take(shown) {
                let mut cells = worst(N, combination, figure);
                let culprit = cells.split_off(columns).pop();
                rows.table.add_row(cells);
                if let Some(culprit) = culprit.filter(|_| figure.blame.is_some()) {
                    rows.below(culprit);
                }
            }
        }
        self.interleaved(rows);
    }
}
