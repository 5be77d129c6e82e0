//! The totals of a measuring thread, for other threads.

use core::sync::atomic::{AtomicU64, Ordering};

use tare_wire::record::Live;

use crate::arena::Zeroed;

/// The totals of one thread. Only that thread writes; any other may read at any time.
///
/// There is no lock, and nothing waits: on x86 each access is an ordinary load or store. Figures
/// that are read together may belong to two neighbouring wake-ups.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Progress {
    woken: AtomicU64,
    missed: AtomicU64,
    min_ns: AtomicU64,
    last_ns: AtomicU64,
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
}

// SAFETY: a `repr(C)` struct of integers, valid as zeros; nothing to drop.
unsafe impl Zeroed for Progress {}

impl Progress {
    /// Returns the totals; the number of the thread is left to the caller.
    pub fn snapshot(&self) -> Live {
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        Live {
            n: read(&self.woken),
            missed: read(&self.missed),
            min: read(&self.min_ns),
            last: read(&self.last_ns),
            sum: read(&self.sum_ns),
            max: read(&self.max_ns),
            ..Live::default()
        }
    }

    #[inline]
    pub(super) fn woke(&self, latency_ns: u64) {
        let before = self.snapshot();
        let min_ns = match before.n {
            0 => latency_ns,
            _ => before.min.min(latency_ns),
        };
        let write = |figure: &AtomicU64, value| figure.store(value, Ordering::Relaxed);
        write(&self.min_ns, min_ns);
        write(&self.last_ns, latency_ns);
        write(&self.sum_ns, before.sum.saturating_add(latency_ns));
        write(&self.max_ns, before.max.max(latency_ns));
        write(&self.woken, before.n + 1);
    }

    #[inline]
    pub(super) fn missed(&self, count: u64) {
        let before = self.missed.load(Ordering::Relaxed);
        self.missed.store(before + count, Ordering::Relaxed);
    }

    pub(super) fn clear(&self) {
        let figures = [
            &self.woken,
            &self.missed,
            &self.min_ns,
            &self.last_ns,
            &self.sum_ns,
            &self.max_ns,
        ];
        for figure in figures {
            figure.store(0, Ordering::Relaxed);
        }
    }
}
