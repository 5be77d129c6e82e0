//! Watches over somebody else's guest: when it is ready, and whether its end is the one that counts
//! as success.

use std::collections::VecDeque;
use std::process::ExitStatus;

use regex_lite::Regex;
use tare_guard::{OwnedChild, ScratchDir};

use super::settings::{Settings, Success};
use crate::instance::{Attendant, describe_exit};
use crate::qemu::{self, qmp::Qmp};

/// Is how many lines of the console are kept.
const KEPT_LINES: usize = 4;

/// Is how much of a line is kept, in characters.
const KEPT_LENGTH: usize = 200;

/// Watches over one guest.
#[derive(Debug)]
pub(super) struct Warden {
    qmp: Qmp,
    ready: Regex,
    is_ready: bool,
    success: Success,
    /// The last lines on the console.
    console: VecDeque<String>,
    /// Holds what the guest writes to its disk as long as it runs.
    _changes: Option<ScratchDir>,
}

impl Warden {
    pub(super) fn new(qmp: Qmp, settings: &Settings, changes: Option<ScratchDir>) -> Self {
        Self {
            qmp,
            ready: settings.ready.clone(),
            is_ready: false,
            success: settings.success,
            console: VecDeque::new(),
            _changes: changes,
        }
    }

    /// Says by what the guest ended, and whether that is success.
    fn ended(&mut self, status: ExitStatus, said: &str) -> (bool, String) {
        match status.code() {
            Some(0) => match self.reason().as_deref() {
                Some("guest-shutdown") => (
                    self.success == Success::Shutdown,
                    "the guest powered itself off".to_owned(),
                ),
                Some("guest-reset") => (
                    self.success == Success::Reset,
                    "the guest reset itself, or faulted for the third time".to_owned(),
                ),
                Some("host-signal") => {
                    (false, "QEMU was ended by a signal from somebody".to_owned())
                }
                Some(other) => (false, format!("QEMU ended for the reason '{other}'")),
                None => (false, "QEMU ended without a reason".to_owned()),
            },
            Some(code) if self.success == Success::Status(code.unsigned_abs()) => {
                (true, format!("QEMU ended with status {code}"))
            }
            // What isa-debug-exit ends QEMU with is odd; QEMU itself fails with 1, and says why.
            Some(code) if code % 2 == 1 && said.is_empty() => {
                (false, format!("the guest ended QEMU with status {code}"))
            }
            _ => (
                false,
                format!("QEMU failed: {}", describe_exit(status, said)),
            ),
        }
    }

    fn reason(&mut self) -> Option<String> {
        let events = self.qmp.events();
        let last = events.iter().rfind(|event| event.name == "SHUTDOWN")?;
        Some(last.data["reason"].as_str()?.to_owned())
    }

    /// Adds what the console said last.
    fn with_last_words(&self, what: String) -> String {
        if self.console.is_empty() {
            return format!("{what}; its serial console said nothing");
        }
        let lines: Vec<&str> = self.console.iter().map(String::as_str).collect();
        format!("{what}; the last on its console: {}", lines.join(" / "))
    }

    fn never_ready(&self) -> String {
        format!("no line of its console matched ready={}", self.ready)
    }
}

impl Attendant for Warden {
    fn line(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let printable = text.chars().filter(|c| !c.is_control());
        let printable: String = printable.take(KEPT_LENGTH).collect();
        if printable.trim().is_empty() {
            return;
        }
        if self.console.len() == KEPT_LINES {
            self.console.pop_front();
        }
        self.console.push_back(printable);
    }

    fn becomes_ready(&mut self, line: &[u8]) -> bool {
        if self.is_ready {
            return false;
        }
        let text = String::from_utf8_lossy(line);
        self.is_ready = self.ready.is_match(text.trim_end_matches('\r'));
        self.is_ready
    }

    fn judge(&mut self, status: ExitStatus, said: &str) -> Result<(), String> {
        match self.ended(status, said) {
            (true, _) if self.is_ready => Ok(()),
            (true, how) => {
                Err(self.with_last_words(format!("{how}, as wanted, but {}", self.never_ready())))
            }
            (false, how) => Err(self.with_last_words(format!(
                "{how}, and success={} is wanted",
                self.success.text()
            ))),
        }
    }

    fn end_early(&mut self, child: &mut OwnedChild) -> Option<String> {
        let doing = qemu::end_early(&mut self.qmp, child);
        let doing = if self.is_ready {
            format!("{doing}, and had been ready")
        } else {
            format!("{doing}, and {}", self.never_ready())
        };
        Some(self.with_last_words(doing))
    }
}
