//! The command, with the experiments of tare.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    tare::main()
}
