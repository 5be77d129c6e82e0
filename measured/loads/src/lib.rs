//! Background work that disturbs, and the driver that runs, counts and ends it.
//!
//! A load consists of the tools of the studies (`dd`, `hackbench`, `du`, …), not of code written
//! for tare: the aim is to reproduce the disturbance that they cause in the kernel. This crate is
//! the *driver*: it starts the tools, restarts them when they end, counts their actual work, and
//! ends them. It is part of the agent, so that one static program drives a load both on a host and
//! in a guest's initramfs.
//!
//! * [`spec`]: the grammar of a load, `dd+hackbench`;
//! * [`schedule`]: loads one after the other, `25s:idle;dd;du`;
//! * [`kinds`]: one file for each load: its tools, its work, its differences from the published
//!   one;
//! * [`tools`]: programs that a load needs, and their packages;
//! * [`tree`]: the generated tree of files that `tar` packs, and that `du` walks if there is no
//!   other;
//! * [`cpus`]: the CPUs of a load;
//! * [`device`]: the network device that `nc` and `ping` need;
//! * [`driver`]: the event loop, and its records.
//!
//! # Why the tools are counted from outside
//!
//! No tool prints more than it did for the study, and none is instrumented: a changed load would be
//! another load. The work is read from the tool's summary (`dd`, `ping`, `stress-ng`), from its
//! usual output (`du`), from its loop count (`hackbench`), or from the kernel's I/O accounting
//! (`/proc/PID/io`) if a run is interrupted. Figures are counted, never assumed from the request.

pub mod cpus;
pub mod device;
pub mod driver;
mod error;
pub mod kinds;
mod processes;
pub mod schedule;
pub mod spec;
mod task;
pub mod tools;
pub mod tree;
mod words;

pub use error::{DriverError, SpecError};
pub use schedule::Schedule;
pub use spec::Load;
pub use tools::Tool;
