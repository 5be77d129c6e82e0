//! Delays whose events are not written one by one, added up by who took the most of them.
//!
//! The times of all who had the CPU are added up, whatever the order in which they came. The sums
//! are written as events again, one after the other, and read like those of a single delay.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use tare_wire::trace::{Kind, MOST_TID, Task};

use super::decode::Event;
use super::recording::Group;

/// Number and name of the threads that took too little to be named.
pub const OTHERS: (u32, &str) = (MOST_TID + 1, "others");

/// The smallest part, one in this number, of a thread that is named; and the most senders that are.
const PARTS: i64 = 50;
const MOST_SENDERS: usize = 8;
/// The most sums in memory, and those who had the CPU in one of them.
const MOST_SUMS: usize = 1_000;
const MOST_TAKERS: usize = 1_000;

/// The event with which somebody gets the CPU: its kind and its number, of a switch that of the
/// next thread.
type Who = (Kind, u64);

/// The functions and senders of an occurrence: kinds and numbers of their events.
type Called = BTreeSet<(Kind, u64)>;

/// The time of delays by who had the CPU, in ns.
#[derive(Debug, Default)]
struct Divided {
    /// The thread itself: before the first event, and as a whole.
    lead: i64,
    own: i64,
    /// Before a switch from a thread whose coming was not recorded.
    unseen: i64,
    all: BTreeMap<Who, (i64, Called)>,
    /// The pages that were not there.
    pages: BTreeSet<u64>,
}

/// The distinction between sums: the interrupt that came first, if one did, and who took the most,
/// none if it was the thread itself; with functions and senders, and whether pages were not there.
type Key = (Option<Who>, Option<Who>, Called);

/// Sums of delays.
#[derive(Debug)]
pub struct Folded {
    /// The delayed thread.
    own: Task,
    sums: BTreeMap<Key, (Group, Divided)>,
    /// Delays without known events.
    unseen: Group,
}

/// Returns the kind of event that ends what one of a kind began.
fn end_of(entry: Kind) -> Option<Kind> {
    Some(match entry {
        Kind::TimerEntry => Kind::TimerExit,
        Kind::VectorEntry => Kind::VectorExit,
        Kind::InterruptEntry => Kind::InterruptExit,
        _ => return None,
    })
}

/// Returns the kind of event that began what one of a kind ends.
fn begin_of(exit: Kind) -> Option<Kind> {
    let entries = [Kind::TimerEntry, Kind::VectorEntry, Kind::InterruptEntry];
    entries
        .into_iter()
        .find(|entry| end_of(*entry) == Some(exit))
}

fn tid_of(task: u64) -> u32 {
    Task::from_number(task).map_or(0, |task| task.tid)
}

impl Divided {
    /// Divides the time of delays. An end without a beginning is of something that began before.
    fn of(delays: &Group, own: &mut Task) -> Self {
        let mut divided = Self::default();
        let events = &delays.events;
        let (mut interrupts, mut depth) = (Vec::new(), 0);
        for event in events {
            match (end_of(event.kind), begin_of(event.kind)) {
                (Some(_), _) => depth += 1,
                (_, Some(entry)) if depth == 0 => interrupts.insert(0, (entry, event.a)),
                (_, Some(_)) => depth -= 1,
                _ => {}
            }
        }
        let is_softirq = |event: &&Event| {
            [Kind::SoftirqEntry, Kind::SoftirqExit, Kind::Switch].contains(&event.kind)
        };
        let softirq = events.iter().find(is_softirq);
        let softirq = softirq.filter(|event| event.kind == Kind::SoftirqExit);
        let mut softirqs = BTreeMap::new();
        softirqs.extend(softirq.map(|event| (own.tid, (Kind::SoftirqEntry, event.a))));
        let (mut thread, mut since_switch) = (own.number(), 0);
        let mut from = 0;
        if interrupts.is_empty() && softirqs.is_empty() {
            divided.lead = events.first().map_or(0, |event| event.at_ns);
        }
        for event in events {
            let ns = event.at_ns - from;
            from = event.at_ns;
            let softirq = softirqs.get(&tid_of(thread));
            let over = interrupts.last().or(softirq).copied();
            match over {
                Some(who) => divided.entry(who).0 += ns,
                None => since_switch += ns,
            }
            match event.kind {
                kind if end_of(kind).is_some() => interrupts.push((kind, event.a)),
                kind if begin_of(kind).is_some() => {
                    interrupts.pop();
                }
                Kind::SoftirqEntry => {
                    softirqs.insert(tid_of(thread), (event.kind, event.a));
                }
                Kind::SoftirqExit => {
                    softirqs.remove(&tid_of(thread));
                }
                Kind::Switch => {
                    let was_there = tid_of(event.a) == tid_of(thread);
                    divided.put(thread, since_switch, was_there, own.tid);
                    (thread, since_switch) = (event.b, 0);
                    for task in [event.a, event.b].into_iter().filter_map(Task::from_number) {
                        if task.tid == own.tid {
                            *own = task;
                        }
                    }
                }
                Kind::Sender => {
                    if let Some(who) = interrupts.last() {
                        divided.entry(*who).1.insert((event.kind, event.a));
                    }
                }
                Kind::TimerExpired | Kind::Work if over.is_some() || tid_of(thread) != own.tid => {
                    let who = over.unwrap_or((Kind::Switch, thread));
                    divided.entry(who).1.insert((event.kind, event.a));
                }
                Kind::PageFault => {
                    divided.pages.insert(event.a);
                }
                _ => {}
            }
        }
        let rest = delays.sum_ns.cast_signed() - from;
        divided.put(
            thread,
            since_switch + rest,
            tid_of(thread) == own.tid,
            own.tid,
        );
        divided
    }

    fn entry(&mut self, who: Who) -> &mut (i64, Called) {
        let has_room = self.all.len() < MOST_TAKERS || self.all.contains_key(&who);
        let who = if has_room { who } else { among_others(who) };
        self.all.entry(who).or_default()
    }

    /// Adds the time of a thread, if that was there when the CPU went on to another. Some kernels
    /// leave out the switch from the idle thread back to one that waited for a page.
    fn put(&mut self, thread: u64, ns: i64, was_there: bool, own: u32) {
        let was_there = was_there || tid_of(thread) == 0 && !self.pages.is_empty();
        match (was_there, tid_of(thread) == own) {
            (false, _) => self.unseen += ns,
            (true, true) => self.own += ns,
            (true, false) => self.entry((Kind::Switch, thread)).0 += ns,
        }
    }

    fn add(&mut self, other: Self) {
        self.lead += other.lead;
        self.own += other.own;
        self.pages.extend(other.pages);
        for (who, (ns, called)) in other.all {
            let of = self.entry(who);
            of.0 += ns;
            of.1.extend(called);
        }
    }

    /// Puts threads with small parts together, and senders if there are many.
    fn without_small(mut self, sum_ns: u64) -> Self {
        let least = sum_ns.cast_signed() / PARTS;
        for (who, (ns, mut called)) in std::mem::take(&mut self.all) {
            let is_small = who.0 == Kind::Switch && ns < least;
            let is_sender = |(kind, _): &Who| *kind == Kind::Sender;
            if called.iter().filter(|one| is_sender(one)).count() > MOST_SENDERS {
                called.retain(|one| !is_sender(one));
                called.insert((Kind::Sender, OTHERS.0.into()));
            }
            let of = self.entry(if is_small { among_others(who) } else { who });
            of.0 += ns;
            of.1.extend(called.into_iter().filter(|_| !is_small));
        }
        self
    }

    /// Returns the events of one delay that is divided like this. An interrupt that came first does
    /// so.
    fn events(&self, first: Option<Who>, own: Task) -> Vec<Event> {
        let mut events = Vec::new();
        let mut at_ns = self.lead;
        let mut put = |at_ns, kind, a, b| {
            let event = Event::new(kind, a);
            events.push(Event { at_ns, b, ..event });
        };
        let mut all = Vec::from_iter(&self.all);
        all.sort_by_key(|(who, _)| first != Some(**who));
        for ((kind, number), (ns, called)) in all {
            let (begin, exit, end) = match kind {
                Kind::Switch => ((own.number(), *number), *kind, (*number, own.number())),
                _ => (
                    (*number, 0),
                    end_of(*kind).unwrap_or(Kind::SoftirqExit),
                    (*number, 0),
                ),
            };
            put(at_ns, *kind, begin.0, begin.1);
            let (senders, functions): (Vec<Who>, Vec<Who>) =
                called.iter().partition(|(kind, _)| *kind == Kind::Sender);
            // Each entry has one sender.
            for (place, (_, sender)) in senders.into_iter().enumerate() {
                if place > 0 {
                    put(at_ns, exit, end.0, end.1);
                    put(at_ns, *kind, begin.0, begin.1);
                }
                put(at_ns, Kind::Sender, sender, 0);
            }
            for (kind, function) in functions {
                put(at_ns, kind, function, 0);
            }
            at_ns += ns;
            put(at_ns, exit, end.0, end.1);
        }
        for page in &self.pages {
            put(at_ns, Kind::PageFault, *page, 0);
        }
        events
    }
}

/// Returns what stands for a thread among others of its priority.
fn among_others((kind, number): Who) -> Who {
    let task = Task::from_number(number).filter(|_| kind == Kind::Switch);
    let others = task.map(|task| {
        Task {
            tid: OTHERS.0,
            ..task
        }
        .number()
    });
    (kind, others.unwrap_or(number))
}

impl Folded {
    /// Returns sums of no delays of a thread.
    pub fn new(tid: u32) -> Self {
        let priority = 120;
        Self {
            own: Task { tid, priority },
            sums: BTreeMap::new(),
            unseen: Group::default(),
        }
    }

    /// Adds delays.
    pub fn add(&mut self, mut delays: Group) {
        let divided = match delays.complete {
            true => Divided::of(&delays, &mut self.own),
            false => Divided {
                unseen: 1,
                ..Divided::default()
            },
        };
        let most = divided.all.iter().max_by_key(|(_, (ns, _))| *ns);
        let most = most.filter(|(_, (ns, _))| *ns >= divided.own);
        if divided.unseen > most.map_or(divided.own, |(_, (ns, _))| *ns) {
            return self.unseen.add_all(&delays);
        }
        self.unseen.sum_ns += divided.unseen.cast_unsigned();
        delays.sum_ns -= divided.unseen.cast_unsigned();
        let first = delays.events.first().map(|event| (event.kind, event.a));
        let first = first.filter(|(kind, _)| end_of(*kind).is_some());
        let (who, called) = most
            .map(|(who, (_, called))| (*who, called.clone()))
            .unzip();
        let mut called = called.unwrap_or_default();
        called.extend(divided.pages.first().map(|_| (Kind::PageFault, 0)));
        let key = (first, who, called);
        let has_room = self.sums.len() < MOST_SUMS || self.sums.contains_key(&key);
        let key = if has_room { key } else { Key::default() };
        let (sum, all) = self.sums.entry(key).or_default();
        sum.add_all(&delays);
        all.add(divided);
    }

    /// Returns the sums as delays that have about this number of events: those that take the most
    /// time, and all others as one; and those without known events.
    pub fn groups(self, mut room: usize) -> Vec<Group> {
        let mut all = Vec::from_iter(self.sums);
        all.sort_by_key(|(_, (sum, _))| Reverse(sum.sum_ns));
        let (mut groups, mut rest) = (Vec::new(), (Group::default(), Divided::default()));
        let own = self.own;
        let made = |mut sum: Group, divided: Divided, first| {
            sum.events = divided.without_small(sum.sum_ns).events(first, own);
            sum.complete = true;
            sum
        };
        for ((first, ..), (sum, divided)) in all {
            if divided.all.len() > room {
                rest.0.add_all(&sum);
                rest.1.add(divided);
                continue;
            }
            let group = made(sum, divided, first);
            room = room.saturating_sub(group.events.len());
            groups.push(group);
        }
        let (sum, divided) = rest;
        groups.extend((sum.samples > 0).then(|| made(sum, divided, None)));
        groups.extend((self.unseen.sum_ns > 0).then_some(self.unseen));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 7;
    const TIMER: u64 = 236;

    fn task(tid: u32) -> u64 {
        Task { tid, priority: 120 }.number()
    }

    /// One delay of these events: time, kind and numbers.
    fn delay(ns: u64, events: &[(i64, Kind, u64, u64)]) -> Group {
        let events = events.iter().map(|(at_ns, kind, a, b)| Event {
            at_ns: *at_ns,
            b: *b,
            ..Event::new(*kind, *a)
        });
        Group {
            samples: 1,
            sum_ns: ns,
            greatest: (ns, 1),
            complete: true,
            events: events.collect(),
        }
    }

    fn rows(group: &Group) -> Vec<(i64, Kind, u64, u64)> {
        let events = group.events.iter();
        events
            .map(|event| (event.at_ns, event.kind, event.a, event.b))
            .collect()
    }

    #[test]
    fn times_are_added_up_by_who_had_the_cpu() {
        let mut folded = Folded::new(OWN);
        let tick = |from: i64, to: i64| {
            let entry = [
                (from, Kind::TimerEntry, TIMER, 0),
                (from, Kind::TimerExpired, 99, 0),
            ];
            entry.into_iter().chain([(to, Kind::TimerExit, TIMER, 0)])
        };
        // Twice the same two, in another order, and with a softirq that an interrupt interrupts.
        let there = (3_000, Kind::Switch, task(OWN), task(20));
        let back = (60_000, Kind::Switch, task(20), task(OWN));
        let both = Vec::from_iter(tick(1_000, 3_000).chain([there, back]));
        folded.add(delay(61_000, &both));
        let softirq = [
            (500, Kind::TimerEntry, TIMER, 0),
            (1_500, Kind::TimerExit, TIMER, 0),
            (1_500, Kind::SoftirqEntry, 1, 0),
        ];
        let after = [
            (4_500, Kind::SoftirqExit, 1, 0),
            (5_000, Kind::Switch, task(OWN), task(20)),
        ];
        let both = softirq
            .into_iter()
            .chain(tick(2_500, 3_500))
            .chain(after)
            .chain([back]);
        folded.add(delay(60_000, &Vec::from_iter(both)));
        let all = folded.groups(100);
        let [sum] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            (sum.samples, sum.sum_ns, sum.greatest),
            (2, 121_000, (61_000, 1))
        );
        assert!(sum.complete);
        // 2,000 and 1,000 and 1,000 ns of ticks, 2,000 of the softirq, 57,000 and 55,000 of the
        // thread.
        assert_eq!(
            rows(sum),
            [
                (1_500, Kind::TimerEntry, TIMER, 0),
                (1_500, Kind::TimerExpired, 99, 0),
                (5_500, Kind::TimerExit, TIMER, 0),
                (5_500, Kind::SoftirqEntry, 1, 0),
                (7_500, Kind::SoftirqExit, 1, 0),
                (7_500, Kind::Switch, task(OWN), task(20)),
                (119_500, Kind::Switch, task(20), task(OWN)),
            ]
        );
    }

    #[test]
    fn each_culprit_has_a_sum_and_what_is_unknown_is_apart() {
        let by = |tid: u32, ns: u64| {
            let end = ns.cast_signed() - 100;
            let there = (100, Kind::Switch, task(OWN), task(tid));
            delay(ns, &[there, (end, Kind::Switch, task(tid), task(OWN))])
        };
        let mut folded = Folded::new(OWN);
        (20..60).for_each(|tid| folded.add(by(tid, 9_000)));
        folded.add(by(20, 800_000));
        // How thread 61 left is not recorded, and of the last one nothing is.
        folded.add(delay(5_000, &[(100, Kind::Switch, task(OWN), task(61))]));
        folded.add(Group {
            complete: false,
            ..delay(4_000, &[])
        });
        let all = folded.groups(4);
        let sums = all
            .iter()
            .map(|sum| (sum.samples, sum.sum_ns, sum.complete));
        assert_eq!(
            Vec::from_iter(sums),
            [
                (2, 809_000, true),
                (1, 9_000, true),
                (38, 38 * 9_000, true),
                (2, 9_000, false)
            ]
        );
        // The smaller ones of a sum are named as far as each takes a fiftieth.
        assert_eq!(all[2].events.len(), 2 * 38);
        let mut folded = Folded::new(OWN);
        (20..120).for_each(|tid| folded.add(by(tid, 9_000)));
        let all = folded.groups(0);
        let others = task(OTHERS.0);
        assert_eq!(
            rows(&all[0]),
            [
                (10_000, Kind::Switch, task(OWN), others),
                (890_000, Kind::Switch, others, task(OWN)),
            ]
        );
    }

    #[test]
    fn what_began_before_a_delay_and_who_sent_it_is_known() {
        let sent = |tid| {
            let entry = [(0, Kind::VectorEntry, 253, 0), (0, Kind::Sender, tid, 0)];
            [entry[0], entry[1], (100, Kind::VectorExit, 253, 0)]
        };
        let mut folded = Folded::new(OWN);
        (30..60).for_each(|tid| folded.add(delay(100, &sent(tid))));
        let all = folded.groups(0);
        let mut wanted = sent(OTHERS.0.into());
        wanted[2].0 = 3_000;
        assert_eq!(rows(&all[0]), wanted);
        let mut folded = Folded::new(OWN);
        let events = [
            (2_000, Kind::InterruptExit, 24, 0),
            (3_000, Kind::VectorEntry, 251, 0),
            (3_000, Kind::Sender, 30, 0),
            (9_000, Kind::VectorExit, 251, 0),
        ];
        folded.add(delay(9_500, &events));
        let all = folded.groups(100);
        assert_eq!(
            rows(&all[0]),
            [
                (0, Kind::InterruptEntry, 24, 0),
                (2_000, Kind::InterruptExit, 24, 0),
                (2_000, Kind::VectorEntry, 251, 0),
                (2_000, Kind::Sender, 30, 0),
                (8_000, Kind::VectorExit, 251, 0),
            ]
        );
    }
}
