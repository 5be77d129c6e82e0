//! Engines that are started for the cells that need them, and stopped after.
//!
//! The plan has those cells together (see [`crate::order`]), so an engine is started before the
//! first of them and stopped before the next cell that does without.

use tare_guard::Guard;
use tare_results::model::{Cell, CellPlan, Outcome};
use tare_targets::engine::{Running, runs};
use tare_targets::{Engine, TargetError};

use crate::execute::Targets;
use crate::many::NOTHING;

/// The engine that runs at the moment, if one was started here.
#[derive(Debug)]
pub(crate) struct Engines {
    /// Whether the user wants engines to be started.
    wanted: bool,
    /// Whether one that had died was started again: it is worth one try.
    revived: bool,
    running: Option<(Engine, Running)>,
}

impl Engines {
    pub(crate) fn new(wanted: bool) -> Self {
        Self {
            wanted,
            revived: false,
            running: None,
        }
    }

    /// Makes the engine of a cell run, and no other one. One that has died is started again once.
    ///
    /// # Errors
    ///
    /// Returns why it does not. The cell fails then.
    pub(crate) fn prepare(
        &mut self,
        targets: &Targets,
        plan: &CellPlan,
        guard: &Guard,
    ) -> Result<(), TargetError> {
        let needed = plan.engine();
        if self.running.as_ref().map(|(engine, _)| *engine) == needed {
            let lives = match &mut self.running {
                Some((_, running)) => running.runs()?,
                None => true,
            };
            if lives || self.revived {
                return Ok(());
            }
            self.revived = true;
        }
        self.stop(targets)?;
        let Some(engine) = needed.filter(|engine| !runs(*engine)) else {
            return Ok(());
        };
        if !self.wanted {
            return match plan.beside_engine {
                true => Err(TargetError::Failed(BESIDE.to_owned())),
                // The target itself says what is missing.
                false => Ok(()),
            };
        }
        let running = Running::start(engine, guard)?;
        for target in targets
            .targets()
            .filter(|t| t.spec().capabilities().engine == needed)
        {
            target.use_engine(Some(running.socket()));
        }
        self.running = Some((engine, running));
        Ok(())
    }

    /// Makes a cell with many instances a failed one if the engine that it needs no longer runs
    /// after it: its instances then show the end of the engine, not a saturated target.
    pub(crate) fn judge(&mut self, mut cell: Cell) -> Cell {
        let Some(engine) = cell.plan.engine().filter(|_| cell.plan.arrivals.is_some()) else {
            return cell;
        };
        let met = match &cell.outcome {
            Outcome::Done {
                record,
                cut_short: None,
            } => {
                let failures = record.arrived.iter().flat_map(|arrived| &arrived.failures);
                let most = failures.max_by_key(|failure| failure.count);
                most.map_or_else(String::new, |failure| format!(": {}", failure.reason))
            }
            Outcome::Failed { reason } if reason.starts_with(NOTHING) => format!(": {reason}"),
            _ => return cell,
        };
        let lives = match &mut self.running {
            // If the kernel can't answer, the engine counts as running.
            Some((_, running)) => running.runs().unwrap_or(true),
            None => runs(engine),
        };
        if !lives {
            let reason = format!("the engine that it needs no longer runs{met}");
            cell.outcome = Outcome::Failed { reason };
        }
        cell
    }

    /// Stops the engine that was started here.
    ///
    /// # Errors
    ///
    /// Returns what could not be ended; the guard tries again when it is closed.
    pub(crate) fn stop(&mut self, targets: &Targets) -> Result<(), TargetError> {
        let Some((engine, running)) = self.running.take() else {
            return Ok(());
        };
        for target in targets
            .targets()
            .filter(|t| t.spec().capabilities().engine == Some(engine))
        {
            target.use_engine(None);
        }
        running.stop()
    }
}

/// The reason why a cell that is to run next to an engine can't.
const BESIDE: &str =
    "no engine runs on this machine: start Docker's, or let it be started with --start-engine";
