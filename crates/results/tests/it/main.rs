//! The integration tests of this crate as one program: each further program would be linked with
//! everything that the crate needs.

mod common;
mod folder;
mod full_disk;
mod kill;
mod schema;
