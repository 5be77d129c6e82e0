//! Whether intervals keep their promise: how often do they hold the true value?
//!
//! Simulated with fixed seeds, so the answer is the same each time.

use fastrand::Rng;
use tare_stats::{
    Interval, Kind, Level, OverRuns, compare_groups, over_runs, rate_over_runs, share_over_runs,
};

fn interval(kind: Kind, values: &[f64]) -> Interval {
    let over = over_runs(kind, values, Level::P95).unwrap();
    over.interval.unwrap()
}

/// A point on nearly the standard normal distribution.
fn normal(random: &mut Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

#[test]
fn nineteen_of_twenty_student_intervals_hold_the_mean() {
    let mut random = Rng::with_seed(1);
    for runs in [3, 5, 20] {
        let held = (0..4_000)
            .filter(|_| {
                let means: Vec<f64> = (0..runs)
                    .map(|_| 900.0 + 3.0 * normal(&mut random))
                    .collect();
                let interval = interval(Kind::Mean, &means);
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
fn ordered_intervals_of_a_skewed_median_hold_it_at_least_as_often_as_they_say() {
    let mut random = Rng::with_seed(4);
    let median = 2_f64.ln();
    for runs in [6, 15, 30] {
        let held = (0..4_000)
            .filter(|_| {
                let values: Vec<f64> = (0..runs).map(|_| -(1.0 - random.f64()).ln()).collect();
                let interval = interval(Kind::Order, &values);
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
fn a_table_of_differences_cries_wolf_once_in_twenty_at_most() {
    let mut random = Rng::with_seed(6);
    let tables = 400;
    let wolves = (0..tables)
        .filter(|_| {
            let mut group = || (0..6).map(|_| normal(&mut random)).collect::<Vec<f64>>();
            let rows: Vec<_> = (0..10).map(|_| (group(), group())).collect();
            let compared = compare_groups(&rows, Level::P95, 1).unwrap();
            compared.iter().any(|row| row.differs(0.05))
        })
        .count();
    // 5 % of 400 and three standard errors.
    assert!(wolves <= 33, "{wolves} of {tables}");
}

/// Part and whole of one run, and the share that many runs have.
type Shares = (&'static str, fn(&mut Rng) -> (f64, f64), f64);

fn exponential(random: &mut Rng) -> f64 {
    -(1.0 - random.f64()).ln()
}

/// A run of length 1 that loses 1 %, and a stall on top of it.
fn stalled(random: &mut Rng, probability: f64) -> (f64, f64) {
    let stall = match random.f64() < probability {
        true => 0.3 * exponential(random),
        false => 0.0,
    };
    let lost = 0.01 * (1.0 + 0.1 * normal(random));
    (lost + stall, 1.0 + stall)
}

fn skewed_shares() -> [Shares; 5] {
    let half = 0.5_f64;
    [
        (
            "lognormal",
            |r| ((0.01 * normal(r).exp()).min(1.0), 1.0),
            0.01 * half.exp(),
        ),
        (
            "exponential",
            |r| ((0.02 * exponential(r)).min(1.0), 1.0),
            0.02,
        ),
        (
            "exponential from 1",
            |r| (1.0 - (0.02 * exponential(r)).min(1.0), 1.0),
            0.98,
        ),
        (
            "U-shaped",
            |r| ((std::f64::consts::FRAC_PI_2 * r.f64()).sin().powi(2), 1.0),
            0.5,
        ),
        ("every second run stalled", |r| stalled(r, 0.5), 0.16 / 1.15),
    ]
}

/// Returns how often intervals of 2,000 sets of runs hold the true value, in per cent; those
/// without an interval don't.
fn held(runs: usize, truth: f64, mut over: impl FnMut(usize) -> OverRuns) -> f64 {
    let holds = |over: OverRuns| {
        let interval = over.interval.ok();
        interval.is_some_and(|interval| (interval.low..=interval.high).contains(&truth))
    };
    let held = (0..2_000).filter(|_| holds(over(runs))).count();
    held as f64 / 20.0
}

/// What is added to a share to have no bound near.
const FAR: f64 = 10.0;

#[test]
fn shares_and_rates_are_held_where_students_interval_of_them_is_not() {
    let mut random = Rng::with_seed(7);
    for (name, share, truth) in skewed_shares() {
        for runs in [3, 5, 6, 12] {
            let mut draw =
                |runs| -> Vec<(f64, f64)> { (0..runs).map(|_| share(&mut random)).collect() };
            let of_share = held(runs, truth, |runs| {
                share_over_runs(&draw(runs), Level::P95).unwrap()
            });
            // Far from 0, so that the interval is Student's own.
            let of_mean = held(runs, FAR + truth, |runs| {
                let each: Vec<f64> = draw(runs).iter().map(|(a, b)| FAR + a / b).collect();
                over_runs(Kind::Mean, &each, Level::P95).unwrap()
            });
            let least = if name.ends_with("stalled") {
                80.0
            } else {
                86.5
            };
            assert!(of_share >= least, "{name}, {runs} runs: {of_share} %");
            assert!(
                of_share > of_mean,
                "{name}, {runs} runs: {of_share} % and {of_mean} %"
            );
            if truth < 0.5 {
                let of_rate = held(runs, truth, |runs| {
                    rate_over_runs(&draw(runs), Level::P95).unwrap()
                });
                assert!(of_rate >= least, "{name}, {runs} runs: {of_rate} %");
            }
        }
    }
}

#[test]
fn what_hardly_any_run_has_seen_is_in_no_interval() {
    let mut random = Rng::with_seed(8);
    let truth = 0.04 / 1.03;
    let of_three = held(3, truth, |runs| {
        let parts: Vec<(f64, f64)> = (0..runs).map(|_| stalled(&mut random, 0.1)).collect();
        share_over_runs(&parts, Level::P95).unwrap()
    });
    // 73 % of such sets hold no stall at all.
    assert!((20.0..35.0).contains(&of_three), "{of_three} %");
}
