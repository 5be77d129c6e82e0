//! The load of one cell: none, next to the measured code, or inside its target.
//!
//! The target decides where it runs. A load next to the target runs before the target is launched
//! and is stopped after the target's end, so that all of the cell is disturbed; inside, the target
//! starts and stops it, and its records come among the others.
//!
//! Loads in phases begin with the first wake-up, whose time the measured code tells
//! ([`Loaded::begins`]). Inside it tells the load itself.

use tare_guard::{Guard, Interrupt};
use tare_loads::{LoadError, LoadReceiver, Running};
use tare_results::model::{self, CellPlan, LoadPlace, Schedule};
use tare_targets::measured::MeasuredFile;
use tare_wire::phases::LEAD_NS;

/// The load of a cell while it runs.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// There is none.
    Idle,
    /// It runs on this machine.
    Beside(Box<Beside>),
    /// It runs where the measured code does.
    Inside {
        /// The load that the target runs.
        load: Schedule,
        /// The result.
        receiver: Box<LoadReceiver>,
    },
}

/// A load on this machine.
#[derive(Debug)]
pub(crate) struct Beside {
    running: Running,
    /// Whether the target's clock is this machine's.
    shares_clock: bool,
}

impl Loaded {
    /// Starts the load of a cell, if it has one that runs next to the target.
    pub(crate) fn start(
        plan: &CellPlan,
        guard: &Guard,
        interrupt: &Interrupt,
    ) -> Result<Self, LoadError> {
        let failed = |text: String| LoadError::Failed { text };
        if plan.load.is_idle() {
            return Ok(Self::Idle);
        }
        let is_alone = plan.arrivals.is_none() && plan.server.is_none();
        if plan.target.capabilities().load_place == LoadPlace::Inside && is_alone {
            return Ok(Self::Inside {
                load: plan.load.clone(),
                receiver: Box::new(LoadReceiver::at(LoadPlace::Inside)),
            });
        }
        let agent = MeasuredFile::agent();
        let agent = agent.path().map_err(|error| failed(error.to_string()))?;
        let running = Running::start(&plan.load, agent, &plan.claimed_cpus(), guard, interrupt)?;
        Ok(Self::Beside(Box::new(Beside {
            running,
            shares_clock: plan.target.kernel().is_host(),
        })))
    }

    /// Returns the load that the target has to run.
    pub(crate) fn inside(&self) -> Option<&Schedule> {
        match self {
            Self::Inside { load, .. } => Some(load),
            Self::Idle | Self::Beside(_) => None,
        }
    }

    /// Records that the first wake-up is due at `origin_ns` of the place's clock, as was read at
    /// `read_ns` of this machine's.
    ///
    /// Under this machine's kernel both are CLOCK_MONOTONIC. Of another clock only the lead is
    /// known ([`LEAD_NS`]): the phases of the load begin late by as much as the record was under
    /// way.
    pub(crate) fn begins(&mut self, origin_ns: u64, read_ns: u64) {
        if let Self::Beside(beside) = self {
            let origin_ns = match beside.shares_clock {
                true => origin_ns,
                false => read_ns.saturating_add(LEAD_NS),
            };
            // A driver that has gone is reported when it is stopped.
            let _ = beside.running.begin(origin_ns);
        }
    }

    /// Takes a line of the instance's output.
    pub(crate) fn line(&mut self, line: &[u8]) {
        if let Self::Inside { receiver, .. } = self {
            receiver.line(line);
        }
    }

    /// Ends the load and returns what it did.
    pub(crate) fn stop(self) -> Result<Option<model::Load>, LoadError> {
        match self {
            Self::Idle => Ok(None),
            Self::Beside(beside) => beside.running.stop().map(Some),
            Self::Inside { receiver, .. } => receiver.finish().map(Some),
        }
    }
}
