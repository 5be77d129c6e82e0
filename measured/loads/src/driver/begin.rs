//! The time when the first phase begins: from the driver's arguments, or from a line on standard
//! input.
//!
//! The measured code chooses the time of its first activation when it is ready, and announces it at
//! least 100 ms ahead by the line `origin NS`. All phases follow from it, so one message is enough.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::clock::now_ns;
use super::signals::Signals;
use crate::error::DriverError;

const WORD: &str = "origin";

/// The maximum length of the line.
const LONGEST: usize = 100;

/// Returns the line that announces the beginning of the first phase, CLOCK_MONOTONIC in ns.
pub fn origin_line(origin_ns: u64) -> String {
    format!("{WORD} {origin_ns}\n")
}

/// The beginning of the first phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Begin {
    /// When everything is ready.
    #[default]
    Now,
    /// At a given time, CLOCK_MONOTONIC in ns.
    At(u64),
    /// At the time of a line on standard input.
    Stdin,
}

impl Begin {
    /// Parses the value of the word.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "now" => Some(Self::Now),
            "stdin" => Some(Self::Stdin),
            ns => ns.parse().ok().map(Self::At),
        }
    }

    /// Returns the time, CLOCK_MONOTONIC in ns, once it is known.
    ///
    /// # Errors
    ///
    /// Returns [`DriverError`] if a signal ends the load first, or standard input is closed.
    pub(super) fn origin_ns(self, signals: &mut Signals) -> Result<u64, DriverError> {
        match self {
            Self::Now => Ok(now_ns()),
            Self::At(ns) => Ok(ns),
            Self::Stdin => read_origin(signals),
        }
    }
}

fn read_origin(signals: &mut Signals) -> Result<u64, DriverError> {
    let failed =
        |source: io::Error| DriverError::system("read when its first phase begins", source);
    let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let mut stdin = File::from(stdin);
    let mut said = Vec::new();
    while !signals.stop_asked() {
        let mut fds = [
            PollFd::new(&*signals, PollFlags::IN),
            PollFd::new(&stdin, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(failed(errno.into())),
        }
        let speaks = !fds[1].revents().is_empty();
        signals.note();
        if !speaks {
            continue;
        }
        let mut bytes = [0; 256];
        match stdin.read(&mut bytes) {
            Ok(0) => break,
            Ok(length) => said.extend(&bytes[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
        if let Some(end) = said.iter().position(|byte| *byte == b'\n') {
            said.truncate(end);
            return origin_of(&said).ok_or_else(|| misread(&said));
        }
        if said.len() > LONGEST {
            return Err(misread(&said));
        }
    }
    Err(DriverError(
        "the load never got the start time of its first phase: the measurement did not get that far"
            .to_owned(),
    ))
}

fn origin_of(line: &[u8]) -> Option<u64> {
    let (word, ns) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    (word == WORD).then(|| ns.parse().ok())?
}

fn misread(said: &[u8]) -> DriverError {
    let said = String::from_utf8_lossy(&said[..said.len().min(LONGEST)]);
    let said = said.escape_debug();
    DriverError(format!(
        "the load expected a line '{WORD} NS', and received '{said}'"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_read_as_it_is_written() {
        for ns in [0, 1_234, u64::MAX] {
            let line = origin_line(ns);
            assert_eq!(origin_of(line.trim_end().as_bytes()), Some(ns));
        }
        for wrong in ["", "origin", "origin ", "origin x", "begin 1", "origin 1 2"] {
            assert_eq!(origin_of(wrong.as_bytes()), None, "{wrong}");
        }
        assert!(misread(b"a\nb").to_string().contains("'a\\nb'"));
    }

    #[test]
    fn the_word_says_when() {
        assert_eq!(Begin::parse("now"), Some(Begin::Now));
        assert_eq!(Begin::parse("stdin"), Some(Begin::Stdin));
        assert_eq!(Begin::parse("17"), Some(Begin::At(17)));
        assert_eq!(Begin::parse("soon"), None);
    }
}
