//! Turns Ctrl-C into questions that a run loop can ask, and bounds how long anything is waited for.
//!
//! The first Ctrl-C (SIGINT) asks the run to finish what it is measuring and to report. SIGTERM and
//! SIGHUP ask it not to finish what would have to be waited for. The second signal of any of them
//! asks to wait for nothing any more; but a terminal that is closed hangs up twice, by its shell
//! and by the kernel, and `timeout` ends its child and then its whole group, so those two count
//! once if they come together. All are requests: the run loop returns and the guard undoes what
//! there is to undo, as after success. A third Ctrl-C therefore does nothing more, since ending the
//! process on the spot is what would leave things behind; whoever cannot wait uses `kill -9`, and
//! the next command cleans up. Once nothing is left to undo ([`Interrupt::nothing_is_left`]), while what was
//! measured is analysed, the second signal from then on ends the process.
//!
//! As long as nothing is measured yet ([`Interrupt::prepare`]) there is nothing to finish, and the
//! first request is already one to stop.
//!
//! A loop that sleeps does so in [`Interrupt::wait`]. Who waits for a helper, be it a child or a
//! socket, does so by a [`Patience`], which ends early when the user or the cell's limit wants it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level;

use crate::error::GuardError;

/// The one of this process, since signals are those of the process.
static INSTALLED: OnceLock<Interrupt> = OnceLock::new();

/// How far apart the signals of one event are at most.
const TOGETHER: Duration = Duration::from_secs(1);

/// How long after the second signal helpers are still waited for: an engine or another machine that
/// works answers by then.
const LAST_WAIT: Duration = Duration::from_millis(700);

/// How long a wait may take in any case: killing a process that hangs takes a moment, and so does
/// listing leftovers.
const LEAST_WAIT: Duration = Duration::from_millis(200);

/// The requests to finish or to stop the run. Copies see the same ones.
#[derive(Debug, Clone)]
pub struct Interrupt {
    requests: Arc<Requests>,
    pipe: Arc<Pipe>,
}

#[derive(Debug, Default)]
struct Requests {
    finish: AtomicBool,
    stop: AtomicBool,
    /// CLOCK_MONOTONIC in ns of the first signal; 0 before.
    first_ns: AtomicU64,
    /// CLOCK_MONOTONIC in ns when nothing was to be waited for any more; 0 before.
    kill_ns: AtomicU64,
    /// Whether there is nothing yet that could be finished.
    prepares: AtomicBool,
    /// Whether nothing is left to undo, and how many signals came since.
    is_over: AtomicBool,
    late: AtomicUsize,
    /// How often this process was continued after it had been stopped.
    continued: AtomicUsize,
    /// The time limit for the whole action, not only for its waits.
    limit: Mutex<Option<Limit>>,
}

/// A time that counts anew when this process goes on after it was stopped: nothing shows how long
/// it was.
#[derive(Clone, Copy, Debug)]
struct Limit {
    length: Duration,
    begun: Instant,
    continued: usize,
}

impl Limit {
    /// Returns what is left of it.
    fn left(&mut self, continued: usize) -> Duration {
        if self.continued != continued {
            (self.begun, self.continued) = (Instant::now(), continued);
        }
        self.length.saturating_sub(self.begun.elapsed())
    }
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
    /// Call this early in `main`: a signal that comes before has its usual effect. Later calls
    /// return the same.
    ///
    /// # Errors
    ///
    /// [`GuardError::Io`] if the kernel refuses, for example because no descriptors are left.
    pub fn install() -> Result<Interrupt, GuardError> {
        if let Some(installed) = INSTALLED.get() {
            return Ok(installed.clone());
        }
        let interrupt = Interrupt::detached()?;
        let take_over = || {
            interrupt.on_signal(SIGINT, Requests::interrupted)?;
            interrupt.on_signal(SIGTERM, Requests::terminated)?;
            if !is_ignored(SIGHUP)? {
                interrupt.on_signal(SIGHUP, Requests::terminated)?;
            }
            interrupt.on_signal(SIGCONT, Requests::was_continued)?;
            Ok::<(), io::Error>(())
        };
        take_over().map_err(failed)?;
        let _ = INSTALLED.set(interrupt.clone());
        tare_docker::wait_by(|begun, deadline| {
            let patience = Patience::until(deadline);
            Patience { begun, ..patience }.left()
        });
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

    /// Returns whether the run should finish what it is measuring, and then report.
    ///
    /// Also true when it should stop.
    pub fn finish_requested(&self) -> bool {
        self.requests.finish.load(Ordering::SeqCst) || self.stop_requested()
    }

    /// Returns whether what runs should not be waited for to finish.
    pub fn stop_requested(&self) -> bool {
        let requests = &self.requests;
        requests.stop.load(Ordering::SeqCst)
            || self.prepares() && requests.finish.load(Ordering::SeqCst)
    }

    /// Returns whether nothing at all should be waited for: the second signal has come.
    pub fn kill_requested(&self) -> bool {
        self.requests.kill_ns.load(Ordering::SeqCst) != 0
    }

    /// Records whether there is nothing yet that could be finished.
    pub fn prepare(&self, prepares: bool) {
        self.requests.prepares.store(prepares, Ordering::SeqCst);
    }

    /// Records that nothing is left to undo: from now on the second signal ends the process, whatever it
    /// is doing.
    pub fn nothing_is_left(&self) {
        self.requests.is_over.store(true, Ordering::SeqCst);
    }

    /// Returns whether there is nothing yet that could be finished.
    pub fn prepares(&self) -> bool {
        self.requests.prepares.load(Ordering::SeqCst)
    }

    /// Ends every [`Patience`] after this time, until the next call. It counts anew when this
    /// process goes on after it was stopped (SIGSTOP, Ctrl-Z).
    pub fn bound(&self, limit: Option<Duration>) {
        let continued = self.continued();
        *lock(&self.requests.limit) = limit.map(|length| Limit {
            length,
            begun: Instant::now(),
            continued,
        });
    }

    /// Counts how often this process was continued after a stop.
    pub fn continued(&self) -> usize {
        self.requests.continued.load(Ordering::SeqCst)
    }

    /// Returns what is left of the time that [`bound`](Interrupt::bound) gave; None if there is no
    /// bound.
    pub fn left(&self) -> Option<Duration> {
        let continued = self.continued();
        let mut limit = lock(&self.requests.limit);
        limit.as_mut().map(|limit| limit.left(continued))
    }

    /// Asks as the first Ctrl-C does.
    pub fn request_finish(&self) {
        self.requests.finish.store(true, Ordering::SeqCst);
        self.notify();
    }

    /// Asks as the second Ctrl-C does.
    pub fn request_stop(&self) {
        self.requests.kill();
        self.notify();
    }

    /// Waits until something is requested, one of the others is readable, or this time has
    /// passed.
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
        let action = move || {
            note(&requests);
            if signal != SIGCONT
                && requests.is_over.load(Ordering::SeqCst)
                && requests.late.fetch_add(1, Ordering::SeqCst) > 0
            {
                let _ = low_level::emulate_default_handler(signal);
            }
        };
        // SAFETY: the action may run between any two instructions of any thread. It only stores
        // to atomics, or ends the process; it allocates nothing, takes no lock and cannot panic.
        unsafe { low_level::register(signal, action) }?;
        // Registered second, hence done second: waiting threads see the request.
        low_level::pipe::register(signal, self.pipe.writable.try_clone()?)?;
        Ok(())
    }
}

impl Requests {
    fn interrupted(&self) {
        self.finish.store(true, Ordering::SeqCst);
        if self.since_first().is_some() {
            self.kill();
        }
    }

    fn terminated(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.finish.store(true, Ordering::SeqCst);
        if self.since_first().is_some_and(|since| since > TOGETHER) {
            self.kill();
        }
    }

    /// Returns how long ago the first signal came; None if this one is the first.
    fn since_first(&self) -> Option<Duration> {
        let now = now_ns();
        let first = self
            .first_ns
            .compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst);
        first
            .err()
            .map(|first| Duration::from_nanos(now.saturating_sub(first)))
    }

    fn kill(&self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self
            .kill_ns
            .compare_exchange(0, now_ns(), Ordering::SeqCst, Ordering::SeqCst);
    }

    fn was_continued(&self) {
        self.continued.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns how long the last waits may still take; None as long as the user has not asked for
    /// it twice.
    fn last_wait(&self) -> Option<Duration> {
        match self.kill_ns.load(Ordering::SeqCst) {
            0 => None,
            since => {
                let since = Duration::from_nanos(now_ns().saturating_sub(since));
                Some(LAST_WAIT.saturating_sub(since))
            }
        }
    }
}

/// How long something is waited for: its own time, cut by the requests of the user and the
/// limit of the cell.
///
/// All waits of this process for helpers go by one, so that none outlasts a second Ctrl-C by more
/// than a moment.
#[derive(Clone, Debug)]
pub struct Patience {
    begun: Instant,
    deadline: Instant,
    interrupt: Option<Interrupt>,
}

impl Patience {
    /// Begins to wait, at most for this time.
    pub fn new(most: Duration) -> Self {
        let begun = Instant::now();
        Self::until(begun.checked_add(most).unwrap_or(begun + FOR_EVER))
    }

    /// Begins to wait until a moment.
    #[must_use]
    pub fn until(deadline: Instant) -> Self {
        Self {
            begun: Instant::now(),
            deadline,
            interrupt: INSTALLED.get().cloned(),
        }
    }

    /// Returns how long there is to wait yet.
    pub fn left(&self) -> Duration {
        let now = Instant::now();
        let own = self.deadline.saturating_duration_since(now);
        let Some(interrupt) = &self.interrupt else {
            return own;
        };
        let least = (self.begun + LEAST_WAIT).saturating_duration_since(now);
        let requests = &interrupt.requests;
        let mut left = own;
        if let Some(last) = requests.last_wait() {
            left = left.min(last.max(least));
        } else if interrupt.stop_requested() && interrupt.prepares() {
            left = left.min(least);
        }
        if let Some(bound) = interrupt.left() {
            left = left.min(bound.max(least));
        }
        left
    }

    /// Waits until one of these is readable. Says whether that is so within the time: when that is
    /// over, whatever is readable is left alone, so that nobody who writes without end is waited
    /// for any longer.
    ///
    /// # Errors
    ///
    /// That of poll(2).
    pub fn wait(&self, those: &[BorrowedFd<'_>]) -> io::Result<bool> {
        loop {
            let left = self.left();
            if left.is_zero() {
                return Ok(false);
            }
            match &self.interrupt {
                Some(interrupt) => interrupt.wait(those, left)?,
                None => {
                    readable(those, left)?;
                }
            }
            if readable(those, Duration::ZERO)? {
                return Ok(true);
            }
        }
    }
}

/// Longer than anything runs, and no more than clocks hold.
const FOR_EVER: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// Waits at most this long until one of these is readable; returns whether one is.
fn readable(those: &[BorrowedFd<'_>], most: Duration) -> io::Result<bool> {
    let mut polled: Vec<PollFd<'_>> = those
        .iter()
        .map(|one| PollFd::new(one, PollFlags::IN))
        .collect();
    match poll(&mut polled, Timespec::try_from(most).ok().as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads CLOCK_MONOTONIC, which may be done in a signal handler.
fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
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
    use std::os::fd::AsFd;

    use super::*;

    /// Returns whether a wait without a limit ends.
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
    fn a_wait_ends_when_its_time_is_over_whatever_is_readable() {
        let flood = std::fs::File::open("/dev/zero").unwrap();
        let patience = Patience::new(Duration::from_millis(50));
        assert!(patience.wait(&[flood.as_fd()]).unwrap());
        std::thread::sleep(Duration::from_millis(60));
        assert!(!patience.wait(&[flood.as_fd()]).unwrap());
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
    fn the_second_signal_waits_for_nothing_and_the_first_termination_for_nothing_that_takes_long() {
        let of = |signals: &[fn(&Requests)]| {
            let interrupt = Interrupt::detached().unwrap();
            signals.iter().for_each(|note| note(&interrupt.requests));
            assert!(interrupt.finish_requested());
            (interrupt.stop_requested(), interrupt.kill_requested())
        };
        assert_eq!(of(&[Requests::interrupted]), (false, false));
        assert_eq!(of(&[Requests::terminated]), (true, false));
        let int: fn(&Requests) = Requests::interrupted;
        let term: fn(&Requests) = Requests::terminated;
        assert_eq!(of(&[int, int]), (true, true));
        assert_eq!(of(&[term, int]), (true, true));
        // A terminal that is closed hangs up twice, and `timeout` ends its child twice.
        assert_eq!(of(&[term, term, term]), (true, false));
        assert_eq!(of(&[int, term]), (true, false));
        let long_ago = |requests: &Requests| {
            let first = now_ns() - 2 * TOGETHER.as_nanos() as u64;
            requests.first_ns.store(first, Ordering::SeqCst);
        };
        assert_eq!(of(&[term, long_ago, term]), (true, true));
    }

    #[test]
    fn while_there_is_nothing_to_finish_the_first_interrupt_stops() {
        let interrupt = Interrupt::detached().unwrap();
        interrupt.prepare(true);
        assert!(!interrupt.stop_requested());
        interrupt.request_finish();
        assert!(interrupt.stop_requested() && !interrupt.kill_requested());
        // An action that was begun nevertheless is finished.
        interrupt.prepare(false);
        assert!(interrupt.finish_requested() && !interrupt.stop_requested());
    }

    /// Begins to wait for a minute.
    fn patience(interrupt: &Interrupt) -> Patience {
        Patience {
            interrupt: Some(interrupt.clone()),
            ..Patience::new(Duration::from_secs(60))
        }
    }

    #[test]
    fn a_wait_ends_with_the_second_request_with_the_first_while_preparing_and_with_the_cell() {
        let short = Duration::from_secs(2);
        let interrupt = Interrupt::detached().unwrap();
        let begun = patience(&interrupt);
        interrupt.request_finish();
        assert!(begun.left() > short, "the first one lets it go on");
        interrupt.prepare(true);
        assert!(!begun.wait(&[]).unwrap() && begun.begun.elapsed() < 5 * short);

        let interrupt = Interrupt::detached().unwrap();
        let begun = patience(&interrupt);
        interrupt.request_stop();
        assert!(begun.left() <= LAST_WAIT);
        assert!(patience(&interrupt).left() >= LEAST_WAIT / 2, "a moment");

        let interrupt = Interrupt::detached().unwrap();
        interrupt.bound(Some(Duration::ZERO));
        assert!(patience(&interrupt).left() <= LEAST_WAIT);
        interrupt.bound(Some(2 * short));
        std::thread::sleep(Duration::from_millis(1));
        assert!(interrupt.left().unwrap() < 2 * short);
        interrupt.requests.was_continued();
        let anew = Instant::now();
        assert!(interrupt.left().unwrap() + anew.elapsed() >= 2 * short);
        interrupt.bound(None);
        assert!(patience(&interrupt).left() > short);
    }
}
