//! From combinations to the plan of a run: cells in blocks, numbered in running order.
//!
//! Every experiment and every study comes through here, so that all are interleaved by the same
//! rule ([`order`]).

use jiff::Timestamp;
use tare_results::model::{CellPlan, Plan, SCHEMA, SettingPlan, StudyPlan};
use tare_targets::spec;

use crate::error::ExperimentError;
use crate::order;

/// Is the greatest number of cells of a plan: their folders are named by four digits or more, and
/// a run of more is better split.
pub const MOST_CELLS: u64 = 100_000;

/// Holds what a plan says of the whole run, whatever is measured.
#[derive(Clone, Debug)]
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
}

/// Is a cell that is to be repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeated {
    /// The cell, not yet numbered.
    pub cell: CellPlan,
    /// How often it runs.
    pub runs: u32,
}

/// Makes the plan of a run: as many blocks as the most often repeated cell has runs.
///
/// A block holds every cell once, in random order; one that has fewer runs than there are blocks
/// takes part in some of them.
///
/// # Errors
///
/// Returns [`ExperimentError`] if there is nothing to run, more than fits into one run, or a target
/// that does not exist.
pub fn assemble(cells: &[Repeated], frame: Frame) -> Result<Plan, ExperimentError> {
    let all: u64 = cells.iter().map(|repeated| u64::from(repeated.runs)).sum();
    if all == 0 {
        let what = if cells.is_empty() {
            "the list of targets or workloads"
        } else {
            "the number of runs"
        };
        return Err(ExperimentError::Nothing { what });
    }
    at_most(all)?;
    let runs: Vec<u32> = cells.iter().map(|repeated| repeated.runs).collect();
    let mut blocks = order::interleaved(&runs, frame.seed);
    let mut engines = Vec::new();
    for repeated in cells {
        engines.push(spec::of(&repeated.cell.target)?.engine());
    }
    order::group_by_daemon(&mut blocks, |index| engines[index]);
    let in_order = (1..)
        .zip(&blocks)
        .flat_map(|(block, order)| order.iter().map(move |index| (block, *index)));
    let planned: Vec<CellPlan> = (1..)
        .zip(in_order)
        .map(|(id, (block, index))| CellPlan {
            id,
            block,
            ..cells[index].cell.clone()
        })
        .collect();
    Ok(Plan {
        schema: SCHEMA,
        tare_version: env!("CARGO_PKG_VERSION").to_owned(),
        experiment: names(cells),
        created: Timestamp::now(),
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
