//! The image `bench` with the workload and the experiment of the tutorials in docs/.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

#[path = "../../src/bin/bench/bench.rs"]
mod bench;
#[path = "../../../experiments/examples/clocks/mod.rs"]
mod clocks;
#[path = "../../../workloads/examples/divide/divide.rs"]
mod divide;
#[path = "../../src/bin/bench/machine.rs"]
mod machine;

use tare_unikernel::boot::Boot;
use tare_unikernel::exit::Status;
use tare_workloads::noise::{Workload, add};

tare_unikernel::image!(main);

static WORKLOADS: &[Workload] = &[divide::WORKLOAD];

fn main(boot: &'static Boot) -> Status {
    add(&WORKLOADS);
    bench::run(boot, &[clocks::on()])
}
