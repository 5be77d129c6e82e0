//! The measured side of the experiments: one folder for each, written against a
//! [`platform::Platform`].
//!
//! The Linux agent and the unikernel's images call the same functions. Each brings its own
//! platform: memory, a clock and a way out for records. Where an experiment needs more than that,
//! its folder has one part for Linux (`linux`) and one for a machine without a kernel (`bare`).
//!
//! * [`noise`]: prepares buffers, calibrates, runs one batch of a workload, folds the samples into
//!   exact counts and writes the records;
//! * [`primitives`]: measures the operations of a processor and an operating system, one by one;
//! * [`service`]: a client that measures the answers of a service, on Linux only;
//! * [`start`]: reports that it runs, does a little work, and ends;
//! * [`stream`]: the bandwidth of memory, by STREAM's four kernels;
//! * [`wakeup`]: counts how late threads wake up that sleep until absolute times.
//!
//! They share:
//!
//! * [`table`]: the experiments by the ids of their plans;
//! * [`platform`]: the trait of platforms; `linux` and `bare`: their tables and abilities;
//! * [`words`]: parser and writer of plans, from one table for each;
//! * [`session`]: the steps before and after every measurement;
//! * `calibrate`: cost of the stamps, step of the timer, TSC frequency;
//! * [`cpuid`]: the TSC frequency as CPUID reports it;
//! * `counted`: the platform's counters around the measured code;
//! * [`moved`]: the error of a thread that left its CPU;
//! * [`output`]: records, split to fit into lines;
//! * [`arena`]: typed pieces of the platform's memory;
//! * `envelope`: bins of time that keep every maximum.
//!
//! # Features instead of crates
//!
//! Agent and image are built by separate calls of cargo, each with its own feature. So a part that
//! only one of them needs stands next to its counterpart, and neither links code that it does not
//! use.
#![cfg_attr(not(any(test, feature = "primitives")), no_std)]

pub mod arena;
#[cfg(feature = "bare")]
pub mod bare;
mod calibrate;
mod counted;
pub mod cpuid;
mod envelope;
#[cfg(feature = "linux")]
pub mod linux;
pub mod moved;
pub mod noise;
pub mod output;
pub mod platform;
pub mod primitives;
pub mod service;
pub mod session;
pub mod start;
pub mod stream;
pub mod table;
pub mod wakeup;
pub mod words;
