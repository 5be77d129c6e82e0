//! The cells of `gap` with their gaps.

use tare_results::RunFolder;
use tare_results::model::Measurement;
use tare_stats::{Gap, Trace, Unkept};

use crate::{Result, measurements};

/// Is one spin of `gap`.
#[derive(Debug)]
pub struct Spin {
    /// Sums and calibration.
    pub measurement: Measurement,
    /// The gaps.
    pub trace: Trace,
}

impl Spin {
    /// Returns the cycles of an iteration, interruptions included.
    pub fn whole_iteration(&self) -> f64 {
        let batch = &self.measurement.batch;
        batch.wall_cycles() as f64 / batch.repetitions as f64
    }
}

/// Returns all spins of a run that has no other workload.
pub fn spins(folder: &RunFolder) -> Result<Vec<Spin>> {
    let measurements = measurements(folder);
    let mut spins = Vec::new();
    for (cell, measurement) in folder.plan().cells.iter().zip(measurements) {
        let gaps: Vec<Gap> = folder
            .samples(cell.id)?
            .delays
            .iter()
            .map(|delay| Gap {
                index: delay.index,
                start: delay.start_tsc,
                length: delay.cycles,
            })
            .collect();
        let batch = &measurement.batch;
        let listed: u64 = gaps.iter().map(|gap| gap.length).sum();
        let quiet_cycles = batch.wall_cycles() - listed - batch.unkept_cycles;
        let quiet = batch.repetitions - batch.delays_seen;
        let spin = tare_stats::Spin {
            iterations: batch.repetitions,
            wall_cycles: batch.wall_cycles(),
            typical_cycles: quiet_cycles as f64 / quiet as f64,
            unkept: Unkept {
                count: batch.delays_seen - batch.delays_kept,
                cycles: batch.unkept_cycles,
                longest_cycles: batch.unkept_longest_cycles,
            },
        };
        spins.push(Spin {
            trace: Trace::new(spin, gaps)?,
            measurement,
        });
    }
    Ok(spins)
}
