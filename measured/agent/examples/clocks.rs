//! The agent with the experiment of docs/adding-an-experiment.md.

#[path = "../../experiments/examples/clocks/mod.rs"]
mod clocks;

use std::process::ExitCode;

fn main() -> ExitCode {
    tare_agent::main(&[clocks::on()])
}
