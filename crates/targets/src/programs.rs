//! The programs of this machine that targets execute.

use std::env;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use tare_guard::{Guard, GuardError, OwnedChild};

use crate::error::TargetError;
use crate::instance::set_nonblocking;

/// Finds a program by its path or its name, also where daemons are that an ordinary user's PATH
/// lacks.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let found = folders
        .map(|folder| folder.join(program))
        .filter(|path| path.is_file());
    // A package installs the program of that name; a file in /usr/local may be anything.
    found.min_by_key(|path| path.starts_with("/usr/local"))
}

/// Returns why the kernel can't execute a file, as far as that can be seen, and the remedy.
pub(crate) fn not_executable(path: &Path) -> Option<(String, String)> {
    let shown = path.display();
    if access(path, Access::EXEC_OK).is_err() {
        let why = format!("{shown} can't be executed: it lacks the permission");
        return Some((why, format!("chmod +x {shown}")));
    }
    let mut begin = [0; 256];
    let read = File::open(path).and_then(|mut file| file.read(&mut begin));
    // One that may be executed but not read is a program like any other.
    let begin = &begin[..read.ok()?];
    let Some(line) = begin.strip_prefix(b"#!") else {
        let is_text = !begin.starts_with(b"\x7fELF") && str::from_utf8(begin).is_ok();
        return is_text.then(|| {
            let why = format!("{shown} is a text without a first line that names its interpreter");
            (why, "begin it with #!/bin/sh, for example".to_owned())
        });
    };
    let line = line.split(|byte| *byte == b'\n').next()?;
    let interpreter = String::from_utf8_lossy(line);
    let interpreter = interpreter.split_whitespace().next().unwrap_or_default();
    (!Path::new(interpreter).is_file()).then(|| {
        let why = format!("{shown} wants the interpreter '{interpreter}', which is not there");
        (why, "install it, or correct the first line".to_owned())
    })
}

/// Finds a program that a package brings.
///
/// # Errors
///
/// Returns [`TargetError::Unusable`] with the command that installs it.
pub(crate) fn require(program: &str, package: &str) -> Result<PathBuf, TargetError> {
    find(program).ok_or_else(|| missing(program, package))
}

/// Makes the error of a program that is not here.
pub(crate) fn missing(program: &str, package: &str) -> TargetError {
    let why = format!("{program} is in no folder of PATH");
    TargetError::unusable(why, install(package))
}

/// Returns the command that installs a package.
pub(crate) fn install(package: &str) -> String {
    format!("apt-get update && apt-get install -y --no-install-recommends {package}")
}

/// Refuses to go on unless this process is root, with all that this brings except what a container
/// may lack.
///
/// # Errors
///
/// Returns [`TargetError::Unusable`] with this reason.
pub(crate) fn require_root(why: &str) -> Result<(), TargetError> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let remedy = "run tare as root, with sudo for example";
    Err(TargetError::unusable(why, remedy))
}

/// The outcome of a command.
#[derive(Debug)]
pub(crate) struct Output {
    /// How it ended; None if it took too long.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command that writes a few lines. One that takes too long is killed.
///
/// # Errors
///
/// Returns [`GuardError`] if it can't be started or waited for.
pub(crate) fn run(
    command: &mut Command,
    limit: Duration,
    guard: &Guard,
) -> Result<Output, GuardError> {
    let mut child = guard.spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    finish(&mut child, limit)
}

/// Waits for a child that writes a few lines. One that takes too long is killed.
///
/// # Errors
///
/// Returns [`GuardError`] if it can't be waited for.
pub(crate) fn finish(child: &mut OwnedChild, limit: Duration) -> Result<Output, GuardError> {
    let status = child.wait_with_deadline(Instant::now() + limit)?;
    if status.is_none() {
        child.kill_group()?;
    }
    Ok(Output {
        status,
        stdout: what_is_in(child.take_stdout()),
        stderr: what_is_in(child.take_stderr()),
    })
}

/// Reads what a process that has ended left in a pipe, without waiting for others that may hold it
/// open.
fn what_is_in(pipe: Option<impl Read + AsFd>) -> String {
    const MOST: u64 = 4_000;
    let mut bytes = Vec::new();
    let _ = pipe.as_ref().map(|pipe| set_nonblocking(pipe.as_fd()));
    // Output from before an error is still useful.
    let _ = pipe.map(|pipe| pipe.take(MOST).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).trim().to_owned()
}
