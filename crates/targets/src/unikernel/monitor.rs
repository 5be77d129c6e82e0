//! Watches over a guest: what its end means, and what it was doing when it was ended.
//!
//! | status of QEMU | what it means |
//! |---|---|
//! | 33 | the image is done |
//! | 35 | the image failed; a record says why |
//! | 37 | the image can't read its command line |
//! | 39 | the image crashed; its console has a report (see [`super::crash`]) |
//! | 0 | QEMU ended for another reason, which its last event tells: reset, power-off, a signal |
//! | other, signal | QEMU itself failed; its standard error says why |

use std::collections::VecDeque;
use std::process::ExitStatus;

use tare_guard::OwnedChild;
use tare_wire::line::MARKER;

use super::crash::{PREFIX, Report};
use crate::instance::{Attendant, describe_exit};
use crate::measured::MeasuredFile;
use crate::qemu::{self, qmp::Qmp};

/// Is how many lines are kept that are neither records nor the image's own.
const KEPT_LINES: usize = 3;

/// Is how much of a line is kept, in characters.
const KEPT_LENGTH: usize = 200;

/// Watches over one guest.
#[derive(Debug)]
pub(super) struct Warden {
    qmp: Qmp,
    image: MeasuredFile,
    report: Report,
    /// The last lines on the console that are neither records nor the image's own.
    other: VecDeque<String>,
}

impl Warden {
    pub(super) fn new(qmp: Qmp, image: MeasuredFile) -> Self {
        Self {
            qmp,
            image,
            report: Report::default(),
            other: VecDeque::new(),
        }
    }

    /// Says why a QEMU that ended with status 0 did so.
    fn shutdown(&mut self) -> String {
        let reason = self
            .qmp
            .events()
            .iter()
            .rfind(|event| event.name == "SHUTDOWN")
            .and_then(|event| event.data["reason"].as_str());
        match reason {
            Some("guest-reset") => {
                "the guest reset itself instead of ending: a fault that it could not report, as a \
                 rule"
                    .to_owned()
            }
            Some("guest-shutdown") => {
                "the guest powered itself off without saying that it is done".to_owned()
            }
            Some("host-signal") => "QEMU was ended by a signal from somebody".to_owned(),
            Some(other) => format!("QEMU ended for the reason '{other}'"),
            None => "QEMU ended without a reason".to_owned(),
        }
    }

    /// Adds what the console said last, if there is something.
    fn with_last_words(&self, what: String) -> String {
        if self.other.is_empty() {
            return what;
        }
        let lines: Vec<&str> = self.other.iter().map(String::as_str).collect();
        format!("{what}; the last on its console: {}", lines.join(" / "))
    }
}

impl Attendant for Warden {
    fn line(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        if let Some((_, own)) = text.split_once(PREFIX) {
            self.report.take(own);
        } else if !text.contains(MARKER) {
            let printable = text.chars().filter(|c| !c.is_control());
            let printable: String = printable.take(KEPT_LENGTH).collect();
            if printable.trim().is_empty() {
                return;
            }
            if self.other.len() == KEPT_LINES {
                self.other.pop_front();
            }
            self.other.push_back(printable);
        }
    }

    fn judge(&mut self, status: ExitStatus, said: &str) -> Result<(), String> {
        match status.code() {
            Some(33) => Ok(()),
            Some(35) => Err(self.with_last_words("the image failed without saying why".to_owned())),
            Some(37) => Err(format!(
                "the image can't read its command line ({}): it is not of the same version as this \
                 tare; build both from one source (make build)",
                self.report.message()
            )),
            Some(39) => Err(self.report.explain(&self.image)),
            Some(0) => {
                let why = self.shutdown();
                Err(self.with_last_words(why))
            }
            _ => Err(format!("QEMU failed: {}", describe_exit(status, said))),
        }
    }

    fn end_early(&mut self, child: &mut OwnedChild) -> Option<String> {
        Some(qemu::end_early(&mut self.qmp, child))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::os::unix::process::ExitStatusExt;
    use std::time::Duration;

    use super::*;

    /// Makes a warden whose QEMU has sent some events and ended.
    fn warden(events: &str) -> Warden {
        let (stream, mut theirs) = UnixStream::pair().unwrap();
        write!(theirs, "{{\"QMP\": {{}}}}\n{{\"return\": {{}}}}\n{events}").unwrap();
        let qmp = Qmp::greet(stream, Duration::from_secs(10)).unwrap();
        Warden::new(qmp, MeasuredFile::image("bench"))
    }

    fn exited(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn each_end_has_one_clear_reason() {
        let shutdown = |reason| {
            format!("{{\"event\": \"SHUTDOWN\", \"data\": {{\"reason\": \"{reason}\"}}}}\n")
        };
        for (events, status, reason) in [
            (
                String::new(),
                exited(35),
                "the image failed without saying why",
            ),
            (
                String::new(),
                exited(37),
                "the image can't read its command line (it said nothing): it is not of the same \
                 version as this tare; build both from one source (make build)",
            ),
            (
                String::new(),
                exited(39),
                "the image crashed: it said nothing",
            ),
            (
                shutdown("guest-reset"),
                exited(0),
                "the guest reset itself instead of ending: a fault that it could not report, as a \
                 rule",
            ),
            (
                shutdown("guest-shutdown"),
                exited(0),
                "the guest powered itself off without saying that it is done",
            ),
            (
                shutdown("host-signal"),
                exited(0),
                "QEMU was ended by a signal from somebody",
            ),
            (
                shutdown("host-ui"),
                exited(0),
                "QEMU ended for the reason 'host-ui'",
            ),
            (String::new(), exited(0), "QEMU ended without a reason"),
            (
                String::new(),
                exited(1),
                "QEMU failed: it ended with status 1; it said: no memory",
            ),
            (
                String::new(),
                ExitStatus::from_raw(11),
                "QEMU failed: it crashed or was ended by signal 11; it said: no memory",
            ),
        ] {
            let judged = warden(&events).judge(status, "no memory");
            assert_eq!(judged, Err(reason.to_owned()));
        }
        assert_eq!(warden("").judge(exited(33), ""), Ok(()));
    }

    #[test]
    fn the_last_words_are_neither_records_nor_control_characters() {
        let mut warden = warden("");
        for line in [
            "one",
            "two",
            "tare2: 0 hello",
            "",
            "\x1b[2J",
            "three",
            "four\r",
        ] {
            warden.line(line.as_bytes());
        }
        assert_eq!(
            warden.judge(exited(0), "").unwrap_err(),
            "QEMU ended without a reason; the last on its console: [2J / three / four"
        );
    }

    #[test]
    fn a_qemu_that_does_not_answer_is_told() {
        let state = tempfile::tempdir().unwrap();
        let guard = tare_guard::Guard::open(state.path()).unwrap();
        let mut command = std::process::Command::new("sleep");
        let mut child = guard.spawn(command.arg("1000")).unwrap();
        let doing = warden("").end_early(&mut child).unwrap();
        assert_eq!(
            doing,
            "QEMU itself does not answer (it closed the connection instead of answering \
             query-status)"
        );
    }
}
