//! `noise`, after kot-2019: how often and how long is short work delayed?
//!
//! Each combination of target and workload is one cell a block; a block is one run in the study's
//! words. `prime` shows what delays a CPU that only computes, `copy` adds memory, `gap` sees every
//! interruption but no slow-down.

use std::time::Duration;

use jiff::Timestamp;
use tare_results::model::{CellPlan, Plan, SCHEMA, SettingPlan};
use tare_wire::bounds;
use tare_wire::plan::{self as wire, Threshold, Timing, Workload};

use crate::error::ExperimentError;
use crate::{estimate, order};

/// Is the limit of `prime` unless said otherwise: the study's single run.
pub const DEFAULT_LIMIT: u32 = 22;
/// Is the number of elements of `copy` unless said otherwise: the study's single run, 800 bytes.
pub const DEFAULT_SIZE: u64 = 100;
/// Is the number of repetitions of `prime` and `copy` unless said otherwise: the study's.
pub const DEFAULT_REPETITIONS: u64 = 1_000_000;
/// Is the number of timer reads of `gap` unless said otherwise: about a second.
pub const DEFAULT_READS: u64 = 100_000_000;
/// Is the number of runs unless said otherwise: enough for an interval over runs.
pub const DEFAULT_RUNS: u32 = 5;

/// Is the greatest number of cells of a plan: their folders are named by four digits or more, and
/// a run of more is better split.
const MOST_CELLS: u64 = 100_000;

/// Says what is to be measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// Targets, as written on the command line in canonical form.
    pub targets: Vec<String>,
    /// Workloads with their sizes.
    pub workloads: Vec<Workload>,
    /// Timed repetitions, for every workload; each one's default if None.
    pub repetitions: Option<u64>,
    /// Untimed repetitions before.
    pub warmup: u64,
    /// How often each combination runs.
    pub runs: u32,
    /// How a repetition is timed.
    pub timing: Timing,
    /// From which delay on samples are listed.
    pub threshold: Threshold,
    /// Raw samples kept from the middle of each run.
    pub window: u32,
    /// Time after which a cell counts as hung; by the estimate if None.
    pub cell_limit: Option<Duration>,
    /// Seed of the order within blocks.
    pub seed: u64,
    /// CPU that the workloads are pinned to.
    pub cpu: u32,
    /// Why that CPU.
    pub cpu_reason: String,
    /// Kernel settings to change for the time of the run.
    pub settings: Vec<SettingPlan>,
    /// The command line, program name first.
    pub command: Vec<String>,
}

/// Makes the plan of a run.
///
/// # Errors
///
/// Returns [`ExperimentError`] if a parameter is out of bounds or there is nothing to run.
pub fn plan(options: &Options) -> Result<Plan, ExperimentError> {
    let cells = combinations(options)?;
    let all = cells.len() as u64 * u64::from(options.runs);
    if all == 0 {
        let what = if options.runs == 0 {
            "the number of runs"
        } else {
            "the list of targets or workloads"
        };
        return Err(ExperimentError::Nothing { what });
    }
    if all > MOST_CELLS {
        return Err(ExperimentError::TooMany {
            cells: all,
            most: MOST_CELLS,
        });
    }
    let blocks = order::interleaved(cells.len(), options.runs, options.seed);
    let in_order = (1..)
        .zip(&blocks)
        .flat_map(|(block, order)| order.iter().map(move |index| (block, *index)));
    let cells = (1..)
        .zip(in_order)
        .map(|(id, (block, index))| CellPlan {
            id,
            block,
            ..cells[index].clone()
        })
        .collect();
    Ok(Plan {
        schema: SCHEMA,
        tare_version: env!("CARGO_PKG_VERSION").to_owned(),
        experiment: "noise".to_owned(),
        created: Timestamp::now(),
        command: options.command.clone(),
        seed: options.seed,
        cpu: options.cpu,
        cpu_reason: options.cpu_reason.clone(),
        settings: options.settings.clone(),
        cells,
    })
}

/// Returns one cell for each combination, not yet numbered.
fn combinations(options: &Options) -> Result<Vec<CellPlan>, ExperimentError> {
    let mut cells = Vec::new();
    for target in &options.targets {
        for workload in &options.workloads {
            cells.push(cell(options, target, *workload)?);
        }
    }
    Ok(cells)
}

fn cell(options: &Options, target: &str, workload: Workload) -> Result<CellPlan, ExperimentError> {
    let (size, default_repetitions) = match workload {
        Workload::Prime { limit } => (Some(limit.into()), DEFAULT_REPETITIONS),
        Workload::Copy { size } => (Some(size), DEFAULT_REPETITIONS),
        Workload::Gap => (None, DEFAULT_READS),
    };
    let repetitions = options.repetitions.unwrap_or(default_repetitions);
    let plan = wire::Plan {
        warmup: options.warmup,
        timing: options.timing,
        threshold: options.threshold,
        window: options.window,
        cpu: Some(options.cpu),
        ..wire::Plan::new(workload, repetitions)
    };
    bounds::check(&plan).map_err(|refusal| ExperimentError::OutOfBounds {
        workload: workload.name(),
        refusal,
    })?;
    let estimate_seconds = estimate::seconds(&plan);
    let limit_seconds = options.cell_limit.map_or_else(
        || estimate::limit_seconds(estimate_seconds),
        |limit| limit.as_secs_f64(),
    );
    Ok(CellPlan {
        id: 0,
        block: 0,
        target: target.to_owned(),
        load: "idle".to_owned(),
        workload: workload.name().to_owned(),
        size,
        repetitions,
        timing: options.timing.name().to_owned(),
        words: plan.to_string(),
        estimate_seconds,
        limit_seconds,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn options(workloads: &[Workload], runs: u32) -> Options {
        Options {
            targets: vec!["process".to_owned()],
            workloads: workloads.to_vec(),
            repetitions: None,
            warmup: 1_000,
            runs,
            timing: Timing::Fenced,
            threshold: Threshold::Auto,
            window: 500,
            cell_limit: None,
            seed: 7,
            cpu: 1,
            cpu_reason: "asked for".to_owned(),
            settings: Vec::new(),
            command: vec!["tare".to_owned(), "noise".to_owned()],
        }
    }

    const ALL: [Workload; 3] = [
        Workload::Prime { limit: 22 },
        Workload::Copy { size: 100 },
        Workload::Gap,
    ];

    #[test]
    fn a_plan_numbers_its_cells_in_order_and_fills_every_block() {
        let plan = plan(&options(&ALL, 4)).unwrap();
        let ids: Vec<u32> = plan.cells.iter().map(|cell| cell.id).collect();
        assert_eq!(ids, (1..=12).collect::<Vec<_>>());
        for block in 1..=4 {
            let workloads: HashSet<&str> = plan
                .cells
                .iter()
                .filter(|cell| cell.block == block)
                .map(|cell| cell.workload.as_str())
                .collect();
            assert_eq!(workloads.len(), 3);
        }
        assert!(plan.cells.is_sorted_by_key(|cell| cell.block));
    }

    #[test]
    fn cells_of_one_combination_repeat_each_other() {
        let plan = plan(&options(&ALL[..1], 2)).unwrap();
        assert!(plan.cells[0].repeats(&plan.cells[1]));
        assert_eq!(
            plan.cells[0].words,
            "workload=prime limit=22 repetitions=1000000 warmup=1000 timing=fenced \
             threshold=auto capacity=1048576 bins=1000 window=500 cpu=1"
        );
    }

    #[test]
    fn what_is_out_of_bounds_is_told_with_the_bounds() {
        for (workload, message) in [
            (
                Workload::Prime { limit: 0 },
                "prime: limit must be from 3 to 65536, not 0",
            ),
            (
                Workload::Copy { size: 1 << 40 },
                "copy: size must be from 1 to 16777216, not 1099511627776",
            ),
        ] {
            let error = plan(&options(&[workload], 1)).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn no_runs_and_too_many_runs_are_refused() {
        assert_eq!(
            plan(&options(&ALL, 0)).unwrap_err().to_string(),
            "nothing to run: the number of runs is empty"
        );
        assert!(plan(&options(&ALL, u32::MAX)).is_err());
    }
}
