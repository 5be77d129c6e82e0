//! The runtime of images with tasks: an executor with its clock, random numbers, files, the
//! network.
//!
//! * [`executor`]: runs tasks, and halts when there is nothing to do;
//! * [`time`]: the clock and the timers of tasks;
//! * `console`: a virtio console in place of the serial line;
//! * [`entropy`]: random numbers;
//! * `files`: the files of an archive and a disk;
//! * [`network`]: a card with a stack.
//!
//! Only the first CPU uses it.
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
