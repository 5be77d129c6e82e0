//! The integration tests of this crate as one program: each further program would be linked with
//! everything that the crate needs.

mod cgroups;
mod kill9;
mod lifecycle;
mod signals;
mod support;
mod sweep;
