//! The run folder: what was asked, what was seen, and nothing that can be derived.
//!
//! - [`model`] is what the JSON files and the rows of the Parquet files say.
//! - [`target`] is what they say of a target, and how one is written.
//! - [`work`] is what they say of what measured code is asked to do.
//! - [`receive`] makes the facts of a cell from the lines of an instance.
//! - [`RunFolder`] creates, fills and reads a run folder. A cell is there as a whole or not at
//!   all, nothing raw is ever written over, and what was changed afterwards is found.
//! - [`frequency`] chooses the figure by which cycles become nanoseconds.
//! - [`bounded`] reads lists and objects of files up to a bound.
//! - [`schemas`] describes the JSON files for other tools.
//!
//! The layout on the disk, with every file and column, is in `docs/run-folder.md`.

#![forbid(unsafe_code)]

pub mod bounded;
mod bounds;
mod cell;
mod clock;
pub mod columns;
pub mod csv;
mod derived;
mod disk;
mod error;
mod folder;
pub mod frequency;
mod head;
mod layout;
mod lock;
mod machine;
pub mod model;
mod phases;
mod rate;
pub mod receive;
mod record;
mod samples;
mod schema;
mod sums;
pub mod target;
pub mod work;

pub use clock::now;
pub use derived::{Derived, create_folder, write_file};
pub use error::ResultsError;
pub use folder::{CellState, RunFolder};
pub use frequency::TscFrequency;
pub use machine::MachineRecord;
pub use rate::Rate;
pub use schema::schemas;
