//! Everything that the kernel does on some CPUs, from one reading to the next, whatever runs there.
//!
//! No thread spins, and nothing waits for the reader: what the kernel overwrites before it is read is
//! counted as lost.

use std::mem;

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use tare_wire::cpus::Cpus;
use tare_wire::record;
use tare_wire::trace::{Kind, Task};

use super::cost;
use super::decode::{self, Decoded, Event, Names};
use super::error::FlightError;
use super::joined::{Sent, joined};
use super::processes::Processes;
use super::recording::{find, name_threads};
use super::ring::{self, Ring, Whose};
use super::trace::Trace;
use super::tracefs::Tracefs;
use super::tracepoint::{self, Point, Tracepoint};
use crate::linux::clock::now_ns;

/// The bytes for the buffers of all CPUs, and the most and the least of one of them.
const ALL_BYTES: usize = 32 << 20;
const MOST_BYTES: usize = 16 << 20;
const LEAST_BYTES: usize = 256 << 10;

/// Events that only matter for one measured thread, and are not recorded.
const OF_ONE_THREAD: [Point; 3] = [Point::Waking, Point::SoftirqRaised, Point::PageFault];

/// The kernel's events of some CPUs, until it is dropped.
pub struct Live {
    /// A buffer of each CPU, and how many bytes had been written when it was read last.
    rings: Vec<(Ring, u64)>,
    tracepoints: Vec<Tracepoint>,
    /// The moment of the last reading.
    since_ns: u64,
    /// Time to record an event, in ns, if known.
    cost_ns: Option<u64>,
}

/// How much was recorded between two readings.
pub struct Recorded {
    /// Number of events.
    pub events: u64,
    /// About how many were overwritten before they were read.
    pub lost: u64,
    /// The time that recording them took, in ns, if known.
    pub recording_ns: Option<u64>,
}

impl Live {
    /// Starts recording on some CPUs.
    ///
    /// # Errors
    ///
    /// Returns [`FlightError`] if the kernel does not show its events, or not to this user.
    pub fn open(cpus: &Cpus) -> Result<Self, FlightError> {
        tracepoint::check_namespace()?;
        let tracefs = Tracefs::open().map_err(FlightError::Tracefs)?;
        let mut tracepoints = tracepoint::find_all(&tracefs)?;
        let cost_ns = cost_ns(&tracepoints);
        tracepoints.retain(|one| !OF_ONE_THREAD.contains(&one.point));
        tracepoints.extend(tracepoint::find_sent(&tracefs, None));
        tracepoints.iter_mut().for_each(|one| one.has_stack = false);
        let rings = rings(Whose::Everyone, cpus, &tracepoints)?;
        Ok(Self {
            rings: rings.into_iter().map(|ring| (ring, 0)).collect(),
            cost_ns,
            tracepoints,
            since_ns: now_ns(),
        })
    }

    /// Reads what happened since the last reading: a trace for each CPU, whose set is the number of the
    /// CPU and whose value is the time between the readings in ns.
    pub fn turn(&mut self) -> (Trace, Recorded) {
        let to_ns = now_ns();
        let from_ns = mem::replace(&mut self.since_ns, to_ns);
        let (mut names, mut sent) = (Names::new(), Vec::new());
        let (mut all, mut lost) = (0, 0);
        let mut readings = Vec::new();
        for (ring, read) in &mut self.rings {
            let before = mem::replace(read, ring.written());
            let mut bytes = vec![0; ring.bytes()];
            let copied = ring.newest(from_ns, &mut bytes);
            bytes.truncate(copied.bytes);
            let newest_first = decode::events(&bytes, find(ring, &self.tracepoints), &mut names);
            let mut events: Vec<_> = newest_first.filter(|(time, ..)| *time < to_ns).collect();
            // The kernel's clock for events can step back by some ns.
            events.sort_by_key(|(time, ..)| *time);
            let running = events
                .first()
                .and_then(|(time, tid, event)| match event.kind {
                    Kind::Switch if *time < from_ns => Some(Task::from_number(event.b)?.tid),
                    _ => *tid,
                });
            events.retain(|(time, ..)| *time >= from_ns);
            all += events.len() as u64;
            let mut since_ns = from_ns;
            if !copied.complete {
                let beyond = (*read - before).saturating_sub(bytes.len() as u64) as f64;
                lost += (events.len() as f64 * beyond / bytes.len().max(1) as f64).ceil() as u64;
                since_ns = events.first().map_or(to_ns, |(time, ..)| *time);
            }
            let running = running.map(|tid| Event::new(Kind::Running, tid.into()));
            events.splice(..0, running.map(|event| (since_ns, None, event)));
            let is_sender = |(.., event): &Sent| event.kind == Kind::Sender;
            let (senders, own): (Vec<_>, Vec<_>) = events.into_iter().partition(is_sender);
            sent.extend(senders);
            let own = own.into_iter().map(|(time, _, event)| (time, event));
            readings.push((ring.cpu(), Vec::from_iter(own), copied.complete));
        }
        let decoded = readings.into_iter().map(|(cpu, events, complete)| {
            let events = joined(cpu, events, &sent, &names);
            name_threads(&mut names, &events);
            let at = |(time, event)| Event {
                at_ns: u64::saturating_sub(time, from_ns).cast_signed(),
                ..event
            };
            Decoded {
                trace: record::Trace {
                    place: 0,
                    set: cpu,
                    index: 0,
                    value: to_ns - from_ns,
                    greatest: to_ns - from_ns,
                    samples: 1,
                    // None of the threads measures.
                    tid: u32::MAX,
                    events: 0,
                    complete,
                },
                events: events.into_iter().map(at).collect(),
                names: Names::new(),
                waker: None,
            }
        });
        let mut decoded = Vec::from_iter(decoded);
        if let Some(first) = decoded.first_mut() {
            first.names = names;
        }
        let recorded = Recorded {
            events: all,
            lost,
            recording_ns: self.cost_ns.map(|cost_ns| cost_ns * (all + lost)),
        };
        // Of those that have ended since the last reading, the events have most names.
        let processes = Processes::default();
        (Trace::new(decoded.into_iter(), Some(&processes)), recorded)
    }
}

/// Starts recording on some CPUs, into buffers that share a size.
pub(super) fn rings(
    whose: Whose,
    cpus: &Cpus,
    tracepoints: &[Tracepoint],
) -> Result<Vec<Ring>, FlightError> {
    let share = ALL_BYTES / cpus.count().max(1) as usize;
    let bytes = (1 << share.max(1).ilog2()).clamp(LEAST_BYTES, MOST_BYTES);
    let open = |cpu| {
        let ring = |bytes| Ring::of(whose, cpu, tracepoints, bytes);
        ring(bytes).or_else(|_| ring(ring::SIZE))
    };
    cpus.iter().map(open).collect()
}

/// Measures how long the kernel takes to record an event without a stack, in ns, on the CPU where this
/// thread is.
fn cost_ns(tracepoints: &[Tracepoint]) -> Option<u64> {
    let before = sched_getaffinity(None).ok()?;
    let cpu = sched_getcpu();
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one).ok()?;
    let cost = cost::cost_ns(cpu as u32, tracepoints);
    sched_setaffinity(None, &before).ok()?;
    cost
}
