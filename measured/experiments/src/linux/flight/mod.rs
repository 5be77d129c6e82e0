//! A flight recorder: the kernel's events on a measured CPU around the worst samples.
//!
//! The kernel writes its trace events into a ring in memory, one for each measured CPU; the newest
//! event overwrites the oldest (perf_event_open(2), `write_backward`). Right after a sample that is
//! among the worst so far, the late thread copies the newest part of its CPU's ring, without a
//! system call. The copies are decoded after the measurement.
//!
//! No setting of the kernel is changed, so nothing has to be undone: rings and events end with
//! their file descriptors, and tracefs is read through a detached mount.
//!
//! Tracing adds time to every sample: traced values are greater, and are labelled as traced.
//!
//! * [`tracefs`], [`tracepoint`]: the available events, and the layout of their records;
//! * [`ring`]: the kernel's buffer of one CPU;
//! * `snapshots`: the copies of one thread;
//! * [`recording`]: everything on a CPU for a time, joined with the delays of what ran there;
//! * [`live`]: everything on some CPUs, from one reading to the next;
//! * [`exits`]: how often the guests of a process leave their virtual CPUs, and why;
//! * `cost`: how long the kernel takes to record an event;
//! * [`decode`]: decodes records into events;
//! * `joined`: what events say of each other;
//! * `processes`: the names of the processes that threads belong to;
//! * `folded`: sums of delays whose events are not written;
//! * `pages`: what a page belongs to that was not there;
//! * [`symbols`]: names of kernel functions;
//! * [`trace`]: the resulting records;
//! * [`timerlat`]: a second opinion;
//! * `error`: possible failures.

mod cost;
mod decode;
mod error;
pub mod exits;
mod folded;
mod joined;
pub mod live;
mod pages;
mod processes;
pub mod recording;
mod ring;
mod snapshots;
mod symbols;
#[cfg(test)]
mod tests;
pub mod timerlat;
mod trace;
mod tracefs;
mod tracepoint;

use std::cmp::Reverse;
use std::mem;
use std::sync::Arc;

pub use self::error::FlightError;
use self::processes::Processes;
use self::ring::Ring;
pub use self::snapshots::Snapshots;
pub use self::trace::Trace;
use self::tracefs::Tracefs;
use self::tracepoint::Tracepoint;

/// The limit on the memory for the copies of all threads.
const MOST_BYTES: usize = 512 << 20;

/// Opens all events that are recorded, without recording any, and keeps them open until the process
/// ends. As long as one process has an event open, the kernel changes no code for others that open
/// it, and need not wait, some 40 ms for each event, until no CPU is in that code any more.
///
/// # Errors
///
/// Returns [`FlightError`] if the kernel does not show its events, or not to this user.
pub fn keep_open() -> Result<(), FlightError> {
    let tracefs = Tracefs::open().map_err(FlightError::Tracefs)?;
    let cpu = rustix::thread::sched_getcpu() as u32;
    for tracepoint in tracepoint::find_all(&tracefs)? {
        mem::forget(ring::Event::unrecorded(cpu, &tracepoint)?);
    }
    Ok(())
}

/// A recorder of the kernel's events on some CPUs, which runs until it is dropped.
pub struct Flight {
    worst: usize,
    tracepoints: Vec<Tracepoint>,
    rings: Vec<Arc<Ring>>,
    /// Those that ran when recording began.
    processes: Processes,
}

impl Flight {
    /// Starts recording for `threads`, given as their numbers and CPUs, and returns the snapshots
    /// of each for its `worst` samples.
    ///
    /// # Errors
    ///
    /// Returns [`FlightError`] if the kernel does not show its events, or not to this user; if a
    /// thread is not pinned; or if the copies would need too much memory. Nothing is recorded then,
    /// and measuring can continue without.
    pub fn open(
        threads: impl ExactSizeIterator<Item = (u32, Option<u32>)>,
        worst: u32,
    ) -> Result<(Self, Vec<Snapshots>), FlightError> {
        let worst = worst as usize;
        let bytes = threads.len() * worst * snapshots::MOST_COPIED;
        if bytes > MOST_BYTES {
            return Err(FlightError::TooMuch { bytes });
        }
        tracepoint::check_namespace()?;
        let tracefs = Tracefs::open().map_err(FlightError::Tracefs)?;
        let tracepoints = tracepoint::find(&tracefs)?;
        let mut rings: Vec<Arc<Ring>> = Vec::new();
        let mut snapshots = Vec::new();
        for (thread, cpu) in threads {
            let cpu = cpu.ok_or(FlightError::Unpinned)?;
            let ring = match rings.iter().find(|ring| ring.cpu() == cpu) {
                Some(ring) => Arc::clone(ring),
                None => {
                    let ring = Arc::new(Ring::open(cpu, &tracepoints, ring::SIZE)?);
                    rings.push(Arc::clone(&ring));
                    ring
                }
            };
            snapshots.push(Snapshots::new(thread, ring, worst));
        }
        let flight = Self {
            worst,
            tracepoints,
            rings,
            processes: Processes::read(),
        };
        Ok((flight, snapshots))
    }

    /// Stops recording, and decodes the snapshots, each given with its thread's id in the kernel:
    /// the worst samples of all threads.
    pub fn finish(self, snapshots: &[(u32, Snapshots)]) -> Trace {
        for ring in &self.rings {
            ring.stop();
        }
        let mut kept: Vec<_> = snapshots
            .iter()
            .flat_map(|(tid, snapshots)| snapshots.kept().map(move |kept| (*tid, snapshots, kept)))
            .collect();
        kept.sort_by_key(|(_, _, (kept, _))| (Reverse(kept.value_ns), kept.index));
        kept.truncate(self.worst);
        Trace::new(
            kept.into_iter()
                .map(|(tid, snapshots, kept)| snapshots.decode(tid, kept, &self.tracepoints)),
            Some(&self.processes),
        )
    }
}
