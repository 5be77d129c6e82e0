//! Runs to test with: a plan, a machine of which nothing is known, and cells that make sense.

use std::path::Path;
use std::process::Command;

use tare_host::{Machine, Source};
use tare_results::model::{
    Agent, Cell, CellPlan, FrequencySource, Instance, Outcome, Plan, SCHEMA, Samples,
};
use tare_results::receive::Receiver;
use tare_results::target::{Group, TargetSpec};
use tare_results::work::Work;
use tare_results::{MachineRecord, RunFolder};
use tare_testkit::records::{Lists, Room, instance};
use tare_wire::record::{Frequency, Record, Set, Value};

/// Makes a plan with this number of cells.
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
    let target = TargetSpec::new("process", Vec::new(), Group::Process);
    let work = Work::new("prime", &format!("repetitions={REPETITIONS}"));
    CellPlan {
        id,
        block: id.div_ceil(2),
        estimate_seconds: 0.1 + f64::from(id) / 3.0,
        limit_seconds: 10.0,
        ..CellPlan::new("noise", target, "prime", work)
    }
}

/// Makes the record of a machine of which nothing is known.
pub fn machine() -> MachineRecord {
    let nowhere = tempfile::tempdir().unwrap();
    MachineRecord::new(Machine::collect(&Source::at(nowhere.path())), Vec::new())
}

/// Creates a run with this number of cells.
pub fn create(path: &Path, cells: u32) -> RunFolder {
    RunFolder::create(path, &plan(cells), &machine()).unwrap()
}

/// Makes a cell that is done, different for each seed.
pub fn done(plan: &CellPlan, seed: u64) -> (Cell, Samples) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut time = 0;
    let durations = (0..REPETITIONS).map(|index| {
        let value = 900 + random.u64(0..30) * 26;
        time += value + 50;
        (index, time - value, value)
    });
    let set = Set {
        measure: "duration",
        first: 1 << 40,
        threshold: 1_601,
        bin: 100_000,
        ..Set::default()
    };
    let room = Room {
        raw: 500,
        ..Room::ENOUGH
    };
    let set = Lists::fold(set, &[], durations, room);
    let more = [
        Record::Frequency(Frequency {
            source: FrequencySource::KernelClock,
            hz: 2_596_096_000.1,
            uncertainty_ppm: Some(0.3),
            detail: "clocksource=tsc",
        }),
        Record::Value(Value {
            measure: "work",
            labels: "",
            unit: "",
            value: 84.0,
        }),
    ];
    let mut receiver = Receiver::default();
    for line in instance(&[set], &more) {
        receiver.line(&line);
    }
    let of_instance = Instance {
        started_ns: seed,
        ..Instance::default()
    };
    let received = receiver.finish().unwrap();
    let (record, samples, _) = received.into_record(Agent::default(), of_instance, &[]);
    (cell(plan, Outcome::done(record)), samples)
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
        other_work: None,
        guest_work: None,
        unswitched: Vec::new(),
    }
}

/// Makes a command that runs one test of this test program alone, with `run` in an environment
/// variable; the test returns at once without it.
pub fn alone(test: &str, run: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(RUN, run);
    command
}

/// The environment variable of [`alone`].
pub const RUN: &str = "TARE_RESULTS_TEST_RUN";
