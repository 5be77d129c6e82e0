//! One thread's copies of the kernel's buffer, for its worst samples so far.

use std::sync::Arc;

use tare_wire::record::Trace;

use super::decode::{self, Decoded};
use super::ring::{Copied, Ring};
use super::tracepoint::Tracepoint;

/// The maximum size of a copy: about a thousand events.
pub const MOST_COPIED: usize = 64 << 10;

/// The time before a sample was due that its events cover, to show what was going on then.
const BEFORE_NS: u64 = 50_000;

/// The kernel's events around the worst samples of one thread.
pub struct Snapshots {
    thread: u32,
    ring: Arc<Ring>,
    places: Vec<Snapshot>,
    used: usize,
    /// The value above which a sample is among the worst.
    above_ns: u64,
    /// The index of the copy that it would replace.
    least: usize,
    bytes: Vec<u8>,
}

/// One of the worst samples, and the extent of its copy.
#[derive(Clone, Copy, Default)]
pub struct Snapshot {
    /// Number of the sample.
    pub index: u64,
    /// Time when it was due, CLOCK_MONOTONIC.
    pub due_ns: u64,
    /// Latency.
    pub value_ns: u64,
    /// Extent of the kernel's records.
    pub copied: Copied,
}

impl Snapshots {
    /// Allocates memory for the `worst` samples of a thread, and touches it.
    pub(super) fn new(thread: u32, ring: Arc<Ring>, worst: usize) -> Self {
        Self {
            thread,
            ring,
            places: vec![Snapshot::default(); worst],
            used: 0,
            above_ns: 0,
            least: 0,
            // Not zeros: their pages would not be mapped yet.
            bytes: vec![u8::MAX; worst * MOST_COPIED],
        }
    }

    /// Returns whether a sample is among the worst so far.
    #[inline]
    pub fn is_candidate(&self, value_ns: u64) -> bool {
        value_ns > self.above_ns || self.used < self.places.len()
    }

    /// Copies the kernel's events around the sample that the calling thread has just taken. Makes
    /// no system call and allocates nothing; copies at most [`MOST_COPIED`] bytes.
    pub fn keep(&mut self, index: u64, due_ns: u64, value_ns: u64) {
        let place = if self.used < self.places.len() {
            self.used
        } else {
            self.least
        };
        let Some(into) = self.bytes.chunks_exact_mut(MOST_COPIED).nth(place) else {
            return;
        };
        self.places[place] = Snapshot {
            index,
            due_ns,
            value_ns,
            copied: self.ring.newest(due_ns.saturating_sub(BEFORE_NS), into),
        };
        self.used = self.used.max(place + 1);
        if self.used == self.places.len() {
            let places = self.places.iter().enumerate();
            let least = places.min_by_key(|(_, place)| place.value_ns);
            if let Some((at, place)) = least {
                (self.least, self.above_ns) = (at, place.value_ns);
            }
        }
    }

    /// Returns the samples with the kernel's records.
    pub(super) fn kept(&self) -> impl Iterator<Item = (&Snapshot, &[u8])> {
        let copies = self.bytes.chunks_exact(MOST_COPIED);
        let used = self.places[..self.used].iter().zip(copies);
        used.map(|(kept, bytes)| (kept, &bytes[..kept.copied.bytes]))
    }

    /// Decodes a copy.
    pub(super) fn decode(
        &self,
        tid: u32,
        (kept, bytes): (&Snapshot, &[u8]),
        tracepoints: &[Tracepoint],
    ) -> Decoded {
        let trace = Trace {
            place: 0,
            set: self.thread,
            index: kept.index,
            value: kept.value_ns,
            greatest: kept.value_ns,
            samples: 1,
            tid,
            events: 0,
            complete: kept.copied.complete,
        };
        let find = |identifier| {
            let (place, with_stack) = self.ring.event_of(identifier)?;
            Some((tracepoints.get(place)?, with_stack))
        };
        decode::decode(trace, kept.due_ns, bytes, find)
    }
}
