//! Whether intervals keep their promise: how often do they hold the true value?
//!
//! Simulated with fixed seeds, so the answer is the same each time.

use fastrand::Rng;
use tare_stats::{Counts, Level, bootstrap_median, normal_mean, student_mean};

/// A point on nearly the standard normal distribution.
fn normal(random: &mut Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

#[test]
fn nineteen_of_twenty_student_intervals_hold_the_mean() {
    let mut random = Rng::with_seed(1);
    for runs in [2, 5, 20] {
        let held = (0..4_000)
            .filter(|_| {
                let means: Vec<f64> = (0..runs)
                    .map(|_| 900.0 + 3.0 * normal(&mut random))
                    .collect();
                let interval = student_mean(&means, Level::P95).unwrap();
                interval.low <= 900.0 && 900.0 <= interval.high
            })
            .count();
        // Three standard errors of a share of 0.95 in 4,000 are 0.0103.
        assert!(
            (held as f64 / 4_000.0 - 0.95).abs() < 0.0104,
            "{runs} runs: {held}"
        );
    }
}

#[test]
fn bootstrap_intervals_of_a_skewed_median_hold_it_about_as_often_as_they_say() {
    let mut random = Rng::with_seed(2);
    let median = 2_f64.ln();
    for runs in [6, 15, 30] {
        let held = (0..150)
            .filter(|&seed| {
                let values: Vec<f64> = (0..runs).map(|_| -(1.0 - random.f64()).ln()).collect();
                let interval = bootstrap_median(&values, Level::P95, seed).unwrap();
                interval.low <= median && median <= interval.high
            })
            .count();
        assert!(
            (0.89..=0.995).contains(&(held as f64 / 150.0)),
            "{runs} runs: {held}"
        );
    }
}

#[test]
fn intervals_over_samples_of_a_run_do_not_hold_what_the_next_run_finds() {
    // Runs differ by 1 cycle, samples within one by 3. This is why studies' intervals are theirs.
    let mut random = Rng::with_seed(3);
    let (mut over_samples, mut over_runs) = (0, 0);
    for _ in 0..100 {
        let mut means = Vec::new();
        let mut first_run = Counts::default();
        for run in 0..10 {
            let shift = normal(&mut random);
            let samples: Vec<u64> = (0..500)
                .map(|_| (900.0 + shift + 3.0 * normal(&mut random)).round() as u64)
                .collect();
            let counts = Counts::from_samples(samples);
            means.push(counts.mean().unwrap());
            if run == 0 {
                first_run = counts;
            }
        }
        let published = normal_mean(first_run.moments().unwrap(), Level::P95).unwrap();
        over_samples += u32::from(published.low <= 900.0 && 900.0 <= published.high);
        let ours = student_mean(&means, Level::P95).unwrap();
        over_runs += u32::from(ours.low <= 900.0 && 900.0 <= ours.high);
    }
    assert!(over_samples < 50, "{over_samples}");
    assert!(over_runs >= 90, "{over_runs}");
}
