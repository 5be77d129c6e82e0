//! Rows: every figure of every experiment in one shape.
//!
//! A row is a target under a load, with labels, and one figure of one measure. Files, tables, comparisons, gates and
//! claims read the same rows, so that they can't contradict each other.
//!
//! * [`measure`]: what an experiment measures, as data; [`cell`]: the cell that it is measured in;
//! * [`derive`]: from the cells of a run to its rows;
//! * [`flat`]: rows as lines of a table that any engine reads;
//! * [`gate`]: limits that rows must not exceed; `selector` says of which rows they are;
//! * `naming`: rows and figures in sentences.

pub mod cell;
pub mod derive;
pub mod flat;
pub mod gate;
pub mod measure;
mod naming;
mod selector;

pub use cell::{CellData, counts};
pub use derive::{Collector, Each, Row, Rows};
pub use flat::FlatRow;
pub use gate::{Gate, GateError, Judgement};
pub use measure::{
    Better, CONTEXT_SWITCHES, Carried, Figure, INTERRUPTS, Measure, Sample, Samples,
};
pub use naming::written;
pub use selector::Selector;
