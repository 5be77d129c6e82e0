//! What the measuring threads and the one that watches them share.
//!
//! While nothing happens, a measuring thread reads one flag, which nobody writes. Only when it has something to
//! say does it call the system: it writes into an eventfd, once until that was read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

/// How many values above the limit one thread can tell before they are read.
const ROOM: usize = 256;

/// Is one for all threads.
#[derive(Debug)]
pub struct Shared {
    /// The time of the first sample; the threads wait until it is known. None: there will be no measurement.
    origin_ns: OnceLock<Option<u64>>,
    stop: AtomicBool,
    news: OwnedFd,
    /// Whether the eventfd was written since it was last read.
    is_told: AtomicBool,
}

impl Shared {
    /// Makes it.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error if it gives no eventfd.
    pub fn new() -> Result<Self, Errno> {
        Ok(Self {
            origin_ns: OnceLock::new(),
            stop: AtomicBool::new(false),
            news: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            is_told: AtomicBool::new(false),
        })
    }

    /// Lets the threads begin at a time of CLOCK_MONOTONIC, or end without a measurement.
    pub fn release(&self, origin_ns: Option<u64>) {
        // Only the first word counts.
        let _ = self.origin_ns.set(origin_ns);
    }

    /// Waits until it is known when to begin.
    pub fn wait_for_origin(&self) -> Option<u64> {
        *self.origin_ns.wait()
    }

    /// Makes every thread end before its next sleep.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Says whether the threads are to end.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Wakes up the thread that watches.
    pub fn tell(&self) {
        if !self.is_told.swap(true, Ordering::AcqRel) {
            // It fails only if 2^64 tellings were not read.
            let _ = rustix::io::write(&self.news, &1_u64.to_ne_bytes());
        }
    }

    /// Forgets that there was something to tell; whatever is told from now on wakes up again.
    pub fn clear_news(&self) {
        let mut count = [0; 8];
        // Nothing to read is fine as well.
        let _ = rustix::io::read(&self.news, &mut count);
        self.is_told.store(false, Ordering::Release);
    }
}

impl AsFd for Shared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }
}

/// Is what one thread says while it measures.
#[derive(Debug, Default)]
pub struct Voice {
    /// Values above the limit.
    pub exceedings: Exceedings,
    ended: AtomicBool,
}

impl Voice {
    /// Says that the thread measures no more.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Says whether the thread measures no more.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// A value above the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeding {
    /// Number of the sample.
    pub index: u64,
    /// The value.
    pub value_ns: u64,
}

/// Takes values above the limit from one thread to one other, without waiting.
#[derive(Debug)]
pub struct Exceedings {
    /// Index and value in turn.
    ring: Box<[[AtomicU64; 2]]>,
    /// How many were put in.
    written: AtomicU64,
    /// How many were taken out.
    read: AtomicU64,
    /// How many found no room.
    lost: AtomicU64,
}

impl Default for Exceedings {
    fn default() -> Self {
        // Writing them all touches the memory.
        let ring = (0..ROOM).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]);
        Self {
            ring: ring.collect(),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }
}

impl Exceedings {
    /// Puts one in; only counts it if there is no room. Called by the measuring thread.
    pub fn put(&self, exceeding: Exceeding) {
        let written = self.written.load(Ordering::Relaxed);
        let read = self.read.load(Ordering::Acquire);
        if written - read >= ROOM as u64 {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let [index, value] = &self.ring[(written % ROOM as u64) as usize];
        index.store(exceeding.index, Ordering::Relaxed);
        value.store(exceeding.value_ns, Ordering::Relaxed);
        self.written.store(written + 1, Ordering::Release);
    }

    /// Takes the oldest one out. Called by the thread that watches.
    pub fn take(&self) -> Option<Exceeding> {
        let read = self.read.load(Ordering::Relaxed);
        if read == self.written.load(Ordering::Acquire) {
            return None;
        }
        let [index, value] = &self.ring[(read % ROOM as u64) as usize];
        let exceeding = Exceeding {
            index: index.load(Ordering::Relaxed),
            value_ns: value.load(Ordering::Relaxed),
        };
        self.read.store(read + 1, Ordering::Release);
        Some(exceeding)
    }

    /// Returns how many found no room.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out_in_order_and_the_rest_is_counted() {
        let exceedings = Exceedings::default();
        let exceeding = |index| Exceeding {
            index,
            value_ns: 2 * index,
        };
        for round in 0..3 {
            let from = round * 1_000;
            for index in from..from + ROOM as u64 + 5 {
                exceedings.put(exceeding(index));
            }
            for index in from..from + ROOM as u64 {
                assert_eq!(exceedings.take(), Some(exceeding(index)));
            }
            assert_eq!(exceedings.take(), None);
            assert_eq!(exceedings.lost(), 5 * (round + 1));
        }
    }

    #[test]
    fn two_threads_lose_nothing_as_long_as_there_is_room() {
        let exceedings = Exceedings::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for index in 0..10_000 {
                    while exceedings.written.load(Ordering::Relaxed)
                        - exceedings.read.load(Ordering::Relaxed)
                        >= ROOM as u64
                    {
                        std::thread::yield_now();
                    }
                    exceedings.put(Exceeding {
                        index,
                        value_ns: index,
                    });
                }
            });
            for index in 0..10_000 {
                let taken = loop {
                    match exceedings.take() {
                        Some(taken) => break taken,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!((taken.index, taken.value_ns), (index, index));
            }
        });
        assert_eq!(exceedings.lost(), 0);
    }

    #[test]
    fn news_wakes_up_once_until_it_is_read() {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let shared = Shared::new().unwrap();
        let is_readable = || {
            let now = Timespec::default();
            poll(&mut [PollFd::new(&shared, PollFlags::IN)], Some(&now)).unwrap() == 1
        };
        assert!(!is_readable());
        shared.tell();
        shared.tell();
        assert!(is_readable());
        shared.clear_news();
        assert!(!is_readable());
        shared.tell();
        assert!(is_readable());
    }
}
