//! What one thread measured, as exports need it.

use tare_results::model::{Wakeup, WakeupSamples, WakeupThread};
use tare_stats::{Counts, Response, StatsError, missed_by};

/// Holds the latencies of one thread, whatever phases they were in.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    /// The thread and its sums.
    pub thread: WakeupThread,
    /// NUMA node of its CPU, if that is known.
    pub node: Option<u32>,
    /// Exact counts per latency in ns; those that had no room are in `thread.uncounted`.
    pub counts: Counts,
    /// The wake-ups that are known one by one, by their place among all wake-ups, rising.
    known: Vec<Known>,
    /// From which latency on all wake-ups are known, up to the last one in `known`.
    known_from_ns: Option<u64>,
}

/// Is a wake-up whose place among all is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    /// How many wake-ups were before it.
    cycle: u64,
    latency_ns: u64,
}

impl Latencies {
    /// Takes the latencies of these threads.
    ///
    /// # Errors
    ///
    /// [`StatsError::CountOverflow`] if the counts add up to more than 2^64 − 1.
    pub fn of_threads(
        threads: &[WakeupThread],
        samples: &WakeupSamples,
    ) -> Result<Vec<Self>, StatsError> {
        let of = |thread| Self::of(thread, samples);
        threads.iter().map(of).collect()
    }

    fn of(thread: &WakeupThread, samples: &WakeupSamples) -> Result<Self, StatsError> {
        let own = samples
            .counts
            .iter()
            .filter(|row| row.thread == thread.number);
        let counts = Counts::from_pairs(own.map(|row| (row.latency_ns, row.count)))?;
        let (known, known_from_ns) = known(thread, samples);
        Ok(Self {
            thread: thread.clone(),
            node: None,
            counts,
            known,
            known_from_ns,
        })
    }

    /// Returns the response latencies in place of the service latencies: one for each activation, missed ones
    /// included.
    ///
    /// What had no room among the counts stays as it is: nothing is known of it but a sum.
    ///
    /// # Errors
    ///
    /// As [`Response::new`].
    pub fn response(&self) -> Result<Self, StatsError> {
        let counts = Response::new(&self.counts, self.thread.interval_ns)?.expand()?;
        let uncounted = self.thread.uncounted_ns;
        let thread = WakeupThread {
            woken: counts.total().saturating_add(self.thread.uncounted),
            missed: 0,
            min_ns: counts
                .min()
                .map_or(self.thread.min_ns, |min| min.min(self.thread.min_ns)),
            sum_ns: u64::try_from(counts.sum())
                .unwrap_or(u64::MAX)
                .saturating_add(uncounted),
            ..self.thread.clone()
        };
        Ok(Self {
            thread,
            counts,
            known: Vec::new(),
            known_from_ns: None,
            ..self.clone()
        })
    }

    /// Returns the numbers of the first wake-ups at or above `limit_ns`, `most` at most, counted from 0.
    ///
    /// They are fewer than there are where wake-ups were not kept one by one.
    pub fn first_above(&self, limit_ns: u64, most: usize) -> Vec<u64> {
        if self.known_from_ns.is_none_or(|from| from > limit_ns) {
            return Vec::new();
        }
        let above = self
            .known
            .iter()
            .filter(|known| known.latency_ns >= limit_ns);
        above.map(|known| known.cycle).take(most).collect()
    }
}

/// Finds the places of wake-ups among all: from those kept as they were, else from the list of long ones.
///
/// The list has the number of each activation, and it has every wake-up that missed some if it
/// starts at the interval: a wake-up's place is then its activation less what was missed before.
fn known(thread: &WakeupThread, samples: &WakeupSamples) -> (Vec<Known>, Option<u64>) {
    let own = |list: &'_ [Wakeup]| -> Vec<Wakeup> {
        let own = list.iter().filter(|row| row.thread == thread.number);
        own.copied().collect()
    };
    if thread.raw_kept == thread.woken && thread.woken > 0 {
        let raw = (0..).zip(own(&samples.raw));
        let known = raw.map(|(cycle, row)| Known {
            cycle,
            latency_ns: row.latency_ns,
        });
        return (known.collect(), Some(0));
    }
    // The latency of an interval exactly misses nothing.
    if thread.threshold_ns > thread.interval_ns.saturating_add(1) {
        return (Vec::new(), None);
    }
    let mut missed = 0_u64;
    let known = own(&samples.peaks).into_iter().map(|row| {
        let cycle = row.activation.saturating_sub(missed);
        missed = missed.saturating_add(missed_by(row.latency_ns, thread.interval_ns));
        Known {
            cycle,
            latency_ns: row.latency_ns,
        }
    });
    (known.collect(), Some(thread.threshold_ns))
}
