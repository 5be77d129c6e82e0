//! The experiments, each a folder, and the one table that names them.
//!
//! * [`noise`]: kot-2019, how often and how long short work is delayed;
//! * [`wakeup`]: landolfi-2018, how late a sleeping thread is woken;
//! * [`start`]: calder-2020, how long instances take to start, and which rate they sustain;
//! * [`primitives`]: cse221-2022, what the primitives of an operating system cost, against what
//!   they should cost;
//! * [`service`]: after includeos-2015, what a network service costs for each request;
//! * [`stream`]: after includeos-2015, the bandwidth of memory.
#![forbid(unsafe_code)]

pub mod noise;
pub mod primitives;
mod published;
pub mod service;
pub mod start;
pub mod stream;
pub mod wakeup;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use tare_figures::words::list;
use tare_lab::units::counted;
use tare_lab::{Driven, Experiment, Stage};
use tare_pages::{Catalogue, View};
use tare_results::model::{Cell, CellPlan, Plan, Samples};
use tare_results::target::Clock;
use tare_results::work::Work;
use tare_stats::{Kind, Level};

use crate::noise::Noise;
use crate::primitives::Primitives;
use crate::service::Service;
use crate::start::Start;
use crate::stream::Stream;
use crate::wakeup::Wakeup;

/// An experiment: how it is run and how it is shown.
pub trait Entry: Experiment + View {}

impl<T: Experiment + View> Entry for T {}

/// The experiments, in the order of reports.
pub type Table = &'static [&'static dyn Entry];

/// The experiments of tare.
pub const TABLE: Table = &[&Noise, &Wakeup, &Start, &Primitives, &Service, &Stream];

static INSTALLED: OnceLock<Table> = OnceLock::new();

/// Takes another table, which a program of its own has; `docs/adding-an-experiment.md` shows one.
/// Must come before anything asks for an experiment; afterwards it has no effect.
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

/// Plays a cell as its experiment does; that of an experiment which is not known, by one instance.
///
/// # Errors
///
/// Returns why there is no record.
pub fn drive(stage: &mut Stage<'_>) -> Driven {
    match find(&stage.plan().experiment) {
        Some(experiment) => experiment.drive(stage),
        None => stage.one(),
    }
}

/// Checks what a cell has measured, as its report will.
///
/// # Errors
///
/// Returns the problem with the cell.
pub fn check(plan: &Plan, cell: &Cell, samples: &Samples) -> Result<(), String> {
    catalogue().check(plan, cell, samples)
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

/// Says which figures of a cell have no interval if it runs so often; `None` if all have, or if
/// more runs would be of no use: of a traced cell, which is there to name culprits, and of counted
/// instructions, which repeat exactly.
#[must_use]
pub fn without_interval(cell: &CellPlan, runs: u32) -> Option<String> {
    const KINDS: [(Kind, &str); 4] = [
        (Kind::Order, "quantiles"),
        (Kind::Mean, "means"),
        (Kind::Rate, "rates"),
        (Kind::Share, "shares"),
    ];
    if cell.is_traced() || cell.target.clock == Clock::Instructions {
        return None;
    }
    let measures = catalogue().view(&cell.experiment)?.measures();
    let has = |kind| {
        let mut figures = measures.iter().flat_map(|measure| measure.figures);
        figures.any(|figure| figure.kind() == kind)
    };
    let mut lacking: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (kind, name) in KINDS.into_iter().filter(|(kind, _)| has(*kind)) {
        let needed = kind.runs_needed(Level::P95);
        if u64::from(runs) < needed {
            lacking.entry(needed).or_default().push(name.to_owned());
        }
    }
    let lacking = lacking.iter();
    let lacking = lacking.map(|(needed, names)| format!("{} ({needed} runs needed)", list(names)));
    let lacking: Vec<String> = lacking.collect();
    let runs = counted(runs, "run", "runs");
    (!lacking.is_empty()).then(|| format!("with {runs}, no intervals for {}", lacking.join(", ")))
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

    use tare_lab::experiment::Conditions;
    use tare_lab::parameter::{Takes, Values};
    use tare_results::model::Schedule;

    use super::*;

    fn conditions() -> Conditions {
        Conditions {
            targets: vec![tare_targets::process::spec()],
            loads: vec![Schedule::idle()],
            cpu: 0,
            cpus: None,
            cell_limit: None,
            is_watched: false,
        }
    }

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
    fn the_defaults_that_are_told_are_those_that_are_taken() {
        let conditions = conditions();
        for experiment in TABLE {
            let of = |values: &Values| experiment.combinations(&conditions, values).unwrap();
            let expected = of(&Values::default());
            let mut checked = 0;
            let parameters = experiment.parameters().iter();
            for parameter in parameters.filter(|one| !matches!(one.takes, Takes::Action)) {
                // What comes after is for other cases, which the experiments' own tests look at.
                let (default, others) = match parameter.default.split_once([';', ':']) {
                    Some((default, _)) => (default, true),
                    None => (parameter.default, false),
                };
                let Ok(value) = parameter.read(&default.replace(' ', "")) else {
                    continue;
                };
                let mut values = Values::default();
                values.give(parameter.name, vec![value]);
                let cells = of(&values);
                let same = cells
                    .iter()
                    .zip(&expected)
                    .filter(|(a, b)| a.work == b.work);
                let wanted = if others { 1 } else { expected.len() };
                assert!(same.count() >= wanted, "{}: {cells:#?}", parameter.name);
                checked += 1;
            }
            assert!(checked >= 2, "{}: {checked}", experiment.name());
        }
    }

    #[test]
    fn too_few_runs_are_told_with_what_they_leave_without_an_interval() {
        let cell = |target: &str| {
            let target = tare_targets::spec::parse(target).unwrap().spec();
            CellPlan::new(noise::NAME, target, "gap", Work::new("gap", ""))
        };
        let mut process = cell("process");
        let told = |cell: &CellPlan, runs| without_interval(cell, runs).unwrap_or_default();
        assert_eq!(
            told(&process, 1),
            "with 1 run, no intervals for means, rates and shares (3 runs needed), quantiles (6 runs needed)"
        );
        assert_eq!(
            told(&process, 5),
            "with 5 runs, no intervals for quantiles (6 runs needed)"
        );
        assert_eq!(told(&process, 6), "");
        assert_eq!(told(&cell("linux,clock=instructions"), 1), "");
        process.work.rights.kernel_events = true;
        assert_eq!(told(&process, 1), "");
        let defaults = Values::default();
        for experiment in TABLE {
            let default = experiment.default_runs(&defaults);
            let cell = CellPlan {
                experiment: experiment.name().to_owned(),
                ..cell("process")
            };
            assert_eq!(told(&cell, default), "");
        }
    }

    #[test]
    fn every_experiment_makes_its_default_cells() {
        let conditions = conditions();
        for experiment in TABLE {
            let cells = experiment
                .combinations(&conditions, &Values::default())
                .unwrap();
            assert!(!cells.is_empty());
            for cell in cells {
                assert_eq!(cell.experiment, experiment.name());
                assert!(cell.estimate_seconds > 0.0);
                assert!(cell.limit_seconds > cell.estimate_seconds);
            }
        }
    }
}
