//! Runs to test with: a plan, a machine of which nothing is known, and cells that make sense.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use tare_host::{Machine, Source};
use tare_results::model::{
    Agent, Batch, Calibration, Cell, CellPlan, Count, Delay, EnvelopeBin, Events, Frequency,
    FrequencySource, Measurement, Outcome, Plan, Preparation, SCHEMA, Samples,
};
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

fn cell_plan(id: u32) -> CellPlan {
    let (workload, size) = if id.is_multiple_of(2) {
        ("prime", Some(22))
    } else {
        ("gap", None)
    };
    CellPlan {
        id,
        block: id.div_ceil(2),
        experiment: "noise".to_owned(),
        target: "process".to_owned(),
        load: "idle".to_owned(),
        phases: Vec::new(),
        phase_seconds: None,
        workload: workload.to_owned(),
        size,
        repetitions: 3_000,
        timing: "fenced".to_owned(),
        words: format!("workload={workload} repetitions=3000"),
        estimate_seconds: 0.1 + f64::from(id) / 3.0,
        limit_seconds: 10.0,
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
    let is_gap = plan.workload == "gap";
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut start_tsc, first_tsc) = (1 << 40, 1 << 40);
    let mut all = Vec::new();
    for index in 0..plan.repetitions {
        let cycles = 900 + random.u64(0..30) * 26;
        all.push(Delay {
            index,
            start_tsc,
            cycles,
        });
        start_tsc += cycles + 50;
    }
    let delays: Vec<_> = all
        .iter()
        .filter(|row| row.cycles > 1_600)
        .copied()
        .collect();
    // What is counted and in the envelope: of gap, the listed delays only.
    let counted = if is_gap { &delays } else { &all };
    let mut counts = BTreeMap::new();
    for row in counted {
        *counts.entry(row.cycles).or_insert(0) += 1;
    }
    let bin_cycles = 100_000;
    let mut envelope: BTreeMap<u32, EnvelopeBin> = BTreeMap::new();
    for row in counted {
        let number = u32::try_from((row.start_tsc - first_tsc) / bin_cycles).unwrap();
        let bin = envelope.entry(number).or_insert(EnvelopeBin {
            bin: number,
            count: 0,
            sum_cycles: 0,
            min_cycles: u64::MAX,
            max_cycles: 0,
        });
        bin.count += 1;
        bin.sum_cycles += row.cycles;
        bin.min_cycles = bin.min_cycles.min(row.cycles);
        bin.max_cycles = bin.max_cycles.max(row.cycles);
    }
    let sum = if is_gap {
        start_tsc - first_tsc
    } else {
        all.iter().map(|row| row.cycles).sum()
    };
    let batch = Batch {
        repetitions: plan.repetitions,
        first_tsc,
        last_tsc: start_tsc,
        sum_cycles: sum,
        threshold_cycles: 400,
        delays_seen: delays.len() as u64,
        delays_kept: delays.len() as u64,
        bin_cycles,
        ..Batch::default()
    };
    let window = if is_gap {
        Vec::new()
    } else {
        all[1_000..1_500].to_vec()
    };
    let samples = Samples {
        counts: counts
            .into_iter()
            .map(|(cycles, count)| Count { cycles, count })
            .collect(),
        delays,
        envelope: envelope.into_values().collect(),
        window,
        ..Samples::default()
    };
    (
        cell(plan, Outcome::Done(Box::new(measurement(batch)))),
        samples,
    )
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
        started_at: "2026-03-01T12:00:05.25Z".parse().unwrap(),
        events: Events::default(),
        outcome,
        notices: Vec::new(),
        load: None,
        daemons: Vec::new(),
    }
}

fn measurement(batch: Batch) -> Measurement {
    Measurement {
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
        batch,
        counters: Vec::new(),
        facts: Vec::new(),
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
