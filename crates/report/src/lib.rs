//! From the facts of a run folder to figures, a verdict, tables and pictures.
//!
//! The way of the data, one direction:
//!
//! - [`analyse`] takes the cells one after the other, derives their figures with `tare-stats`, and
//!   reduces their samples to what pictures can show ([`analysis`]).
//! - [`wakeup`] does the same for wake-up latencies.
//! - [`rows`] are every figure of every experiment in one shape, for files and gates; [`compare`](mod@compare) puts those of several
//!   invocations against each other.
//! - [`verdict`] puts into sentences what the figures say, and how sure they are.
//! - [`published`] answers the claims of the study that a run reproduces.
//! - [`terminal`], [`html`], [`csv`] and [`json`] write the same [`Analysis`] for different readers;
//!   [`write_all`] puts all files into the run folder. [`live`] is for the one result that has just
//!   arrived.
//!
//! Below them lie [`mod@format`], which knows how many digits a number deserves, and `svg`, a small
//! kit for plots: scales, axes, marks.
//!
//! Nothing here measures, and nothing is stored that could not be derived again.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod compare;
pub mod csv;
mod error;
pub mod format;
pub mod html;
pub mod json;
mod live;
mod measures;
mod panels;
pub mod published;
pub mod rows;
mod svg;
mod table_rows;
pub mod terminal;
pub mod verdict;
pub mod wakeup;
mod words;
mod write;

pub use analysis::{Analysis, RunData, Summary, analyse, analyse_with};
pub use error::ReportError;
pub use live::live;
pub use write::{Written, write_all};
