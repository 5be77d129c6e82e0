//! Rows: every figure of every experiment in one shape.
//!
//! A row is a target under a load, with labels, and one figure of one measure. Files, tables, comparisons, gates and
//! claims read the same rows, so that they can't contradict each other.
//!
//! * [`measure`]: what an experiment measures, as data;
//! * [`derive`]: from the cells of a run to its rows;
//! * [`flat`]: rows as lines of a table that any engine reads;
//! * [`gate`]: limits that rows must not exceed; `selector` says of which rows they are;
//! * `naming`: rows and figures in sentences.

pub mod derive;
pub mod flat;
pub mod gate;
pub mod measure;
mod naming;
mod selector;

pub use derive::{Collector, Each, Row, Rows};
pub use flat::FlatRow;
pub use gate::{Gate, GateError, Judgement};
pub use measure::{
    Better, Carried, CellData, Figure, INTERRUPTS, Measure, Sample, Samples, counts,
};
pub use naming::written;
pub use selector::Selector;
