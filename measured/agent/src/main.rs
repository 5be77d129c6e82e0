//! The agent, with the functions of tare.

use std::process::ExitCode;

fn main() -> ExitCode {
    tare_agent::main(&[])
}
