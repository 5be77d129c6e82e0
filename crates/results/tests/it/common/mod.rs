//! Runs to test with: a plan, a machine of which nothing is known, and cells that make sense.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use tare_host::{Machine, Source};
use tare_results::model::{
    Agent, Bin, Calibration, Cell, CellPlan, Count, Event, Frequency, FrequencySource, Instance,
    Labels, Outcome, Plan, Preparation, Program, Record, SCHEMA, Samples, SetHead, SetSamples,
    Value,
};
use tare_results::target::{Group, TargetSpec};
use tare_results::work::Work;
use tare_results::{MachineRecord, RunFolder};

/// Makes a plan of so many cells, `gap` and `prime` by turns.
pub fn plan(cells: u32) -> Plan {
    Plan {
        schema: SCHEMA,
        tare_version: "0.1.0".to_owned(),
        experiment: "noise".to_owned(),
        created: "2026-03-01T12:00:00Z".parse().unwrap(),
        command: vec!["tare".to_owned(), "noise".to_owned()],
        seed: 42,
        cpu: 1,
        cpu_reason: "the only one".to_owned(),
        settings: Vec::new(),
        study: None,
        start_engine: false,
        cells: (1..=cells).map(cell_plan).collect(),
    }
}

/// Samples of a cell.
const REPETITIONS: u64 = 3_000;

fn cell_plan(id: u32) -> CellPlan {
    let workload = if id.is_multiple_of(2) { "prime" } else { "gap" };
    let target = TargetSpec::new("process", Vec::new(), Group::Process);
    let work = Work::new(workload, &format!("repetitions={REPETITIONS}"));
    CellPlan {
        id,
        block: id.div_ceil(2),
        estimate_seconds: 0.1 + f64::from(id) / 3.0,
        limit_seconds: 10.0,
        ..CellPlan::new("noise", target, workload, work)
    }
}

/// Makes the record of a machine of which nothing is known.
pub fn machine() -> MachineRecord {
    let nowhere = tempfile::tempdir().unwrap();
    MachineRecord::new(Machine::collect(&Source::at(nowhere.path())), Vec::new())
}

/// Creates a run of so many cells.
pub fn create(path: &Path, cells: u32) -> RunFolder {
    RunFolder::create(path, &plan(cells), &machine()).unwrap()
}

/// Makes a cell that is done, different for each seed.
pub fn done(plan: &CellPlan, seed: u64) -> (Cell, Samples) {
    let is_gap = plan.name == "gap";
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut at, first) = (1 << 40, 1 << 40);
    let mut all = Vec::new();
    for index in 0..REPETITIONS {
        let value = 900 + random.u64(0..30) * 26;
        all.push(Event { index, at, value });
        at += value + 50;
    }
    let threshold = 1_601;
    let listed = all.iter().filter(|row| row.value >= threshold);
    let events: Vec<Event> = listed.copied().collect();
    // What is counted and in the envelope: of gap, the listed samples only.
    let counted = if is_gap { &events } else { &all };
    let mut counts = BTreeMap::new();
    for row in counted {
        *counts.entry(row.value).or_insert(0) += 1;
    }
    let width = 100_000;
    let mut envelope: BTreeMap<u32, Bin> = BTreeMap::new();
    for row in counted {
        let number = u32::try_from((row.at - first) / width).unwrap();
        let bin = envelope.entry(number).or_insert(Bin {
            bin: number,
            n: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        });
        bin.n += 1;
        bin.sum += row.value;
        bin.min = bin.min.min(row.value);
        bin.max = bin.max.max(row.value);
    }
    let sum = if is_gap {
        at - first
    } else {
        all.iter().map(|row| row.value).sum()
    };
    let raw = if is_gap {
        Vec::new()
    } else {
        all[1_000..1_500].to_vec()
    };
    let head = SetHead {
        measure: if is_gap { "gap" } else { "duration" }.to_owned(),
        n: REPETITIONS,
        sum,
        first,
        last: at,
        threshold,
        seen: events.len() as u64,
        kept: events.len() as u64,
        squares_below: is_gap.then_some(1 << 30),
        bin: width,
        raw: raw.len() as u64,
        ..SetHead::default()
    };
    let counts = counts.into_iter();
    let set = SetSamples {
        counts: counts
            .map(|(value, count)| Count { value, count })
            .collect(),
        events,
        envelope: envelope.into_values().collect(),
        raw,
    };
    let samples = Samples {
        instances: vec![Instance {
            started_ns: seed,
            ..Instance::default()
        }],
        sets: vec![set],
    };
    (cell(plan, Outcome::done(record(head))), samples)
}

/// Makes a cell that failed.
pub fn failed(plan: &CellPlan, reason: &str) -> Cell {
    let reason = reason.to_owned();
    cell(plan, Outcome::Failed { reason })
}

fn cell(plan: &CellPlan, outcome: Outcome) -> Cell {
    Cell {
        schema: SCHEMA,
        plan: plan.clone(),
        invocation: "2026-03-01T12:00:00Z".parse().unwrap(),
        started_at: "2026-03-01T12:00:05.25Z".parse().unwrap(),
        outcome,
        notices: Vec::new(),
        load: None,
        daemons: Vec::new(),
    }
}

fn record(head: SetHead) -> Record {
    let program = Program {
        agent: Agent {
            version: "0.1.0".to_owned(),
            environment: "linux".to_owned(),
            sha256: "0".repeat(64),
            emulated: false,
            accelerator: None,
            kernel: None,
        },
        preparation: Preparation {
            cpu: Some(1),
            buffer_bytes: 48_000,
            locked: true,
            latency_held: false,
        },
        calibration: Calibration {
            fenced_region_cycles: 78,
            fenced_cost_cycles: 104.5,
            published_region_cycles: 52,
            published_cost_cycles: 60.25,
            bare_read_cycles: 25.96,
            step_cycles: 26,
            loop_cycles: 1.0 / 3.0,
        },
        frequencies: vec![Frequency {
            source: FrequencySource::KernelClock,
            hz: 2_596_096_000.1,
            uncertainty_ppm: Some(0.3),
            detail: "clocksource=tsc".to_owned(),
        }],
        counters: Vec::new(),
        facts: Vec::new(),
    };
    Record {
        programs: vec![program],
        values: vec![Value {
            measure: "work".to_owned(),
            labels: Labels::default(),
            unit: String::new(),
            value: 84.0,
        }],
        sets: vec![head],
        ..Record::default()
    }
}

/// Makes a command that runs one test of this test program alone, with `run` in an environment
/// variable; the test returns at once without it.
pub fn alone(test: &str, run: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(RUN, run);
    command
}

/// Is the environment variable of [`alone`].
pub const RUN: &str = "TARE_RESULTS_TEST_RUN";
