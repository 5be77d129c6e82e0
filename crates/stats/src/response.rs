//! Response latency: how late every activation was, those without a wake-up included.
//!
//! A thread that wakes up once in each interval `I` and runs a time `L` later than planned has by
//! then missed the activations planned `I`, `2·I`, … after that one, as far as `k·I < L`. They have
//! no wake-up, hence no *service* latency; a tool that keeps one latency for each wake-up counts a
//! stall of a hundred intervals once ("coordinated omission"). Work that was due at those times was
//! done at this very wake-up, so its *response* latency is known exactly: `L − I`, `L − 2·I`, …
//! Nothing is estimated here.
//!
//! The figures are computed from the service latencies without listing the missed activations: each
//! costs a pass over the distinct values, however long the longest stall is.
//!
//! A wake-up's missed activations count where the wake-up counts: in the phase in which it was
//! planned. If the very last one of a measurement is late, this includes those that would have been
//! due until it ran.

use crate::counts::Counts;
use crate::error::StatsError;
use crate::moments::Moments;
use crate::quantile::{Quantile, QuantileEstimate};
use crate::tally::Tally;

/// Returns how many activations a wake-up missed that ran `latency` after its planned time: ⌈L ∕ I⌉
/// − 1.
///
/// An activation that is due at the very moment of the wake-up is not missed. Both are in one unit.
/// An interval of 0 misses none.
pub fn missed_by(latency: u64, interval: u64) -> u64 {
    match latency.checked_sub(1) {
        Some(before) => before.checked_div(interval).unwrap_or(0),
        None => 0,
    }
}

/// Derives the response latencies of threads from their service latencies.
#[derive(Clone, Debug)]
pub struct Response<'a> {
    /// Threads of one interval each, or several that share one.
    parts: Vec<(&'a Counts, u64)>,
    tally: Tally,
    woken: u64,
}

impl<'a> Response<'a> {
    /// Takes the service latencies of threads of one interval, both in the same unit.
    ///
    /// # Errors
    ///
    /// [`StatsError::Interval`] for an interval of 0, [`StatsError::CountOverflow`] if there would
    /// be more than 2^64 − 1 activations.
    pub fn new(service: &'a Counts, interval: u64) -> Result<Self, StatsError> {
        Self::of([(service, interval)])
    }

    /// Takes the service latencies of several threads, each with its interval.
    ///
    /// # Errors
    ///
    /// As [`Response::new`].
    pub fn of(parts: impl IntoIterator<Item = (&'a Counts, u64)>) -> Result<Self, StatsError> {
        let mut made = Self {
            parts: Vec::new(),
            tally: Tally::default(),
            woken: 0,
        };
        for (service, interval) in parts {
            if interval == 0 {
                return Err(StatsError::Interval);
            }
            for (latency, count) in service.iter() {
                made.add(latency, count, interval)?;
            }
            made.parts.push((service, interval));
        }
        Ok(made)
    }

    /// Returns the number of activations: wake-ups and missed ones.
    pub fn total(&self) -> u64 {
        self.tally.count
    }

    /// Returns the number of missed activations.
    pub fn missed(&self) -> u64 {
        self.tally.count - self.woken
    }

    /// Returns number and sum of all response latencies.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the mean, or `None` without wake-ups.
    pub fn mean(&self) -> Option<f64> {
        self.tally.mean()
    }

    /// Returns the shortest response, or `None` without wake-ups.
    ///
    /// A long stall ends in the midst of an interval, so it may be below every service latency.
    pub fn min(&self) -> Option<u64> {
        self.rows()
            .map(|(latency, _, interval)| latency - missed_by(latency, interval) * interval)
            .min()
    }

    /// Returns the longest response, which is the longest service latency, or `None` without
    /// wake-ups.
    pub fn max(&self) -> Option<u64> {
        let parts = self.parts.iter();
        parts.filter_map(|(service, _)| service.max()).max()
    }

    /// Returns number, mean and standard deviation of the population, or `None` without wake-ups.
    ///
    /// A wake-up of latency `L` gives `n` values in steps of the interval `I`: their squared
    /// distances from the mean are `n·(L − I·(n − 1)/2 − mean)² + I²·n·(n² − 1)/12` together, a sum
    /// without cancellation.
    pub fn moments(&self) -> Option<Moments> {
        let mean = self.mean()?;
        let squares = self
            .rows()
            .map(|(latency, count, interval)| {
                let (n, step) = (missed_by(latency, interval) as f64 + 1.0, interval as f64);
                let from_mean = latency as f64 - step * (n - 1.0) / 2.0 - mean;
                let within = step * step * (n * n - 1.0) / 12.0;
                count as f64 * n * (from_mean * from_mean + within)
            })
            .sum::<f64>();
        Some(Moments {
            count: self.total(),
            mean,
            population_sd: (squares / self.total() as f64).sqrt(),
        })
    }

    /// Returns how many responses are longer than `bound`.
    pub fn count_above(&self, bound: u64) -> u64 {
        let parts = self.parts.iter();
        let above = parts.flat_map(|&(service, interval)| {
            let above = service.iter().rev();
            above
                .take_while(move |&(latency, _)| latency > bound)
                .map(move |(latency, count)| count * (latency - bound).div_ceil(interval))
        });
        above.sum()
    }

    /// Returns a quantile by nearest rank, as [`Counts::quantile`] does, or `None` without
    /// wake-ups.
    ///
    /// It is found by halving the range of values 64 times at most, and is always a response that
    /// occurred.
    pub fn quantile(&self, quantile: Quantile) -> Option<u64> {
        let rank = quantile.rank(self.total());
        let (mut low, mut high) = (0, self.max()?);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.total() - self.count_above(middle) >= rank {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(low)
    }

    /// Returns a quantile if enough responses lie beyond it, and else how many it needs.
    ///
    /// Responses of one stall are not independent; an interval over blocks says more than their
    /// number.
    pub fn supported_quantile(&self, quantile: Quantile) -> QuantileEstimate {
        QuantileEstimate::of(quantile, self.total(), || self.quantile(quantile))
    }

    /// Lists the response latencies themselves, for a picture or an export.
    ///
    /// Here alone the cost is that of what comes out: up to `L ∕ I` values for a stall of length
    /// `L`.
    ///
    /// # Errors
    ///
    /// None beyond those of [`Response::new`].
    pub fn expand(&self) -> Result<Counts, StatsError> {
        let mut values = Vec::new();
        for (service, interval) in &self.parts {
            expand_into(&mut values, service, *interval);
        }
        Counts::from_pairs(values)
    }

    /// Iterates over latency, count and interval.
    fn rows(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.parts.iter().flat_map(|&(service, interval)| {
            let rows = service.iter();
            rows.map(move |(latency, count)| (latency, count, interval))
        })
    }

    fn add(&mut self, latency: u64, count: u64, interval: u64) -> Result<(), StatsError> {
        let overflow = StatsError::CountOverflow { value: latency };
        let missed = u128::from(missed_by(latency, interval));
        let activations = u128::from(count) * (missed + 1);
        let total = u128::from(self.tally.count) + activations;
        self.tally.count = u64::try_from(total).map_err(|_| overflow)?;
        // Fits: there are less than 2^64 activations, each less than 2^64 late; and `missed`
        // intervals are less than the latency, so one wake-up's sum is its latency times (missed +
        // 1), less something smaller than that.
        let skipped = u128::from(interval) * (missed * (missed + 1) / 2);
        let one = u128::from(latency) * (missed + 1) - skipped;
        self.tally.sum += one * u128::from(count);
        self.woken += count;
        Ok(())
    }
}

/// Appends the responses, each value once.
///
/// Latencies that differ by whole intervals share their shorter responses. Sorted by what is left
/// over of an interval and walked from the longest down, each value is met once, with the count of
/// all above it.
fn expand_into(values: &mut Vec<(u64, u64)>, service: &Counts, interval: u64) {
    let mut chains: Vec<(u64, u64)> = service.iter().collect();
    chains.sort_unstable_by_key(|&(latency, _)| (latency % interval, latency));
    for chain in chains.chunk_by(|a, b| a.0 % interval == b.0 % interval) {
        let mut shorter = chain.iter().rev().peekable();
        let mut counted = 0;
        while let Some(&(from, count)) = shorter.next() {
            // An activation planned at the moment of a wake-up was not missed by it.
            counted = if from == 0 { count } else { counted + count };
            let next = shorter.peek().map_or(0, |&&(latency, _)| latency);
            let mut value = from;
            loop {
                values.push((value, counted));
                if value <= interval || value - interval <= next {
                    break;
                }
                value -= interval;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use proptest::prelude::*;

    use super::*;

    /// Runs a thread by the clock: wakes up, does what is due, sleeps until the next planned time.
    fn simulate(latencies: &[u64], interval: u64) -> Counts {
        let mut responses = Vec::new();
        let mut planned = 0;
        for &latency in latencies {
            let now = planned + latency;
            let due = iter::successors(Some(planned), |time| Some(time + interval));
            let done: Vec<u64> = due
                .take_while(|&time| time == planned || time < now)
                .collect();
            responses.extend(done.iter().map(|time| now - time));
            planned += done.len() as u64 * interval;
        }
        Counts::from_samples(responses)
    }

    fn latencies() -> impl Strategy<Value = Vec<u64>> {
        // Few values of few intervals, so that chains meet, and some long stalls.
        prop::collection::vec(prop_oneof![0_u64..40, 0_u64..4, 0_u64..2_000], 1..60)
    }

    proptest! {
        #[test]
        fn a_thread_that_runs_by_the_clock_has_these_responses(
            latencies in latencies(),
            interval in 1_u64..50,
        ) {
            let service = Counts::from_samples(latencies.clone());
            let response = Response::new(&service, interval).unwrap();
            let naive = simulate(&latencies, interval);
            prop_assert_eq!(&response.expand().unwrap(), &naive);
            prop_assert_eq!(response.tally(), naive.tally());
            prop_assert_eq!(response.missed(), naive.total() - service.total());
            prop_assert_eq!((response.min(), response.max()), (naive.min(), naive.max()));
            for bound in [0, 1, interval, 39, 1_000, 5_000] {
                prop_assert_eq!(response.count_above(bound), naive.count_above(bound));
            }
            for quantile in [Quantile::MEDIAN, Quantile::P99, Quantile::P99_9, Quantile::P99_99] {
                prop_assert_eq!(response.quantile(quantile), naive.quantile(quantile));
                let supported = naive.supported_quantile(quantile);
                prop_assert_eq!(response.supported_quantile(quantile), supported);
            }
            let (ours, exact) = (response.moments().unwrap(), naive.moments().unwrap());
            prop_assert_eq!((ours.count, ours.mean), (exact.count, exact.mean));
            prop_assert!((ours.population_sd - exact.population_sd).abs() < 1e-9 * (1.0 + exact.population_sd));
        }

        #[test]
        fn threads_of_different_intervals_are_added_up(a in latencies(), b in latencies()) {
            let (one, two) = (Counts::from_samples(a.clone()), Counts::from_samples(b.clone()));
            let both = Response::of([(&one, 7), (&two, 30)]).unwrap();
            let naive = simulate(&a, 7).merge(&simulate(&b, 30)).unwrap();
            prop_assert_eq!(&both.expand().unwrap(), &naive);
            prop_assert_eq!(both.tally(), naive.tally());
            prop_assert_eq!(both.quantile(Quantile::P99), naive.quantile(Quantile::P99));
        }
    }

    #[test]
    fn a_stall_of_ten_milliseconds_at_a_hundred_microseconds_is_seen_in_full() {
        let service = Counts::from_pairs([(5_000, 9_900), (10_000_000, 1)]).unwrap();
        let response = Response::new(&service, 100_000).unwrap();
        assert_eq!((response.missed(), response.total()), (99, 10_000));
        assert_eq!(response.count_above(9_899_999), 2);
        // One wake-up in 9,901 is late, but a hundred activations in 10,000 are.
        assert_eq!(service.quantile(Quantile::P99_9), Some(5_000));
        assert_eq!(response.quantile(Quantile::P99), Some(5_000));
        assert_eq!(response.quantile(Quantile::P99_9), Some(9_000_000));
    }

    #[test]
    fn what_is_due_at_the_moment_of_the_wake_up_is_not_missed() {
        assert_eq!(
            [0, 1, 100, 101, 200, 201].map(|l| missed_by(l, 100)),
            [0, 0, 0, 1, 1, 2]
        );
        assert_eq!(missed_by(5, 0), 0);
        let service = Counts::from_samples(vec![0, 100, 200]);
        let expanded = Response::new(&service, 100).unwrap().expand().unwrap();
        assert_eq!(expanded.pairs(), [(0, 1), (100, 2), (200, 1)]);
    }

    #[test]
    fn a_stall_of_a_century_costs_no_more_than_another() {
        let century = 100 * 365 * 86_400 * 1_000_000_000;
        let service = Counts::from_pairs([(5_000, 10), (century, 1)]).unwrap();
        let response = Response::new(&service, 1_000).unwrap();
        assert_eq!(response.missed(), 10 * 4 + century / 1_000 - 1);
        assert_eq!(
            response.quantile(Quantile::MEDIAN),
            Some(century / 2 - 25_000)
        );
    }

    #[test]
    fn nothing_has_no_figures_and_impossible_input_is_refused() {
        let nothing = Counts::default();
        let response = Response::new(&nothing, 100).unwrap();
        assert_eq!(
            (response.total(), response.min(), response.max()),
            (0, None, None)
        );
        assert_eq!(
            (response.mean(), response.quantile(Quantile::MEDIAN)),
            (None, None)
        );
        assert!(response.moments().is_none() && response.expand().unwrap().is_empty());
        let many = Counts::from_pairs([(u64::MAX, 2)]).unwrap();
        assert_eq!(Response::new(&many, 0).unwrap_err(), StatsError::Interval);
        let overflow = StatsError::CountOverflow { value: u64::MAX };
        assert_eq!(Response::new(&many, 1).unwrap_err(), overflow);
        assert_eq!(Response::new(&many, u64::MAX).unwrap().total(), 2);
    }
}
