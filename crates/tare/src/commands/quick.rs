//! `tare quick`: a first picture of this machine in less than a minute.

use tare_wire::plan::Plan;

use super::noise;
use crate::cli::{NoiseArguments, QuickArguments};
use crate::error::CommandError;
use crate::terminal::Terminal;

/// Examines the machine, and measures its noise with default parameters.
pub fn run(arguments: &QuickArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    let noise = NoiseArguments {
        output: arguments.output.clone(),
        cpu: arguments.cpu,
        json: arguments.json,
        warmup: Plan::DEFAULT_WARMUP,
        window: Plan::DEFAULT_WINDOW,
        ..NoiseArguments::default()
    };
    noise::run_as("quick", &noise, terminal)
}
