//! The cells of `gap` with their gaps.

use tare_results::RunFolder;
use tare_stats::{Gap, Trace, Unkept};

use crate::{Measurement, Result, measurements};

/// One spin of `gap`.
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
        let head = &self.measurement.head;
        head.length() as f64 / head.n as f64
    }
}

/// Returns all spins of a run that has no other workload.
pub fn spins(folder: &RunFolder) -> Result<Vec<Spin>> {
    let measurements = measurements(folder);
    let mut spins = Vec::new();
    for (cell, measurement) in folder.plan().cells.iter().zip(measurements) {
        let gaps: Vec<Gap> = folder
            .samples(cell.id)?
            .sets
            .iter()
            .flat_map(|set| &set.events)
            .map(|gap| Gap {
                index: gap.index,
                start: gap.at,
                length: gap.value,
            })
            .collect();
        let head = &measurement.head;
        let listed: u64 = gaps.iter().map(|gap| gap.length).sum();
        let quiet_cycles = head.length() - listed - head.unkept_sum;
        let quiet = head.n - head.seen;
        let spin = tare_stats::Spin {
            iterations: head.n,
            wall_cycles: head.length(),
            typical_cycles: quiet_cycles as f64 / quiet as f64,
            unkept: Unkept {
                count: head.seen - head.kept,
                cycles: head.unkept_sum,
                longest_cycles: head.unkept_max,
            },
        };
        spins.push(Spin {
            trace: Trace::new(spin, gaps)?,
            measurement,
        });
    }
    Ok(spins)
}
