//! The alarm: halts the CPU until a time, by one interrupt of its timer.
//!
//! ```text
//! sleep_until(planned)     timer set for `planned`     interrupt      code runs, TSC is read
//!        │                        │                        │               │
//!        └── cli ── sti; hlt ─────┴────────────────────────┴── iret; cli ──┘
//!                                 planned ◄────────── latency ────────────►
//! ```
//!
//! Interrupts are enabled while the CPU is halted; `sti` takes effect after the instruction that
//! follows it, so an interrupt that comes just before `hlt` still ends it.
//!
//! In TSC-deadline mode, the timer uses the same clock as the measured latency. Otherwise the time
//! is converted to the APIC's count; the uncertainty of its rate is [`Alarm::uncertainty_ppm`].
//! After an early interrupt the CPU halts again for the rest, so that no latency is negative; an
//! interrupt that comes late for the same reason is indistinguishable from a late delivery.
//!
//! A CPU has one timer. With a tick, the timer is set to the earlier of both times, and the tick's
//! work, counting and setting the next one, is done by the code that was woken: as a conventional
//! kernel does by its queue of high-resolution timers.

use core::sync::atomic::Ordering;

use crate::apic::{self, Mode};
use crate::clock;
use crate::cpu;
use crate::interrupts::{TIMER, asked_to_end};
use crate::local::local;
use crate::rate::{Scale, steps_per_period};
use crate::timer::TimerError;

/// The alarm of the CPU on which it was created.
#[derive(Debug)]
pub struct Alarm {
    by: By,
    tick: Option<Tick>,
}

/// The mode of the timer.
#[derive(Debug)]
enum By {
    /// A TSC deadline.
    Deadline,
    /// A count of the APIC's timer.
    Count {
        /// From ticks of the TSC to steps of the count.
        scale: Scale,
        uncertainty_ppm: f64,
    },
}

/// A tick in addition to the alarm, in ticks of the TSC.
#[derive(Debug)]
struct Tick {
    period: u64,
    due: u64,
}

impl Alarm {
    /// Takes over the timer of this CPU, and disables interrupts. With `tick_hz` there is a tick as
    /// well, and interrupts are enabled while code runs.
    ///
    /// Without TSC-deadline mode it takes 100 ms to compare the timer with the TSC.
    ///
    /// # Errors
    ///
    /// Returns [`TimerError`] if the timer does not count, or does not support the rate of the
    /// tick.
    pub fn new(tick_hz: Option<u32>, tsc_hz: f64) -> Result<Self, TimerError> {
        cpu::disable_interrupts();
        apic::enable();
        apic::let_nmi_in();
        let by = if cpu::has_tsc_deadline() {
            apic::set_timer(Mode::Deadline, Some(TIMER));
            By::Deadline
        } else {
            let rate = clock::tsc_per_apic_step(tsc_hz).ok_or(TimerError::NoFrequency)?;
            let scale = Scale::new(rate.hz, 1.0).ok_or(TimerError::Rate)?;
            apic::set_timer(Mode::OneShot, Some(TIMER));
            By::Count {
                scale,
                uncertainty_ppm: rate.uncertainty_ppm,
            }
        };
        let tick = |hz| {
            let period = steps_per_period(tsc_hz / 16.0, hz).ok_or(TimerError::Rate)?;
            let period = 16 * u64::from(period);
            let due = cpu::tsc() + period;
            Ok(Tick { period, due })
        };
        Ok(Self {
            by,
            tick: tick_hz.map(tick).transpose()?,
        })
    }

    /// Returns the uncertainty of the timer's rate relative to the TSC, in parts per million; None
    /// if it follows the TSC.
    pub fn uncertainty_ppm(&self) -> Option<f64> {
        match self.by {
            By::Deadline => None,
            By::Count {
                uncertainty_ppm, ..
            } => Some(uncertainty_ppm),
        }
    }

    /// Halts until the TSC has reached `planned`, and returns the TSC when the code ran again. Does
    /// not halt if that time has passed. A time before `planned` means that the host has requested
    /// the end ([`asked_to_end`]), which is not checked after a wake-up in time.
    pub fn sleep_until(&mut self, planned: u64) -> u64 {
        cpu::disable_interrupts();
        loop {
            let now = cpu::tsc();
            if now >= planned {
                if self.tick.is_some() {
                    cpu::enable_interrupts();
                }
                return now;
            }
            if asked_to_end() {
                return now;
            }
            let due = match &mut self.tick {
                Some(tick) => planned.min(tick.serve(now)),
                None => planned,
            };
            self.set(now, due);
            cpu::wait_for_interrupt();
        }
    }

    fn set(&self, now: u64, due: u64) {
        match self.by {
            By::Deadline => apic::set_deadline(due),
            By::Count { scale, .. } => {
                // Never early by rounding, and 0 would stop the timer. Longer sleeps are divided.
                let count = scale.convert(due.saturating_sub(now)).saturating_add(1);
                apic::set_count(u32::try_from(count).unwrap_or(u32::MAX));
            }
        }
    }
}

impl Tick {
    /// Handles everything due by now, and returns the next due time.
    fn serve(&mut self, now: u64) -> u64 {
        if now >= self.due {
            let over = (now - self.due) / self.period;
            let missed = &local().missed;
            missed.store(missed.load(Ordering::Relaxed) + over, Ordering::Relaxed);
            self.due += (over + 1) * self.period;
        }
        self.due
    }
}
