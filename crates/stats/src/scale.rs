//! Noise at scale: what the delays of one node do to a program of many nodes.
//!
//! A bulk-synchronous program repeats a step: every node computes for the same time T, then waits
//! at a barrier for the slowest. A request that fans out is such a step once: it has its answer
//! when the slowest of N servers has. So both cost the *maximum* of the delays of N nodes (F.
//! Petrini, D. Kerbyson, S. Pakin, The case of the missing supercomputer performance, SC 2003; D.
//! Tsafrir et al., System noise, OS clock ticks, and fine-grained parallel applications, ICS 2005;
//! J. Dean, L. Barroso, The tail at scale, CACM 56(2), 2013).
//!
//! # The delay of a step
//!
//! It is the sum of the gaps that begin while the node computes for T. Every moment of a recording
//! at which work went on is taken as the begin of a step, so gaps that come in bursts stay
//! together. A run is closed to a ring: on one node, a step then loses exactly the time that the run lost.
//!
//! A gap may also begin while its node waits at the barrier, and last beyond (T. Hoefler, T.
//! Schneider, A. Lumsdaine, Characterizing the influence of system noise on large-scale
//! applications by simulation, SC 2010, replay traces for this reason). After a wait of w, a gap of
//! length g is still there with the weight min(w, g), and what remains of it is even from g −
//! min(w, g) to g. A request finds its servers at any time: w is infinite.
//!
//! # The maximum
//!
//! That of N independent delays with the distribution function F has the distribution F^N, which is
//! computed as it is: no draws, no seed, and a million nodes take as long as one. A step's wait
//! follows from the maximum of the step before, hence the steps are a Markov chain over classes of
//! waits by powers of two; its stationary distribution is computed. The slowest node does not wait.
//! Others wait for the maximum less the mean delay.
//!
//! With a correlated share c, all nodes have the same delay in a share c of the steps: c · F + (1 −
//! c) · F^N. Bad nodes have another F.
//!
//! # The tail
//!
//! Nothing is extrapolated. A maximum of N nodes is decided by what happens in one of N steps, so
//! ten steps as long as the slowest must lie beyond; [`Scaled`] says how much noise that takes.
//! With less, rare delays are missing, and the figure is a lower bound.
//!
//! # Intervals
//!
//! By the jackknife over runs: one at a time is omitted, and s² = (k − 1)/k · Σ(θ₍ᵢ₎ − mean)². The
//! interval is Student's t on the log scale, as that of a rate
//! ([`over_runs`](crate::over_runs())).

use crate::error::StatsError;
use crate::interval::{Interval, Level, Scale, enough};
use crate::over_runs::{NoInterval, STUDENT_RUNS, student, within};

/// The number of steps beyond a figure that it needs, and of steps that a run must hold.
const BEYOND: f64 = 10.0;
/// The share of fan-out requests that take no longer than their figure.
const P99: f64 = 0.99;
/// The share of a step up to which a wait counts as none.
const NO_WAIT: f64 = 1.0 / 64.0;
/// The number of parts in which what remains of a gap is placed.
const PARTS: f64 = 16.0;

/// The time that one CPU lost during a spin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NoiseRun {
    /// The time from its first to its last read, in ns.
    pub length_ns: f64,
    /// The beginning of each gap after the first read, and what it took of the work, in ns; in order.
    pub gaps: Vec<(f64, f64)>,
}

impl NoiseRun {
    /// Returns the share that was lost of each whole quantum of a length in ns, of at most `most`.
    ///
    /// A fixed time quantum benchmark counts the work done in each (FTQ: M. Sottile, R. Minnich,
    /// Analysis of microbenchmarks for performance tuning of clusters, CLUSTER 2004). A list of gaps
    /// says the same: a quantum that lost a share l did 1 − l of the work of an undisturbed one.
    #[must_use]
    pub fn quanta(&self, quantum_ns: f64, most: usize) -> Vec<f64> {
        let mut lost = vec![0.0; ((self.length_ns / quantum_ns) as usize).min(most)];
        for (start, length) in &self.gaps {
            let (mut from, to) = (*start, start + length);
            while from < to {
                let quantum = (from / quantum_ns) as usize;
                let Some(lost) = lost.get_mut(quantum) else {
                    break;
                };
                let end = ((quantum + 1) as f64 * quantum_ns).min(to);
                *lost += (end - from) / quantum_ns;
                from = end.max(from.next_up());
            }
        }
        lost
    }
}

/// A program, and the nodes it runs on.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// The time that a node computes in a step, in ns.
    pub step_ns: f64,
    /// The share of steps in which all nodes have the same delay, from 0 to 1.
    pub correlated: f64,
    /// The noise of ordinary nodes.
    pub noise: &'a [NoiseRun],
    /// The share of nodes with other noise, from 0 to 1, and that noise.
    pub bad: Option<(f64, &'a [NoiseRun])>,
}

/// The cost of noise on a number of nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct AtScale {
    /// The number of nodes.
    pub nodes: u64,
    /// The mean delay of a bulk-synchronous step over its undisturbed time.
    pub slowdown: Scaled,
    /// The delay of a request that fans out to that many servers, in ns: 99 % have no more.
    pub fan_out_p99_ns: Scaled,
}

/// A figure at scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaled {
    /// The figure; its lower bound if there is less noise than it needs.
    pub value: f64,
    /// How much noise of one node it needs, in ns.
    pub needed_ns: f64,
    /// Whether the runs hold less than that.
    pub is_least: bool,
    /// The interval over runs, or why there is none.
    pub interval: Result<Interval, NoInterval>,
}

/// Computes what noise costs on each number of nodes. Runs weigh by their length.
///
/// # Errors
///
/// [`StatsError::TooFew`] without a run, or for one shorter than ten steps; [`StatsError::Number`]
/// for a share or step that is none.
pub fn at_scale(
    program: &Program<'_>,
    nodes: &[u64],
    level: Level,
) -> Result<Vec<AtScale>, StatsError> {
    let (step, correlated) = (program.step_ns, program.correlated);
    let (share, bad) = program.bad.unwrap_or((0.0, program.noise));
    within("the step", step, step > 0.0, "a time above 0")?;
    for share in [share, correlated] {
        within("a share", share, (0.0..=1.0).contains(&share), "0 to 1")?;
    }
    let kinds = [program.noise, bad];
    for runs in kinds {
        enough("noise at scale", "runs", 1, runs.len() as u64)?;
        let steps = runs.iter().map(|run| (run.work_ns() / step) as u64);
        let least = steps.min().unwrap_or(0);
        enough("noise at scale", "steps in each run", BEYOND as u64, least)?;
    }
    let gaps = kinds.iter().copied().flatten().flat_map(|run| &run.gaps);
    let waits = waits(step, gaps.map(|gap| gap.1).fold(0.0, f64::max));
    let all = kinds.map(|runs| Vec::from_iter(runs.iter().map(|run| run.delays(step, &waits))));
    let mut sums = Bins::default();
    for bins in all.iter().flatten().flatten() {
        sums.merge(bins);
    }
    let held: Vec<usize> = (0..sums.0.len())
        .filter(|bin| sums.0[*bin][0] > 0.0)
        .collect();
    let delays: Vec<f64> = held
        .iter()
        .map(|bin| sums.0[*bin][1] / sums.0[*bin][0])
        .collect();
    let model = |without: [Option<usize>; 2]| Model {
        delays: &delays,
        waits: &waits,
        kinds: [0, 1].map(|kind| tails(&all[kind], &held, without[kind])),
        correlated,
    };
    let pooled = model([None; 2]);
    let ordinary = (0..kinds[0].len()).map(|run| model([Some(run), None]));
    let of_bad = (0..kinds[1].len()).map(|run| model([None, Some(run)]));
    let mut without = vec![ordinary.collect()];
    if program.bad.is_some() {
        without.push(of_bad.collect());
    }
    let times = kinds.map(|runs| runs.iter().map(|run| run.length_ns).sum::<f64>());
    let scaled = nodes.iter().map(|&nodes| {
        let of_bad = (nodes as f64 * share).round();
        let counts = [nodes as f64 - of_bad, of_bad];
        let scaled = |figure: &dyn Fn(&Model<'_>) -> f64, beyond: f64, unit: f64| {
            let value = figure(&pooled);
            let needed = counts.map(|count| count / beyond * BEYOND * (step + value * unit));
            let is_least = needed[0] > times[0] || needed[1] > times[1];
            Scaled {
                value,
                needed_ns: needed[0].max(needed[1]),
                is_least,
                interval: match is_least {
                    true => Err(NoInterval::Extreme),
                    false => jackknife(value, &without, figure, level),
                },
            }
        };
        AtScale {
            nodes,
            slowdown: scaled(&|model| model.step(counts) / step, 1.0, step),
            fan_out_p99_ns: scaled(&|model| model.fan_out(counts), 1.0 - P99, 1.0),
        }
    });
    Ok(scaled.collect())
}

/// Returns the interval of a figure by the models without one of the runs, of each kind of nodes.
fn jackknife(
    value: f64,
    without: &[Vec<Model<'_>>],
    figure: &dyn Fn(&Model<'_>) -> f64,
    level: Level,
) -> Result<Interval, NoInterval> {
    let runs = without.iter().map(Vec::len).min().unwrap_or(0);
    let (needed, got) = (STUDENT_RUNS, runs as u64);
    if got < needed {
        return Err(NoInterval::TooFew { needed, got });
    }
    let variance = without.iter().map(|models| {
        let each: Vec<f64> = models.iter().map(figure).collect();
        let (runs, sum) = (each.len() as f64, each.iter().sum::<f64>());
        let squares: f64 = each.iter().map(|one| (one - sum / runs).powi(2)).sum();
        squares * (runs - 1.0) / runs
    });
    let error = variance.sum::<f64>().sqrt();
    let interval = (error > 0.0).then(|| student(value, error, runs, Scale::Log, level));
    interval.flatten().ok_or(NoInterval::Alike { runs: got })
}

/// Returns the least wait of each class: none, then powers of two up to the longest gap; a longer
/// wait is like any longer one.
fn waits(step: f64, longest: f64) -> Vec<f64> {
    let classes = (0..).map(|class| step * NO_WAIT * 2_f64.powi(class));
    let mut waits = vec![0.0];
    waits.extend(classes.take_while(|wait| *wait < longest));
    waits.push(longest.max(step * NO_WAIT));
    waits
}

impl NoiseRun {
    /// Returns the time in which work went on.
    fn work_ns(&self) -> f64 {
        self.length_ns - self.gaps.iter().map(|gap| gap.1).sum::<f64>()
    }

    /// Returns the distribution of a step's delay after each of the waits.
    fn delays(&self, step: f64, waits: &[f64]) -> Vec<Bins> {
        let work = self.work_ns();
        // Twice around the ring, by the work done before each gap.
        let (mut at, mut taken, mut lost) = (Vec::new(), vec![0.0], 0.0);
        for round in [0.0, work] {
            let mut before = 0.0;
            for (start, length) in &self.gaps {
                at.push(start - before + round);
                before += length;
                lost += length;
                taken.push(lost);
            }
        }
        let place = |at: Option<&f64>| at.copied().unwrap_or(f64::INFINITY);
        let mut bins = Bins::default();
        let (mut from, mut first, mut end) = (0.0, 0, at.partition_point(|at| *at < step));
        while from < work {
            let (leaves, enters) = (place(at.get(first)), place(at.get(end)) - step);
            let to = leaves.min(enters).clamp(from, work);
            bins.add(taken[end] - taken[first], to - from);
            first += usize::from(leaves <= to);
            end += usize::from(enters <= to);
            from = to;
        }
        let mut all = vec![Bins::default(); waits.len()];
        all[0] = bins;
        let mut end = 0;
        for (number, (_, length)) in self.gaps.iter().enumerate() {
            while at[end] < at[number] + step {
                end += 1;
            }
            let after = taken[end] - taken[number + 1];
            // Each class adds to the one before what a longer wait may hide of the gap.
            let mut passed = 0.0;
            for (bins, wait) in all.iter_mut().zip(waits).skip(1) {
                let more = (wait * 2_f64.sqrt()).min(*length) - passed;
                let parts = (more / length * PARTS).ceil();
                for part in 0..parts as u32 {
                    let middle = passed + more * (f64::from(part) + 0.5) / parts;
                    bins.add(length - middle + after, more / parts);
                }
                passed += more;
            }
        }
        for wait in 1..all.len() {
            let (before, rest) = all.split_at_mut(wait);
            rest[0].merge(&before[wait - 1]);
        }
        all
    }
}

/// Delays in bins, 128 for each power of two: the weight of each, and the sum of its delays.
#[derive(Clone, Debug)]
struct Bins(Vec<[f64; 2]>);

impl Default for Bins {
    fn default() -> Self {
        Self(vec![[0.0; 2]; Self::of(u64::MAX) + 1])
    }
}

impl Bins {
    fn of(ns: u64) -> usize {
        let dropped = (u64::BITS - ns.leading_zeros()).saturating_sub(8);
        ((u64::from(dropped) << 7) + (ns >> dropped)) as usize
    }

    fn add(&mut self, delay: f64, weight: f64) {
        let [weights, sum] = &mut self.0[Self::of(delay as u64)];
        *weights += weight;
        *sum += weight * delay;
    }

    fn merge(&mut self, other: &Self) {
        for (own, [weight, sum]) in self.0.iter_mut().zip(&other.0) {
            *own = [own[0] + weight, own[1] + sum];
        }
    }
}

/// The probability of a delay beyond each bin, after each wait.
type Tails = Vec<Vec<f64>>;

/// Puts runs together, but for one, in the bins that hold a delay.
fn tails(runs: &[Vec<Bins>], held: &[usize], without: Option<usize>) -> Tails {
    let runs = || (0..).zip(runs).filter(|(run, _)| Some(*run) != without);
    let waits = runs().next().map_or(0, |(_, waits)| waits.len());
    let tail = |wait: usize| {
        let mut beyond = 0.0;
        let upto = held.iter().rev().map(|bin| {
            let own: f64 = runs().map(|(_, run)| run[wait].0[*bin][0]).sum();
            beyond += own;
            beyond - own
        });
        let upto: Vec<f64> = upto.collect();
        upto.iter().rev().map(|tail| tail / beyond).collect()
    };
    (0..waits).map(tail).collect()
}

/// The delays of ordinary and bad nodes.
struct Model<'a> {
    delays: &'a [f64],
    waits: &'a [f64],
    kinds: [Tails; 2],
    correlated: f64,
}

/// A number of nodes of a kind, and the class of their wait.
type Nodes = (usize, f64, usize);

impl Model<'_> {
    /// Returns the probability that no node has a delay beyond a bin. Where all have the same, it
    /// is after the first one's wait.
    fn none_beyond(&self, bin: usize, nodes: &[Nodes]) -> f64 {
        let (mut together, mut apart) = (1.0_f64, 0.0);
        for (kind, count, wait) in nodes.iter().filter(|nodes| nodes.1 > 0.0) {
            let tails = &self.kinds[*kind];
            together = together.min(1.0 - tails[nodes[0].2][bin]);
            apart += count * (-tails[*wait][bin]).ln_1p();
        }
        self.correlated * together + (1.0 - self.correlated) * apart.exp()
    }

    /// Returns the probability that the longest delay of nodes is in each bin.
    fn longest(&self, nodes: &[Nodes]) -> Vec<f64> {
        let mut before = 0.0;
        let chances = (0..self.delays.len()).map(|bin| {
            let upto = self.none_beyond(bin, nodes);
            upto - std::mem::replace(&mut before, upto)
        });
        chances.collect()
    }

    fn mean(&self, chances: &[f64]) -> f64 {
        let each = chances.iter().zip(self.delays);
        each.map(|(chance, delay)| chance * delay).sum()
    }

    /// Returns the mean of the longest delay over the steps of a program.
    fn step(&self, mut counts: [f64; 2]) -> f64 {
        // The node that did not wait is a bad one, if there is any.
        let slowest = usize::from(counts[1] > 0.0);
        counts[slowest] -= 1.0;
        let usual = self.mean(&self.longest(&[(0, 1.0, 0)]));
        let class = |delay: f64| {
            let is_longer = |wait: &f64| *wait <= delay - usual;
            self.waits.partition_point(is_longer).saturating_sub(1)
        };
        let classes: Vec<usize> = self.delays.iter().map(|delay| class(*delay)).collect();
        let after = (0..self.waits.len()).map(|wait| {
            let nodes = [
                (slowest, 1.0, 0),
                (0, counts[0], wait),
                (1, counts[1], wait),
            ];
            let chances = self.longest(&nodes);
            let mut next = vec![0.0; self.waits.len()];
            for (class, chance) in classes.iter().zip(&chances) {
                next[*class] += chance;
            }
            (next, self.mean(&chances))
        });
        let (steps, means): (Vec<_>, Vec<f64>) = after.unzip();
        let shares = settled(steps).into_iter();
        shares.zip(means).map(|(share, mean)| share * mean).sum()
    }

    /// Returns the delay that 99 % of the requests do not exceed.
    fn fan_out(&self, counts: [f64; 2]) -> f64 {
        let any_time = self.waits.len() - 1;
        let nodes = [(0, counts[0], any_time), (1, counts[1], any_time)];
        let mut bins = 0..self.delays.len();
        let bin = bins.find(|bin| self.none_beyond(*bin, &nodes) >= P99);
        bin.map_or(0.0, |bin| self.delays[bin])
    }
}

/// Returns the shares in which a Markov chain has its states after 2³⁰ steps.
fn settled(mut steps: Vec<Vec<f64>>) -> Vec<f64> {
    for _ in 0..30 {
        let square = steps.iter().map(|row| {
            let to = |state| {
                row.iter()
                    .zip(&steps)
                    .map(|(p, next)| p * next[state])
                    .sum()
            };
            let row: Vec<f64> = (0..row.len()).map(to).collect();
            let all: f64 = row.iter().sum();
            row.into_iter().map(|share| share / all).collect()
        });
        steps = square.collect();
    }
    steps.swap_remove(0)
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quanta_hold_all_that_was_lost_where_it_was_lost() {
        let run = NoiseRun {
            length_ns: 4.5e6,
            gaps: vec![(0.5e6, 0.25e6), (1.75e6, 1.5e6)],
        };
        assert_eq!(run.quanta(1e6, 9), [0.25, 0.25, 1.0, 0.25]);
        assert_eq!(run.quanta(1e6, 3), [0.25, 0.25, 1.0]);
    }

    const STEP: f64 = 1e6;
    const NODES: [u64; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

    fn program(noise: &[NoiseRun]) -> Program<'_> {
        Program {
            step_ns: STEP,
            correlated: 0.0,
            noise,
            bad: None,
        }
    }

    fn of(noise: &[NoiseRun], nodes: &[u64]) -> Vec<AtScale> {
        at_scale(&program(noise), nodes, Level::P95).unwrap()
    }

    fn exponential(rng: &mut Rng, mean: f64) -> f64 {
        -(1.0 - rng.f64()).ln() * mean
    }

    /// A run with a gap in each step: the step's delay.
    fn one_a_step(steps: usize, mut delay: impl FnMut() -> f64) -> NoiseRun {
        let mut length_ns = STEP / 2.0;
        let gaps = (0..steps).map(|_| {
            let gap = (length_ns, delay());
            length_ns += gap.1 + STEP;
            gap
        });
        let gaps = gaps.collect();
        length_ns -= STEP / 2.0;
        NoiseRun { length_ns, gaps }
    }

    /// A run of `steps` steps of work with gaps at random, `rate` of them a step.
    fn at_random(
        rng: &mut Rng,
        steps: f64,
        rate: f64,
        length: impl Fn(&mut Rng) -> f64,
    ) -> NoiseRun {
        let (mut work, mut lost, mut gaps) = (0.0, 0.0, Vec::new());
        loop {
            work += exponential(rng, STEP / rate);
            if work >= steps * STEP {
                let length_ns = steps * STEP + lost;
                return NoiseRun { length_ns, gaps };
            }
            let gap = (work + lost, length(rng));
            lost += gap.1;
            gaps.push(gap);
        }
    }

    #[test]
    fn constant_and_exponential_delays_have_their_closed_forms_up_to_a_million_nodes() {
        let runs = vec![one_a_step(1_000, || 5_000.0); 3];
        for point in of(&runs, &NODES) {
            assert!((point.slowdown.value - 0.005).abs() < 1e-12, "{point:?}");
            // All runs agree: nothing says how much another one may differ.
            let alike = Err(NoInterval::Alike { runs: 3 });
            assert!(point.slowdown.is_least || point.slowdown.interval == alike);
        }
        let mut rng = Rng::with_seed(7);
        let mut run = || one_a_step(1_300_000, || exponential(&mut rng, 1_000.0));
        let runs: Vec<NoiseRun> = (0..8).map(|_| run()).collect();
        for point in of(&runs, &NODES) {
            let harmonic: f64 = (1..=point.nodes).map(|k| 1.0 / k as f64).sum();
            let interval = point.slowdown.interval.unwrap();
            assert!(!point.slowdown.is_least, "{point:?}");
            let within = interval.low * 1e3..interval.high * 1e3;
            assert!(within.contains(&harmonic), "{harmonic}: {interval:?}");
            assert!(interval.high < interval.low * 1.2, "{interval:?}");
        }
    }

    #[test]
    fn rare_gaps_of_one_length_follow_the_chance_that_any_node_is_hit() {
        let mut rng = Rng::with_seed(1);
        let length = STEP / 1_000.0;
        let runs: Vec<NoiseRun> = (0..3)
            .map(|_| at_random(&mut rng, 200_000.0, 0.01, |_| length))
            .collect();
        let nodes = [1, 2, 16, 128, 1_024];
        for point in of(&runs, &nodes) {
            // Tsafrir: 1 − (1 − p)^N; two gaps in a step add a little.
            let hit = 1.0 - (-0.01 * point.nodes as f64).exp();
            let ratio = point.slowdown.value * 1_000.0 / hit;
            let most = if point.nodes < 1_000 { 1.1 } else { 1.3 };
            assert!((0.95..most).contains(&ratio), "{point:?}: {ratio}");
        }
    }

    /// Runs nodes in real time, whose noise goes on while they wait. Returns the slowdown.
    fn barriers(rng: &mut Rng, nodes: usize, rate: f64, length: f64) -> f64 {
        const STEPS: usize = 40_000;
        let mut next: Vec<f64> = (0..nodes).map(|_| exponential(rng, STEP / rate)).collect();
        let mut now = 0.0;
        for _ in 0..STEPS {
            let mut last = now;
            for begin in &mut next {
                let mut done = now;
                let mut work = STEP;
                // Gaps while it waited, of which one may go on.
                loop {
                    if *begin >= done + work {
                        done += work;
                        break;
                    }
                    work -= (*begin - done).max(0.0);
                    done = done.max(*begin + length);
                    *begin += length + exponential(rng, STEP / rate);
                }
                last = f64::max(last, done);
            }
            now = last;
        }
        now / STEPS as f64 / STEP - 1.0
    }

    #[test]
    fn nodes_in_real_time_take_as_long_as_it_says() {
        let mut rng = Rng::with_seed(3);
        // Gaps of a fifth of a step, and of twenty.
        for (rate, length) in [(0.01, 0.2), (0.001, 20.0)] {
            let length = length * STEP;
            let run = at_random(&mut rng, 3_000_000.0, rate, |_| length);
            let nodes = [8, 64, 256];
            for point in of(&[run], &nodes) {
                let real = barriers(&mut rng, point.nodes as usize, rate, length);
                let ratio = point.slowdown.value / real;
                assert!(
                    (0.85..1.2).contains(&ratio),
                    "{rate} {length} {point:?}: {real}"
                );
            }
        }
    }

    #[test]
    fn one_bad_node_of_a_hundred_costs_what_it_costs_alone() {
        let quiet = vec![one_a_step(2_000, || 1_000.0); 3];
        let loud = vec![one_a_step(2_000, || 500_000.0); 3];
        let program = Program {
            bad: Some((0.01, &loud)),
            ..program(&quiet)
        };
        let points = at_scale(&program, &[10, 100], Level::P95).unwrap();
        let [ten, hundred] = [0, 1].map(|at| points[at].slowdown.value);
        assert!((ten - 0.001).abs() < 1e-9, "{points:?}");
        assert!((hundred - 0.5).abs() < 0.01, "{points:?}");
    }

    #[test]
    fn a_run_that_is_too_short_gives_least_values_and_says_what_it_takes() {
        let mut rng = Rng::with_seed(5);
        let run = at_random(&mut rng, 20_000.0, 0.1, |rng| exponential(rng, 1_000.0));
        let points = of(&[run], &[1, 1_000, 10_000]);
        let least = |figure: fn(&AtScale) -> &Scaled| -> Vec<bool> {
            points.iter().map(|point| figure(point).is_least).collect()
        };
        assert_eq!(least(|point| &point.slowdown), [false, false, true]);
        assert_eq!(least(|point| &point.fan_out_p99_ns), [false, true, true]);
        let needed = points[2].slowdown.needed_ns / STEP;
        assert!((100_000.0..102_000.0).contains(&needed), "{needed}");
        let few = Err(NoInterval::TooFew { needed: 3, got: 1 });
        assert_eq!(points[0].slowdown.interval, few);
        let short = one_a_step(9, || 1.0);
        assert!(at_scale(&program(&[short]), &[1], Level::P95).is_err());
        assert!(at_scale(&program(&[]), &[1], Level::P95).is_err());
    }

    #[test]
    fn intervals_hold_the_true_slowdown() {
        let mut rng = Rng::with_seed(11);
        let nodes = [1, 16, 128];
        let mut held = [0; 3];
        let mut sample = |runs: usize, steps: f64| -> Vec<AtScale> {
            let mut run = || at_random(&mut rng, steps, 0.02, |rng| exponential(rng, 2e4));
            let runs: Vec<NoiseRun> = (0..runs).map(|_| run()).collect();
            of(&runs, &nodes)
        };
        let truth = sample(3, 1_000_000.0);
        const TRIES: u32 = 100;
        for _ in 0..TRIES {
            for ((held, truth), point) in held.iter_mut().zip(&truth).zip(sample(6, 2_000.0)) {
                let interval = point.slowdown.interval.unwrap();
                let within = interval.low..interval.high;
                *held += u32::from(within.contains(&truth.slowdown.value));
            }
        }
        assert!(
            held.iter().all(|held| (85..=100).contains(held)),
            "{held:?}"
        );
    }

    proptest! {
        #[test]
        fn more_nodes_take_longer_and_one_takes_what_the_run_lost(
            gaps in vec((1e3_f64..1e7, 1.0_f64..5e6), 1..60),
            correlated in 0.0_f64..1.0,
        ) {
            let mut length_ns = 0.0;
            let gaps = gaps.into_iter().map(|(work, length)| {
                let gap = (length_ns + work, length);
                length_ns += work + length;
                gap
            });
            let gaps = Vec::from_iter(gaps);
            let run = NoiseRun { length_ns: length_ns + 3e7, gaps };
            let lost = run.length_ns - run.work_ns();
            let runs = [run];
            let of = |correlated| {
                let program = Program { correlated, ..program(&runs) };
                at_scale(&program, &NODES, Level::P95).unwrap()
            };
            let points = of(correlated);
            let one = points[0].slowdown.value / (lost / runs[0].work_ns());
            prop_assert!((0.99..1.01).contains(&one), "{one}");
            for pair in points.windows(2) {
                let values = |of: fn(&AtScale) -> &Scaled| [0, 1].map(|at| of(&pair[at]).value);
                let [fewer, more] = values(|point| &point.slowdown);
                prop_assert!(fewer <= more * (1.0 + 1e-9), "{pair:?}");
                let [fewer, more] = values(|point| &point.fan_out_p99_ns);
                prop_assert!(fewer <= more, "{pair:?}");
            }
            for point in of(1.0) {
                prop_assert!((point.slowdown.value / points[0].slowdown.value - 1.0).abs() < 1e-9);
            }
        }
    }
}
