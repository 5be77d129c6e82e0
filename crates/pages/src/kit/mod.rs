//! A kit for stories: pictures, files, checks and sentences that several experiments show.
//!
//! [`Plain`](crate::plain::Plain) shows any experiment from its measures alone. An experiment that
//! has more to show puts its [`Story`](crate::Story) together from these pieces, each of which
//! takes rows or cells and names no experiment.
//!
//! - [`checks`]: notices about cells and cases;
//! - [`claim_table`]: published figures next to those of a run;
//! - [`curve`]: a picture of lines over a numeric label;
//! - [`heat_map`]: a figure by two numbers;
//! - [`over_time`]: strips of values over time, from the [`track`] of each run;
//! - [`sentence`]: sentences that list figures with what they are of;
//! - [`series`]: cases that differ in one label, cases of one kind of execution, and what is kept
//!   for each case while cells are read;
//! - [`study_csv`]: files with the columns of a published study.

pub mod checks;
pub mod claim_table;
pub mod curve;
pub mod heat_map;
pub mod over_time;
pub mod sentence;
pub mod series;
pub mod study_csv;
pub mod track;
