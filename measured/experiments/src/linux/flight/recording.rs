//! Everything that the kernel does on a CPU for a time, joined with the delays of what runs there.
//!
//! The newest event overwrites the oldest, as in snapshots; nothing reads the buffer while the CPU
//! is measured. Delays around which the same happened are added up, event by event, so that any
//! number of them takes little room; the shares of a sum are the sums of the shares. Of those for
//! which there is no room, only the times of each culprit are added up.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

use rustix::thread::gettid;
use tare_wire::cpus::Cpus;
use tare_wire::record;
use tare_wire::trace::{Kind, Task};
use tare_workloads::gap::Gap;
use tare_workloads::timing::bare_rdtsc;

use super::cost::cost_ns;
use super::decode::{self, Decoded, Event, Names};
use super::error::FlightError;
use super::folded::{Folded, OTHERS};
use super::joined::{Sent, joined};
use super::pages::Memory;
use super::processes::{PROCESS, Processes};
use super::ring::{self, Ring};
use super::trace::Trace;
use super::tracefs::Tracefs;
use super::tracepoint::{self, Point, Tracepoint};
use crate::linux::clock::now_ns;

/// The sizes of a buffer that are tried, in bytes: the first one is for those who may lock memory.
const SIZES: [usize; 2] = [16 << 20, ring::SIZE];
/// The first of them for minutes.
const LONG_SIZE: usize = 128 << 20;
/// How far the times of events and of delays may be apart, in ns.
const SLACK_NS: u64 = 500;
/// The most groups of delays while they are added up.
const MOST_GROUPS: usize = 20_000;
/// The most of them that are written with their events, the most of these, and about how many
/// events the sums of all others have.
const MOST_WRITTEN: [usize; 3] = [1_000, 60_000, 6_000];
/// Those of one of many measurements of minutes.
const MOST_WRITTEN_OF_MANY: [usize; 3] = [10, 60, 100];
/// How often the clocks are read together.
const READINGS: usize = 16;

/// The most other CPUs whose interrupts to the measured one are recorded, and the most bytes for
/// all of them.
const MOST_SENDERS: usize = 256;
const MOST_SENT_BYTES: usize = 16 << 20;
/// The least bytes for one of them.
const LEAST_SENT_BYTES: usize = 64 << 10;

/// The kernel's events of one CPU, from when it was opened.
pub struct Recording {
    ring: Ring,
    tracepoints: Vec<Tracepoint>,
    /// The interrupts that other CPUs send to this one.
    sent: Vec<Ring>,
    sent_points: Vec<Tracepoint>,
    /// Time to record an event, in ns.
    cost_ns: Option<u64>,
    /// Whether it is one of many, in which threads of a name are not told apart.
    is_long: bool,
    /// Those that ran when it was opened.
    processes: Processes,
    /// The thread that opened it.
    tid: u32,
    clocks: [Clocks; 2],
    /// The most groups that are written, events in them, and events of sums.
    pub most_written: [usize; 3],
}

/// Delays with the kernel's events in them.
pub struct Explained {
    /// The kernel's events in them.
    pub trace: Trace,
    /// Number of events in the buffer.
    pub events: u64,
    /// Time that it took to record them, in ns; 0 if unknown.
    pub recording_ns: u64,
    /// Time in which they came, in ns: since recording began, or since the first that is not
    /// overwritten.
    pub recorded_ns: u64,
    /// How often the CPU went from the thread that opened it to another one, as far as they say.
    pub switches: u64,
}

/// A moment by two clocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clocks {
    tsc: u64,
    ns: u64,
}

impl Clocks {
    /// Reads both: of several readings, that with the least time between.
    pub(super) fn read() -> Self {
        let reading = |_| {
            let before = bare_rdtsc();
            let ns = now_ns();
            let after = bare_rdtsc();
            let took = after.wrapping_sub(before);
            let tsc = before.wrapping_add(took / 2);
            (took, Self { tsc, ns })
        };
        let least = (0..READINGS).map(reading).min_by_key(|(took, _)| *took);
        least.map_or_else(Self::default, |(_, clocks)| clocks)
    }

    /// Returns a moment of the TSC by CLOCK_MONOTONIC, in ns, from two readings.
    pub(super) fn ns([begin, end]: [Self; 2], tsc: u64) -> u64 {
        let ticks = end.tsc.wrapping_sub(begin.tsc).max(1);
        let ns = (end.ns - begin.ns) as f64 / ticks as f64;
        let since = tsc.wrapping_sub(begin.tsc).cast_signed();
        begin.ns.saturating_add_signed((since as f64 * ns) as i64)
    }
}

impl Recording {
    /// Starts recording on a CPU, that of the calling thread, for less than a minute or for longer.
    ///
    /// # Errors
    ///
    /// Returns [`FlightError`] if the kernel does not show its events, or not to this user.
    pub fn open(cpu: u32, is_long: bool) -> Result<Self, FlightError> {
        tracepoint::check_namespace()?;
        let tracefs = Tracefs::open().map_err(FlightError::Tracefs)?;
        let mut tracepoints = tracepoint::find_all(&tracefs)?;
        // A thread that never sleeps is not woken, and nothing in a handler keeps it from running.
        tracepoints.retain(|one| one.point != Point::Waking);
        tracepoints.iter_mut().for_each(|one| one.has_stack = false);
        let [large, small] = SIZES;
        let large = if is_long { LONG_SIZE } else { large };
        let [large, small] =
            [large, small].map(|bytes| move |all: &[_]| Ring::open(cpu, all, bytes));
        let ring = large(&tracepoints).or_else(|_| small(&tracepoints))?;
        let sent_points: Vec<_> = tracepoint::find_sent(&tracefs, Some(cpu)).collect();
        let others = others(cpu);
        let bytes = MOST_SENT_BYTES / others.len().max(1).next_power_of_two();
        let bytes = bytes.max(LEAST_SENT_BYTES);
        // Kernels before 6.6 have no filter for masks.
        let open = |cpu: &u32| {
            let opened = Ring::open(*cpu, &sent_points, bytes);
            opened.or_else(|_| Ring::open(*cpu, sent_points.get(..1).unwrap_or(&[]), bytes))
        };
        Ok(Self {
            cost_ns: cost_ns(cpu, &tracepoints),
            is_long,
            sent: others.iter().flat_map(open).collect(),
            ring,
            tracepoints,
            sent_points,
            processes: Processes::read(),
            tid: gettid().as_raw_nonzero().get().cast_unsigned(),
            clocks: [Clocks::read(); 2],
            most_written: match is_long {
                true => MOST_WRITTEN_OF_MANY,
                false => MOST_WRITTEN,
            },
        })
    }

    /// Stops recording.
    pub fn stop(&mut self) {
        self.ring.stop();
        self.sent.iter().for_each(Ring::stop);
        self.clocks[1] = Clocks::read();
    }

    /// Copies the events of a buffer since recording began, and says whether they are all there.
    fn copied(&self, ring: &Ring) -> (Vec<u8>, bool) {
        let mut bytes = vec![0; ring.bytes()];
        let copied = ring.newest(self.clocks[0].ns, &mut bytes);
        bytes.truncate(copied.bytes);
        (bytes, copied.complete)
    }

    /// Returns the interrupts that other CPUs sent, and names those who sent them.
    fn sent(&self, names: &mut Names) -> Vec<Sent> {
        let mut all = Vec::new();
        for ring in &self.sent {
            let (bytes, _) = self.copied(ring);
            let find = find(ring, &self.sent_points);
            all.extend(decode::events(&bytes, find, names));
        }
        all
    }

    /// Explains the delays of a set of this number that are longer by a time in ns than as many cycles,
    /// in the order of time.
    pub fn explain(&self, set: u32, (above_ns, least): (u64, u64), delays: &[Gap]) -> Explained {
        let (bytes, is_complete) = self.copied(&self.ring);
        let mut names = Names::new();
        let newest_first = decode::events(&bytes, find(&self.ring, &self.tracepoints), &mut names);
        let mut events = Vec::new();
        for (time, tid, event) in newest_first {
            // Of another thread's page, it is not known what it is.
            let is_own = event.kind != Kind::PageFault || tid == Some(self.tid);
            let a = if is_own { event.a } else { 0 };
            events.push((time, Event { a, ..event }));
        }
        let faults = events
            .iter_mut()
            .filter(|(_, event)| event.kind == Kind::PageFault);
        let pages = Memory::of_self().name(faults.map(|(_, event)| &mut event.a));
        names.extend(
            pages
                .into_iter()
                .map(|(name, number)| (("page", number), name)),
        );
        let recorded = events.len() as u64;
        // The kernel's clock for events can step back by some ns.
        events.sort_by_key(|(time, _)| *time);
        let sent = self.sent(&mut names);
        let mut events = joined(self.ring.cpu(), events, &sent, &names);
        name_threads(&mut names, &events);
        self.processes.name(&mut names);
        let switches = events.iter().filter(|(_, event)| {
            let from = Task::from_number(event.a).map(|task| task.tid);
            event.kind == Kind::Switch && from == Some(self.tid)
        });
        let switches = switches.count() as u64;
        if self.is_long {
            put_together(&mut names, &mut events, self.tid);
        }
        let since_ns = match is_complete {
            true => self.clocks[0].ns,
            false => events.first().map_or(u64::MAX, |(time, _)| *time),
        };
        let all = delays.iter().map(|delay| Delay {
            index: delay.index,
            from_ns: self.ns(delay.start),
            to_ns: self.ns(delay.start.wrapping_add(delay.length)),
        });
        let [from_ns, to_ns] =
            [0, least].map(|ticks| self.ns(self.clocks[0].tsc.wrapping_add(ticks)));
        let least_ns = above_ns + (to_ns - from_ns);
        let delays = all.filter(|delay| delay.to_ns.saturating_sub(delay.from_ns) >= least_ns);
        let tid = self.tid;
        let grouped = grouped(delays, &events, since_ns, tid);
        let kinds = written(grouped, self.most_written);
        names.insert(("thread", OTHERS.0.into()), OTHERS.1.to_owned());
        let mut first = Some(names);
        let decoded = kinds.into_iter().map(|kind| {
            let names = first.take().unwrap_or_default();
            kind.decoded(set, tid, names)
        });
        let trace = Trace::new(decoded, None);
        Explained {
            trace,
            events: recorded,
            recording_ns: self.cost_ns.map_or(0, |cost_ns| cost_ns * recorded),
            recorded_ns: self.clocks[1].ns.saturating_sub(since_ns),
            switches,
        }
    }

    /// Returns a moment of the TSC by CLOCK_MONOTONIC, in ns.
    fn ns(&self, tsc: u64) -> u64 {
        Clocks::ns(self.clocks, tsc)
    }
}

/// Returns how the events of a buffer are found among its tracepoints.
pub(super) fn find<'a>(
    ring: &'a Ring,
    points: &'a [Tracepoint],
) -> impl Fn(u64) -> Option<(&'a Tracepoint, bool)> + 'a {
    |identifier| {
        let (place, with_stack) = ring.event_of(identifier)?;
        Some((points.get(place)?, with_stack))
    }
}

/// Adds the names of threads that events give by number only.
pub(super) fn name_threads(names: &mut Names, events: &[(u64, Event)]) {
    let of_threads = events
        .iter()
        .filter(|(_, event)| matches!(event.kind, Kind::Sender | Kind::Running) && event.a > 0);
    for tid in BTreeSet::from_iter(of_threads.map(|(_, event)| event.a)) {
        let name = names.entry(("thread", tid));
        if let (Entry::Vacant(vacant), Some(name)) = (name, name_of(tid)) {
            vacant.insert(name);
        }
    }
}

/// Gives the threads of the processes of a name one number, beyond those of threads, where there are
/// several, and threads of a name without a process; not the one that is measured. Senders whose names
/// are unknown, since they have ended, are one.
fn put_together(names: &mut Names, events: &mut [(u64, Event)], own: u32) {
    let threads = names.extract_if(.., |(of, tid), _| *of == "thread" && *tid != u64::from(own));
    let mut by_name = BTreeMap::<_, Vec<(u64, String)>>::new();
    for ((_, tid), name) in Vec::from_iter(threads) {
        let process = names.get(&(PROCESS, tid)).cloned();
        let of = (process.is_some(), process.unwrap_or_else(|| name.clone()));
        by_name.entry(of).or_default().push((tid, name));
    }
    let mut numbers = HashMap::new();
    for (number, ((is_process, of), threads)) in (u64::from(OTHERS.0) + 1..).zip(by_name) {
        let number = if let [(tid, name)] = &threads[..] {
            names.insert(("thread", *tid), name.clone());
            *tid
        } else {
            names.extend(is_process.then(|| ((PROCESS, number), of.clone())));
            names.insert(("thread", number), of);
            number
        };
        numbers.extend(threads.iter().map(|(tid, _)| (*tid, number)));
    }
    let is_known = |tid: u64| tid == 0 || tid == u64::from(own);
    let number = |tid: u64| match numbers.get(&tid) {
        Some(number) => *number,
        None if is_known(tid) => tid,
        None => OTHERS.0.into(),
    };
    let task = |packed| match Task::from_number(packed) {
        Some(task) => Task {
            tid: number(task.tid.into()) as u32,
            ..task
        }
        .number(),
        None => packed,
    };
    for (_, event) in events {
        match event.kind {
            Kind::Switch => (event.a, event.b) = (task(event.a), task(event.b)),
            Kind::Sender => event.a = number(event.a),
            _ => {}
        }
    }
}

/// Returns the CPUs of this machine that are online.
pub(super) fn online() -> Cpus {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    Cpus::parse(online.trim()).unwrap_or_default()
}

/// Returns the other CPUs that may send interrupts to one.
fn others(cpu: u32) -> Vec<u32> {
    let online = online();
    let others = online.iter().filter(|other| *other != cpu);
    others.take(MOST_SENDERS).collect()
}

/// Returns the name of a thread, if it still runs.
fn name_of(tid: u64) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{tid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// A delay, by CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, Debug)]
struct Delay {
    index: u64,
    from_ns: u64,
    to_ns: u64,
}

/// Delays around which the same happened.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub samples: u64,
    pub sum_ns: u64,
    /// The greatest one, and its number.
    pub greatest: (u64, u64),
    /// Whether all events are known.
    pub complete: bool,
    /// The events, with the sums of their times.
    pub events: Vec<Event>,
}

impl Group {
    fn add(&mut self, delay: &Delay, ns: u64, events: &[Event]) {
        if self.events.is_empty() {
            self.events = events.to_vec();
        } else {
            let both = self.events.iter_mut().zip(events);
            both.for_each(|(sum, event)| {
                sum.at_ns += event.at_ns;
                if event.kind == Kind::Waited {
                    sum.a += event.a;
                }
            });
        }
        self.samples += 1;
        self.sum_ns += ns;
        self.greatest = self.greatest.max((ns, delay.index));
    }

    /// Adds others without their events.
    pub fn add_all(&mut self, others: &Self) {
        self.samples += others.samples;
        self.sum_ns += others.sum_ns;
        self.greatest = self.greatest.max(others.greatest);
    }

    fn decoded(self, set: u32, tid: u32, names: Names) -> Decoded {
        let (greatest, index) = self.greatest;
        let running = Event::new(Kind::Running, tid.into());
        let trace = record::Trace {
            place: 0,
            set,
            index,
            value: self.sum_ns,
            greatest,
            samples: self.samples,
            tid,
            events: 0,
            complete: self.complete,
        };
        let events = [running].into_iter().filter(|_| self.complete);
        Decoded {
            trace,
            events: events.chain(self.events).collect(),
            names,
            waker: None,
        }
    }
}

/// Puts delays together around which the same happened, in which the same moment took longest, and
/// that are about as long. Those for which there is no room are returned apart. Events are in the
/// order of time, and complete from a time on.
fn grouped(
    delays: impl Iterator<Item = Delay>,
    events: &[(u64, Event)],
    since_ns: u64,
    tid: u32,
) -> (Vec<Group>, Folded) {
    let mut kinds: HashMap<Vec<u64>, Group> = HashMap::new();
    let mut folded = Folded::new(tid);
    let mut next = 0;
    let mut own = Vec::new();
    for delay in delays {
        let ns = delay.to_ns.saturating_sub(delay.from_ns);
        let before = |until: u64| events[next..].partition_point(|(time, _)| *time < until);
        let first = next + before(delay.from_ns.saturating_sub(SLACK_NS));
        next = first;
        let end =
            next + events[next..].partition_point(|(time, _)| *time <= delay.to_ns + SLACK_NS);
        next = end;
        own.clear();
        own.extend(events[first..end].iter().map(|(time, event)| Event {
            at_ns: time.saturating_sub(delay.from_ns).min(ns).cast_signed(),
            ..event.clone()
        }));
        let is_seen = delay.from_ns >= since_ns;
        let key = signature(&own, ns);
        let has_room = kinds.len() < MOST_GROUPS || kinds.contains_key(&key);
        let mut one = Group {
            complete: is_seen,
            ..Group::default()
        };
        if is_seen && has_room {
            kinds.entry(key).or_insert(one).add(&delay, ns, &own);
        } else {
            one.add(&delay, ns, &own);
            folded.add(one);
        }
    }
    (kinds.into_values().collect(), folded)
}

/// Returns the kinds that take the most time, or have the longest delays, and sums of all others.
/// The limits are the greatest numbers of kinds, of their events, and of those of the sums.
fn written(
    (mut kinds, mut folded): (Vec<Group>, Folded),
    [most, mut events, of_sums]: [usize; 3],
) -> Vec<Group> {
    kinds.sort_by_key(|kind| Reverse(kind.sum_ns));
    if kinds.len() > most {
        kinds[most / 2..].sort_by_key(|kind| Reverse(kind.greatest));
    }
    let mut written = Vec::new();
    for kind in kinds {
        if written.len() < most && kind.events.len() <= events {
            events -= kind.events.len();
            written.push(kind);
        } else {
            folded.add(kind);
        }
    }
    written.extend(folded.groups(of_sums));
    written
}

/// Returns the key of delays that are added up: their events, between which of them the most time
/// passed, and the magnitude of their length.
fn signature(events: &[Event], ns: u64) -> Vec<u64> {
    let ends = events.iter().map(|event| event.at_ns);
    let mut from = 0;
    let mut longest = (0, 0);
    for (place, to) in (0..).zip(ends.chain([ns.cast_signed()])) {
        longest = longest.max((to - from, place));
        from = to;
    }
    // Within a factor of sixteen: a delay far longer than others has another cause.
    let mut key = vec![longest.1, u64::from(ns.max(1).ilog2() / 4)];
    for event in events {
        let stack = event.stack.iter().copied();
        let a = match event.kind {
            Kind::Waited => 0,
            _ => event.a,
        };
        key.extend([u64::from(event.kind as u8), a, event.b, stack.len() as u64]);
        key.extend(stack);
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: u64, kind: Kind, a: u64) -> (u64, Event) {
        let stack = Vec::new();
        let event = Event {
            at_ns: 0,
            kind,
            a,
            b: 0,
            stack,
        };
        (time, event)
    }

    #[test]
    fn delays_with_the_same_events_are_added_up() {
        let tick = |from: u64, length: u64| {
            [
                at(from + 1_000, Kind::TimerEntry, 236),
                at(from + length - 500, Kind::TimerExit, 236),
            ]
        };
        let events: Vec<_> = [tick(10_000, 6_000), tick(50_000, 8_000)]
            .into_iter()
            .flatten()
            .chain([
                at(92_000, Kind::InterruptEntry, 24),
                at(98_000, Kind::InterruptExit, 24),
            ])
            .collect();
        let delay = |index, from_ns: u64, ns: u64| Delay {
            index,
            from_ns,
            to_ns: from_ns + ns,
        };
        let delays = [
            delay(1, 10_000, 6_000),
            delay(2, 50_000, 8_000),
            delay(3, 70_000, 9_000),
            delay(4, 91_000, 8_000),
        ];
        let (mut kinds, _) = grouped(delays.into_iter(), &events, 0, 7);
        kinds.sort_by_key(|kind| kind.greatest.1);
        let of = |kind: &Group| (kind.samples, kind.sum_ns, kind.greatest, kind.complete);
        let all: Vec<_> = kinds.iter().map(of).collect();
        assert_eq!(
            all,
            [
                (2, 14_000, (8_000, 2), true),
                (1, 9_000, (9_000, 3), true),
                (1, 8_000, (8_000, 4), true),
            ]
        );
        let times = kinds[0].events.iter().map(|event| event.at_ns);
        assert_eq!(times.collect::<Vec<_>>(), [2_000, 13_000]);
        assert!(kinds[1].events.is_empty());
        // Of what came before the first event, nothing is known.
        let (kinds, folded) = grouped(delays.into_iter().take(1), &events, 20_000, 7);
        let unseen = folded.groups(9);
        assert!(kinds.is_empty() && !unseen[0].complete && unseen[0].events.is_empty());
    }

    #[test]
    fn a_delay_in_which_another_moment_took_longest_or_that_is_far_longer_is_another_kind() {
        let tick = |from: u64, length: u64| {
            [
                at(from + 1_000, Kind::TimerEntry, 236),
                at(from + length, Kind::TimerExit, 236),
            ]
        };
        // In the second one, something else kept the CPU after the tick; in the third one, what is
        // longest in the first.
        let events: Vec<_> = [
            tick(10_000, 6_000),
            tick(50_000, 6_000),
            tick(9_000_000, 600_000),
        ]
        .into_iter()
        .flatten()
        .collect();
        let delays =
            [(10_000, 6_500), (50_000, 30_000), (9_000_000, 600_500)].map(|(from_ns, ns)| Delay {
                index: 0,
                from_ns,
                to_ns: from_ns + ns,
            });
        assert_eq!(grouped(delays.into_iter(), &events, 0, 7).0.len(), 3);
    }

    #[test]
    fn kinds_that_take_most_or_have_the_longest_delay_are_written() {
        let kind = |sum_ns, greatest, ticks| {
            let tick = [Kind::TimerEntry, Kind::TimerExit].map(|kind| at(0, kind, 236).1);
            Group {
                samples: 1,
                sum_ns,
                greatest: (greatest, 1),
                complete: true,
                events: std::iter::repeat_n(tick, ticks).flatten().collect(),
            }
        };
        let kinds = vec![kind(9, 1, 1), kind(8, 1, 4), kind(7, 1, 1), kind(6, 5, 1)];
        let all = written((kinds, Folded::new(7)), [2, 4, 9]);
        let sums: Vec<_> = all.iter().map(|kind| (kind.sum_ns, kind.samples)).collect();
        assert_eq!(sums, [(9, 1), (6, 1), (15, 2)]);
    }

    #[test]
    fn threads_of_a_name_are_one_where_there_are_several() {
        let names = [
            (5, "cc1"),
            (6, "cc1"),
            (7, "agent"),
            (8, "sh"),
            (9, "agent"),
            (10, "opt cgu.1"),
            (11, "opt cgu.2"),
        ];
        let names = names.map(|(tid, name)| (("thread", tid), name.to_owned()));
        let mut names = Names::from(names);
        names.extend([10, 11].map(|tid| ((PROCESS, tid), "rustc".to_owned())));
        let task = |tid| Task { tid, priority: 120 }.number();
        let switches = [(7, 5), (5, 6), (6, 8), (8, 0), (0, 10), (10, 11), (11, 7)];
        let mut events = Vec::from_iter(switches.map(|(from, to)| {
            let (_, event) = at(0, Kind::Switch, task(from));
            let b = task(to);
            (0, Event { b, ..event })
        }));
        put_together(&mut names, &mut events, 7);
        let tid = |number| Task::from_number(number).unwrap().tid;
        let rows = Vec::from_iter(events.iter().map(|(_, event)| (tid(event.a), tid(event.b))));
        let (cc1, rustc) = (rows[0].1, rows[4].1);
        assert!(cc1 > OTHERS.0 && rustc > cc1);
        let wanted = [
            (7, cc1),
            (cc1, cc1),
            (cc1, 8),
            (8, 0),
            (0, rustc),
            (rustc, rustc),
            (rustc, 7),
        ];
        assert_eq!(rows, wanted);
        assert_eq!(names[&(PROCESS, rustc.into())], "rustc");
        let threads = names.into_iter().filter(|((of, _), _)| *of == "thread");
        let threads = Vec::from_iter(threads.map(|((_, tid), name)| (tid, name)));
        let wanted = [
            (7, "agent"),
            (8, "sh"),
            (9, "agent"),
            (cc1.into(), "cc1"),
            (rustc.into(), "rustc"),
        ];
        assert_eq!(threads, wanted.map(|(tid, name)| (tid, name.to_owned())));
    }
}
