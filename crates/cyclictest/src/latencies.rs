//! What one thread measured, as exports need it.

use tare_results::model::{Event, Labels, Record, Samples};
use tare_stats::{Counts, Response, StatsError, missed_by};

/// A thread with the sums of its wake-ups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Number of the thread, from 0.
    pub number: u32,
    /// Its id in the kernel; 0 where there is none.
    pub tid: u32,
    /// CPU that it was pinned to.
    pub cpu: Option<u32>,
    /// Its real-time priority, or 0.
    pub priority: u32,
    /// Time between two activations.
    pub interval_ns: u64,
    /// When its first activation was due.
    pub origin_ns: u64,
    /// Wake-ups: each has one latency.
    pub woken: u64,
    /// Activations that were due before the thread had run for the one before.
    pub missed: u64,
    /// Least latency.
    pub min_ns: u64,
    /// Greatest latency.
    pub max_ns: u64,
    /// Wake-ups that are in no count, because there was no room for another value.
    pub uncounted: u64,
    /// Sum of their latencies.
    pub uncounted_ns: u64,
    /// Whether that is only the least that it can be.
    pub sum_at_least: bool,
    /// Least latency that one of them can have.
    pub uncounted_min_ns: u64,
    /// Greatest of their latencies.
    pub uncounted_max_ns: u64,
    /// Least latency that is among the events.
    pub threshold_ns: u64,
}

/// The latencies of one thread, whatever phases they were in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latencies {
    /// The thread and its sums.
    pub thread: Thread,
    /// NUMA node of its CPU, if that is known.
    pub node: Option<u32>,
    /// Exact counts per latency in ns; those that had no room are in `thread.uncounted`.
    pub counts: Counts,
    /// The wake-ups at or above the threshold, in order of time.
    pub events: Vec<Event>,
    /// The first wake-ups as they were, in order of time.
    pub raw: Vec<Event>,
    /// The wake-ups that are known one by one, by their place among all wake-ups, rising.
    known: Vec<Known>,
    /// From which latency on all wake-ups are known, up to the last one in `known`.
    known_from_ns: Option<u64>,
}

/// A wake-up whose place among all is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    /// How many wake-ups were before it.
    cycle: u64,
    latency_ns: u64,
}

impl Latencies {
    /// Takes the latencies of each thread of a cell.
    ///
    /// # Errors
    ///
    /// [`StatsError::CountOverflow`] if the counts add up to more than 2^64 − 1.
    pub fn of_cell(record: &Record, samples: &Samples) -> Result<Vec<Self>, StatsError> {
        let mut all: Vec<Self> = Vec::new();
        for (head, set) in record.sets.iter().zip(&samples.sets) {
            let number = head.labels.number("thread").unwrap_or(0) as u32;
            let place = match all.iter().position(|of| of.thread.number == number) {
                Some(place) => place,
                None => {
                    all.push(Self {
                        thread: Thread::new(record, number),
                        ..Self::default()
                    });
                    all.len() - 1
                }
            };
            let of = &mut all[place];
            let rows = set.counts.iter().map(|row| (row.value, row.count));
            of.counts = of.counts.merge(&Counts::from_pairs(rows)?)?;
            of.events.extend(&set.events);
            of.raw.extend(&set.raw);
            let thread = &mut of.thread;
            // Of what was not counted the least is not known.
            if head.n > head.uncounted || thread.woken == 0 {
                thread.min_ns = match thread.woken {
                    0 => head.min,
                    _ => thread.min_ns.min(head.min),
                };
            }
            thread.interval_ns = head.period;
            thread.origin_ns = head.first;
            thread.threshold_ns = head.threshold;
            thread.woken += head.n;
            thread.max_ns = thread.max_ns.max(head.max);
            if head.uncounted > 0 {
                thread.uncounted_min_ns = match thread.uncounted {
                    0 => head.uncounted_min,
                    _ => thread.uncounted_min_ns.min(head.uncounted_min),
                };
                thread.uncounted_max_ns = thread.uncounted_max_ns.max(head.uncounted_max);
            }
            thread.uncounted += head.uncounted;
            thread.uncounted_ns += head.uncounted_sum;
            thread.sum_at_least |= head.sum_at_least;
        }
        for of in &mut all {
            of.events.sort_by_key(|event| event.index);
            of.raw.sort_by_key(|event| event.index);
            (of.known, of.known_from_ns) = of.known();
        }
        Ok(all)
    }

    /// Returns the response latencies in place of the service latencies: one for each activation,
    /// missed ones included.
    ///
    /// Latencies that had no room among the counts stay as they are: only their sum is known.
    ///
    /// # Errors
    ///
    /// As [`Response::new`].
    pub fn response(&self) -> Result<Self, StatsError> {
        let counts = Response::new(&self.counts, self.thread.interval_ns)?.expand()?;
        let thread = Thread {
            woken: counts.total().saturating_add(self.thread.uncounted),
            missed: 0,
            min_ns: counts
                .min()
                .map_or(self.thread.min_ns, |min| min.min(self.thread.min_ns)),
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

    /// Returns the numbers of the first wake-ups at or above `limit_ns`, `most` at most, counted
    /// from 0.
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

    /// Finds the places of wake-ups among all: from those kept as they were, else from the list of
    /// long ones.
    ///
    /// The list has the number of each activation, and it has every wake-up that missed some if it
    /// starts at the interval: a wake-up's place is then its activation less what was missed
    /// before.
    fn known(&self) -> (Vec<Known>, Option<u64>) {
        let thread = &self.thread;
        if self.has_all_raw() {
            let raw = (0..).zip(&self.raw);
            let known = raw.map(|(cycle, event)| Known {
                cycle,
                latency_ns: event.value,
            });
            return (known.collect(), Some(0));
        }
        // The latency of an interval exactly misses nothing.
        if thread.threshold_ns > thread.interval_ns.saturating_add(1) {
            return (Vec::new(), None);
        }
        let mut missed = 0_u64;
        let known = self.events.iter().map(|event| {
            let cycle = event.index.saturating_sub(missed);
            missed = missed.saturating_add(missed_by(event.value, thread.interval_ns));
            Known {
                cycle,
                latency_ns: event.value,
            }
        });
        (known.collect(), Some(thread.threshold_ns))
    }

    /// Returns whether all wake-ups were kept as they were.
    pub fn has_all_raw(&self) -> bool {
        self.thread.woken > 0 && self.raw.len() as u64 == self.thread.woken
    }
}

impl Thread {
    /// Takes the facts about a thread that are not in its sets.
    fn new(record: &Record, number: u32) -> Self {
        let labels = Labels::default().with("thread", number);
        let fact = |name| record.program()?.fact_of(name, &labels)?.parse().ok();
        Self {
            number,
            tid: fact("thread id").unwrap_or(0),
            cpu: fact("CPU"),
            priority: fact("priority").unwrap_or(0),
            missed: record.value("missed", &labels).unwrap_or(0.0) as u64,
            ..Self::default()
        }
    }
}
