//! How the experiment is run: its parameters and its cells.

use tare_lab::estimate::OVERHEAD_SECONDS;
use tare_lab::experiment::Conditions;
use tare_lab::parameter::{Parameter, Takes, Values};
use tare_lab::{Experiment, ExperimentError};
use tare_results::model::{CellPlan, Labels};
use tare_results::work::Work;
use tare_wire::cpus::Cpus;

use super::Clocks;
use super::plan::{Clock, NAME, Plan};

const CLOCK: Parameter = Parameter {
    name: "clock",
    value: "CLOCK",
    takes: Takes::Word(&[
        Clock::Tsc.name(),
        Clock::Monotonic.name(),
        Clock::Reference.name(),
    ]),
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
        let is_wanted = |clock: &Clock| named.is_empty() || named.contains(&clock.name());
        let mut cells = Vec::new();
        for target in &conditions.targets {
            for load in &conditions.loads {
                for clock in Clock::ALL.into_iter().filter(is_wanted) {
                    let plan = Plan {
                        clock,
                        reads: READS.number(values),
                        cpu: Some(conditions.cpu),
                    };
                    let cell = CellPlan {
                        labels: Labels::default().with("clock", clock.name()),
                        ..CellPlan::new(NAME, target.clone(), clock.name(), work(&plan))
                    };
                    let seconds = OVERHEAD_SECONDS + plan.reads as f64 * 100e-9;
                    cells.push(conditions.under(load, cell, seconds));
                }
            }
        }
        Ok(cells)
    }

    fn work(&self, words: &str) -> Option<Work> {
        Some(work(&Plan::parse(words.split_whitespace()).ok()?))
    }
}

fn work(plan: &Plan) -> Work {
    // The words without `cpu=`, which targets choose.
    let words = Plan { cpu: None, ..*plan }.to_string();
    Work {
        cpus: plan.cpu.map(Cpus::one),
        buffer_bytes: plan.buffer_bytes(),
        ..Work::new(NAME, &words)
    }
}
