//! The laboratory: from combinations to a filled run folder, whatever is measured.
//!
//! An experiment makes cells, one for each combination; they are put into a plan, a list of cells
//! in running order; [`execute()`] runs whatever cells of a plan are missing from its run folder.
//! Which experiments there are, and what their figures mean, is not known here.
//!
//! A cell is one launch of the agent, or of many instances. Each run of each combination gets its
//! own process: it draws new physical pages, has its own calibration, and is what `--resume`
//! repeats.
//!
//! * [`experiment`]: what an experiment is: a name, parameters as data, and the cells it makes of
//!   them;
//! * [`parameter`]: the parameters of an experiment, as data;
//! * [`plan`]: from combinations to a plan;
//! * [`check`](mod@check): why a plan can't run on this machine;
//! * [`order`]: blocks, and the random order within each;
//! * [`estimate`]: how long a cell will take;
//! * [`units`]: how durations and settings are written;
//! * [`other_work`]: other work that runs on the measured CPUs at the same time;
//! * `ladder`: cells that run upwards until a target no longer keeps up;
//! * `many`: many instances in one cell, started at absolute times;
//! * [`settings`]: kernel settings that are changed for the time of a run;
//! * [`stage`]: where an experiment drives the instances of a cell, and the events of a run;
//! * [`execute`](mod@execute): from a plan to a filled run folder.
#![forbid(unsafe_code)]

pub mod check;
mod engines;
mod error;
pub mod estimate;
pub mod execute;
pub mod experiment;
mod ladder;
mod loaded;
mod many;
pub mod order;
pub mod other_work;
pub mod parameter;
pub mod plan;
mod served;
pub mod settings;
mod stage;
mod stolen;
pub mod units;

pub use error::ExperimentError;
pub use execute::{Tally, execute};
pub use experiment::Experiment;
pub use settings::Settings;
pub use stage::{Driven, Endpoint, Event, Observer, Stage, Unfinished};
