//! The protocols: what is measured on which targets, in which order, how often.
//!
//! An experiment makes a plan, a list of cells in running order ([`noise`]); [`execute()`] runs
//! whatever cells of a plan are missing from its run folder. What the figures mean is not known
//! here: `tare-report` derives it from the folder.
//!
//! * [`noise`]: kot-2019, how often and how long short work is delayed;
//! * [`order`]: blocks, and the random order within each;
//! * [`estimate`]: how long a cell will take;
//! * [`execute`](mod@execute): from a plan to a filled run folder.
#![forbid(unsafe_code)]

mod error;
pub mod estimate;
pub mod execute;
pub mod noise;
pub mod order;

pub use error::ExperimentError;
pub use execute::{Observer, Tally, execute};
