//! What every instance tells of itself, whatever it measured.

use tare_results::model::{Agent, Calibration, Cell, Fact, Frequency, Outcome, Preparation};

/// Is what the record of a cell says beside its figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instance<'a> {
    /// Who ran it.
    pub agent: &'a Agent,
    /// How it was prepared.
    pub preparation: &'a Preparation,
    /// What the time stamps cost.
    pub calibration: &'a Calibration,
    /// What each source claims of the TSC's frequency.
    pub frequencies: &'a [Frequency],
    /// What the place looks like from inside.
    pub facts: &'a [Fact],
}

impl<'a> Instance<'a> {
    /// Takes the record of a cell; `None` if it failed.
    pub(crate) fn of(cell: &'a Cell) -> Option<Self> {
        match &cell.outcome {
            Outcome::Done(measured) => Some(Self {
                agent: &measured.agent,
                preparation: &measured.preparation,
                calibration: &measured.calibration,
                frequencies: &measured.frequencies,
                facts: &measured.facts,
            }),
            Outcome::Woken(woken) => Some(Self {
                agent: &woken.agent,
                preparation: &woken.preparation,
                calibration: &woken.calibration,
                frequencies: &woken.frequencies,
                facts: &woken.facts,
            }),
            Outcome::Failed { .. } => None,
        }
    }

    /// Returns what was found of one thing, if it was told.
    pub(crate) fn fact(&self, name: &str) -> Option<&'a str> {
        let mut facts = self.facts.iter();
        let found = facts.find(|fact| fact.name == name)?;
        Some(&found.value)
    }
}
