//! Exact counts per slot of a phase and latency.
//!
//! A hash table with open addressing, allocated before the first wake-up: one entry per distinct
//! value, so that a few stalls of some ms need no more room than as many short latencies, with a
//! count of 64 bits, which cannot overflow. A lookup costs one or two cache lines; neighbouring
//! latencies share lines, so that common latencies stay in a near cache.

use crate::arena::{Arena, Zeroed};

/// The greatest number of entries: 16 MiB.
const MOST_SLOTS: usize = 1 << 20;
/// The least number of entries.
const LEAST_SLOTS: usize = 64;
/// The number of bits of a key for the latency; the slot is in the bits above.
const LATENCY_BITS: u32 = 52;

/// The number of bits of a key for its place within a group of 256 bytes.
const GROUP_BITS: u32 = 4;

/// A slot and a latency as one number, in the order of slots and then of latencies; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

/// The number of occurrences of a key; an empty entry is all zero.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Slot {
    key: u64,
    count: u64,
}

// SAFETY: a `repr(C)` struct of plain integers.
unsafe impl Zeroed for Slot {}

/// The counts of one thread.
#[derive(Debug)]
pub(super) struct Counts {
    slots: &'static mut [Slot],
    used: usize,
}

impl Key {
    /// Returns a key; None if the latency exceeds 52 days.
    #[inline]
    pub(super) fn new(slot: u64, latency_ns: u64) -> Option<Self> {
        let fits = latency_ns < (1 << LATENCY_BITS) - 1;
        fits.then(|| Self(slot << LATENCY_BITS | (latency_ns + 1)))
    }

    /// Returns a key from its number.
    pub(super) fn from_number(number: u64) -> Self {
        Self(number)
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }

    pub(super) fn slot(self) -> u64 {
        self.0 >> LATENCY_BITS
    }

    pub(super) fn latency_ns(self) -> u64 {
        (self.0 & ((1 << LATENCY_BITS) - 1)) - 1
    }
}

impl Counts {
    /// Returns how many bytes of an arena [`Counts::new`] uses.
    pub(super) fn arena_bytes(wakeups: u64) -> usize {
        Arena::bytes::<Slot>(slots(wakeups))
    }

    /// Allocates one entry per wake-up, up to a bound.
    pub(super) fn new(wakeups: u64, arena: &mut Arena) -> Self {
        Self {
            slots: arena.take(slots(wakeups)),
            used: 0,
        }
    }

    /// Counts a key. Returns whether there was room for it.
    #[inline]
    pub(super) fn add(&mut self, key: Key) -> bool {
        // A quarter stays empty, so that searches end soon.
        let has_room = self.used < self.slots.len() / 4 * 3;
        let slot = &mut self.slots[find(self.slots, key)];
        if slot.key != 0 {
            slot.count += 1;
            return true;
        }
        if has_room {
            *slot = Slot {
                key: key.0,
                count: 1,
            };
            self.used += 1;
        }
        has_room
    }

    /// Returns whether a key was counted.
    pub(super) fn contains(&self, key: Key) -> bool {
        self.slots[find(self.slots, key)].key != 0
    }

    /// Removes all counts.
    pub(super) fn clear(&mut self) {
        self.slots.fill(Slot::default());
        self.used = 0;
    }

    /// Returns all counts by rising key.
    pub(super) fn into_sorted(self) -> impl Iterator<Item = (Key, u64)> + Clone {
        let mut kept = 0;
        for at in 0..self.slots.len() {
            if self.slots[at].key != 0 {
                self.slots[kept] = self.slots[at];
                kept += 1;
            }
        }
        let kept = &mut self.slots[..kept];
        kept.sort_unstable_by_key(|slot| slot.key);
        let kept: &'static [Slot] = kept;
        kept.iter().map(|slot| (Key(slot.key), slot.count))
    }
}

/// Returns the number of entries for this many wake-ups: at most three of four are used.
fn slots(wakeups: u64) -> usize {
    let wanted = wakeups.saturating_add(wakeups / 3 + 1);
    let bounded = usize::try_from(wanted).unwrap_or(MOST_SLOTS);
    bounded.clamp(LEAST_SLOTS, MOST_SLOTS).next_power_of_two()
}

/// Returns the index of a key, or of the empty entry for it.
#[inline]
fn find(slots: &[Slot], key: Key) -> usize {
    // Multiplicative hashing by 2^64 over the golden ratio (Knuth, TAOCP 3, 6.4) of all but the
    // lowest bits: neighbouring latencies share cache lines and pages, and groups are spread out.
    let hash = (key.0 >> GROUP_BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let group = (hash >> (u64::BITS - slots.len().trailing_zeros())) as usize;
    let low = (1 << GROUP_BITS) - 1;
    let mut at = group & !low | key.0 as usize & low;
    while slots[at].key != key.0 && slots[at].key != 0 {
        at = (at + 1) & (slots.len() - 1);
    }
    at
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::super::recorder::tests::leak;
    use super::*;

    fn counts(wakeups: u64) -> Counts {
        let memory = leak(Counts::arena_bytes(wakeups));
        Counts::new(wakeups, &mut Arena::new(memory))
    }

    #[test]
    fn short_plans_take_little_and_long_ones_a_bounded_amount() {
        assert_eq!(Counts::arena_bytes(1), 1 << 10);
        assert_eq!(Counts::arena_bytes(250_000), 8 << 20);
        assert_eq!(Counts::arena_bytes(u64::MAX), 16 << 20);
    }

    #[test]
    fn a_key_gives_back_what_it_was_made_of() {
        for (slot, latency) in [(0, 0), (0, 1), (699, 60_000_000_000), (1, (1 << 52) - 2)] {
            let key = Key::new(slot, latency).unwrap();
            assert_eq!((key.slot(), key.latency_ns()), (slot, latency));
            assert_ne!(key.number(), 0);
        }
        assert_eq!(Key::new(0, (1 << 52) - 1), None);
        assert!(Key::new(0, u64::MAX).is_none());
        assert!(Key::new(1, 0) > Key::new(0, 1_000_000));
    }

    #[test]
    fn a_full_table_still_counts_what_it_holds() {
        let mut counts = counts(1);
        let key = |latency| Key::new(0, latency).unwrap();
        let taken = (0..1_000).filter(|l| counts.add(key(*l))).count();
        assert_eq!(taken, LEAST_SLOTS / 4 * 3);
        assert!(counts.add(key(0)) && !counts.add(key(999)));
        assert!(counts.contains(key(0)) && !counts.contains(key(999)));
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_map(keys in prop::collection::vec((0_u64..3, 0_u64..500), 0..2_000)) {
            let mut counts = counts(keys.len() as u64);
            let mut model = BTreeMap::new();
            for (slot, latency) in keys {
                let key = Key::new(slot, latency).unwrap();
                prop_assert!(counts.add(key));
                *model.entry((slot, latency)).or_insert(0) += 1;
            }
            let counted: Vec<_> = counts
                .into_sorted()
                .map(|(key, count)| ((key.slot(), key.latency_ns()), count))
                .collect();
            prop_assert_eq!(counted, model.into_iter().collect::<Vec<_>>());
        }
    }
}
