//! One instance by itself, watched to its end.
//!
//! The watching thread sleeps in `poll` until the instance writes, ends or takes too long, or the
//! user asks to stop. No thread of `tare` runs while the workload does, except for timers that
//! redraw the progress on a terminal and that sample other work.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStderr, ChildStdout, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::time::{ClockId, clock_gettime};
use tare_docker::Stream;
use tare_guard::{Guard, Interrupt, OwnedChild, private_mounts};

use crate::error::TargetError;
use crate::launch::{Dialogue, Launch, Program, Ready, Start};
use crate::output::InstanceOutput;

/// How much of what an instance wrote to standard error is in a message, from its end.
const SHOWN_ERROR: usize = 2_000;

/// How many reads of 16 KiB are made at a time: together 1 MiB, the largest pipe that an ordinary
/// user can have.
const MOST_READS: usize = 64;

/// The longest time until it is looked again whether an instance is ready, where no limit holds.
const LONGEST_LOOK: Duration = Duration::from_secs(3600);

/// Reads CLOCK_MONOTONIC, the clock of all events, in ns.
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// One started instance. Dropping it ends it.
#[derive(Debug)]
pub struct Instance {
    /// CLOCK_MONOTONIC just before the call that started it.
    pub started_ns: u64,
    // Before the launch, which may own what the body stands in.
    body: Box<dyn Body>,
    dialogue: Option<Box<dyn Dialogue>>,
    launch: Launch,
    output: InstanceOutput,
}

/// How an instance ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// CLOCK_MONOTONIC when it was ready, as its launch says; 0 if it never was.
    pub ready_ns: u64,
    /// CLOCK_MONOTONIC when its end was seen.
    pub exited_ns: u64,
    /// How it ended.
    pub how: Ending,
    /// Notices of its target, for example which resources were refused.
    pub notices: Vec<String>,
}

/// A way to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, and it says that it did its work.
    Done,
    /// By itself or by somebody else, before that.
    Failed {
        /// What happened, as far as it is known.
        why: String,
    },
    /// It took longer than allowed and was ended.
    TimedOut {
        /// The state it was in, if the target knows.
        doing: Option<String>,
    },
    /// The user asked to stop, and it was ended.
    Stopped,
}

/// A child of this process, or a container of an engine.
pub trait Body: fmt::Debug {
    /// Returns the id of the process, or of the one that stands for it on this machine, if it is
    /// known.
    fn pid(&self) -> Option<u32>;

    /// Returns the exit status if it has ended, without waiting. Its output can then be read to the
    /// end.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if it is unknown whether it has ended.
    fn try_wait(&mut self) -> Result<Option<ExitStatus>, TargetError>;

    /// Passes on what has come from it, without waiting.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if its output can't be read.
    fn read(&mut self, take: &mut dyn FnMut(Stream, &[u8])) -> Result<(), TargetError>;

    /// Returns what becomes readable when there is news.
    fn news(&self) -> Vec<BorrowedFd<'_>>;

    /// Ends it by force.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if it can't be ended.
    fn kill(&mut self) -> Result<(), TargetError>;

    /// Sends SIGTERM to it.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if it can't be signalled.
    fn terminate(&mut self) -> Result<(), TargetError>;

    /// Returns why its engine says that it has ended, if that is more than its status.
    fn reason(&mut self) -> Option<String> {
        None
    }

    /// Returns the child, if it is one.
    fn child(&mut self) -> Option<&mut OwnedChild> {
        None
    }
}

/// Waits for the end of what runs, and passes on what it writes. Ends it as soon as `stop` is
/// readable. Returns its status, and CLOCK_MONOTONIC when its end was seen.
///
/// # Errors
///
/// Returns [`TargetError`] if its output can't be read or its end is unknown.
pub fn attend(
    body: &mut dyn Body,
    stop: BorrowedFd<'_>,
    take: &mut dyn FnMut(Stream, &[u8]),
) -> Result<(ExitStatus, u64), TargetError> {
    let mut is_killed = false;
    loop {
        let status = body.try_wait()?;
        body.read(take)?;
        match status {
            Some(status) => return Ok((status, now_ns())),
            None if is_killed => return Err(TargetError::Failed("it can't be killed".to_owned())),
            None => {}
        }
        let news = body.news().into_iter().chain([stop]);
        let news: Vec<BorrowedFd<'_>> = news.collect();
        let mut polled: Vec<PollFd<'_>> = news
            .iter()
            .map(|fd| PollFd::new(fd, PollFlags::IN))
            .collect();
        // A signal to this thread only makes it look earlier.
        let _ = poll(&mut polled, None);
        if polled.last().is_some_and(|stop| !stop.revents().is_empty()) {
            body.kill()?;
            is_killed = true;
        }
    }
}

/// The effect of a request to finish on an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It goes on to its end.
    ByItself,
    /// It is asked to end, and to report what it has.
    Early,
    /// It is ended: there is nothing to report.
    AtOnce,
}

/// What happens while an instance is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputEvent<'a> {
    /// It has written a line, without newline here, that was read at this time.
    Line(&'a [u8], u64),
    /// The user has asked to finish, and this becomes of it; once. An instance that can't be asked
    /// to end goes on by itself.
    Finishing(Finish),
}

/// The receiver of what happens while an instance is watched.
pub trait Watcher {
    /// Takes an event.
    fn on_event(&mut self, event: OutputEvent<'_>);

    /// Returns why the instance need not go on, since its figures would be worth nothing; None as
    /// long as it must.
    fn worthless(&self) -> Option<String> {
        None
    }

    /// Decides what a request to finish means now. Called repeatedly from the request on.
    fn finishing(&mut self) -> Finish {
        Finish::ByItself
    }

    /// Redraws a progress display; called now and then. Returns after how long it wants to be
    /// called again; None if nobody looks.
    fn tick(&mut self) -> Option<Duration> {
        None
    }
}

impl<F: FnMut(OutputEvent<'_>)> Watcher for F {
    fn on_event(&mut self, event: OutputEvent<'_>) {
        self(event);
    }
}

impl Instance {
    /// Starts one instance by itself.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if nothing could be started, or its dialogue does not begin.
    pub fn start(mut launch: Launch, guard: &Guard) -> Result<Self, TargetError> {
        let (started_ns, body, dialogue) = match &launch.start {
            Start::Calls(calls) => {
                let started_ns = now_ns();
                (started_ns, calls.start(&mut launch.notices)?, None)
            }
            Start::Program(program) => {
                let unprepared =
                    |error| TargetError::Failed(format!("it can't be started: {error}"));
                let Program { exec, channels } = program(0).map_err(unprepared)?;
                let mut command = exec.command();
                command.stderr(Stdio::piped());
                if channels.output.is_none() {
                    command.stdout(Stdio::piped());
                }
                if !launch.mounts.is_empty() {
                    private_mounts(&mut command, &launch.mounts);
                }
                let started_ns = now_ns();
                let mut child = guard.spawn(&mut command)?;
                // The command holds the other ends of the channels open: their end could not be
                // seen.
                drop(command);
                let port = channels.output.as_ref().map(UnixStream::try_clone);
                let port = port
                    .transpose()
                    .map_err(|source| TargetError::Output { source })?;
                let begin = launch.dialogue.take();
                let dialogue = begin.map(|begin| begin(&mut child, channels));
                let dialogue = dialogue.transpose()?;
                (
                    started_ns,
                    Box::new(Piped::new(child, port)?) as Box<dyn Body>,
                    dialogue,
                )
            }
        };
        Ok(Self {
            started_ns,
            body,
            dialogue,
            launch,
            output: InstanceOutput::default(),
        })
    }

    /// Returns the id of its process, or of the one that stands for it on this machine, if it is
    /// known.
    pub fn pid(&self) -> Option<u32> {
        self.body.pid()
    }

    /// Watches the instance until it ends, `limit` has passed, or the user asks to stop. The limit
    /// counts anew when this process goes on after it was stopped.
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
        let (mut asked, mut is_reported) = (None, false);
        let stop = loop {
            // Its end is asked for before the pipes are drained: what it wrote before is then
            // certainly read.
            let status = self.body.try_wait()?;
            // Before its output is passed on: its target may end it then.
            let checked = self.dialogue.as_mut().map_or(Ok(()), |it| it.check());
            self.drain(watcher)?;
            if let Some(why) = checked.err().or_else(|| watcher.worthless()) {
                break Stop::Worthless(why);
            }
            if let Some(status) = status {
                break Stop::Exited(status);
            }
            if interrupt.finish_requested() {
                let finish = match watcher.finishing() {
                    Finish::Early => *asked.get_or_insert_with(|| self.ask_to_end()),
                    other => other,
                };
                if !is_reported {
                    is_reported = true;
                    watcher.on_event(OutputEvent::Finishing(finish));
                }
                match finish {
                    Finish::Early if !interrupt.kill_requested() => {}
                    Finish::ByItself if !interrupt.stop_requested() => {}
                    _ => break Stop::Requested,
                }
            }
            let left = interrupt.left().unwrap_or(limit);
            if left.is_zero() {
                break Stop::Late;
            }
            let look = self.dialogue.as_ref().and_then(|it| it.check_every());
            let wake = watcher.tick().into_iter().chain(look).min();
            let pause = wake.map_or(left, |wake| left.min(wake));
            interrupt
                .wait(&self.body.news(), pause)
                .map_err(|source| TargetError::Output { source })?;
        };
        // Anew: an engine may not answer.
        interrupt.bound(Some(limit));
        let ended = self.end(stop, watcher);
        interrupt.bound(None);
        ended
    }

    /// Waits until it is ready, and discards what it writes.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if it ends before, if the limit of `interrupt` is over, or if the
    /// user asks to stop.
    pub fn wait_until_ready(&mut self, interrupt: &Interrupt) -> Result<(), TargetError> {
        loop {
            if let Some(why) = self.has_ended()? {
                return Err(TargetError::Failed(why));
            }
            if self.output.ready_ns() > 0 || matches!(self.launch.ready, Ready::Started) {
                return Ok(());
            }
            let left = interrupt.left().unwrap_or(LONGEST_LOOK);
            if left.is_zero() || interrupt.kill_requested() {
                let why = self.launch.unready(false).unwrap_or_default();
                return Err(TargetError::Failed(self.output.with_last(&why)));
            }
            let waited = interrupt.wait(&self.body.news(), left);
            waited.map_err(|source| TargetError::Output { source })?;
        }
    }

    /// Returns how it has ended, if it has, without waiting, and discards what it wrote.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if that is unknown.
    pub fn has_ended(&mut self) -> Result<Option<String>, TargetError> {
        // As in `watch`.
        let status = self.body.try_wait()?;
        self.drain(&mut |_: OutputEvent<'_>| {})?;
        let Some(status) = status else {
            return Ok(None);
        };
        let (output, reason) = (&mut self.output, self.body.reason());
        let judged = self
            .launch
            .judge(status, output, reason.as_deref(), now_ns());
        Ok(Some(
            judged.err().unwrap_or_else(|| describe_exit(status, "")),
        ))
    }

    /// Returns the size in bytes of the files from which it started; 0 if that is unknown.
    pub fn image_bytes(&self) -> u64 {
        let sizes = self.launch.image.iter().map(fs::metadata);
        sizes.flatten().map(|file| file.len()).sum()
    }

    /// Returns when it was ready, by CLOCK_MONOTONIC in ns; 0 if it is not.
    pub fn ready_ns(&self) -> u64 {
        self.output.ready_ns()
    }

    fn ask_to_end(&mut self) -> Finish {
        let asked = match &mut self.dialogue {
            Some(dialogue) => dialogue.ask_to_end(),
            None => self.body.terminate(),
        };
        match asked {
            Ok(()) => Finish::Early,
            Err(_) => Finish::ByItself,
        }
    }

    /// Ends it, if it has not ended by itself, and judges it.
    fn end(mut self, stop: Stop, watcher: &mut impl Watcher) -> Result<Ended, TargetError> {
        // Before what only the reading of the result takes.
        let mut exited_ns = now_ns();
        let mut doing = None;
        if let (Stop::Late, Some(dialogue), Some(child)) =
            (&stop, &mut self.dialogue, self.body.child())
        {
            doing = Some(dialogue.end(child));
        }
        if !matches!(stop, Stop::Exited(_)) {
            self.body.kill()?;
            exited_ns = now_ns();
            self.drain(watcher)?;
        }
        let now = now_ns();
        let (output, dialogue) = (&mut self.output, &mut self.dialogue);
        output.finish(|line, is_record| pass_on(dialogue, watcher, line, is_record, now));
        let how = match stop {
            Stop::Exited(status) => {
                let reason = match dialogue {
                    Some(dialogue) => dialogue.reason(),
                    None => self.body.reason(),
                };
                match self
                    .launch
                    .judge(status, output, reason.as_deref(), exited_ns)
                {
                    Ok(()) => Ending::Done,
                    Err(why) => Ending::Failed { why },
                }
            }
            Stop::Worthless(why) => Ending::Failed { why },
            Stop::Late => Ending::TimedOut {
                doing: doing.map(|doing| {
                    let unready = self.launch.unready(output.ready_ns() > 0);
                    let unready = unready.map_or_else(String::new, |why| format!(", and {why}"));
                    output.with_last(&format!("{doing}{unready}"))
                }),
            },
            Stop::Requested => Ending::Stopped,
        };
        Ok(Ended {
            ready_ns: self.output.ready_ns(),
            exited_ns,
            how,
            notices: self.launch.notices,
        })
    }

    fn drain(&mut self, watcher: &mut impl Watcher) -> Result<(), TargetError> {
        let (output, dialogue, ready) = (&mut self.output, &mut self.dialogue, &self.launch.ready);
        self.body.read(&mut |stream, bytes| {
            let at_ns = now_ns();
            output.take(stream, bytes, at_ns, ready, |line, is_record| {
                // What else comes by standard error is nobody's output.
                let is_output = is_record || stream == Stream::Output;
                match is_output {
                    true => pass_on(dialogue, watcher, line, is_record, at_ns),
                    false => pass_on(dialogue, &mut |_: OutputEvent<'_>| {}, line, false, at_ns),
                }
            });
        })
    }
}

fn pass_on(
    dialogue: &mut Option<Box<dyn Dialogue>>,
    watcher: &mut impl Watcher,
    line: &[u8],
    is_record: bool,
    at_ns: u64,
) {
    if let Some(dialogue) = dialogue.as_mut().filter(|_| !is_record) {
        dialogue.on_line(line);
    }
    watcher.on_event(OutputEvent::Line(line, at_ns));
}

/// Why watching stopped.
enum Stop {
    Exited(ExitStatus),
    /// Its figures are worth nothing.
    Worthless(String),
    Late,
    Requested,
}

/// A child with pipes.
#[derive(Debug)]
struct Piped {
    child: OwnedChild,
    output: Option<ChildStdout>,
    error: Option<ChildStderr>,
}

impl Piped {
    /// Takes over a child, and its standard output where that is a socket.
    fn new(mut child: OwnedChild, port: Option<UnixStream>) -> Result<Self, TargetError> {
        let unreadable = |source| TargetError::Output { source };
        let port = port.map(|port| ChildStdout::from(OwnedFd::from(port)));
        let output = port.or_else(|| child.take_stdout());
        let error = child.take_stderr();
        for fd in [
            output.as_ref().map(AsFd::as_fd),
            error.as_ref().map(AsFd::as_fd),
        ] {
            fd.map_or(Ok(()), set_nonblocking).map_err(unreadable)?;
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

/// Makes reads return what there is.
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

/// Describes how a process ended, with the last that it wrote to standard error.
pub(crate) fn describe_exit(status: ExitStatus, error: &str) -> String {
    let how = match (status.signal(), status.code()) {
        (Some(9), _) => {
            "it was killed (SIGKILL) by another process, or by the kernel because memory ran out (see dmesg)"
                .to_owned()
        }
        (Some(signal), _) => format!("it crashed or was ended by signal {signal}"),
        (None, Some(code)) => format!("it ended with status {code}"),
        (None, None) => "it ended in an unknown way".to_owned(),
    };
    let from = error.ceil_char_boundary(error.len().saturating_sub(SHOWN_ERROR));
    // GLib writes a failed assertion of QEMU's twice, the second time behind these words.
    let said = error[from..].lines().map(str::trim);
    let said = said.map(|line| line.trim_start_matches("Bail out! "));
    let mut lines: Vec<&str> = said.collect();
    lines.dedup();
    match &lines[..] {
        [] => how,
        lines => format!("{how}; it said: {}", lines.join(" / ")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::launch::exec;

    #[derive(Default)]
    struct Output {
        lines: Vec<String>,
        stop_after_first: Option<Interrupt>,
    }

    impl Watcher for Output {
        fn on_event(&mut self, event: OutputEvent<'_>) {
            let OutputEvent::Line(line, _) = event else {
                return;
            };
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
        let words = ["-c".to_owned(), script.to_owned()];
        let launch =
            Launch::of_program(
                "sh",
                move |_| Ok(exec(Path::new("/bin/sh"), &words)?.into()),
            );
        let instance = Instance::start(launch, &guard).unwrap();
        instance.watch(limit, interrupt, heard).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    fn nobody() -> Interrupt {
        Interrupt::detached().unwrap()
    }

    #[test]
    fn what_is_said_twice_is_told_once() {
        let failed = "**\nERROR:../tcg.c:1:run: assertion failed: (x)\nBail out! ERROR:../tcg.c:1:run: assertion failed: (x)\n";
        assert_eq!(
            describe_exit(ExitStatus::from_raw(6), failed),
            "it crashed or was ended by signal 6; it said: ** / ERROR:../tcg.c:1:run: assertion failed: (x)"
        );
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
        let mut nobody = |_: OutputEvent<'_>| {};
        let ended = watch("exec yes", limit, &mut nobody, &super::tests::nobody());
        assert_eq!(ended.how, Ending::TimedOut { doing: None });
    }
}
