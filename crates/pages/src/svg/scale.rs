//! Scales: from figures to places on the page.

use tare_stats::{log_ticks, nice_ticks};

/// Maps a range of figures to a range of pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    log: bool,
    from: (f64, f64),
    to: (f64, f64),
    /// Where zero lies on a logarithmic scale that has a place for it.
    zero_at: Option<f64>,
    /// Height of a row, if figures are placed only on rows.
    rows: Option<f64>,
}

/// The ratio of the ends of a range from which it is easier to read on a logarithmic scale.
const RATIO: f64 = 12.0;

impl Scale {
    /// Maps evenly.
    pub fn linear(from: (f64, f64), to: (f64, f64)) -> Self {
        // A range without width is widened, so that its one figure lies in the middle.
        let from = if from.1 > from.0 {
            from
        } else {
            (from.0 - 0.5, from.0 + 0.5)
        };
        Self {
            log: false,
            from,
            to,
            zero_at: None,
            rows: None,
        }
    }

    /// Maps equal ratios to equal distances; the figures must be positive.
    pub fn log(from: (f64, f64), to: (f64, f64)) -> Self {
        let low = from.0.max(f64::MIN_POSITIVE);
        let high = if from.1 > low { from.1 } else { low * 2.0 };
        Self {
            log: true,
            from: (low, high),
            to,
            zero_at: None,
            rows: None,
        }
    }

    /// Maps logarithmically if the range is wide, else evenly, with some room at both ends.
    pub fn fitting(low: f64, high: f64, to: (f64, f64)) -> Self {
        if low > 0.0 && high / low > RATIO {
            return Self::log((low / 1.15, high * 1.5), to);
        }
        let room = ((high - low) * 0.06).max(high.abs() * 0.005);
        Self::linear(((low - room).max(0.0), high + 2.0 * room), to)
    }

    /// Makes a scale with a place for zero if one of the figures is, logarithmic if they are far
    /// apart.
    #[must_use]
    pub fn with_a_place_for_zero(figures: &[f64], to: (f64, f64)) -> Self {
        const ROOM: f64 = 18.0;
        let positive = || figures.iter().copied().filter(|v| *v > 0.0);
        let high = positive().fold(0.0, f64::max);
        let low = positive().fold(f64::INFINITY, f64::min);
        if high > 0.0 && high / low > 12.0 {
            let scale = Self::log((low / 1.3, high * 1.4), to);
            return match figures.iter().any(|v| *v <= 0.0) {
                true => scale.with_zero(ROOM),
                false => scale,
            };
        }
        Self::linear((0.0, if high > 0.0 { high * 1.15 } else { 1.0 }), to)
    }

    /// Gives zero a place at the start of a logarithmic scale, `room` pixels before its least
    /// figure.
    pub(crate) fn with_zero(self, room: f64) -> Self {
        if !self.log {
            return self;
        }
        let direction = (self.to.1 - self.to.0).signum();
        Self {
            zero_at: Some(self.to.0),
            to: (self.to.0 + direction * room, self.to.1),
            ..self
        }
    }

    /// Places figures only on rows of this many pixels, so that what is drawn there takes fewer
    /// bytes.
    pub fn in_rows(self, rows: f64) -> Self {
        Self {
            rows: Some(rows),
            ..self
        }
    }

    /// Returns the place of a figure, at the edge for figures outside of the range.
    pub fn at(&self, value: f64) -> f64 {
        if let Some(zero) = self.zero_at.filter(|_| value <= 0.0) {
            return zero;
        }
        let fraction = if self.log {
            let (low, high) = (self.from.0.ln(), self.from.1.ln());
            (value.max(f64::MIN_POSITIVE).ln() - low) / (high - low)
        } else {
            (value - self.from.0) / (self.from.1 - self.from.0)
        };
        let at = self.to.0 + fraction.clamp(0.0, 1.0) * (self.to.1 - self.to.0);
        self.rows.map_or(at, |rows| (at / rows).round() * rows)
    }

    /// Returns the figure at a fraction of the way from the least to the greatest.
    pub fn value(&self, fraction: f64) -> f64 {
        let (low, high) = self.from;
        match self.log {
            true => low * (high / low).powf(fraction),
            false => low + fraction * (high - low),
        }
    }

    /// Returns the range of figures.
    pub fn range(&self) -> (f64, f64) {
        self.from
    }

    /// Returns about `target` round figures within the range, in another unit that is `unit` times
    /// as large.
    pub fn ticks_in(&self, unit: f64, target: usize) -> Vec<f64> {
        let (low, high) = (self.from.0 / unit, self.from.1 / unit);
        let ticks = if self.log {
            log_ticks(low, high, target)
        } else {
            nice_ticks(low, high, target)
        };
        let zero = self.zero_at.map(|_| 0.0);
        zero.into_iter()
            .chain(ticks)
            .map(|tick| tick * unit)
            .collect()
    }

    /// Returns about `target` round figures within the range.
    pub fn ticks(&self, target: usize) -> Vec<f64> {
        self.ticks_in(1.0, target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_the_range_lie_at_the_ends_of_the_axis() {
        for scale in [
            Scale::linear((10.0, 1_000.0), (200.0, 0.0)),
            Scale::log((10.0, 1_000.0), (200.0, 0.0)),
        ] {
            assert_eq!(scale.at(10.0), 200.0);
            assert_eq!(scale.at(1_000.0), 0.0);
            assert_eq!(scale.at(1e9), 0.0);
            assert_eq!(scale.at(0.0), 200.0);
        }
        let log = Scale::log((1.0, 100.0), (0.0, 100.0));
        assert!((log.at(10.0) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn wide_ranges_are_logarithmic_and_all_figures_are_inside() {
        let wide = Scale::fitting(900.0, 500_000.0, (0.0, 1.0));
        assert!(wide.log);
        let narrow = Scale::fitting(900.0, 960.0, (0.0, 1.0));
        assert!(!narrow.log);
        for (scale, low, high) in [(wide, 900.0, 500_000.0), (narrow, 900.0, 960.0)] {
            assert!(scale.range().0 < low && scale.range().1 > high);
        }
        assert!(!Scale::fitting(0.0, 500.0, (0.0, 1.0)).log);
        assert!(Scale::fitting(5.0, 5.0, (0.0, 1.0)).at(5.0).is_finite());
        assert!(Scale::fitting(0.0, 0.0, (0.0, 1.0)).at(0.0).is_finite());
    }

    #[test]
    fn zero_has_its_own_place_on_a_logarithmic_scale() {
        let scale = Scale::log((1.0, 100.0), (200.0, 0.0)).with_zero(20.0);
        assert_eq!(scale.at(0.0), 200.0);
        assert_eq!(scale.at(1.0), 180.0);
        assert_eq!(scale.ticks(3)[..2], [0.0, 1.0]);
    }
}
