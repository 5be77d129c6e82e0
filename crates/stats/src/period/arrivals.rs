//! The gaps as points and stretches on an axis that does not wrap.

use crate::trace::Gap;

/// Fewer gaps than this cannot reach the confidence.
const MIN_GAPS: usize = 8;

/// Starts and ends of the gaps in cycles from the first one's start.
///
/// Exact up to 2^53 cycles, which is a month.
pub(super) struct Arrivals {
    pub starts: Vec<f64>,
    pub ends: Vec<f64>,
    /// From the first start to the last.
    pub span: f64,
    /// The part of it that is outside of gaps, where a gap can start.
    pub visible: f64,
}

impl Arrivals {
    /// Takes gaps in the order in which they happened; `None` if they are too few or simultaneous.
    pub fn of(gaps: &[Gap]) -> Option<Self> {
        let first = gaps.first()?.start;
        let starts: Vec<f64> = gaps
            .iter()
            .map(|gap| gap.start.wrapping_sub(first) as f64)
            .collect();
        let ends = starts
            .iter()
            .zip(gaps)
            .map(|(start, gap)| start + gap.length as f64)
            .collect();
        let span = *starts.last()?;
        if gaps.len() < MIN_GAPS || span <= 0.0 {
            return None;
        }
        let hidden: f64 = gaps[..gaps.len() - 1]
            .iter()
            .map(|gap| gap.length as f64)
            .sum();
        // A tenth keeps the work bounded where nearly all time is lost.
        let visible = (span - hidden).max(0.1 * span);
        Some(Self {
            starts,
            ends,
            span,
            visible,
        })
    }

    /// Returns the number of gaps.
    pub fn count(&self) -> f64 {
        self.starts.len() as f64
    }
}
