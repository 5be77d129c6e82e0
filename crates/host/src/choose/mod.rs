//! Which CPU to measure on, by a rule that can be printed.
//!
//! The rule, first match wins:
//!
//! 1. **Requested.** The CPU that the caller names, if this process may run there.
//! 2. **Isolated.** The highest-numbered CPU that was set apart (`isolcpus=`,
//!    `nohz_full=`, an isolated cpuset partition), that is itself idle, and whose SMT
//!    siblings are idle. A busy isolated CPU is somebody's production and is left alone.
//! 3. **Quietest.** Of the others, except CPU 0 (which serves most interrupts and
//!    housekeeping), the one with the lowest busy share over the sample, where the
//!    share of a CPU is that of its busiest SMT sibling if that is higher. CPUs
//!    with a busy sibling, and efficiency cores of a hybrid processor, are taken only
//!    when there is nothing else. Ties go to the highest number.
//! 4. **Only one.** With a single CPU, that one, and a warning.
//!
//! # Which CPUs a process may use
//! The affinity mask is not the limit, the cpuset is. Processes inherit a mask
//! *without* the CPUs of `isolcpus=`, yet `sched_setaffinity` accepts those CPUs; that
//! is how isolated CPUs are meant to be used. So an isolated CPU inside the
//! cpuset may be requested although it is not in the mask. It is chosen unasked only
//! when the mask still holds all CPUs that are not set apart: a narrower mask was set by
//! somebody (taskset, a service manager), and what they excluded stays excluded.
//! Without knowledge of the cpuset, only the mask is believed.

mod reach;
mod rule;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::HostError;
use crate::machine::Machine;
use crate::sample::Sample;
use reach::Reach;
use rule::Chooser;
use tare_wire::cpus::Cpus;

/// A CPU that is busy for a larger share of the sample than this counts as busy.
///
/// The kernel accounts in units of 10 ms, and a sample of 200 ms catches 19 to 21 of them, so
/// one unit shows as about 5 % and two as about 10 %. The limit lies between: one stray unit,
/// which may be a single interrupt at the wrong moment, is forgiven.
pub const BUSY_SHARE: f64 = 0.075;

/// The CPU to measure on, where to run everything else, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuChoice {
    /// The CPU to measure on.
    pub cpu: u32,
    /// Which part of the rule decided.
    pub rule: Rule,
    /// Why this CPU, in one sentence.
    pub reason: String,
    /// The reasons against it.
    pub warnings: Vec<String>,
    /// The CPUs on which the controlling process should run: those of its mask other than the
    /// measured CPU, without isolated CPUs and SMT siblings of the measured one when others remain.
    pub controller_cpus: Cpus,
}

impl CpuChoice {
    /// Returns whether the controller has to share the measured CPU.
    pub fn controller_shares(&self) -> bool {
        self.controller_cpus.contains(self.cpu)
    }
}

/// The part of the rule that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The caller asked for it.
    Requested,
    /// It was set apart and is idle.
    Isolated,
    /// It is the quietest of those that may be used.
    Quietest,
    /// There is no other.
    OnlyOne,
}

/// Chooses the CPU to measure on when none is asked for, away from runs that measure on the CPUs
/// `taken`: one of those only if there is no other.
///
/// # Errors
/// No CPU is known at all ([`HostError::NoCpuKnown`]).
pub fn choose_cpu_beside(
    taken: &Cpus,
    machine: &Machine,
    sample: &Sample,
) -> Result<CpuChoice, HostError> {
    let reach = Reach::of(machine, sample)?;
    let left = reach.without(taken);
    let chooser = Chooser {
        machine,
        sample,
        reach: left.as_ref().unwrap_or(&reach),
        others_measure: left.is_some() && !taken.is_empty(),
    };
    let mut choice = chooser.automatic();
    if chooser.others_measure {
        choice.reason = format!(
            "{}; other runs of tare measure on CPU {taken}",
            choice.reason
        );
    }
    Ok(choice)
}

/// Chooses the CPU to measure on. The description and the sample are of the time before the process
/// narrows its own affinity mask.
///
/// # Errors
/// The requested CPU is not online ([`HostError::CpuNotOnline`]) or out of reach
/// ([`HostError::CpuNotAllowed`]), or no CPU is known at all ([`HostError::NoCpuKnown`]).
pub fn choose_cpu(
    machine: &Machine,
    sample: &Sample,
    requested: Option<u32>,
) -> Result<CpuChoice, HostError> {
    let reach = Reach::of(machine, sample)?;
    let chooser = Chooser {
        machine,
        sample,
        reach: &reach,
        others_measure: false,
    };
    match requested {
        Some(cpu) => chooser.requested(cpu),
        None => Ok(chooser.automatic()),
    }
}
