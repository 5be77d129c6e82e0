//! Decodes the kernel's records into events.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tare_wire::record::Trace;
use tare_wire::trace::{Kind, Task};

use super::joined::NMI;
use super::processes::PROCESS;
use super::ring;
use super::tracepoint::{Point, Tracepoint};

/// The offset of the running thread's id in every event: `common_pid`.
const RUNNING_AT: usize = 4;

/// The kernel's events around one sample.
#[derive(Debug)]
pub struct Decoded {
    /// The sample, without its rank and the number of its events.
    pub trace: Trace,
    /// The events until the thread read the clock, by time.
    pub events: Vec<Event>,
    /// Names of the things that events give by number: threads, interrupts, vectors; for threads,
    /// the numbers of their processes.
    pub names: Names,
    /// Address of the function of the timer that woke the thread, if visible.
    pub waker: Option<u64>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time after the sample was due.
    pub at_ns: i64,
    /// What happened.
    pub kind: Kind,
    /// First value of the kind; of a timer, the address of its function.
    pub a: u64,
    /// Second value.
    pub b: u64,
    /// Addresses of the active kernel functions, innermost first; of an interrupt that was sent, the
    /// CPUs.
    pub stack: Vec<u64>,
}

impl Event {
    /// Returns an event with one value and without a time.
    pub fn new(kind: Kind, a: u64) -> Self {
        let (at_ns, b, stack) = (0, 0, Vec::new());
        Self {
            at_ns,
            kind,
            a,
            b,
            stack,
        }
    }
}

/// Names by the kind of thing and its number.
pub type Names = BTreeMap<(&'static str, u64), String>;

/// Decodes the copy for a sample that was due at `due_ns`. `find` returns the tracepoint of an
/// identifier, and whether its records have a stack. Records of unknown events are skipped.
pub fn decode<'a>(
    trace: Trace,
    due_ns: u64,
    bytes: &[u8],
    find: impl Fn(u64) -> Option<(&'a Tracepoint, bool)>,
) -> Decoded {
    let (mut names, mut kept) = (Names::new(), Vec::new());
    // Overwritten by each older event, so that the first one's remains.
    let mut running = None;
    for (time, tid, event) in events(bytes, find, &mut names) {
        let at_ns = time.cast_signed() - due_ns.cast_signed();
        if at_ns <= trace.value.cast_signed() {
            running = tid.map(|tid| (at_ns, tid));
            kept.push(Event { at_ns, ..event });
        }
    }
    let mut decoded = Decoded {
        trace,
        events: kept,
        names,
        waker: None,
    };
    if let Some((at_ns, tid)) = running {
        decoded.events.push(Event {
            at_ns,
            ..Event::new(Kind::Running, tid.into())
        });
    }
    decoded.events.reverse();
    in_order(&mut decoded.events);
    decoded.waker = waker(&decoded.events);
    decoded
}

/// Decodes records, the newest first: each with its time by CLOCK_MONOTONIC in ns, the id of the thread
/// that ran, and what happened, which has no time yet. `find` is that of [`decode`].
pub fn events<'a, 'b>(
    bytes: &'b [u8],
    find: impl Fn(u64) -> Option<(&'a Tracepoint, bool)> + 'b,
    names: &'b mut Names,
) -> impl Iterator<Item = (u64, Option<u32>, Event)> + 'b
where
    'a: 'b,
{
    ring::records(bytes).filter_map(move |(identifier, time, pid, body)| {
        let (tracepoint, with_stack) = find(identifier)?;
        let (stack, raw) = split(body, with_stack)?;
        let (kind, a, b) = values(tracepoint, raw, names)?;
        let stack = match kind {
            Kind::Sender => tracepoint.sent_to(raw),
            _ => stack,
        };
        let running = raw.get(RUNNING_AT..RUNNING_AT + 4);
        let running = running.and_then(|bytes| bytes.try_into().ok());
        let running = running.map(u32::from_le_bytes);
        if let Some(tid) = running.filter(|tid| *tid > 0 && ![0, u32::MAX].contains(&pid)) {
            let process = names.entry((PROCESS, tid.into()));
            process.or_insert_with(|| pid.to_string());
        }
        let event = Event {
            b,
            stack,
            ..Event::new(kind, a)
        };
        Some((time, running, event))
    })
}

/// The kernel's clock for events can step back by some ns when the kernel corrects it.
fn in_order(events: &mut [Event]) {
    let mut last = i64::MIN;
    for event in events {
        last = last.max(event.at_ns);
        event.at_ns = last;
    }
}

/// Splits an event's body into its stack and its values.
pub fn split(body: &[u8], with_stack: bool) -> Option<(Vec<u64>, &[u8])> {
    let mut rest = body;
    let mut take = |bytes: usize| {
        let (taken, after) = rest.split_at_checked(bytes)?;
        rest = after;
        Some(taken)
    };
    let mut stack = Vec::new();
    if with_stack {
        let depth = u64::from_le_bytes(take(8)?.try_into().ok()?);
        for _ in 0..depth {
            stack.push(u64::from_le_bytes(take(8)?.try_into().ok()?));
        }
        // The first entry marks kernel addresses (PERF_CONTEXT_KERNEL); no function has such an
        // address.
        stack.retain(|address| *address < u64::MAX - 4_095);
    }
    let length = u32::from_le_bytes(take(4)?.try_into().ok()?);
    let raw = take(length as usize)?;
    Some((stack, raw))
}

/// Decodes the kind and values of an event, and collects the names in it.
fn values(tracepoint: &Tracepoint, raw: &[u8], names: &mut Names) -> Option<(Kind, u64, u64)> {
    let number = |place| tracepoint.number(place, raw);
    let task = |tid, priority| {
        let tid = u32::try_from(number(tid)?).ok()?;
        // The field is signed, with 32 bits.
        let priority = number(priority)? as u32;
        let priority = i16::try_from(priority.cast_signed()).ok()?;
        Some(Task { tid, priority })
    };
    let mut note = |of, number, name: &dyn Fn() -> Option<String>| {
        if let Entry::Vacant(vacant) = names.entry((of, number))
            && let Some(name) = name()
        {
            vacant.insert(name);
        }
    };
    let mut thread = |task: Task, place| match task.tid {
        0 => {}
        tid => note("thread", tid.into(), &|| tracepoint.text(place, raw)),
    };
    Some(match &tracepoint.point {
        Point::VectorEntry { name, timer } => {
            note("vector", number(0)?, &|| Some(name.clone()));
            let kinds = [Kind::VectorEntry, Kind::TimerEntry];
            (kinds[usize::from(*timer)], number(0)?, 0)
        }
        Point::VectorExit { name, timer } => {
            note("vector", number(0)?, &|| Some(name.clone()));
            let kinds = [Kind::VectorExit, Kind::TimerExit];
            (kinds[usize::from(*timer)], number(0)?, 0)
        }
        Point::InterruptEntry => {
            note("interrupt", number(0)?, &|| {
                tracepoint.text_elsewhere(1, raw)
            });
            (Kind::InterruptEntry, number(0)?, 0)
        }
        Point::InterruptExit => (Kind::InterruptExit, number(0)?, 0),
        Point::SoftirqEntry => (Kind::SoftirqEntry, number(0)?, 0),
        Point::SoftirqExit => (Kind::SoftirqExit, number(0)?, 0),
        Point::TimerExpired => (Kind::TimerExpired, number(0)?, 0),
        Point::Waking => {
            let woken = task(0, 1)?;
            thread(woken, 2);
            (Kind::Waking, woken.number(), 0)
        }
        Point::Switch => {
            let (from, to) = (task(0, 1)?, task(3, 4)?);
            thread(from, 2);
            thread(to, 5);
            (Kind::Switch, from.number(), to.number())
        }
        Point::Work | Point::Called => (Kind::Work, number(0)?, 0),
        // These three are joined with others.
        Point::SoftirqRaised => (Kind::Waited, number(0)?, 0),
        Point::Nmi => {
            note("vector", NMI.0, &|| Some(NMI.1.to_owned()));
            (Kind::VectorExit, NMI.0, number(0)?)
        }
        Point::Sent { .. } => (Kind::Sender, (number(1)? != 0).into(), 0),
        Point::PageFault => (Kind::PageFault, number(0)?, 0),
        Point::Other(_) => return None,
    })
}

/// Returns the function of the timer that woke the thread to which the CPU switched last: the one
/// that recorded. It is the same for all threads that sleep until a time.
fn waker(events: &[Event]) -> Option<u64> {
    let tid = |number| Task::from_number(number).map(|task| task.tid);
    let last = events.iter().rfind(|event| event.kind == Kind::Switch)?;
    let ours = tid(last.b)?;
    let woken = events
        .iter()
        .rposition(|event| event.kind == Kind::Waking && tid(event.a) == Some(ours))?;
    let before = events.get(..woken)?.last()?;
    (before.kind == Kind::TimerExpired).then_some(before.a)
}
