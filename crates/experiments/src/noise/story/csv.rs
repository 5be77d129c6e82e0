//! CSV files with the columns of kot-2019, exactly and in its order, so that a script made for its data reads ours: one
//! for each target and workload, with a line for each cell.
//!
//! A figure that could not be seen in full is an empty field: the format has no room for "at least". So is the size of a
//! class without delays.

use std::collections::BTreeSet;

use tare_figures::rows::{CellData, counts};
use tare_results::csv::table;

use super::measures::{Spin, classified};

const HEADER: &str =
    "limit-or-size,repetitions,mean,sd,countA,sizeA,countB,sizeB,countC,sizeC,countD,sizeD";

/// Lines of files, by what their cells have in common.
#[derive(Debug, Default)]
pub(super) struct Files(Vec<(Key, Vec<Vec<String>>)>);

#[derive(Debug, PartialEq, Eq)]
struct Key {
    target: String,
    workload: String,
    load: String,
    is_published: bool,
}

impl Files {
    /// Adds the line of a cell.
    pub fn add(&mut self, data: &CellData<'_>, spin: Option<&Spin<'_>>) -> Result<(), String> {
        let plan = data.plan();
        let key = Key {
            target: plan.target.text.clone(),
            workload: plan.work.id.clone(),
            load: plan.load.clone(),
            // A spin has no stamps around it.
            is_published: plan.labels.get("timing") == Some("published") && spin.is_none(),
        };
        let line = line(data, spin)?;
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, lines)) => lines.push(line),
            None => self.0.push((key, vec![line])),
        }
        Ok(())
    }

    /// Returns the files with their names.
    pub fn written(&self) -> Vec<(String, String)> {
        let mut taken = BTreeSet::new();
        let files = self.0.iter();
        files
            .map(|(key, lines)| (key.file_name(&mut taken), table(HEADER, lines.clone())))
            .collect()
    }
}

fn line(data: &CellData<'_>, spin: Option<&Spin<'_>>) -> Result<Vec<String>, String> {
    let text = |number: Option<f64>| number.map_or_else(String::new, |n| n.to_string());
    let size = data.plan().labels.number("size");
    let size = size.map_or_else(String::new, |size| size.to_string());
    let mut fields = match (spin, data.sets("duration").next()) {
        (Some(spin), _) => {
            let (mean, sd) = spin.iteration()?;
            vec![size, spin.head.n.to_string(), mean.to_string(), text(sd)]
        }
        (None, Some((_, set))) => {
            let counts = counts(set)?;
            let (mean, sd) = counts
                .moments()
                .map_or((None, None), |of| (Some(of.mean), Some(of.population_sd)));
            vec![size, counts.total().to_string(), text(mean), text(sd)]
        }
        (None, None) => return Err("its record has no samples of noise".to_owned()),
    };
    for (_, tally) in classified(data)? {
        fields.push(tally.map_or_else(String::new, |tally| tally.count.to_string()));
        fields.push(text(tally.and_then(|tally| tally.mean_cycles())));
    }
    Ok(fields)
}

impl Key {
    /// Returns `noise-<target>-<workload>.csv`, with load and timing if they are not the usual ones.
    fn file_name(&self, taken: &mut BTreeSet<String>) -> String {
        let mut name = format!("noise-{}-{}", plain(&self.target), plain(&self.workload));
        if self.load != "idle" {
            name.push_str(&format!("-{}", plain(&self.load)));
        }
        if self.is_published {
            name.push_str("-published");
        }
        // Targets may differ only in characters that a file name can't have.
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
    let replaced = name.chars().map(|c| if keep(c) { c } else { '-' });
    let replaced: String = replaced.collect();
    replaced.trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_plain_and_unique() {
        let mut taken = BTreeSet::new();
        let mut name = |target: &str, load: &str, is_published| {
            let key = Key {
                target: target.to_owned(),
                workload: "prime".to_owned(),
                load: load.to_owned(),
                is_published,
            };
            key.file_name(&mut taken)
        };
        for (target, load, is_published, file) in [
            ("process", "idle", false, "noise-process-prime.csv"),
            ("linux,a=b", "idle", false, "noise-linux-a-b-prime.csv"),
            ("linux,a:b", "idle", false, "noise-linux-a-b-prime-2.csv"),
            ("../up", "dd", true, "noise--up-prime-dd-published.csv"),
        ] {
            assert_eq!(name(target, load, is_published), file);
        }
    }
}
