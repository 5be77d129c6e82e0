//! How the experiment is run: its parameters and its cells.

use tare_lab::estimate::OVERHEAD_SECONDS;
use tare_lab::experiment::Conditions;
use tare_lab::parameter::{Parameter, Takes, Values};
use tare_lab::{Experiment, ExperimentError};
use tare_results::model::{CellPlan, Labels};
use tare_results::work::Work;
use tare_wire::cpus::Cpus;

use super::{Clocks, NAME};

const CLOCKS: &[&str] = &["tsc", "monotonic", "reference"];

const CLOCK: Parameter = Parameter {
    name: "clock",
    value: "CLOCK",
    takes: Takes::Word(CLOCKS),
    many: true,
    default: "all",
    meaning: "Clock to read: tsc, monotonic or reference (CLOCK_MONOTONIC_RAW)",
    ..Parameter::NEW
};

const READS: Parameter = Parameter {
    name: "reads",
    takes: Takes::Number {
        least: 1,
        most: 10_000_000,
    },
    default: "100000",
    meaning: "How often each clock is read",
    ..Parameter::NEW
};

impl Experiment for Clocks {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "what reading each clock costs"
    }

    fn without_arguments(&self) -> &'static str {
        "Without arguments, each clock is read 100,000 times in each of six runs, in a few seconds."
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[CLOCK, READS]
    }

    fn combinations(
        &self,
        conditions: &Conditions,
        values: &Values,
    ) -> Result<Vec<CellPlan>, ExperimentError> {
        let named = values.texts(CLOCK.name);
        let clocks = if named.is_empty() { CLOCKS } else { &named };
        let reads = READS.number(values);
        let mut cells = Vec::new();
        for target in &conditions.targets {
            for load in &conditions.loads {
                for clock in clocks {
                    let work = Work {
                        cpus: Some(Cpus::one(conditions.cpu)),
                        buffer_bytes: reads * 8,
                        ..Work::new(NAME, &format!("clock={clock} reads={reads}"))
                    };
                    let cell = CellPlan {
                        labels: Labels::default().with("clock", clock),
                        ..CellPlan::new(NAME, target.clone(), clock, work)
                    };
                    let seconds = OVERHEAD_SECONDS + reads as f64 * 100e-9;
                    cells.push(conditions.under(load, cell, seconds));
                }
            }
        }
        Ok(cells)
    }
}
