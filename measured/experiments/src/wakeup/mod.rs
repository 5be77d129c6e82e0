//! Counts how late threads run that sleep until absolute times.
//!
//! A platform provides the sleep and the clock; this is the rest, the same everywhere. One thread's
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
//! * [`Pace`]: the schedule of activations, missed ones, and the end;
//! * [`Recorder`]: records every latency, in memory that was allocated and touched before;
//! * [`Progress`]: totals that other threads may read;
//! * `counts`: exact counts per slot and value.
//!
//! # What is recorded
//!
//! Every latency is counted by its whole number of ns and the slot of its phase
//! ([`tare_wire::phases::SLOTS`]), without rounding. Latencies at or above the threshold are listed
//! with their activations, the first ones are stored raw, and an envelope has the maximum of each
//! stretch of time. A latency is not counted only if there are more distinct values than room for
//! them, and the list of those above the threshold is full as well; the number of these latencies,
//! their sum and maximum are known even then.
//!
//! # When the method lies
//!
//! Recording runs between the wake-up and the next sleep. It takes [`Recorder::recording_ns`] and
//! evicts some cache lines of the disturbed system; none of that is part of a latency, because the
//! clock is read first.

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
