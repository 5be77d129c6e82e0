//! The recorder under a real kernel: a thread that sleeps, and one that keeps it from running.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::hint::black_box;
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};
use tare_wire::packed::Packed;
use tare_wire::record::Record;
use tare_wire::trace::{Kind, Task, unzigzag};
use tare_workloads::gap::Gap;
use tare_workloads::timing::bare_rdtsc;

use super::recording::Recording;
use super::*;
use crate::linux::clock::{now_ns, sleep_until};

const INTERVAL_NS: u64 = 1_000_000;

/// The thread's id in the records.
const TID: u32 = 4_321;

/// The records of a measurement.
#[derive(Default)]
struct Recorded {
    worst: Vec<(u32, u64, u64, bool)>,
    events: Vec<Vec<(i64, Kind, u64, u64)>>,
    names: Vec<(String, u64, String)>,
}

impl Recorded {
    fn new(trace: &Trace) -> Self {
        let mut recorded = Self::default();
        let put = |record: &Record<'_>| -> Result<(), Infallible> {
            match record {
                Record::Trace(worst) => {
                    assert_eq!(worst.tid, TID);
                    assert_eq!(worst.place as usize, recorded.worst.len());
                    recorded.events.push(Vec::new());
                    recorded
                        .worst
                        .push((worst.set, worst.index, worst.value, worst.complete));
                }
                Record::TraceEvents(list) => recorded.rows(list.rows),
                Record::Name(name) => {
                    recorded
                        .names
                        .push((name.of.to_owned(), name.number, name.name.to_owned()));
                }
                other => panic!("{other:?}"),
            }
            Ok(())
        };
        let Ok(_) = trace.records(0, put);
        recorded
    }

    fn rows(&mut self, rows: Packed<'_>) {
        for row in rows.rows::<5>() {
            let [place, at, kind, a, b] = row.unwrap();
            let kind = Kind::from_number(kind).unwrap();
            self.events[place as usize].push((unzigzag(at), kind, a, b));
        }
    }

    fn name(&self, of: &str, number: u64) -> Option<&str> {
        let mut names = self.names.iter();
        let found = names.find(|name| name.0 == of && name.1 == number)?;
        Some(&found.2)
    }
}

/// Pins the calling thread to the last CPU that this process may use, and opens what records there.
fn pinned<T>(open: impl FnOnce(u32) -> Result<T, FlightError>) -> Option<T> {
    let allowed = sched_getaffinity(None).unwrap();
    let cpu = (0..CpuSet::MAX_CPU).rfind(|cpu| allowed.is_set(*cpu))?;
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).unwrap();
    open(cpu as u32)
        .map_err(|error| tare_testkit::skip("trace events", &error.to_string()))
        .ok()
}

/// Records on the last CPU, for the worst samples.
fn prepared(worst: u32) -> Option<(Flight, Snapshots)> {
    let opened = pinned(|cpu| Flight::open([(7, Some(cpu))].into_iter(), worst));
    opened.and_then(|(flight, mut snapshots)| Some((flight, snapshots.pop()?)))
}

#[test]
fn pages_that_were_not_there_are_named_by_what_they_are_of() {
    let Some(mut recording) = pinned(|cpu| Recording::open(cpu, false)) else {
        return;
    };
    // So much is a mapping, and its pages are there when they are touched.
    let mut memory = vec![0_u8; 4 << 20];
    let start = bare_rdtsc();
    memory.iter_mut().step_by(4_096).for_each(|byte| *byte = 1);
    let length = bare_rdtsc() - start;
    recording.stop();
    let delay = Gap {
        index: 0,
        start,
        length,
    };
    let explained = recording.explain(0, (0, 0), &[delay]);
    let (mut faults, mut names) = (Vec::new(), Vec::new());
    let put = |record: &Record<'_>| -> Result<(), Infallible> {
        match record {
            Record::TraceEvents(list) => faults.extend(list.rows.rows::<5>().flatten()),
            Record::Name(name) if name.of == "page" => {
                names.push((name.number, name.name.to_owned()));
            }
            _ => {}
        }
        Ok(())
    };
    let Ok(_) = explained.trace.records(0, put);
    faults.retain(|[_, _, kind, ..]| *kind == Kind::PageFault.number());
    let anonymous = names.iter().find(|(_, name)| name == "anonymous memory");
    let (number, _) = anonymous.unwrap_or_else(|| panic!("{names:?}"));
    let own = faults.iter().filter(|[.., of, _]| of == number).count();
    // Where huge pages are given, there are fewer.
    assert!(own >= 2 && !black_box(memory).is_empty(), "{faults:?}");
}

#[test]
fn threads_have_the_names_of_their_processes() {
    let Some(mut recording) = pinned(|cpu| Recording::open(cpu, false)) else {
        return;
    };
    let start = bare_rdtsc();
    // They run on the same CPU as their parent, and have ended when the events are decoded.
    let tids = ["opt cgu.02", "esc\u{1b}[2J"].map(|name| {
        let tid = || u64::from(gettid().as_raw_nonzero().get().cast_unsigned());
        let named = thread::Builder::new().name(name.to_owned());
        (named.spawn(tid).unwrap().join().unwrap(), name)
    });
    recording.stop();
    let delay = Gap {
        index: 0,
        start,
        length: bare_rdtsc() - start,
    };
    let mut names = BTreeMap::new();
    let put = |record: &Record<'_>| -> Result<(), Infallible> {
        if let Record::Name(name) = record {
            names.insert((name.of.to_owned(), name.number), name.name.to_owned());
        }
        Ok(())
    };
    let Ok(_) = recording.explain(0, (0, 0), &[delay]).trace.records(0, put);
    let own = fs::read_to_string("/proc/self/comm").unwrap();
    for (tid, name) in tids {
        let of = |kind: &str| names.get(&(kind.to_owned(), tid)).map(String::as_str);
        assert_eq!(
            [of("thread"), of("process")],
            [Some(name), Some(own.trim_end())]
        );
    }
}

/// Takes some samples of the calling thread, and returns the records.
fn measure(flight: Flight, mut snapshots: Snapshots, samples: u64) -> Recorded {
    let origin = now_ns() + INTERVAL_NS;
    let mut index = 0;
    for _ in 0..samples {
        let due = origin + index * INTERVAL_NS;
        sleep_until(due);
        let value = now_ns() - due;
        if snapshots.is_candidate(value) {
            snapshots.keep(index, due, value);
        }
        index = (now_ns() - origin) / INTERVAL_NS + 1;
    }
    Recorded::new(&flight.finish(&[(TID, snapshots)]))
}

#[test]
fn the_way_of_a_wake_up_is_recorded() {
    let tid = gettid().as_raw_nonzero().get() as u32;
    // On a busy machine some of the worst wake-ups differ: a thread that is not yet asleep is not
    // woken. In some virtual machines the kernel records nothing on an idle CPU for a second or so.
    // So there are several recordings.
    for _ in 0..20 {
        let Some((flight, snapshots)) = prepared(20) else {
            return;
        };
        let recorded = measure(flight, snapshots, 300);
        assert_eq!(recorded.worst.len(), 20);
        assert!(recorded.worst.is_sorted_by(|a, b| a.2 >= b.2));
        for events in &recorded.events {
            assert!(events.is_sorted_by_key(|event| event.0), "{events:?}");
            assert_eq!(events[0].1, Kind::Running);
        }
        let mut ways = recorded.worst.iter().zip(&recorded.events);
        let Some(vector) =
            ways.find_map(|(worst, events)| usual_way(tid, worst.2, worst.3, events))
        else {
            eprintln!("the usual way is not among {:?}", recorded.events);
            continue;
        };
        assert_eq!(recorded.name("vector", vector), Some("local timer"));
        assert_eq!(recorded.name("softirq", 1), Some("TIMER"));
        let name = recorded.name("thread", tid.into());
        assert_eq!(name, thread::current().name().map(|name| &name[..15]));
        return;
    }
    panic!("no recording has the usual way of a wake-up");
}

/// Looks for the timer's interrupt, the timer, the thread made runnable, and the switch to it.
/// Returns the interrupt's vector.
fn usual_way(
    tid: u32,
    value_ns: u64,
    complete: bool,
    events: &[(i64, Kind, u64, u64)],
) -> Option<u64> {
    let is_ours = |number| Task::from_number(number).is_some_and(|task| task.tid == tid);
    let woken = events
        .iter()
        .position(|event| event.1 == Kind::Waking && is_ours(event.2))?;
    let (before, after) = events.split_at(woken);
    let entry = before.iter().rfind(|event| event.1 == Kind::TimerEntry)?;
    let expired = before.iter().rfind(|event| event.1 != Kind::Frame)?;
    let switched = after.iter().rfind(|event| event.1 == Kind::Switch)?;
    let is_whole = complete
        && expired.1 == Kind::TimerExpired
        && expired.2 == 1
        && expired.0 >= 0
        && is_ours(switched.3)
        && switched.0 <= value_ns as i64;
    is_whole.then_some(entry.2)
}

#[test]
fn the_worst_are_kept_whatever_the_order_in_which_they_come() {
    let Some((flight, mut snapshots)) = prepared(2) else {
        return;
    };
    for (index, value) in [(0, 5), (1, 9), (2, 3), (3, 7), (4, 9), (5, 1)] {
        if snapshots.is_candidate(value) {
            snapshots.keep(index, now_ns() - value, value);
        }
    }
    assert!(!snapshots.is_candidate(9));
    assert!(snapshots.is_candidate(10));
    let recorded = Recorded::new(&flight.finish(&[(TID, snapshots)]));
    let kept: Vec<_> = recorded.worst.iter().map(|w| (w.0, w.1, w.2)).collect();
    assert_eq!(kept, [(7, 1, 9), (7, 4, 9)]);
}

#[test]
fn what_was_overwritten_is_not_taken_for_complete() {
    let Some((flight, mut snapshots)) = prepared(1) else {
        return;
    };
    let due = now_ns();
    // Each sleep causes some hundred bytes of events; a copy holds 64 KiB.
    for _ in 0..1_000 {
        thread::sleep(Duration::from_micros(1));
    }
    let value = now_ns() - due;
    snapshots.keep(0, due, value);
    let recorded = Recorded::new(&flight.finish(&[(TID, snapshots)]));
    assert!(!recorded.worst[0].3);
    let events = &recorded.events[0];
    assert!(events[0].0 > 0 && events.len() > 100, "{}", events.len());
    assert!(events.is_sorted_by_key(|event| event.0));
}

#[test]
fn threads_anywhere_and_too_many_of_them_are_refused() {
    let anywhere = Flight::open([(0, None)].into_iter(), 10);
    // If recording is impossible, that error comes first.
    assert!(anywhere.is_err());
    let many: Vec<_> = (0..1_000).map(|thread| (thread, Some(0))).collect();
    let many = Flight::open(many.into_iter(), 100);
    assert!(matches!(many, Err(FlightError::TooMuch { .. })));
}

#[test]
fn what_a_worker_ran_is_told_by_its_function() {
    let work = decode::Event {
        at_ns: 5,
        kind: Kind::Work,
        a: 0x99,
        b: 0,
        stack: Vec::new(),
    };
    let decoded = decode::Decoded {
        trace: tare_wire::record::Trace {
            place: 0,
            set: 0,
            index: 0,
            value: 1_000,
            greatest: 1_000,
            samples: 1,
            tid: TID,
            events: 1,
            complete: true,
        },
        events: vec![work],
        names: decode::Names::new(),
        waker: None,
    };
    let recorded = Recorded::new(&Trace::new(
        [decoded].into_iter(),
        Some(&Processes::default()),
    ));
    let wanted = [(5, Kind::Work, 0, 0), (5, Kind::Frame, 0x99, 0)];
    assert_eq!(recorded.events, [wanted]);
}
