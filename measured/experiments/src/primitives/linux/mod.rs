//! The primitives of Linux, each an entry of a table with the function that measures it, and the
//! processes in which they run.
//!
//! * [`TABLES`]: all primitives, including those of the processor and of memory;
//! * [`child`]: runs a primitive in its own process, so that one that dies or hangs is the only one
//!   without a result;
//! * `kernel`: the measuring functions' interface to the kernel;
//! * `syscall`, `signal`, `process`, `switch`, `scheduling`, `fault`, `ipc`, `network`, `file`: one
//!   area a file.

pub mod child;
mod fault;
mod file;
mod ipc;
mod kernel;
mod network;
pub mod peer;
mod process;
mod run;
mod scheduling;
mod signal;
mod switch;
mod syscall;

use crate::platform::Platform;
use crate::primitives::{NAME, Plan, Primitive, memory, processor};
use crate::table::{Failure, Measurement, Threads};

pub use process::stamp;

/// The primitives, in the order of reports.
pub const TABLES: [&[Primitive]; 12] = [
    processor::TABLE,
    syscall::TABLE,
    signal::TABLE,
    process::TABLE,
    switch::TABLE,
    scheduling::TABLE,
    memory::TABLE,
    kernel::MEMORY,
    fault::TABLE,
    ipc::TABLE,
    network::TABLE,
    file::TABLE,
];

/// Returns the experiment on Linux.
pub fn on<P: Platform>() -> Measurement<P> {
    Measurement {
        has: |id| id == NAME,
        threads: |words| Ok(Threads::one(Plan::parse(words)?.cpu())),
        run: |words, linux| {
            let plan = Plan::parse(words).map_err(Failure::Plan)?;
            run::run(&plan, linux).map_err(|stop| Failure::Measurement(stop.into()))
        },
    }
}

/// Returns the primitives, in the order of reports.
pub fn all() -> impl Iterator<Item = &'static Primitive> {
    TABLES.into_iter().flatten()
}

/// Finds a primitive by its id.
pub fn find(id: &str) -> Option<&'static Primitive> {
    all().find(|primitive| primitive.id == id)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::primitives::Area;

    use super::*;

    #[test]
    fn every_primitive_is_described_once_and_in_order() {
        let mut ids = HashSet::new();
        let mut last = Area::Processor;
        for primitive in all() {
            assert!(ids.insert(primitive.id), "{}", primitive.id);
            assert!(!primitive.title.is_empty() && !primitive.title.ends_with('.'));
            assert!(!primitive.method.is_empty() && !primitive.method.ends_with('.'));
            assert!(Area::parse(primitive.id).is_none(), "{}", primitive.id);
            assert!(primitive.area >= last, "{}", primitive.id);
            last = primitive.area;
        }
        for area in Area::ALL {
            assert!(all().any(|primitive| primitive.area == area));
        }
        assert!(find("getppid").is_some() && find("getpp*").is_none());
    }
}
