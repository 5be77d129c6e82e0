//! How long the commands take that promise a time.

use std::time::Instant;

use crate::verdict::Verdicts;
use crate::{Result, tare};

/// Times the commands that promise to be quick.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    for (command, most) in [("noise", 20.0), ("quick", 60.0)] {
        let path = scratch.path().join(command);
        let path = path
            .to_str()
            .ok_or("the scratch folder's name is not UTF-8")?;
        let begun = Instant::now();
        tare(&[command, "--output", path])?;
        let what = format!("tare {command} without arguments, s");
        verdicts.at_most(&what, begun.elapsed().as_secs_f64(), most);
    }
    Ok(())
}
