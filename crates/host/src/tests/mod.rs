//! Tests of the whole crate on machines that are made of files.

mod choose;
mod doctor;
pub(crate) mod fixtures;
mod garbage;
mod machine;
