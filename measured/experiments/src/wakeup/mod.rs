//! Counts how late threads run that sleep until absolute times.
//!
//! A place brings the sleep and the clock; this is the rest, the same everywhere. One thread's
//! measurement is a loop:
//!
//! ```
//! # use tare_measured::wakeup::{Pace, Recorder};
//! # fn measure(mut pace: Pace, recorder: &mut Recorder, sleep_until: impl Fn(u64), now: impl Fn() -> u64) {
//! let origin_ns = now();
//! while let Some(due) = pace.due() {
//!     sleep_until(origin_ns + due.at_ns);
//!     let now_ns = now() - origin_ns;
//!     recorder.record(due.index, now_ns.saturating_sub(due.at_ns));
//!     recorder.missed(pace.woke(now_ns));
//! }
//! # }
//! ```
//!
//! * [`Pace`]: which activation is due next, which were missed, when it is over;
//! * [`Recorder`]: keeps every latency, in memory that was taken and touched before;
//! * [`Progress`]: what another thread may read meanwhile;
//! * `counts`: exact counts per slot and value.
//!
//! # What is kept
//!
//! Every latency is counted by its whole number of ns and the slot of its phase ([`tare_wire::phases::SLOTS`]),
//! without rounding. Each one at or above the threshold is listed with its activation, the first ones are listed
//! as they were, and an envelope keeps the greatest one of each stretch of time. Only if more different values come than
//! there is room for, and the list of those above the threshold is full as well, a latency is not
//! counted; how many those were, their sum and the greatest are known even then.
//!
//! # When the method lies
//!
//! Recording runs between the wake-up and the next sleep. It takes [`Recorder::recording_ns`] and brings some
//! cache lines in, which the disturbed system lost; nothing of that lies within a latency, because the clock is
//! read first.

#[cfg(feature = "bare")]
pub mod bare;
mod counts;
#[cfg(feature = "linux")]
pub mod linux;
mod pace;
mod plan;
mod progress;
mod recorder;
mod report;
mod slots;

pub use self::pace::{Due, Pace};
pub use self::plan::{
    MAX_INTERVAL_NS, MAX_KEPT, MAX_THREADS, MAX_TRACE, MIN_INTERVAL_NS, NAME, OwnWords, Plan,
    Spread, USAGE,
};
pub use self::progress::Progress;
pub use self::recorder::{Recorder, arena_bytes, buffer_bytes};
pub use self::report::Identity;
