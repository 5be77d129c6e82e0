//! Study files: what is to be measured, written down once, so that it can be measured again.
//!
//! A study is a TOML file: targets, loads, and experiments with their parameters, of which every
//! list makes a dimension of a matrix. It is read as a whole before anything starts; whatever is
//! wrong with it is reported with its line and column. The file format is described for its writers
//! in docs/studies.md.
//!
//! * [`Study::read`]: from a file to a [`Study`], or to everything that is wrong with the file;
//! * [`Study::plan`]: from a study to the plan of a run, by the same code as the command line's;
//! * [`explain`]: a study in plain words;
//! * [`included`]: the studies that come with tare;
//! * [`keys`]: the keys of a study file, as data.
#![forbid(unsafe_code)]

mod error;
mod exclude;
pub mod explain;
pub mod included;
pub mod keys;
mod matrix;
mod problem;
mod read;
mod study;
mod value;
mod words;

pub use error::StudyError;
pub use problem::Problem;
pub use study::{Part, Study, Variant};
