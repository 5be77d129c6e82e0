//! The workload of docs/adding-a-workload.md on the unikernel.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

#[path = "../../../workloads/examples/divide/divide.rs"]
mod divide;
#[path = "../../src/bin/bench/machine.rs"]
mod machine;

use tare_measured::bare::experiments;
use tare_measured::platform::StartTimes;
use tare_measured::table::find;
use tare_unikernel::boot::Boot;
use tare_unikernel::exit::Status;
use tare_wire::image::Settings;
use tare_workloads::noise::{Workload, add};

use self::machine::Machine;

tare_unikernel::image!(main);

static WORKLOADS: &[Workload] = &[divide::WORKLOAD];

fn main(boot: &'static Boot) -> Status {
    add(&WORKLOADS);
    let words = || boot.command_line.split_ascii_whitespace();
    let Ok(measurement) = find(words(), experiments()) else {
        return Status::Misused;
    };
    let mut machine = Machine::new(Settings::default(), StartTimes::default());
    match (measurement.run)(&mut words(), &mut machine) {
        Ok(()) => Status::Done,
        Err(_) => Status::Failed,
    }
}
