//! What sees the system while a batch runs, and explains its delays.

use tare_workloads::gap::Gap;

use crate::output::Output;
use crate::platform::{Platform, WriteError};

/// Sees what the system does on the batch's CPU. `()` sees nothing.
pub trait Witness {
    /// Begins, before the warm-up.
    fn begin(&mut self) {}

    /// Returns whether somebody asked the batch to end early. Only asked in a spin of a given time.
    fn is_asked_to_end(&mut self) -> bool {
        false
    }

    /// Ends, right after the batch.
    fn end(&mut self) {}

    /// Writes what it saw in the delays of a set, in the order of time. They have cycles without a
    /// delay in them, as many as given.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if a record can't be written.
    fn tell(
        &mut self,
        _set: u32,
        _delays: (u64, &[Gap]),
        _output: &mut Output<'_, impl Platform>,
    ) -> Result<(), WriteError> {
        Ok(())
    }
}

impl Witness for () {}
