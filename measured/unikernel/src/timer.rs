//! The tick: an interrupt at a chosen rate, as a conventional kernel has.
//!
//! Where the CPU has the TSC-deadline mode, the handler sets the next deadline a period after the
//! last one. Elsewhere the APIC's timer repeats by itself. Either way the rate does not drift, and
//! the handler does nothing else but count and acknowledge.

use core::sync::atomic::Ordering;

use crate::apic::{self, Mode};
use crate::clock;
use crate::cpu;
use crate::interrupts::{DEADLINE, TIMER};
use crate::local::local;
use crate::rate::steps_per_period;

/// Says why there is no tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerError {
    /// Nothing tells the frequency of the timer.
    NoFrequency,
    /// The timer can't tick so fast or so slowly.
    Rate,
}

/// Starts the tick on this CPU, with `hz` interrupts a second, and lets interrupts in. `tsc_hz`
/// is asked for the TSC's frequency if it is needed.
///
/// # Errors
///
/// Returns [`TimerError`] if the timer can't tick so.
pub fn start(hz: u32, tsc_hz: impl FnOnce() -> Option<f64>) -> Result<(), TimerError> {
    apic::enable();
    if cpu::has_tsc_deadline() {
        let tsc_hz = tsc_hz().ok_or(TimerError::NoFrequency)?;
        let period = steps_per_period(tsc_hz / 16.0, hz).ok_or(TimerError::Rate)?;
        start_deadline(16 * u64::from(period));
    } else {
        let timer_hz = clock::apic_timer_hz()
            .or_else(clock::measure_apic_timer_hz)
            .ok_or(TimerError::NoFrequency)?;
        let period = steps_per_period(timer_hz, hz).ok_or(TimerError::Rate)?;
        apic::set_timer(Mode::Periodic, Some(TIMER));
        apic::set_count(period);
    }
    cpu::enable_interrupts();
    Ok(())
}

fn start_deadline(period: u64) {
    let deadline = cpu::tsc() + period;
    local().period.store(period, Ordering::Relaxed);
    local().deadline.store(deadline, Ordering::Relaxed);
    apic::set_timer(Mode::Deadline, Some(DEADLINE));
    // SAFETY: the CPU has the mode.
    unsafe { apic::set_deadline(deadline) };
}

/// Returns how often the tick has interrupted this CPU.
#[must_use]
pub fn ticks() -> u64 {
    local().interrupts(TIMER)
}

/// Returns how many ticks were left out on this CPU, since they were over before they could be set.
#[must_use]
pub fn missed() -> u64 {
    local().missed.load(Ordering::Relaxed)
}
