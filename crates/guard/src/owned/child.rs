//! Children: processes that the guard starts, with all their descendants.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, kill_process_group, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal,
};

use crate::error::GuardError;
use crate::owned::guarded::{Guarded, Inner, lock};
use crate::owned::{Context, Live};
use crate::owner::OWNER_VARIABLE;
use crate::processes::{self, KILL_LIMIT, wait_for_exit, wait_for_killed};
use crate::record::{ChildRecord, Record};
use crate::report::Undone;

/// A running child. When it is dropped, its process group and all its descendants are killed, and
/// it is reaped.
///
/// It can be polled: the descriptor that [`AsFd`] gives becomes readable when the child has ended.
#[must_use = "the child is killed when this is dropped"]
#[derive(Debug)]
pub struct OwnedChild {
    live: Arc<LiveChild>,
    guarded: Guarded,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl OwnedChild {
    pub(crate) fn spawn(
        inner: &Arc<Inner>,
        command: &mut Command,
    ) -> Result<OwnedChild, GuardError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let record = ChildRecord {
            program: program.clone(),
        };
        let guarded = inner.announce(|_| Record::Child(record))?;
        let failed = |source| GuardError::Spawn {
            program: program.clone(),
            source,
        };
        command.env(
            OWNER_VARIABLE,
            format!("{}/{}", inner.owner, guarded.number()),
        );
        command.process_group(0);
        let parent = getpid();
        let tie_to_parent = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if getppid() != Some(parent) {
                // The parent died before it could be asked for that. No error is returned, since
                // there is nobody to read it.
                // SAFETY: the call ends this process, which shares nothing with any other.
                unsafe { libc::_exit(127) };
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes system calls and neither allocates, locks
        // nor touches memory that another thread of the parent may have been changing.
        unsafe { command.pre_exec(tie_to_parent) };
        let mut child = inner.start(command).map_err(failed)?;
        let pid = Pid::from_child(&child);
        // Not reaped yet, so the id cannot belong to another process.
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(errno) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(errno.into()));
            }
        };
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let state = Mutex::new(Reaping {
            child,
            status: None,
        });
        let live = Arc::new(LiveChild {
            pid,
            pidfd,
            program,
            state,
        });
        guarded.set_live(Arc::clone(&live) as Arc<dyn Live>);
        Ok(OwnedChild {
            live,
            guarded,
            stdin,
            stdout,
            stderr,
        })
    }

    /// Gives the process id, which is also the id of its process group.
    pub fn pid(&self) -> u32 {
        self.live.pid.as_raw_pid().unsigned_abs()
    }

    /// Takes the pipe to the child's standard input, if the command asked for one.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Takes the pipe from the child's standard output, if the command asked for one.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// Takes the pipe from the child's standard error, if the command asked for one.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.stderr.take()
    }

    /// Waits until the child has ended. The rest of its process group is then killed.
    ///
    /// Closes the pipe to its standard input first, if that was not taken, so that a child that
    /// reads to the end does not wait forever.
    ///
    /// # Errors
    ///
    /// [`GuardError::Io`] if the kernel cannot tell, for instance because somebody else reaped it.
    pub fn wait(&mut self) -> Result<ExitStatus, GuardError> {
        drop(self.stdin.take());
        self.live
            .wait(None)
            .map(|status| status.expect("there was no deadline"))
    }

    /// Gives the child's exit status if it has ended, else `None`.
    ///
    /// # Errors
    ///
    /// As [`wait`](OwnedChild::wait).
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, GuardError> {
        self.live.wait(Some(Instant::now()))
    }

    /// Waits until the child has ended, or until a moment has come, and then gives `None`; so it
    /// does when the user has asked to wait no longer ([`Patience`](crate::Patience)).
    ///
    /// # Errors
    ///
    /// As [`wait`](OwnedChild::wait).
    pub fn wait_with_deadline(
        &mut self,
        deadline: Instant,
    ) -> Result<Option<ExitStatus>, GuardError> {
        drop(self.stdin.take());
        self.live.wait(Some(deadline))
    }

    /// Asks the child alone to end (SIGTERM).
    ///
    /// # Errors
    ///
    /// [`GuardError::Io`] if it can't be signalled.
    pub fn terminate(&self) -> Result<(), GuardError> {
        match pidfd_send_signal(&self.live.pidfd, Signal::TERM) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(errno) => Err(self.live.failed("signal", errno.into())),
        }
    }

    /// Asks the process group to end (SIGTERM), and kills it if it has not ended after `grace`.
    ///
    /// # Errors
    ///
    /// As [`kill_group`](OwnedChild::kill_group).
    pub fn stop_group(&mut self, grace: Duration) -> Result<ExitStatus, GuardError> {
        self.live
            .signal_group(Signal::TERM)
            .map_err(|source| self.live.failed("signal", source))?;
        match self.live.wait(Some(Instant::now() + grace))? {
            Some(status) => Ok(status),
            None => self.kill_group(),
        }
    }

    /// Kills the process group (SIGKILL), and reaps the child.
    ///
    /// # Errors
    ///
    /// [`GuardError::ProcessesRemain`] if it has not ended after five seconds,
    /// [`GuardError::Io`] as [`wait`](OwnedChild::wait).
    pub fn kill_group(&mut self) -> Result<ExitStatus, GuardError> {
        self.live.kill()
    }

    /// Lets the child run until the guard is closed, and gives its process id.
    pub fn leave_to_guard(mut self) -> u32 {
        self.guarded.leave_to_guard();
        self.pid()
    }
}

impl AsFd for OwnedChild {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.live.pidfd.as_fd()
    }
}

impl ChildRecord {
    pub(crate) fn undo(
        &self,
        number: u64,
        context: Context<'_>,
        done: &mut Vec<Undone>,
    ) -> Result<(), GuardError> {
        processes::end_marked(context.owner, Some(number), done)
    }
}

/// A child that this process started and must reap.
struct LiveChild {
    pid: Pid,
    pidfd: OwnedFd,
    program: String,
    state: Mutex<Reaping>,
}

struct Reaping {
    child: Child,
    status: Option<ExitStatus>,
}

impl LiveChild {
    /// Waits for the end without holding the lock, so that the guard can kill it.
    fn wait(&self, deadline: Option<Instant>) -> Result<Option<ExitStatus>, GuardError> {
        self.reap(|pidfd| wait_for_exit(pidfd, deadline))
    }

    /// Reaps it if a way of waiting says that it has ended.
    fn reap(
        &self,
        has_ended: impl FnOnce(&OwnedFd) -> io::Result<bool>,
    ) -> Result<Option<ExitStatus>, GuardError> {
        let failed = |source| self.failed("wait for", source);
        if let Some(status) = lock(&self.state).status {
            return Ok(Some(status));
        }
        if !has_ended(&self.pidfd).map_err(failed)? {
            return Ok(None);
        }
        let mut state = lock(&self.state);
        if state.status.is_none() {
            // Before reaping: a zombie keeps the id of its group from being given to others.
            self.signal_unreaped(Signal::KILL).map_err(failed)?;
            state.status = Some(state.child.wait().map_err(failed)?);
        }
        Ok(state.status)
    }

    fn kill(&self) -> Result<ExitStatus, GuardError> {
        self.signal_group(Signal::KILL)
            .map_err(|source| self.failed("kill", source))?;
        let deadline = Some(Instant::now() + KILL_LIMIT);
        let ended = self.reap(|pidfd| wait_for_killed(pidfd, deadline))?;
        ended.ok_or_else(|| GuardError::ProcessesRemain {
            pids: vec![self.pid.as_raw_pid()],
        })
    }

    fn signal_group(&self, signal: Signal) -> io::Result<()> {
        let state = lock(&self.state);
        if state.status.is_some() {
            Ok(())
        } else {
            self.signal_unreaped(signal)
        }
    }

    /// Signals the group, and the child itself in case that it has joined another group.
    fn signal_unreaped(&self, signal: Signal) -> io::Result<()> {
        for outcome in [
            kill_process_group(self.pid, signal),
            pidfd_send_signal(&self.pidfd, signal),
        ] {
            match outcome {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn failed(&self, action: &str, source: io::Error) -> GuardError {
        let (program, pid) = (&self.program, self.pid.as_raw_pid());
        GuardError::io(format!("{action} {program} (process {pid})"), source, "")
    }
}

impl Live for LiveChild {
    fn end(&self, done: &mut Vec<Undone>) -> Result<(), GuardError> {
        if self.wait(Some(Instant::now()))?.is_none() {
            self.kill()?;
            let (pid, name) = (self.pid.as_raw_pid(), self.program.clone());
            done.push(Undone::ProcessKilled { pid, name });
        }
        Ok(())
    }
}

impl fmt::Debug for LiveChild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveChild")
            .field("pid", &self.pid)
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}
