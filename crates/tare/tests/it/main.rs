//! The integration tests of this crate as one program: each further program would be linked with
//! everything that the crate needs.

mod bad_input;
mod browser;
mod common;
mod compare;
mod culprit;
mod cyclictest;
mod dry_run;
mod exchange;
mod figures;
mod flood;
mod gates;
mod help;
mod image;
mod images;
mod imports;
mod install;
mod kernel;
mod landolfi;
mod lifecycle;
mod loads;
mod noise;
mod other_work;
mod primitives;
mod screen;
mod service;
mod ssh;
mod start;
mod stopping;
mod study;
mod targets;
mod top;
mod trust;
mod tutorial;
mod unikernel;
mod wakeup;
