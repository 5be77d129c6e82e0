//! A flight recorder: what the kernel did on a measured CPU around the worst wake-ups.
//!
//! The kernel writes its trace events into a ring in memory, one for each measured CPU; the newest overwrites the
//! oldest (perf_event_open(2), `write_backward`). Right after a wake-up that is among the worst so far, the thread
//! that was late copies the newest part of its CPU's ring aside, without a system call. What the copies mean is found
//! out after the measurement.
//!
//! No setting of the kernel is changed, so nothing has to be undone: rings and events end with their file
//! descriptors, and tracefs is looked at through a mount that is attached nowhere.
//!
//! Tracing costs time in the path of every wake-up: a traced latency is longer, and is labelled as traced.
//!
//! * [`tracefs`], [`tracepoint`]: which events there are, and what their bytes mean;
//! * [`ring`]: the kernel's buffer of one CPU;
//! * [`recorder`]: the copies that one thread keeps;
//! * [`decode`]: from bytes to events;
//! * [`symbols`]: names of kernel functions;
//! * [`trace`]: the records that come of it;
//! * [`trouble`]: what can go wrong.

mod decode;
mod recorder;
mod ring;
mod symbols;
#[cfg(test)]
mod tests;
mod trace;
mod tracefs;
mod tracepoint;
mod trouble;

use std::cmp::Reverse;
use std::sync::Arc;

use tare_wire::cpus::Cpus;

pub use self::recorder::Recorder;
use self::ring::Ring;
pub use self::trace::Trace;
use self::tracefs::Tracefs;
use self::tracepoint::Tracepoint;
pub use self::trouble::Trouble;

/// Is how much memory the copies of all threads may take.
const MOST_BYTES: usize = 512 << 20;

/// Records what the kernel does on some CPUs, from when it is made to when it is dropped.
pub struct Flight {
    worst: usize,
    tracepoints: Vec<Tracepoint>,
    rings: Vec<Arc<Ring>>,
}

impl Flight {
    /// Starts recording on each of `cpus`, to keep what was around the `worst` wake-ups.
    ///
    /// # Errors
    ///
    /// Returns [`Trouble`] if the kernel does not show its events, or not to this user. Nothing is recorded then,
    /// and measuring can go on without.
    pub fn open(cpus: &Cpus, worst: u32) -> Result<Self, Trouble> {
        tracepoint::check_namespace()?;
        let tracefs = Tracefs::open().map_err(Trouble::Tracefs)?;
        let tracepoints = tracepoint::find(&tracefs)?;
        let rings = cpus
            .iter()
            .map(|cpu| Ring::open(cpu, &tracepoints).map(Arc::new))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            worst: worst as usize,
            tracepoints,
            rings,
        })
    }

    /// Makes a recorder for each of `threads`, given as their numbers and CPUs.
    ///
    /// # Errors
    ///
    /// Returns [`Trouble`] if a CPU is not one of those that were opened, or the copies would take too much memory.
    pub fn recorders(
        &self,
        threads: impl ExactSizeIterator<Item = (u32, u32)>,
    ) -> Result<Vec<Recorder>, Trouble> {
        let bytes = threads.len() * self.worst * recorder::MOST_COPIED;
        if bytes > MOST_BYTES {
            return Err(Trouble::TooMuch { bytes });
        }
        threads
            .map(|(thread, cpu)| {
                let ring = self.rings.iter().find(|ring| ring.cpu() == cpu);
                let ring = ring.ok_or(Trouble::OtherCpu { cpu })?;
                Ok(Recorder::new(thread, Arc::clone(ring), self.worst))
            })
            .collect()
    }

    /// Finds out what the recorders hold: the worst wake-ups of all threads. Ends recording.
    pub fn finish(self, recorders: &[Recorder]) -> Trace {
        for ring in &self.rings {
            ring.stop();
        }
        let mut kept: Vec<_> = recorders
            .iter()
            .flat_map(|recorder| recorder.kept().map(move |kept| (recorder, kept)))
            .collect();
        kept.sort_by_key(|(_, kept)| (Reverse(kept.latency_ns), kept.activation));
        kept.truncate(self.worst);
        Trace::new(
            kept.into_iter()
                .map(|(recorder, kept)| recorder.decode(&kept, &self.tracepoints)),
        )
    }
}
