//! The clock of the tasks: the TSC in µs since its start, and one interrupt for the next timer.

use core::cell::{Cell, RefCell};
use core::task::Waker;

use embassy_time_driver::{Driver, TICK_HZ};
use embassy_time_queue_utils::Queue;
use tare_unikernel::apic::{self, Mode};
use tare_unikernel::interrupts::TIMER;
use tare_unikernel::local::local;
use tare_unikernel::rate::{Reading, Scale};
use tare_unikernel::{clock, cpu};

/// The rates of the clocks.
#[derive(Clone, Copy, Debug)]
struct Rates {
    start: u64,
    from_tsc: Scale,
    /// To ticks of the TSC, or to steps of the APIC's timer without deadline mode.
    to_timer: Scale,
    has_deadline: bool,
}

struct Timers {
    rates: Cell<Option<Rates>>,
    queue: RefCell<Queue>,
    /// The time for which the timer is set, and the number of its interrupts before.
    set: Cell<(u64, u64)>,
}

// SAFETY: only the first CPU runs tasks (`section` rejects others), and interrupt handlers do not
// use it.
unsafe impl Sync for Timers {}
// SAFETY: the same.
unsafe impl Send for Timers {}

embassy_time_driver::time_driver_impl!(static TIMERS: Timers = Timers {
    rates: Cell::new(None),
    queue: RefCell::new(Queue::new()),
    set: Cell::new((u64::MAX, 0)),
});

impl Driver for Timers {
    fn now(&self) -> u64 {
        self.rates.get().map_or(0, |rates| {
            rates.from_tsc.convert(cpu::tsc().wrapping_sub(rates.start))
        })
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        self.queue.borrow_mut().schedule_wake(at, waker);
    }
}

/// Returns the time of some ticks of the TSC, in µs; 0 before the clock is started.
#[must_use]
pub fn micros(ticks: u64) -> u64 {
    let rates = TIMERS.rates.get();
    rates.map_or(0, |rates| rates.from_tsc.convert(ticks))
}

/// Starts the clock of the tasks at 0. A first reading from [`clock::begin`] makes that faster.
///
/// # Panics
///
/// Panics if the frequency of the TSC or of the APIC's timer is unknown.
pub fn start(begun: Option<Reading>) {
    let tsc = clock::tsc_frequency(begun).expect("the frequency of the TSC is known");
    apic::enable();
    let has_deadline = cpu::has_tsc_deadline();
    let timer_hz = if has_deadline {
        apic::set_timer(Mode::Deadline, Some(TIMER));
        tsc.rate.hz
    } else {
        let hz = clock::apic_timer_hz()
            .or_else(clock::measure_apic_timer_hz)
            .expect("the frequency of the timer is known");
        apic::set_timer(Mode::OneShot, Some(TIMER));
        hz
    };
    let scale = |from, to| Scale::new(from, to).expect("clocks run between 1 Hz and 1 THz");
    TIMERS.rates.set(Some(Rates {
        start: cpu::tsc(),
        from_tsc: scale(tsc.rate.hz, TICK_HZ as f64),
        to_timer: scale(TICK_HZ as f64, timer_hz),
        has_deadline,
    }));
}

/// Wakes the tasks that are due. Returns the time of the next one, in ticks.
pub(crate) fn serve() -> u64 {
    TIMERS.queue.borrow_mut().next_expiration(TIMERS.now())
}

/// Sets the timer for a time, or for an earlier one if that is beyond its range.
pub(crate) fn interrupt_at(time: u64) {
    let Some(rates) = TIMERS.rates.get() else {
        return;
    };
    let now = TIMERS.now();
    let come = local().interrupts(TIMER);
    let (set, before) = TIMERS.set.get();
    // The present setting is early enough, if its interrupt has not come yet; it may come a little
    // early, by another clock.
    if time == u64::MAX || (come == before && now < set && set <= time) {
        return;
    }
    let steps = rates
        .to_timer
        .convert(time.saturating_sub(now))
        .saturating_add(1);
    if rates.has_deadline {
        TIMERS.set.set((time, come));
        apic::set_deadline(cpu::tsc().saturating_add(steps));
    } else {
        let count = u32::try_from(steps).unwrap_or(u32::MAX);
        let is_whole = u64::from(count) == steps;
        // The longest count lasts over four seconds on all known machines.
        TIMERS
            .set
            .set((if is_whole { time } else { now + TICK_HZ }, come));
        apic::set_count(count);
    }
}
