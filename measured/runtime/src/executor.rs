//! The event loop: runs woken tasks, reads the counts of interrupts, and halts when there is
//! nothing to do.
//!
//! ```text
//!        ┌──► tasks that were woken ──► devices ──► timers ──┬─ something was woken ─┐
//!        │                                                   └─ nothing: sti; hlt ───┤
//!        └───────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Interrupts are disabled except while the CPU halts, and for a moment after each round of tasks.
//! `sti` takes effect after the start of `hlt`, so an earlier interrupt ends the halt at once: no
//! wake-up is lost.

use core::cell::Cell;
use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::Poll;

use embassy_executor::raw::Executor;
use tare_unikernel::cpu;

use crate::time;

/// Number of rounds in which tasks may wake each other without an event from outside. A packet
/// takes a few tasks.
const OWN_PASSES: u32 = 32;

static IS_WOKEN: AtomicBool = AtomicBool::new(false);
static WAKE_UPS: AtomicU64 = AtomicU64::new(0);
static PASSES: AtomicU64 = AtomicU64::new(0);
static SPINS: AtomicU64 = AtomicU64::new(0);

/// The counters of the event loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Wake-ups of the CPU from its halt.
    pub wake_ups: u64,
    /// Rounds of tasks.
    pub passes: u64,
    /// Rounds without anything to do, and rounds beyond the limit of tasks that wake each other.
    pub spins: u64,
}

/// Returns the counters.
pub fn counters() -> Counters {
    Counters {
        wake_ups: WAKE_UPS.load(Ordering::Relaxed),
        passes: PASSES.load(Ordering::Relaxed),
        spins: SPINS.load(Ordering::Relaxed),
    }
}

/// Records that a task was woken. Called by the executor.
#[unsafe(export_name = "__pender")]
fn wake(_context: *mut ()) {
    IS_WOKEN.store(true, Ordering::Relaxed);
}

/// Runs the tasks of an executor. Never returns. `attend` serves devices, wakes tasks, and returns
/// whether something has come. With `polls` the CPU never halts.
pub fn run(executor: &'static Executor, polls: bool, attend: impl Fn() -> bool) -> ! {
    cpu::disable_interrupts();
    let (mut is_idle, mut own) = (false, 0_u32);
    loop {
        if attend() {
            own = 0;
        }
        let next = time::serve();
        if IS_WOKEN.swap(false, Ordering::Relaxed) {
            is_idle = false;
            own = own.saturating_add(1);
            count(&PASSES);
            if own > OWN_PASSES {
                count(&SPINS);
            }
            // SAFETY: not called by a task, and only by this CPU.
            unsafe { executor.poll() };
            // Tasks that keep waking each other must not delay packets.
            cpu::serve_interrupts();
            continue;
        }
        if is_idle {
            count(&SPINS);
        }
        (is_idle, own) = (true, 0);
        if polls {
            cpu::serve_interrupts();
        } else {
            time::interrupt_at(next);
            cpu::wait_for_interrupt();
            count(&WAKE_UPS);
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Runs all other woken tasks and serves the devices before the caller continues.
pub async fn yield_now() {
    let has_yielded = Cell::new(false);
    poll_fn(|context| {
        if has_yielded.replace(true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
