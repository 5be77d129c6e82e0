//! Background work that disturbs, and how it is kept going, counted and ended.
//!
//! A load is made by the same tools that the studies used (`dd`, `hackbench`, `du`, …), not by code
//! of our own: what is to be reproduced is the disturbance that they cause in the kernel. This crate is the
//! *driver*: it starts the tools, starts them again when they end, counts what they really did, and ends all of it. It is
//! part of the agent, so that one static program drives a load on a host and inside a guest's initramfs alike.
//!
//! * [`spec`]: the grammar of a load, `dd+hackbench`;
//! * [`schedule`]: loads one after the other, `25s:idle;dd;du`;
//! * [`kinds`]: one file for each load: its tools, what it does, how it differs from the published one;
//! * [`tools`]: programs that a load needs, and the packages that have them;
//! * [`tree`]: the generated tree of files that `tar` packs, and `du` walks where there is no other;
//! * [`cpus`]: which CPUs a load runs on;
//! * [`loopback`]: the network device that `nc` and `ping` need;
//! * [`driver`]: the event loop, and the records by which it reports.
//!
//! # Why the tools are counted from outside
//!
//! No tool is asked to print more than it did for the study, and none is instrumented: a changed load would be another
//! load. What was done is read from what the tool says at its end (`dd`, `ping`, `stress-ng`), from what it
//! prints anyway (`du`), from its loop count (`hackbench`), or from the kernel's account of its input and output
//! (`/proc/PID/io`) where a run is cut short. A figure is what was counted, never what was asked for.

pub mod cpus;
pub mod driver;
mod error;
pub mod kinds;
pub mod loopback;
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
