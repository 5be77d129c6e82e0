//! What rows can't hold of a run's noise: what its pictures are drawn from.

use tare_figures::rows::{CellData, counts};
use tare_pages::kit::track::{Track, leading};
use tare_results::model::{Labels, Plan};
use tare_stats::{Counts, StatsError};

use super::measures::Spin;
use super::page::Moment;
use super::panels::PerCpu;
use super::quanta::InQuanta;

/// The data of the pictures of one case.
#[derive(Clone, Debug, Default)]
pub(super) struct Pictures {
    /// Durations of all repetitions; of a spin the lengths of all listed gaps.
    pub counts: Counts,
    /// Times from gap to gap, each rounded down by less than 1/128 (8 leading bits).
    pub between: Counts,
    /// Raw samples of the first run, one after the other.
    pub window: Vec<u64>,
    /// The runs of a spin in quanta of time.
    pub quanta: Vec<InQuanta>,
    /// Every run over time, in running order.
    pub runs: Vec<Track>,
    /// The cells of a long run, in running order.
    pub moments: Vec<Moment>,
}

impl Pictures {
    /// Adds a cell, or its part, to those of its case and CPU.
    pub fn take(cases: &mut PerCpu<Self>, run: &Plan, data: &CellData<'_>) -> Result<(), String> {
        let plan = data.plan();
        let spin = Spin::of(data)?;
        let measure = if spin.is_some() { "gap" } else { "duration" };
        let set = data.sets(measure).next();
        let set = set.ok_or("its record has no samples of noise")?;
        let pictures = cases.entry(plan).entry(data.cpu).or_default();
        let message = |error: StatsError| error.to_string();
        let own = counts(set.1)?;
        pictures.counts = pictures.counts.merge(&own).map_err(message)?;
        if let Some(spin) = spin.as_ref().filter(|spin| !spin.has_list()) {
            if let Some(ns) = data.ns(set.0) {
                let seconds = spin.head.length() as f64 * ns / 1e9;
                let began = data.cell.started_at.as_second();
                pictures.moments.push(Moment::new(began, seconds, &own, ns));
            }
        } else if let Some(spin) = &spin {
            let times = spin.trace(usize::MAX)?.inter_arrivals().into_iter();
            let times = Counts::from_samples(times.map(|time| leading(time, 8)).collect());
            pictures.quanta.extend(InQuanta::of(data, spin)?);
            pictures.between = pictures.between.merge(&times).map_err(message)?;
        }
        if pictures.runs.is_empty() {
            pictures.window = set.1.raw.iter().map(|sample| sample.value).collect();
        }
        let threshold = data.record.value("threshold", &Labels::default());
        let mean = own.mean().unwrap_or_default() as u64;
        let limit = mean.saturating_add(threshold.unwrap_or_default() as u64);
        let limit = spin.is_none().then_some(limit);
        let track = Track::of_events(run, plan, set, limit, data.hz());
        pictures.runs.push(track);
        Ok(())
    }
}
