//! What the measuring threads and the one that watches them share.
//!
//! While nothing happens, a measuring thread reads one flag, which nobody writes. Only when it has something to
//! say does it call the system: it writes into an eventfd, once until that was read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

/// One for all threads.
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

/// What one thread tells of itself.
#[derive(Debug, Default)]
pub struct Channel {
    /// Values above the limit that came too fast to be told.
    pub lost: AtomicU64,
    ended: AtomicBool,
    /// Whether something was still due when it ended.
    unfinished: AtomicBool,
}

impl Channel {
    /// Says that the thread measures no more, and whether its plan is done.
    pub fn end(&self, is_done: bool) {
        self.unfinished.store(!is_done, Ordering::Relaxed);
        self.ended.store(true, Ordering::Release);
    }

    /// Says whether the thread measures no more.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Says whether the thread ended before its plan was done.
    pub fn has_ended_early(&self) -> bool {
        self.has_ended() && self.unfinished.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
