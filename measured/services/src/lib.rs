//! What runs on the scale, on every target: written once, against a [`platform::Platform`].
//!
//! The Linux agent and the unikernel's images call the same functions; each brings its own
//! platform, which gives memory, the clock and a way out for records. They are found by their ids
//! in one [`table`], and each experiment has a folder:
//!
//! * [`noise`]: prepares buffers, calibrates, runs one batch of a workload, folds the samples into
//!   exact counts and writes the records;
//! * [`primitives`]: measures what a processor and an operating system do, one by one;
//! * [`start`]: says that it runs, does a little, and ends;
//! * [`wakeup`]: counts how late threads run that sleep until absolute times.
//!
//! What they share:
//!
//! * [`platform`]: what the surroundings must provide;
//! * `words`: the words of a plan, by one table for each;
//! * [`session`]: what every service does before and after it measures;
//! * `calibrate`: cost of the stamps, step of the timer, TSC frequency;
//! * [`cpuid`]: what CPUID claims of it;
//! * `counted`: what happened beneath the measured code, by the platform's counters;
//! * [`moved`]: a thread that left its CPU;
//! * [`output`]: records, split to fit into lines;
//! * [`arena`]: typed pieces of the platform's memory;
//! * `envelope`: bins of time that keep every maximum.
#![no_std]

pub mod arena;
mod calibrate;
mod counted;
pub mod cpuid;
mod envelope;
pub mod moved;
pub mod noise;
pub mod output;
pub mod platform;
pub mod primitives;
pub mod session;
pub mod start;
pub mod table;
pub mod wakeup;
pub mod words;
