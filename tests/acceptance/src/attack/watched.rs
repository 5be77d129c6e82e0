//! A watched command: its limits of time and memory, its exit code, its output.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Wrong;
use crate::Result;

/// The memory limit of a command, in KiB.
const MOST_KIB: u64 = 256 * 1024;

/// A hostile text whose second line looks like another message.
pub const FORGED_LINE: &str = "x\nerror: forged";

/// A running command; it is killed if it is dropped before its end.
pub struct Watched {
    child: Child,
    said: PathBuf,
    since: Instant,
    words: String,
}

impl Watched {
    /// Starts a command with its output in `place`.
    pub fn start(command: &mut Command, place: &Path) -> Result<Self> {
        let said = place.join("said");
        let to = File::create(&said)?;
        let words: Vec<_> = command
            .get_args()
            .map(|word| word.to_string_lossy())
            .collect();
        let words = words.join(" ");
        command
            .stdin(Stdio::null())
            .stdout(to.try_clone()?)
            .stderr(to);
        Ok(Self {
            child: command.spawn()?,
            said,
            since: Instant::now(),
            words,
        })
    }

    /// Returns the process id.
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Returns whether it is still running.
    pub fn runs(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Returns the agents that it started: one of its threads forks all children.
    pub fn agents(&self) -> Vec<i32> {
        let children = |thread| {
            let path = format!("/proc/{}/task/{thread}/children", self.pid());
            fs::read_to_string(path).unwrap_or_default()
        };
        let is_agent = |pid: &i32| {
            fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.trim() == "tare-agent")
        };
        threads(self.pid())
            .flat_map(|thread| {
                let pids = children(thread);
                let pids = pids.split_whitespace().filter_map(|pid| pid.parse().ok());
                pids.collect::<Vec<i32>>()
            })
            .filter(is_agent)
            .collect()
    }

    /// Sends a signal; the process may have ended.
    pub fn signal(&self, signal: rustix::process::Signal) {
        send(self.pid(), signal);
    }

    /// Waits for the end, at most `limit` from its start, and returns its faults. `codes` are the
    /// permitted exit codes.
    pub fn end(mut self, limit: Duration, codes: &[i32]) -> Result<Wrong> {
        let mut wrong = Wrong::new();
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            let memory = peak_kib(self.pid());
            let hangs = self.since.elapsed() > limit;
            if hangs || memory > MOST_KIB {
                wrong.push(match hangs {
                    true => format!("'{}' runs for more than {limit:?}", self.words),
                    false => format!("'{}' takes {memory} KiB of memory", self.words),
                });
                self.child.kill()?;
                self.child.wait()?;
                return Ok(wrong);
            }
            thread::sleep(Duration::from_millis(2));
        };
        wrong.extend(self.said_wrong()?);
        if !status.code().is_some_and(|code| codes.contains(&code)) {
            wrong.push(self.ended_wrong(status)?);
        }
        Ok(wrong)
    }

    fn ended_wrong(&self, status: ExitStatus) -> io::Result<String> {
        let said = String::from_utf8_lossy(&fs::read(&self.said)?).into_owned();
        let last: Vec<&str> = said.lines().rev().take(3).collect();
        Ok(format!("'{}' ends with {status}: {last:?}", self.words))
    }

    /// Returns forbidden parts of its output.
    fn said_wrong(&self) -> Result<Wrong> {
        let said = fs::read(&self.said)?;
        let text = String::from_utf8_lossy(&said);
        let mut wrong = Wrong::new();
        if let Some(line) = text.lines().find(|line| line.contains("panicked at")) {
            wrong.push(format!("'{}' panics: {line}", self.words));
        }
        if text.lines().any(|line| line.starts_with("error: forged")) {
            wrong.push(format!("'{}' writes a forged line", self.words));
        }
        if let Some(line) = text.lines().find(|line| line.chars().any(controls)) {
            wrong.push(format!(
                "'{}' lets this reach the terminal: {line:?}",
                self.words
            ));
        }
        Ok(wrong)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns whether a character controls a terminal, or changes the order of others.
fn controls(character: char) -> bool {
    (character.is_control() && character != '\t')
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the peak resident memory of a process in KiB; 0 if it has ended.
fn peak_kib(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Sends a signal to a process that may have ended.
pub fn send(pid: i32, signal: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Returns the threads of a process.
pub fn threads(pid: i32) -> impl Iterator<Item = i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok())
}
