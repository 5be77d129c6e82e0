//! The experiments by the ids of their plans: the word `workload=` selects one.
//!
//! Agent and images look experiments up here and name none. A new experiment is a folder in this
//! crate and a line in [`everywhere`]; one that needs an ability of the platform has a line in
//! `linux::experiments` and one in `bare::experiments` instead.

use core::fmt;

use tare_wire::words::PlanError;

use crate::platform::Platform;
use crate::{noise, primitives, service, start, stream, wakeup};

/// The words of a plan.
pub type Words<'w, 'a> = &'w mut dyn Iterator<Item = &'a str>;

/// The outcome of a measurement.
pub type Ended<'a, P> = Result<(), Failure<'a, <P as Platform>::Error>>;

/// An experiment on a platform.
#[derive(Debug)]
pub struct Measurement<P: Platform> {
    /// Returns whether this `workload=` selects it.
    pub has: fn(&str) -> bool,
    /// Reads from a plan where its threads run.
    pub threads: for<'a> fn(Words<'_, 'a>) -> Result<Threads, PlanError<'a>>,
    /// Measures, and writes the records of everything that happened.
    pub run: for<'a> fn(Words<'_, 'a>, &mut P) -> Ended<'a, P>,
}

impl<P: Platform> Clone for Measurement<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform> Copy for Measurement<P> {}

/// The CPUs of a plan's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// The number of threads.
    pub number: u32,
    /// CPU of the first one; any if None.
    pub first_cpu: Option<u32>,
}

impl Threads {
    /// Returns one thread, on the plan's CPU if there is one.
    pub fn one(cpu: Option<u32>) -> Self {
        Self {
            number: 1,
            first_cpu: cpu,
        }
    }
}

/// The reason why a measurement has no result.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure<'a, E> {
    /// A word of the plan is invalid.
    Plan(PlanError<'a>),
    /// Measuring failed.
    Measurement(E),
}

/// Returns the experiments that every platform can run.
pub fn everywhere<P: Platform>() -> [Measurement<P>; 3] {
    [noise::on(), start::on(), stream::on()]
}

/// Writes a description of the words of all plans, for the help.
///
/// # Errors
///
/// Returns the error of the writer.
pub fn usage(f: &mut dyn fmt::Write) -> fmt::Result {
    noise::usage(f)?;
    let others = [
        wakeup::USAGE,
        primitives::USAGE,
        stream::USAGE,
        service::USAGE,
        start::USAGE,
    ];
    others.into_iter().try_for_each(|text| f.write_str(text))
}

/// Finds the experiment that the words of a plan select.
///
/// # Errors
///
/// Returns [`PlanError`] if they select none, or an unknown one.
pub fn find<'a, P: Platform>(
    mut words: impl Iterator<Item = &'a str>,
    mut experiments: impl Iterator<Item = Measurement<P>>,
) -> Result<Measurement<P>, PlanError<'a>> {
    let id = words
        .find_map(|word| word.strip_prefix("workload="))
        .ok_or(PlanError::Missing("workload"))?;
    experiments
        .find(|one| (one.has)(id))
        .ok_or(PlanError::BadValue {
            key: "workload",
            value: id,
            wanted: "one that `tare-agent --help` lists",
        })
}
