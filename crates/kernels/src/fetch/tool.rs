//! Running the distribution's tools: owned by the guard, with a limit, ended by Ctrl-C.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create, statvfs};
use tare_guard::{Guard, Interrupt};

use crate::error::{Doing, KernelError};

/// Interval at which progress is reported and Ctrl-C is looked for.
const TICK: Duration = Duration::from_millis(200);
/// How many of the last lines that a tool printed stand in an error.
const LAST_LINES: usize = 5;

/// The free space below which a file system counts as full: what apt writes at a time is larger.
const FULL_BYTES: u64 = 8 << 20;

/// Runs tools.
#[derive(Debug)]
pub(crate) struct Tool<'a> {
    guard: &'a Guard,
    /// None for what takes no longer than a moment.
    interrupt: Option<&'a Interrupt>,
    /// Where they write, for errors.
    folder: PathBuf,
}

impl<'a> Tool<'a> {
    pub(crate) fn new(guard: &'a Guard, interrupt: Option<&'a Interrupt>, folder: &Path) -> Self {
        Self {
            guard,
            interrupt,
            folder: folder.to_owned(),
        }
    }

    /// Runs a tool to its end and returns what it printed; `what` says what it does, for errors.
    /// Its output goes through files in memory: no pipe can fill, and a full disk does not
    /// swallow the message that it is full.
    pub(crate) fn run(
        &self,
        what: &str,
        command: &mut Command,
        limit: Duration,
    ) -> Result<String, KernelError> {
        self.run_watched(what, command, limit, &mut || {})
    }

    /// As [`run`](Self::run); calls `tick` all the while.
    pub(crate) fn run_watched(
        &self,
        what: &str,
        command: &mut Command,
        limit: Duration,
        tick: &mut dyn FnMut(),
    ) -> Result<String, KernelError> {
        let (mut out, mut err) = (in_memory()?, in_memory()?);
        let shared = |file: &File| file.try_clone().doing("make", Path::new(IN_MEMORY));
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
                let seconds = limit.as_secs();
                return Err(KernelError::Failed(format!(
                    "{what} was not done after {seconds} s; it was ended and nothing was kept"
                )));
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
        let lines = said.lines().filter(|line| !line.trim().is_empty());
        let lines: Vec<&str> = lines.collect();
        let mut said = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n  ");
        if said.is_empty() {
            said = status.to_string();
        }
        let state = statvfs(&self.folder).ok();
        if state.is_some_and(|state| state.f_bavail * state.f_frsize < FULL_BYTES) {
            let folder = self.folder.display();
            said += &format!("; no space is left in the file system of {folder}");
        }
        let what = what.to_owned();
        Err(KernelError::Tool { what, said })
    }
}

/// How a file that is nowhere but in memory is called in errors.
const IN_MEMORY: &str = "a file in memory";

fn in_memory() -> Result<File, KernelError> {
    let made = memfd_create("tool", MemfdFlags::CLOEXEC);
    made.map(File::from).doing("make", Path::new(IN_MEMORY))
}

/// Reads all that was written to a file in memory.
fn from_start(file: &mut File) -> Result<String, KernelError> {
    let mut bytes = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    read.doing("make", Path::new(IN_MEMORY))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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
    Err(KernelError::NoTool {
        program,
        why,
        remedy: remedy.to_owned(),
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
