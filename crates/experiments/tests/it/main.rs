//! The integration tests of this crate as one program: each program of its own would be linked with
//! everything that the crate needs.

mod landolfi;
mod schema;
mod synthetic;
mod wakeups;
