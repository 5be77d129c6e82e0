//! Writes what a recorder kept.

use tare_wire::record::{Record, Thread};

use super::counts::Key;
use super::recorder::{Recorder, Wakeup};
use crate::noise::fold::runs;
use crate::output::Output;
use crate::platform::{Platform, WriteError};

/// Says as what the measuring thread ran.
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

#[expect(
    clippy::redundant_closure,
    reason = "a variant's constructor is not general over the lifetime of its list"
)]
impl Recorder {
    /// Writes the sums of the thread and then its lists.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if the platform can't write.
    pub fn report(
        self,
        identity: Identity<'_>,
        platform: &mut impl Platform,
        output: &mut Output,
    ) -> Result<(), WriteError> {
        output.put(platform, &Record::Thread(self.sums(identity)))?;
        let thread = u64::from(self.thread);

        let mut before = 0;
        output.list(
            platform,
            |list| Record::RawLatencies(list),
            self.raw.kept().iter(),
            |wakeup, first| {
                let base = if first { 0 } else { before };
                before = wakeup.activation;
                [thread, wakeup.activation - base, wakeup.latency_ns]
            },
        )?;
        output.list(
            platform,
            |list| Record::Peaks(list),
            self.peaks.kept().iter(),
            |wakeup, _| [thread, wakeup.activation, wakeup.latency_ns],
        )?;
        let bins = (0_u64..).zip(self.envelope.done().bins);
        output.list(
            platform,
            |list| Record::LatencyEnvelope(list),
            bins.filter(|(_, bin)| bin.count > 0),
            |(number, bin), _| {
                [
                    thread,
                    number,
                    bin.count,
                    bin.sum,
                    bin.shortest,
                    bin.longest,
                ]
            },
        )?;

        let interval_ns = self.interval_ns;
        let phase = |wakeup: &Wakeup| {
            self.phases
                .of(wakeup.activation.saturating_mul(interval_ns))
        };
        let uncounted = self.peaks.into_kept();
        let mut listed = 0;
        for at in 0..uncounted.len() {
            let key = Key::new(phase(&uncounted[at]), uncounted[at].latency_ns);
            if let Some(key) = key.filter(|key| !self.counts.contains(*key)) {
                // The write never overtakes the read.
                uncounted[listed].activation = key.number();
                listed += 1;
            }
        }
        let uncounted = &mut uncounted[..listed];
        uncounted.sort_unstable_by_key(|wakeup| wakeup.activation);
        let listed = runs(uncounted.iter().map(|wakeup| wakeup.activation))
            .map(|(number, count)| (Key::from_number(number), count));
        let mut before = (0, 0);
        output.list(
            platform,
            |list| Record::LatencyCounts(list),
            merged(self.counts.into_sorted(), listed),
            |(key, count), first| {
                let goes_on = !first && before.0 == key.phase();
                let base = if goes_on { before.1 } else { 0 };
                before = (key.phase(), key.latency_ns());
                [thread, key.phase(), key.latency_ns() - base, count]
            },
        )
    }

    fn sums<'a>(&self, identity: Identity<'a>) -> Thread<'a> {
        let totals = self.progress.snapshot();
        Thread {
            number: self.thread,
            tid: identity.tid,
            cpu: identity.cpu,
            policy: identity.policy,
            priority: identity.priority,
            interval_ns: self.interval_ns,
            woken: totals.woken,
            missed: totals.missed,
            min_ns: totals.min_ns,
            max_ns: totals.max_ns,
            sum_ns: totals.sum_ns,
            threshold_ns: self.threshold_ns,
            peaks_seen: self.tally.peaks_seen,
            peaks_kept: self.peaks.kept().len() as u64,
            uncounted: self.tally.uncounted,
            uncounted_ns: self.tally.uncounted_ns,
            uncounted_max_ns: self.tally.uncounted_max_ns,
            bin_ns: self.envelope.width(),
            raw_kept: self.raw.kept().len() as u64,
            recording_ns: self.recording_ns,
        }
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
