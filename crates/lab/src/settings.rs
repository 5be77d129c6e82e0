//! Kernel settings that a plan changes for the time of its run.

use std::path::Path;

use tare_guard::{Guard, Setting};
use tare_results::model::SettingPlan;

use crate::error::ExperimentError;

/// Changed settings. Dropping them puts the old values back.
#[derive(Debug)]
pub struct Settings(Vec<Setting>);

impl Settings {
    /// Changes settings.
    ///
    /// # Errors
    ///
    /// Returns [`ExperimentError::Guard`] for the first that can't be changed; all have their old
    /// values then.
    pub fn change(planned: &[SettingPlan], guard: &Guard) -> Result<Self, ExperimentError> {
        let mut changed = Self(Vec::new());
        for setting in planned {
            changed
                .0
                .push(guard.set(Path::new(&setting.path), &setting.value)?);
        }
        Ok(changed)
    }

    /// Puts the old values back.
    ///
    /// # Errors
    ///
    /// Returns [`ExperimentError::Guard`] for the first that can't be put back.
    pub fn restore(mut self) -> Result<(), ExperimentError> {
        // In reverse order: the last change is the first to be undone.
        while let Some(setting) = self.0.pop() {
            setting.restore()?;
        }
        Ok(())
    }
}
