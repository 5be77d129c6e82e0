//! The bench of a primitive: repeats it, stamps it, and stores the results.
//!
//! It distinguishes two costs. The *intrinsic* cost is that of an undisturbed primitive: the
//! difference between the least times of `n` and of `2n` repetitions, divided by `n`. The cost of
//! the stamps and of the loop cancels out, and so does any disturbance that spares some rounds. The
//! *experienced* cost is the time of each single repetition between two stamps: all samples are
//! stored, including those with interruptions and cache misses.

use core::fmt::{self, Write};
use core::hint::black_box;

use heapless::String;
use tare_workloads::timing::{Fenced, Timing};

/// The maximum length of labels.
const LABELS: usize = 64;
/// The maximum length of a reason.
const WHY: usize = 240;
/// The greatest number of results of a primitive, for example of a grid of sizes and strides.
pub const MOST_RESULTS: usize = 512;
/// The greatest number of samples of a primitive.
pub const MOST_SAMPLES: usize = 1 << 18;
/// The number of samples at which a series ends: p99.9 needs ten beyond it.
const ENOUGH: usize = 10_000;
/// The number of samples wanted from slow operations, beyond the budget: p99 needs ten beyond it.
const WANTED: usize = 1_000;
/// The greatest number of budgets that a series may take to get them.
const PATIENCE: u64 = 4;
/// The minimum number of rounds of `n` and `2n`.
const LEAST_ROUNDS: u64 = 5;
/// A round of `n` takes at least this fraction (1/n) of a budget: short enough to escape
/// interruptions, long enough that the timer's step does not matter.
const ROUNDS: u64 = 500;

/// Why a primitive could not be measured: the failure and its remedy.
pub type Why = String<WHY>;

/// Formats a reason.
pub fn why(reason: impl fmt::Display) -> Why {
    let mut why = Why::new();
    // Longer texts are truncated.
    let _ = write!(why, "{reason}");
    why
}

/// The measure of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Of {
    /// The intrinsic cost of one operation.
    #[default]
    Cost,
    /// The mean cost of one among many consecutive operations, without stamps in between.
    Mean,
    /// The times of single operations.
    Time,
    /// The times of passes over a number of bytes.
    Pass,
    /// The number of bytes of a pass.
    Bytes,
    /// A fraction, from 0 to 1.
    Share,
    /// A number of occurrences.
    Number,
    /// The length of a cycle of the core clock, in TSC ticks, by a loop that takes one cycle per
    /// iteration.
    Clock,
}

impl Of {
    /// Returns the name of the measure and its unit.
    pub fn named(self) -> (&'static str, &'static str) {
        match self {
            Self::Cost => ("cost", "cycles"),
            Self::Mean => ("mean", "cycles"),
            Self::Time => ("time", ""),
            Self::Pass => ("pass", ""),
            Self::Bytes => ("bytes", "bytes"),
            Self::Share => ("share", "1"),
            Self::Number => ("number", ""),
            Self::Clock => ("clock", "cycles"),
        }
    }
}

/// The cost of an operation that was repeated many times in a row, in ticks.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The intrinsic cost, without stamps and loop.
    pub cost: f64,
    /// The mean of all operations.
    pub mean: f64,
    /// The mean of the shortest block, with its stamps.
    pub least: f64,
}

/// A function that does a number of units and returns the ticks they took.
pub type Units<'a> = &'a mut dyn FnMut(u64) -> u64;

/// The rounds of an operation: `n` and `2n` units each.
struct Turns<'a> {
    run: Units<'a>,
    units: u64,
    operations: u64,
    /// The least times of both, and the sum of all, in ticks.
    one: u64,
    two: u64,
    all: u64,
}

impl<'a> Turns<'a> {
    /// Chooses `n` so that it takes at least `short` ticks.
    fn new(operations: u64, run: Units<'a>, short: u64) -> Self {
        let mut units = 1;
        while run(units) < short && units < 1 << 40 {
            units *= 2;
        }
        Self {
            run,
            units,
            operations,
            one: u64::MAX,
            two: u64::MAX,
            all: 0,
        }
    }

    fn take(&mut self) {
        let (one, two) = ((self.run)(self.units), (self.run)(2 * self.units));
        (self.one, self.two) = (self.one.min(one), self.two.min(two));
        self.all = self.all.saturating_add(one).saturating_add(two);
    }

    fn measured(self, rounds: u64) -> Measured {
        let per_turn = (self.units * self.operations) as f64;
        let (one, two) = (self.one as f64, self.two as f64);
        Measured {
            cost: (two - one).max(0.0) / per_turn,
            mean: self.all as f64 / (3 * rounds) as f64 / per_turn,
            least: one.min(two / 2.0) / per_turn,
        }
    }
}

/// One result: a number, or samples.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Found {
    of: Of,
    labels: [u8; LABELS],
    length: u8,
    /// The number; 0 for samples.
    pub value: f64,
    from: u32,
    samples: u32,
    /// TSC before the first sample.
    pub first: u64,
    /// TSC after the last sample.
    pub last: u64,
}

impl Found {
    const NONE: Self = Self {
        of: Of::Cost,
        labels: [0; LABELS],
        length: 0,
        value: 0.0,
        from: 0,
        samples: 0,
        first: 0,
        last: 0,
    };

    /// Returns the measure.
    pub fn of(&self) -> Of {
        self.of
    }

    /// Returns whether it has no samples.
    pub(super) fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// Returns the labels that distinguish it from other results of the primitive:
    /// `size=4096 pages=4K`.
    pub fn labels(&self) -> &str {
        let bytes = self.labels.get(..usize::from(self.length));
        core::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
    }
}

/// The results of one primitive. It holds no pointers, so that another process can fill it in
/// shared memory.
#[derive(Debug)]
#[repr(C)]
pub struct Results {
    found: [Found; MOST_RESULTS],
    used: u32,
    kept: u32,
    samples: [u64; MOST_SAMPLES],
}

impl Results {
    /// Removes all results.
    pub fn clear(&mut self) {
        (self.used, self.kept) = (0, 0);
    }

    /// Returns the results.
    pub fn all(&self) -> &[Found] {
        &self.found[..MOST_RESULTS.min(self.used as usize)]
    }

    /// Sorts the samples of a result and returns them.
    pub fn sorted(&mut self, found: &Found) -> &[u64] {
        let (from, samples) = (found.from as usize, found.samples as usize);
        let samples = self.samples.get_mut(from..from.saturating_add(samples));
        let samples = samples.unwrap_or_default();
        samples.sort_unstable();
        samples
    }

    fn put(&mut self, of: Of, labels: impl fmt::Display) -> Option<&mut Found> {
        let found = self.found.get_mut(self.used as usize)?;
        let mut text = String::<LABELS>::new();
        // The labels are from this program, and short.
        let _ = write!(text, "{labels}");
        *found = Found::NONE;
        found.of = of;
        found.labels[..text.len()].copy_from_slice(text.as_bytes());
        found.length = text.len() as u8;
        self.used += 1;
        Some(found)
    }
}

// SAFETY: zero is a valid value of every field: plain numbers, and `Of::Cost`.
unsafe impl crate::arena::Zeroed for Results {}

/// The measurement of one primitive, which stores the results.
#[derive(Debug)]
pub struct Bench<'a> {
    results: &'a mut Results,
    /// The length of a series, in ticks of the TSC.
    budget: u64,
    /// The duration of an empty region between fenced stamps, in ticks.
    region: u64,
}

/// Empty labels.
pub const PLAIN: &str = "";

impl<'a> Bench<'a> {
    /// Starts without results.
    pub fn new(results: &'a mut Results, budget: u64, region: u64) -> Self {
        results.clear();
        Self {
            results,
            budget: budget.max(ROUNDS),
            region,
        }
    }

    /// Returns the length of a series, in ticks of the TSC.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// Returns the duration of an empty region between fenced stamps, in ticks.
    pub fn region(&self) -> u64 {
        self.region
    }

    /// Stores the results of `measure` if it succeeds, and none if it fails: a failing call is
    /// fast, and says nothing about one that works.
    ///
    /// # Errors
    ///
    /// Returns why it failed.
    pub fn whole(&mut self, measure: impl FnOnce(&mut Self) -> Result<(), Why>) -> Result<(), Why> {
        let before = (self.results.used, self.results.kept);
        let measured = measure(self);
        if measured.is_err() {
            (self.results.used, self.results.kept) = before;
        }
        measured
    }

    /// Stores a number.
    pub fn value(&mut self, of: Of, labels: impl fmt::Display, value: f64) {
        if let Some(found) = self.results.put(of, labels) {
            found.value = value;
        }
    }

    /// Measures the intrinsic cost of an operation. `run` does a number of units, of `operations`
    /// operations each, and returns the ticks they took. Never fails.
    pub fn cost(
        &mut self,
        labels: impl fmt::Display + Copy,
        operations: u64,
        run: impl FnMut(u64) -> u64,
    ) -> Result<(), Why> {
        self.cost_in(ROUNDS, labels, operations, run);
        Ok(())
    }

    /// Like [`Bench::cost`], with shorter rounds.
    pub fn cost_in(
        &mut self,
        rounds: u64,
        labels: impl fmt::Display + Copy,
        operations: u64,
        run: impl FnMut(u64) -> u64,
    ) {
        let measured = self.measured(1, rounds, operations, run);
        self.value(Of::Cost, labels, measured.cost);
        self.value(Of::Mean, labels, measured.mean);
    }

    /// Like [`Bench::cost_in`], but returns the result instead of storing it.
    pub fn measured(
        &mut self,
        share: u64,
        rounds: u64,
        operations: u64,
        mut run: impl FnMut(u64) -> u64,
    ) -> Measured {
        let [measured] = self.in_turns(share, rounds, [(operations, &mut run)]);
        measured
    }

    /// Measures several operations in alternation, so that costs that will be subtracted from each
    /// other were taken at the same clock frequency. Each comes with its number of operations per
    /// unit.
    pub fn in_turns<const N: usize>(
        &mut self,
        share: u64,
        rounds: u64,
        operations: [(u64, Units<'_>); N],
    ) -> [Measured; N] {
        let budget = self.budget / share;
        let short = budget / rounds;
        let mut turns = operations.map(|(operations, run)| Turns::new(operations, run, short));
        let mut rounds = 0_u64;
        let begin = Fenced::before();
        while rounds < LEAST_ROUNDS || Fenced::after().wrapping_sub(begin) < budget {
            turns.iter_mut().for_each(Turns::take);
            rounds += 1;
        }
        turns.map(|turns| turns.measured(rounds))
    }

    /// Measures the intrinsic and the experienced cost of an operation that can be repeated.
    /// Never fails.
    pub fn each<T>(
        &mut self,
        labels: impl fmt::Display + Copy,
        mut operation: impl FnMut() -> T,
    ) -> Result<(), Why> {
        self.cost(labels, 1, |units| {
            let begin = Fenced::before();
            for _ in 0..units {
                black_box(operation());
            }
            Fenced::after().wrapping_sub(begin)
        })?;
        let timed = || {
            let begin = Fenced::before();
            black_box(operation());
            Ok(Fenced::after().wrapping_sub(begin))
        };
        self.timed(labels, timed).map(drop)
    }

    /// Stores the times of single operations. Each returns the ticks between two fenced stamps,
    /// from which the duration of an empty region is subtracted. Returns the minimum.
    ///
    /// # Errors
    ///
    /// Returns why one failed.
    pub fn timed(
        &mut self,
        labels: impl fmt::Display,
        mut operation: impl FnMut() -> Result<u64, Why>,
    ) -> Result<u64, Why> {
        let region = self.region;
        let net = || Ok(operation()?.saturating_sub(region));
        self.series(Of::Time, labels, net)
    }

    /// Like [`Bench::timed`], and stores the minimum as the intrinsic cost, for operations that
    /// can't be done many times in a row.
    ///
    /// # Errors
    ///
    /// Returns why one failed.
    pub fn single(
        &mut self,
        labels: impl fmt::Display + Copy,
        operation: impl FnMut() -> Result<u64, Why>,
    ) -> Result<(), Why> {
        let least = self.timed(labels, operation)?;
        self.value(Of::Cost, labels, least as f64);
        Ok(())
    }

    /// Measures passes over a number of bytes, each of which returns its ticks.
    ///
    /// # Errors
    ///
    /// Returns why one failed.
    pub fn passes(
        &mut self,
        labels: impl fmt::Display + Copy,
        bytes: u64,
        pass: impl FnMut() -> Result<u64, Why>,
    ) -> Result<(), Why> {
        self.series(Of::Pass, labels, pass)?;
        self.value(Of::Bytes, labels, bytes as f64);
        Ok(())
    }

    /// Stores the ticks that single operations return, and returns the minimum.
    ///
    /// # Errors
    ///
    /// Returns why one failed.
    pub fn series(
        &mut self,
        of: Of,
        labels: impl fmt::Display,
        mut operation: impl FnMut() -> Result<u64, Why>,
    ) -> Result<u64, Why> {
        // Warms up caches and mappings.
        operation()?;
        let first = Fenced::before();
        let (wanted, enough) = (PATIENCE * self.budget, self.budget);
        let mut samples = 0;
        let mut failed = None;
        let least = self.keep(of, labels, || {
            let spent = Fenced::after().wrapping_sub(first);
            let budget = if samples < WANTED { wanted } else { enough };
            let is_done = spent >= budget && samples as u64 >= LEAST_ROUNDS;
            if is_done || samples == ENOUGH {
                return None;
            }
            samples += 1;
            operation().map_err(|why| failed = Some(why)).ok()
        });
        failed.map_or(Ok(least), Err)
    }

    /// Stores samples until there are no more, and returns the minimum.
    pub fn keep(
        &mut self,
        of: Of,
        labels: impl fmt::Display,
        mut next: impl FnMut() -> Option<u64>,
    ) -> u64 {
        let from = self.results.kept as usize;
        let first = Fenced::before();
        let (mut samples, mut least) = (0, u64::MAX);
        while let Some(room) = self.results.samples.get_mut(from + samples) {
            let Some(ticks) = next() else {
                break;
            };
            *room = ticks;
            least = least.min(ticks);
            samples += 1;
        }
        let last = Fenced::after();
        self.results.kept += samples as u32;
        if let Some(found) = self.results.put(of, labels) {
            (found.from, found.samples) = (from as u32, samples as u32);
            (found.first, found.last) = (first, last);
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use super::*;

    fn results() -> Box<Results> {
        // SAFETY: zero is a valid value.
        unsafe { Box::<Results>::new_zeroed().assume_init() }
    }

    #[test]
    fn the_cost_is_what_one_more_takes_whatever_stands_around_it() {
        let mut results = results();
        let mut bench = Bench::new(&mut results, 100_000, 50);
        let mut disturbed = 0_u64;
        let _ = bench.cost("a=1", 4, |units| {
            disturbed += 1;
            let noise = if disturbed.is_multiple_of(3) {
                100_000
            } else {
                0
            };
            1_000 + units * 12 + noise
        });
        let found = bench.results.all();
        assert_eq!((found[0].of(), found[0].value), (Of::Cost, 3.0));
        assert_eq!(found[0].labels(), "a=1");
        assert_eq!(found[1].of(), Of::Mean);
        assert!(found[1].value > 3.0);
    }

    #[test]
    fn a_clock_that_changes_its_speed_meets_all_that_take_turns() {
        let mut results = results();
        let mut bench = Bench::new(&mut results, 100_000, 50);
        let turn = core::cell::Cell::new(0_u64);
        let slow = |ticks: u64| {
            turn.set(turn.get() + 1);
            // Fast for a while only.
            ticks * if (8..16).contains(&turn.get()) { 1 } else { 2 }
        };
        let [more, less] = bench.in_turns(
            1,
            1_000,
            [
                (1, &mut |units| slow(units * 30)),
                (2, &mut |units| slow(units * 20)),
            ],
        );
        assert_eq!((more.cost, less.cost), (30.0, 10.0));
    }

    #[test]
    fn what_tells_its_own_time_costs_the_least_of_them_without_an_empty_region() {
        let mut results = results();
        let mut bench = Bench::new(&mut results, 1_000_000, 50);
        let mut next = 0;
        let timed = bench.single(PLAIN, || {
            next += 1;
            Ok(100 + next % 7)
        });
        assert_eq!(timed, Ok(()));
        let found: std::vec::Vec<Found> = bench.results.all().to_vec();
        assert_eq!((found[0].of(), found[1].value), (Of::Time, 50.0));
        let samples = results.sorted(&found[0]);
        assert!(samples.len() >= 5 && samples[0] == 50 && samples.is_sorted());
        let mut bench = Bench::new(&mut results, 1_000_000, 50);
        let failed = bench.single(PLAIN, || Err(why("no such thing")));
        assert_eq!(failed.unwrap_err(), "no such thing");
    }

    #[test]
    fn nothing_is_kept_of_what_fails() {
        let mut results = results();
        let mut bench = Bench::new(&mut results, 100_000, 0);
        bench.value(Of::Number, "before", 1.0);
        let failed = bench.whole(|bench| {
            bench.cost(PLAIN, 1, |units| units * 10)?;
            bench.timed(PLAIN, || Ok(10))?;
            Err(why("it no longer answers"))
        });
        assert_eq!(failed.unwrap_err(), "it no longer answers");
        assert_eq!(bench.whole(|bench| bench.single(PLAIN, || Ok(10))), Ok(()));
        let labels: std::vec::Vec<(Of, u32)> = results
            .all()
            .iter()
            .map(|found| (found.of(), found.from))
            .collect();
        assert_eq!(labels, [(Of::Number, 0), (Of::Time, 0), (Of::Cost, 0)]);
    }

    #[test]
    fn results_beyond_what_can_be_kept_are_not_kept() {
        let mut results = results();
        let mut bench = Bench::new(&mut results, 1_000, 0);
        for number in 0..MOST_RESULTS + 10 {
            bench.value(Of::Number, number, number as f64);
        }
        assert_eq!(results.all().len(), MOST_RESULTS);
    }
}
