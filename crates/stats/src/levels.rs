//! The levels of a memory hierarchy, read off a curve of latencies by working set.
//!
//! As long as a working set fits into a level, its latency does not depend on its size; beyond, it
//! rises. Both axes are logarithmic. At each point, the slope of the points before it is compared
//! with that of the points behind it; where the slope grows most, within an octave on either side,
//! and the curve is higher by a quarter an octave later, a level begins to overflow. One that others
//! share, or in which pages lie at random, overflows more slowly: behind a flat stretch a smaller
//! growth counts, over an octave and a half. The curve is first freed of single outliers (a median of
//! three), and made to rise only (isotonic regression, Barlow et al., 1972), since a larger working
//! set is never faster.
//!
//! Where a level begins to overflow is its capacity only if a line may lie anywhere in it. Pages
//! that lie at random in a cache that is indexed by physical addresses overflow some of its sets
//! long before all are full (Gonzalez-Dominguez et al., "Servet", IPDPS 2010); so a capacity is
//! read off where a third of all loads miss the level. For a cache of eight ways that replaces the
//! oldest line that is 0.82 times the capacity with pages at random, 1.0 to 1.1 times without; for
//! one that replaces at random 1.21 times.
//!
//! # What it can't tell
//!
//! Levels whose capacities are less than an octave and a half apart, or whose latencies differ by
//! less than a quarter, are one. A curve must begin below the capacity of the first level, and go
//! on for an octave behind the last one.

/// A level: how large it is, and what it costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryLevel {
    /// How much it holds; `None` for the last level, whose end is not seen.
    pub capacity: Option<f64>,
    /// Latency of a working set that it holds: the median over the upper half of its sizes, on a
    /// logarithmic scale.
    pub latency: f64,
}

/// The least growth of the slope, d ln(latency) / d ln(size), at the end of a level.
const KINK: f64 = 0.4;
/// The same over [`FAR`], where the curve was flat before; and the greatest slope that is flat.
const SLOW_KINK: f64 = 0.34;
const FLAT: f64 = 0.05;
/// The least growth of the slope right behind such a point: it rises there already.
const BEGUN: f64 = 0.2;
/// The least factor by which the latency rises within an octave and a half behind a level.
const RISE: f64 = 1.25;
/// An octave and a half, as natural logarithm.
const FAR: f64 = 1.5 * std::f64::consts::LN_2;
/// The least distance of two capacities.
const APART: f64 = 1.5 * std::f64::consts::LN_2;
/// The share of loads that miss a level at its capacity.
const MISSED: f64 = 1.0 / 3.0;
/// How far the points before reach from which a slope is taken.
const BEFORE: f64 = 0.8 * std::f64::consts::LN_2;
/// How far those behind reach.
const BEHIND: f64 = 0.55 * std::f64::consts::LN_2;

/// Finds the levels of a curve of (working set, latency), by rising working set, from the fastest
/// to the slowest. A curve of fewer than eight points, or with values that are not above 0, has
/// none.
pub fn memory_levels(curve: &[(f64, f64)]) -> Vec<MemoryLevel> {
    let is_usable = curve.iter().all(|(size, ns)| *size > 0.0 && *ns > 0.0)
        && curve.windows(2).all(|two| two[0].0 < two[1].0);
    if curve.len() < 8 || !is_usable {
        return Vec::new();
    }
    let smooth = smooth(curve);
    let mut ends: Vec<usize> = Vec::new();
    let kinks: Vec<(f64, f64)> = (0..smooth.len()).map(|at| kinks(&smooth, at)).collect();
    let found = |is_kink: &dyn Fn(usize) -> bool| {
        let all = 0..smooth.len();
        Vec::from_iter(
            all.filter(|at| is_kink(*at) && rises(&smooth, *at) && goes_on(&smooth, *at)),
        )
    };
    // The sharpest first; what is near to one of them belongs to it.
    let mut order = found(&|at| kinks[at].0 >= KINK);
    order.sort_by(|a, b| kinks[*b].0.total_cmp(&kinks[*a].0));
    let mut slow = found(&|at| kinks[at].1 >= SLOW_KINK);
    slow.sort_by(|a, b| kinks[*b].1.total_cmp(&kinks[*a].1));
    order.extend(slow);
    for at in order.into_iter().map(|at| last_level_point(&smooth, at)) {
        let is_apart = |end: &usize| (smooth[*end].0 - smooth[at].0).abs() >= APART;
        if ends.iter().all(is_apart) {
            ends.push(at);
        }
    }
    ends.sort_unstable();
    let starts = std::iter::once(0).chain(ends.iter().map(|end| end + 1));
    let last = smooth.len() - 1;
    let bounds: Vec<(usize, usize)> = starts
        .zip(ends.iter().copied().chain([last]))
        .filter(|(from, to)| from <= to)
        .collect();
    let latencies = bounds
        .iter()
        .map(|(from, to)| latency(&smooth[*from..=*to]));
    let latencies: Vec<f64> = latencies.collect();
    let capacity = |level: usize| {
        let (own, next) = (latencies[level], *latencies.get(level + 1)?);
        let missed = own + MISSED * (next - own);
        let over = smooth.iter().position(|(_, y)| y.exp() > missed)?.max(1);
        // The nearer of the two sizes that it is between.
        let (below, above) = (smooth[over - 1].1.exp(), smooth[over].1.exp());
        let is_nearer_above = missed - below > above - missed;
        Some(curve[over - usize::from(!is_nearer_above)].0)
    };
    (0..bounds.len())
        .map(|level| MemoryLevel {
            capacity: capacity(level),
            latency: latencies[level],
        })
        .collect()
}

/// Returns the curve on logarithmic axes, without single outliers, and rising.
fn smooth(curve: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let logs: Vec<f64> = curve.iter().map(|(_, ns)| ns.ln()).collect();
    let middle = |at: usize| {
        let (from, to) = (at.saturating_sub(1), (at + 1).min(logs.len() - 1));
        let mut three = logs[from..=to].to_vec();
        three.sort_by(f64::total_cmp);
        match three.len() {
            // At an end there is nothing to hold it against.
            2 => logs[at],
            _ => three[1],
        }
    };
    // Pools of points that would fall are replaced by their mean.
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for at in 0..logs.len() {
        let mut pool = (middle(at), 1);
        while let Some(before) = pools.last().copied().filter(|before| before.0 > pool.0) {
            pools.pop();
            let points = before.1 + pool.1;
            let sum = before.0 * before.1 as f64 + pool.0 * pool.1 as f64;
            pool = (sum / points as f64, points);
        }
        pools.push(pool);
    }
    let level = pools
        .iter()
        .flat_map(|(mean, points)| std::iter::repeat_n(*mean, *points));
    let sizes = curve.iter().map(|(size, _)| size.ln());
    sizes.zip(level).collect()
}

/// Returns by how much the slope grows at a point, and by how much over a longer way behind it if the
/// curve was flat before.
fn kinks(curve: &[(f64, f64)], at: usize) -> (f64, f64) {
    let here = curve[at].0;
    let before = curve[..=at].iter().filter(|(x, _)| here - x <= BEFORE);
    let behind = |far| slope(curve[at..].iter().filter(move |(x, _)| x - here <= far));
    let (Some(before), Some(near), Some(far)) = (slope(before), behind(BEHIND), behind(FAR)) else {
        return (0.0, 0.0);
    };
    let is_slow = before <= FLAT && near - before >= BEGUN;
    (near - before, if is_slow { far - before } else { 0.0 })
}

/// Returns the slope of the line through points by least squares; `None` of fewer than two.
fn slope<'a>(points: impl Iterator<Item = &'a (f64, f64)> + Clone) -> Option<f64> {
    let count = points.clone().count() as f64;
    let mean_x = points.clone().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.clone().map(|(_, y)| y).sum::<f64>() / count;
    let spread: f64 = points.clone().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let both: f64 = points.map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    (count >= 2.0 && spread > 0.0).then(|| both / spread)
}

/// Returns the last point of a level near a kink: where the rise is steep, the slope behind the
/// point before it is the same.
fn last_level_point(curve: &[(f64, f64)], at: usize) -> usize {
    /// By how much a point may be above the kink that is still of the level.
    const LEVEL: f64 = 1.08;
    let (here, level) = curve[at];
    let near = curve[at..]
        .iter()
        .take_while(|(x, y)| x - here <= BEHIND && y - level <= LEVEL.ln());
    at + near.count() - 1
}

/// Returns whether a curve is a quarter higher an octave and a half behind a point.
fn rises(curve: &[(f64, f64)], at: usize) -> bool {
    let (here, level) = curve[at];
    let behind = curve[at..].iter().filter(|(x, _)| x - here <= FAR);
    let highest = behind.map(|(_, y)| *y).fold(level, f64::max);
    highest - level >= RISE.ln()
}

/// Returns whether a curve goes on long enough behind a point to say that it rises for good.
fn goes_on(curve: &[(f64, f64)], at: usize) -> bool {
    curve[curve.len() - 1].0 - curve[at].0 >= BEHIND
}

/// Returns the median latency of the upper half of a level's sizes.
fn latency(level: &[(f64, f64)]) -> f64 {
    let (from, to) = (level[0].0, level[level.len() - 1].0);
    let upper = level.iter().filter(|(x, _)| *x >= f64::midpoint(from, to));
    let mut upper: Vec<f64> = upper.map(|(_, y)| *y).collect();
    upper.sort_by(f64::total_cmp);
    upper[upper.len() / 2].exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of numbers, so that the curves are the same each time.
    struct Random(u64);

    impl Random {
        /// Returns a number from 0 to 1.
        fn next(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// Returns a number from a normal distribution, by the sum of twelve.
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.next()).sum::<f64>() - 6.0
        }
    }

    /// How a cache takes a cycle that is larger than it.
    #[derive(Clone, Copy)]
    enum Cache {
        /// It replaces any line: one that is not hit stays with the probability exp(-misses /
        /// lines).
        Random,
        /// It replaces the oldest one, nearly.
        Oldest,
        /// It replaces the oldest one of eight ways, and pages lie at random: how many meet in a
        /// set is Poisson's.
        Pages,
    }

    /// Returns the share of loads that hit, of a working set of this multiple of the capacity.
    fn hits(cache: Cache, times: f64) -> f64 {
        match cache {
            Cache::Random if times <= 1.0 => 1.0,
            Cache::Random => (0..200).fold(0.5, |hit, _| (-(1.0 - hit) * times).exp()),
            Cache::Oldest => (1.0 - 3.0 * (times - 1.0)).clamp(0.0, 1.0),
            Cache::Pages => {
                let mean = 8.0 * times;
                let terms = (0..8).scan((-mean).exp(), |term, others| {
                    let now = *term;
                    *term *= mean / f64::from(others + 1);
                    Some(now)
                });
                terms.sum()
            }
        }
    }

    /// Returns the mean latency of a random cycle through a working set.
    fn model(levels: &[(f64, f64)], cache: Cache, size: f64) -> f64 {
        let mut held = 0.0;
        let mut sum = 0.0;
        for (capacity, ns) in levels {
            let fits = match capacity.is_finite() {
                true => hits(cache, size / capacity),
                false => 1.0,
            };
            sum += (fits - held).max(0.0) * ns;
            held = fits.max(held);
        }
        sum
    }

    fn sizes() -> Vec<f64> {
        (40..=112)
            .map(|quarter| 2_f64.powf(f64::from(quarter) / 4.0))
            .collect()
    }

    #[test]
    fn the_levels_of_generated_curves_are_found() {
        let mut random = Random(0x1234_5678_9abc_def1);
        let (mut right, mut all) = (0, 0);
        for round in 0..1_000 {
            let count = 2 + round % 3;
            // Capacities on the grid, at least three octaves apart; latencies that grow by 2.5 to 6
            // times.
            let mut capacity = 2_f64.powf(14.0 + (random.next() * 8.0).round() / 4.0);
            let mut ns = 0.8 + random.next();
            let mut levels = Vec::new();
            for level in 1..count {
                levels.push((capacity, ns));
                let octaves = 3.0 + (random.next() * 4.0).round() / 4.0;
                if level + 1 < count {
                    capacity *= 2_f64.powf(octaves);
                }
                ns *= 2.5 + 3.5 * random.next();
            }
            let ends: Vec<f64> = levels.iter().map(|(capacity, _)| *capacity).collect();
            levels.push((f64::INFINITY, ns));
            let cache = [Cache::Random, Cache::Oldest, Cache::Pages][round / 3 % 3];
            let noise = 0.01 + 0.03 * random.next();
            let curve: Vec<(f64, f64)> = sizes()
                .into_iter()
                .map(|size| {
                    let spike = if random.next() < 0.02 { 1.4 } else { 1.0 };
                    let ns = model(&levels, cache, size);
                    (size, ns * (1.0 + noise * random.normal()).max(0.5) * spike)
                })
                .collect();
            let found = memory_levels(&curve);
            let found: Vec<f64> = found.iter().filter_map(|level| level.capacity).collect();
            let near = |a: f64, b: f64| (a / b).log2().abs() <= 0.26;
            all += 1;
            if found.len() == ends.len() && found.iter().zip(&ends).all(|(a, b)| near(*a, *b)) {
                right += 1;
            }
        }
        assert!(right * 100 >= all * 95, "{right} of {all}");
    }

    #[test]
    fn a_level_has_the_latency_of_what_it_holds() {
        let levels = [(32_768.0, 1.0), (1_048_576.0, 4.0), (f64::INFINITY, 100.0)];
        let curve: Vec<(f64, f64)> = sizes()
            .into_iter()
            .map(|size| (size, model(&levels, Cache::Oldest, size)))
            .collect();
        let found = memory_levels(&curve);
        assert_eq!(found.len(), 3);
        for (found, (capacity, ns)) in found.iter().zip(levels) {
            let steps = found
                .capacity
                .map(|found| (found / capacity).log2().abs() * 4.0);
            assert_eq!(steps.is_some(), capacity.is_finite());
            assert!(steps.is_none_or(|steps| steps < 1.1), "{found:?}");
            assert!((found.latency / ns - 1.0).abs() < 0.05, "{found:?}");
        }
    }

    /// The least latencies of two runs in a guest of a cloud, in huge pages: caches of 32 KiB, 1 MiB
    /// and 32 MiB, whose second and third others share.
    #[test]
    fn a_level_that_overflows_slowly_is_one() {
        let curve = [
            (16384.0, 1.08),
            (19456.0, 1.08),
            (23168.0, 1.08),
            (27520.0, 1.08),
            (32768.0, 1.08),
            (38976.0, 3.85),
            (46336.0, 3.80),
            (55104.0, 3.80),
            (65536.0, 3.80),
            (77952.0, 3.80),
            (92672.0, 3.80),
            (110208.0, 3.80),
            (131072.0, 3.80),
            (155904.0, 3.80),
            (185344.0, 3.80),
            (220416.0, 3.80),
            (262144.0, 3.80),
            (311808.0, 3.94),
            (370688.0, 4.26),
            (440832.0, 4.53),
            (524288.0, 5.02),
            (623616.0, 5.29),
            (741376.0, 6.04),
            (881664.0, 6.86),
            (1048576.0, 8.24),
            (1247232.0, 9.65),
            (1482752.0, 11.32),
            (1763328.0, 12.03),
            (2097152.0, 12.69),
            (2494464.0, 13.22),
            (2965504.0, 13.52),
            (3526656.0, 14.36),
            (4194304.0, 14.78),
            (4988928.0, 15.16),
            (5931008.0, 16.06),
            (7053312.0, 16.51),
            (8388608.0, 15.98),
            (9977856.0, 16.49),
            (11862016.0, 19.58),
            (14106624.0, 29.25),
            (16777216.0, 55.94),
            (19955712.0, 85.98),
            (23724032.0, 113.15),
            (28213248.0, 129.24),
            (33554432.0, 125.52),
            (39911424.0, 135.59),
            (47448064.0, 133.36),
            (56426496.0, 143.27),
            (67108864.0, 142.71),
            (79822848.0, 150.16),
            (94896128.0, 151.11),
            (112852992.0, 151.23),
            (134217728.0, 157.91),
            (159645696.0, 155.71),
            (189792256.0, 154.66),
            (225705984.0, 160.40),
            (268435456.0, 163.26),
        ];
        let found = memory_levels(&curve);
        let latencies: Vec<f64> = found.iter().map(|level| level.latency.round()).collect();
        assert_eq!(latencies[..2], [1.0, 4.0], "{found:?}");
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(
            (found[0].capacity.unwrap() / 32_768.0).log2().abs() < 0.3,
            "{found:?}"
        );
    }

    #[test]
    fn a_flat_curve_is_one_level_and_a_short_one_is_none() {
        let flat: Vec<(f64, f64)> = sizes().into_iter().map(|size| (size, 5.0)).collect();
        let found = memory_levels(&flat);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].capacity, None);
        assert!((found[0].latency - 5.0).abs() < 1e-9);
        assert!(memory_levels(&flat[..7]).is_empty());
        assert!(memory_levels(&[]).is_empty());
        let zero: Vec<(f64, f64)> = sizes().into_iter().map(|size| (size, 0.0)).collect();
        assert!(memory_levels(&zero).is_empty());
    }
}
