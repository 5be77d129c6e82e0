//! From the facts of a run folder to figures, a verdict, tables and pictures: a kit that names no experiment.
//!
//! The way of the data, one direction:
//!
//! - [`analyse`] takes the cells one after the other: their figures become [`rows`], and what a story needs besides is
//!   collected ([`view`]).
//! - [`cases`] are cells that repeat each other, with their rows. [`tables`] are made of rows, for terminal and page; [`compare`](mod@compare) puts the rows of several invocations
//!   against each other.
//! - A [`view::Story`] says what only its experiment knows: [`verdict`], special pictures, checks. [`plain`] is the story of
//!   an experiment that has none of its own.
//! - [`claims`] are the findings of published studies, answered from rows.
//! - [`terminal`], [`html`] and [`json`] write the same [`Analysis`] for different readers; [`write_all`] puts all files into
//!   the run folder.
//!
//! Below them lie [`mod@format`], which knows how many digits a number deserves, [`words`], and [`svg`], a small
//! kit for plots: scales, axes, marks.
//!
//! Nothing here measures, and nothing is stored that could not be derived again.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod cases;
pub mod claims;
pub mod compare;
mod error;
pub mod format;
pub mod html;
pub mod json;
pub mod plain;
pub mod rows;
pub mod svg;
pub mod tables;
pub mod terminal;
pub mod verdict;
pub mod view;
pub mod words;
mod write;

pub use analysis::{Analysis, Run, RunData, Summary, analyse, analyse_with};
pub use error::ReportError;
pub use view::{Catalogue, Collect, Story, View};
pub use write::{Written, write_all};
