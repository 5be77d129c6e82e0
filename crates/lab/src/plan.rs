//! From combinations to the plan of a run: cells in blocks, numbered in running order.
//!
//! Every experiment and every study comes through here, so that all are interleaved by the same
//! rule ([`order`]).

use std::collections::{HashMap, HashSet};

use tare_results::model::{CellPlan, Plan, SCHEMA, SettingPlan, StudyPlan};
use tare_results::target::TargetSpec;
use tare_targets::{spec, start};

use crate::error::ExperimentError;
use crate::estimate::LIMIT_FACTOR;
use crate::experiment::{Conditions, Experiment};
use crate::ladder::upwards;
use crate::order;
use crate::parameter::{Parameter, Values};

/// The greatest number of cells of a plan: their folders are named by four digits or more, and
/// a run of more is better split.
pub const MOST_CELLS: u64 = 100_000;

/// The part of a plan that describes the whole run, whatever is measured.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// Seed of the order within blocks.
    pub seed: u64,
    /// CPU that the workloads are pinned to.
    pub cpu: u32,
    /// Why that CPU.
    pub cpu_reason: String,
    /// Kernel settings to change for the time of the run.
    pub settings: Vec<SettingPlan>,
    /// Whether an engine that does not run is started for the cells that need it.
    pub start_engine: bool,
    /// The command line, program name first.
    pub command: Vec<String>,
    /// The study that asks for it, if one does.
    pub study: Option<StudyPlan>,
    /// How long targets are taken to need to start.
    pub starts: Starts,
}

/// The known times that targets need to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Starts {
    /// Their usual need, on any machine.
    #[default]
    Guessed,
    /// Their need when they last ran on this machine.
    Remembered,
}

/// A cell that is to be repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeated {
    /// The cell, not yet numbered.
    pub cell: CellPlan,
    /// How often it runs.
    pub runs: u32,
}

/// Makes the plan of one experiment: each combination as often as `runs` says.
///
/// # Errors
///
/// Returns [`ExperimentError`] if a parameter is out of bounds or there is nothing to run.
pub fn of_one(
    experiment: &dyn Experiment,
    conditions: &Conditions,
    values: &Values,
    runs: u32,
    frame: Frame,
) -> Result<Plan, ExperimentError> {
    let cells = combinations(experiment, conditions, values, frame.starts)?;
    let cells: Vec<Repeated> = cells
        .into_iter()
        .map(|cell| Repeated {
            runs: experiment.runs_of(&cell, runs),
            cell,
        })
        .collect();
    assemble(&cells, frame)
}

/// Returns one cell for each combination of an experiment, whose estimate includes the start of its
/// target. So does the limit have that, unless it is given.
///
/// # Errors
///
/// Returns [`ExperimentError`] if a parameter is out of bounds, or has no effect.
pub fn combinations(
    experiment: &dyn Experiment,
    conditions: &Conditions,
    values: &Values,
    starts: Starts,
) -> Result<Vec<CellPlan>, ExperimentError> {
    let mut cells = experiment.combinations(conditions, values)?;
    let mut parameters = experiment.parameters().iter();
    let is_idle = |one: &&Parameter| values.has(one.name) && !(one.applies)(one, values);
    if let Some(idle) = parameters.find(is_idle) {
        return Err(ExperimentError::NoEffect {
            parameter: idle.name,
            meaning: idle.meaning,
        });
    }
    let mut known: HashMap<TargetSpec, f64> = HashMap::new();
    for cell in &mut cells {
        let seconds = match known.get(&cell.target) {
            Some(seconds) => *seconds,
            None => {
                let target = spec::of(&cell.target)?;
                let seconds = match starts {
                    Starts::Guessed => start::guessed(target.as_ref()),
                    Starts::Remembered => start::expected(target.as_ref()),
                };
                known.insert(cell.target.clone(), seconds);
                seconds
            }
        };
        cell.estimate_seconds += seconds;
        if conditions.cell_limit.is_none() {
            cell.limit_seconds += LIMIT_FACTOR * seconds;
        }
    }
    Ok(cells)
}

/// Makes the plan of a run: as many blocks as the most often repeated cell has runs.
///
/// A block holds every cell once, in random order; one that has fewer runs than there are blocks
/// takes part in some of them.
///
/// # Errors
///
/// Returns [`ExperimentError`] if there is nothing to run, or more than fits into one run.
pub fn assemble(cells: &[Repeated], frame: Frame) -> Result<Plan, ExperimentError> {
    at_most(runs_of(cells)?)?;
    let mut paths = HashSet::new();
    for SettingPlan { path, .. } in &frame.settings {
        if !paths.insert(path) {
            return Err(ExperimentError::SettingTwice { path: path.clone() });
        }
    }
    let mut cells = cells.to_vec();
    distinguish(&mut cells);
    let cells = cells.as_slice();
    let planned = in_order(cells, frame.seed, (1, 1));
    Ok(Plan {
        schema: SCHEMA,
        tare_version: env!("CARGO_PKG_VERSION").to_owned(),
        experiment: names(cells),
        created: tare_results::now()?,
        command: frame.command,
        seed: frame.seed,
        cpu: frame.cpu,
        cpu_reason: frame.cpu_reason,
        settings: frame.settings,
        start_engine: frame.start_engine,
        study: frame.study,
        cells: planned,
    })
}

/// Labels cells that differ in nothing but the words of their work by the words in which they
/// differ: figures of cells with the same labels are taken for those of repetitions.
fn distinguish(cells: &mut [Repeated]) {
    let mut alike: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, Repeated { cell, .. }) in cells.iter().enumerate() {
        let CellPlan {
            experiment,
            target,
            load,
            labels,
            ..
        } = cell;
        let key = format!("{experiment}\n{target}\n{load}\n{labels}");
        alike.entry(key).or_default().push(at);
    }
    for same in alike.values().filter(|same| same.len() > 1) {
        let words: Vec<Vec<String>> = same
            .iter()
            .map(|at| {
                let words = cells[*at].cell.work.words.split_whitespace();
                words.map(str::to_owned).collect()
            })
            .collect();
        for (at, own) in same.iter().zip(&words) {
            let cell = &mut cells[*at].cell;
            let differ = own
                .iter()
                .filter(|word| words.iter().any(|all| !all.contains(word)));
            for (key, value) in differ.filter_map(|word| word.split_once('=')) {
                cell.name.push_str(&format!(" {key}={value}"));
                cell.labels = cell.labels.clone().with(key, value);
            }
        }
    }
}

/// Makes the cells that add runs to each combination of a run, as many as `runs` says of its cell,
/// in blocks that follow its own.
///
/// # Errors
///
/// Returns [`ExperimentError`] if there is nothing to add, or more than fits into one run.
pub fn more_runs(
    plan: &Plan,
    runs: impl Fn(&CellPlan) -> u32,
) -> Result<Vec<CellPlan>, ExperimentError> {
    let mut known = HashSet::new();
    let combinations = plan.cells.iter();
    let combinations = combinations.filter(|cell| known.insert(cell.combination()));
    let cells = combinations.map(|cell| Repeated {
        cell: cell.clone(),
        runs: runs(cell),
    });
    let cells: Vec<Repeated> = cells.collect();
    at_most(plan.cells.len() as u64 + runs_of(&cells)?)?;
    let id = plan.cells.len() as u32 + 1;
    let block = plan.cells.iter().map(|cell| cell.block).max().unwrap_or(0) + 1;
    // Another order than that of the blocks before, and the same again for the same run.
    Ok(in_order(
        &cells,
        plan.seed.wrapping_add(block.into()),
        (id, block),
    ))
}

/// Counts the runs of cells, of which there must be some.
fn runs_of(cells: &[Repeated]) -> Result<u64, ExperimentError> {
    let what = match cells {
        [] => "no targets or workloads",
        _ => "the number of runs is 0",
    };
    match cells.iter().map(|repeated| u64::from(repeated.runs)).sum() {
        0 => Err(ExperimentError::Nothing { what }),
        runs => Ok(runs),
    }
}

/// Puts cells into blocks, and numbers both from here on.
fn in_order(cells: &[Repeated], seed: u64, (id, block): (u32, u32)) -> Vec<CellPlan> {
    let runs: Vec<u32> = cells.iter().map(|repeated| repeated.runs).collect();
    let mut blocks = order::interleaved(&runs, seed);
    order::group_by_daemon(&mut blocks, |index| cells[index].cell.engine());
    for block in &mut blocks {
        upwards(block, |index| cells[index].cell.rung.clone());
    }
    let in_order = (block..)
        .zip(&blocks)
        .flat_map(|(block, order)| order.iter().map(move |index| (block, *index)));
    let numbered = (id..).zip(in_order).map(|(id, (block, index))| CellPlan {
        id,
        block,
        ..cells[index].cell.clone()
    });
    numbered.collect()
}

/// Refuses more cells than a plan can have.
///
/// # Errors
///
/// Returns [`ExperimentError::TooMany`].
pub fn at_most(cells: u64) -> Result<(), ExperimentError> {
    if cells > MOST_CELLS {
        let most = MOST_CELLS;
        return Err(ExperimentError::TooMany { cells, most });
    }
    Ok(())
}

/// Names the experiments of a plan, joined by `+`.
fn names(cells: &[Repeated]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for Repeated { cell, .. } in cells {
        if !names.contains(&cell.experiment.as_str()) {
            names.push(&cell.experiment);
        }
    }
    names.join("+")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use tare_results::model::Labels;
    use tare_results::work::Work;

    use super::*;

    fn cell(size: u64) -> CellPlan {
        let work = Work::new("prime", &format!("limit={size}"));
        CellPlan {
            labels: Labels::default().with("size", size),
            estimate_seconds: 0.1,
            limit_seconds: 30.0,
            ..CellPlan::new("noise", tare_targets::process::spec(), "prime", work)
        }
    }

    /// Makes a plan of cells that run so often.
    fn plan(runs: &[u32]) -> Plan {
        let cells: Vec<Repeated> = (1..)
            .zip(runs)
            .map(|(size, &runs)| Repeated {
                cell: cell(size),
                runs,
            })
            .collect();
        let frame = Frame {
            seed: 7,
            ..Frame::default()
        };
        assemble(&cells, frame).unwrap()
    }

    #[test]
    fn cells_that_differ_in_words_only_are_labelled_by_them() {
        let cell = |size, words: &str| {
            let mut cell = cell(size);
            cell.work.words = words.to_owned();
            Repeated { cell, runs: 1 }
        };
        let cells = [
            cell(1, "limit=1 window=5 warmup=9"),
            cell(1, "limit=1 window=7 warmup=9"),
            cell(2, "limit=2 window=7 warmup=9"),
        ];
        let plan = assemble(&cells, Frame::default()).unwrap();
        let mut told: Vec<(String, String)> = plan
            .cells
            .iter()
            .map(|cell| (cell.label(), cell.labels.to_string()))
            .collect();
        told.sort();
        let told: Vec<(&str, &str)> = told.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(
            told,
            [
                ("process prime", "size=2"),
                ("process prime window=5", "size=1 window=5"),
                ("process prime window=7", "size=1 window=7"),
            ]
        );
    }

    fn of_size(cells: &[CellPlan], size: u64) -> usize {
        let own = cells
            .iter()
            .filter(|cell| cell.labels.number("size") == Some(size));
        own.count()
    }

    #[test]
    fn nothing_more_and_too_much_more_are_refused() {
        let plan = plan(&[2, 2]);
        assert!(matches!(
            more_runs(&plan, |_| 0),
            Err(ExperimentError::Nothing { .. })
        ));
        assert!(matches!(
            more_runs(&plan, |_| u32::MAX),
            Err(ExperimentError::TooMany { .. })
        ));
    }

    #[test]
    fn what_ran_less_often_gets_as_many_more_as_the_others() {
        let mut plan = plan(&[6, 3, 1]);
        for _ in 0..2 {
            let more = more_runs(&plan, |_| 2).unwrap();
            assert_eq!([1, 2, 3].map(|size| of_size(&more, size)), [2, 2, 2]);
            plan.cells.extend(more);
        }
        // Cells that are not meant to be repeated run as often as their experiment says.
        let more = more_runs(&plan, |cell| match cell.labels.number("size") {
            Some(3) => 1,
            _ => 2,
        });
        let more = more.unwrap();
        assert_eq!([1, 2, 3].map(|size| of_size(&more, size)), [2, 2, 1]);
    }

    proptest! {
        #[test]
        fn more_runs_go_on_where_the_plan_ends(
            runs in proptest::collection::vec(1_u32..6, 1..5),
            more in 1_u32..8,
        ) {
            let plan = plan(&runs);
            let most = *runs.iter().max().unwrap();
            let added = more_runs(&plan, |_| more).unwrap();
            prop_assert_eq!(&added, &more_runs(&plan, |_| more).unwrap());
            let first = plan.cells.len() as u32 + 1;
            for (id, cell) in (first..).zip(&added) {
                prop_assert_eq!(cell.id, id);
                prop_assert!(plan.cells.iter().any(|known| known.repeats(cell)));
            }
            let blocks: BTreeSet<u32> = added.iter().map(|cell| cell.block).collect();
            let expected: BTreeSet<u32> = (most + 1..=most + more).collect();
            prop_assert_eq!(blocks, expected);
            prop_assert!(added.windows(2).all(|two| two[0].block <= two[1].block));
            for size in 1..=runs.len() as u64 {
                prop_assert_eq!(of_size(&added, size) as u64, u64::from(more));
            }
        }
    }
}
