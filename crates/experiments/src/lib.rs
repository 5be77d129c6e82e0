//! The experiments, each a folder, and the one table that names them.
//!
//! * [`noise`]: kot-2019, how often and how long short work is delayed;
//! * [`wakeup`]: landolfi-2018, how late a sleeping thread is woken.
#![forbid(unsafe_code)]

pub mod noise;
mod published;
pub mod wakeup;

use tare_lab::Experiment;
use tare_report::{Catalogue, View};
use tare_results::work::Work;

use crate::noise::Noise;
use crate::wakeup::Wakeup;

macro_rules! experiments {
    ($($experiment:expr),* $(,)?) => {
        /// The experiments that exist, as they are run.
        pub const EXPERIMENTS: &[&dyn Experiment] = &[$($experiment),*];
        /// The experiments that exist, as they are shown.
        const VIEWS: &[&dyn View] = &[$($experiment),*];
    };
}

// The one table, in the order of reports.
experiments![&Noise, &Wakeup];

/// What reports can show.
pub const CATALOGUE: &Catalogue = &Catalogue {
    views: VIEWS,
    studies: published::STUDIES,
};

/// Finds an experiment by its name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Experiment> {
    let mut all = EXPERIMENTS.iter();
    all.find(|experiment| experiment.name() == name).copied()
}

/// Makes the work of words that somebody wrote by hand, if they are a plan that the agent takes.
#[must_use]
pub fn work(words: &str) -> Option<Work> {
    let mut experiments = EXPERIMENTS.iter();
    experiments.find_map(|experiment| experiment.work(words))
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
        for experiment in EXPERIMENTS {
            assert!(seen.insert(experiment.name()));
            assert_eq!(find(experiment.name()).unwrap().name(), experiment.name());
            let mut parameters = HashSet::new();
            for parameter in experiment.parameters() {
                assert!(parameters.insert(parameter.name), "{}", parameter.name);
                assert!(!parameter.meaning.ends_with('.'), "{}", parameter.name);
            }
        }
        assert!(find("nosie").is_none());
    }

    #[test]
    fn an_experiment_is_run_and_shown_under_one_name() {
        let run: Vec<_> = EXPERIMENTS
            .iter()
            .map(|experiment| experiment.name())
            .collect();
        let shown: Vec<_> = VIEWS.iter().map(|view| view.experiment()).collect();
        assert_eq!(run, shown);
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
        for experiment in EXPERIMENTS {
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
