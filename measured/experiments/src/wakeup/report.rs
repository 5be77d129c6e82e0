//! Writes the records of a recorder.

use core::fmt;

use tare_wire::record::{Record, Set};
use tare_wire::rows::{Count, Part, Sample};

use super::counts::Key;
use super::recorder::{Recorder, Wakeup};
use crate::output::{Output, runs, text};
use crate::platform::{Platform, WriteError};

/// A measuring thread as it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Its id in the kernel; 0 where there is none.
    pub tid: u32,
    /// CPU that it was pinned to.
    pub cpu: Option<u32>,
    /// Its policy: `fifo`, `rr`, `deadline`, `other`, or `interrupt`.
    pub policy: &'a str,
    /// Its real-time priority, or 0.
    pub priority: u32,
}

impl Recorder {
    /// Writes the set of the thread with its lists and other figures; it began at `origin_ns` of
    /// the platform's clock.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if the platform can't write.
    pub fn report(
        self,
        identity: Identity<'_>,
        origin_ns: u64,
        output: &mut Output<'_, impl Platform>,
    ) -> Result<(), WriteError> {
        let labels = text(&format_args!("thread={}", self.set.number));
        let totals = self.progress.snapshot();
        output.put(&Record::Set(Set {
            labels: &labels,
            n: totals.n,
            sum: totals.sum,
            min: totals.min,
            max: totals.max,
            first: origin_ns,
            last: origin_ns.saturating_add(self.set.last),
            kept: self.peaks.kept().len() as u64,
            raw: self.raw.kept().len() as u64,
            ..self.set
        }))?;
        let values = [
            ("missed", "", totals.missed),
            ("recording time", "ns", self.recording_ns),
        ];
        output.values(&labels, &values)?;
        identity.write(&labels, self.set.period, output)?;
        self.lists(output)
    }

    fn lists(self, output: &mut Output<'_, impl Platform>) -> Result<(), WriteError> {
        let (set, period) = (self.set.number, self.set.period);
        let due_ns = |wakeup: &Wakeup| wakeup.activation.saturating_mul(period);
        let sample = |wakeup: &Wakeup| Sample {
            set,
            index: wakeup.activation,
            time: due_ns(wakeup),
            value: wakeup.latency_ns,
        };
        let begins = self.slots.begins();
        if begins.len() > 1 {
            output.parts(begins.map(|begin| Part { set, begin }))?;
        }
        output.raw(period, self.raw.kept().iter().map(sample))?;
        output.events(period, self.peaks.kept().iter().map(sample))?;
        output.envelope(set, self.envelope.bins)?;

        // Listed values without room among the counts are counted now.
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
        output.counts(counts)
    }
}

impl Identity<'_> {
    fn write(
        &self,
        labels: &str,
        interval_ns: u64,
        output: &mut Output<'_, impl Platform>,
    ) -> Result<(), WriteError> {
        let mut put = |name, value: &dyn fmt::Display| output.fact(name, labels, &text(&value));
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

/// Merges two sequences of counts by rising key; no key is in both.
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
