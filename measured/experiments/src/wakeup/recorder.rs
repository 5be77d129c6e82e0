//! The recorder of all latencies of one thread.

use tare_wire::record::{Set, Unit};

use super::counts::{Counts, Key};
use super::plan::Plan;
use super::progress::Progress;
use super::slots::{Slots, total_ns};
use crate::arena::{Arena, Zeroed};
use crate::envelope::{Bin, Envelope};

/// The wake-ups of one thread.
///
/// All memory is allocated and touched at its creation. [`Recorder::record`] is called on the
/// measuring thread between its wake-up and its next sleep; it does not allocate, wait, or make
/// system calls.
#[derive(Debug)]
pub struct Recorder {
    /// The head of the set, without the figures of `progress`. Its last time is counted from the
    /// origin.
    pub(super) set: Set<'static>,
    pub(super) progress: &'static Progress,
    pub(super) counts: Counts,
    pub(super) slots: Slots,
    pub(super) envelope: Envelope<'static>,
    pub(super) raw: WakeupList,
    pub(super) peaks: WakeupList,
    pub(super) recording_ns: u64,
}

/// One wake-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Wakeup {
    pub activation: u64,
    pub latency_ns: u64,
}

// SAFETY: a `repr(C)` struct of plain integers.
unsafe impl Zeroed for Wakeup {}

/// A list of wake-ups with fixed capacity.
#[derive(Debug)]
pub(super) struct WakeupList {
    list: &'static mut [Wakeup],
    length: usize,
}

impl WakeupList {
    fn new(arena: &mut Arena, capacity: usize) -> Self {
        Self {
            list: arena.take(capacity),
            length: 0,
        }
    }

    /// Adds a wake-up. Returns whether there was room.
    #[inline]
    fn push(&mut self, wakeup: Wakeup) -> bool {
        let Some(place) = self.list.get_mut(self.length) else {
            return false;
        };
        *place = wakeup;
        self.length += 1;
        true
    }

    pub(super) fn kept(&self) -> &[Wakeup] {
        &self.list[..self.length]
    }

    pub(super) fn into_kept(self) -> &'static mut [Wakeup] {
        &mut self.list[..self.length]
    }
}

/// Returns the size of the memory for [`Recorder::new`] for a thread of a plan, in bytes.
///
/// It is bounded by the plan's limits, including 16 MiB for the counts, and less for short plans:
/// there are never more entries than wake-ups.
pub fn arena_bytes(plan: &Plan, thread: u32) -> usize {
    Arena::bytes::<Progress>(1)
        + Counts::arena_bytes(plan.activations(thread))
        + Arena::bytes::<Bin>(bins(plan))
        + Arena::bytes::<Wakeup>(capacity(plan, thread, plan.raw))
        + Arena::bytes::<Wakeup>(capacity(plan, thread, plan.capacity))
}

/// Returns the size of the recorders of all threads of a plan, in bytes.
pub fn buffer_bytes(plan: &Plan) -> usize {
    let recorders = (0..plan.threads).map(|thread| arena_bytes(plan, thread));
    recorders.fold(0, usize::saturating_add)
}

impl Recorder {
    /// Creates the recorder of a thread in `memory`: zeroed, aligned to 64 bytes, and
    /// [`arena_bytes`] long.
    ///
    /// # Panics
    ///
    /// Panics if the memory is too small or not aligned.
    pub fn new(plan: &Plan, thread: u32, memory: &'static mut [u8]) -> Self {
        let mut arena = Arena::new(memory);
        let interval_ns = plan.interval_of(thread);
        let progress: &'static [Progress] = arena.take(1);
        let counts = Counts::new(plan.activations(thread), &mut arena);
        let envelope = Envelope::new(0, total_ns(plan), arena.take(bins(plan)));
        let slots = Slots::new(plan);
        Self {
            set: Set {
                number: thread,
                measure: "latency",
                unit: Unit::Ns,
                period: interval_ns,
                threshold: plan.threshold_ns.unwrap_or(interval_ns),
                bin: envelope.width,
                parts: slots.begins().len() as u32,
                ..Set::default()
            },
            progress: &progress[0],
            counts,
            slots,
            envelope,
            raw: WakeupList::new(&mut arena, capacity(plan, thread, plan.raw)),
            peaks: WakeupList::new(&mut arena, capacity(plan, thread, plan.capacity)),
            recording_ns: 0,
        }
    }

    /// Returns the totals that other threads may read while this one measures.
    pub fn progress(&self) -> &'static Progress {
        self.progress
    }

    /// Returns the cost of recording one wake-up in ns; 0 before [`Recorder::calibrate`].
    pub fn recording_ns(&self) -> u64 {
        self.recording_ns
    }

    /// Records that the thread ran for an activation, `latency_ns` after its planned time.
    ///
    /// Activations must rise.
    #[inline]
    pub fn record(&mut self, activation: u64, latency_ns: u64) {
        let set = &mut self.set;
        let planned_ns = activation.saturating_mul(set.period);
        let wakeup = Wakeup {
            activation,
            latency_ns,
        };
        self.progress.woke(latency_ns);
        self.envelope.add(planned_ns, latency_ns);
        self.raw.push(wakeup);
        set.last = planned_ns.saturating_add(latency_ns);
        let is_peak = latency_ns >= set.threshold;
        set.seen += u64::from(is_peak);
        let is_listed = is_peak && self.peaks.push(wakeup);
        if is_peak && !is_listed {
            set.unkept_sum = set.unkept_sum.saturating_add(latency_ns);
            set.unkept_max = set.unkept_max.max(latency_ns);
        }
        let slot = self.slots.advance(planned_ns);
        // A value without room in the table is counted in the list, if it is there.
        let is_counted =
            Key::new(slot, latency_ns).is_some_and(|key| self.counts.add(key) || is_listed);
        if !is_counted {
            set.uncounted_min = match set.uncounted {
                0 => latency_ns,
                _ => set.uncounted_min.min(latency_ns),
            };
            set.uncounted += 1;
            set.uncounted_sum = set.uncounted_sum.saturating_add(latency_ns);
            set.uncounted_max = set.uncounted_max.max(latency_ns);
        }
    }

    /// Records activations that were due before the thread had run for the previous one.
    #[inline]
    pub fn missed(&mut self, count: u64) {
        self.progress.missed(count);
    }

    /// Measures the cost of recording, by wake-ups that are removed again: the median over rounds
    /// of the mean of many, each with a latency 16 ns above the previous one, so that hardly any
    /// counter is in a near cache. At an interval of 100 µs most of them are listed as well.
    ///
    /// `now_ns` reads a clock. Call it on the CPU that will measure, before the first wake-up.
    pub fn calibrate(&mut self, now_ns: impl Fn() -> u64) {
        /// The number of rounds.
        const ROUNDS: u64 = 21;
        /// The number of wake-ups in a round, enough to make the clock's cost negligible.
        const WAKEUPS: u64 = 1_000;
        /// The distance between latencies: their counts share no cache line.
        const APART_NS: u64 = 16;
        let mut rounds = [0; ROUNDS as usize];
        for (round, cost) in (0..).zip(&mut rounds) {
            let start_ns = now_ns();
            for activation in round * WAKEUPS..(round + 1) * WAKEUPS {
                self.record(activation, activation * APART_NS);
            }
            *cost = now_ns().saturating_sub(start_ns) / WAKEUPS;
        }
        rounds.sort_unstable();
        self.recording_ns = rounds[rounds.len() / 2];
        self.clear();
    }

    /// Removes all wake-ups.
    fn clear(&mut self) {
        self.progress.clear();
        self.counts.clear();
        self.slots.restart();
        self.envelope.clear();
        self.raw.length = 0;
        self.peaks.length = 0;
        self.set = Set {
            last: 0,
            seen: 0,
            unkept_max: 0,
            unkept_sum: 0,
            uncounted: 0,
            uncounted_sum: 0,
            uncounted_min: 0,
            uncounted_max: 0,
            ..self.set
        };
    }
}

fn bins(plan: &Plan) -> usize {
    plan.bins.max(1) as usize
}

/// Returns how many of `wanted` wake-ups are possible at most.
fn capacity(plan: &Plan, thread: u32, wanted: u64) -> usize {
    plan.activations(thread).min(wanted) as usize
}

#[cfg(test)]
pub(super) mod tests {
    use std::boxed::Box;
    use std::vec;

    /// Allocates zeroed memory, aligned to a cache line, and never frees it.
    pub(in super::super) fn leak(bytes: usize) -> &'static mut [u8] {
        #[derive(Clone)]
        #[repr(C, align(64))]
        struct Line([u8; 64]);
        let lines = Box::leak(vec![Line([0; 64]); bytes.div_ceil(64)].into_boxed_slice());
        // SAFETY: a block of `bytes` bytes that is never freed and is lent once.
        unsafe { core::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), bytes) }
    }
}
