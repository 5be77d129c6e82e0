//! Finds processes by their mark and ends them.
//!
//! A descendant of a child may have left its process group and lost its parent; what it cannot
//! easily lose is its environment, in which [`OWNER_VARIABLE`] names the guard. A process id alone
//! proves nothing, since it may be given to another process between looking and killing. So each
//! process is first held by a pidfd and looked at afterwards: if it died in between, the signal
//! goes nowhere.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::error::GuardError;
use crate::owner::{OWNER_VARIABLE, OwnerId};
use crate::report::Undone;
use crate::signals::Patience;

/// How long to wait for killed processes to be gone. One that sleeps in a driver cannot end at
/// once; five seconds are more than a disk takes to give up on a request.
pub(crate) const KILL_LIMIT: Duration = Duration::from_secs(5);

/// How long to go on killing when new processes keep coming.
const STORM_LIMIT: Duration = Duration::from_secs(60);

/// How many processes are held at once; each takes a descriptor, of which there may be 1024.
const BATCH: usize = 256;

/// Kills every process that carries the mark of an owner, or of one of its children, until a look
/// at all processes finds none.
///
/// Each process that ended is added to `done`.
///
/// # Errors
///
/// [`GuardError::ProcessesRemain`] if some cannot be killed within [`KILL_LIMIT`] or new ones come
/// for longer than [`STORM_LIMIT`], [`GuardError::Io`] if `/proc` cannot be read.
pub(crate) fn end_marked(
    owner: &OwnerId,
    child: Option<u64>,
    done: &mut Vec<Undone>,
) -> Result<(), GuardError> {
    // A process that is just executing a program has no environment for a moment. A few that never
    // have one may exist, so this is not waited for without limit.
    const LOOKS_AT_STARTING: u32 = 5;
    let mark = Mark { owner, child };
    let begun = Instant::now();
    let mut looks = 0;
    loop {
        let found = find(&mark)?;
        if found.marked.is_empty() {
            looks += 1;
            if found.starting == 0 || looks == LOOKS_AT_STARTING {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(1));
            continue;
        }
        let pids = found.marked.iter();
        let pids = pids.map(|process| process.pid.as_raw_pid()).collect();
        let remaining = kill(found.marked, done);
        if !remaining.is_empty() && begun.elapsed() > KILL_LIMIT {
            return Err(GuardError::ProcessesRemain { pids: remaining });
        }
        if begun.elapsed() > STORM_LIMIT {
            return Err(GuardError::ProcessesRemain { pids });
        }
    }
}

/// Kills processes of which `is_ours` still says so once they cannot become others, and waits a
/// little for their end. Each that ended is added to `done`.
pub(crate) fn kill_all(pids: &[u32], is_ours: impl Fn(u32) -> bool, done: &mut Vec<Undone>) {
    for batch in pids.chunks(BATCH) {
        let held = batch.iter().filter_map(|number| {
            let pid = i32::try_from(*number).ok().and_then(Pid::from_raw)?;
            let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            let name = name_of(*number);
            is_ours(*number).then_some(Marked { pid, pidfd, name })
        });
        kill(held.collect(), done);
    }
}

/// Returns whether a process with this id runs, be it ours or not. A zombie does not run.
pub(crate) fn is_running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|line| Stat::parse(&line))
        .is_some_and(|stat| !stat.is_dead())
}

/// Waits until the process behind a pidfd has ended, or a moment has come, or a [`Patience`] would
/// end; says whether it has.
///
/// With no deadline it waits without limit.
pub(crate) fn wait_for_exit(pidfd: &OwnedFd, deadline: Option<Instant>) -> io::Result<bool> {
    if let Some(deadline) = deadline
        && !Patience::until(deadline).wait(&[pidfd.as_fd()])?
    {
        // It may have ended long before.
        return wait_for_killed(pidfd, Some(Instant::now()));
    }
    wait_for_killed(pidfd, None)
}

/// Waits like [`wait_for_exit`], but for one that was killed: it ends in a moment, so no request of
/// the user cuts that.
pub(crate) fn wait_for_killed(pidfd: &OwnedFd, deadline: Option<Instant>) -> io::Result<bool> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut descriptors = [PollFd::new(pidfd, PollFlags::IN)];
        match rustix::event::poll(&mut descriptors, left.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

struct Mark<'a> {
    owner: &'a OwnerId,
    child: Option<u64>,
}

impl Mark<'_> {
    fn is_in(&self, environment: &[u8]) -> bool {
        environment
            .split(|byte| *byte == 0)
            .filter_map(|entry| {
                entry
                    .strip_prefix(OWNER_VARIABLE.as_bytes())?
                    .strip_prefix(b"=")
            })
            .filter_map(|value| str::from_utf8(value).ok()?.split_once('/'))
            .any(|(owner, child)| {
                owner == self.owner.as_str()
                    && self.child.is_none_or(|wanted| child == wanted.to_string())
            })
    }
}

struct Marked {
    pid: Pid,
    pidfd: OwnedFd,
    name: String,
}

struct Found {
    marked: Vec<Marked>,
    starting: usize,
}

fn find(mark: &Mark<'_>) -> Result<Found, GuardError> {
    let failed = |source| GuardError::host("the list of processes", source);
    let myself = std::process::id();
    let mut found = Found {
        marked: Vec::new(),
        starting: 0,
    };
    for entry in fs::read_dir("/proc").map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let number = name.to_str().and_then(|name| name.parse::<u32>().ok());
        let Some(number) = number.filter(|number| *number != myself) else {
            continue;
        };
        if found.marked.len() == BATCH {
            break;
        }
        match look(number, mark) {
            Look::Other => {}
            Look::Starting => found.starting += 1,
            Look::Marked => {
                let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
                let Some(pid) = pid else { continue };
                match pidfd_open(pid, PidfdFlags::empty()) {
                    // Looked at again, because only now it cannot become another process.
                    Ok(pidfd) if matches!(look(number, mark), Look::Marked) => {
                        let name = name_of(number);
                        found.marked.push(Marked { pid, pidfd, name });
                    }
                    Ok(_) | Err(Errno::SRCH) => {}
                    Err(errno) => return Err(failed(errno.into())),
                }
            }
        }
    }
    Ok(found)
}

fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    name.unwrap_or_default().trim().to_owned()
}

enum Look {
    Marked,
    Other,
    Starting,
}

/// Looks at the environment of one process.
fn look(pid: u32, mark: &Mark<'_>) -> Look {
    let environment = fs::read(format!("/proc/{pid}/environ"));
    match &environment {
        Ok(environment) if mark.is_in(environment) => return Look::Marked,
        Ok(environment) if !environment.is_empty() => return Look::Other,
        _ => {}
    }
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    match stat.and_then(|line| Stat::parse(&line)) {
        None => Look::Other,
        Some(stat) if stat.is_kernel_thread() => Look::Other,
        // Its first thread has ended and with it this file, but others go on and have the same.
        Some(stat) if stat.is_dead() && stat.threads > 1 && mark_in_threads(pid, mark) => {
            Look::Marked
        }
        Some(stat) if stat.is_dead() => Look::Other,
        // An environment that may not be read is somebody else's. An empty one may be not there
        // yet.
        Some(_) if environment.is_err() => Look::Other,
        Some(_) => Look::Starting,
    }
}

fn mark_in_threads(pid: u32, mark: &Mark<'_>) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads
        .flatten()
        .filter_map(|thread| fs::read(thread.path().join("environ")).ok())
        .any(|environment| mark.is_in(&environment))
}

/// Kills processes and waits a little; returns the ids of those that have not ended.
fn kill(marked: Vec<Marked>, done: &mut Vec<Undone>) -> Vec<i32> {
    for process in &marked {
        // An error means that it has ended, or that it is not ours to kill: then it remains.
        let _ = pidfd_send_signal(&process.pidfd, Signal::KILL);
    }
    let deadline = Instant::now() + Duration::from_secs(1);
    let mut remaining = Vec::new();
    for process in marked {
        let pid = process.pid.as_raw_pid();
        match wait_for_killed(&process.pidfd, Some(deadline)) {
            Ok(true) => done.push(Undone::ProcessKilled {
                pid,
                name: process.name,
            }),
            _ => remaining.push(pid),
        }
    }
    remaining
}

/// The fields of `/proc/PID/stat` that are needed.
struct Stat {
    state: char,
    flags: u64,
    threads: u64,
}

impl Stat {
    fn parse(line: &str) -> Option<Stat> {
        // The program's name stands in parentheses and may itself contain some, and spaces.
        let (_, fields) = line.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // proc(5) counts from 1 and has two fields before these: state is 3, flags 9, threads 20.
        Some(Stat {
            state: fields.first()?.chars().next()?,
            flags: fields.get(6)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
        })
    }

    fn is_kernel_thread(&self) -> bool {
        const PF_KTHREAD: u64 = 0x0020_0000;
        self.flags & PF_KTHREAD != 0
    }

    fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_owner_and_child_match() {
        let owner = OwnerId::parse("3f2a91bc-4242-9f31c4d2e0aa17b3").unwrap();
        let any = Mark {
            owner: &owner,
            child: None,
        };
        let third = Mark {
            owner: &owner,
            child: Some(3),
        };
        let environment = b"A=1\0TARE_OWNER=3f2a91bc-4242-9f31c4d2e0aa17b3/3\0B=2\0";
        assert!(any.is_in(environment) && third.is_in(environment));
        let sibling = b"TARE_OWNER=3f2a91bc-4242-9f31c4d2e0aa17b3/33\0";
        assert!(any.is_in(sibling) && !third.is_in(sibling));
        for other in [
            &b""[..],
            b"TARE_OWNER=3f2a91bc-4242-9f31c4d2e0aa17b3",
            b"TARE_OWNER=3f2a91bc-4242-9f31c4d2e0aa17b33/3",
            b"TARE_OWNER=x3f2a91bc-4242-9f31c4d2e0aa17b3/3",
            b"OLD_TARE_OWNER=3f2a91bc-4242-9f31c4d2e0aa17b3/3",
            b"X=TARE_OWNER=3f2a91bc-4242-9f31c4d2e0aa17b3/3",
            b"TARE_OWNER=/3\0TARE_OWNER=\xff/3",
        ] {
            assert!(!any.is_in(other), "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn stat_is_read_past_a_name_with_parentheses() {
        let line = "7 (a) b (c) S 1 7 7 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 3 0 5 0 0";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.state, stat.threads), ('S', 3));
        assert!(stat.is_kernel_thread() && !stat.is_dead());
        assert!(Stat::parse("").is_none() && Stat::parse("1 (x) R 1").is_none());
    }

    #[test]
    fn this_process_runs_and_a_zombie_does_not() {
        assert!(is_running(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        assert!(wait_for_exit(&pidfd, None).unwrap());
        assert!(!is_running(child.id()));
        child.wait().unwrap();
    }
}
