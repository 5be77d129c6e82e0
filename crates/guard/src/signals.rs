//! Turns Ctrl-C into two questions that a run loop can ask.
//!
//! The first Ctrl-C (SIGINT) asks the run to finish what it is measuring and to report. The second
//! one, and SIGTERM and SIGHUP at once, ask it to stop. Both are requests: the run loop returns and
//! the guard undoes what there is to undo, as after success. A third Ctrl-C therefore does nothing
//! more, since ending the process on the spot is what would leave things behind; whoever cannot
//! wait uses `kill -9`, and the next command cleans up.
//!
//! A loop that sleeps does so in [`Interrupt::wait`].

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level;

use crate::error::GuardError;

/// The requests to finish or to stop the run. Copies see the same ones.
#[derive(Debug, Clone)]
pub struct Interrupt {
    requests: Arc<Requests>,
    pipe: Arc<Pipe>,
}

#[derive(Debug, Default)]
struct Requests {
    interrupts: AtomicUsize,
    finish: AtomicBool,
    stop: AtomicBool,
}

#[derive(Debug)]
struct Pipe {
    readable: OwnedFd,
    writable: OwnedFd,
}

impl Interrupt {
    /// Takes over SIGINT, SIGTERM and SIGHUP for the rest of the process's life.
    ///
    /// SIGHUP stays ignored if it is ignored already: `nohup` did that. SIGINT does not: shells
    /// ignore it for a script's background jobs, and a script that sends it nevertheless means it.
    /// Call this once, early in `main`: a signal that comes before has its usual effect.
    ///
    /// # Errors
    ///
    /// [`GuardError::Io`] if the kernel refuses, for want of descriptors for instance.
    pub fn install() -> Result<Interrupt, GuardError> {
        let interrupt = Interrupt::detached()?;
        let take_over = || {
            interrupt.on_signal(SIGINT, Requests::count_interrupt)?;
            interrupt.on_signal(SIGTERM, Requests::stop)?;
            if !is_ignored(SIGHUP)? {
                interrupt.on_signal(SIGHUP, Requests::stop)?;
            }
            Ok::<(), io::Error>(())
        };
        take_over().map_err(failed)?;
        Ok(interrupt)
    }

    /// Makes one that no signal reaches, only [`request_finish`](Interrupt::request_finish) and
    /// [`request_stop`](Interrupt::request_stop).
    ///
    /// # Errors
    ///
    /// [`GuardError::Io`] if there are no descriptors left.
    pub fn detached() -> Result<Interrupt, GuardError> {
        let pipe = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
        let (readable, writable) = pipe.map_err(failed)?;
        Ok(Interrupt {
            requests: Arc::default(),
            pipe: Arc::new(Pipe { readable, writable }),
        })
    }

    /// Says whether the run should finish what it is measuring, and then report.
    ///
    /// Also true when it should stop.
    pub fn finish_requested(&self) -> bool {
        self.requests.finish.load(Ordering::SeqCst) || self.stop_requested()
    }

    /// Says whether the run should stop now.
    pub fn stop_requested(&self) -> bool {
        self.requests.stop.load(Ordering::SeqCst)
    }

    /// Asks as the first Ctrl-C does.
    pub fn request_finish(&self) {
        self.requests.finish.store(true, Ordering::SeqCst);
        self.notify();
    }

    /// Asks as the second Ctrl-C does.
    pub fn request_stop(&self) {
        self.requests.stop();
        self.notify();
    }

    /// Waits until something is requested, one of the others is readable, or so much time has passed.
    ///
    /// Ask the two questions after this, not before, so that no request falls between.
    ///
    /// # Errors
    ///
    /// That of poll(2).
    pub fn wait(&self, others: &[BorrowedFd<'_>], most: Duration) -> io::Result<()> {
        let mut polled = vec![PollFd::new(&self.pipe.readable, PollFlags::IN)];
        polled.extend(others.iter().map(|other| PollFd::new(other, PollFlags::IN)));
        match poll(&mut polled, Timespec::try_from(most).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut bytes = [0_u8; 64];
        // An error means that it is empty, or is tried again by the next call.
        while rustix::io::read(&self.pipe.readable, &mut bytes) == Ok(bytes.len()) {}
        Ok(())
    }

    fn notify(&self) {
        // If the pipe is full, its reader has been notified often enough.
        let _: Result<usize, Errno> = rustix::io::write(&self.pipe.writable, &[0]);
    }

    fn on_signal(&self, signal: i32, note: fn(&Requests)) -> io::Result<()> {
        let requests = Arc::clone(&self.requests);
        // SAFETY: the action may run between any two instructions of any thread. It only stores
        // to atomics; it allocates nothing, takes no lock and cannot panic.
        unsafe { low_level::register(signal, move || note(&requests)) }?;
        // Registered second, hence done second: whoever waits sees the request.
        low_level::pipe::register(signal, self.pipe.writable.try_clone()?)?;
        Ok(())
    }
}

impl Requests {
    fn count_interrupt(&self) {
        self.finish.store(true, Ordering::SeqCst);
        if self.interrupts.fetch_add(1, Ordering::SeqCst) > 0 {
            self.stop();
        }
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

fn failed(source: impl Into<io::Error>) -> GuardError {
    GuardError::io("handle signals", source, "")
}

fn is_ignored(signal: i32) -> io::Result<bool> {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call only fills in the old one, for which there is room.
    let outcome = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has succeeded, so the structure is filled in.
    let action = unsafe { action.assume_init() };
    Ok(action.sa_sigaction == libc::SIG_IGN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tells whether a wait that could last for ever ends.
    fn is_notified(interrupt: &Interrupt) -> bool {
        let begun = std::time::Instant::now();
        let most = Duration::from_millis(50);
        interrupt.wait(&[], most).unwrap();
        begun.elapsed() < most
    }

    #[test]
    fn requests_are_seen_by_copies_and_end_a_wait() {
        let interrupt = Interrupt::detached().unwrap();
        let copy = interrupt.clone();
        assert!(!copy.finish_requested() && !is_notified(&copy));
        interrupt.request_finish();
        assert!(copy.finish_requested() && !copy.stop_requested() && is_notified(&copy));
        assert!(!is_notified(&copy) && copy.finish_requested());
        copy.request_stop();
        assert!(interrupt.stop_requested() && is_notified(&interrupt));
    }

    #[test]
    fn many_requests_neither_block_nor_remain_after_a_wait() {
        let interrupt = Interrupt::detached().unwrap();
        for _ in 0..100_000 {
            interrupt.request_stop();
        }
        assert!(is_notified(&interrupt) && !is_notified(&interrupt));
    }

    #[test]
    fn the_second_interrupt_stops() {
        let requests = Requests::default();
        requests.count_interrupt();
        assert!(requests.finish.load(Ordering::SeqCst) && !requests.stop.load(Ordering::SeqCst));
        requests.count_interrupt();
        assert!(requests.stop.load(Ordering::SeqCst));
    }
}
