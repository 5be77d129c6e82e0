//! What stories are put together from: more than rows alone give, and nothing that names an experiment.
//!
//! - [`series`]: cases that differ in one label, cases of one kind of execution, how a case is named among others, and what is
//!   kept for each case while cells are read;
//! - [`curve`]: a picture of lines over a numeric label;
//! - [`claim_table`]: published figures next to those of a run;
//! - [`sentence`]: sentences that list figures with what they are of.
//!
//! [`Plain`](crate::plain::Plain) is enough for an experiment without a story; a full [`Story`](crate::Story) may use any part.

pub mod claim_table;
pub mod curve;
pub mod sentence;
pub mod series;
