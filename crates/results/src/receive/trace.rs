//! The records of what the kernel did around some samples.

use std::collections::{BTreeMap, HashMap};

use tare_wire::packed::{Malformed, Packed};
use tare_wire::record::{self, Record};
use tare_wire::trace::{Kind, Task, unzigzag};

use crate::model::{Trace, TraceEvent, TraceKind};

/// An event of a trace whose numbers are not yet names.
type RawEvent = (u64, i64, Kind, u64, u64);

/// Collects the records.
#[derive(Debug, Default)]
pub(super) struct Collector {
    traces: Vec<Trace>,
    events: Vec<RawEvent>,
    /// For each trace the thread that measured, and the announced number of events.
    due: Vec<(u32, u32)>,
    names: Names,
}

/// The names of things by their number, for each kind of thing.
#[derive(Debug, Default)]
struct Names(HashMap<String, HashMap<u64, String>>);

/// The length of the longest name, in bytes. Names are repeated in each event.
const LONGEST_NAME: usize = 128;

/// The usual size of an event with its names, in bytes.
const EVENT: usize = 192;

/// Returns the traces of the records that `records` passes on.
///
/// # Errors
///
/// Returns [`Malformed`] if they do not belong together.
pub fn traces(
    records: impl FnOnce(&mut dyn FnMut(&Record<'_>) -> Result<(), Malformed>) -> Result<(), Malformed>,
) -> Result<Vec<Trace>, Malformed> {
    let mut collector = Collector::default();
    records(&mut |record| collector.take(record).map(drop))?;
    collector.finish()
}

impl Collector {
    /// Takes a record of a trace. Returns how many bytes are kept of its events.
    pub(super) fn take(&mut self, record: &Record<'_>) -> Result<usize, Malformed> {
        match record {
            Record::Trace(trace) => self.trace(*trace),
            Record::TraceEvents(list) => return self.events(list.rows),
            Record::Name(name) => self.name(name)?,
            _ => {}
        }
        Ok(0)
    }

    fn trace(&mut self, trace: record::Trace) {
        self.due.push((trace.tid, trace.events));
        self.traces.push(Trace {
            set: trace.set,
            index: trace.index,
            value: trace.value,
            greatest: trace.greatest,
            samples: trace.samples,
            complete: trace.complete,
            events: Vec::new(),
            processes: BTreeMap::new(),
        });
    }

    /// Returns the number of traces.
    pub(super) fn len(&self) -> usize {
        self.traces.len()
    }

    /// Takes events. Returns how many bytes are kept of them.
    fn events(&mut self, rows: Packed<'_>) -> Result<usize, Malformed> {
        let before = self.events.len();
        for row in rows.rows::<5>() {
            let [place, at, kind, a, b] = row?;
            let kind = Kind::from_number(kind).ok_or(Malformed)?;
            self.events.push((place, unzigzag(at), kind, a, b));
        }
        Ok((self.events.len() - before) * EVENT)
    }

    fn name(&mut self, name: &record::Name<'_>) -> Result<(), Malformed> {
        if name.of.len().max(name.name.len()) > LONGEST_NAME {
            return Err(Malformed);
        }
        let of = self.names.0.entry(name.of.to_owned()).or_default();
        of.entry(name.number)
            .or_insert_with(|| name.name.to_owned());
        Ok(())
    }

    /// Puts names to the numbers of the trace events.
    ///
    /// # Errors
    ///
    /// Returns [`Malformed`] if an event belongs to no sample or to no event, or some are missing.
    pub(super) fn finish(self) -> Result<Vec<Trace>, Malformed> {
        let (mut traces, mut due) = (self.traces, self.due);
        for (place, at_ns, kind, a, b) in self.events {
            let place = usize::try_from(place).map_err(|_| Malformed)?;
            let (measuring, due) = due.get_mut(place).ok_or(Malformed)?;
            *due = due.checked_sub(1).ok_or(Malformed)?;
            let trace = &mut traces[place];
            for tid in threads(kind, a, b).into_iter().flatten() {
                if let Some(process) = self.names.known("process", tid) {
                    let thread = trace.processes.entry(self.names.thread(tid));
                    thread.or_insert_with(|| process.clone());
                }
            }
            let events = &mut trace.events;
            match (kind, events.last_mut()) {
                // These tell more of the event before.
                (Kind::FromUser, Some(event)) => event.from_user = true,
                (Kind::Frame, Some(event)) => event.stack.push(self.names.of("function", a)),
                (Kind::Sender, Some(event)) => event.sender = Some(self.names.thread(a)),
                (Kind::Waited, Some(event)) => event.waited_ns = Some(a),
                _ => events.push(TraceEvent {
                    at_ns,
                    what: self.names.resolve(*measuring, kind, a, b)?,
                    from_user: false,
                    sender: None,
                    waited_ns: None,
                    stack: Vec::new(),
                }),
            }
        }
        for trace in &mut traces {
            // A trace without events reaches back to no time.
            let first = trace.events.first();
            trace.complete &= first.is_some_and(|first| first.at_ns <= 0);
        }
        match due.iter().all(|(_, due)| *due == 0) {
            true => Ok(traces),
            false => Err(Malformed),
        }
    }
}

/// Returns the numbers of the threads of an event.
fn threads(kind: Kind, a: u64, b: u64) -> [Option<u64>; 2] {
    let tid = |number| Task::from_number(number).map(|task| task.tid.into());
    match kind {
        Kind::Switch => [tid(a), tid(b)],
        Kind::Waking => [tid(a), None],
        Kind::Running | Kind::Sender => [Some(a), None],
        _ => [None; 2],
    }
}

impl Names {
    /// Says what an event is.
    fn resolve(&self, measuring: u32, kind: Kind, a: u64, b: u64) -> Result<TraceKind, Malformed> {
        let ours = |tid: u32| tid == measuring;
        let name = |of| self.of(of, a);
        let thread = |tid: u32| self.thread(tid.into());
        let task = |number| Task::from_number(number).ok_or(Malformed);
        let entry = |name| TraceKind::InterruptEntry { name };
        let exit = |name| TraceKind::InterruptExit { name };
        Ok(match kind {
            Kind::TimerEntry | Kind::VectorEntry => entry(name("vector")),
            Kind::TimerExit | Kind::VectorExit => exit(name("vector")),
            Kind::InterruptEntry => entry(self.interrupt(a)),
            Kind::InterruptExit => exit(self.interrupt(a)),
            Kind::SoftirqEntry => TraceKind::SoftirqEntry {
                name: name("softirq"),
            },
            Kind::SoftirqExit => TraceKind::SoftirqExit {
                name: name("softirq"),
            },
            Kind::TimerExpired => TraceKind::TimerExpired { wakes: a == 1 },
            Kind::Waking => {
                let Task { tid, priority } = task(a)?;
                TraceKind::Waking {
                    thread: thread(tid),
                    ours: ours(tid),
                    priority: priority.into(),
                }
            }
            Kind::Switch => {
                let (from, to) = (task(a)?, task(b)?);
                TraceKind::Switch {
                    from: thread(from.tid),
                    from_priority: from.priority.into(),
                    to: thread(to.tid),
                    to_priority: to.priority.into(),
                    ours: ours(to.tid),
                }
            }
            Kind::Running => {
                let tid = u32::try_from(a).map_err(|_| Malformed)?;
                TraceKind::Running {
                    thread: thread(tid),
                    ours: ours(tid),
                }
            }
            Kind::Work => TraceKind::Work,
            Kind::PageFault => TraceKind::PageFault {
                of: self.known("page", a).cloned(),
            },
            // These are no events by themselves.
            Kind::FromUser | Kind::Frame | Kind::Sender | Kind::Waited => return Err(Malformed),
        })
    }

    /// Returns a thread's name with its number.
    fn thread(&self, tid: u64) -> String {
        match tid {
            0 => "idle".to_owned(),
            _ => format!("{}/{tid}", self.of("thread", tid)),
        }
    }

    /// Returns a device's interrupt as /proc/interrupts has it: its number, and who it is for.
    fn interrupt(&self, number: u64) -> String {
        let name = self.known("interrupt", number);
        name.map_or_else(|| number.to_string(), |name| format!("{number} {name}"))
    }

    fn of(&self, what: &str, number: u64) -> String {
        let name = self.known(what, number);
        name.map_or_else(|| format!("{what} {number}"), String::clone)
    }

    fn known(&self, what: &str, number: u64) -> Option<&String> {
        self.0.get(what)?.get(&number)
    }
}

#[cfg(test)]
mod tests {
    use tare_wire::packed::Packer;
    use tare_wire::trace::zigzag;

    use super::*;

    /// Collects one trace of a sample that thread 12 measured, said to have `due` events.
    fn collector(due: u32, rows: &[(i64, Kind, u64, u64)]) -> Collector {
        let mut collector = Collector::default();
        collector.trace(record::Trace {
            place: 0,
            set: 0,
            index: 0,
            value: 9_000,
            greatest: 9_000,
            samples: 1,
            tid: 12,
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
            ("thread", 56, "opt cgu.02"),
            ("process", 12, "tare-agent"),
            ("process", 56, "rustc"),
            ("process", 57, "make"),
            ("vector", 236, "local timer"),
            ("function", 0xffff, "ext4_map_blocks"),
        ] {
            collector.name(&record::Name { of, number, name }).unwrap();
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
            (9, Kind::VectorEntry, 236, 0),
            (9, Kind::Sender, 56, 0),
        ];
        let traces = collector(8, &rows).finish().unwrap();
        let events = &traces[0].events;
        assert_eq!(events.len(), 5);
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
        let processes = [("opt cgu.02/56", "rustc"), ("tare-agent/12", "tare-agent")];
        let processes = processes.map(|(thread, process)| (thread.to_owned(), process.to_owned()));
        assert_eq!(traces[0].processes, processes.into());
    }

    #[test]
    fn what_was_not_recorded_is_not_complete() {
        for (due, rows) in [(0, &[][..]), (1, &[(7, Kind::TimerEntry, 236, 0)])] {
            let traces = collector(due, rows).finish().unwrap();
            assert!(!traces[0].complete, "{traces:?}");
        }
    }

    #[test]
    fn events_that_are_missing_or_too_many_or_hang_on_nothing_are_malformed() {
        let row = (0, Kind::TimerEntry, 236, 0);
        assert!(collector(1, &[row]).finish().unwrap()[0].complete);
        assert_eq!(collector(2, &[row]).finish(), Err(Malformed));
        assert_eq!(collector(1, &[row, row]).finish(), Err(Malformed));
        assert_eq!(
            collector(1, &[(0, Kind::Frame, 0xffff, 0)]).finish(),
            Err(Malformed)
        );
        assert_eq!(
            collector(1, &[(0, Kind::FromUser, 0, 0)]).finish(),
            Err(Malformed)
        );
    }
}
