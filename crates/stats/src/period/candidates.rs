//! Which periods to look at, from the distances between gaps.

use super::arrivals::Arrivals;
use super::{MIN_PRESENT, MIN_SHARE, TOLERANCE};

/// Differences are taken to this many later gaps, so that bursts cost no more than other gaps.
const LAGS: usize = 24;

/// Returns the peaks among the differences of near gaps, in cycles.
pub(super) fn candidates(arrivals: &Arrivals) -> Vec<f64> {
    const BINS_PER_OCTAVE: f64 = 32.0;
    // The limits of the module's first step, widened for the edges of a short trace, and below so
    // that a clock with too many ticks missing is not mistaken for one of twice its period.
    let starts = &arrivals.starts;
    let distances = arrivals.count() - 1.0;
    let shortest = 0.3 * arrivals.visible / distances;
    let longest = 1.1 / MIN_SHARE * arrivals.span / distances;
    let bins = ((longest / shortest).log2() * BINS_PER_OCTAVE).ceil() as usize;
    let bin_of =
        |distance: f64| (((distance / shortest).log2() * BINS_PER_OCTAVE) as usize).min(bins - 1);

    let mut counts = vec![0_u64; bins];
    let mut sums = vec![0.0; bins];
    for (i, start) in starts.iter().enumerate() {
        for later in starts.iter().skip(i + 1).take(LAGS) {
            let distance = later - start;
            if distance > longest {
                break;
            }
            if distance >= shortest {
                counts[bin_of(distance)] += 1;
                sums[bin_of(distance)] += distance;
            }
        }
    }
    // Three bins together are wide enough for the tolerance.
    let around = |bin: usize| bin.saturating_sub(1)..(bin + 2).min(bins);
    let smooth: Vec<u64> = (0..bins)
        .map(|bin| counts[around(bin)].iter().sum())
        .collect();
    (0..bins)
        .filter(|&bin| {
            // A plateau gives its first bin only.
            let before = &smooth[bin.saturating_sub(3)..bin];
            let after = &smooth[bin + 1..(bin + 4).min(bins)];
            let peak = smooth[bin];
            peak > 0 && before.iter().all(|&n| n < peak) && after.iter().all(|&n| n <= peak)
        })
        .map(|bin| sums[around(bin)].iter().sum::<f64>() / smooth[bin] as f64)
        .collect()
}

/// Sharpens a period over growing distances; `None` if it does not hold over them.
pub(super) fn refine(arrivals: &Arrivals, candidate: f64) -> Option<f64> {
    let (starts, span) = (&arrivals.starts, arrivals.span);
    let mut period = candidate;
    let mut multiple = 1.0;
    while multiple == 1.0 || multiple * period <= span / 2.0 {
        let distance = multiple * period;
        let with_partner = starts.partition_point(|start| start + distance <= span);
        let residuals = nearest_residuals(starts, distance, TOLERANCE * period);
        let (count, centre) = densest(&residuals, TOLERANCE * period)?;
        // Of gaps on the grid at least half have their partner present, if it can be seen. A third
        // is left for what falls outside of the densest part.
        let visible = arrivals.visible / arrivals.span;
        let expected = MIN_SHARE * MIN_PRESENT * visible * with_partner as f64;
        if (count as f64) < expected * 2.0 / 3.0 {
            return None;
        }
        period += centre / multiple;
        multiple *= 2.0;
    }
    Some(period)
}

/// Returns, for each gap that has one, how far its nearest partner is from lying `distance` later.
fn nearest_residuals(starts: &[f64], distance: f64, tolerance: f64) -> Vec<f64> {
    let mut next = 0;
    let mut residuals = Vec::new();
    for start in starts {
        let target = start + distance;
        while starts.get(next).is_some_and(|partner| *partner < target) {
            next += 1;
        }
        let after = starts.get(next).map(|partner| partner - target);
        let before = next.checked_sub(1).map(|before| starts[before] - target);
        let nearest = match (before, after) {
            (Some(before), Some(after)) if -before <= after => before,
            (Some(before), None) => before,
            (_, Some(after)) => after,
            (None, None) => continue,
        };
        if nearest.abs() <= tolerance {
            residuals.push(nearest);
        }
    }
    residuals
}

/// Returns the number and the mean of the residuals in the densest quarter of ± `tolerance`.
pub(super) fn densest(residuals: &[f64], tolerance: f64) -> Option<(u64, f64)> {
    const BINS: usize = 64;
    const WINDOW: usize = BINS / 4;
    let width = 2.0 * tolerance / BINS as f64;
    let bin_of = |residual: f64| (((residual + tolerance) / width) as usize).min(BINS - 1);
    let mut counts = [0_u64; BINS];
    let mut sums = [0.0; BINS];
    for &residual in residuals {
        counts[bin_of(residual)] += 1;
        sums[bin_of(residual)] += residual;
    }
    let windows = (0..=BINS - WINDOW).map(|from| from..from + WINDOW);
    let best = windows.max_by_key(|window| counts[window.clone()].iter().sum::<u64>())?;
    let count: u64 = counts[best.clone()].iter().sum();
    (count > 0).then(|| (count, sums[best].iter().sum::<f64>() / count as f64))
}
