//! `service`: a client that asks a service over the network and measures its answers.
//!
//! The measured system is the server; this is the program that puts a load on it, so its own cost
//! and its own delays are part of the records. It runs as a process of Linux, on another CPU than
//! the server where there is one.
//!
//! In an *open loop* every request has a planned time, whatever became of the ones before. In a
//! *closed loop* each socket sends its next request when the one before was answered, or is lost.
//!
//! Two latencies are recorded of every request. *Service latency* counts from the time at which the
//! request was sent; *response latency* from the time at which it was planned, so it includes the
//! time that it waited in a client that was behind. In a closed loop both are the same, and only
//! the first is recorded.
//!
//! A request without a right answer within the limit is *lost*. It counts in both sets, as a value
//! above the limit.

#[cfg(feature = "primitives")]
mod first;
#[cfg(feature = "primitives")]
mod http;
#[cfg(feature = "linux")]
pub mod linux;
#[cfg(feature = "primitives")]
mod message;
mod plan;

#[cfg(feature = "primitives")]
pub use self::first::answers;
pub use self::plan::{
    HIGHEST_NS, LIMIT_NS, NAME, Plan, Program, Protocol, REQUESTS, SOCKETS, USAGE,
};

/// The measures of the two sets.
pub const SERVICE: &str = "service";
/// As [`SERVICE`].
pub const RESPONSE: &str = "response";
/// The rates that are offered after a search, in times the one that was found: as a label and as a
/// ratio.
pub const TIMES: [(&str, [u64; 2]); 7] = [
    ("0.25", [1, 4]),
    ("0.5", [1, 2]),
    ("0.75", [3, 4]),
    ("1", [1, 1]),
    ("1.5", [3, 2]),
    ("2", [2, 1]),
    ("3", [3, 1]),
];
/// The values of each: what was planned and what was rightly answered, per second.
pub const OFFERED: &str = "offered";
/// As [`OFFERED`].
pub const GOODPUT: &str = "goodput";
/// The delay of a sent request from which on the client counts as behind, in ns.
pub const BEHIND_NS: u64 = 1_000_000;
