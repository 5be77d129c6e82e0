//! Shows the figures of a run: on a terminal, as one page, as Markdown and CSV. A kit that names no experiment.
//!
//! - [`view`] is the seam to the experiments: a [`Story`] says what only its experiment knows to show besides rows.
//!   [`plain`] is the story of an experiment that has none.
//! - [`report`] derives the figures of a run folder and the stories.
//! - [`tables`] are made of rows, for terminal and page.
//! - [`terminal`] and [`html`] write the same [`Report`] for different readers; [`write_all`] puts all files into the run
//!   folder.
//!
//! Below them lie [`words`], and [`svg`], a small kit for plots: scales, axes, marks. What the figures are is decided in
//! `tare-figures`; nothing here computes one.

#![forbid(unsafe_code)]

pub mod html;
pub mod plain;
pub mod report;
pub mod svg;
pub mod tables;
pub mod terminal;
pub mod view;
pub mod words;
mod write;

pub use report::{Report, RunData, analyse, analyse_with};
pub use view::{Catalogue, Collect, Story, View};
pub use write::{Written, write_all};
