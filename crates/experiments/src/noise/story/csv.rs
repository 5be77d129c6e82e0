//! CSV with the columns of the studies: kot-2019's in one file for each target and workload, landolfi-2018's in one.
//!
//! The columns of noise are the study's, exactly and in its order, so a script made for its data reads ours.
//! A figure that could not be seen in full is an empty field: the format has no room for "at least".
//! So is the size of a class without delays.

use std::collections::BTreeSet;

use tare_results::csv::table;
use tare_results::model::{Cell, CellPlan};

use crate::analysis::{Analysis, CellFigures, CellSummary, ClassFigure, Observed};
use crate::wakeup;

/// Is the first line.
pub const HEADER: &str =
    "limit-or-size,repetitions,mean,sd,countA,sizeA,countB,sizeB,countC,sizeC,countD,sizeD";

/// Returns the files with their names. Those of noise have one row per cell, in running order.
#[must_use]
pub fn files(analysis: &Analysis) -> Vec<(String, String)> {
    let mut files: Vec<(Key<'_>, Vec<Vec<String>>)> = Vec::new();
    for (cell, figures) in analysis.cells().iter().zip(&analysis.summary().cells) {
        let key = Key::of(cell);
        let row = row(&cell.plan, figures);
        match files.iter_mut().find(|(known, _)| *known == key) {
            Some((_, rows)) => rows.push(row),
            None => files.push((key, vec![row])),
        }
    }
    let mut taken = BTreeSet::new();
    let wakeups = wakeup::csv::file(&analysis.summary().wakeups);
    let wakeups = wakeups.map(|text| (wakeup::csv::FILE.to_owned(), text));
    files
        .into_iter()
        .map(|(key, rows)| (key.file_name(&mut taken), table(HEADER, rows)))
        .chain(wakeups)
        .collect()
}

/// Is what the cells of one file have in common.
#[derive(PartialEq, Eq)]
struct Key<'a> {
    target: &'a str,
    workload: &'a str,
    load: &'a str,
    timing: &'a str,
}

impl<'a> Key<'a> {
    fn of(cell: &'a Cell) -> Self {
        let plan = &cell.plan;
        Self {
            target: &plan.target.text,
            workload: &plan.workload,
            load: &plan.load,
            timing: &plan.timing,
        }
    }

    /// Returns `noise-<target>-<workload>.csv`, with load and timing if they are not the usual ones.
    fn file_name(&self, taken: &mut BTreeSet<String>) -> String {
        let mut name = format!("noise-{}-{}", plain(self.target), plain(self.workload));
        if self.load != "idle" {
            name.push_str(&format!("-{}", plain(self.load)));
        }
        // A spin has no stamps around it.
        if self.timing == "published" && self.workload != "gap" {
            name.push_str("-published");
        }
        // Targets may differ only in characters that a file name cannot have.
        let mut unique = name.clone();
        let mut number = 2;
        while !taken.insert(unique.clone()) {
            unique = format!("{name}-{number}");
            number += 1;
        }
        unique + ".csv"
    }
}

/// Replaces what a file name had better not contain.
fn plain(name: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let replaced: String = name
        .chars()
        .map(|c| if keep(c) { c } else { '-' })
        .collect();
    replaced.trim_start_matches('.').to_owned()
}

fn row(plan: &CellPlan, cell: &CellSummary) -> Vec<String> {
    let (repetitions, mean, sd, classes) = match &cell.figures {
        CellFigures::Timed(timed) => (
            timed.repetitions,
            timed.raw.mean,
            Some(timed.raw.sd),
            &timed.classes,
        ),
        CellFigures::Gap(gap) => (gap.reads, gap.mean, gap.sd, &gap.classes),
    };
    let mut fields = vec![
        plan.size.map(|size| size.to_string()).unwrap_or_default(),
        repetitions.to_string(),
        mean.cycles.to_string(),
        sd.map(|sd| sd.cycles.to_string()).unwrap_or_default(),
    ];
    for class in classes {
        fields.extend(class_fields(class));
    }
    fields
}

/// Returns count and size, both empty unless all of the class could be seen.
fn class_fields(class: &ClassFigure) -> [String; 2] {
    if class.observed != Observed::Fully {
        return [String::new(), String::new()];
    }
    [
        class
            .count
            .map(|count| count.to_string())
            .unwrap_or_default(),
        class
            .mean
            .map(|mean| mean.cycles.to_string())
            .unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_plain_and_unique() {
        let key = |target, load, timing| Key {
            target,
            workload: "prime",
            load,
            timing,
        };
        let mut taken = BTreeSet::new();
        let mut name = |key: Key<'_>| key.file_name(&mut taken);
        assert_eq!(
            name(key("process", "idle", "fenced")),
            "noise-process-prime.csv"
        );
        assert_eq!(
            name(key("linux,a=b", "idle", "fenced")),
            "noise-linux-a-b-prime.csv"
        );
        assert_eq!(
            name(key("linux,a:b", "idle", "fenced")),
            "noise-linux-a-b-prime-2.csv"
        );
        assert_eq!(
            name(key("../up", "dd", "published")),
            "noise--up-prime-dd-published.csv"
        );
    }
}
