//! `stream`, after includeos-2015: the bandwidth of memory by STREAM's four kernels.
//!
//! A cell has arrays of one size on one target. The time of every pass of each kernel is kept.

mod story;

use tare_figures::rows::written;
use tare_host::{Machine, Source};
use tare_lab::ExperimentError;
use tare_lab::estimate::OVERHEAD_SECONDS;
use tare_lab::experiment::{Conditions, Experiment};
use tare_lab::parameter::{Parameter, Takes, Values};
use tare_lab::plan::at_most;
use tare_lab::units::bytes;
use tare_measured::stream::{ATTEMPTS, KIB, PASSES, Plan};
use tare_results::model::{CellPlan, Labels};
use tare_results::work::Work;
use tare_wire::cpus::Cpus;

pub use tare_measured::stream::NAME;

/// The label of the size of an array, in bytes.
const SIZE: &str = "size";
/// How many times the largest cache an array is at least, as STREAM wants it.
const CACHES: u64 = 4;
/// The greatest array by default, in KiB: three fit below 3 GiB, as the unikernel needs it.
const MOST_KIB: u64 = 640 << 10;
/// The bandwidth by which a cell's duration is estimated, in bytes/s.
const EXPECTED: f64 = 5e9;
/// The bandwidth that every cell has the time for, in bytes/s: less than an emulator's.
const LEAST: f64 = 50e6;

const BASE: Parameter = Parameter {
    heading: "Stream",
    ..Parameter::NEW
};

const ARRAY: Parameter = Parameter {
    name: "array",
    value: "SIZE",
    takes: Takes::text("a size from 1K to 4G, such as 64M", |text| {
        kib(text).is_some()
    }),
    many: true,
    default: "that of STREAM, 80 MB, or four times the largest cache if that is more, up to 640 MiB",
    meaning: "Size of each of the three arrays, such as 64M or 1G",
    ..BASE
};

const PASS: Parameter = Parameter {
    name: "passes",
    takes: Takes::number(PASSES),
    default: "40",
    meaning: "How often each kernel runs in a data set",
    ..BASE
};

const ATTEMPT: Parameter = Parameter {
    name: "attempts",
    takes: Takes::number(ATTEMPTS),
    default: "5",
    meaning: "Data sets at most: the first whose two halves agree for Triad (Welch's test, p > 0.1) is kept, or the last",
    ..BASE
};

/// The experiment, as studies name it.
#[derive(Clone, Copy, Debug)]
pub struct Stream;

impl Experiment for Stream {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "the bandwidth of memory: STREAM's Copy, Scale, Add and Triad"
    }

    fn without_arguments(&self) -> &'static str {
        "Without arguments, each kernel passes 40 times through arrays larger than the caches, in a process on the quietest CPU; six \
         times."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[ARRAY, PASS, ATTEMPT]
    }

    fn combinations(
        &self,
        conditions: &Conditions,
        values: &Values,
    ) -> Result<Vec<CellPlan>, ExperimentError> {
        let given: Vec<u64> = values
            .texts(ARRAY.name)
            .into_iter()
            .filter_map(kib)
            .collect();
        let is_given = !given.is_empty();
        let sizes = if is_given { given } else { vec![default_kib()] };
        let places = conditions.targets.len() as u64 * conditions.loads.len() as u64;
        at_most(places.saturating_mul(sizes.len() as u64))?;
        let mut cells = Vec::new();
        for target in &conditions.targets {
            for load in &conditions.loads {
                for kib in &sizes {
                    let plan = Plan {
                        kib: *kib,
                        passes: PASS.number(values),
                        attempts: ATTEMPT.number(values),
                        cpu: Some(conditions.cpu),
                    };
                    let mut cell = CellPlan::new(NAME, target.clone(), NAME, work(&plan));
                    if is_given {
                        let bytes = kib << 10;
                        cell.labels = Labels::default().with(SIZE, bytes);
                        cell.name = format!("{NAME}, arrays of {}", written(bytes as f64, "bytes"));
                    }
                    // Ten arrays are moved in a pass.
                    let moved = (kib << 10) as f64 * 10.0 * plan.passes as f64;
                    let seconds = OVERHEAD_SECONDS + moved / EXPECTED;
                    let mut cell = conditions.under(load, cell, seconds);
                    if conditions.cell_limit.is_none() {
                        cell.limit_seconds += plan.attempts as f64 * moved / LEAST;
                    }
                    cells.push(cell);
                }
            }
        }
        Ok(cells)
    }

    fn work(&self, words: &str) -> Option<Work> {
        Some(work(&Plan::parse(words.split_whitespace()).ok()?))
    }
}

/// Makes the work of a plan.
fn work(plan: &Plan) -> Work {
    let words = Plan { cpu: None, ..*plan }.to_string();
    Work {
        cpus: plan.cpu.map(Cpus::one),
        buffer_bytes: plan.buffer_bytes(),
        ..Work::new(NAME, &words)
    }
}

/// Reads the size of an array; `None` if it is out of bounds or no whole number of KiB.
fn kib(text: &str) -> Option<u64> {
    let bytes = bytes(text)?;
    let kib = bytes >> 10;
    (kib << 10 == bytes && (KIB[0]..=KIB[1]).contains(&kib)).then_some(kib)
}

/// Returns the size of an array by default.
fn default_kib() -> u64 {
    let machine = Machine::collect(&Source::system());
    let caches = machine.topology.caches.iter();
    let largest = caches.map(|cache| cache.size_bytes).max().unwrap_or(0);
    let wanted = largest.saturating_mul(CACHES) >> 10;
    wanted.clamp(Plan::default().kib, MOST_KIB)
}
