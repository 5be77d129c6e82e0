//! The services by their ids: what `workload=` of a plan chooses.
//!
//! Agent and images look here; nobody else knows which services there are. A new one is a folder beside this file and
//! a line in [`services`].

use core::fmt;

use tare_wire::words::PlanError;

use crate::platform::Platform;
use crate::session::Stop;
use crate::{noise, primitives, start, wakeup};

/// A platform on which every service runs.
pub trait Place: Platform + Sized {
    /// Why something could not be measured.
    type Error: From<Stop> + fmt::Display;

    /// Wakes threads at absolute times, as the platform does it, and reports how late they ran.
    ///
    /// # Errors
    ///
    /// Returns why there is no result.
    fn wake(&mut self, plan: &wakeup::Plan) -> Result<(), Self::Error>;

    /// Measures primitives, as many as the platform has, and reports them.
    ///
    /// # Errors
    ///
    /// Returns why there is no result.
    fn primitives(&mut self, plan: &primitives::Plan<'_>) -> Result<(), Self::Error>;
}

/// The words of a plan.
pub type Words<'w, 'a> = &'w mut dyn Iterator<Item = &'a str>;

/// How a service ended.
pub type Ended<'a, P> = Result<(), Failure<'a, <P as Place>::Error>>;

/// A function that measures.
#[derive(Debug)]
pub struct Service<P: Place> {
    /// The word by which it is chosen.
    pub id: &'static str,
    /// Reads where its threads run.
    pub threads: for<'a> fn(Words<'_, 'a>) -> Result<Threads, PlanError<'a>>,
    /// Measures, and writes the records of everything that happened.
    pub run: for<'a> fn(Words<'_, 'a>, &mut P) -> Ended<'a, P>,
}

impl<P: Place> Clone for Service<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Place> Copy for Service<P> {}

/// Where the threads of a plan run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// How many there are.
    pub number: u32,
    /// CPU of the first one; any if None.
    pub first_cpu: Option<u32>,
}

/// Why a service has no result.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure<'a, E> {
    /// A word of the plan can't be read.
    Plan(PlanError<'a>),
    /// It could not be measured.
    Measurement(E),
}

/// Lists the services.
#[must_use]
pub fn services<P: Place>() -> [Service<P>; 6] {
    [
        batch("prime"),
        batch("copy"),
        batch("gap"),
        Service {
            id: wakeup::NAME,
            threads: |words| {
                let plan = wakeup::Plan::parse(words)?;
                Ok(Threads {
                    number: plan.threads,
                    first_cpu: plan.cpu_of(0),
                })
            },
            run: |words, place| {
                let plan = wakeup::Plan::parse(words).map_err(Failure::Plan)?;
                place.wake(&plan).map_err(Failure::Measurement)
            },
        },
        Service {
            id: primitives::NAME,
            threads: |words| {
                let plan = primitives::Plan::parse(words)?;
                Ok(Threads {
                    number: 1,
                    first_cpu: plan.cpu(),
                })
            },
            run: |words, place| {
                let plan = primitives::Plan::parse(words).map_err(Failure::Plan)?;
                place.primitives(&plan).map_err(Failure::Measurement)
            },
        },
        Service {
            id: start::NAME,
            threads: |words| {
                let plan = start::Plan::parse(words)?;
                Ok(Threads {
                    number: 1,
                    first_cpu: plan.cpu,
                })
            },
            run: |words, place| {
                let plan = start::Plan::parse(words).map_err(Failure::Plan)?;
                start::run(&plan, place).map_err(|stop| Failure::Measurement(stop.into()))
            },
        },
    ]
}

/// The words that the services take, for those who type them.
pub const USAGE: [&str; 4] = [noise::USAGE, wakeup::USAGE, primitives::USAGE, start::USAGE];

fn batch<P: Place>(id: &'static str) -> Service<P> {
    Service {
        id,
        threads: |words| {
            let plan = noise::Plan::parse(words)?;
            Ok(Threads {
                number: 1,
                first_cpu: plan.cpu,
            })
        },
        run: |words, place| {
            let plan = noise::Plan::parse(words).map_err(Failure::Plan)?;
            noise::run(&plan, place).map_err(|stop| Failure::Measurement(stop.into()))
        },
    }
}

/// Finds the service that words ask for, among those of tare and `more`.
///
/// # Errors
///
/// Returns [`PlanError`] if they name none, or one that does not exist.
pub fn find<'a, P: Place>(
    mut words: impl Iterator<Item = &'a str>,
    more: &[Service<P>],
) -> Result<Service<P>, PlanError<'a>> {
    let id = words
        .find_map(|word| word.strip_prefix("workload="))
        .ok_or(PlanError::Missing("workload"))?;
    let mut services = services().into_iter().chain(more.iter().copied());
    services
        .find(|service| service.id == id)
        .ok_or(PlanError::BadValue {
            key: "workload",
            value: id,
            wanted: "one that `tare-agent --help` lists",
        })
}
