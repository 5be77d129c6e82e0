//! The tick: an interrupt at a chosen rate, as a conventional kernel has.
//!
//! The timer fires once, and its handler sets it again, counts and acknowledges. Where the CPU has
//! the TSC-deadline mode, the next tick is due a period after the last one was due, so the rate is
//! exact. Elsewhere (QEMU's own emulation, CPUs before 2011) the APIC's timer counts a period from
//! the handler on, so ticks come later by the interrupt's latency each. The periodic mode would not,
//! but KVM limits its rate to 5 kHz.

use core::sync::atomic::Ordering;

use crate::apic::{self, Mode};
use crate::clock;
use crate::cpu;
use crate::interrupts::{DEADLINE, ONE_SHOT, TIMER};
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

/// Starts the tick by the TSC-deadline mode, every `period` TSC ticks; [`start`] chooses it where the
/// CPU has it. Does not let interrupts in.
pub fn start_by_deadline(period: u64) {
    let deadline = cpu::tsc() + period;
    local().period.store(period, Ordering::Relaxed);
    local().deadline.store(deadline, Ordering::Relaxed);
    apic::set_timer(Mode::Deadline, Some(DEADLINE));
    apic::set_deadline(deadline);
}

/// Returns the TSC at which the next tick is due on this CPU, in deadline mode.
#[must_use]
pub fn deadline() -> u64 {
    local().deadline.load(Ordering::Relaxed)
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
