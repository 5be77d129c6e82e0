//! Rows: every figure of every experiment in one shape.
//!
//! A row is a target under a load, with labels, and one figure of one measure. Files, tables, comparisons, gates and
//! claims read the same rows, so that they can't contradict each other.
//!
//! * [`measure`]: what an experiment measures, as data;
//! * [`derive`]: from the cells of a run to its rows;
//! * [`flat`]: rows as lines of a table that any engine reads;
//! * [`gate`]: limits that rows must not exceed.

pub mod derive;
pub mod flat;
pub mod gate;
pub mod measure;

pub use derive::{Collector, Each, Row, Rows};
pub use flat::FlatRow;
pub use gate::{Gate, GateError, Judgement};
pub use measure::{Better, Carried, CellData, Figure, Measure, Sample, Samples, counts};
