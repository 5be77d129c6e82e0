//! Writes what a recorder kept.

use core::fmt;

use tare_wire::record::{Fact, Record, Set, Unit};
use tare_wire::rows::{Count, Part, Sample};

use super::counts::Key;
use super::recorder::{Recorder, Wakeup};
use crate::noise::fold::runs;
use crate::output::{Output, text};
use crate::platform::{Platform, WriteError};

/// As what a measuring thread ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Its id in the kernel; 0 where there is none.
    pub tid: u32,
    /// CPU that it is pinned to.
    pub cpu: Option<u32>,
    /// Policy it was scheduled under: `fifo`, `rr`, `deadline`, `other`, or `interrupt`.
    pub policy: &'a str,
    /// Its real-time priority, or 0.
    pub priority: u32,
}

impl Recorder {
    /// Writes the set of the thread with its lists, and what else is known of the thread, which began at `origin_ns` of
    /// the place's clock.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if the platform can't write.
    pub fn report(
        self,
        identity: Identity<'_>,
        origin_ns: u64,
        platform: &mut impl Platform,
        output: &mut Output,
    ) -> Result<(), WriteError> {
        let labels = text(&format_args!("thread={}", self.thread));
        let set = self.set(&labels, origin_ns);
        output.put(platform, &Record::Set(set))?;
        let values = [
            ("missed", "", self.progress.snapshot().missed),
            ("recording time", "ns", self.recording_ns),
        ];
        output.values(platform, &labels, &values)?;
        identity.write(&labels, set.period, platform, output)?;
        self.lists(platform, output)
    }

    fn set<'a>(&self, labels: &'a str, origin_ns: u64) -> Set<'a> {
        let totals = self.progress.snapshot();
        Set {
            number: self.thread,
            measure: "latency",
            labels,
            unit: Unit::Ns,
            n: totals.n,
            sum: totals.sum_ns,
            min: totals.min_ns,
            max: totals.max_ns,
            first: origin_ns,
            last: origin_ns.saturating_add(self.tally.last_ns),
            period: self.interval_ns,
            threshold: self.threshold_ns,
            seen: self.tally.peaks_seen,
            kept: self.peaks.kept().len() as u64,
            unkept_max: self.tally.unkept_max_ns,
            unkept_sum: self.tally.unkept_ns,
            squares_below: None,
            uncounted: self.tally.uncounted,
            uncounted_sum: self.tally.uncounted_ns,
            uncounted_max: self.tally.uncounted_max_ns,
            backwards: 0,
            bin: self.envelope.width(),
            raw: self.raw.kept().len() as u64,
            parts: self.slots.begins().len() as u32,
        }
    }

    fn lists(self, platform: &mut impl Platform, output: &mut Output) -> Result<(), WriteError> {
        let (set, period) = (self.thread, self.interval_ns);
        let due_ns = |wakeup: &Wakeup| wakeup.activation.saturating_mul(period);
        let sample = |wakeup: &Wakeup| Sample {
            set,
            index: wakeup.activation,
            time: due_ns(wakeup),
            value: wakeup.latency_ns,
        };
        let begins = self.slots.begins();
        if begins.len() > 1 {
            output.parts(platform, begins.map(|begin| Part { set, begin }))?;
        }
        output.raw(platform, period, self.raw.kept().iter().map(sample))?;
        output.events(platform, period, self.peaks.kept().iter().map(sample))?;
        output.envelope(platform, set, self.envelope.done().bins)?;

        // What is listed, but found no room among the counts, is counted now.
        let listed = self.peaks.into_kept();
        let mut uncounted = 0;
        for at in 0..listed.len() {
            let slot = self.slots.of(due_ns(&listed[at]));
            let key = Key::new(slot, listed[at].latency_ns);
            if let Some(key) = key.filter(|key| !self.counts.contains(*key)) {
                // The write never overtakes the read.
                listed[uncounted].activation = key.number();
                uncounted += 1;
            }
        }
        let listed = &mut listed[..uncounted];
        listed.sort_unstable_by_key(|wakeup| wakeup.activation);
        let listed = runs(listed.iter().map(|wakeup| wakeup.activation))
            .map(|(number, count)| (Key::from_number(number), count));
        let counts = merged(self.counts.into_sorted(), listed).map(|(key, count)| Count {
            set,
            part: key.slot() as u32,
            value: key.latency_ns(),
            count,
        });
        output.counts(platform, counts)
    }
}

impl Identity<'_> {
    fn write(
        &self,
        labels: &str,
        interval_ns: u64,
        platform: &mut impl Platform,
        output: &mut Output,
    ) -> Result<(), WriteError> {
        let mut put = |name, value: &dyn fmt::Display| {
            let value = &text(&value);
            let fact = Fact {
                name,
                labels,
                value,
            };
            output.put(platform, &Record::Fact(fact))
        };
        if self.tid > 0 {
            put("thread id", &self.tid)?;
        }
        if let Some(cpu) = self.cpu {
            put("CPU", &cpu)?;
        }
        put("scheduling policy", &self.policy)?;
        if self.priority > 0 {
            put("priority", &self.priority)?;
        }
        put("interval", &format_args!("{interval_ns} ns"))
    }
}

/// Merges two sequences of counts, each by rising key; no key stands in both.
fn merged(
    a: impl Iterator<Item = (Key, u64)>,
    b: impl Iterator<Item = (Key, u64)>,
) -> impl Iterator<Item = (Key, u64)> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    core::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some((from_a, _)), Some((from_b, _))) if from_b < from_a => b.next(),
        (None, _) => b.next(),
        _ => a.next(),
    })
}
