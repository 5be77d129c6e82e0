//! The monitor of somebody else's guest: when it is ready, and whether its end is the one that counts
//! as success.

use std::process::ExitStatus;

use regex_lite::Regex;
use tare_guard::{OwnedChild, ScratchDir};

use super::settings::{Settings, Success};
use crate::instance::{Monitor, describe_exit};
use crate::options::Value;
use crate::qemu::console::{Console, why_ended};
use crate::qemu::{self, qmp, qmp::Qmp};
use crate::starter::Ended;

/// The monitor of one guest.
#[derive(Debug)]
pub(super) struct ForeignMonitor {
    qmp: Qmp,
    ready: Regex,
    is_ready: bool,
    success: Success,
    console: Console,
    /// Holds what the guest writes to its disk as long as it runs.
    _changes: Option<ScratchDir>,
}

impl ForeignMonitor {
    pub(super) fn new(qmp: Qmp, settings: &Settings, changes: Option<ScratchDir>) -> Self {
        Self {
            qmp,
            ready: settings.ready.clone(),
            is_ready: false,
            success: settings.success,
            console: Console::default(),
            _changes: changes,
        }
    }

    /// Say by what the guest ended, and whether that is success.
    fn ended(&mut self, status: ExitStatus, said: &str) -> (bool, String) {
        let reason = match status.code() {
            Some(0) => self.qmp.shutdown_reason(),
            _ => None,
        };
        ended(self.success, status, reason, said)
    }

    fn with_console(&self, what: &str) -> String {
        let silence = "; its serial console said nothing";
        self.console.added_to(what, silence)
    }

    fn never_ready(&self) -> String {
        format!("no line of its console matched ready={}", self.ready)
    }
}

impl Monitor for ForeignMonitor {
    fn line(&mut self, line: &[u8]) {
        self.console.keep(&String::from_utf8_lossy(line));
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
        let why = match self.ended(status, said) {
            (true, _) if self.is_ready => return Ok(()),
            (true, how) => format!("{how}, as wanted, but {}", self.never_ready()),
            (false, how) => format!("{how}, and success={} is wanted", self.success.text()),
        };
        Err(self.with_console(&why))
    }

    fn end_early(&mut self, child: &mut OwnedChild) -> Option<String> {
        let doing = qemu::end_early(&mut self.qmp, child);
        let readiness = match self.is_ready {
            true => "had been ready".to_owned(),
            false => self.never_ready(),
        };
        Some(self.with_console(&format!("{doing}, and {readiness}")))
    }
}

/// Judge a guest that was only heard.
pub(super) fn judge_one(success: Success, told: &Ended<'_>) -> Result<(), String> {
    let reason = qmp::shutdown_reason_in(told.aside);
    match ended(success, told.status, reason.as_deref(), told.error.trim()) {
        (true, _) => Ok(()),
        (false, how) => {
            let wanted = success.text();
            Err(told.with_console(&format!("{how}, and success={wanted} is wanted")))
        }
    }
}

/// Say by what a guest ended, and whether that is success.
fn ended(success: Success, status: ExitStatus, reason: Option<&str>, said: &str) -> (bool, String) {
    match status.code() {
        Some(0) => {
            let is_success = match success {
                Success::Status(_) => false,
                Success::Shutdown => reason == Some("guest-shutdown"),
                Success::Reset => reason == Some("guest-reset"),
            };
            let reset = "the guest reset itself, or faulted for the third time";
            let how = why_ended(reason, reset, "the guest powered itself off");
            (is_success, how)
        }
        Some(code) if success == Success::Status(code.unsigned_abs()) => {
            (true, format!("QEMU ended with status {code}"))
        }
        // What isa-debug-exit ends QEMU with is odd; QEMU itself fails with 1, and says why.
        Some(code) if code % 2 == 1 && said.is_empty() => {
            (false, format!("the guest ended QEMU with status {code}"))
        }
        _ => {
            let how = describe_exit(status, said);
            (false, format!("QEMU failed: {how}"))
        }
    }
}
