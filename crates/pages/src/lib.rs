//! Shows the figures of a run: on a terminal, as one page, as Markdown and CSV. A kit that names no
//! experiment.
//!
//! - [`view`] is the seam to the experiments: a [`Story`] says what only its experiment knows to
//!   show besides rows. [`plain`] is the story of an experiment that has none, and [`kit`] has
//!   parts for the others.
//! - [`report`] derives the figures of a run folder and the stories.
//! - [`tables`] are columns over rows, as a story lists them; a [`Table`] is what terminal and page
//!   render of them.
//! - [`terminal`] and [`page`] show the same [`Report`] to different readers; [`write_all`] puts
//!   all files into the run folder.
//!
//! Below them lie the kits of both media, [`text`] and [`html`] with [`svg`], and `words`. What the
//! figures are is decided in `tare-figures`; nothing here computes one. The modules form layers: a
//! test reads their imports (`tests/layers.rs`).

#![forbid(unsafe_code)]

mod grouped;
pub mod html;
pub mod kit;
pub mod page;
pub mod plain;
pub mod report;
mod shared;
pub mod svg;
pub mod table;
pub mod tables;
pub mod terminal;
pub mod text;
pub mod view;
mod words;
mod write;

pub use report::{Report, RunData, analyse, analyse_with};
pub use table::{Table, Titled};
pub use view::{Catalogue, Story, View};
pub use write::{Written, write_all};
