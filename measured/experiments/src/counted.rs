//! The platform's counters over a batch: faults, context switches and the like.

use tare_wire::record::{Counter, Record};

use crate::moved::Moved;
use crate::output::Output;
use crate::platform::{Platform, WriteError};

type Reading = [Option<(&'static str, u64)>; 4];

/// The platform's counters before and after a batch.
pub struct Counted {
    before: Reading,
    after: Reading,
}

impl Counted {
    /// Reads the counters before and after `measured`.
    ///
    /// # Errors
    ///
    /// Returns [`Moved`] if this thread did not stay on its CPU.
    pub fn around<R>(
        platform: &impl Platform,
        measured: impl FnOnce() -> R,
    ) -> Result<(R, Self), Moved> {
        let mut counted = Self::begin(platform);
        let result = measured();
        counted.end(platform)?;
        Ok((result, counted))
    }

    /// Reads the counters before the measurement.
    pub fn begin(platform: &impl Platform) -> Self {
        let before = platform.counters();
        let after = before;
        Self { before, after }
    }

    /// Reads the counters after the measurement.
    ///
    /// # Errors
    ///
    /// Returns [`Moved`] if this thread did not stay on its CPU.
    pub fn end(&mut self, platform: &impl Platform) -> Result<(), Moved> {
        self.after = platform.counters();
        platform.stayed()
    }

    /// Writes the differences.
    pub fn write(self, output: &mut Output<'_, impl Platform>) -> Result<(), WriteError> {
        let (before, after) = (self.before.iter().flatten(), self.after.iter().flatten());
        for ((name, before), (_, after)) in before.zip(after) {
            let count = after.wrapping_sub(*before);
            let labels = "";
            output.put(&Record::Counter(Counter {
                name,
                count,
                labels,
            }))?;
        }
        Ok(())
    }
}
