//! The meaning of a guest's end.
//!
//! | status of QEMU | meaning |
//! |---|---|
//! | 33 | the image is done |
//! | 35 | the image failed; a record says why |
//! | 37 | the image can't read its command line |
//! | 39 | the image crashed; its console has a report (see [`super::crash`]) |
//! | 0 | QEMU ended for the reason of its last event: reset, power-off, a signal |
//! | other, signal | QEMU itself failed; its standard error says why |

use super::crash::{PREFIX, Report};
use crate::launch::{Exited, with_last};
use crate::measured::MeasuredFile;
use crate::qemu::why_ended;

/// Judges a guest that has ended.
pub(super) fn judge(image: &MeasuredFile, ended: &Exited<'_>) -> Result<(), String> {
    let mut report = Report::default();
    let mut console = Vec::new();
    for line in ended.output.lines() {
        match line.split_once(PREFIX) {
            Some((_, own)) => report.take(own),
            None => console.push(line),
        }
    }
    let with_console = |what: &str| with_last(what, console.iter().copied());
    Err(match ended.status.code() {
        Some(33) => return Ok(()),
        Some(35) => with_console("the image failed without saying why"),
        Some(37) => format!(
            "the image can't read its command line ({}): it is not of the same version as this \
             tare; build both from one source (make build)",
            report.message()
        ),
        Some(39) => report.explain(image),
        Some(0) => {
            let reset = "the guest reset itself instead of ending, usually after a fault that it \
                         could not report";
            let off = "the guest powered itself off without reporting that it is done";
            with_console(&why_ended(ended.reason, reset, off))
        }
        _ => format!("QEMU failed: {}", ended.described()),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn judged(code: i32, reason: &str, output: &str) -> Result<(), String> {
        let ended = Exited {
            status: ExitStatus::from_raw(code),
            output,
            error: "no memory",
            reason: Some(reason).filter(|reason| !reason.is_empty()),
        };
        judge(&MeasuredFile::image("bench"), &ended)
    }

    #[test]
    fn each_end_has_one_clear_reason() {
        let silent = "; its console said nothing";
        for (code, reason, why) in [
            (
                35 << 8,
                "",
                format!("the image failed without saying why{silent}"),
            ),
            (
                37 << 8,
                "",
                "the image can't read its command line (it said nothing): it is not of the same \
                 version as this tare; build both from one source (make build)"
                    .to_owned(),
            ),
            (39 << 8, "", "the image crashed: it said nothing".to_owned()),
            (
                0,
                "guest-reset",
                format!(
                    "the guest reset itself instead of ending, usually after a fault that it could \
                     not report{silent}"
                ),
            ),
            (
                0,
                "guest-shutdown",
                format!("the guest powered itself off without reporting that it is done{silent}"),
            ),
            (
                0,
                "host-signal",
                format!("QEMU was ended by a signal from somebody{silent}"),
            ),
            (
                0,
                "host-ui",
                format!("QEMU ended for the reason 'host-ui'{silent}"),
            ),
            (
                0,
                "",
                format!(
                    "the guest reset itself or powered itself off without reporting that it is done\
                     {silent}"
                ),
            ),
            (
                1 << 8,
                "",
                "QEMU failed: it ended with status 1; it said: no memory".to_owned(),
            ),
            (
                11,
                "",
                "QEMU failed: it crashed or was ended by signal 11; it said: no memory".to_owned(),
            ),
        ] {
            assert_eq!(judged(code, reason, ""), Err(why));
        }
        assert_eq!(judged(33 << 8, "", ""), Ok(()));
    }

    #[test]
    fn the_last_words_are_no_control_characters() {
        let output = "one\ntwo\n\n\x1b[2J\nthree\nfour\r\nfive";
        let why = judged(0, "host-signal", output).unwrap_err();
        assert_eq!(
            why,
            "QEMU was ended by a signal from somebody; the last on its console: [2J / three / four / five"
        );
    }
}
