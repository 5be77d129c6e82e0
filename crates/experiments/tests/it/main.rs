//! The integration tests of this crate as one program: each further program would be linked with
//! everything that the crate needs.

mod attribution;
mod calder;
mod claims;
mod compare;
mod consistency;
mod cpus;
mod extremes;
mod figures;
mod folder;
mod gates;
mod html;
mod landolfi;
mod other_work;
mod pages;
mod places;
mod primitives;
mod schema;
mod services;
mod starts;
mod streams;
mod switches;
mod synthetic;
mod takers;
mod terminal;
mod wakeups;
