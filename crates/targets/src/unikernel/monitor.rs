//! The monitor of a guest: what its end means, and what it was doing when it was ended.
//!
//! | status of QEMU | what it means |
//! |---|---|
//! | 33 | the image is done |
//! | 35 | the image failed; a record says why |
//! | 37 | the image can't read its command line |
//! | 39 | the image crashed; its console has a report (see [`super::crash`]) |
//! | 0 | QEMU ended for another reason, which its last event tells: reset, power-off, a signal |
//! | other, signal | QEMU itself failed; its standard error says why |

use std::process::ExitStatus;
use std::time::Duration;

use tare_guard::OwnedChild;
use tare_wire::line::MARKER;

use super::crash::{PREFIX, Report};
use crate::error::TargetError;
use crate::instance::{Body, Monitor, describe_exit};
use crate::measured::MeasuredFile;
use crate::qemu::console::{Console, why_ended};
use crate::qemu::{self, qmp::Qmp};
use crate::starter::Ended;

/// How long QEMU may take to interrupt its guest.
const ASK_LIMIT: Duration = Duration::from_secs(1);

/// The monitor of one guest.
#[derive(Debug)]
pub(super) struct UnikernelMonitor {
    qmp: Qmp,
    image: MeasuredFile,
    report: Report,
    /// What is neither records nor the image's own.
    other: Console,
}

impl UnikernelMonitor {
    pub(super) fn new(qmp: Qmp, image: MeasuredFile) -> Self {
        Self {
            qmp,
            image,
            report: Report::default(),
            other: Console::default(),
        }
    }
}

impl Monitor for UnikernelMonitor {
    fn line(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        if let Some((_, own)) = text.split_once(PREFIX) {
            self.report.take(own);
        } else if !text.contains(MARKER) {
            self.other.keep(&text);
        }
    }

    fn judge(&mut self, status: ExitStatus, said: &str) -> Result<(), String> {
        Err(match status.code() {
            Some(33) => return Ok(()),
            Some(35) => self
                .other
                .added_to("the image failed without saying why", ""),
            Some(37) => format!(
                "the image can't read its command line ({}): it is not of the same version as this \
                 tare; build both from one source (make build)",
                self.report.message()
            ),
            Some(39) => self.report.explain(&self.image),
            Some(0) => {
                let reset = "the guest reset itself instead of ending: a fault that it could not \
                             report, as a rule";
                let off = "the guest powered itself off without saying that it is done";
                let why = why_ended(self.qmp.shutdown_reason(), reset, off);
                self.other.added_to(&why, "")
            }
            _ => format!("QEMU failed: {}", describe_exit(status, said)),
        })
    }

    fn cut_short(&mut self, _body: &mut dyn Body) -> Result<(), TargetError> {
        let asked = self.qmp.ask("inject-nmi", ASK_LIMIT);
        asked
            .map(drop)
            .map_err(|error| TargetError::Failed(error.to_string()))
    }

    fn end_early(&mut self, child: &mut OwnedChild) -> Option<String> {
        Some(qemu::end_early(&mut self.qmp, child))
    }
}

/// Judge a guest that was only heard, as its monitor would.
pub(super) fn judge_one(image: &MeasuredFile, ended: &Ended<'_>) -> Result<(), String> {
    if ended.status.code() == Some(33) {
        return Ok(());
    }
    let mut report = Report::default();
    for line in ended.output.lines() {
        if let Some((_, own)) = line.split_once(PREFIX) {
            report.take(own);
        }
    }
    Err(match ended.status.code() {
        Some(35) => ended.with_console("the image failed"),
        Some(37) => format!(
            "the image can't read its command line ({})",
            report.message()
        ),
        Some(39) => report.explain(image),
        Some(0) => ended.with_console(
            "the guest reset itself or powered itself off without saying that it is done",
        ),
        _ => format!("QEMU failed: {}", ended.described()),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// Make a monitor whose QEMU has sent some events and ended.
    fn monitor(events: &str) -> UnikernelMonitor {
        let (stream, mut theirs) = UnixStream::pair().unwrap();
        write!(theirs, "{{\"QMP\": {{}}}}\n{{\"return\": {{}}}}\n{events}").unwrap();
        let qmp = Qmp::greet(stream, Duration::from_secs(10)).unwrap();
        UnikernelMonitor::new(qmp, MeasuredFile::image("bench"))
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
            let judged = monitor(&events).judge(status, "no memory");
            assert_eq!(judged, Err(reason.to_owned()));
        }
        assert_eq!(monitor("").judge(exited(33), ""), Ok(()));
    }

    #[test]
    fn the_last_words_are_neither_records_nor_control_characters() {
        let mut monitor = monitor("");
        for line in [
            "one",
            "two",
            "tare2: 0 hello",
            "",
            "\x1b[2J",
            "three",
            "four\r",
            "five",
        ] {
            monitor.line(line.as_bytes());
        }
        assert_eq!(
            monitor.judge(exited(0), "").unwrap_err(),
            "QEMU ended without a reason; the last on its console: [2J / three / four / five"
        );
    }

    #[test]
    fn a_qemu_that_does_not_answer_is_told() {
        let state = tempfile::tempdir().unwrap();
        let guard = tare_guard::Guard::open(state.path()).unwrap();
        let mut command = std::process::Command::new("sleep");
        let mut child = guard.spawn(command.arg("1000")).unwrap();
        let doing = monitor("").end_early(&mut child).unwrap();
        assert_eq!(
            doing,
            "QEMU itself does not answer (it closed the connection instead of answering \
             query-status)"
        );
    }
}
