//! What is written for other tools.

pub mod csv;
pub mod cyclictest;
pub mod hgrm;
