//! One started instance, watched to its end.
//!
//! Whoever watches sleeps in `poll` until the instance says something, ends, takes too long, or
//! the user asks to stop: no thread of `tare` runs while the workload does, and its timers only
//! redraw the progress when somebody looks at it, and look at what else runs.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStderr, ChildStdout, ExitStatus};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::time::{ClockId, clock_gettime};
use tare_docker::Stream;
use tare_guard::{Interrupt, OwnedChild};

use crate::error::TargetError;
use crate::qemu::pin::PinnedThread;

/// The longest line that is passed on; what is longer is passed on in pieces.
const MAX_LINE: usize = 64 * 1024;

/// How much of standard error is kept, from its end.
const KEPT_ERROR: usize = 2_000;

/// How many reads of 16 KiB are made at a time: together 1 MiB, the largest pipe that an ordinary
/// user can have.
const MOST_READS: usize = 64;

/// How often it is looked whether threads that can't see it themselves are on their CPUs.
const LOOK: Duration = Duration::from_secs(1);

/// Reads CLOCK_MONOTONIC, the clock of all events, in ns.
#[must_use]
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// One started instance. Dropping it ends it.
#[derive(Debug)]
pub struct Instance {
    /// CLOCK_MONOTONIC just before the call that started it.
    pub started_ns: u64,
    // Before the monitor, which may own what the body stands in.
    body: Box<dyn Body>,
    monitor: Box<dyn Monitor>,
    /// The threads of this machine that must stay on their CPUs, and can't see it themselves.
    pub(crate) pinned: Vec<PinnedThread>,
}

/// How an instance ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// CLOCK_MONOTONIC when its end was seen.
    pub exited_ns: u64,
    /// How it ended.
    pub how: Ending,
    /// What its target remarks, for example which resources were refused.
    pub notices: Vec<String>,
}

/// A way to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, and it says that it did what it was to do.
    Done,
    /// By itself or by somebody else, before that.
    Failed {
        /// What happened, as far as it can be told.
        why: String,
    },
    /// It took longer than allowed and was ended.
    TimedOut {
        /// What it was doing, as the target knows; nothing if it does not.
        doing: Option<String>,
    },
    /// The user asked to stop, and it was ended.
    Stopped,
}

/// What only its target can know of an instance.
pub(crate) trait Monitor: fmt::Debug {
    /// Takes a line of the instance's output, before the watcher does.
    fn line(&mut self, _line: &[u8]) {}

    /// Takes a line of standard error. Returns whether it belongs to the instance's output as well:
    /// the watcher then gets it, too.
    fn error_line(&mut self, _line: &[u8]) -> bool {
        false
    }

    /// Says whether the instance becomes ready by this line of its output, which may have no end yet.
    /// True at most once. Those whose records tell it never do.
    fn becomes_ready(&mut self, _line: &[u8]) -> bool {
        false
    }

    /// Decides, when the process has ended, whether the instance did what it was to do, and if
    /// not, tells what happened. `said` is the last that the process wrote to standard error.
    fn judge(&mut self, status: ExitStatus, said: &str) -> Result<(), String>;

    /// Tells what the reader of the figures should know of this instance.
    fn notices(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Asks the measured code to end before its work is done, and to report what it has: SIGTERM for a process.
    fn cut_short(&mut self, body: &mut dyn Body) -> Result<(), TargetError> {
        body.terminate()
    }

    /// May end an instance in an orderly way, before it is killed. Returns what it was doing.
    fn end_early(&mut self, _child: &mut OwnedChild) -> Option<String> {
        None
    }
}

/// What runs: a child of this process, or a container of an engine.
pub(crate) trait Body: fmt::Debug {
    /// Returns the id of the process, or of the one that stands for it on this machine, if it is known.
    fn pid(&self) -> Option<u32>;

    /// Returns the exit status if it has ended, without waiting. What it wrote before can then be
    /// read.
    fn try_wait(&mut self) -> Result<Option<ExitStatus>, TargetError>;

    /// Hands out what has come from it, without waiting.
    fn read(&mut self, take: &mut dyn FnMut(Stream, &[u8])) -> Result<(), TargetError>;

    /// Returns what becomes readable when there is news.
    fn news(&self) -> Vec<BorrowedFd<'_>>;

    /// Ends it by force.
    fn kill(&mut self) -> Result<(), TargetError>;

    /// Sends SIGTERM to it.
    fn terminate(&mut self) -> Result<(), TargetError>;

    /// Returns the child, if it is one.
    fn child(&mut self) -> Option<&mut OwnedChild> {
        None
    }
}

/// What a request to finish means for an instance at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It goes on to its end.
    ByItself,
    /// It is asked to end, and to report what it has.
    Early,
    /// It is ended: there is nothing to report.
    AtOnce,
}

/// The receiver of what happens while an instance is watched.
pub trait Watcher {
    /// Take a line of the instance's output, without newline, that was read at `at_ns`.
    fn line(&mut self, line: &[u8], at_ns: u64);

    /// Take note that an instance has become ready that prints no records; at most once.
    fn ready(&mut self, _at_ns: u64) {}

    /// Decide what a request to finish means now; called again and again from the request on.
    fn finishing(&mut self) -> Finish {
        Finish::ByItself
    }

    /// Take note of what becomes of the instance after a request to finish; once. One that can't be asked to end goes on
    /// by itself.
    fn finishes(&mut self, _finish: Finish) {}

    /// Redraw a progress display; called now and then. Returns after how long again, or
    /// None if nobody looks.
    fn tick(&mut self) -> Option<Duration> {
        None
    }
}

impl Instance {
    /// Take over a child whose standard output and error are pipes.
    pub(crate) fn of_child(
        mut child: OwnedChild,
        started_ns: u64,
        monitor: impl Monitor + 'static,
    ) -> Result<Self, TargetError> {
        let output = child.take_stdout();
        Self::of_child_with(output, child, started_ns, monitor)
    }

    /// Take over a child whose output comes by a descriptor of another kind.
    pub(crate) fn of_child_with(
        output: Option<ChildStdout>,
        child: OwnedChild,
        started_ns: u64,
        monitor: impl Monitor + 'static,
    ) -> Result<Self, TargetError> {
        Ok(Self::of_body(
            Piped::new(child, output)?,
            started_ns,
            monitor,
        ))
    }

    /// Take over whatever runs.
    pub(crate) fn of_body(
        body: impl Body + 'static,
        started_ns: u64,
        monitor: impl Monitor + 'static,
    ) -> Self {
        Self {
            started_ns,
            body: Box::new(body),
            monitor: Box::new(monitor),
            pinned: Vec::new(),
        }
    }

    /// Returns the id of its process, or of the one that stands for it on this machine, if it is known.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.body.pid()
    }

    /// Watches the instance until it ends, `limit` has passed, or the user asks to stop. The limit counts anew when this
    /// process goes on after it was stopped.
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
        interrupt.bound(Some(limit));
        let mut received = Received::default();
        let (mut asked, mut is_told) = (None, false);
        let stop = loop {
            // The child's end is asked for before the pipes are drained: what it wrote before is
            // then certainly read.
            let status = self.body.try_wait()?;
            // Before what it says is passed on: its target may end it then.
            let stayed = self.pinned.iter_mut().try_for_each(PinnedThread::stayed);
            self.drain(&mut received, watcher)?;
            if let Err(why) = stayed {
                break Stop::Moved(why);
            }
            if let Some(status) = status {
                break Stop::Exited(status);
            }
            if interrupt.kill_requested() {
                break Stop::Asked;
            }
            if interrupt.finish_requested() {
                let finish = match watcher.finishing() {
                    Finish::Early => {
                        let ask = || match self.monitor.cut_short(self.body.as_mut()) {
                            Ok(()) => Finish::Early,
                            Err(_) => Finish::ByItself,
                        };
                        *asked.get_or_insert_with(ask)
                    }
                    other => other,
                };
                if !is_told {
                    is_told = true;
                    watcher.finishes(finish);
                }
                match finish {
                    Finish::Early => {}
                    Finish::ByItself if !interrupt.stop_requested() => {}
                    Finish::ByItself | Finish::AtOnce => break Stop::Asked,
                }
            }
            let left = interrupt.left().unwrap_or(limit);
            if left.is_zero() {
                break Stop::Late;
            }
            let look = (!self.pinned.is_empty()).then_some(LOOK);
            let wake = watcher.tick().into_iter().chain(look).min();
            let pause = wake.map_or(left, |wake| left.min(wake));
            interrupt
                .wait(&self.body.news(), pause)
                .map_err(|source| TargetError::Output { source })?;
        };
        interrupt.bound(None);
        let mut doing = None;
        // Before what only the reading of the result takes.
        let mut exited_ns = now_ns();
        if matches!(stop, Stop::Late) {
            let child = self.body.child();
            doing = child.and_then(|child| self.monitor.end_early(child));
        }
        if !matches!(stop, Stop::Exited(_)) {
            self.body.kill()?;
            exited_ns = now_ns();
            self.drain(&mut received, watcher)?;
        }
        let monitor = self.monitor.as_mut();
        let now = now_ns();
        let Received {
            lines,
            errors,
            tail,
        } = received;
        errors.finish(|line| pass_on_error(monitor, watcher, line, now));
        lines.finish(|line| pass_on(monitor, watcher, line, now));
        let how = match stop {
            Stop::Exited(status) => match self.monitor.judge(status, &tail.text()) {
                Ok(()) => Ending::Done,
                Err(why) => Ending::Failed { why },
            },
            Stop::Moved(why) => Ending::Failed { why },
            Stop::Late => Ending::TimedOut { doing },
            Stop::Asked => Ending::Stopped,
        };
        Ok(Ended {
            exited_ns,
            how,
            notices: self.monitor.notices(),
        })
    }

    fn drain(
        &mut self,
        received: &mut Received,
        watcher: &mut impl Watcher,
    ) -> Result<(), TargetError> {
        let monitor = self.monitor.as_mut();
        let Received {
            lines,
            errors,
            tail,
        } = received;
        self.body.read(&mut |stream, bytes| {
            let at_ns = now_ns();
            match stream {
                Stream::Output => {
                    lines.take(bytes, |line| pass_on(monitor, watcher, line, at_ns));
                    // A prompt has no end until somebody answers.
                    if !lines.begun.is_empty() && monitor.becomes_ready(&lines.begun) {
                        watcher.ready(at_ns);
                    }
                }
                Stream::Error => {
                    tail.take(bytes);
                    errors.take(bytes, |line| pass_on_error(monitor, watcher, line, at_ns));
                }
            }
        })
    }
}

/// A child with pipes.
#[derive(Debug)]
struct Piped {
    child: OwnedChild,
    output: Option<ChildStdout>,
    error: Option<ChildStderr>,
}

impl Piped {
    fn new(mut child: OwnedChild, output: Option<ChildStdout>) -> Result<Self, TargetError> {
        let error = child.take_stderr();
        for fd in [
            output.as_ref().map(AsFd::as_fd),
            error.as_ref().map(AsFd::as_fd),
        ] {
            fd.map_or(Ok(()), set_nonblocking)
                .map_err(|source| TargetError::Output { source })?;
        }
        Ok(Self {
            child,
            output,
            error,
        })
    }
}

impl Body for Piped {
    fn pid(&self) -> Option<u32> {
        Some(self.child.pid())
    }

    fn try_wait(&mut self) -> Result<Option<ExitStatus>, TargetError> {
        Ok(self.child.try_wait()?)
    }

    fn read(&mut self, take: &mut dyn FnMut(Stream, &[u8])) -> Result<(), TargetError> {
        drain(&mut self.output, |bytes| take(Stream::Output, bytes))?;
        drain(&mut self.error, |bytes| take(Stream::Error, bytes))
    }

    fn news(&self) -> Vec<BorrowedFd<'_>> {
        let mut news = vec![self.child.as_fd()];
        news.extend(self.output.as_ref().map(AsFd::as_fd));
        news.extend(self.error.as_ref().map(AsFd::as_fd));
        news
    }

    fn kill(&mut self) -> Result<(), TargetError> {
        self.child.kill_group()?;
        Ok(())
    }

    fn terminate(&mut self) -> Result<(), TargetError> {
        Ok(self.child.terminate()?)
    }

    fn child(&mut self) -> Option<&mut OwnedChild> {
        Some(&mut self.child)
    }
}

/// Let reads return what there is.
///
/// # Errors
///
/// Returns the kernel's error.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
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

/// What has come from an instance and is not passed on yet.
#[derive(Default)]
struct Received {
    /// The line of standard output that has begun.
    lines: Lines,
    /// The line of standard error that has begun.
    errors: Lines,
    tail: Tail,
}

/// Bytes cut into lines.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// Take bytes, and pass on each line that is whole.
    pub fn take(&mut self, bytes: &[u8], mut line: impl FnMut(&[u8])) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(piece);
            if let Some(whole) = self.begun.strip_suffix(b"\n") {
                line(whole);
                self.begun.clear();
            } else if self.begun.len() >= MAX_LINE {
                line(&self.begun);
                self.begun.clear();
            }
        }
    }

    /// Return the line that has begun.
    #[must_use]
    pub fn begun(&self) -> &[u8] {
        &self.begun
    }

    /// Pass on what is left.
    pub fn finish(self, line: impl FnOnce(&[u8])) {
        if !self.begun.is_empty() {
            line(&self.begun);
        }
    }
}

/// The end of a text.
#[derive(Debug, Default)]
pub struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    /// Take bytes, and forget what is too long ago.
    pub fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let surplus = self.bytes.len().saturating_sub(KEPT_ERROR);
        self.bytes.drain(..surplus);
    }

    /// Return it, without white space around.
    #[must_use]
    pub fn text(mut self) -> String {
        let text = String::from_utf8_lossy(self.bytes.make_contiguous()).into_owned();
        text.trim().to_owned()
    }
}

/// Why watching stopped.
enum Stop {
    Exited(ExitStatus),
    /// A thread did not stay on its CPU.
    Moved(String),
    Late,
    Asked,
}

fn pass_on(monitor: &mut dyn Monitor, watcher: &mut impl Watcher, line: &[u8], at_ns: u64) {
    monitor.line(line);
    if monitor.becomes_ready(line) {
        watcher.ready(at_ns);
    }
    watcher.line(line, at_ns);
}

fn pass_on_error(monitor: &mut dyn Monitor, watcher: &mut impl Watcher, line: &[u8], at_ns: u64) {
    if monitor.error_line(line) {
        watcher.line(line, at_ns);
    }
}

/// The monitor of an ordinary process: done if its status is 0.
#[derive(Debug)]
pub(crate) struct Ordinary;

impl Monitor for Ordinary {
    fn judge(&mut self, status: ExitStatus, said: &str) -> Result<(), String> {
        match status.success() {
            true => Ok(()),
            false => Err(describe_exit(status, said)),
        }
    }
}

/// Say how a process ended, and the last that it wrote to standard error.
pub(crate) fn describe_exit(status: ExitStatus, said: &str) -> String {
    let how = match (status.signal(), status.code()) {
        (Some(9), _) => {
            "it was killed (SIGKILL): by somebody, or by the kernel for want of memory (see dmesg)"
                .to_owned()
        }
        (Some(signal), _) => format!("it crashed or was ended by signal {signal}"),
        (None, Some(code)) => format!("it ended with status {code}"),
        (None, None) => "it ended in an unknown way".to_owned(),
    };
    let said: Vec<&str> = said.lines().map(str::trim).collect();
    match &said[..] {
        [] => how,
        said => format!("{how}; it said: {}", said.join(" / ")),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use tare_guard::Guard;

    use super::*;

    #[derive(Default)]
    struct Output {
        lines: Vec<String>,
        stop_after_first: Option<Interrupt>,
    }

    impl Watcher for Output {
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
        let instance = Instance::of_child(child, now_ns(), Ordinary).unwrap();
        instance.watch(limit, interrupt, heard).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    fn nobody() -> Interrupt {
        Interrupt::detached().unwrap()
    }

    #[test]
    fn lines_are_passed_on_whole_and_the_status_is_kept() {
        let mut heard = Output::default();
        let script = "printf 'one\\ntw'; sleep 0.05; printf 'o\\nthree'; echo oops >&2; exit 7";
        let ended = watch(script, LONG, &mut heard, &nobody());
        assert_eq!(heard.lines, ["one", "two", "three"]);
        let why = "it ended with status 7; it said: oops".to_owned();
        assert_eq!(ended.how, Ending::Failed { why });
    }

    #[test]
    fn an_instance_that_says_that_it_is_done_is_believed() {
        let ended = watch("echo hi >&2", LONG, &mut Output::default(), &nobody());
        assert_eq!(ended.how, Ending::Done);
    }

    #[test]
    fn a_signal_is_told() {
        for (signal, text) in [("KILL", "it was killed (SIGKILL)"), ("SEGV", "signal 11")] {
            let script = format!("kill -{signal} $$");
            let ended = watch(&script, LONG, &mut Output::default(), &nobody());
            let Ending::Failed { why } = ended.how else {
                panic!("{ended:?}");
            };
            assert!(why.contains(text), "{why}");
        }
    }

    #[test]
    fn an_instance_that_hangs_ends_with_its_limit() {
        let mut heard = Output::default();
        let limit = Duration::from_millis(200);
        let ended = watch("echo here; exec sleep 1000", limit, &mut heard, &nobody());
        assert_eq!(ended.how, Ending::TimedOut { doing: None });
        assert_eq!(heard.lines, ["here"]);
    }

    #[test]
    fn an_instance_that_closes_its_output_and_hangs_ends_with_its_limit() {
        let limit = Duration::from_millis(200);
        let script = "exec >&- 2>&-; sleep 1000";
        let ended = watch(script, limit, &mut Output::default(), &nobody());
        assert_eq!(ended.how, Ending::TimedOut { doing: None });
    }

    #[test]
    fn a_request_to_stop_ends_it_at_once() {
        let interrupt = nobody();
        let mut heard = Output {
            stop_after_first: Some(interrupt.clone()),
            ..Output::default()
        };
        let ended = watch("echo go; exec sleep 1000", LONG, &mut heard, &interrupt);
        assert_eq!(ended.how, Ending::Stopped);
    }

    #[test]
    fn an_instance_that_never_stops_talking_ends_with_its_limit() {
        let limit = Duration::from_millis(300);
        let ended = watch("exec yes", limit, &mut Counted(0), &nobody());
        assert_eq!(ended.how, Ending::TimedOut { doing: None });
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
        let mut heard = Output::default();
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
