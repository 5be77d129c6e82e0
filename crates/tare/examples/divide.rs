//! tare with the workload of docs/adding-a-workload.md.

#[path = "../../../measured/workloads/examples/divide/divide.rs"]
mod divide;

use std::process::ExitCode;

use tare_workloads::noise::{Workload, add};

static WORKLOADS: &[Workload] = &[divide::WORKLOAD];

fn main() -> ExitCode {
    add(&WORKLOADS);
    tare::main()
}
