//! What a CPU did, stretch by stretch, from a late wake-up's planned time until its thread read the
//! clock.
//!
//! Trace events are moments; between two of them the CPU does one thing. An interrupt's handler
//! lies over a softirq, and a softirq over a thread, until they are left.

use std::collections::HashMap;

use tare_results::model::{Trace, TraceEvent, TraceKind};

/// The agent's name for the interrupt by which timers expire.
pub(crate) const TIMER: &str = "local timer";
/// Its name for the interrupt by which another CPU says that a thread is to run here.
const RESCHEDULE: &str = "reschedule";
/// Its name for the thread that runs when nothing is to do.
pub(crate) const IDLE: &str = "idle";

/// A stretch of time in which a CPU did one thing. Times are ns after the planned wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch<'a> {
    pub from_ns: u64,
    pub to_ns: u64,
    pub doing: Doing<'a>,
}

/// Says what a CPU did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing<'a> {
    /// An interrupt's handler ran, with interrupts off.
    Interrupt { name: &'a str, thread: &'a str },
    /// A softirq ran, on top of a thread.
    Softirq { name: &'a str, thread: &'a str },
    /// A thread ran.
    Thread(Thread<'a>),
    /// The kernel's buffer does not hold it: it does not reach back so far, or the kernel has left
    /// events out. That shows in threads that leave the CPU without having come. The thread that
    /// left, or was there at last, if one is known.
    Unseen { last: Option<&'a str> },
}

/// A thread on the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thread<'a> {
    pub name: &'a str,
    pub ours: bool,
    /// As the kernel counts: less is higher. None if no event tells.
    pub priority: Option<i32>,
    /// When the CPU went on to it; None if it was there when the events begin.
    pub since_ns: Option<i64>,
}

/// The course of a late wake-up.
#[derive(Clone, Debug)]
pub(crate) struct Timeline<'a> {
    /// The activities of the CPU, without a gap from the planned time to the reading of the clock.
    pub stretches: Vec<Stretch<'a>>,
    /// Until when the thread was still awake from the activation before; 0 if it slept in time.
    pub asleep_ns: u64,
    /// When the interrupt was entered that made the thread runnable; at least `asleep_ns`.
    pub entered_ns: u64,
    /// When the thread was made runnable.
    pub woken_ns: u64,
    /// Whether that happened in an interrupt of this CPU's timer.
    pub by_timer: bool,
    /// Priority of the thread that measures, if an event tells.
    pub priority: Option<i32>,
    /// The interrupt's entry, for what it came in between.
    pub entry: Option<&'a TraceEvent>,
    /// The switch to the thread, for what led to it.
    pub switch: Option<&'a TraceEvent>,
    wakeup: &'a Trace,
}

impl<'a> Timeline<'a> {
    /// Puts the events of a wake-up in order.
    pub(crate) fn new(wakeup: &'a Trace) -> Self {
        let end = i64::try_from(wakeup.value).unwrap_or(i64::MAX);
        let events: Vec<&TraceEvent> = wakeup
            .events
            .iter()
            .take_while(|event| event.at_ns <= end)
            .collect();
        let marks = Marks::new(&events);
        let clip = |at: i64| u64::try_from(at.clamp(0, end)).unwrap_or(0);
        let asleep_ns = clip(marks.asleep);
        let woken_ns = clip(marks.woken).max(asleep_ns);
        Self {
            stretches: stretches(&events, end, true),
            asleep_ns,
            entered_ns: clip(marks.entered).clamp(asleep_ns, woken_ns),
            woken_ns,
            by_timer: marks.by_timer,
            priority: marks.priority,
            entry: marks.entry.map(|at| events[at]),
            switch: marks.switch.map(|at| events[at]),
            wakeup,
        }
    }

    /// Returns a thread's name and number, with its process if that has another name:
    /// `opt cgu.02/1234 (rustc)`.
    pub(crate) fn named(&self, thread: &str) -> String {
        let name = thread.rsplit_once('/').map_or(thread, |(name, _)| name);
        match self.wakeup.processes.get(thread) {
            Some(process) if process != name => format!("{thread} ({process})"),
            _ => thread.to_owned(),
        }
    }
}

/// Holds the moments that divide a wake-up, as times of events.
struct Marks {
    asleep: i64,
    entered: i64,
    woken: i64,
    by_timer: bool,
    priority: Option<i32>,
    entry: Option<usize>,
    switch: Option<usize>,
}

/// Returns the priority of the measured thread by the last event that has it.
pub(crate) fn priority_of_ours(events: &[&TraceEvent]) -> Option<i32> {
    events.iter().rev().find_map(|event| match event.what {
        TraceKind::Waking {
            ours: true,
            priority,
            ..
        } => Some(priority),
        TraceKind::Switch {
            ours: true,
            to_priority,
            ..
        } => Some(to_priority),
        _ => None,
    })
}

impl Marks {
    fn new(events: &[&TraceEvent]) -> Self {
        let woken = events
            .iter()
            .rposition(|event| matches!(event.what, TraceKind::Waking { ours: true, .. }));
        let switch = switch_to_ours(events, woken);
        let priority = priority_of_ours(events);
        let at = |place: usize| events[place].at_ns;
        let mut marks = Self {
            asleep: 0,
            entered: 0,
            woken: 0,
            by_timer: false,
            priority,
            entry: None,
            switch,
        };
        if let Some(woken) = woken {
            let before = &events[..woken];
            let (asleep, first) = match place_of_ours(before) {
                Place::Away { since: None } => (0, 0),
                Place::Away { since: Some(left) } => (at(left), left),
                Place::Here => (at(woken), 0),
            };
            let entry = before.iter().rposition(|event| is_entry(event, TIMER));
            marks.entry = entry.filter(|entry| *entry >= first);
            marks.by_timer = marks.entry.is_some();
            marks.asleep = asleep;
            marks.woken = at(woken);
            marks.entered = marks.entry.map_or(marks.woken, at);
        } else if let Some(switch) = switch.filter(|switch| at(*switch) > 0)
            && let Some(arrived) = from_elsewhere(&events[..=switch])
        {
            marks.entered = at(arrived);
            marks.woken = at(arrived);
        }
        marks
    }
}

/// Finds where a thread's becoming runnable arrived from another CPU, just before the switch to it,
/// the last one of `events`: as an interrupt, unless this CPU was idle and looked for it. None if
/// it was runnable before.
fn from_elsewhere(events: &[&TraceEvent]) -> Option<usize> {
    let (switch, before) = events.split_last()?;
    let entry = before.iter().rposition(|event| is_entry(event, RESCHEDULE));
    let entry = entry.filter(|entry| before[*entry].at_ns > 0);
    let from_idle = matches!(&switch.what, TraceKind::Switch { from, .. } if from == IDLE);
    entry.or(from_idle.then_some(before.len()))
}

/// Finds the first switch to our thread after it was made runnable; the last one of all if that is
/// not seen.
fn switch_to_ours(events: &[&TraceEvent], woken: Option<usize>) -> Option<usize> {
    let is_ours = |event: &&TraceEvent| matches!(event.what, TraceKind::Switch { ours: true, .. });
    match woken {
        Some(woken) => {
            let after = events[woken..].iter().position(is_ours)?;
            Some(woken + after)
        }
        None => events.iter().rposition(is_ours),
    }
}

/// Says where our thread is.
enum Place {
    /// On the CPU.
    Here,
    /// Not there, since the event at a place; None if it was not there when the events began.
    Away { since: Option<usize> },
}

/// Finds where our thread is at the end of some events.
fn place_of_ours(events: &[&TraceEvent]) -> Place {
    let mut place = Place::Away { since: None };
    for (at, event) in events.iter().enumerate() {
        match event.what {
            TraceKind::Running { ours: true, .. } | TraceKind::Switch { ours: true, .. } => {
                place = Place::Here;
            }
            TraceKind::Switch { .. } if matches!(place, Place::Here) => {
                place = Place::Away { since: Some(at) };
            }
            _ => {}
        }
    }
    place
}

fn is_entry(event: &TraceEvent, wanted: &str) -> bool {
    matches!(&event.what, TraceKind::InterruptEntry { name } if name == wanted)
}

/// Follows the events from the first one on to an end; if it `ends_in_ours`, our thread runs then.
pub(crate) fn stretches<'a>(
    events: &[&'a TraceEvent],
    end: i64,
    ends_in_ours: bool,
) -> Vec<Stretch<'a>> {
    let mut cpu = Cpu::at_first(events);
    let mut found = Found(Vec::new());
    let mut from: i64 = 0;
    if let Some(first) = events.first().filter(|first| first.at_ns > 0) {
        found.put(0, first.at_ns, Doing::Unseen { last: None });
        from = first.at_ns;
    }
    for event in events {
        // Never back, whatever the events say: each moment belongs to one stretch.
        let to = event.at_ns.max(from);
        found.put(from, to, cpu.doing());
        from = to;
        if let TraceKind::Switch { from: left, .. } = &event.what
            && cpu.thread.is_none_or(|thread| thread.name != left)
        {
            found.doubt(&cpu, Some(left));
        }
        cpu.take(event);
    }
    found.put(from, end, cpu.doing());
    // Our thread was there in the end, and read the clock.
    if ends_in_ours && cpu.thread.is_none_or(|thread| !thread.ours) {
        found.doubt(&cpu, cpu.thread.map(|thread| thread.name));
    }
    found.0
}

/// The stretches that were found.
struct Found<'a>(Vec<Stretch<'a>>);

impl<'a> Found<'a> {
    fn put(&mut self, from: i64, to: i64, doing: Doing<'a>) {
        let (Ok(from_ns), Ok(to_ns)) = (u64::try_from(from), u64::try_from(to)) else {
            return;
        };
        match self.0.last_mut() {
            _ if to_ns <= from_ns => {}
            Some(last) if last.doing == doing => last.to_ns = to_ns,
            _ => self.0.push(Stretch {
                from_ns,
                to_ns,
                doing,
            }),
        }
    }

    /// Takes back that a thread ran since it was seen to come: another one left the CPU, and when that
    /// had come was not recorded.
    fn doubt(&mut self, cpu: &Cpu<'_>, last: Option<&'a str>) {
        let since_ns = cpu.thread.and_then(|thread| thread.since_ns);
        let since_ns = since_ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0);
        let later = self.0.iter_mut().filter(|it| it.from_ns >= since_ns);
        for stretch in later.filter(|it| matches!(it.doing, Doing::Thread(_))) {
            stretch.doing = Doing::Unseen { last };
        }
    }
}

/// The state of a CPU between two events.
pub(crate) struct Cpu<'a> {
    /// Handlers of interrupts, the innermost last.
    interrupts: Vec<&'a str>,
    /// Softirqs by the thread they run on: under PREEMPT_RT, a thread is preempted in the middle of
    /// one.
    softirqs: HashMap<&'a str, &'a str>,
    thread: Option<Thread<'a>>,
}

impl<'a> Cpu<'a> {
    /// Finds out what the CPU did when the events begin: what is left without having been entered
    /// was entered before, and the priority of the thread is known when the CPU leaves it.
    pub(crate) fn at_first(events: &[&'a TraceEvent]) -> Self {
        let mut interrupts = Vec::new();
        let mut depth = 0_usize;
        for event in events {
            match &event.what {
                TraceKind::InterruptEntry { .. } => depth += 1,
                TraceKind::InterruptExit { name } if depth == 0 => {
                    interrupts.insert(0, name.as_str());
                }
                TraceKind::InterruptExit { .. } => depth -= 1,
                _ => {}
            }
        }
        let mut thread = None;
        let mut softirqs = HashMap::new();
        for event in events {
            match &event.what {
                TraceKind::Running { thread: name, ours } => {
                    thread = Some(Thread {
                        name,
                        ours: *ours,
                        priority: None,
                        since_ns: None,
                    });
                }
                TraceKind::SoftirqEntry { .. } => break,
                TraceKind::SoftirqExit { name } => {
                    if let Some(thread) = thread {
                        softirqs.insert(thread.name, name.as_str());
                    }
                    break;
                }
                TraceKind::Switch { .. } => break,
                _ => {}
            }
        }
        let left = events.iter().find_map(|event| match event.what {
            TraceKind::Switch { from_priority, .. } => Some(from_priority),
            _ => None,
        });
        if let Some(thread) = &mut thread {
            thread.priority = left;
        }
        Self {
            interrupts,
            softirqs,
            thread,
        }
    }

    pub(crate) fn take(&mut self, event: &'a TraceEvent) {
        match &event.what {
            TraceKind::InterruptEntry { name } => self.interrupts.push(name),
            TraceKind::InterruptExit { .. } => {
                self.interrupts.pop();
            }
            TraceKind::SoftirqEntry { name } => {
                if let Some(thread) = self.thread {
                    self.softirqs.insert(thread.name, name);
                }
            }
            TraceKind::SoftirqExit { .. } => {
                if let Some(thread) = self.thread {
                    self.softirqs.remove(thread.name);
                }
            }
            TraceKind::Switch {
                to,
                to_priority,
                ours,
                ..
            } => {
                self.thread = Some(Thread {
                    name: to,
                    ours: *ours,
                    priority: Some(*to_priority),
                    since_ns: Some(event.at_ns),
                });
            }
            TraceKind::Running { .. }
            | TraceKind::TimerExpired { .. }
            | TraceKind::Waking { .. }
            | TraceKind::Work
            | TraceKind::PageFault { .. } => {}
        }
    }

    fn unseen(&self) -> Doing<'a> {
        Doing::Unseen {
            last: self.thread.map(|thread| thread.name),
        }
    }

    pub(crate) fn doing(&self) -> Doing<'a> {
        let Some(thread) = self.thread else {
            return self.unseen();
        };
        let softirq = self.softirqs.get(thread.name);
        match (self.interrupts.last(), softirq) {
            (Some(name), _) => Doing::Interrupt {
                name,
                thread: thread.name,
            },
            (None, Some(name)) => Doing::Softirq {
                name,
                thread: thread.name,
            },
            (None, None) => Doing::Thread(thread),
        }
    }
}
