//! The event loop: runs tasks that were woken, looks at what interrupts have counted, and halts when there is nothing to do.
//!
//! ```text
//!        ┌──► tasks that were woken ──► devices ──► timers ──┬─ something was woken ─┐
//!        │                                                   └─ nothing: sti; hlt ───┤
//!        └───────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Interrupts are kept out but while the CPU halts, and for a moment behind each round of tasks. `sti` takes effect behind `hlt`'s start, so an interrupt that came at any time
//! before ends the halt at once: no wake-up is lost.

use core::cell::Cell;
use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::Poll;

use embassy_executor::raw::Executor;
use tare_unikernel::cpu;

use crate::time;

/// How often tasks may wake each other before something comes from outside: a packet takes a few tasks.
const OWN_PASSES: u32 = 32;

static IS_WOKEN: AtomicBool = AtomicBool::new(false);
static WAKE_UPS: AtomicU64 = AtomicU64::new(0);
static PASSES: AtomicU64 = AtomicU64::new(0);
static SPINS: AtomicU64 = AtomicU64::new(0);

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// How often the CPU was woken from its halt.
    pub wake_ups: u64,
    /// How often tasks were run.
    pub passes: u64,
    /// How often it was looked for something to do, and there was nothing; and how often tasks were run that only tasks had woken, for too
    /// long.
    pub spins: u64,
}

/// Returns what was counted.
#[must_use]
pub fn counters() -> Counters {
    Counters {
        wake_ups: WAKE_UPS.load(Ordering::Relaxed),
        passes: PASSES.load(Ordering::Relaxed),
        spins: SPINS.load(Ordering::Relaxed),
    }
}

/// The executor calls this when a task was woken.
#[unsafe(export_name = "__pender")]
fn wake(_context: *mut ()) {
    IS_WOKEN.store(true, Ordering::Relaxed);
}

/// Runs the tasks of an executor, for ever. `attend` looks at devices, wakes tasks, and says whether something has come. With `polls` the CPU
/// never halts.
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
            // SAFETY: not called by a task, and by this CPU alone.
            unsafe { executor.poll() };
            // Tasks that wake each other again and again must not keep packets from being seen.
            cpu::let_interrupts_in();
            continue;
        }
        if is_idle {
            count(&SPINS);
        }
        (is_idle, own) = (true, 0);
        if polls {
            cpu::let_interrupts_in();
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

/// Lets all other tasks that were woken run, and what came over the network be looked at, before the caller goes on.
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
