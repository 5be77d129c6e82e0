//! The meaning of a Linux guest's end.
//!
//! | observed | meaning |
//! |---|---|
//! | init's last line, on the port or the console | the plan's process ended, with this status; or why it could not run |
//! | `Kernel panic` on the console | the kernel says why it can't go on |
//! | neither, and QEMU ended with status 0 | the reason of its last event: a reset, a power-off, a signal |
//! | neither, and another status | QEMU itself failed; its standard error says why |

use tare_wire::guest::Message;

use crate::launch::{Exited, with_last};
use crate::qemu::why_ended;

/// Judges a guest that has ended. Its console is standard error where it has a port, else standard
/// output, with init's lines.
pub(super) fn judge(ended: &Exited<'_>) -> Result<(), String> {
    let lines = || ended.output.lines().chain(ended.error.lines());
    let console = || lines().filter(|line| Message::parse(line).is_none());
    let with_console = |what: &str| with_last(what, console());
    let panic = console().find_map(|line| line.split_once(PANIC));
    let said = lines().find_map(Message::parse);
    Err(match (said, panic) {
        (Some(Message::Ended(0)), _) => return Ok(()),
        (Some(Message::Ended(2)), _) => with_console(
            "the agent can't read its plan: it is not of the same version as this tare; build \
             both from one source (make build)",
        ),
        (Some(Message::Ended(status)), _) => {
            format!("the agent ended with status {status} without saying why")
        }
        (Some(Message::Failed(why)), _) => why.to_owned(),
        (None, Some((_, why))) => {
            let is_out_of_memory =
                console().any(|line| line.contains("Out of memory") || line.contains("oom-kill:"));
            panicked(why.trim(), is_out_of_memory)
        }
        (None, None) if ended.status.success() => {
            let reset = "the guest reset itself without giving a reason: usually it has too \
                         little memory even to start (mem=)";
            let off = "the guest powered itself off without reporting that it is done";
            with_console(&why_ended(ended.reason, reset, off))
        }
        (None, None) => format!("QEMU failed: {}", ended.described()),
    })
}

const PANIC: &str = "Kernel panic - not syncing: ";

/// Explains a kernel's panic.
fn panicked(why: &str, is_out_of_memory: bool) -> String {
    let remedy = if is_out_of_memory || why.contains("memory") {
        ": it has too little memory; give it more with mem="
    } else if why.contains("Unable to mount root fs") || why.contains("No working init") {
        ": it did not take the initramfs. Was it built with BLK_DEV_INITRD, and has the guest \
         memory enough (mem=)?"
    } else if why.contains("Attempted to kill init") {
        ": the agent, its first process, exited, usually because the guest ran out of memory (mem=)"
    } else {
        ""
    };
    format!("the guest's kernel panicked ({why}){remedy}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

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
                "the guest powered itself off without reporting that it is done; its console said \
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
            let console = match console {
                [] if !status.success() => "no memory".to_owned(),
                console => console.join("\n"),
            };
            // One guest has a port, many write all to one console.
            let both = format!("{port}\n{console}");
            for (output, error) in [(port, console.as_str()), (both.trim(), "")] {
                let reason = Some(reason).filter(|reason| !reason.is_empty());
                let ended = Exited {
                    status,
                    output,
                    error,
                    reason,
                };
                if !error.is_empty() || status.success() {
                    assert_eq!(judge(&ended), Err(message.to_owned()));
                }
            }
        }
        let done = Exited {
            status: exited(0),
            output: "tare-init: ended 0\r",
            error: "",
            reason: None,
        };
        assert_eq!(judge(&done), Ok(()));
    }
}
