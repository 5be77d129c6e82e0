//! Latencies in the formats of other tools: written for those who read them, read from those who write them.
//!
//! - [`latencies`] is what one thread measured, as exports need it: exact counts in ns.
//! - [`export`] writes it: cyclictest's lines, histogram and JSON, HdrHistogram's percentile distribution, CSV.
//! - [`import`] reads results of cyclictest, oslat and rtla, and makes a run folder of them.
//!
//! Writers are pure functions from figures to text. The layouts are those that the tools themselves
//! write, byte for byte, because scripts read them by columns; what tare knows beyond them never
//! changes a line that such a script looks at.

#![forbid(unsafe_code)]

mod error;
pub mod export;
pub mod import;
pub mod latencies;

pub use error::ExchangeError;
pub use latencies::{Latencies, Thread};
