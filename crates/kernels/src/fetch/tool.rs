//! Running the distribution's tools: owned by the guard, with a limit, ended by Ctrl-C.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create, statvfs};
use tare_guard::{Guard, Interrupt};

use crate::error::KernelError;

/// Is how often progress is told and Ctrl-C is looked for.
const TICK: Duration = Duration::from_millis(200);
/// How many of the last lines that a tool printed stand in an error.
const LAST_LINES: usize = 5;

/// Is the free space below which a file system counts as full: what apt writes at a time is larger.
const FULL_BYTES: u64 = 8 << 20;

/// Runs tools.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool<'a> {
    guard: &'a Guard,
    interrupt: Option<&'a Interrupt>,
}

impl<'a> Tool<'a> {
    pub(crate) fn new(guard: &'a Guard, interrupt: &'a Interrupt) -> Self {
        Self {
            guard,
            interrupt: Some(interrupt),
        }
    }

    /// Makes one for what takes no longer than a moment.
    pub(crate) fn uninterrupted(guard: &'a Guard) -> Self {
        Self {
            guard,
            interrupt: None,
        }
    }

    /// Runs a tool to its end and returns what it printed; `what` says what it does, and `folder` where it
    /// writes, for errors. What it prints goes through files in memory: no pipe can fill, and a full
    /// disk does not swallow the message that it is full.
    pub(crate) fn run(
        &self,
        what: &str,
        command: &mut Command,
        folder: &Path,
        limit: Duration,
    ) -> Result<String, KernelError> {
        self.run_watched(what, command, folder, limit, &mut || {})
    }

    /// As [`run`](Self::run); calls `tick` all the while.
    pub(crate) fn run_watched(
        &self,
        what: &str,
        command: &mut Command,
        folder: &Path,
        limit: Duration,
        tick: &mut dyn FnMut(),
    ) -> Result<String, KernelError> {
        let (mut out, mut err) = (in_memory()?, in_memory()?);
        let shared = |file: &File| file.try_clone().map_err(memory_error);
        command
            .stdin(Stdio::null())
            .stdout(shared(&out)?)
            .stderr(shared(&err)?)
            .env("LC_ALL", "C");
        let mut child = self.guard.spawn(command)?;
        let begun = Instant::now();
        let status = loop {
            // Dropping the child kills it with all that it started.
            if self.interrupt.is_some_and(Interrupt::finish_requested) {
                return Err(KernelError::Interrupted);
            }
            if begun.elapsed() > limit {
                let what = what.to_owned();
                return Err(KernelError::TooSlow { what, limit });
            }
            if let Some(status) = child.wait_with_deadline(Instant::now() + TICK)? {
                break status;
            }
            tick();
        };
        let (out, err) = (from_start(&mut out)?, from_start(&mut err)?);
        if status.success() {
            return Ok(out);
        }
        // Some tools tell their errors on standard output.
        let said = if err.trim().is_empty() { &out } else { &err };
        let lines: Vec<&str> = said
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let mut last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n  ");
        if last.is_empty() {
            last = status.to_string();
        }
        if free_bytes(folder).is_some_and(|free| free < FULL_BYTES) {
            last.push_str(&format!(
                "; no space is left in the file system of {}",
                folder.display()
            ));
        }
        let (what, said) = (what.to_owned(), last);
        Err(KernelError::Tool { what, said })
    }
}

/// Makes a file that is nowhere but in memory.
fn in_memory() -> Result<File, KernelError> {
    memfd_create("tool", MemfdFlags::CLOEXEC)
        .map(File::from)
        .map_err(|errno| memory_error(errno.into()))
}

fn memory_error(source: io::Error) -> KernelError {
    KernelError::io("make", Path::new("a file in memory"), source)
}

/// Reads all that was written to a file in memory.
fn from_start(file: &mut File) -> Result<String, KernelError> {
    let mut bytes = Vec::new();
    file.rewind()
        .and_then(|()| file.read_to_end(&mut bytes))
        .map_err(memory_error)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns how much can be written in a folder's file system.
fn free_bytes(folder: &Path) -> Option<u64> {
    let state = statvfs(folder).ok()?;
    Some(state.f_bavail * state.f_frsize)
}

/// Checks that a program is in a folder of PATH, or among the tools for root.
pub(crate) fn require(
    program: &'static str,
    why: &'static str,
    remedy: &str,
) -> Result<(), KernelError> {
    if env::split_paths(&path_for_root()).any(|folder| folder.join(program).is_file()) {
        return Ok(());
    }
    let remedy = remedy.to_owned();
    Err(KernelError::NoTool {
        program,
        why,
        remedy,
    })
}

/// Returns PATH with the folders of tools for root, which not every user's has.
pub(crate) fn path_for_root() -> OsString {
    let mut path = env::var_os("PATH").unwrap_or_default();
    if !path.is_empty() {
        path.push(":");
    }
    path.push("/usr/sbin:/sbin");
    path
}
