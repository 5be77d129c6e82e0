//! The load of one cell: none, beside the measured code, or inside its target.
//!
//! Where it runs is the target's word. Beside, it is going before the target is launched and is stopped after the
//! target's end, so that all of the cell is disturbed; inside, the target starts and stops it, and its records come
//! among the others.

use tare_guard::{Guard, Interrupt};
use tare_loads::{Load, LoadError, LoadReceiver, Running};
use tare_results::model::{self, CellPlan};
use tare_targets::measured::MeasuredFile;
use tare_targets::{LoadPlace, Target};
use tare_wire::plan::Plan;

/// Is the load of a cell while it runs.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// There is none.
    Idle,
    /// It runs on this machine.
    Beside(Box<Running>),
    /// It runs where the measured code does.
    Inside {
        /// The load, as the target is told.
        text: String,
        /// What comes of it.
        receiver: LoadReceiver,
    },
}

impl Loaded {
    /// Starts the load of a cell, if it has one and it runs beside.
    pub(crate) fn start(
        plan: &CellPlan,
        target: &dyn Target,
        guard: &Guard,
        interrupt: &Interrupt,
    ) -> Result<Self, LoadError> {
        let failed = |text: String| LoadError::Failed { text };
        let load = Load::parse(&plan.load).map_err(|error| failed(error.to_string()))?;
        if load.is_idle() {
            return Ok(Self::Idle);
        }
        if target.load_place() == LoadPlace::Inside {
            return Ok(Self::Inside {
                text: plan.load.clone(),
                receiver: LoadReceiver::default(),
            });
        }
        let words = Plan::parse(plan.words.split_whitespace());
        let measured = words.ok().and_then(|words| words.cpu);
        let agent = MeasuredFile::agent();
        let agent = agent.path().map_err(|error| failed(error.to_string()))?;
        let running = Running::start(&load, agent, measured, guard, interrupt)?;
        Ok(Self::Beside(Box::new(running)))
    }

    /// Returns the load that the target has to run.
    pub(crate) fn inside(&self) -> Option<&str> {
        match self {
            Self::Inside { text, .. } => Some(text),
            Self::Idle | Self::Beside(_) => None,
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
            Self::Beside(running) => running.stop().map(Some),
            Self::Inside { receiver, .. } => receiver.finish(model::LoadPlace::Inside).map(Some),
        }
    }
}
