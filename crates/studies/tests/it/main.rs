//! The integration tests of this crate as one program: each further program would be linked with
//! everything that the crate needs.

mod documentation;
mod errors;
mod expand;
