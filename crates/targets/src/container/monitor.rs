//! What the end of a container means.

use std::process::ExitStatus;

use tare_guard::OwnedCgroup;

use crate::instance::{Attendant, describe_exit};

/// Attends to a container whose process stands for it on this machine: podman's, or a runtime's.
/// They end with the status of the container's process, 128 more than the signal if one ended it.
#[derive(Debug)]
pub(super) struct Contained {
    /// Who runs it, and from which status on it speaks of itself.
    runner: Runner,
    notices: Vec<String>,
    /// What its processes are in; removed after it has ended.
    _groups: Vec<OwnedCgroup>,
}

/// Is the program that runs a container.
#[derive(Clone, Copy, Debug)]
pub(super) enum Runner {
    /// A runtime: 1 may be its own status or the agent's.
    Runtime(&'static str),
    /// podman: 125 to 127 are its own.
    Podman,
}

impl Contained {
    pub(super) fn new(runner: Runner, notices: Vec<String>, groups: Vec<OwnedCgroup>) -> Self {
        Self {
            runner,
            notices,
            _groups: groups,
        }
    }
}

impl Attendant for Contained {
    fn judge(&mut self, status: ExitStatus, said: &str) -> Result<(), String> {
        if status.success() {
            return Ok(());
        }
        Err(match (self.runner, status.code()) {
            (Runner::Podman, Some(125..=127)) => {
                format!("podman failed: {}", describe_exit(status, said))
            }
            (_, Some(code @ 129..)) => killed(code - 128),
            (Runner::Runtime(name), Some(1)) if !said.contains("tare-agent: ") => {
                format!("{name} failed: {}", describe_exit(status, said))
            }
            (Runner::Runtime(name), None) => {
                format!("{name} itself: {}", describe_exit(status, said))
            }
            (Runner::Podman, None) => format!("podman itself: {}", describe_exit(status, said)),
            _ => describe_exit(status, said),
        })
    }

    fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }
}

/// Says that a signal ended the agent in its container.
pub(super) fn killed(signal: i32) -> String {
    match signal {
        9 => "the agent was killed in its container (SIGKILL): by somebody, or by the kernel \
              because the container's memory (mem=) is too little; see dmesg"
            .to_owned(),
        signal => format!("the agent crashed or was ended in its container by signal {signal}"),
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
                Runner::Podman,
                125,
                "no image",
                "podman failed: it ended with status 125; it said: no image",
            ),
            (
                Runner::Podman,
                137,
                "",
                "the agent was killed in its container (SIGKILL): by somebody, or by the kernel because the container's memory (mem=) is too little; see dmesg",
            ),
            (
                Runner::Runtime("runc"),
                1,
                "no rootfs",
                "runc failed: it ended with status 1; it said: no rootfs",
            ),
            (
                Runner::Runtime("runc"),
                1,
                "tare-agent: no memory",
                "it ended with status 1; it said: tare-agent: no memory",
            ),
            (
                Runner::Runtime("crun"),
                139,
                "",
                "the agent crashed or was ended in its container by signal 11",
            ),
        ] {
            let mut attendant = Contained::new(runner, Vec::new(), Vec::new());
            let judged = attendant.judge(ExitStatus::from_raw(status << 8), said);
            assert_eq!(judged, Err(why.to_owned()));
        }
    }
}
