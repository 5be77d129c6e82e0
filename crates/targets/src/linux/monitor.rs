//! The monitor of a Linux guest: ends it when its init says that it is done, and finds out what
//! happened when it does not.
//!
//! | what was seen | what it means |
//! |---|---|
//! | init's last line, on the port or the console | the plan's process ended, with this status; or why it could not run |
//! | `Kernel panic` on the console | the kernel says why it can't go on |
//! | neither, and QEMU ended with status 0 | the reason of its last event: a reset, a power-off, a signal |
//! | neither, and another status | QEMU itself failed; its standard error says why |

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;
use std::time::Duration;

use tare_guard::{OwnedChild, ScratchDir};
use tare_wire::guest::Message;
use tare_wire::line::Stream;

use crate::error::TargetError;
use crate::instance::{Body, Monitor, describe_exit};
use crate::qemu::console::{Console, why_ended};
use crate::qemu::{self, qmp::Qmp};
use crate::starter::Ended;

/// How long QEMU may take to accept that it is to end.
const QUIT_LIMIT: Duration = Duration::from_secs(1);

/// The monitor of one guest.
#[derive(Debug)]
pub(super) struct LinuxMonitor {
    qmp: Qmp,
    /// What is written here, the guest's init reads.
    port: Option<UnixStream>,
    /// What init said last of all.
    said: Option<Said>,
    /// Why the kernel panicked, in its words.
    panic: Option<String>,
    /// Whether the kernel killed somebody for want of memory.
    is_out_of_memory: bool,
    /// What is neither records nor init's.
    console: Console,
    /// Holds the guest's files as long as it runs.
    _files: Option<ScratchDir>,
}

#[derive(Debug)]
enum Said {
    Ended(u8),
    Failed(String),
}

impl LinuxMonitor {
    pub(super) fn new(qmp: Qmp, port: Option<UnixStream>, files: Option<ScratchDir>) -> Self {
        Self {
            qmp,
            port,
            said: None,
            panic: None,
            is_out_of_memory: false,
            console: Console::default(),
            _files: files,
        }
    }

    /// Take what init says. Its last line ends the guest.
    fn listen(&mut self, text: &str) -> bool {
        let Some(says) = Message::parse(text) else {
            return false;
        };
        self.said.get_or_insert(match says {
            Message::Ended(status) => Said::Ended(status),
            Message::Failed(why) => Said::Failed(why.to_owned()),
        });
        // If QEMU does not listen, the guest powers itself off after a while.
        let _ = self.qmp.ask("quit", QUIT_LIMIT);
        true
    }

    fn keep(&mut self, text: &str) {
        const PANIC: &str = "Kernel panic - not syncing: ";
        if let Some((_, why)) = text.split_once(PANIC) {
            self.panic.get_or_insert_with(|| why.trim().to_owned());
        }
        self.is_out_of_memory |= text.contains("Out of memory") || text.contains("oom-kill:");
        self.console.keep(text);
    }

    /// Say what the kernel's panic means.
    fn panicked(&self, why: &str) -> String {
        let remedy = if self.is_out_of_memory || why.contains("memory") {
            ": it has too little memory; give it more with mem="
        } else if why.contains("Unable to mount root fs") || why.contains("No working init") {
            ": it did not take the initramfs. Was it built with BLK_DEV_INITRD, and has the guest \
             memory enough (mem=)?"
        } else if why.contains("Attempted to kill init") {
            ": the agent, its first process, was ended, as a rule for want of memory (mem=)"
        } else {
            ""
        };
        format!("the guest's kernel panicked ({why}){remedy}")
    }

    fn with_console(&self, what: &str) -> String {
        self.console.added_to(what, "; its console said nothing")
    }
}

impl Monitor for LinuxMonitor {
    fn line(&mut self, line: &[u8]) {
        self.listen(&String::from_utf8_lossy(line));
    }

    fn error_line(&mut self, line: &[u8]) -> bool {
        let text = String::from_utf8_lossy(line);
        // Without a port everything comes here.
        let is_record = [Stream::Measured, Stream::Load]
            .iter()
            .any(|stream| text.contains(stream.marker()));
        if !is_record && !self.listen(&text) {
            self.keep(&text);
        }
        is_record
    }

    fn judge(&mut self, status: ExitStatus, said: &str) -> Result<(), String> {
        Err(match (&self.said, &self.panic) {
            (Some(Said::Ended(0)), _) => return Ok(()),
            (Some(Said::Ended(2)), _) => self.with_console(
                "the agent can't read its plan: it is not of the same version as this tare; build \
                 both from one source (make build)",
            ),
            (Some(Said::Ended(status)), _) => {
                format!("the agent ended with status {status} without saying why")
            }
            (Some(Said::Failed(why)), _) => why.clone(),
            (None, Some(why)) => self.panicked(why),
            (None, None) if status.success() => {
                let reset = "the guest reset itself before it had said why: as a rule it has too \
                             little memory even to start (mem=)";
                let off = "the guest powered itself off without saying that it is done";
                let why = why_ended(self.qmp.shutdown_reason(), reset, off);
                self.with_console(&why)
            }
            (None, None) => format!("QEMU failed: {}", describe_exit(status, said)),
        })
    }

    fn cut_short(&mut self, _body: &mut dyn Body) -> Result<(), TargetError> {
        let no_port = || std::io::Error::other("its kernel has no driver for virtio ports");
        let asked = self.port.as_mut().ok_or_else(no_port);
        asked
            .and_then(|port| port.write_all(b"\n"))
            .map_err(|source| TargetError::Output { source })
    }

    fn end_early(&mut self, child: &mut OwnedChild) -> Option<String> {
        let mut doing = qemu::end_early(&mut self.qmp, child);
        if let Some(why) = &self.panic {
            doing = format!("{doing}; {}", self.panicked(why));
        }
        Some(self.with_console(&doing))
    }
}

/// Judge a guest that was only heard: its init says how it ended.
pub(super) fn judge_one(ended: &Ended<'_>) -> Result<(), String> {
    let said = ended.output.lines().rev().find_map(Message::parse);
    match (said, ended.status.success()) {
        (Some(Message::Ended(0)), true) => Ok(()),
        (Some(Message::Ended(status)), _) => {
            Err(ended.with_console(&format!("the agent ended with status {status}")))
        }
        (Some(Message::Failed(why)), _) => Err(why.to_owned()),
        (None, true) => {
            Err(ended.with_console("the guest reset itself without saying that it is done"))
        }
        (None, false) => Err(format!("QEMU failed: {}", ended.described())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// Make a monitor whose QEMU has sent some events and ended.
    fn monitor(reason: &str) -> LinuxMonitor {
        let (stream, mut theirs) = UnixStream::pair().unwrap();
        let event = match reason {
            "" => String::new(),
            reason => {
                format!("{{\"event\": \"SHUTDOWN\", \"data\": {{\"reason\": \"{reason}\"}}}}\n")
            }
        };
        write!(theirs, "{{\"QMP\": {{}}}}\n{{\"return\": {{}}}}\n{event}").unwrap();
        let qmp = Qmp::greet(stream, Duration::from_secs(10)).unwrap();
        LinuxMonitor::new(qmp, None, None)
    }

    fn exited(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn each_end_has_one_clear_reason() {
        const OOM: &str = "[  3.1] Out of memory: Killed process 68 (init)";
        for (port, console, reason, status, message) in [
            (
                "tare-init: ended 1",
                &[][..],
                "host-qmp-quit",
                exited(0),
                "the agent ended with status 1 without saying why",
            ),
            (
                "tare-init: failed no such disk",
                &["[    1.0] chatter"],
                "host-qmp-quit",
                exited(0),
                "no such disk",
            ),
            (
                "",
                &[
                    "[  1.2] Kernel panic - not syncing: Fatal exception\r",
                    "CPU: 0 PID: 1",
                ],
                "guest-reset",
                exited(0),
                "the guest's kernel panicked (Fatal exception)",
            ),
            (
                "",
                &[
                    OOM,
                    "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000009",
                ],
                "guest-reset",
                exited(0),
                "the guest's kernel panicked (Attempted to kill init! exitcode=0x00000009): it has \
                 too little memory; give it more with mem=",
            ),
            (
                "",
                &[],
                "guest-shutdown",
                exited(0),
                "the guest powered itself off without saying that it is done; its console said \
                 nothing",
            ),
            (
                "",
                &["\x1b[2J", "a", "b", "c", "d", "e"],
                "host-signal",
                exited(0),
                "QEMU was ended by a signal from somebody; the last on its console: b / c / d / e",
            ),
            (
                "",
                &[],
                "",
                exited(1),
                "QEMU failed: it ended with status 1; it said: no memory",
            ),
        ] {
            let mut monitor = monitor(reason);
            monitor.line(port.as_bytes());
            for line in console {
                assert!(!monitor.error_line(line.as_bytes()));
            }
            assert_eq!(monitor.judge(status, "no memory"), Err(message.to_owned()));
        }
    }

    #[test]
    fn records_on_the_console_are_passed_on() {
        let mut monitor = monitor("");
        assert!(monitor.error_line(b"[    1.0] tare2: 0 hello"));
        assert!(monitor.error_line(b"tare2-load: 0 hello"));
        assert!(!monitor.error_line(b"tare-init: ended 0\r"));
        assert_eq!(monitor.judge(exited(0), ""), Ok(()));
        assert_eq!(monitor.with_console(""), "; its console said nothing");
    }
}
