//! One started instance, watched to its end.
//!
//! Whoever watches sleeps in `poll` until the instance says something, ends, takes too long, or
//! the user asks to stop: no thread and no timer of `tare` runs while the workload does, except
//! for a tick to redraw the progress when somebody looks at it.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{ChildStderr, ChildStdout, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use tare_guard::{Interrupt, OwnedChild};

use crate::error::TargetError;

/// Is the longest line that is passed on; what is longer is passed on in pieces.
const MAX_LINE: usize = 64 * 1024;

/// Is how much of standard error is kept, from its end.
const KEPT_ERROR: usize = 2_000;

/// Is how many reads of 16 KiB are made at a time: together 1 MiB, the largest pipe that an ordinary
/// user can have.
const MOST_READS: usize = 64;

/// Reads CLOCK_MONOTONIC, the clock of all events, in ns.
#[must_use]
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Is one started instance. Dropping it ends it.
#[derive(Debug)]
pub struct Instance {
    /// CLOCK_MONOTONIC just before the call that started it.
    pub started_ns: u64,
    child: OwnedChild,
    output: Option<ChildStdout>,
    error: Option<ChildStderr>,
}

/// Says how an instance ended.
#[derive(Debug)]
pub struct Ended {
    /// CLOCK_MONOTONIC when its end was seen.
    pub exited_ns: u64,
    /// How it ended.
    pub how: Ending,
    /// The last that it wrote to standard error.
    pub last_words: String,
}

/// Is a way to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, or by somebody else's signal.
    Exited(ExitStatus),
    /// It took longer than allowed and was killed.
    TimedOut,
    /// The user asked to stop, and it was killed.
    Stopped,
}

/// Receives what happens while an instance is watched.
pub trait Watcher {
    /// Takes a line of the instance's output, without newline, that was read at `at_ns`.
    fn line(&mut self, line: &[u8], at_ns: u64);

    /// Is called now and then, to redraw a progress display. Returns after how long again, or
    /// None if nobody looks.
    fn tick(&mut self) -> Option<Duration> {
        None
    }
}

impl Instance {
    /// Takes over a child whose standard output and error are pipes.
    pub(crate) fn of_child(mut child: OwnedChild, started_ns: u64) -> Result<Self, TargetError> {
        let (output, error) = (child.take_stdout(), child.take_stderr());
        let set = |fd: Option<BorrowedFd<'_>>| fd.map_or(Ok(()), set_nonblocking);
        set(output.as_ref().map(AsFd::as_fd))
            .and_then(|()| set(error.as_ref().map(AsFd::as_fd)))
            .map_err(|source| TargetError::Output { source })?;
        Ok(Self {
            started_ns,
            child,
            output,
            error,
        })
    }

    /// Watches the instance until it ends, `limit` has passed, or the user asks to stop.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if its output can't be read or its end can't be waited for; it is
    /// then killed.
    pub fn watch(
        mut self,
        limit: Duration,
        interrupt: &Interrupt,
        watcher: &mut impl Watcher,
    ) -> Result<Ended, TargetError> {
        let deadline = Instant::now() + limit;
        let mut lines = Lines::default();
        let mut tail = Tail::default();
        let how = loop {
            // The child's end is asked for before the pipes are drained: what it wrote before is
            // then certainly read.
            let status = self.child.try_wait()?;
            drain(&mut self.output, |bytes| lines.take(bytes, watcher))?;
            drain(&mut self.error, |bytes| tail.take(bytes))?;
            if let Some(status) = status {
                break Ending::Exited(status);
            }
            interrupt.clear_wake_up();
            if interrupt.stop_requested() {
                break Ending::Stopped;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break Ending::TimedOut;
            }
            let pause = watcher.tick().map_or(left, |tick| left.min(tick));
            self.wait_for_news(interrupt, pause)?;
        };
        if !matches!(how, Ending::Exited(_)) {
            self.child.kill_group()?;
            drain(&mut self.output, |bytes| lines.take(bytes, watcher))?;
            drain(&mut self.error, |bytes| tail.take(bytes))?;
        }
        lines.finish(watcher);
        Ok(Ended {
            exited_ns: now_ns(),
            how,
            last_words: tail.text(),
        })
    }

    fn wait_for_news(&self, interrupt: &Interrupt, pause: Duration) -> Result<(), TargetError> {
        let mut fds = vec![
            PollFd::new(&self.child, PollFlags::IN),
            PollFd::new(interrupt, PollFlags::IN),
        ];
        fds.extend(self.output.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        fds.extend(self.error.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let pause = Timespec {
            tv_sec: i64::try_from(pause.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: pause.subsec_nanos().into(),
        };
        match poll(&mut fds, Some(&pause)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(TargetError::Output {
                source: errno.into(),
            }),
        }
    }
}

fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = fcntl_getfl(fd)?;
    Ok(fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}

/// Reads what is there, and closes the pipe at its end. Who writes without pause can't hold it up:
/// it reads no more than a pipe can hold, and the rest next time.
fn drain(pipe: &mut Option<impl Read>, mut take: impl FnMut(&[u8])) -> Result<(), TargetError> {
    let mut bytes = [0; 16 * 1024];
    for _ in 0..MOST_READS {
        let Some(open) = pipe else {
            break;
        };
        match open.read(&mut bytes) {
            Ok(0) => *pipe = None,
            Ok(n) => take(&bytes[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(source) => return Err(TargetError::Output { source }),
        }
    }
    Ok(())
}

/// Cuts bytes into lines.
#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    fn take(&mut self, bytes: &[u8], watcher: &mut impl Watcher) {
        let at_ns = now_ns();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(piece);
            if let Some(line) = self.begun.strip_suffix(b"\n") {
                watcher.line(line, at_ns);
                self.begun.clear();
            } else if self.begun.len() >= MAX_LINE {
                watcher.line(&self.begun, at_ns);
                self.begun.clear();
            }
        }
    }

    fn finish(&mut self, watcher: &mut impl Watcher) {
        if !self.begun.is_empty() {
            watcher.line(&self.begun, now_ns());
            self.begun.clear();
        }
    }
}

/// Keeps the end of a text.
#[derive(Default)]
struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let surplus = self.bytes.len().saturating_sub(KEPT_ERROR);
        self.bytes.drain(..surplus);
    }

    fn text(mut self) -> String {
        let text = String::from_utf8_lossy(self.bytes.make_contiguous()).into_owned();
        text.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use tare_guard::Guard;

    use super::*;

    #[derive(Default)]
    struct Heard {
        lines: Vec<String>,
        stop_after_first: Option<Interrupt>,
    }

    impl Watcher for Heard {
        fn line(&mut self, line: &[u8], _at_ns: u64) {
            self.lines.push(String::from_utf8_lossy(line).into_owned());
            if let Some(interrupt) = &self.stop_after_first {
                interrupt.request_stop();
            }
        }
    }

    fn watch(
        script: &str,
        limit: Duration,
        heard: &mut impl Watcher,
        interrupt: &Interrupt,
    ) -> Ended {
        let state = tempfile::tempdir().unwrap();
        let guard = Guard::open(state.path()).unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = guard.spawn(&mut command).unwrap();
        let instance = Instance::of_child(child, now_ns()).unwrap();
        instance.watch(limit, interrupt, heard).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    fn nobody() -> Interrupt {
        Interrupt::detached().unwrap()
    }

    #[test]
    fn lines_are_passed_on_whole_and_the_status_is_kept() {
        let mut heard = Heard::default();
        let script = "printf 'one\\ntw'; sleep 0.05; printf 'o\\nthree'; echo oops >&2; exit 7";
        let ended = watch(script, LONG, &mut heard, &nobody());
        assert_eq!(heard.lines, ["one", "two", "three"]);
        let Ending::Exited(status) = ended.how else {
            panic!("{ended:?}");
        };
        assert_eq!(status.code(), Some(7));
        assert_eq!(ended.last_words, "oops");
    }

    #[test]
    fn an_instance_that_hangs_ends_with_its_limit() {
        let mut heard = Heard::default();
        let limit = Duration::from_millis(200);
        let ended = watch("echo here; exec sleep 1000", limit, &mut heard, &nobody());
        assert_eq!(ended.how, Ending::TimedOut);
        assert_eq!(heard.lines, ["here"]);
    }

    #[test]
    fn an_instance_that_closes_its_output_and_hangs_ends_with_its_limit() {
        let limit = Duration::from_millis(200);
        let script = "exec >&- 2>&-; sleep 1000";
        let ended = watch(script, limit, &mut Heard::default(), &nobody());
        assert_eq!(ended.how, Ending::TimedOut);
    }

    #[test]
    fn a_request_to_stop_ends_it_at_once() {
        let interrupt = nobody();
        let mut heard = Heard {
            stop_after_first: Some(interrupt.clone()),
            ..Heard::default()
        };
        let ended = watch("echo go; exec sleep 1000", LONG, &mut heard, &interrupt);
        assert_eq!(ended.how, Ending::Stopped);
    }

    #[test]
    fn an_instance_that_never_stops_talking_ends_with_its_limit() {
        let limit = Duration::from_millis(300);
        let ended = watch("exec yes", limit, &mut Counted(0), &nobody());
        assert_eq!(ended.how, Ending::TimedOut);
    }

    /// Counts lines without keeping them.
    struct Counted(u64);

    impl Watcher for Counted {
        fn line(&mut self, _line: &[u8], _at_ns: u64) {
            self.0 += 1;
        }
    }

    #[test]
    fn endless_output_without_newline_does_not_fill_the_memory() {
        let mut heard = Heard::default();
        let script = "head -c 200000 /dev/zero";
        watch(script, LONG, &mut heard, &nobody());
        assert!(
            heard
                .lines
                .iter()
                .all(|line| line.len() <= MAX_LINE + 16 * 1024)
        );
        assert_eq!(heard.lines.iter().map(String::len).sum::<usize>(), 200_000);
    }
}
