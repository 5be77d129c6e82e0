//! The arithmetic of clocks: rates from pairs of readings, and settings from rates.

/// The frequency of the PIT, in Hz: a third of the colour carrier of NTSC, 315/88 MHz.
pub const PIT_HZ: f64 = 1_193_181.666;

/// One reading of a slow counter, between two of the TSC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// TSC before.
    pub before: u64,
    /// TSC after.
    pub after: u64,
    /// Value of the slow counter.
    pub count: u64,
}

/// A frequency with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// The frequency, in Hz.
    pub hz: f64,
    /// Half the width of the interval in which it lies, in parts per million.
    pub uncertainty_ppm: f64,
}

/// Returns the TSC's rate from two readings of a counter that runs up with `count_hz`.
///
/// Each reading took place somewhere between its two time stamps, and each count stands for up to
/// one whole step. None if the counter stood still.
pub fn between(start: Reading, end: Reading, count_hz: f64) -> Option<Rate> {
    let steps = end
        .count
        .checked_sub(start.count)
        .filter(|steps| *steps > 0)?;
    let least = end.before.checked_sub(start.after)? as f64;
    let most = end.after.checked_sub(start.before)? as f64;
    let hz = (least + most) / 2.0 * count_hz / steps as f64;
    let stamps = (most - least) / (most + least);
    let step = 1.0 / steps as f64;
    (hz > 0.0).then_some(Rate {
        hz,
        uncertainty_ppm: (stamps + step) * 1e6,
    })
}

/// Returns the TSC's frequency in Hz by the factor and shift of KVM's and Xen's paravirtual clock,
/// which convert ticks to ns: `ns = (ticks << shift) * factor >> 32`.
pub fn paravirtual_hz(factor: u32, shift: i8) -> Option<f64> {
    if factor == 0 || !(-31..=31).contains(&shift) {
        return None;
    }
    let scale = (1_u64 << shift.unsigned_abs()) as f64;
    let hz = 1e9 * 4_294_967_296.0 / f64::from(factor);
    Some(if shift < 0 { hz * scale } else { hz / scale })
}

/// Returns the number of steps of a counter with `count_hz` in one period of `hz`, rounded; None if
/// it is 0 or exceeds 32 bits.
pub fn steps_per_period(count_hz: f64, hz: u32) -> Option<u32> {
    let steps = count_hz / f64::from(hz) + 0.5;
    (steps >= 1.0 && steps < f64::from(u32::MAX)).then_some(steps as u32)
}

/// A conversion from counts of one clock to those of another, by a factor with 32 fractional bits.
///
/// The factor is rounded, which makes the result wrong by less than 1 part in 10⁹ as long as the
/// second clock is not eight times slower than the first: far less than the uncertainty of any
/// frequency here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    factor: u64,
}

impl Scale {
    /// Returns the conversion from a clock to another. None if they differ by more than a factor of
    /// a million.
    pub fn new(from_hz: f64, to_hz: f64) -> Option<Self> {
        const ONE: f64 = 4_294_967_296.0;
        let factor = to_hz / from_hz;
        (1e-6..=1e6).contains(&factor).then_some(Self {
            factor: (factor * ONE + 0.5) as u64,
        })
    }

    /// Converts a count, rounding down.
    pub fn convert(self, count: u64) -> u64 {
        let product = u128::from(count) * u128::from(self.factor);
        u64::try_from(product >> 32).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(before: u64, after: u64, count: u64) -> Reading {
        Reading {
            before,
            after,
            count,
        }
    }

    #[test]
    fn the_rate_lies_within_its_uncertainty() {
        // 1,000 steps of 1 MHz are 1 ms; readings take 200 ticks; the actual frequency is 2.5 GHz.
        let rate = between(
            reading(1_000, 1_200, 5),
            reading(2_501_050, 2_501_250, 1_005),
            1e6,
        )
        .unwrap();
        assert!((rate.hz / 2.5e9 - 1.0).abs() * 1e6 <= rate.uncertainty_ppm);
        assert!((1_000.0..1_200.0).contains(&rate.uncertainty_ppm));
    }

    #[test]
    fn a_counter_that_stands_still_or_goes_back_gives_no_rate() {
        let at = |count| reading(0, 10, count);
        let then = |count| reading(1_000, 1_010, count);
        assert_eq!(between(at(5), then(5), 1e6), None);
        assert_eq!(between(at(5), then(4), 1e6), None);
        assert_eq!(between(then(1), at(2), 1e6), None);
    }

    #[test]
    fn paravirtual_factors_give_the_frequency() {
        // 1 GHz: each tick is a ns, so the factor is 2^32 / 2 with a shift of 1.
        assert_eq!(paravirtual_hz(1 << 31, 1), Some(1e9));
        let hz = paravirtual_hz(3_303_820_997, -1).unwrap();
        assert!((hz / 2.6e9 - 1.0).abs() < 1e-9);
        assert_eq!(paravirtual_hz(0, 0), None);
        assert_eq!(paravirtual_hz(1, -128), None);
    }

    #[test]
    fn a_day_is_converted_to_within_a_billionth() {
        let day_ns = 86_400_000_000_000;
        for hz in [1e9, 2.499_998e9, 3.7e9, 8e9] {
            let ticks = Scale::new(1e9, hz).unwrap().convert(day_ns);
            assert!((ticks as f64 / (86_400.0 * hz) - 1.0).abs() < 1e-9, "{hz}");
            let back = Scale::new(hz, 1e9).unwrap().convert(ticks);
            assert!(back.abs_diff(day_ns) < 200_000, "{hz}");
        }
    }

    #[test]
    fn conversions_cut_off_and_saturate() {
        let scale = Scale::new(2.5e9, 1e9).unwrap();
        assert_eq!(
            [0, 2, 3, 251].map(|ticks| scale.convert(ticks)),
            [0, 0, 1, 100]
        );
        assert_eq!(Scale::new(1.0, 1e6).unwrap().convert(u64::MAX), u64::MAX);
        for (from, to) in [(1e9, 1.0), (0.0, 1e9), (1e9, f64::NAN), (1e9, -1e9)] {
            assert_eq!(Scale::new(from, to), None);
        }
    }

    #[test]
    fn periods_are_rounded_and_bounded() {
        assert_eq!(steps_per_period(1e9, 250), Some(4_000_000));
        assert_eq!(steps_per_period(1e9, 3), Some(333_333_333));
        assert_eq!(steps_per_period(1e9, u32::MAX), None);
        assert_eq!(steps_per_period(5e9, 1), None);
    }
}
