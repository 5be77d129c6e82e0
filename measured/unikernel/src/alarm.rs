//! The alarm: halts the CPU until a time, by one interrupt of its timer.
//!
//! ```text
//! sleep_until(planned)     timer set for `planned`     interrupt      code runs, TSC is read
//!        │                        │                        │               │
//!        └── cli ── sti; hlt ─────┴────────────────────────┴── iret; cli ──┘
//!                                 planned ◄────────── latency ────────────►
//! ```
//!
//! Interrupts are let in while the CPU is halted; `sti` takes effect behind the instruction that follows
//! it, so an interrupt that comes just before `hlt` still ends it.
//!
//! Where the CPU has the TSC-deadline mode, the timer compares with the very clock by which the lateness is
//! told. Elsewhere the APIC's own count is converted; how well its rate is known is
//! [`Alarm::uncertainty_ppm`]. An interrupt that comes early makes the CPU halt again for the rest, so
//! that no latency is negative; one that comes late for the same reason can't be told from one that was
//! delivered late.
//!
//! A CPU has one timer. Where a tick is wanted as well, the timer is set for what is due first,
//! and the tick's work, which is to count and to set the next one, is done by the code that was woken: as
//! a conventional kernel does by its queue of high-resolution timers.

use core::sync::atomic::Ordering;

use crate::apic::{self, Mode};
use crate::clock;
use crate::cpu;
use crate::interrupts::{TIMER, asked_to_end};
use crate::local::local;
use crate::rate::{Scale, steps_per_period};
use crate::timer::TimerError;

/// The alarm of the CPU on which it was made.
#[derive(Debug)]
pub struct Alarm {
    by: By,
    tick: Option<Tick>,
}

/// How the timer is set.
#[derive(Debug)]
enum By {
    /// To a value of the TSC.
    Deadline,
    /// To a count of the APIC's timer.
    Count {
        /// From ticks of the TSC to steps of the count.
        scale: Scale,
        uncertainty_ppm: f64,
    },
}

/// A tick beside the alarm, in ticks of the TSC.
#[derive(Debug)]
struct Tick {
    period: u64,
    due: u64,
}

impl Alarm {
    /// Takes the timer of this CPU, and keeps interrupts out from now on. With `tick_hz` there is a
    /// tick beside it, and interrupts are let in while code runs.
    ///
    /// Without TSC-deadline mode it takes 100 ms to compare the timer with the TSC.
    ///
    /// # Errors
    ///
    /// Returns [`TimerError`] if the timer does not count, or the tick can't be so fast or so slow.
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

    /// Returns how well the timer's rate is known in terms of the TSC, in parts per million; None where it
    /// is the TSC that it follows.
    #[must_use]
    pub fn uncertainty_ppm(&self) -> Option<f64> {
        match self.by {
            By::Deadline => None,
            By::Count {
                uncertainty_ppm, ..
            } => Some(uncertainty_ppm),
        }
    }

    /// Halts until the TSC has reached `planned`, and returns the TSC as the code read it when it ran
    /// again. Does not halt if that is over already. A time before `planned` means that the host has asked to end
    /// ([`asked_to_end`]): nothing looks at that after a wake-up in time.
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
                // Never early by rounding, and 0 would stop the timer. What is beyond the count is slept
                // in pieces.
                let count = scale.convert(due.saturating_sub(now)).saturating_add(1);
                apic::set_count(u32::try_from(count).unwrap_or(u32::MAX));
            }
        }
    }
}

impl Tick {
    /// Does what is due by now, and returns when the next one is.
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
