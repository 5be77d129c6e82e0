//! What runs on the scale, on every target: written once, against a [`bench::Platform`].
//!
//! The Linux agent and the unikernel's images call the same functions; each brings its own
//! platform, which gives memory, the clock and a way out for records. Today there is one service:
//!
//! * [`bench`]: prepares buffers, calibrates, runs one batch of a workload, folds the samples into
//!   exact counts and writes the records.
#![no_std]

pub mod bench;
