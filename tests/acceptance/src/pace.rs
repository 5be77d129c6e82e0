//! The duration of commands that promise one.

use std::time::Instant;

use crate::verdict::Verdicts;
use crate::{Result, run as tare};

/// Times the commands that promise to be quick.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    for (command, most) in [("noise", 20.0), ("quick", 60.0)] {
        let begun = Instant::now();
        tare(scratch.path(), command, command, &[])?;
        let what = format!("tare {command} without arguments, s");
        verdicts.at_most(&what, begun.elapsed().as_secs_f64(), most);
    }
    Ok(())
}
