//! The workloads on the unikernel: the same plan, the same measured code and the same records as
//! the agent's.
//!
//! The command line holds the plan's words and the settings of [`tare_wire::image`]:
//!
//! ```text
//! service=bench irq=on timer-hz=250 cpus=2 workload=prime limit=22 repetitions=1000000 cpu=1
//! service=bench irq=off workload=wakeup interval=100us duration=25s
//! ```
//!
//! Exit status, as the host sees it: 33 done, 35 failed (a `failure` record says why), 37 the
//! command line can't be read, 39 crashed.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

mod bench;
mod machine;

use tare_unikernel::boot::Boot;
use tare_unikernel::exit::Status;

tare_unikernel::image!(main);

fn main(boot: &'static Boot) -> Status {
    bench::run(boot, &[])
}
