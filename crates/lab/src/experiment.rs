//! What all experiments have in common.
//!
//! A study names an experiment and gives it parameters; what an experiment takes, within which
//! bounds and with which defaults, is said by itself, as data. So one reader of study files checks
//! them all, and one text explains them all.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use tare_results::model::CellPlan;
use tare_results::target::TargetSpec;
use tare_results::work::Work;

use crate::error::ExperimentError;

/// Is a protocol: which work on which targets, and with which parameters.
pub trait Experiment: Debug + Sync {
    /// Returns the name by which a study calls it.
    fn name(&self) -> &'static str;

    /// Says in a few words what it tells.
    fn summary(&self) -> &'static str;

    /// Lists what a study can say of it, beyond what holds for every experiment.
    fn parameters(&self) -> &'static [Parameter];

    /// Returns one cell for each combination, with its estimated duration, not yet numbered.
    ///
    /// # Errors
    ///
    /// Returns [`ExperimentError`] if a value is out of bounds, values contradict each other, or
    /// there would be more cells than a run can have.
    fn combinations(
        &self,
        place: &Place,
        values: &Values,
    ) -> Result<Vec<CellPlan>, ExperimentError>;

    /// Says how often a combination runs if `asked` runs are asked for: as often, unless it is there for
    /// another purpose than to be repeated.
    fn runs_of(&self, _cell: &CellPlan, asked: u32) -> u32 {
        asked
    }

    /// Makes the work of words that the agent takes, if they are a plan of this experiment.
    fn work(&self, words: &str) -> Option<Work>;

    /// Says in a sentence what is to be known of a cell before it runs: which samples it lists, for example.
    fn announces(&self, cell: &CellPlan) -> Option<String>;

    /// Says whether the loads run one after the other in one cell, so that one may come again, instead of
    /// each in a cell of its own.
    fn has_phases(&self, _values: &Values) -> bool {
        false
    }
}

/// Says where an experiment runs: what holds for every one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Targets.
    pub targets: Vec<TargetSpec>,
    /// Loads, as written on the command line.
    pub loads: Vec<String>,
    /// CPU that the workloads are pinned to.
    pub cpu: u32,
    /// Time after which a cell counts as hung; by the estimate if None.
    pub cell_limit: Option<Duration>,
}

/// Describes one parameter of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name in a study.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// Whether it takes several values, each of which makes combinations of its own.
    pub many: bool,
    /// What it is unless said otherwise, in words.
    pub default: &'static str,
    /// What it means, with its unit.
    pub meaning: &'static str,
    /// Says whether it has a bearing, given the other values.
    pub applies: fn(&Values) -> bool,
}

/// Says which values a parameter takes.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// Whole numbers from `least` to `most`.
    Number {
        /// Least value.
        least: u64,
        /// Greatest value.
        most: u64,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// A text of a form of its own.
    Text {
        /// Describes the form.
        wanted: &'static str,
        /// Says whether a text has it.
        fits: fn(&str) -> bool,
    },
}

/// Holds the values that a study gives to an experiment, by parameter. What is not given is not in
/// it. A parameter of one value has a list of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    numbers: BTreeMap<&'static str, Vec<u64>>,
    texts: BTreeMap<&'static str, Vec<String>>,
}

impl Values {
    /// Gives numbers to a parameter.
    pub fn set_numbers(&mut self, name: &'static str, numbers: Vec<u64>) {
        self.numbers.insert(name, numbers);
    }

    /// Gives words or texts to a parameter.
    pub fn set_texts(&mut self, name: &'static str, texts: Vec<String>) {
        self.texts.insert(name, texts);
    }

    /// Returns the numbers given to a parameter; none if it was left out.
    #[must_use]
    pub fn numbers(&self, name: &str) -> &[u64] {
        self.numbers.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the words or texts given to a parameter; none if it was left out.
    #[must_use]
    pub fn texts(&self, name: &str) -> &[String] {
        self.texts.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the number given to a parameter that takes one.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.numbers(name).first().copied()
    }

    /// Returns the word or text given to a parameter that takes one.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).first().map(String::as_str)
    }

    /// Says whether a parameter was given.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.numbers.contains_key(name) || self.texts.contains_key(name)
    }
}
