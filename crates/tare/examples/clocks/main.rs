//! The experiment of docs/adding-an-experiment.md, in a program that has it beside those of tare.
#![forbid(unsafe_code)]

mod run;
mod show;

use std::process::ExitCode;

use tare_experiments::noise::Noise;
use tare_experiments::wakeup::Wakeup;
use tare_experiments::{Table, install};

const NAME: &str = "clocks";

/// The experiment, by the name under which it stands in the table.
#[derive(Clone, Copy, Debug)]
pub struct Clocks;

const TABLE: Table = &[&Noise, &Wakeup, &Clocks];

fn main() -> ExitCode {
    install(TABLE);
    tare::main()
}
