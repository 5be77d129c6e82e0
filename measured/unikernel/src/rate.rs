//! The arithmetic of clocks: rates from pairs of readings, and settings from rates.

/// Is the frequency of the PIT, in Hz: a third of the colour carrier of NTSC, 315/88 MHz.
pub const PIT_HZ: f64 = 1_193_181.666;

/// Is one reading of a slow counter, between two of the TSC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// TSC before.
    pub before: u64,
    /// TSC behind.
    pub after: u64,
    /// What the slow counter read.
    pub count: u64,
}

/// Is a frequency with what is not known of it.
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
#[must_use]
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
/// which turn ticks into ns: `ns = (ticks << shift) * factor >> 32`.
#[must_use]
pub fn paravirtual_hz(factor: u32, shift: i8) -> Option<f64> {
    if factor == 0 || !(-31..=31).contains(&shift) {
        return None;
    }
    let scale = (1_u64 << shift.unsigned_abs()) as f64;
    let hz = 1e9 * 4_294_967_296.0 / f64::from(factor);
    Some(if shift < 0 { hz * scale } else { hz / scale })
}

/// Returns how many steps of a counter with `count_hz` make one period of `hz`, rounded; None if
/// that is none, or more than 32 bits hold.
#[must_use]
pub fn steps_per_period(count_hz: f64, hz: u32) -> Option<u32> {
    let steps = count_hz / f64::from(hz) + 0.5;
    (steps >= 1.0 && steps < f64::from(u32::MAX)).then_some(steps as u32)
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
        // 1,000 steps of 1 MHz are 1 ms; readings take 200 ticks; the truth is 2.5 GHz.
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
    fn periods_are_rounded_and_bounded() {
        assert_eq!(steps_per_period(1e9, 250), Some(4_000_000));
        assert_eq!(steps_per_period(1e9, 3), Some(333_333_333));
        assert_eq!(steps_per_period(1e9, u32::MAX), None);
        assert_eq!(steps_per_period(5e9, 1), None);
    }
}
