//! Writes everything that is derived from a run into its folder.

use std::path::{Path, PathBuf};

use tare_results::{RunFolder, columns};

use crate::page;
use crate::report::Report;
use tare_figures::ReportError;
use tare_figures::json;
use tare_figures::rows::flat::{self, Origin};

/// The files that were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The page for people.
    pub report: PathBuf,
    /// The figures for programs.
    pub summary: PathBuf,
    /// The tables with the columns of the studies.
    pub csv: Vec<PathBuf>,
}

/// Writes `report.html`, `summary.json`, `figures.parquet` and the CSV files, replacing older ones:
/// into the folder of the run, or into another one, which must be new or empty.
///
/// # Errors
///
/// [`ReportError::Results`] if a file cannot be written; [`ReportError::Json`] would be a defect.
pub fn write_all(
    run: &RunFolder,
    elsewhere: Option<&Path>,
    report: &Report,
) -> Result<Written, ReportError> {
    let folder = run.derived(elsewhere)?;
    let write = |name: &str, content: &str| folder.write(name, content.as_bytes());
    let run_name = run.path().file_name().unwrap_or(run.path().as_os_str());
    let origin = Origin {
        run: run_name.to_string_lossy().into_owned(),
        ..Origin::of(&report.run().plan)
    };
    let lines = report.rows().flat(&origin);
    let table = columns::encode(&flat::columns(&lines)).map_err(ReportError::Table)?;
    folder.write("figures.parquet", &table)?;
    write("figures.csv", &flat::csv(&lines))?;
    let summary = write("summary.json", &json::render(report.summary())?)?;
    let files = report.stories().flat_map(|story| story.csv(report.run()));
    let csv = files
        .map(|(name, text)| write(&name, &text))
        .collect::<Result<_, _>>()?;
    let report = write("report.html", &page::render(report))?;
    Ok(Written {
        report,
        summary,
        csv,
    })
}
