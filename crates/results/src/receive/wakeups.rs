//! The records of a wake-up measurement.

use tare_wire::packed::{Malformed, Packed};
use tare_wire::record;
use tare_wire::trace::{Kind, Task, unzigzag};

use crate::model::{
    Exceeded, LatencyBin, TraceEvent, TraceKind, Wakeup, WakeupSamples, WakeupThread, WorstWakeup,
};
use crate::phases::{SlotCount, assign};

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
    counts: Vec<SlotCount>,
    events: Vec<RawEvent>,
    /// How many events each of the worst was said to have.
    due: Vec<u32>,
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
            let [thread, slot, step, count] = row?;
            let (thread, slot) = (narrow(thread)?, narrow(slot)?);
            if of != (thread, slot) {
                of = (thread, slot);
                latency_ns = 0;
            }
            latency_ns = latency_ns.checked_add(step).ok_or(Malformed)?;
            self.counts.push(SlotCount {
                thread,
                slot,
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
        self.due.push(worst.events);
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

    /// Puts names to the numbers of the trace events, and slots to their phases: of each, the first `apart` were before its
    /// load began.
    ///
    /// # Errors
    ///
    /// Returns [`Malformed`] if an event belongs to no wake-up or to no event, or some are missing.
    pub(super) fn finish(
        mut self,
        apart: &[u32],
    ) -> Result<(WakeupFacts, WakeupSamples), Malformed> {
        for (place, at_ns, kind, a, b) in std::mem::take(&mut self.events) {
            let place = usize::try_from(place).map_err(|_| Malformed)?;
            let thread = self.facts.worst.get(place).ok_or(Malformed)?.thread;
            let due = &mut self.due[place];
            *due = due.checked_sub(1).ok_or(Malformed)?;
            let what = self.resolve(thread, kind, a, b)?;
            let function = (kind == Kind::Frame).then(|| self.named("function", a));
            let events = &mut self.facts.worst[place].events;
            match (what, function) {
                (Some(what), _) => events.push(TraceEvent {
                    at_ns,
                    what,
                    from_user: false,
                    stack: Vec::new(),
                }),
                (None, Some(function)) => {
                    events.last_mut().ok_or(Malformed)?.stack.push(function);
                }
                (None, None) => events.last_mut().ok_or(Malformed)?.from_user = true,
            }
        }
        if self.due.iter().any(|due| *due > 0) {
            return Err(Malformed);
        }
        self.samples.counts = assign(self.counts, apart);
        Ok((self.facts, self.samples))
    }

    /// Says what an event is; None if it tells more of the one before.
    fn resolve(
        &self,
        thread: u32,
        kind: Kind,
        a: u64,
        b: u64,
    ) -> Result<Option<TraceKind>, Malformed> {
        let ours = |tid: u32| {
            let mut threads = self.facts.threads.iter();
            threads.any(|t| t.number == thread && t.tid == tid)
        };
        let named = |of, number| self.named(of, number);
        let name = |tid: u32| match tid {
            0 => "idle".to_owned(),
            _ => format!("{}/{tid}", named("thread", tid.into())),
        };
        let task = |number| Task::from_number(number).ok_or(Malformed);
        Ok(Some(match kind {
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
            Kind::Waking => {
                let woken = task(a)?;
                TraceKind::Waking {
                    thread: name(woken.tid),
                    ours: ours(woken.tid),
                    priority: woken.priority.into(),
                }
            }
            Kind::Switch => {
                let (from, to) = (task(a)?, task(b)?);
                TraceKind::Switch {
                    from: name(from.tid),
                    from_priority: from.priority.into(),
                    to: name(to.tid),
                    to_priority: to.priority.into(),
                    ours: ours(to.tid),
                }
            }
            Kind::Running => {
                let tid = narrow(a)?;
                TraceKind::Running {
                    thread: name(tid),
                    ours: ours(tid),
                }
            }
            Kind::FromUser | Kind::Frame => return Ok(None),
        }))
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

#[cfg(test)]
mod tests {
    use tare_wire::packed::Packer;
    use tare_wire::trace::zigzag;

    use super::*;

    /// Collects one traced wake-up of thread 0, whose id is 12, said to have `due` events.
    fn collector(due: u32, rows: &[(i64, Kind, u64, u64)]) -> Collector {
        let mut collector = Collector::default();
        collector.facts.threads.push(WakeupThread {
            number: 0,
            tid: 12,
            cpu: Some(1),
            policy: "fifo".to_owned(),
            priority: 95,
            interval_ns: 100_000,
            woken: 1,
            missed: 0,
            min_ns: 9_000,
            max_ns: 9_000,
            sum_ns: 9_000,
            threshold_ns: 100_000,
            peaks_seen: 0,
            peaks_kept: 0,
            uncounted: 0,
            uncounted_ns: 0,
            uncounted_max_ns: 0,
            bin_ns: 1,
            raw_kept: 0,
            recording_ns: 30,
        });
        collector.worst(record::Worst {
            place: 0,
            thread: 0,
            activation: 0,
            latency_ns: 9_000,
            events: due,
            complete: true,
        });
        let mut packer = Packer::default();
        for (at, kind, a, b) in rows {
            assert!(packer.push([0, zigzag(*at), kind.number(), *a, *b]));
        }
        collector.events(packer.packed()).unwrap();
        for (of, number, name) in [
            ("thread", 12, "tare-agent"),
            ("thread", 55, "tar"),
            ("vector", 236, "local timer"),
            ("function", 0xffff, "ext4_map_blocks"),
        ] {
            collector.name(&record::Name { of, number, name });
        }
        collector
    }

    fn task(tid: u32, priority: i16) -> u64 {
        Task { tid, priority }.number()
    }

    #[test]
    fn trace_events_get_names_and_stacks() {
        let rows = [
            (-3, Kind::Running, 55, 0),
            (5, Kind::TimerEntry, 236, 0),
            (5, Kind::FromUser, 0, 0),
            (6, Kind::Waking, task(12, 4), 0),
            (8, Kind::Switch, task(55, 120), task(12, 4)),
            (8, Kind::Frame, 0xffff, 0),
        ];
        let (facts, _) = collector(6, &rows).finish(&[]).unwrap();
        let events = &facts.worst[0].events;
        assert_eq!(events.len(), 4);
        assert_eq!(events[0].at_ns, -3);
        assert!(
            matches!(&events[0].what, TraceKind::Running { thread, ours: false } if thread == "tar/55")
        );
        assert!(
            matches!(&events[1].what, TraceKind::InterruptEntry { name } if name == "local timer")
        );
        assert!(events[1].from_user && !events[2].from_user);
        assert!(matches!(
            &events[2].what,
            TraceKind::Waking {
                ours: true,
                priority: 4,
                ..
            }
        ));
        let TraceKind::Switch {
            from,
            from_priority,
            to,
            to_priority,
            ours,
        } = &events[3].what
        else {
            panic!("{events:?}");
        };
        assert_eq!((from.as_str(), *from_priority), ("tar/55", 120));
        assert_eq!(
            (to.as_str(), *to_priority, *ours),
            ("tare-agent/12", 4, true)
        );
        assert_eq!(events[3].stack, ["ext4_map_blocks"]);
    }

    #[test]
    fn events_that_are_missing_or_too_many_or_hang_on_nothing_are_malformed() {
        let row = (0, Kind::TimerEntry, 236, 0);
        assert!(collector(1, &[row]).finish(&[]).is_ok());
        assert_eq!(collector(2, &[row]).finish(&[]), Err(Malformed));
        assert_eq!(collector(1, &[row, row]).finish(&[]), Err(Malformed));
        assert_eq!(
            collector(1, &[(0, Kind::Frame, 0xffff, 0)]).finish(&[]),
            Err(Malformed)
        );
        assert_eq!(
            collector(1, &[(0, Kind::FromUser, 0, 0)]).finish(&[]),
            Err(Malformed)
        );
    }
}
