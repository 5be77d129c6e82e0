//! From the facts of a run folder to figures and what they say: no HTML, no terminal, no experiment
//! by name.
//!
//! The way of the data, one direction:
//!
//! - [`analysis`] takes the cells one after the other: their figures become [`rows`], of a [`Run`].
//!   What only an experiment knows to report it gets as data ([`analysis::Account`]).
//! - [`cases`] are cells that repeat each other, with their rows.
//! - [`verdict`], [`notices`] and [`claims`] say what the figures mean, and how far they may be
//!   believed.
//! - [`gates`] judge the figures of a run, [`compare`](mod@compare) those of several invocations
//!   against each other.
//! - [`json`] writes `summary.json`.
//!
//! Below them lie [`mod@format`], which knows how many digits a number deserves, [`words`], phrases
//! that sentences share, and [`group`], lists in order of first appearance.
//!
//! Nothing here measures, and nothing is stored that could not be derived again.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod cases;
pub mod claims;
pub mod compare;
mod error;
pub mod format;
pub mod gates;
pub mod group;
pub mod interval;
pub mod json;
pub mod mark;
pub mod modes;
pub mod notices;
pub mod places;
pub mod rows;
pub mod run;
pub mod verdict;
pub mod words;

pub use analysis::{Analysis, Summary};
pub use error::ReportError;
pub use run::Run;
