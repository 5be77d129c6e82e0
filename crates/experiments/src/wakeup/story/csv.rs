//! `wakeup-phases.csv`: one row for each target, phase and run, with the columns of landolfi-2018
//! and ours.

use tare_figures::Run;
use tare_figures::rows::Figure;
use tare_pages::kit::study_csv::{Field, OfCell, study_csv};

use super::late;
use super::words::{Phase, cases};

/// The name of the file.
pub(super) const FILE: &str = "wakeup-phases.csv";

/// A phase of a cell.
struct Line<'a>(OfCell<'a>, Phase<'a>);

/// Returns the columns.
const fn fields<'a>() -> [Field<Line<'a>>; 26] {
    [
        ("target", |of| Some(of.0.plan().target.text.clone())),
        ("load", |of| Some(of.0.plan().load.to_string())),
        ("traced", |of| Some(of.0.plan().is_traced().to_string())),
        ("emulated", |of| Some(of.0.case.is_emulated().to_string())),
        ("run", |of| Some(of.0.plan().block.to_string())),
        ("phase", |of| Some(of.1.number.to_string())),
        ("phase_load", |of| Some(of.1.load.to_string())),
        ("max_us", |of| of.us("latency", Figure::Max)),
        ("mean_us", |of| of.us("latency", Figure::Mean)),
        ("sd_us", |of| of.us("latency", Figure::Sd)),
        ("min_us", |of| of.us("latency", Figure::Min)),
        ("p50_us", |of| of.us("latency", Figure::MEDIAN)),
        ("p99_us", |of| of.us("latency", Figure::P99)),
        ("p99_9_us", |of| of.us("latency", Figure::P99_9)),
        ("p99_99_us", |of| of.us("latency", Figure::P99_99)),
        ("response_mean_us", |of| of.us("response", Figure::Mean)),
        ("response_sd_us", |of| of.us("response", Figure::Sd)),
        ("response_p50_us", |of| of.us("response", Figure::MEDIAN)),
        ("response_p99_us", |of| of.us("response", Figure::P99)),
        ("response_p99_9_us", |of| of.us("response", Figure::P99_9)),
        ("response_p99_99_us", |of| of.us("response", Figure::P99_99)),
        ("woken", |of| of.total("wake-ups")),
        ("missed", |of| of.total("missed")),
        ("between_woken", |of| of.total("between")),
        ("between_missed", |of| of.total("missed between")),
        ("absent", Line::absent),
    ]
}

/// Returns the file; `None` if no wake-ups were measured.
pub(super) fn file(run: &Run) -> Option<String> {
    let cases = cases(run);
    let lines = OfCell::all(&cases)
        .flat_map(|of| Phase::all(of.case.plan).map(move |phase| Line(of, phase)));
    study_csv(&fields(), lines)
}

impl Line<'_> {
    fn value(&self, measure: &str, figure: Figure) -> Option<f64> {
        self.1.value(self.0.case, self.0.cell, measure, figure)
    }

    fn us(&self, measure: &str, figure: Figure) -> Option<String> {
        Some(format!("{:.3}", self.value(measure, figure)? / 1e3))
    }

    fn total(&self, measure: &str) -> Option<String> {
        Some(
            self.value(measure, Figure::Total)
                .unwrap_or(0.0)
                .to_string(),
        )
    }

    /// Returns why the phase has no wake-ups, if it has none.
    fn absent(&self) -> Option<String> {
        self.value("absent", Figure::Total)?;
        let (cell, plan) = (self.0.cell, self.0.case.plan);
        Some(late::absent(plan, cell.load.as_ref(), self.1.number))
    }
}
