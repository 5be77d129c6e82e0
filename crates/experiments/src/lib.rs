//! The experiments, each a folder, and the one table that names them.
//!
//! * [`noise`]: kot-2019, how often and how long short work is delayed;
//! * [`wakeup`]: landolfi-2018, how late a sleeping thread is woken.
#![forbid(unsafe_code)]

pub mod noise;
mod published;
pub mod wakeup;

use std::sync::OnceLock;

use tare_lab::Experiment;
use tare_report::{Catalogue, View};
use tare_results::work::Work;

use crate::noise::Noise;
use crate::wakeup::Wakeup;

/// An experiment: how it is run and how it is shown.
pub trait Entry: Experiment + View {}

impl<T: Experiment + View> Entry for T {}

/// The experiments, in the order of reports.
pub type Table = &'static [&'static dyn Entry];

/// The experiments of tare.
pub const TABLE: Table = &[&Noise, &Wakeup];

static INSTALLED: OnceLock<Table> = OnceLock::new();

/// Takes another table, which a program of its own has; `docs/adding-an-experiment.md` shows one. Must come before anything
/// asks for an experiment; afterwards it has no effect.
pub fn install(table: Table) {
    let _ = INSTALLED.set(table);
}

/// Returns the experiments that exist.
#[must_use]
pub fn experiments() -> Table {
    INSTALLED.get_or_init(|| TABLE)
}

/// Finds an experiment by its name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Experiment> {
    let mut all = experiments().iter();
    all.find(|entry| entry.name() == name)
        .map(|entry| *entry as &dyn Experiment)
}

/// Returns what reports can show.
#[must_use]
pub fn catalogue() -> &'static Catalogue {
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    CATALOGUE.get_or_init(|| {
        let views = || experiments().iter().map(|entry| *entry as &dyn View);
        let studies = views().flat_map(View::studies).chain(published::STUDIES);
        Catalogue {
            views: views().collect(),
            studies: studies.copied().collect(),
        }
    })
}

/// Makes the work of words that somebody wrote by hand, if they are a plan that the agent takes.
#[must_use]
pub fn work(words: &str) -> Option<Work> {
    let mut all = experiments().iter();
    all.find_map(|experiment| experiment.work(words))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::process::Command;

    use tare_lab::experiment::Place;
    use tare_lab::parameter::Values;

    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        let mut seen = HashSet::new();
        for experiment in TABLE {
            assert!(seen.insert(experiment.name()));
            assert_eq!(find(experiment.name()).unwrap().name(), experiment.name());
            assert_eq!(experiment.experiment(), experiment.name());
            let mut parameters = HashSet::new();
            for parameter in experiment.parameters() {
                assert!(parameters.insert(parameter.name), "{}", parameter.name);
                assert!(!parameter.meaning.ends_with('.'), "{}", parameter.name);
            }
        }
        assert!(find("nosie").is_none());
    }

    #[test]
    fn what_runs_and_shows_experiments_depends_on_none() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "tree",
            "--offline",
            "--locked",
            "--edges=normal",
            "--prefix=none",
        ]);
        cargo.args(
            ["results", "lab", "report", "targets"].map(|name| format!("--package=tare-{name}")),
        );
        let tree = cargo.output().unwrap();
        let tree = String::from_utf8(tree.stdout).unwrap();
        assert!(
            tree.contains("tare-wire") && !tree.contains("tare-experiments"),
            "{tree}"
        );
    }

    #[test]
    fn every_experiment_makes_its_default_cells() {
        let place = Place {
            targets: vec![tare_targets::process::spec()],
            loads: vec!["idle".to_owned()],
            cpu: 0,
            cpus: None,
            cell_limit: None,
            is_watched: false,
        };
        for experiment in TABLE {
            let cells = experiment.combinations(&place, &Values::default()).unwrap();
            assert!(!cells.is_empty());
            for cell in cells {
                assert_eq!(cell.experiment, experiment.name());
                assert!(cell.estimate_seconds > 0.0);
                assert!(cell.limit_seconds > cell.estimate_seconds);
            }
        }
    }
}
