//! The tick: an interrupt at a chosen rate, as in a conventional kernel.
//!
//! The timer fires once, and its handler sets it again, counts and acknowledges. If the CPU has the
//! TSC-deadline mode, the next tick is due a period after the last one was due, so the rate is
//! exact. Otherwise (QEMU's own emulation, CPUs before 2011) the APIC's timer counts a period from
//! the handler on, so each tick is delayed by the interrupt's latency. The periodic mode would
//! avoid that, but KVM limits its rate to 5 kHz.

use core::sync::atomic::Ordering;

use crate::apic::{self, Mode};
use crate::clock;
use crate::cpu;
use crate::interrupts::{DEADLINE, ONE_SHOT, TIMER};
use crate::local::local;
use crate::rate::steps_per_period;

/// The reason why there is no tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerError {
    /// The frequency of the timer is unknown.
    NoFrequency,
    /// The timer doesn't support a tick this fast or this slow.
    Rate,
}

/// Starts the tick on this CPU, with `hz` interrupts a second, and enables interrupts. `tsc_hz` is
/// called if the TSC's frequency is needed.
///
/// # Errors
///
/// Returns [`TimerError`] if the timer does not support the rate.
pub fn start(hz: u32, tsc_hz: impl FnOnce() -> Option<f64>) -> Result<(), TimerError> {
    apic::enable();
    if cpu::has_tsc_deadline() {
        let tsc_hz = tsc_hz().ok_or(TimerError::NoFrequency)?;
        let period = steps_per_period(tsc_hz / 16.0, hz).ok_or(TimerError::Rate)?;
        start_by_deadline(16 * u64::from(period));
    } else {
        let timer_hz = clock::apic_timer_hz()
            .or_else(clock::measure_apic_timer_hz)
            .ok_or(TimerError::NoFrequency)?;
        let period = steps_per_period(timer_hz, hz).ok_or(TimerError::Rate)?;
        local().period.store(period.into(), Ordering::Relaxed);
        apic::set_timer(Mode::OneShot, Some(ONE_SHOT));
        apic::set_count(period);
    }
    cpu::enable_interrupts();
    Ok(())
}

/// Starts the tick in TSC-deadline mode, every `period` TSC ticks; [`start`] chooses it if the CPU
/// has it. Does not enable interrupts.
pub fn start_by_deadline(period: u64) {
    let deadline = cpu::tsc() + period;
    local().period.store(period, Ordering::Relaxed);
    local().deadline.store(deadline, Ordering::Relaxed);
    apic::set_timer(Mode::Deadline, Some(DEADLINE));
    apic::set_deadline(deadline);
}

/// Returns the TSC at which the next tick is due on this CPU, in deadline mode.
pub fn deadline() -> u64 {
    local().deadline.load(Ordering::Relaxed)
}

/// Returns the number of ticks on this CPU.
pub fn ticks() -> u64 {
    local().interrupts(TIMER)
}

/// Returns the number of ticks skipped on this CPU because they had passed before they could be
/// set.
pub fn missed() -> u64 {
    local().missed.load(Ordering::Relaxed)
}
