//! The state shared by the measuring threads and the watching thread.
//!
//! While nothing happens, a measuring thread reads one flag, which nobody writes. Only when it has
//! something to report does it make a system call: it writes to an eventfd, once until that has
//! been read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

/// The state shared by all threads.
#[derive(Debug)]
pub struct Shared {
    /// The time of the first sample, for which the threads wait. None: the measurement is
    /// cancelled.
    origin_ns: OnceLock<Option<u64>>,
    stop: AtomicBool,
    news: OwnedFd,
    /// Whether the eventfd was written since it was last read.
    is_told: AtomicBool,
}

impl Shared {
    /// Creates it.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error if there is no eventfd.
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
        // Only the first call counts.
        let _ = self.origin_ns.set(origin_ns);
    }

    /// Waits until the origin is set.
    pub fn wait_for_origin(&self) -> Option<u64> {
        *self.origin_ns.wait()
    }

    /// Makes every thread end before its next sleep.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns whether the threads must end.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Wakes the watching thread.
    pub fn tell(&self) {
        if !self.is_told.swap(true, Ordering::AcqRel) {
            // It fails only after 2^64 writes without a read.
            let _ = rustix::io::write(&self.news, &1_u64.to_ne_bytes());
        }
    }

    /// Resets the notification: the next report wakes the watching thread again.
    pub fn clear_news(&self) {
        let mut count = [0; 8];
        // It is fine if there is nothing to read.
        let _ = rustix::io::read(&self.news, &mut count);
        self.is_told.store(false, Ordering::Release);
    }
}

impl AsFd for Shared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }
}

/// The reports of one thread.
#[derive(Debug, Default)]
pub struct Channel {
    /// Number of values above the limit that came too fast to be reported.
    pub lost: AtomicU64,
    ended: AtomicBool,
    /// Whether it ended before its plan was done.
    unfinished: AtomicBool,
}

impl Channel {
    /// Records that the thread has ended, and whether its plan is done.
    pub fn end(&self, is_done: bool) {
        self.unfinished.store(!is_done, Ordering::Relaxed);
        self.ended.store(true, Ordering::Release);
    }

    /// Returns whether the thread has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Returns whether the thread ended before its plan was done.
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
