//! The experiment of docs/adding-an-experiment.md, in a program with a table of its own.
#![forbid(unsafe_code)]

#[path = "../../../../measured/experiments/examples/clocks/plan.rs"]
mod plan;
mod run;
mod show;

use std::process::ExitCode;

use tare_experiments::noise::Noise;
use tare_experiments::wakeup::Wakeup;
use tare_experiments::{Table, install};

/// The experiment, by the name under which it stands in the table.
#[derive(Clone, Copy, Debug)]
pub struct Clocks;

const TABLE: Table = &[&Noise, &Wakeup, &Clocks];

fn main() -> ExitCode {
    install(TABLE);
    tare::main()
}
