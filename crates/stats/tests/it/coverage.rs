//! Whether intervals keep their promise: how often do they hold the true value?
//!
//! Simulated with fixed seeds, so the answer is the same each time.

use fastrand::Rng;
use tare_stats::{
    Counts, Level, bootstrap_median, holm, normal_mean, ordered_median, rank_sum_p_value, shift,
    student_mean,
};

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

#[test]
fn ordered_intervals_of_a_skewed_median_hold_it_at_least_as_often_as_they_say() {
    let mut random = Rng::with_seed(4);
    let median = 2_f64.ln();
    for runs in [6, 15, 30] {
        let held = (0..4_000)
            .filter(|_| {
                let values: Vec<f64> = (0..runs).map(|_| -(1.0 - random.f64()).ln()).collect();
                let interval = ordered_median(&values, Level::P95).unwrap();
                interval.low <= median && median <= interval.high
            })
            .count();
        assert!(
            (0.94..=0.985).contains(&(held as f64 / 4_000.0)),
            "{runs} runs: {held}"
        );
    }
}

#[test]
fn shifts_are_held_and_alike_runs_rarely_differ() {
    let mut random = Rng::with_seed(5);
    // As skewed as maxima are.
    let skewed = |random: &mut Rng| (2.0 * normal(random)).exp();
    for (first, second) in [(4, 4), (5, 9), (12, 12), (25, 25)] {
        let (mut held, mut alarms) = (0, 0);
        for _ in 0..2_000 {
            let a: Vec<f64> = (0..first).map(|_| skewed(&mut random)).collect();
            let b: Vec<f64> = (0..second).map(|_| skewed(&mut random) + 3.0).collect();
            let interval = shift(&a, &b, Level::P95).unwrap();
            held += u32::from(interval.low <= 3.0 && 3.0 <= interval.high);
            let alike: Vec<f64> = b.iter().map(|value| value - 3.0).collect();
            alarms += u32::from(rank_sum_p_value(&a, &alike).unwrap() <= 0.05);
        }
        assert!(held >= 1_870, "{first} and {second}: {held} of 2,000");
        assert!(alarms <= 130, "{first} and {second}: {alarms} of 2,000");
    }
}

#[test]
fn a_table_of_differences_cries_wolf_once_in_twenty_at_most() {
    let mut random = Rng::with_seed(6);
    let tables = 400;
    let wolves = (0..tables)
        .filter(|_| {
            let p_values: Vec<f64> = (0..10)
                .map(|_| {
                    let mut set = || (0..8).map(|_| normal(&mut random)).collect::<Vec<f64>>();
                    rank_sum_p_value(&set(), &set()).unwrap()
                })
                .collect();
            holm(&p_values).into_iter().any(|p| p <= 0.05)
        })
        .count();
    // 5 % of 400 and three standard errors.
    assert!(wolves <= 33, "{wolves} of {tables}");
}
