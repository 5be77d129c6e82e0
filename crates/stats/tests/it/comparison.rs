//! Whether comparisons keep their promise on the kind of data that invocations give: skewed,
//! correlated between figures, with bursts of load that hit some of them.
//!
//! Simulated with fixed seeds, so the answer is the same each time.

use fastrand::Rng;
use tare_stats::{Difference, Level, compare_groups};

const FIGURES: usize = 10;
const EACH: usize = 6;

/// The figures of one invocation.
type Invocation = [f64; FIGURES];

/// A point on nearly the standard normal distribution.
fn normal(random: &mut Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// A quiet invocation: figures of about 20 µs that rise and fall together, some four times as noisy
/// as others, and every third with a tail to the right.
fn quiet(random: &mut Rng) -> Invocation {
    let shared = normal(random);
    std::array::from_fn(|figure| {
        let noise = 0.04 * (1 + figure % 4) as f64;
        let own = 0.8_f64.sqrt() * shared + 0.2_f64.sqrt() * normal(random);
        let tail = match figure % 3 {
            0 => -0.2 * (1.0 - random.f64()).ln(),
            _ => 0.0,
        };
        20.0 * (noise * own + tail).exp()
    })
}

/// Invocations one after the other, of which bursts of load hit some, one or two in a row: half of
/// their figures grow by up to nine times.
fn in_bursts(random: &mut Rng) -> Vec<Invocation> {
    let mut left = 0;
    let mut factor = 1.0;
    (0..2 * EACH)
        .map(|_| {
            let mut invocation = quiet(random);
            if left == 0 && random.f64() < 0.15 {
                left = random.usize(1..3);
                factor = 1.0 + 8.0 * random.f64();
            }
            if left > 0 {
                left -= 1;
                for figure in invocation.iter_mut().step_by(2) {
                    *figure *= factor;
                }
            }
            invocation
        })
        .collect()
}

fn groups(base: &[Invocation], new: &[Invocation]) -> Vec<Difference> {
    let column = |group: &[Invocation], figure: usize| group.iter().map(|i| i[figure]).collect();
    let rows: Vec<_> = (0..FIGURES)
        .map(|figure| (column(base, figure), column(new, figure)))
        .collect();
    compare_groups(&rows, Level::P95, 1).unwrap()
}

/// Compares every other invocation with those between them.
fn alternating(invocations: &[Invocation]) -> Vec<Difference> {
    let every_other = |from| invocations.iter().copied().skip(from).step_by(2);
    groups(
        &every_other(0).collect::<Vec<_>>(),
        &every_other(1).collect::<Vec<_>>(),
    )
}

fn alarms(tables: usize, mut table: impl FnMut() -> Vec<Difference>) -> usize {
    let any = |found: Vec<Difference>| found.iter().any(|row| row.differs(0.05));
    (0..tables).filter(|_| any(table())).count()
}

#[test]
fn a_machine_in_bursts_of_load_rarely_differs_from_itself() {
    let mut random = Rng::with_seed(1);
    let wolves = alarms(1_000, || alternating(&in_bursts(&mut random)));
    // 5 % of 1,000 and three standard errors.
    assert!(wolves <= 70, "{wolves} of 1,000");
    let mut random = Rng::with_seed(2);
    let wolves = alarms(40, || alternating(&in_bursts(&mut random)));
    assert!(wolves <= 5, "{wolves} of 40");
}

#[test]
fn alternation_keeps_slow_drift_out() {
    let mut random = Rng::with_seed(3);
    let mut drifting = || -> Vec<Invocation> {
        let invocations = in_bursts(&mut random).into_iter().enumerate();
        invocations
            .map(|(place, figures)| figures.map(|figure| figure * (1.0 + 0.05 * place as f64)))
            .collect()
    };
    let wolves = alarms(500, || alternating(&drifting()));
    assert!(wolves <= 40, "{wolves} of 500");
    // One group after the other is another matter.
    let wolves = alarms(100, || {
        let invocations = drifting();
        groups(&invocations[..EACH], &invocations[EACH..])
    });
    assert!(wolves > 50, "{wolves} of 100");
}

#[test]
fn a_shift_is_found_in_nine_of_ten_comparisons() {
    let mut random = Rng::with_seed(4);
    let recorded: Vec<Invocation> = (0..60).map(|_| quiet(&mut random)).collect();
    let shift_of = |figure: usize| {
        let mut values: Vec<f64> = recorded.iter().map(|i| i[figure]).collect();
        values.sort_unstable_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / 60.0;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        f64::max(0.2 * values[30], 3.0 * (squares / 59.0).sqrt())
    };
    let mut resampled = |shift: &dyn Fn(&mut Invocation)| {
        let mut drawn = recorded.clone();
        random.shuffle(&mut drawn);
        drawn[EACH..2 * EACH].iter_mut().for_each(shift);
        groups(&drawn[..EACH], &drawn[EACH..2 * EACH])
    };
    // Everything is slower.
    let found = alarms(200, || {
        resampled(&|figures| {
            for (figure, value) in figures.iter_mut().enumerate() {
                *value += shift_of(figure);
            }
        })
    });
    assert!(found >= 195, "{found} of 200");
    // Only one figure is, by as little as that.
    let mut alone = |figure: usize| {
        let mut table = || resampled(&|figures| figures[figure] += shift_of(figure));
        (0..200).filter(|_| table()[figure].differs(0.05)).count()
    };
    let found: Vec<usize> = (0..FIGURES).map(&mut alone).collect();
    assert!(
        found.iter().sum::<usize>() >= 1_800,
        "{found:?} of 200 each"
    );
    assert!(
        found.iter().all(|&found| found >= 165),
        "{found:?} of 200 each"
    );
}

#[test]
fn the_interval_of_a_shift_holds_it() {
    let mut random = Rng::with_seed(5);
    let held = (0..400)
        .map(|_| {
            let mut invocations = in_bursts(&mut random);
            for invocation in invocations.iter_mut().skip(1).step_by(2) {
                *invocation = invocation.map(|figure| figure + 0.2);
            }
            let interval = |row: &Difference| row.shift.interval.ok();
            let of_rows = alternating(&invocations);
            let intervals = of_rows.iter().filter_map(interval);
            intervals.filter(|i| i.low <= 0.2 && 0.2 <= i.high).count()
        })
        .sum::<usize>();
    let share = held as f64 / (400 * FIGURES) as f64;
    assert!(share >= 0.94, "{share}");
}
