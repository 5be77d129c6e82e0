//! CSV files with the columns of kot-2019, exactly and in its order, so that a script made for its
//! data reads ours: one for each target and workload, with a line for each cell.
//!
//! A figure that could not be seen in full is an empty field: the format has no room for "at
//! least". So is the size of a class without delays.

use std::collections::BTreeSet;

use tare_figures::rows::{CellData, counts};
use tare_results::csv::table;
use tare_results::model::Schedule;

use super::measures::{Spin, classified};

const HEADER: &str =
    "limit-or-size,repetitions,mean,sd,countA,sizeA,countB,sizeB,countC,sizeC,countD,sizeD";

/// Lines of files, by target, workload, load, and whether stamps were those of the study.
#[derive(Debug, Default)]
pub(super) struct Files(Vec<(Key, Vec<Vec<String>>)>);

/// The longest name before its suffix, in bytes: Linux takes 255 (NAME_MAX).
const NAME_BYTES: usize = 200;

type Key = (String, String, Schedule, bool);

impl Files {
    /// Adds the line of a cell.
    pub fn add(&mut self, data: &CellData<'_>) -> Result<(), String> {
        let plan = data.plan();
        let spin = Spin::of(data)?;
        // A spin has no stamps around it.
        let is_published = plan.labels.get("timing") == Some("published") && spin.is_none();
        let cpu = data
            .cpu
            .map_or_else(String::new, |cpu| format!("-cpu{cpu}"));
        let (target, workload) = (plan.target.text.clone(), format!("{}{cpu}", plan.work.id));
        let key = (target, workload, plan.load.clone(), is_published);
        let line = line(data, spin.as_ref())?;
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
            .map(|(key, lines)| (file_name(key, &mut taken), table(HEADER, lines.clone())))
            .collect()
    }
}

fn line(data: &CellData<'_>, spin: Option<&Spin<'_>>) -> Result<Vec<String>, String> {
    let text = |number: Option<f64>| number.map_or_else(String::new, |n| n.to_string());
    let (n, mean, sd) = match (spin, data.sets("duration").next()) {
        (Some(spin), _) => {
            let (mean, sd) = spin.iteration()?;
            (spin.head.n, Some(mean), sd)
        }
        (None, Some((_, set))) => {
            let counts = counts(set)?;
            let moments = counts.moments();
            let sd = moments.map(|of| of.population_sd);
            (counts.total(), moments.map(|of| of.mean), sd)
        }
        (None, None) => return Err("its record has no samples of noise".to_owned()),
    };
    let size = data.plan().labels.get("size").unwrap_or_default();
    let mut fields = vec![size.to_owned(), n.to_string(), text(mean), text(sd)];
    for (_, tally) in classified(data)? {
        fields.push(tally.map_or_else(String::new, |tally| tally.count.to_string()));
        fields.push(text(tally.and_then(|tally| tally.mean_cycles())));
    }
    Ok(fields)
}

/// Returns `noise-<target>-<workload>.csv`, with load and timing if they are not the usual ones.
fn file_name((target, workload, load, is_published): &Key, taken: &mut BTreeSet<String>) -> String {
    let mut name = format!("noise-{}-{}", plain(target), plain(workload));
    if !load.is_idle() {
        name.push_str(&format!("-{}", plain(load.as_str())));
    }
    if *is_published {
        name.push_str("-published");
    }
    // A suffix needs room, too.
    name.truncate(NAME_BYTES);
    // Targets may differ only in characters that a file name can't have, or behind its end.
    let mut names = (2..).map(|number| format!("{name}-{number}"));
    let mut unique = name.clone();
    while !taken.insert(unique.clone()) {
        unique = names.next().unwrap_or_default();
    }
    unique + ".csv"
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
            let [target, workload] = [target, "prime"].map(str::to_owned);
            let load = Schedule::parse(load).unwrap();
            file_name(&(target, workload, load, is_published), &mut taken)
        };
        for (target, load, is_published, file) in [
            ("process", "idle", false, "noise-process-prime.csv"),
            ("linux,a=b", "idle", false, "noise-linux-a-b-prime.csv"),
            ("linux,a:b", "idle", false, "noise-linux-a-b-prime-2.csv"),
            ("../up", "dd", true, "noise--up-prime-dd-published.csv"),
        ] {
            assert_eq!(name(target, load, is_published), file);
        }
        let long = format!("linux,cmdline={}", "x".repeat(300));
        let names = [(); 2].map(|()| name(&long, "idle", false));
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| name.len() < 255), "{names:?}");
    }
}
