//! Writes everything that is derived from a run into its folder.

use std::path::PathBuf;

use tare_results::{RunFolder, columns};

use crate::analysis::Analysis;
use crate::error::ReportError;
use crate::rows::flat::{self, Origin};
use crate::{html, json};

/// Names the files that were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The page for people.
    pub report: PathBuf,
    /// The figures for programs.
    pub summary: PathBuf,
    /// The tables with the columns of the studies.
    pub csv: Vec<PathBuf>,
}

/// Writes `report.html`, `summary.json`, `figures.parquet` and the CSV files, replacing older ones.
///
/// # Errors
///
/// [`ReportError::Results`] if a file cannot be written; [`ReportError::Json`] would be a defect.
pub fn write_all(run: &RunFolder, analysis: &Analysis) -> Result<Written, ReportError> {
    let write = |name: &str, content: &str| -> Result<PathBuf, ReportError> {
        run.write_derived(name, content.as_bytes())?;
        Ok(run.path().join(name))
    };
    let run_name = run.path().file_name().unwrap_or(run.path().as_os_str());
    let origin = Origin {
        run: run_name.to_string_lossy().into_owned(),
        ..Origin::of(&analysis.run().plan)
    };
    let lines = analysis.rows().flat(&origin);
    let table = columns::encode(&flat::columns(&lines)).map_err(ReportError::Table)?;
    run.write_derived("figures.parquet", &table)?;
    write("figures.csv", &flat::csv(&lines))?;
    let summary = write("summary.json", &json::render(analysis.summary())?)?;
    let files = analysis
        .stories()
        .flat_map(|story| story.csv(analysis.run()));
    let csv = files
        .map(|(name, text)| write(&name, &text))
        .collect::<Result<_, _>>()?;
    let report = write("report.html", &html::render(analysis))?;
    Ok(Written {
        report,
        summary,
        csv,
    })
}
