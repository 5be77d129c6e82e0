//! `noise`, after kot-2019: how often and how long is short work delayed?
//!
//! Each combination of target and workload is one cell a block; a block is one run in the study's
//! words. `prime` shows what delays a CPU that only computes, `copy` adds memory, `gap` sees every
//! interruption but no slow-down.

mod estimate;
mod story;

use tare_measured::noise::{self as measured, Threshold, Timing, Workload, bounds};
use tare_results::model::{CellPlan, Labels};
use tare_results::target::TargetSpec;
use tare_results::work::Work;
use tare_wire::cpus::Cpus;

pub use story::schema;

use tare_lab::ExperimentError;
use tare_lab::experiment::{Conditions, Experiment};
use tare_lab::parameter::{Parameter, Takes, Values};
use tare_lab::plan::at_most;

/// The name of the experiment.
pub const NAME: &str = "noise";
/// The limit of `prime` unless said otherwise: the study's single run.
pub const DEFAULT_LIMIT: u32 = 22;
/// The number of elements of `copy` unless said otherwise: the study's single run, 800 bytes.
pub const DEFAULT_SIZE: u64 = 100;
/// The number of repetitions of `prime` and `copy` unless said otherwise: the study's.
pub const DEFAULT_REPETITIONS: u64 = 1_000_000;
/// The number of timer reads of `gap` unless said otherwise: less than a second.
pub const DEFAULT_READS: u64 = 80_000_000;

/// The experiment, as studies name it.
#[derive(Clone, Copy, Debug)]
pub struct Noise;

/// What is to be measured in each run.
#[derive(Clone, Debug)]
struct Options {
    /// Workloads with their sizes.
    pub workloads: Vec<Workload>,
    /// Timed repetitions, for every workload; each one's default if None.
    pub repetitions: Option<u64>,
    /// Untimed repetitions before.
    pub warmup: u64,
    /// How a repetition is timed.
    pub timing: Timing,
    /// From which delay on samples are listed.
    pub threshold: Threshold,
    /// Raw samples kept from the middle of each run.
    pub window: u32,
}

/// Returns the workloads of these names, each with every size; the default size where none is given, and all workloads if
/// none is named.
///
/// # Errors
///
/// Returns [`ExperimentError::Misfit`] if sizes are given for a workload that is not named.
fn workloads(
    names: &[&str],
    limits: &[u64],
    sizes: &[u64],
) -> Result<Vec<Workload>, ExperimentError> {
    let names = if names.is_empty() { WORKLOADS } else { names };
    for (parameter, given, workload) in [("limit", limits, "prime"), ("size", sizes, "copy")] {
        if !given.is_empty() && !names.contains(&workload) {
            return Err(ExperimentError::Misfit {
                parameter,
                workload,
            });
        }
    }
    let or_default = |given: &[u64], default| match given {
        [] => vec![default],
        given => given.to_vec(),
    };
    let of = |name: &&str| match *name {
        "prime" => {
            let limits = or_default(limits, DEFAULT_LIMIT.into()).into_iter();
            // What is too large for the type is out of bounds, and told as such.
            let limits = limits.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
            limits.map(|limit| Workload::Prime { limit }).collect()
        }
        "copy" => {
            let sizes = or_default(sizes, DEFAULT_SIZE).into_iter();
            sizes.map(|size| Workload::Copy { size }).collect()
        }
        _ => vec![Workload::Gap],
    };
    Ok(names.iter().flat_map(of).collect())
}

/// Lists the workloads by name.
const WORKLOADS: &[&str] = &["gap", "prime", "copy"];

/// Lists the parameters.
const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "workload",
        value: "NAME",
        takes: Takes::Word(WORKLOADS),
        many: true,
        default: "all three",
        meaning: "Workloads to run: prime (registers only), copy (memory), gap (spins on the timer)",
        ..Parameter::NEW
    },
    Parameter {
        name: "limit",
        takes: Takes::Number {
            least: bounds::MIN_LIMIT as u64,
            most: bounds::MAX_LIMIT as u64,
        },
        many: true,
        default: "22",
        meaning: "Count the primes below N, for prime",
        applies: |values| names(values, "prime"),
        ..Parameter::NEW
    },
    Parameter {
        name: "size",
        takes: Takes::Number {
            least: 1,
            most: bounds::MAX_ELEMENTS,
        },
        many: true,
        default: "100",
        meaning: "Copy N elements of 8 bytes, for copy",
        applies: |values| names(values, "copy"),
        ..Parameter::NEW
    },
    Parameter {
        name: "threshold",
        takes: Takes::Text {
            wanted: "auto, or a whole number above 0, of cycles or with a unit: cycles, ns, us or ms",
            fits: is_threshold,
        },
        default: "auto: prime and copy 400 cycles above the run's mean; gap 500 ns, or 20 steps of a coarser timer",
        meaning: "List every delay above this (gaps of at least this): cycles, or with a unit ns, us, ms",
        ..Parameter::NEW
    },
    Parameter {
        name: "repetitions",
        takes: Takes::Number {
            least: 1,
            most: MOST_REPETITIONS,
        },
        default: "1000000; gap 80000000",
        meaning: "Repetitions timed in each run; for gap, timer reads",
        ..Parameter::NEW
    },
    Parameter {
        name: "warmup",
        takes: Takes::Number {
            least: 0,
            most: MOST_REPETITIONS,
        },
        default: "1000",
        meaning: "Repetitions before each run that are not timed",
        ..Parameter::NEW
    },
    Parameter {
        name: "timing",
        value: "HOW",
        takes: Takes::Word(&["fenced", "published"]),
        default: "fenced",
        meaning: "How a repetition is timed: fenced (lfence; rdtsc; lfence … rdtscp; lfence), or published (two bare \
                  rdtscp, as kot-2019)",
        applies: is_timed,
        ..Parameter::NEW
    },
    Parameter {
        name: "window",
        takes: Takes::Number {
            least: 0,
            most: bounds::MAX_WINDOW as u64,
        },
        default: "500",
        meaning: "Raw samples kept from the middle of each run",
        applies: is_timed,
        ..Parameter::NEW
    },
];

/// The greatest number of repetitions of any workload.
const MOST_REPETITIONS: u64 = bounds::MAX_GAP_READS;

impl Experiment for Noise {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "how often and how long short work is delayed"
    }

    fn without_arguments(&self) -> &'static str {
        "Without arguments, all three workloads run six times each on the quietest CPU, in less than 20 s. Each run is \
         a block that holds every combination once, in random order."
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn combinations(
        &self,
        conditions: &Conditions,
        values: &Values,
    ) -> Result<Vec<CellPlan>, ExperimentError> {
        combinations(&Options::of(values)?, conditions)
    }

    fn work(&self, words: &str) -> Option<Work> {
        let plan = measured::Plan::parse(words.split_whitespace()).ok()?;
        bounds::check(&plan).ok()?;
        Some(work(&plan))
    }

    fn announces(&self, cell: &CellPlan) -> Option<String> {
        let words = cell.work.to_string();
        let plan = measured::Plan::parse(words.split_whitespace()).ok()?;
        Some(listed(&plan))
    }
}

impl Options {
    /// Takes what is given, and the defaults for the rest. Words and forms were checked by what
    /// [`PARAMETERS`] says.
    fn of(values: &Values) -> Result<Self, ExperimentError> {
        let threshold = values.text("threshold").and_then(Threshold::parse);
        let (limits, sizes) = (values.numbers("limit"), values.numbers("size"));
        Ok(Self {
            workloads: workloads(&values.texts("workload"), &limits, &sizes)?,
            repetitions: values.number("repetitions"),
            warmup: values
                .number("warmup")
                .unwrap_or(measured::Plan::DEFAULT_WARMUP),
            timing: match values.text("timing") {
                Some("published") => Timing::Published,
                _ => Timing::Fenced,
            },
            threshold: threshold.unwrap_or(Threshold::Auto),
            window: values
                .small("window")
                .unwrap_or(measured::Plan::DEFAULT_WINDOW),
        })
    }
}

/// Returns whether a workload is among those that values name.
fn names(values: &Values, workload: &str) -> bool {
    let named = values.texts("workload");
    named.is_empty() || named.contains(&workload)
}

/// Returns whether there is a workload whose every repetition is timed.
fn is_timed(values: &Values) -> bool {
    names(values, "prime") || names(values, "copy")
}

fn is_threshold(text: &str) -> bool {
    Threshold::parse(text)
        .is_some_and(|threshold| !matches!(threshold, Threshold::Cycles(0) | Threshold::Ns(0)))
}

/// Returns one cell for each combination, not yet numbered.
fn combinations(
    options: &Options,
    conditions: &Conditions,
) -> Result<Vec<CellPlan>, ExperimentError> {
    let dimensions = [
        conditions.targets.len(),
        conditions.loads.len(),
        options.workloads.len(),
    ];
    let all = dimensions.into_iter().fold(1, usize::saturating_mul);
    at_most(all as u64)?;
    let mut cells = Vec::new();
    for target in &conditions.targets {
        for load in &conditions.loads {
            for workload in &options.workloads {
                cells.push(cell(options, conditions, target, load, *workload)?);
            }
        }
    }
    Ok(cells)
}

fn cell(
    options: &Options,
    conditions: &Conditions,
    target: &TargetSpec,
    load: &str,
    workload: Workload,
) -> Result<CellPlan, ExperimentError> {
    let (size, default_repetitions) = match workload {
        Workload::Prime { limit } => (Some(limit.into()), DEFAULT_REPETITIONS),
        Workload::Copy { size } => (Some(size), DEFAULT_REPETITIONS),
        Workload::Gap => (None, DEFAULT_READS),
    };
    let repetitions = options.repetitions.unwrap_or(default_repetitions);
    let plan = measured::Plan {
        warmup: options.warmup,
        timing: options.timing,
        threshold: options.threshold,
        window: options.window,
        cpu: Some(conditions.cpu),
        ..measured::Plan::new(workload, repetitions)
    };
    bounds::check(&plan).map_err(|refusal| ExperimentError::OutOfBounds {
        workload: workload.name(),
        refusal,
    })?;
    let name = match size {
        Some(size) => format!("{} {size}", workload.name()),
        None => workload.name().to_owned(),
    };
    let cell = CellPlan {
        labels: labels(&plan),
        ..CellPlan::new(NAME, target.clone(), &name, work(&plan))
    };
    conditions.under(load, cell, estimate::seconds(&plan))
}

/// Returns what distinguishes a cell from others of the experiment.
fn labels(plan: &measured::Plan) -> Labels {
    let labels = Labels::default().with("workload", plan.workload.name());
    let labels = match plan.workload {
        Workload::Prime { limit } => labels.with("size", limit),
        Workload::Copy { size } => labels.with("size", size),
        Workload::Gap => labels,
    };
    match plan.timing {
        Timing::Fenced => labels,
        Timing::Published => labels.with("timing", plan.timing.name()),
    }
}

/// Makes the work of a plan.
fn work(plan: &measured::Plan) -> Work {
    Work {
        cpus: plan.cpu.map(Cpus::one),
        buffer_bytes: measured::buffer_bytes(plan) as u64,
        ..Work::new(plan.workload.name(), &measured::OwnWords(plan).to_string())
    }
}

/// Says from which delay on samples are listed, and by which rule.
fn listed(plan: &measured::Plan) -> String {
    let is_gap = plan.workload == Workload::Gap;
    let least = match plan.threshold {
        Threshold::Auto if is_gap => "500 ns, or 20 steps of a coarser timer".to_owned(),
        Threshold::Auto => "400 cycles".to_owned(),
        Threshold::Cycles(cycles) => format!("{cycles} cycles"),
        Threshold::Ns(ns) => format!("{ns} ns"),
    };
    if is_gap {
        return format!("gap lists what takes at least {least}");
    }
    let workload = plan.workload.name();
    format!("{workload} lists what exceeds the run's mean by {least}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tare_results::model::Plan;

    use super::*;
    use tare_lab::plan::{Frame, Repeated, assemble, of_one};

    fn plan_of(workloads: &[Workload], runs: u32) -> Result<Plan, ExperimentError> {
        plan_at(&conditions(), workloads, runs)
    }

    fn plan_at(
        conditions: &Conditions,
        workloads: &[Workload],
        runs: u32,
    ) -> Result<Plan, ExperimentError> {
        let cells = combinations(&options(workloads), conditions)?;
        let cells: Vec<Repeated> = cells
            .into_iter()
            .map(|cell| Repeated { cell, runs })
            .collect();
        assemble(&cells, frame())
    }

    fn options(workloads: &[Workload]) -> Options {
        Options {
            workloads: workloads.to_vec(),
            repetitions: None,
            warmup: 1_000,
            timing: Timing::Fenced,
            threshold: Threshold::Auto,
            window: 500,
        }
    }

    fn conditions() -> Conditions {
        Conditions {
            targets: vec![tare_targets::process::spec()],
            loads: vec!["idle".to_owned()],
            cpu: 1,
            cpus: None,
            cell_limit: None,
            is_watched: false,
        }
    }

    fn frame() -> Frame {
        Frame {
            seed: 7,
            cpu: 1,
            cpu_reason: "asked for".to_owned(),
            command: vec!["tare".to_owned(), "noise".to_owned()],
            ..Frame::default()
        }
    }

    const ALL: [Workload; 3] = [
        Workload::Prime { limit: 22 },
        Workload::Copy { size: 100 },
        Workload::Gap,
    ];

    #[test]
    fn a_plan_numbers_its_cells_in_order_and_fills_every_block() {
        let plan = plan_of(&ALL, 4).unwrap();
        let ids: Vec<u32> = plan.cells.iter().map(|cell| cell.id).collect();
        assert_eq!(ids, (1..=12).collect::<Vec<_>>());
        for block in 1..=4 {
            let workloads: HashSet<&str> = plan
                .cells
                .iter()
                .filter(|cell| cell.block == block)
                .map(|cell| cell.work.id.as_str())
                .collect();
            assert_eq!(workloads.len(), 3);
        }
        assert!(plan.cells.is_sorted_by_key(|cell| cell.block));
    }

    #[test]
    fn cells_of_one_combination_repeat_each_other() {
        let plan = plan_of(&ALL[..1], 2).unwrap();
        assert!(plan.cells[0].repeats(&plan.cells[1]));
        assert_eq!(
            plan.cells[0].work.to_string(),
            "workload=prime limit=22 repetitions=1000000 warmup=1000 timing=fenced \
             threshold=auto capacity=1048576 bins=1000 window=500 cpu=1"
        );
    }

    #[test]
    fn the_buffers_follow_what_is_kept() {
        let mib = |workload, repetitions| {
            let work = work(&measured::Plan::new(workload, repetitions));
            work.buffer_bytes.div_ceil(1 << 20)
        };
        assert_eq!(mib(Workload::Prime { limit: 22 }, 1), 1);
        // 16 MB of stamps and 24 MB of listed delays.
        assert_eq!(mib(Workload::Prime { limit: 22 }, 1_000_000), 39);
        // Timer reads are not kept, gaps are.
        assert_eq!(mib(Workload::Gap, 100_000_000_000), 25);
        assert_eq!(mib(Workload::Copy { size: 1 << 24 }, 1), 257);
    }

    #[test]
    fn loads_are_a_dimension_and_cells_under_different_ones_do_not_repeat_each_other() {
        let loads = ["idle", "dd", "cpus=0:dd"].map(str::to_owned).to_vec();
        let conditions = Conditions {
            loads,
            ..conditions()
        };
        let plan = plan_at(&conditions, &ALL[..1], 2).unwrap();
        for block in 1..=2 {
            let cells = plan.cells.iter().filter(|cell| cell.block == block);
            let mut found: Vec<&str> = cells.map(|cell| cell.load.as_str()).collect();
            found.sort_unstable();
            assert_eq!(found, ["cpus=0:dd", "dd", "idle"]);
        }
        let of = |load: &str| plan.cells.iter().find(|cell| cell.load == load).unwrap();
        assert!(!of("idle").repeats(of("dd")) && !of("dd").repeats(of("cpus=0:dd")));
        assert!(of("dd").limit_seconds > of("idle").limit_seconds);
    }

    /// Under an emulator a whole Debian took 32 s to boot, and the limit was 33 s.
    #[test]
    fn estimates_and_limits_hold_what_a_target_needs_to_start() {
        let of = |target: &str, cell_limit| {
            let target = tare_targets::spec::parse(target).unwrap().spec();
            let conditions = Conditions {
                targets: vec![target],
                cell_limit,
                ..conditions()
            };
            let mut values = Values::default();
            values.give(
                "workload",
                vec![tare_lab::parameter::Value::Text("prime".to_owned())],
            );
            let plan = of_one(&Noise, &conditions, &values, 1, frame()).unwrap();
            let cell = &plan.cells[0];
            (cell.estimate_seconds, cell.limit_seconds)
        };
        let (process, guest) = (of("process", None), of("linux", None));
        let debian = of("linux,root=debian", None);
        assert!(process.0 < guest.0 && guest.0 < debian.0);
        assert!(process.1 < guest.1 && guest.1 < debian.1);
        assert!(debian.0 > 10.0 && debian.1 > 3.0 * 32.0);
        let given = Some(std::time::Duration::from_secs(9));
        assert_eq!(of("linux,root=debian", given), (debian.0, 9.0));
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
            let error = plan_of(&[workload], 1).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn no_runs_and_too_many_runs_are_refused() {
        assert_eq!(
            plan_of(&ALL, 0).unwrap_err().to_string(),
            "nothing to run: the number of runs is 0"
        );
        assert!(plan_of(&ALL, u32::MAX).is_err());
    }

    #[test]
    fn a_study_without_values_plans_what_the_command_does_without_arguments() {
        let defaults = Noise
            .combinations(&conditions(), &Values::default())
            .unwrap();
        let words = |cells: Vec<CellPlan>| -> Vec<String> {
            cells
                .into_iter()
                .map(|cell| cell.work.to_string())
                .collect()
        };
        let mut command = words(plan_of(&ALL, 1).unwrap().cells);
        let mut defaults = words(defaults);
        command.sort();
        defaults.sort();
        assert_eq!(defaults, command);
    }

    #[test]
    fn the_default_of_each_workload_is_told() {
        let mut parameters = PARAMETERS.iter();
        let repetitions = parameters.find(|parameter| parameter.name == "repetitions");
        assert_eq!(
            repetitions.unwrap().default,
            format!("{DEFAULT_REPETITIONS}; gap {DEFAULT_READS}")
        );
    }

    #[test]
    fn sizes_of_a_workload_that_is_not_named_are_refused() {
        let error = workloads(&["gap"], &[22], &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "'limit' is for the workload prime, which is not asked for"
        );
    }
}
