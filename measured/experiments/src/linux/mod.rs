//! Linux as a platform: its experiments, and the parts that they share with the agent.
//!
//! * [`clock`]: the kernel's clocks, and sleeping until a time of them;
//! * [`arrivals`]: how many interrupts and softirqs the kernel counts on a CPU;
//! * [`files`]: the files in which the system shows what disturbs measurements;
//! * [`flight`]: the kernel's events on a CPU;
//! * [`pinned`]: whether a thread has stayed on its CPU.

pub mod arrivals;
pub mod clock;
pub mod files;
pub mod flight;
pub mod pinned;

use crate::platform::Platform;
use crate::table::{Measurement, everywhere};
use crate::wakeup::linux::ThreadsError;
use crate::{noise, primitives, service, wakeup};

/// A fact about the system, seen from inside: its name and its value.
pub type Fact = (&'static str, String);

/// Returns the experiments of Linux.
pub fn experiments<P: Platform<Error = ThreadsError>>() -> impl Iterator<Item = Measurement<P>> {
    let own = [
        noise::linux::on(),
        wakeup::linux::on(),
        primitives::linux::on(),
        service::linux::on(),
        files::on(),
    ];
    // The first one that has a workload is taken.
    own.into_iter().chain(everywhere())
}
