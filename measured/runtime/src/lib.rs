//! What services with tasks need beside the library OS: an executor, its clock, randomness.
//!
//! * [`executor`]: runs tasks, and halts when none has anything to do;
//! * [`time`]: the clock and the timers of the tasks;
//! * `console`: where text goes, if not to the serial line;
//! * [`entropy`]: random numbers;
//! * `files`: what an archive and a disk hold;
//! * [`network`]: a card with a stack on it.
//!
//! All of it is for the first CPU alone.
#![no_std]
#![cfg(target_arch = "x86_64")]

extern crate alloc;

#[cfg(feature = "console")]
pub mod console;
pub mod entropy;
pub mod executor;
#[cfg(feature = "files")]
pub mod files;
pub mod network;
pub mod time;

mod section;
