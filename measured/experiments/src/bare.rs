//! A machine without a kernel as a platform: its experiments, and the abilities that they need.

use tare_unikernel::local::local;
use tare_unikernel::timer;
use tare_wire::image::Settings;

use crate::platform::Platform;
use crate::session::Stop;
use crate::table::{Measurement, Threads, everywhere};
use crate::{primitives, wakeup};

/// A machine that runs nothing but the measured code.
pub trait Bare: Platform<Error = Stop> {
    /// Returns the settings from the command line.
    fn settings(&self) -> Settings<'static>;

    /// Leaves the timer to the measured code: [`Platform::prepare`] starts no tick.
    fn leave_timer(&mut self);
}

/// Returns the experiments of a machine without a kernel.
pub fn experiments<M: Bare>() -> impl Iterator<Item = Measurement<M>> {
    let own = [wakeup::bare::on(), primitives::bare::on()];
    everywhere().into_iter().chain(own)
}

/// Returns the CPU that prepares, measures and reports: the first one if there are several threads,
/// because it starts all other CPUs.
pub fn reporting_cpu(threads: Threads) -> u32 {
    match threads.number {
        1 => threads.first_cpu.unwrap_or(0),
        _ => 0,
    }
}

/// Returns the events that were counted on this CPU.
#[inline]
pub fn counters() -> [(&'static str, u64); 3] {
    [
        ("timer interrupts", timer::ticks()),
        ("timer interrupts missed", timer::missed()),
        ("other interrupts", local().unexpected_interrupts()),
    ]
}
