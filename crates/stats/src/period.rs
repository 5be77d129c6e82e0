//! Finds a clock among interruptions: the kernel's tick, a hypervisor's timer, a periodic daemon.
//!
//! The question is whether a substantial share of the gaps starts on one regular grid
//! φ + k·P, when the others fall anywhere, some ticks are missing, and each comes late by a few
//! microseconds. A wrong period sends its reader after a timer that does not exist, so a
//! regularity is reported only if chance is excluded; otherwise there is none.
//!
//! # Method
//!
//! 1. **Candidates.** At most one gap per tick counts, at least [`MIN_SHARE`] of the gaps must be
//!    on the grid, and at least [`MIN_PRESENT`] of its ticks must be present. That confines P to
//!    between one half and five times the mean distance, whatever the data. Differences to the next
//!    few gaps are counted in logarithmic bins over that range and a little more; every peak is a
//!    candidate.
//! 2. **Refinement.** Gaps are compared with those about P, 2P, 4P, 8P … later. Each step measures
//!    P twice as sharply, from all gaps at once, and a period that does not hold over longer and
//!    longer distances dies here. Slow drift of one clock against the other (NTP) is inside the
//!    tolerance of P/16.
//! 3. **Grid.** All starts are folded by P; the phase with the most ticks present is the grid's,
//!    least squares then fit φ and P to them, in windows from P/16 down to P/1024, and the fit with
//!    the strongest evidence is taken. At last the window is opened as far as late ticks need it.
//! 4. **Evidence.** Arrivals that know nothing of the grid hit a tick's window of width 2w with
//!    probability at most h = n·2w/T, bursts less. H hits of M ticks then have at most the
//!    probability exp(−M·KL(H/M ‖ h)) (Chernoff). Multiplied by the number of distinct grids that
//!    could have been tried, it must stay below 10^−9. T and M leave out what lies inside of gaps,
//!    where nothing can be seen: half of the time, for a thread that shares its CPU.
//! 5. **The fundamental.** The candidate with the strongest evidence is compared with its own
//!    multiples and fractions until none is stronger: 2P explains only half of the ticks, and P/2
//!    has half of its arrivals missing.
//! 6. **A clock does not stop or wander.** Only then are share and presence required, presence also
//!    in each quarter of the trace, and that a window below P/16 was best: hits that spread evenly
//!    are not a clock's. If the strongest fails, nothing weaker takes its place: it would be a
//!    multiple of what is there, or a part of it.
//!
//! # When the method lies
//!
//! Of several clocks the strongest is reported, the others not at all. A clock of which fewer than
//! half the ticks exceed the recording threshold stays unseen. A timer that is armed anew after
//! each interruption wanders, and is seen only if it stays within P/16 of a grid over the trace.
//! With fewer than about 20 ticks among as many other gaps a clock is often not found. Gaps that
//! really are regular for the whole of a short trace are reported, whatever made them so.

mod arrivals;
mod candidates;
mod grid;

use crate::trace::Gap;

use arrivals::Arrivals;
use candidates::{candidates, refine};
use grid::Grid;

/// The least share of the gaps that must be on the grid.
///
/// A tick of 250 Hz is a quarter of the gaps where a hypervisor adds three times as many, and is
/// still the first thing to know about them.
pub const MIN_SHARE: f64 = 0.2;

/// The least share of the grid's ticks that must be present.
pub const MIN_PRESENT: f64 = 0.5;

/// A clock found among the gaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    /// Time from tick to tick, in cycles.
    pub period_cycles: f64,
    /// Largest distance from the grid at which a gap was counted as on it, in cycles.
    pub tolerance_cycles: f64,
    /// Number of gaps on the grid, at most one per tick.
    pub on_grid: u64,
    /// Their share of all gaps, as a fraction of 1.
    pub share: f64,
    /// Their share of the ticks between the first and the last gap that do not lie inside of
    /// another gap, as a fraction of 1.
    pub present: f64,
    /// Their mean length, in cycles.
    pub mean_length_cycles: f64,
}

/// Two gaps may differ by P/16 and still be one period apart: a tick of 100 µs late by 6 µs.
const TOLERANCE: f64 = 1.0 / 16.0;

/// Finds the strongest clock among gaps in the order in which they happened.
///
/// O(n log n) for n gaps.
pub(crate) fn detect(gaps: &[Gap]) -> Option<Period> {
    let arrivals = Arrivals::of(gaps)?;
    let best = candidates(&arrivals)
        .into_iter()
        .filter_map(|candidate| refine(&arrivals, candidate))
        .filter_map(|period| Grid::fit(&arrivals, period))
        .max_by(|a, b| a.evidence.total_cmp(&b.evidence))?
        .fundamental(&arrivals);
    // Hits that fill even the widest window evenly are not a clock's.
    if best.halvings == 0 || best.evidence <= 0.0 {
        return None;
    }
    let best = best.widened(&arrivals);
    if !best.is_clock(&arrivals) {
        return None;
    }
    let ticks = best.ticks(&arrivals);
    let lengths: u128 = ticks
        .iter()
        .map(|tick| u128::from(gaps[tick.gap].length))
        .sum();
    Some(Period {
        period_cycles: best.period,
        tolerance_cycles: best.tolerance,
        on_grid: ticks.len() as u64,
        share: best.share,
        present: best.present,
        mean_length_cycles: lengths as f64 / ticks.len() as f64,
    })
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    const MILLISECOND: f64 = 2_600_000.0;
    const MICROSECOND: f64 = 2_600.0;
    const TICK: f64 = 4.0 * MILLISECOND;

    /// Turns times in cycles into gaps of 5,000 cycles.
    fn gaps(mut times: Vec<f64>) -> Vec<Gap> {
        times.sort_unstable_by(f64::total_cmp);
        // A counter that wraps in the middle of every trace.
        let first = u64::MAX - (times.last().copied().unwrap_or(0.0) / 2.0) as u64;
        times
            .iter()
            .zip(0..)
            .map(|(&time, index)| Gap {
                index,
                start: first.wrapping_add(time as u64),
                length: 5_000,
            })
            .collect()
    }

    fn find(times: Vec<f64>) -> Option<Period> {
        detect(&gaps(times))
    }

    /// A point on the exponential distribution.
    fn exponential(random: &mut Rng, mean: f64) -> f64 {
        -mean * (1.0 - random.f64()).ln()
    }

    fn poisson(random: &mut Rng, mean: f64, end: f64) -> Vec<f64> {
        let mut times = Vec::new();
        let mut now = exponential(random, mean);
        while now < end {
            times.push(now);
            now += exponential(random, mean);
        }
        times
    }

    fn ticks(random: &mut Rng, count: u32, missing: f64, jitter: f64) -> Vec<f64> {
        (0..count)
            .filter_map(|k| {
                let time = 1e6 + f64::from(k) * TICK + exponential(random, jitter);
                (random.f64() >= missing).then_some(time)
            })
            .collect()
    }

    fn assert_tick(found: Option<Period>, what: &str) -> Period {
        let period = found.unwrap_or_else(|| panic!("no period: {what}"));
        let error = period.period_cycles / TICK - 1.0;
        assert!(error.abs() < 1e-4, "{what}: {period:?}");
        period
    }

    #[test]
    fn an_exact_tick_is_found_exactly() {
        for count in [16_u32, 100, 5_000] {
            let times = (0..count).map(|k| f64::from(k) * TICK).collect();
            let period = find(times).unwrap();
            assert!(
                (period.period_cycles / TICK - 1.0).abs() < 1e-9,
                "{period:?}"
            );
            assert_eq!((period.share, period.present), (1.0, 1.0));
            assert_eq!(period.on_grid, u64::from(count));
            assert_eq!(period.mean_length_cycles, 5_000.0);
        }
    }

    #[test]
    fn a_tick_is_found_among_noise_late_and_with_ticks_missing() {
        for seed in 0..20 {
            let mut random = Rng::with_seed(seed);
            let mut times = ticks(&mut random, 2_500, 0.3, 3.0 * MICROSECOND);
            let on_grid = times.len() as f64;
            let end = 2_500.0 * TICK;
            // Half of the gaps are anything.
            times.extend(poisson(&mut random, end / on_grid, end));
            let share = on_grid / times.len() as f64;
            let period = assert_tick(find(times), "noise");
            assert!((period.share - share).abs() < 0.05, "{share} {period:?}");
            assert!((period.present - 0.7).abs() < 0.05, "{period:?}");
            assert!(period.tolerance_cycles < 40.0 * MICROSECOND, "{period:?}");
        }
    }

    #[test]
    fn two_gaps_of_noise_for_each_of_the_tick_do_not_hide_it() {
        for seed in 0..20 {
            let mut random = Rng::with_seed(seed);
            let mut times = ticks(&mut random, 1_000, 0.0, 3.0 * MICROSECOND);
            times.extend(poisson(&mut random, TICK / 2.0, 1_000.0 * TICK));
            assert_tick(find(times), "two thirds noise");
        }
    }

    #[test]
    fn bursts_do_not_hide_a_tick() {
        for seed in 0..20 {
            let mut random = Rng::with_seed(seed);
            let mut times = ticks(&mut random, 1_000, 0.1, 3.0 * MICROSECOND);
            for _ in 0..10 {
                let burst = random.f64() * 1_000.0 * TICK;
                times.extend((0..100).map(|k| burst + f64::from(k) * 20.0 * MICROSECOND));
            }
            let period = assert_tick(find(times), "bursts");
            assert!((period.share - 0.47).abs() < 0.05, "{period:?}");
        }
    }

    #[test]
    fn a_fast_timer_with_jitter_of_microseconds_is_found() {
        let mut random = Rng::with_seed(3);
        let times = (0..20_000)
            .map(|k| f64::from(k) * 100.0 * MICROSECOND + 2.0 * MICROSECOND * random.f64())
            .collect();
        let period = find(times).unwrap();
        assert!(
            (period.period_cycles / MICROSECOND - 100.0).abs() < 0.01,
            "{period:?}"
        );
        assert!(period.share > 0.99);
    }

    #[test]
    fn a_clock_that_drifts_against_the_counter_is_still_a_clock() {
        // One part in a million over 60 s: 60 µs.
        let times = (0..15_000)
            .map(|k| {
                let time = f64::from(k) * TICK;
                time + 1e-6 * time * f64::from(k) / 15_000.0
            })
            .collect();
        assert_tick(find(times), "drift");
    }

    #[test]
    fn the_fundamental_is_reported_and_neither_its_double_nor_its_half() {
        for missing in [0.0, 0.1, 0.2, 0.3] {
            let mut random = Rng::with_seed(5);
            assert_tick(
                find(ticks(&mut random, 600, missing, MICROSECOND)),
                "harmonics",
            );
        }
        // Every fourth tick does more: still one clock.
        let mut longer = gaps((0..600).map(|k| f64::from(k) * TICK).collect());
        for gap in longer.iter_mut().step_by(4) {
            gap.length = 9_000;
        }
        let period = assert_tick(detect(&longer), "every fourth longer");
        assert_eq!(period.mean_length_cycles, 6_000.0);
    }

    #[test]
    fn of_two_clocks_in_one_period_the_period_is_reported() {
        let offset = [0.0, 0.31 * TICK];
        let times = (0..500)
            .flat_map(|k| offset.map(|o| f64::from(k) * TICK + o))
            .collect();
        let period = assert_tick(find(times), "two phases");
        assert_eq!(period.share, 0.5);
    }

    #[test]
    fn ticks_hidden_by_another_thread_are_not_missing() {
        // Every other tick hands the CPU to another thread, mostly for one tick, sometimes for two.
        let mut random = Rng::with_seed(2);
        let mut shared = Vec::new();
        let mut tick = 0_u64;
        while tick < 1_000 {
            let away = 1 + u64::from(random.f64() < 0.3);
            let late = exponential(&mut random, MICROSECOND) as u64;
            let length = away * TICK as u64 + 5_000;
            shared.push(Gap {
                index: tick,
                start: tick * TICK as u64 + late,
                length,
            });
            tick += away + 1;
            let short = Gap {
                index: tick,
                start: tick * TICK as u64,
                length: 5_000,
            };
            if random.bool() {
                shared.push(short);
                tick += 1;
            }
        }
        let period = assert_tick(detect(&shared), "a shared CPU");
        assert!(period.present > 0.95, "{period:?}");
    }

    #[test]
    fn random_arrivals_have_no_period() {
        for seed in 0..150 {
            let mut random = Rng::with_seed(seed);
            let gaps_wanted = f64::from(random.u32(8..3_000));
            let times = poisson(&mut random, MILLISECOND, gaps_wanted * MILLISECOND);
            assert_eq!(find(times), None, "seed {seed}");
        }
    }

    #[test]
    fn random_bursts_have_no_period() {
        for seed in 0..100 {
            let mut random = Rng::with_seed(seed);
            let inside = exponential(&mut random, 50.0 * MICROSECOND);
            let regular = random.bool();
            let length = random.u32(2..30);
            let mut times = Vec::new();
            for burst in poisson(&mut random, 10.0 * MILLISECOND, 2_000.0 * MILLISECOND) {
                let mut now = burst;
                for _ in 0..length {
                    times.push(now);
                    now += if regular {
                        inside
                    } else {
                        exponential(&mut random, inside)
                    };
                }
            }
            assert_eq!(find(times), None, "seed {seed}, regular inside: {regular}");
        }
    }

    #[test]
    fn irregular_intervals_have_no_period() {
        // Uniform between half and three halves of a millisecond: not random, yet no clock.
        for seed in 0..100 {
            let mut random = Rng::with_seed(seed);
            let mut now = 0.0;
            let times = (0..1_000)
                .map(|_| {
                    now += (0.5 + random.f64()) * MILLISECOND;
                    now
                })
                .collect();
            assert_eq!(find(times), None, "seed {seed}");
        }
    }

    #[test]
    fn a_tick_in_too_small_a_share_is_not_reported() {
        let mut random = Rng::with_seed(1);
        let mut times = ticks(&mut random, 1_000, 0.0, MICROSECOND);
        times.extend(poisson(&mut random, TICK / 9.0, 1_000.0 * TICK));
        assert_eq!(find(times), None);
    }

    #[test]
    fn too_few_gaps_or_all_at_once_have_no_period() {
        assert_eq!(find(Vec::new()), None);
        assert_eq!(find(vec![0.0; 100]), None);
        assert_eq!(find((0..7).map(|k| f64::from(k) * TICK).collect()), None);
        let mut one_far = vec![0.0; 99];
        one_far.push(1e12);
        assert_eq!(find(one_far), None);
    }

    #[test]
    fn a_hundred_thousand_gaps_are_handled() {
        let mut random = Rng::with_seed(9);
        let mut times = ticks(&mut random, 40_000, 0.1, 3.0 * MICROSECOND);
        times.extend(poisson(&mut random, TICK / 1.6, 40_000.0 * TICK));
        assert_tick(find(times), "a hundred thousand");
    }
}
