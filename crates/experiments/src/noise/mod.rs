//! `noise`, after kot-2019: how often and how long is short work delayed?
//!
//! Each combination of target and workload is one cell a block; a block is one run in the study's
//! words. The workloads and all texts about them are their descriptors
//! ([`tare_measured::noise::workloads`]).

mod cpus;
mod estimate;
mod long;
mod story;
mod switched;

use std::sync::LazyLock;

use tare_figures::words;
use tare_host::Source;
use tare_measured::noise::{self as measured, Threshold, Timing, Workload, bounds, workloads};
use tare_results::model::{CellPlan, Labels, Schedule};
use tare_results::target::TargetSpec;
use tare_results::work::Work;
use tare_wire::cpus::Cpus;

pub use long::event;
pub use story::{run_of, schema};
use switched::Variation;

use tare_lab::ExperimentError;
use tare_lab::experiment::{Conditions, DEFAULT_RUNS, Experiment};
use tare_lab::parameter::{Parameter, Takes, Values};
use tare_lab::plan::at_most;
use tare_results::target::Kernel;

/// The name of the experiment.
pub const NAME: &str = "noise";
/// The experiment, as studies name it.
#[derive(Clone, Copy, Debug)]
pub struct Noise;

/// The measurement of each run.
#[derive(Clone, Debug)]
struct Options {
    /// Workloads with their sizes; 0 where there is none.
    works: Vec<(&'static Workload, u64)>,
    /// Timed repetitions of every workload; the default of each if None.
    repetitions: Option<u64>,
    /// Untimed repetitions before; by the length of each if None.
    warmup: Option<u64>,
    /// The stamps of a repetition.
    timing: Timing,
    /// Delay from which samples are listed.
    threshold: Threshold,
    /// Raw samples kept from the middle of each run.
    window: u32,
    /// Delay from which on the kernel's events are recorded, in ns; None for none.
    explain_ns: Option<u64>,
    /// The times and limits of a long run.
    long: Option<long::Long>,
}

/// Returns the workloads that are named, or all, each with every size that is given, or its
/// default.
fn works(values: &Values) -> Vec<(&'static Workload, u64)> {
    let mut works = Vec::new();
    for workload in workloads().filter(|workload| names(values, workload.code.id)) {
        let size = workload.code.size;
        let sizes = size.map_or(vec![], |size| values.numbers(size.key));
        let default = size.map_or(0, |size| size.default);
        let sizes = if sizes.is_empty() {
            vec![default]
        } else {
            sizes
        };
        works.extend(sizes.into_iter().map(|size| (workload, size)));
    }
    // In the order in which they are named.
    let named = values.texts("workload");
    works.sort_by_key(|(workload, _)| named.iter().position(|name| *name == workload.code.id));
    works
}

/// Finds the descriptor of a workload by its id.
fn workload(id: &str) -> Option<&'static Workload> {
    workloads().find(|workload| workload.code.id == id)
}

/// Returns the workloads that only read the clock, or all others.
fn of_kind(only_reads_clock: bool) -> impl Iterator<Item = &'static Workload> {
    workloads().filter(move |workload| workload.code.only_reads_clock() == only_reads_clock)
}

/// Returns whether a workload only reads the clock.
fn only_reads_clock(id: &str) -> bool {
    workload(id).is_some_and(|workload| workload.code.only_reads_clock())
}

/// Lists the ids of workloads of a kind: `prime and copy`.
fn ids(only_reads_clock: bool) -> String {
    let ids = of_kind(only_reads_clock).map(|one| one.code.id.to_owned());
    words::list(&ids.collect::<Vec<_>>())
}

/// The parameters. Each size of a workload is one, and other texts name workloads, too.
static PARAMETERS: LazyLock<Vec<Parameter>> = LazyLock::new(|| {
    let (timed, clock) = (ids(false), ids(true));
    let all = || workloads().map(|workload| workload.code.id);
    let keywords = workloads().map(|one| format!("{} ({})", one.code.id, one.keywords));
    let keywords: Vec<String> = keywords.collect();
    let usual = of_kind(false).next().map_or(0, |one| one.repetitions);
    let others = workloads().filter(|one| one.repetitions != usual);
    let others: String = others
        .map(|one| format!("; {} {}", one.code.id, one.repetitions))
        .collect();
    let of_workload = |workload: &Workload| {
        let size = workload.code.size?;
        Some(Parameter {
            name: size.key,
            takes: Takes::number([size.least, size.most]),
            many: true,
            default: size.default.to_string().leak(),
            meaning: format!("{}, for {}", size.meaning, workload.code.id).leak(),
            applies: |own, values| {
                let is_own =
                    |one: &&Workload| one.code.size.is_some_and(|size| size.key == own.name);
                workloads()
                    .find(is_own)
                    .is_some_and(|one| names(values, one.code.id))
            },
            ..Parameter::NEW
        })
    };
    let mut parameters = vec![Parameter {
        name: "workload",
        value: "NAME",
        takes: Takes::Word(all().collect::<Vec<_>>().leak()),
        many: true,
        default: "all",
        meaning: format!("Workloads to run: {}", keywords.join(", ")).leak(),
        ..Parameter::NEW
    }];
    parameters.extend(workloads().filter_map(of_workload));
    parameters.extend([
        Parameter {
            name: "threshold",
            takes: Takes::text("auto, or a whole number above 0, of cycles or with a unit: cycles, ns, us or ms", is_threshold),
            default: format!(
                "auto: {timed} {} above the run's mean; {clock} {}",
                default_threshold(false),
                default_threshold(true)
            )
            .leak(),
            meaning: "List every delay above this (gaps of at least this): cycles, or with a unit ns, us, ms",
            ..Parameter::NEW
        },
        Parameter {
            name: "repetitions",
            takes: Takes::number([1, MOST_REPETITIONS]),
            default: format!("{usual}{others}").leak(),
            meaning: format!("Repetitions timed in each run; for {clock}, timer reads").leak(),
            ..Parameter::NEW
        },
        WARMUP,
        TIMING,
        WINDOW,
        EXPLAIN,
    ]);
    parameters.push(cpus::PARAMETER);
    parameters.extend(switched::PARAMETERS);
    parameters.extend(long::PARAMETERS);
    parameters
});

const WARMUP: Parameter = Parameter {
    name: "warmup",
    takes: Takes::number([0, MOST_REPETITIONS]),
    default: "1000, or as many as take a second",
    meaning: "Repetitions before each run that are not timed",
    ..Parameter::NEW
};

const TIMING: Parameter = Parameter {
    name: "timing",
    value: "HOW",
    takes: Takes::Word(&["fenced", "published"]),
    default: "fenced",
    meaning: "How a repetition is timed: fenced (lfence; rdtsc; lfence … rdtscp; lfence), or published (two bare \
              rdtscp, as in kot-2019)",
    applies: is_timed,
    ..Parameter::NEW
};

const WINDOW: Parameter = Parameter {
    name: "window",
    takes: Takes::number([0, bounds::MAX_WINDOW as u64]),
    default: "500",
    meaning: "Raw samples kept from the middle of each run",
    applies: is_timed,
    ..Parameter::NEW
};

const EXPLAIN: Parameter = Parameter {
    name: "explain",
    value: "TIME",
    takes: Takes::time("us", [0, 1_000_000_000]),
    default: "gap 5us; prime and copy 0",
    meaning: "Delay from which on the kernel's events say who took the CPU, on Linux, where they may be recorded; 0 for none",
    ..Parameter::NEW
};

/// The delay of workloads that only read the clock from which on the kernel's events say who it was,
/// in ns. Recording lengthens a delay by about 1 µs.
const EXPLAINED_NS: u64 = 5_000;

/// The greatest number of repetitions of any workload.
const MOST_REPETITIONS: u64 = bounds::MAX_READS;

/// Describes the default threshold of workloads of a kind.
fn default_threshold(only_reads_clock: bool) -> &'static str {
    match only_reads_clock {
        true => "500 ns, or 20 steps of a coarser timer",
        false => "400 cycles",
    }
}

impl Experiment for Noise {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "how often and how long short work is delayed"
    }

    fn without_arguments(&self) -> &'static str {
        "Without arguments, all workloads run six times each on the quietest CPU, in less than 20 s. Each run is \
         a block that holds every combination once, in random order."
    }

    fn default_runs(&self, values: &Values) -> u32 {
        long::runs(values).unwrap_or(DEFAULT_RUNS)
    }

    fn is_long(&self, cell: &CellPlan) -> bool {
        plan_of(cell).is_some_and(|plan| plan.duration_ns.is_some())
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn cpus(&self, values: &Values, allowed: &Cpus) -> Option<Cpus> {
        cpus::of(values, allowed)
    }

    fn combinations(
        &self,
        conditions: &Conditions,
        values: &Values,
    ) -> Result<Vec<CellPlan>, ExperimentError> {
        let options = Options::of(values)?;
        cpus::check(conditions, values)?;
        let cells = combinations(&options, conditions)?;
        match Variation::of(values, &Source::system(), conditions.cpu)? {
            None => Ok(cells),
            Some(variation) => {
                let cells = cells.iter().map(|cell| variation.cells(cell));
                Ok(cells.collect::<Result<Vec<_>, _>>()?.concat())
            }
        }
    }

    fn work(&self, words: &str) -> Option<Work> {
        let plan = measured::Plan::parse(words.split_whitespace()).ok()?;
        bounds::check(&plan).ok()?;
        Some(work(&plan))
    }

    fn announces(&self, cell: &CellPlan) -> Option<String> {
        let plan = plan_of(cell)?;
        long::listed(&plan).or_else(|| Some(listed(&plan)))
    }
}

/// Reads the plan of a cell back.
fn plan_of(cell: &CellPlan) -> Option<measured::Plan> {
    let words = cell.work.to_string();
    measured::Plan::parse(words.split_whitespace()).ok()
}

impl Options {
    /// Takes what is given, and the defaults for the rest. Words and forms were checked by what
    /// [`PARAMETERS`] says.
    fn of(values: &Values) -> Result<Self, ExperimentError> {
        let threshold = values.text("threshold").and_then(Threshold::parse);
        Ok(Self {
            long: long::Long::of(values)?,
            works: works(values),
            repetitions: values.number("repetitions"),
            warmup: values.number("warmup"),
            timing: match values.text("timing") {
                Some("published") => Timing::Published,
                _ => Timing::Fenced,
            },
            threshold: threshold.unwrap_or(Threshold::Auto),
            window: values
                .small("window")
                .unwrap_or(measured::Plan::DEFAULT_WINDOW),
            explain_ns: values.number("explain"),
        })
    }
}

/// Returns whether a workload is among those that values name.
fn names(values: &Values, workload: &str) -> bool {
    let named = values.texts("workload");
    // A screening has many cells, and only gaps are watched for hours.
    let only_gaps = values.has(switched::SCREEN) || values.has(long::DURATION);
    match named.is_empty() {
        true => !(only_gaps || cpus::are_several(values)) || only_reads_clock(workload),
        false => named.contains(&workload),
    }
}

/// Returns whether there is a workload whose every repetition is timed.
fn is_timed(_: &Parameter, values: &Values) -> bool {
    of_kind(false).any(|workload| names(values, workload.code.id))
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
        options.works.len(),
    ];
    let all = dimensions.into_iter().fold(1, usize::saturating_mul);
    at_most(all as u64)?;
    let mut cells = Vec::new();
    for target in &conditions.targets {
        for load in &conditions.loads {
            for work in &options.works {
                cells.push(cell(options, conditions, target, load, *work)?);
            }
        }
    }
    if options.explain_ns.is_some_and(|ns| ns > 0) && !conditions.targets.iter().any(has_events) {
        let targets = conditions.targets.iter().map(|target| target.text.clone());
        return Err(ExperimentError::Contradiction {
            experiment: NAME,
            why: format!(
                "explain: what runs on {} reports no events of a kernel: omit it, or add the target process",
                words::list(&Vec::from_iter(targets))
            ),
        });
    }
    Ok(cells)
}

fn cell(
    options: &Options,
    conditions: &Conditions,
    target: &TargetSpec,
    load: &Schedule,
    (workload, size): (&'static Workload, u64),
) -> Result<CellPlan, ExperimentError> {
    let repetitions = options.repetitions.unwrap_or(workload.repetitions);
    let cpus = cpus::of_conditions(conditions);
    let by_default = workload.code.only_reads_clock() && cpus.count() <= cpus::MOST_EXPLAINED;
    let by_default = by_default.then_some(EXPLAINED_NS);
    let explain_ns = options.explain_ns.or(by_default);
    let plan = measured::Plan {
        warmup: options
            .warmup
            .unwrap_or_else(|| default_warmup(workload, size)),
        timing: options.timing,
        threshold: options.threshold,
        window: options.window,
        explain_ns: explain_ns.filter(|ns| *ns > 0 && has_events(target)),
        cpus: Some(cpus),
        capacity: cpus::capacity(&cpus),
        ..measured::Plan::new(&workload.code, size, repetitions)
    };
    let long = options.long.as_ref();
    let plan = long.map_or(plan, |long| long.plan(plan));
    bounds::check(&plan).map_err(|refusal| ExperimentError::OutOfBounds {
        workload: plan.workload.id,
        refusal,
    })?;
    let name = match plan.workload.size {
        Some(_) => format!("{} {size}", plan.workload.id),
        None => plan.workload.id.to_owned(),
    };
    let mut work = work(&plan);
    // Nothing reaches code without a kernel before it is done.
    work.ends_early &= target.kernel() != Kernel::None;
    let cell = CellPlan {
        labels: labels(&plan),
        ..CellPlan::new(NAME, target.clone(), &name, work)
    };
    Ok(conditions.under(load, cell, estimate::seconds(&plan, workload)))
}

/// Returns whether a target's kernel can say who took the time. In a container, threads have other
/// numbers than in the kernel's events.
fn has_events(target: &TargetSpec) -> bool {
    target.capabilities().is_direct || target.kernel() == Kernel::Guest
}

/// Returns how many untimed repetitions come first: of long ones as many as take about a second.
fn default_warmup(workload: &Workload, size: u64) -> u64 {
    const MOST_NS: f64 = 1e9;
    let most = (MOST_NS / (workload.ns)(size)) as u64;
    most.clamp(1, measured::Plan::DEFAULT_WARMUP)
}

/// Returns what distinguishes a cell from others of the experiment.
fn labels(plan: &measured::Plan) -> Labels {
    let labels = Labels::default().with("workload", plan.workload.id);
    let labels = match plan.workload.size {
        Some(_) => labels.with("size", plan.size),
        None => labels,
    };
    match plan.timing {
        Timing::Fenced => labels,
        Timing::Published => labels.with("timing", plan.timing.name()),
    }
}

/// Makes the work of a plan.
fn work(plan: &measured::Plan) -> Work {
    Work {
        threads: plan.threads(),
        cpus: plan.cpus,
        buffer_bytes: measured::buffer_bytes(plan) as u64,
        ends_early: plan.duration_ns.is_some(),
        above: plan.above_ns,
        ..Work::new(plan.workload.id, &measured::OwnWords(plan).to_string())
    }
}

/// Describes the delays that a plan lists.
fn listed(plan: &measured::Plan) -> String {
    let (id, is_spin) = (plan.workload.id, plan.workload.only_reads_clock());
    let least = match plan.threshold {
        Threshold::Auto => default_threshold(is_spin).to_owned(),
        Threshold::Cycles(cycles) => format!("{cycles} cycles"),
        Threshold::Ns(ns) => format!("{ns} ns"),
    };
    match is_spin {
        true => format!("{id} lists what takes at least {least}"),
        false => format!("{id} lists what exceeds the run's mean by {least}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tare_results::model::Plan;

    use tare_lab::parameter::Value;

    use super::*;
    use tare_lab::plan::{Frame, Repeated, assemble, of_one};

    type Sized = (&'static Workload, u64);

    fn plan_of(works: &[Sized], runs: u32) -> Result<Plan, ExperimentError> {
        plan_at(&conditions(), works, runs)
    }

    fn plan_at(
        conditions: &Conditions,
        works: &[Sized],
        runs: u32,
    ) -> Result<Plan, ExperimentError> {
        let cells = combinations(&options(works), conditions)?;
        let cells: Vec<Repeated> = cells
            .into_iter()
            .map(|cell| Repeated { cell, runs })
            .collect();
        assemble(&cells, frame())
    }

    #[test]
    fn the_warm_up_of_long_repetitions_is_bounded_by_time() {
        let of = |id, size| {
            let mut all = workloads();
            default_warmup(all.find(|one| one.code.id == id).unwrap(), size)
        };
        assert_eq!(of("prime", 22), 1_000);
        assert!((1..50).contains(&of("prime", 65_536)));
    }

    fn options(works: &[Sized]) -> Options {
        Options {
            works: works.to_vec(),
            repetitions: None,
            warmup: None,
            timing: Timing::Fenced,
            threshold: Threshold::Auto,
            window: 500,
            explain_ns: None,
            long: None,
        }
    }

    fn conditions() -> Conditions {
        Conditions {
            targets: vec![tare_targets::process::spec()],
            loads: vec![Schedule::idle()],
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

    /// All workloads, each of its default size.
    fn all() -> Vec<Sized> {
        works(&Values::default())
    }

    fn sized(id: &str, size: u64) -> Sized {
        (workload(id).unwrap(), size)
    }

    #[test]
    fn a_plan_numbers_its_cells_in_order_and_fills_every_block() {
        let plan = plan_of(&all(), 4).unwrap();
        let ids: Vec<u32> = plan.cells.iter().map(|cell| cell.id).collect();
        assert_eq!(ids, (1..=4 * all().len() as u32).collect::<Vec<_>>());
        for block in 1..=4 {
            let workloads: HashSet<&str> = plan
                .cells
                .iter()
                .filter(|cell| cell.block == block)
                .map(|cell| cell.work.id.as_str())
                .collect();
            assert_eq!(workloads.len(), all().len());
        }
        assert!(plan.cells.is_sorted_by_key(|cell| cell.block));
    }

    #[test]
    fn cells_of_one_combination_repeat_each_other() {
        let plan = plan_of(&[sized("prime", 22)], 2).unwrap();
        assert!(plan.cells[0].repeats(&plan.cells[1]));
        assert_eq!(
            plan.cells[0].work.to_string(),
            "workload=prime limit=22 repetitions=1000000 warmup=1000 timing=fenced \
             threshold=auto capacity=1048576 bins=1000 window=500 cpu=1"
        );
    }

    #[test]
    fn delays_are_explained_where_a_kernel_says_who_took_the_time() {
        let of = |targets: &[&str]| {
            let targets = targets.iter();
            let targets = targets.map(|target| tare_targets::spec::parse(target).unwrap().spec());
            let conditions = Conditions {
                targets: targets.collect(),
                ..conditions()
            };
            let options = Options {
                explain_ns: Some(5_000),
                ..options(&[sized("prime", 22)])
            };
            combinations(&options, &conditions)
        };
        let cells = of(&["process", "unikernel"]).unwrap();
        let explained = cells
            .iter()
            .map(|cell| cell.work.words.contains("explain="));
        assert_eq!(explained.collect::<Vec<_>>(), [true, false]);
        let why = of(&["unikernel"]).unwrap_err().to_string();
        assert!(
            why.contains("explain: what runs on unikernel reports no"),
            "{why}"
        );
    }

    #[test]
    fn the_buffers_follow_what_is_kept() {
        let mib = |id, size, repetitions| {
            let code = measured::find(id).unwrap();
            let work = work(&measured::Plan::new(code, size, repetitions));
            work.buffer_bytes.div_ceil(1 << 20)
        };
        assert_eq!(mib("prime", 22, 1), 1);
        // 16 MB of stamps and 24 MB of listed delays.
        assert_eq!(mib("prime", 22, 1_000_000), 39);
        // Timer reads are not kept, gaps are.
        assert_eq!(mib("gap", 0, 100_000_000_000), 25);
        assert_eq!(mib("copy", 1 << 24, 1), 257);
    }

    #[test]
    fn loads_are_a_dimension_and_cells_under_different_ones_do_not_repeat_each_other() {
        let loads = ["idle", "dd", "cpus=0:dd"]
            .map(|load| Schedule::parse(load).unwrap())
            .to_vec();
        let conditions = Conditions {
            loads,
            ..conditions()
        };
        let plan = plan_at(&conditions, &all()[..1], 2).unwrap();
        for block in 1..=2 {
            let cells = plan.cells.iter().filter(|cell| cell.block == block);
            let mut found: Vec<&str> = cells.map(|cell| cell.load.as_str()).collect();
            found.sort_unstable();
            assert_eq!(found, ["cpus=0:dd", "dd", "idle"]);
        }
        let of = |load: &str| {
            plan.cells
                .iter()
                .find(|cell| cell.load.as_str() == load)
                .unwrap()
        };
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
            values.give("workload", vec![Value::Text("prime".to_owned())]);
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
        for (work, message) in [
            (
                sized("prime", 0),
                "prime: limit must be from 3 to 65536, not 0",
            ),
            (
                sized("copy", 1 << 40),
                "copy: size must be from 1 to 16777216, not 1099511627776",
            ),
        ] {
            let error = plan_of(&[work], 1).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn no_runs_and_too_many_runs_are_refused() {
        assert_eq!(
            plan_of(&all(), 0).unwrap_err().to_string(),
            "nothing to run: the number of runs is 0"
        );
        assert!(plan_of(&all(), u32::MAX).is_err());
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
        let mut command = words(plan_of(&all(), 1).unwrap().cells);
        let mut defaults = words(defaults);
        command.sort();
        defaults.sort();
        assert_eq!(defaults, command);
    }

    #[test]
    fn texts_are_made_of_the_descriptors() {
        let texts = PARAMETERS
            .iter()
            .flat_map(|one| [one.name, one.default, one.meaning]);
        insta::assert_snapshot!(texts.collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn a_long_run_is_equal_cells_of_gap_that_decide_how_many_runs_there_are() {
        let text = |text: &str| Value::Text(text.to_owned());
        let given = |all: &[(&'static str, Vec<Value>)]| {
            let mut values = Values::default();
            for (name, given) in all {
                values.give(name, given.clone());
            }
            values
        };
        let duration = ("duration", vec![Value::Number(720_000_000_000)]);
        let on = [
            "gap > 1ms",
            "signal:USR1",
            "gap > 50us",
            "shell:true",
            "gap > 50us",
            "continue",
        ];
        let values = given(&[
            duration.clone(),
            ("list", vec![Value::Number(20_000)]),
            ("on", on.map(text).to_vec()),
        ]);
        assert_eq!(Noise.default_runs(&values), 3);
        let cells = Noise.combinations(&conditions(), &values).unwrap();
        let [cell] = cells.as_slice() else {
            panic!("{cells:?}");
        };
        assert!(Noise.is_long(cell) && cell.work.ends_early && cell.estimate_seconds > 240.0);
        assert_eq!(cell.work.above, Some(50_000));
        assert!(
            cell.work.words.ends_with(
                "explain=5000ns duration=240000000000ns list=20000ns above=50000ns until=1000000ns"
            ),
            "{}",
            cell.work.words
        );
        // Less than 12 MB of gaps, whatever happens.
        assert!(
            cell.work.buffer_bytes < 24 << 20,
            "{}",
            cell.work.buffer_bytes
        );
        for (more, why) in [
            (
                vec![duration.clone(), ("repetitions", vec![Value::Number(1)])],
                "noise: duration takes the place of repetitions: give one",
            ),
            (
                vec![duration.clone(), ("workload", vec![text("prime")])],
                "noise: a duration is only for the workload gap",
            ),
            (
                vec![
                    duration.clone(),
                    ("on", vec![text("lost > 1%"), text("continue")]),
                ],
                "noise: 'lost > 1%' is not an event: want one such as 'gap > 100us'",
            ),
        ] {
            let refused = Noise.combinations(&conditions(), &given(&more));
            assert_eq!(refused.unwrap_err().to_string(), why);
        }
        for wrong in [
            "gap.p99 > 1us",
            "gap{load=dd} > 1us",
            "gap < 1us",
            "gap > 1%",
            "gap",
        ] {
            assert!(event(wrong).is_err(), "{wrong}");
        }
    }
}
