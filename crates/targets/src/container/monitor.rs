//! What the end of a container means.

use std::process::ExitStatus;

use super::podman;
use crate::instance::describe_exit;
use crate::launch::Judge;

/// Judges a container whose process stands for it on this machine: podman's, or a runtime's. They
/// end with the status of the container's process, 128 more than the signal if one ended it.
pub(super) fn container_judge(runner: &'static str) -> Judge {
    Box::new(move |ended| judged(runner, ended.status, ended.error))
}

fn judged(runner: &str, status: ExitStatus, said: &str) -> Result<(), String> {
    let how = describe_exit(status, said);
    // podman's own are 125 to 127; a runtime's 1 may be its own or the agent's.
    let is_its_own = |code| match runner {
        podman::NAME => (125..=127).contains(&code),
        _ => code == 1 && !said.contains("tare-agent: "),
    };
    Err(match status.code() {
        Some(0) => return Ok(()),
        Some(code) if is_its_own(code) => format!("{runner} failed: {how}"),
        Some(code @ 129..) => killed(code - 128),
        Some(_) => how,
        None => format!("{runner} itself: {how}"),
    })
}

/// Says that a signal ended the program of a container.
pub(super) fn killed(signal: i32) -> String {
    match signal {
        9 => "the program was killed in its container (SIGKILL): by somebody, or by the kernel \
              because the container's memory (mem=) is too little; see dmesg"
            .to_owned(),
        signal => format!("the program crashed or was ended in its container by signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn each_end_is_told_by_whom_it_concerns() {
        for (runner, status, said, why) in [
            (
                "podman",
                125,
                "no image",
                "podman failed: it ended with status 125; it said: no image",
            ),
            (
                "podman",
                137,
                "",
                "the program was killed in its container (SIGKILL): by somebody, or by the kernel because the container's memory (mem=) is too little; see dmesg",
            ),
            (
                "runc",
                1,
                "no rootfs",
                "runc failed: it ended with status 1; it said: no rootfs",
            ),
            (
                "runc",
                1,
                "tare-agent: no memory",
                "it ended with status 1; it said: tare-agent: no memory",
            ),
            (
                "crun",
                139,
                "",
                "the program crashed or was ended in its container by signal 11",
            ),
        ] {
            let judged = judged(runner, ExitStatus::from_raw(status << 8), said);
            assert_eq!(judged, Err(why.to_owned()));
        }
    }
}
