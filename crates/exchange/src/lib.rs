//! Files of other tools: written for their readers, read from their writers.
//!
//! - [`mod@csv`] and [`hgrm`](mod@hgrm) write the wake-ups of a cell as tables, and as
//!   HdrHistogram's percentile distribution. cyclictest's formats are in `tare-cyclictest`.
//! - [`import`] reads results of cyclictest, oslat and rtla, and makes a run folder of them.
//!
//! Writers are pure functions from figures to text. The layouts are those of the tools themselves,
//! byte for byte, because scripts read them by columns.

#![forbid(unsafe_code)]

pub mod csv;
mod error;
pub mod hgrm;
pub mod import;

pub use error::ExchangeError;
