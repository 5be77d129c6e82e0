//! Where runs are kept, and how one is shown.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use tare_experiments::catalogue;
use tare_figures::gates::Gate;
use tare_pages::{Report, analyse, terminal as tables, write_all};
use tare_results::{ResultsError, RunFolder};

use crate::cli::measure::ResultOptions;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// The default folder of runs, below the current one.
const RUNS: &str = "tare-runs";

/// Opens a run; the newest one if none is named.
///
/// # Errors
///
/// Returns [`CommandError::NoRun`] if there is none.
pub fn open(path: Option<&Path>) -> Result<RunFolder, CommandError> {
    let newest = || RunFolder::newest(Path::new(RUNS));
    let path = path.map(Path::to_owned).or_else(newest);
    let folder = RUNS.into();
    Ok(RunFolder::open(
        &path.ok_or(CommandError::NoRun { folder })?,
    )?)
}

/// Names a new run folder by time and experiment.
///
/// # Errors
///
/// Returns [`ResultsError::Clock`] if the time is none.
pub fn new_path(name: &str) -> Result<PathBuf, ResultsError> {
    let now = tare_results::now()?.to_zoned(TimeZone::UTC);
    let time = now.strftime("%Y-%m-%dT%H-%M-%SZ").to_string();
    let base = PathBuf::from(RUNS);
    // Two runs begun in the same second must not meet.
    let path = (1..)
        .map(|n: u32| match n {
            1 => base.join(format!("{time}-{name}")),
            n => base.join(format!("{time}-{name}-{n}")),
        })
        .find(|path| !path.exists())
        .expect("there are more numbers than folders");
    Ok(path)
}

/// What became of presenting a run.
pub struct Presented {
    /// Its figures.
    pub analysis: Report,
    /// Whether the derived files were written. If not, an error was shown.
    pub is_written: bool,
}

/// Analyses a run, writes its derived files, into its folder if no other is named, and prints the
/// result.
pub fn present(
    folder: &RunFolder,
    elsewhere: Option<&Path>,
    options: &ResultOptions,
    terminal: &Terminal,
) -> Result<Presented, CommandError> {
    let analysis = analyse(folder, catalogue())?.with_gates(&options.fail_if);
    let written = write_all(folder, elsewhere, &analysis);
    let ResultOptions { json, quiet, .. } = *options;
    match (json, quiet) {
        (true, _) => terminal.print_json(&analysis.summary())?,
        (false, true) => terminal.print_text(&tables::verdict(&analysis, terminal.width()))?,
        (false, false) => terminal.print_text(&tables::text(&analysis, terminal.width()))?,
    }
    // A run on a read-only medium can still be looked at.
    let is_written = written.is_ok();
    match written {
        Ok(written) if !json && !quiet => {
            terminal.print_sentence(&format!("report: {}", written.report.display()))?;
        }
        Ok(_) => {}
        Err(error) => terminal.error(&error.to_string()),
    }
    Ok(Presented {
        analysis,
        is_written,
    })
}

/// Judges a run by gates, and says of each what decides. Returns the exit code that they mean.
///
/// # Errors
///
/// Returns [`CommandError::Gate`] if a gate is of no figure of the run.
pub fn judge(
    gates: &[Gate],
    analysis: &Report,
    json: bool,
    terminal: &Terminal,
) -> Result<u8, CommandError> {
    if analysis.run().cells.is_empty() {
        // The report has said why.
        for gate in gates {
            terminal.warn(&format!(
                "Gate not passed: '{gate}' is inconclusive: nothing was measured."
            ));
        }
        return Ok(exit::FAILED);
    }
    let mut code = exit::DONE;
    for gate in gates {
        let judgement = gate.judge(analysis, catalogue())?;
        if judgement.failed {
            code = exit::THRESHOLD;
        }
        // Standard output is one JSON document then.
        match json {
            true => terminal.note(&judgement.sentence),
            false => terminal.print_sentence(&judgement.sentence)?,
        }
    }
    Ok(code)
}
