//! The protocols: what is measured on which targets, in which order, how often.
//!
//! An experiment makes cells, one for each combination; they are put into a plan, a list of cells in
//! running order; [`execute()`] runs whatever cells of a plan are missing from its run folder. What
//! the figures mean is not known here: `tare-report` derives it from the folder.
//!
//! * [`experiment`]: what all experiments have in common, and the table of those that exist;
//! * [`parameter`]: what an experiment can be told, as data;
//! * [`noise`]: kot-2019, how often and how long short work is delayed;
//! * [`wakeup`]: landolfi-2018, how late a sleeping thread is woken;
//! * [`plan`]: from combinations to a plan;
//! * [`order`]: blocks, and the random order within each;
//! * [`estimate`]: how long a cell will take;
//! * [`units`]: how durations and settings are written;
//! * [`words`]: work that somebody wrote by hand;
//! * [`execute`](mod@execute): from a plan to a filled run folder.
#![forbid(unsafe_code)]

mod engines;
mod error;
pub mod estimate;
pub mod execute;
pub mod experiment;
mod loaded;
pub mod noise;
pub mod order;
pub mod parameter;
pub mod plan;
pub mod units;
pub mod wakeup;
pub mod words;

pub use error::ExperimentError;
pub use execute::{Observer, Tally, execute};
pub use experiment::{EXPERIMENTS, Experiment};
