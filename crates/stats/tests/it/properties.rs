//! Laws that hold for any samples, checked against slow and obvious computations.

use proptest::collection::vec;
use proptest::prelude::*;
use tare_stats::{
    Counts, DelayClasses, Delays, Gap, PowerSums, Quantile, Spin, Trace, log_ticks, nice_ticks,
};

/// Durations of all sizes, many of them equal.
fn samples() -> impl Strategy<Value = Vec<u64>> {
    let sample = prop_oneof![
        3 => 880_u64..1_000,
        2 => 0_u64..20_000,
        1 => 0_u64..1 << 40,
    ];
    vec(sample, 0..200)
}

fn some_samples() -> impl Strategy<Value = Vec<u64>> {
    samples().prop_filter("at least one", |samples| !samples.is_empty())
}

const QUANTILES: [Quantile; 4] = [
    Quantile::MEDIAN,
    Quantile::P99,
    Quantile::P99_9,
    Quantile::P99_99,
];

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-12 * left.abs().max(right.abs())
}

proptest! {
    #[test]
    fn moments_are_those_of_exact_arithmetic(samples in some_samples()) {
        let counts = Counts::from_samples(samples.clone());
        let n = samples.len() as u128;
        let sum: u128 = samples.iter().map(|&v| u128::from(v)).sum();
        let squares: u128 = samples.iter().map(|&v| u128::from(v) * u128::from(v)).sum();
        let moments = counts.moments().unwrap();
        prop_assert_eq!(counts.sum(), sum);
        prop_assert!(close(moments.mean, sum as f64 / n as f64));
        let sd = ((n * squares - sum * sum) as f64).sqrt() / n as f64;
        prop_assert!(close(moments.population_sd, sd), "{} {}", moments.population_sd, sd);
        let sums = PowerSums::new(n as u64, sum, squares).unwrap();
        prop_assert_eq!(sums.moments(), Some(moments));
    }

    #[test]
    fn moments_do_not_depend_on_where_zero_is(samples in some_samples(), shift in 0_u64..1 << 60) {
        let here = Counts::from_samples(samples.clone()).moments().unwrap();
        let there = samples.iter().map(|v| v + shift).collect();
        let there = Counts::from_samples(there).moments().unwrap();
        prop_assert!(close(here.population_sd, there.population_sd));
    }

    #[test]
    fn order_statistics_are_those_of_the_sorted_samples(
        samples in some_samples(),
        quantile in prop::sample::select(&QUANTILES[..]),
    ) {
        let counts = Counts::from_samples(samples.clone());
        let mut sorted = samples;
        sorted.sort_unstable();
        // The smallest sample with at least q·n samples up to it.
        let billionths = (quantile.fraction() * 1e9).round() as u128;
        let rank = (1..=sorted.len()).find(|&k| {
            k as u128 * 1_000_000_000 >= billionths * sorted.len() as u128
        });
        prop_assert_eq!(counts.quantile(quantile), Some(sorted[rank.unwrap() - 1]));
        prop_assert_eq!(counts.median(), Some(sorted[(sorted.len() - 1) / 2]));
        prop_assert_eq!((counts.min(), counts.max()), (Some(sorted[0]), sorted.last().copied()));
    }

    #[test]
    fn merging_is_counting_together(a in samples(), b in samples(), c in samples()) {
        let all = Counts::from_samples([a.clone(), b.clone(), c.clone()].concat());
        let [a, b, c] = [a, b, c].map(Counts::from_samples);
        let left = a.merge(&b).unwrap().merge(&c).unwrap();
        let right = a.merge(&b.merge(&c).unwrap()).unwrap();
        prop_assert_eq!(&left, &right);
        prop_assert_eq!(&left, &all);
        prop_assert_eq!(a.merge(&b).unwrap(), b.merge(&a).unwrap());
        prop_assert_eq!(Counts::merge_all([&a, &b, &c]).unwrap(), left);
    }

    #[test]
    fn pairs_in_any_order_are_the_same_histogram(samples in samples()) {
        let counts = Counts::from_samples(samples.clone());
        let single = Counts::from_pairs(samples.into_iter().map(|value| (value, 1))).unwrap();
        prop_assert_eq!(&single, &counts);
        prop_assert_eq!(Counts::from_pairs(counts.iter().rev()).unwrap(), counts);
    }

    #[test]
    fn tails_are_those_of_the_samples(samples in samples(), bound in 0_u64..5_000, base in 0_u64..5_000) {
        let counts = Counts::from_samples(samples.clone());
        let above = samples.iter().filter(|&&v| v > bound);
        prop_assert_eq!(counts.count_above(bound), above.count() as u64);
        let net = samples.iter().map(|v| v.saturating_sub(base)).collect();
        prop_assert_eq!(counts.net(base), Counts::from_samples(net));
    }

    #[test]
    fn classes_hold_the_delays_between_their_bounds(samples in some_samples()) {
        let counts = Counts::from_samples(samples.clone());
        let delays = Delays::of_run(&counts).unwrap();
        let rows = delays.classify(&DelayClasses::kot_2019());
        // In units of 1/n cycles a delay is a whole number.
        let n = samples.len() as i128;
        let sum: i128 = samples.iter().map(|&v| i128::from(v)).sum();
        for row in &rows {
            let inside: Vec<i128> = samples
                .iter()
                .map(|&v| i128::from(v) * n - sum)
                .filter(|&d| d > i128::from(row.class.above) * n)
                .filter(|&d| row.class.up_to.is_none_or(|up_to| d <= i128::from(up_to) * n))
                .collect();
            let seen = row.delays.unwrap();
            prop_assert_eq!(seen.count, inside.len() as u64);
            let cycles = inside.iter().sum::<i128>() as f64 / n as f64;
            prop_assert!(close(seen.cycles, cycles), "{} {}", seen.cycles, cycles);
            let share = delays.share_above(row.class.above);
            prop_assert!((0.0..=1.0).contains(&share.unwrap().share));
        }
    }

    #[test]
    fn a_traces_figures_do_not_depend_on_where_the_counters_stood(
        gaps in vec((1_u64..500, 100_u64..100_000), 1..200),
        stamp in any::<u64>(),
        index in any::<u64>(),
    ) {
        let trace = |first_index: u64, first_start: u64| {
            let (mut index, mut start) = (first_index, first_start);
            let list = gaps.iter().map(|&(quiet, length)| {
                index = index.wrapping_add(quiet);
                start = start.wrapping_add(20 * (quiet - 1));
                let gap = Gap { index, start, length };
                start = start.wrapping_add(length);
                gap
            }).collect();
            let spin = Spin {
                iterations: 1 << 40,
                wall_cycles: 1 << 40,
                typical_cycles: 20.0,
                unkept_cycles: 0,
            };
            Trace::new(spin, list).unwrap()
        };
        let (plain, moved) = (trace(0, 0), trace(index, stamp));
        prop_assert_eq!(moved.inter_arrivals(), plain.inter_arrivals());
        prop_assert_eq!(moved.period(), plain.period());
    }

    #[test]
    fn ticks_are_inside_and_rise(min in -1e9_f64..1e9, length in 1e-6_f64..1e9, target in 1_usize..30) {
        let ticks = nice_ticks(min, min + length, target);
        prop_assert!(ticks.len() <= target + 1, "{ticks:?}");
        prop_assert!(ticks.iter().all(|tick| (min..=min + length).contains(tick)));
        prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]));
        let low = length;
        let ticks = log_ticks(low, low * (1.0 + min.abs()), target);
        prop_assert!(ticks.len() <= target.max(2) + 3, "{ticks:?}");
        prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
