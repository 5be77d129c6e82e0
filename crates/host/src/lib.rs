//! What this Linux host is, what disturbs measuring on it, and which CPU to measure on.
//!
//! - [`Machine`] describes the machine for the reader of a result.
//! - [`choose_cpu`] finds the CPU to measure on and says why.
//! - [`doctor()`] lists what disturbs measuring: state, why it matters, what to do.
//!
//! All three read files below `/proc` and `/sys` through a [`Source`], which may be a
//! folder instead of the running system. What cannot be read is a [`Fact`] that is
//! unknown *because of something*, never an error: the only errors ([`HostError`]) are
//! requests that cannot be met. What happens on the machine right now is watched in
//! one [`Sample`] of 200 ms.
//!
//! Its names come from whoever chose them: [`visible()`] shows what in them a terminal would obey.
//!
//! Nothing here changes a setting.

#![forbid(unsafe_code)]

mod cgroup;
mod choose;
mod cpuid;
mod doctor;
mod error;
mod fact;
pub mod machine;
mod ordinary;
pub mod realtime;
pub mod sample;
mod source;
mod switches;
mod visible;

#[cfg(test)]
mod tests;

pub use cgroup::{CgroupMount, CgroupVersion, exclusive_cpuset};
pub use choose::{BUSY_SHARE, CpuChoice, Rule, choose_cpu, choose_cpu_beside};
pub use cpuid::{Cpuid, TCG_SIGNATURE, hypervisor_name};
pub use doctor::{Finding, Severity, doctor, load_of_all_cpus, summary};
pub use error::HostError;
pub use fact::Fact;
pub use machine::Machine;
pub use ordinary::{open_ordinary, read_ordinary};
pub use sample::Sample;
pub use source::Source;
pub use switches::{Switch, is_of_own_group, switch_ids, switches};
pub use visible::{visible, visible_in_line};
