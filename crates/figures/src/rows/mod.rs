//! Rows: every figure of every experiment in one shape.
//!
//! A row is a target under a load, with labels, and one figure of one measure. Files, tables,
//! comparisons, gates and claims read the same rows, so that they can't contradict each other, and
//! a new measure appears in all of them.
//!
//! A quantile needs ten samples beyond it, and a class below the recording threshold has no figure,
//! not 0. There are no intervals over the samples of one run, as kot-2019 printed them: samples of
//! a run depend on each other.
//!
//! * [`measure`]: what an experiment measures, as data; [`cell`]: the cell that it is measured in;
//! * [`mod@derive`]: from the cells of a run to its rows;
//! * [`flat`]: rows as lines of a table that any engine reads;
//! * `naming`: rows and figures in sentences.

pub mod cell;
pub mod derive;
pub mod flat;
pub mod measure;
pub(crate) mod naming;

pub use cell::{CPU, CellData, counts};
pub use derive::{Collector, Each, Places, Row, Rows};
pub use flat::FlatRow;
pub use measure::{
    Better, CONTEXT_SWITCHES, Figure, INTERRUPTS, Measure, RunFigure, Sample, Samples,
};
pub use naming::{behind, labelled, live, with, written};
