//! The records of a wake-up measurement.

use tare_wire::packed::{Malformed, Packed};
use tare_wire::record;
use tare_wire::trace::{Kind, unzigzag};

use crate::model::{
    Exceeded, LatencyBin, LatencyCount, TraceEvent, TraceKind, Wakeup, WakeupSamples, WakeupThread,
    WorstWakeup,
};

/// Is what an instance reported of its wake-ups, besides the samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WakeupFacts {
    /// Planned time of activation 0, by the place's clock.
    pub origin_ns: u64,
    /// The threads that measured.
    pub threads: Vec<WakeupThread>,
    /// Latencies above the plan's limit.
    pub exceeded: Vec<Exceeded>,
    /// What the kernel did around the worst wake-ups.
    pub worst: Vec<WorstWakeup>,
}

/// Is an event of a trace whose numbers are not yet names.
type RawEvent = (u64, i64, Kind, u64, u64);

/// Collects the records.
#[derive(Debug, Default)]
pub(super) struct Collector {
    pub facts: WakeupFacts,
    pub samples: WakeupSamples,
    events: Vec<RawEvent>,
    names: Vec<(String, u64, String)>,
}

impl Collector {
    pub(super) fn thread(&mut self, thread: &record::Thread<'_>) {
        self.facts.threads.push(WakeupThread {
            number: thread.number,
            tid: thread.tid,
            cpu: thread.cpu,
            policy: thread.policy.to_owned(),
            priority: thread.priority,
            interval_ns: thread.interval_ns,
            woken: thread.woken,
            missed: thread.missed,
            min_ns: thread.min_ns,
            max_ns: thread.max_ns,
            sum_ns: thread.sum_ns,
            threshold_ns: thread.threshold_ns,
            peaks_seen: thread.peaks_seen,
            peaks_kept: thread.peaks_kept,
            uncounted: thread.uncounted,
            uncounted_ns: thread.uncounted_ns,
            uncounted_max_ns: thread.uncounted_max_ns,
            bin_ns: thread.bin_ns,
            raw_kept: thread.raw_kept,
            recording_ns: thread.recording_ns,
        });
    }

    pub(super) fn exceeded(&mut self, exceeded: record::Exceeded) {
        self.facts.exceeded.push(Exceeded {
            thread: exceeded.thread,
            activation: exceeded.activation,
            latency_ns: exceeded.latency_ns,
        });
    }

    pub(super) fn counts(&mut self, rows: Packed<'_>) -> Result<(), Malformed> {
        let mut of = (0, 0);
        let mut latency_ns: u64 = 0;
        for row in rows.rows::<4>() {
            let [thread, phase, step, count] = row?;
            let (thread, phase) = (narrow(thread)?, narrow(phase)?);
            if of != (thread, phase) {
                of = (thread, phase);
                latency_ns = 0;
            }
            latency_ns = latency_ns.checked_add(step).ok_or(Malformed)?;
            self.samples.counts.push(LatencyCount {
                thread,
                phase,
                latency_ns,
                count,
            });
        }
        Ok(())
    }

    pub(super) fn peaks(&mut self, rows: Packed<'_>) -> Result<(), Malformed> {
        for row in rows.rows::<3>() {
            let [thread, activation, latency_ns] = row?;
            self.samples.peaks.push(Wakeup {
                thread: narrow(thread)?,
                activation,
                latency_ns,
            });
        }
        Ok(())
    }

    pub(super) fn bins(&mut self, rows: Packed<'_>) -> Result<(), Malformed> {
        for row in rows.rows::<6>() {
            let [thread, bin, count, sum_ns, min_ns, max_ns] = row?;
            self.samples.bins.push(LatencyBin {
                thread: narrow(thread)?,
                bin: narrow(bin)?,
                count,
                sum_ns,
                min_ns,
                max_ns,
            });
        }
        Ok(())
    }

    pub(super) fn raw(&mut self, rows: Packed<'_>) -> Result<(), Malformed> {
        let mut of = 0;
        let mut activation: u64 = 0;
        for row in rows.rows::<3>() {
            let [thread, step, latency_ns] = row?;
            let thread = narrow(thread)?;
            if of != thread {
                of = thread;
                activation = 0;
            }
            activation = activation.checked_add(step).ok_or(Malformed)?;
            self.samples.raw.push(Wakeup {
                thread,
                activation,
                latency_ns,
            });
        }
        Ok(())
    }

    pub(super) fn worst(&mut self, worst: record::Worst) {
        self.facts.worst.push(WorstWakeup {
            thread: worst.thread,
            activation: worst.activation,
            latency_ns: worst.latency_ns,
            complete: worst.complete,
            events: Vec::new(),
        });
    }

    pub(super) fn events(&mut self, rows: Packed<'_>) -> Result<(), Malformed> {
        for row in rows.rows::<5>() {
            let [place, at, kind, a, b] = row?;
            let kind = Kind::from_number(kind).ok_or(Malformed)?;
            self.events.push((place, unzigzag(at), kind, a, b));
        }
        Ok(())
    }

    pub(super) fn name(&mut self, name: &record::Name<'_>) {
        self.names
            .push((name.of.to_owned(), name.number, name.name.to_owned()));
    }

    /// Puts names to the numbers of the trace events.
    pub(super) fn finish(mut self) -> (WakeupFacts, WakeupSamples) {
        for (place, at_ns, kind, a, b) in std::mem::take(&mut self.events) {
            let place = usize::try_from(place).unwrap_or(usize::MAX);
            let Some(thread) = self.facts.worst.get(place).map(|worst| worst.thread) else {
                continue;
            };
            let what = self.resolve(thread, kind, a, b);
            self.facts.worst[place]
                .events
                .push(TraceEvent { at_ns, what });
        }
        (self.facts, self.samples)
    }

    fn resolve(&self, thread: u32, kind: Kind, a: u64, b: u64) -> TraceKind {
        let ours = |tid: u64| {
            let mut threads = self.facts.threads.iter();
            threads.any(|t| t.number == thread && u64::from(t.tid) == tid)
        };
        let named = |of, number| self.named(of, number);
        let task = |tid: u64| match tid {
            0 => "idle".to_owned(),
            _ => format!("{}/{tid}", named("thread", tid)),
        };
        match kind {
            Kind::TimerEntry | Kind::VectorEntry => TraceKind::InterruptEntry {
                name: named("vector", a),
            },
            Kind::TimerExit | Kind::VectorExit => TraceKind::InterruptExit {
                name: named("vector", a),
            },
            Kind::InterruptEntry => TraceKind::InterruptEntry {
                name: named("interrupt", a),
            },
            Kind::InterruptExit => TraceKind::InterruptExit {
                name: named("interrupt", a),
            },
            Kind::SoftirqEntry => TraceKind::SoftirqEntry {
                name: named("softirq", a),
            },
            Kind::SoftirqExit => TraceKind::SoftirqExit {
                name: named("softirq", a),
            },
            Kind::TimerExpired => TraceKind::TimerExpired { wakes: a == 1 },
            Kind::Waking => TraceKind::Waking {
                thread: task(a),
                ours: ours(a),
                priority: i32::try_from(b).unwrap_or(i32::MAX),
            },
            Kind::Switch => TraceKind::Switch {
                from: task(a),
                to: task(b),
                ours: ours(b),
            },
        }
    }

    fn named(&self, of: &str, number: u64) -> String {
        let mut names = self.names.iter();
        match names.find(|(kind, n, _)| kind == of && *n == number) {
            Some((_, _, name)) => name.clone(),
            None => format!("{of} {number}"),
        }
    }
}

fn narrow(number: u64) -> Result<u32, Malformed> {
    u32::try_from(number).map_err(|_| Malformed)
}
