//! `tare quick`: a first picture of this machine in less than a minute.

use tare_services::noise::Plan;
use tare_targets::{Availability, spec};

use super::noise;
use crate::cli::{NoiseArguments, QuickArguments};
use crate::error::CommandError;
use crate::terminal::Terminal;

/// Is what is measured beside this machine's kernel, where it can be: the same code with no kernel beneath it.
const BESIDE: &str = "unikernel,irq=off";

/// Examines the machine, and measures its noise with default parameters.
pub fn run(arguments: &QuickArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    let mut target = vec!["process".to_owned()];
    match spec::parse(BESIDE)?.availability() {
        Availability::Usable => target.push(BESIDE.to_owned()),
        Availability::Unusable { why, remedy } => terminal.note(&format!(
            "without {BESIDE}: {why}\n  to make it usable: {remedy}"
        )),
    }
    let noise = NoiseArguments {
        target,
        output: arguments.output.clone(),
        cpu: arguments.cpu,
        json: arguments.json,
        fail_if: arguments.fail_if.clone(),
        warmup: Plan::DEFAULT_WARMUP,
        window: Plan::DEFAULT_WINDOW,
        ..NoiseArguments::default()
    };
    noise::run_as("quick", &noise, terminal)
}
