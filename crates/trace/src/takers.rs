//! Who took the CPU from a thread that never sleeps, in its delays.
//!
//! The events of a delay say when handlers and other threads began and ended. The rest is the
//! thread's own: where it is longer than without a delay, the CPU was taken from outside this kernel
//! (by a hypervisor, by firmware), by exclusion. The way of the CPU into a handler and out of it is
//! the handler's.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::{Trace, TraceEvent, TraceKind};

use crate::timeline::{Cpu, Doing, IDLE, Thread, priority_of_ours, stretches};

/// How long the CPU may take out of a handler or to another thread and back, in ns, and into a handler
/// longer than usual: what is longer was taken from outside.
const EDGES_NS: u64 = 2_000;

/// The longest usual way into an interrupt, in ns.
const LONGEST_WAY_NS: u64 = 20_000;

/// Who took the CPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Taker {
    /// An interrupt's handler.
    Interrupt {
        /// Its name, a device's with its number: `local timer`, `24 virtio0-req.0`.
        name: String,
        /// The functions that it called: those of timers, or what another CPU asked for.
        functions: Vec<String>,
        /// The processes and threads on other CPUs that sent it, by name.
        senders: Vec<String>,
    },
    /// A softirq.
    Softirq {
        /// Its name: `NET_RX`.
        name: String,
        /// The timers' functions that it called.
        functions: Vec<String>,
    },
    /// The threads of another process.
    Process {
        /// The process's name.
        name: String,
    },
    /// Another thread: of the kernel, or of an unknown process.
    Thread {
        /// Its name, without its number.
        name: String,
        /// The queued functions that it ran, if it is one of the kernel's workers.
        functions: Vec<String>,
    },
    /// Pages that the thread touched and that were not there.
    PageFault {
        /// The memory that they are of, as far as it is known.
        of: Vec<String>,
    },
    /// A limit on the thread: of real-time threads, or the quota of its control group.
    Throttling,
    /// Nothing of this kernel: the hypervisor, or firmware.
    Outside,
    /// Unknown: the kernel's buffer does not hold it.
    Unseen,
}

impl Taker {
    fn interrupt(name: &str) -> Self {
        Self::Interrupt {
            name: name.to_owned(),
            functions: Vec::new(),
            senders: Vec::new(),
        }
    }

    fn of(doing: Doing<'_>, trace: &Trace) -> Option<Self> {
        let functions = Vec::new();
        Some(match doing {
            Doing::Interrupt { name, .. } => Self::interrupt(name),
            Doing::Softirq { name, .. } => Self::Softirq {
                name: name.to_owned(),
                functions,
            },
            Doing::Thread(thread) if thread.ours => return None,
            Doing::Thread(thread) => match trace.processes.get(thread.name) {
                Some(name) => Self::Process { name: name.clone() },
                None => {
                    let name = without_number(thread.name);
                    Self::Thread { name, functions }
                }
            },
            Doing::Unseen { .. } => Self::Unseen,
        })
    }

    /// Adds the functions that it called, and who sent it.
    fn with(mut self, called: Option<&Called>) -> Self {
        let called = called.cloned().unwrap_or_default();
        match &mut self {
            Self::Interrupt {
                functions, senders, ..
            } => (*functions, *senders) = (called.functions, called.senders),
            Self::Softirq { functions, .. } => *functions = called.functions,
            // What other threads call on their own CPU is no queued work, and no other CPU's question.
            Self::Thread { name, functions } if name.starts_with("kworker/") => {
                *functions = called.functions;
            }
            Self::Process { .. }
            | Self::Thread { .. }
            | Self::PageFault { .. }
            | Self::Throttling
            | Self::Outside
            | Self::Unseen => {}
        }
        self
    }
}

/// The functions that a taker called, and the threads that sent it, by the events of a delay.
#[derive(Clone, Debug, Default)]
struct Called {
    functions: Vec<String>,
    senders: Vec<String>,
}

impl Called {
    /// Notes the function that an event calls, if it calls one.
    fn note_function(&mut self, event: &TraceEvent) {
        let is_call = matches!(event.what, TraceKind::TimerExpired { .. } | TraceKind::Work);
        if let Some(name) = event.stack.first().filter(|_| is_call) {
            put(&mut self.functions, name.clone());
        }
    }

    /// Notes the thread or process that sent an interrupt, if the event of its entry says so.
    fn note_sender(&mut self, event: &TraceEvent, trace: &Trace) {
        if let Some(sender) = &event.sender {
            let process = trace.processes.get(sender).cloned();
            put(
                &mut self.senders,
                process.unwrap_or_else(|| without_number(sender)),
            );
        }
    }
}

/// Puts a name into its place among others, once.
fn put(known: &mut Vec<String>, name: String) {
    if let Err(place) = known.binary_search(&name) {
        known.insert(place, name);
    }
}

impl fmt::Display for Taker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = Vec::new();
        let (kind, name, functions, senders) = match self {
            Self::Interrupt {
                name,
                functions,
                senders,
            } => ("interrupt", name, functions, senders),
            Self::Softirq { name, functions } => ("softirq", name, functions, &none),
            Self::Process { name } => ("process", name, &none, &none),
            Self::Thread { name, functions } => ("thread", name, functions, &none),
            Self::Throttling => return f.write_str("throttling of this thread"),
            Self::PageFault { of } if of.is_empty() => return f.write_str("page faults"),
            Self::PageFault { of } => return write!(f, "page faults ({})", of.join(", ")),
            Self::Outside => return f.write_str("outside this kernel"),
            Self::Unseen => return f.write_str("not recorded"),
        };
        write!(f, "{kind} {name}")?;
        if !functions.is_empty() {
            write!(f, " ({})", functions.join(", "))?;
        }
        match senders.is_empty() {
            true => Ok(()),
            false => write!(f, " from {}", senders.join(", ")),
        }
    }
}

fn without_number(thread: &str) -> String {
    let end = thread.rfind('/').unwrap_or(thread.len());
    thread[..end].to_owned()
}

/// Who took how much of the time of delays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Time in ns, from the greatest share on. The sum is the delays' time without what is the
    /// thread's own.
    pub takers: Vec<(Taker, u64)>,
    /// Of each softirq, how often it came, and the sum of the times since it had been raised, in ns.
    pub waits: BTreeMap<Taker, (u64, u64)>,
    /// The numbers of the threads, and their names.
    pub threads: BTreeMap<Taker, BTreeMap<u32, String>>,
}

/// Returns how long the CPU usually takes into an interrupt, in ns: the median over delays that begin
/// with one, `own_ns` of each of which are not taken. In a virtual machine the hypervisor has to stop
/// it first, which takes some µs; what another guest takes is not usual.
#[must_use]
pub fn way_in_ns(traces: &[Trace], own_ns: u64) -> u64 {
    let ways = traces.iter().filter_map(|trace| {
        let entry = begins_with_interrupt(trace)?;
        let mean = u64::try_from(entry.at_ns).ok()? / trace.samples.max(1);
        Some((mean.saturating_sub(own_ns), trace.samples))
    });
    let mut ways: Vec<_> = ways.collect();
    ways.sort_unstable();
    let half = ways.iter().map(|(_, samples)| samples).sum::<u64>() / 2;
    let mut before = 0;
    let median = ways.iter().find(|(_, samples)| {
        before += samples;
        before > half
    });
    median.map_or(0, |(way_ns, _)| (*way_ns).min(LONGEST_WAY_NS))
}

/// Returns the entry of the interrupt with which delays begin, if they do.
fn begins_with_interrupt(trace: &Trace) -> Option<&TraceEvent> {
    let mut events = trace.events.iter().filter(|_| trace.complete);
    let first = events.find(|event| !matches!(event.what, TraceKind::Running { .. }))?;
    matches!(first.what, TraceKind::InterruptEntry { .. }).then_some(first)
}

/// Says who took how much of the time of delays; `own_ns` of each of them are not taken, and the usual
/// way into an interrupt ([`way_in_ns`]) is the interrupt's.
#[must_use]
pub fn takers(trace: &Trace, own_ns: u64, way_ns: u64) -> Shares {
    let own_ns = own_ns.saturating_mul(trace.samples);
    let taken_ns = trace.value.saturating_sub(own_ns);
    if !trace.complete {
        return Shares {
            takers: vec![(Taker::Unseen, taken_ns)],
            ..Shares::default()
        };
    }
    let end = i64::try_from(trace.value).unwrap_or(i64::MAX);
    let events: Vec<&TraceEvent> = trace.events.iter().collect();
    let (called, faulted) = followed(trace, &events);
    let with = |taker: Taker| {
        let called = called.get(&taker);
        taker.with(called)
    };
    let (mut shares, mut rest_ns) = (BTreeMap::<Taker, u64>::new(), 0);
    let mut threads = BTreeMap::<Taker, BTreeMap<u32, String>>::new();
    for stretch in stretches(&events, end, true) {
        let ns = stretch.to_ns - stretch.from_ns;
        let thread = numbered(&stretch.doing);
        let taker = match stretch.doing {
            Doing::Thread(thread) if !thread.ours && is_let(&events, &thread) => {
                Some(faulted.clone().unwrap_or(Taker::Throttling))
            }
            // Some kernels leave out the switch from the idle thread back to ours.
            Doing::Unseen { last: Some(IDLE) } if faulted.is_some() => faulted.clone(),
            doing => Taker::of(doing, trace).map(with),
        };
        let Some(taker) = taker else {
            rest_ns += ns;
            continue;
        };
        if let Taker::Process { .. } | Taker::Thread { .. } = taker {
            threads.entry(taker.clone()).or_default().extend(thread);
        }
        *shares.entry(taker).or_default() += ns;
    }
    let mut rest_ns = rest_ns.saturating_sub(own_ns);
    if let Some(entry) = begins_with_interrupt(trace)
        && let TraceKind::InterruptEntry { name } = &entry.what
    {
        let way_ns = rest_ns.min(way_ns.saturating_mul(trace.samples));
        rest_ns -= way_ns;
        *shares.entry(with(Taker::interrupt(name))).or_default() += way_ns;
    }
    let greatest = shares.iter_mut().max_by_key(|(_, ns)| **ns);
    match greatest {
        Some((_, ns)) if rest_ns <= EDGES_NS.saturating_mul(trace.samples) => *ns += rest_ns,
        _ => *shares.entry(faulted.unwrap_or(Taker::Outside)).or_default() += rest_ns,
    }
    let mut takers: Vec<_> = shares.into_iter().filter(|(_, ns)| *ns > 0).collect();
    // The sort keeps the order of names among equal ones.
    takers.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let mut waits = BTreeMap::<Taker, (u64, u64)>::new();
    for event in events {
        if let (TraceKind::SoftirqEntry { name }, Some(ns)) = (&event.what, event.waited_ns) {
            let softirq = Taker::Softirq {
                name: name.clone(),
                functions: Vec::new(),
            };
            let (count, sum) = waits.entry(with(softirq)).or_default();
            *count += trace.samples;
            *sum += ns;
        }
    }
    Shares {
        takers,
        waits,
        threads,
    }
}

/// Returns what a CPU was used for during a trace in which no thread is the one that measures: the
/// times of each occurrence in ns, without those of what interrupted it. Threads have their numbers, the
/// idle thread none; functions and senders are those of the occurrence.
#[must_use]
pub fn uses(trace: &Trace) -> BTreeMap<(Taker, Option<u32>), Vec<u64>> {
    let end = i64::try_from(trace.value).unwrap_or(i64::MAX);
    let events: Vec<&TraceEvent> = trace.events.iter().collect();
    let mut uses = BTreeMap::<_, Vec<u64>>::new();
    let mut finish = |(taker, number, ns, called): (Taker, _, _, Called)| {
        let key = (taker.with(Some(&called)), number);
        uses.entry(key).or_default().push(ns);
    };
    // What goes on: a thread, on it a softirq, on that an interrupt.
    let mut open = [const { None }; 3];
    let mut next = events.iter().peekable();
    for stretch in stretches(&events, end, false) {
        let number = numbered(&stretch.doing).map(|(tid, _)| tid);
        let level = match stretch.doing {
            Doing::Interrupt { .. } => 2,
            Doing::Softirq { .. } => 1,
            Doing::Thread(_) | Doing::Unseen { .. } => 0,
        };
        let Some(taker) = Taker::of(stretch.doing, trace) else {
            continue;
        };
        let is_same = |(known, tid, ..): &(Taker, _, _, _)| *known == taker && *tid == number;
        let goes_on = open[level].as_ref().is_some_and(is_same);
        let ended = open[level + usize::from(goes_on)..].iter_mut();
        ended.filter_map(Option::take).for_each(&mut finish);
        let begun = || (taker, number, 0, Called::default());
        let (_, _, ns, called) = open[level].get_or_insert_with(begun);
        *ns += stretch.to_ns - stretch.from_ns;
        while let Some(event) = next.next_if(|event| event.at_ns < stretch.to_ns.cast_signed()) {
            called.note_function(event);
            called.note_sender(event, trace);
        }
    }
    open.into_iter().flatten().for_each(finish);
    uses
}

/// Returns number and name of the thread that runs; None while none does, and for the idle thread.
fn numbered(doing: &Doing<'_>) -> Option<(u32, String)> {
    let Doing::Thread(Thread { name, .. }) = doing else {
        return None;
    };
    let (name, tid) = name.rsplit_once('/')?;
    Some((tid.parse().ok()?, name.to_owned()))
}

/// Returns whether a thread has the CPU only since the measured one, which never sleeps by itself, may
/// not or can't go on: the idle thread, or one without a real-time priority where ours has one.
fn is_let(events: &[&TraceEvent], thread: &Thread<'_>) -> bool {
    const NO_REAL_TIME: i32 = 100;
    let is_real_time = priority_of_ours(events).is_some_and(|priority| priority < NO_REAL_TIME);
    thread.name == IDLE
        || is_real_time && thread.priority.is_some_and(|other| other >= NO_REAL_TIME)
}

/// Returns the functions that each has called and who sent it, by name, and the page faults of the
/// thread itself, if any.
fn followed(trace: &Trace, events: &[&TraceEvent]) -> (BTreeMap<Taker, Called>, Option<Taker>) {
    let (mut all, mut pages) = (BTreeMap::<Taker, Called>::new(), None);
    let mut cpu = Cpu::at_first(events);
    for event in events {
        let taker = Taker::of(cpu.doing(), trace);
        match (taker, &event.what) {
            (Some(taker), _) => all.entry(taker).or_default().note_function(event),
            (None, TraceKind::PageFault { of }) => {
                let pages = pages.get_or_insert_with(Vec::new);
                of.iter().for_each(|name| put(pages, name.clone()));
            }
            (None, _) => {}
        }
        cpu.take(event);
        if let Some(taker) = Taker::of(cpu.doing(), trace) {
            all.entry(taker).or_default().note_sender(event, trace);
        }
    }
    (all, pages.map(|of| Taker::PageFault { of }))
}
