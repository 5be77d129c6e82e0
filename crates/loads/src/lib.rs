//! Background load, as the laboratory sees it: start, watch, stop, clean up.
//!
//! The work is done by the driver, a part of the agent (`tare_load_driver`), so that a load is the
//! same whether it runs next to the measured code on this machine or inside a guest. Here is what
//! surrounds it:
//!
//! * [`Load`]: the grammar, shared with the driver; [`Schedule`]: loads one after the other;
//! * [`availability()`]: what is missing, before anything starts;
//! * [`Running`]: a load next to the measured code, owned by the run's guard;
//! * [`LoadReceiver`]: from the driver's records to the facts of a cell, wherever they come from.
//!
//! A load that dies while a cell runs makes the cell fail: its figures would be those of a load
//! that was not there.
#![forbid(unsafe_code)]

mod availability;
mod error;
mod receiver;
mod running;

pub use availability::{Unavailable, availability};
pub use error::LoadError;
pub use receiver::LoadReceiver;
pub use running::Running;
pub use tare_load_driver::cpus::{self, Cpus};
pub use tare_load_driver::kinds::{KINDS, Kind};
pub use tare_load_driver::{Load, Schedule, SpecError, Tool, tree};
