//! Actions when a latency exceeds `--trace-above` or a gap the limit of `--on`, as in rtla's
//! `--on-threshold`, and at the end of a run.
//!
//! They run at once, during the measurement: a command that stops a tracer or copies a log must run
//! before its cause is gone. They run off the measured CPU, like `tare` itself.

use std::os::unix::process::parent_id;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::low_level::signal_name;
use tare_guard::{Guard, Interrupt, OwnedChild};
use tare_results::model::Exceeded;

use crate::terminal::Terminal;

/// How long a command may take. It is ended then.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);

/// Interval between checks for the end of a command.
const LOOK: Duration = Duration::from_millis(100);

/// Something to do when the limit is exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Report the kernel events after the measurement, which always happens.
    Report,
    /// Send a signal.
    Signal {
        /// Which one.
        signal: Signal,
        /// To this process; to the parent if None.
        pid: Option<Pid>,
    },
    /// Have sh run a command.
    Command(String),
    /// Go on with measuring.
    Continue,
}

impl Action {
    /// Reads an action: `report` or `trace`, `signal:USR1,pid=123`, `command:CMD` or `shell:CMD`,
    /// `continue`.
    ///
    /// # Errors
    ///
    /// Returns what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        const WANTED: &str = "want report (or trace), signal:NAME[,pid=PID], command:CMD (or shell:CMD), or continue";
        match text.split_once(':') {
            None if matches!(text, "report" | "trace") => Ok(Self::Report),
            None if text == "continue" => Ok(Self::Continue),
            Some(("command" | "shell", command)) if !command.trim().is_empty() => {
                Ok(Self::Command(command.to_owned()))
            }
            Some(("signal", words)) => {
                let (name, pid) = match words.split_once(",pid=") {
                    Some((name, pid)) => (name, Some(process(pid)?)),
                    None => (words, None),
                };
                let signal = signal(name).ok_or_else(|| {
                    "want a signal from 1 to 31, or a name such as USR1".to_owned()
                })?;
                Ok(Self::Signal { signal, pid })
            }
            _ => Err(WANTED.to_owned()),
        }
    }
}

fn process(text: &str) -> Result<Pid, String> {
    let number: Option<i32> = text.parse().ok().filter(|number| *number > 0);
    let pid = number.and_then(Pid::from_raw);
    pid.ok_or_else(|| format!("'{text}' is not a process id"))
}

/// Finds a signal by its number or its name, with or without SIG.
fn signal(text: &str) -> Option<Signal> {
    let is_meant = |signal: &Signal| {
        let number = signal.as_raw();
        let name = signal_name(number).and_then(|name| name.strip_prefix("SIG"));
        name == Some(text.strip_prefix("SIG").unwrap_or(text)) || text == number.to_string()
    };
    (1..32).filter_map(Signal::from_named_raw).find(is_meant)
}

/// An action, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct On {
    /// Its moment.
    pub when: When,
    /// The action.
    pub action: Action,
}

/// The moment of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// A value above the plan's limit, and above this one, in ns.
    Above(u64),
    /// The end of the run.
    End,
}

/// Does what is to be done, and watches what was started.
pub struct Actions<'a> {
    actions: &'a [On],
    guard: &'a Guard,
    /// Commands that run, with the time when they are ended.
    running: Vec<(OwnedChild, Instant)>,
    /// How often a command was not started because it still ran.
    left_out: u64,
}

impl<'a> Actions<'a> {
    /// Prepares the actions; what they start belongs to the guard.
    pub fn new(actions: &'a [On], guard: &'a Guard) -> Self {
        Self {
            actions,
            guard,
            running: Vec::new(),
            left_out: 0,
        }
    }

    /// Does everything that is to be done about a value of a measure.
    pub fn act(&mut self, measure: &str, exceeded: &Exceeded, terminal: &Terminal) {
        self.look(terminal);
        // What still runs is about the value before; a burst must not become a burst of commands.
        let is_busy = !self.running.is_empty();
        let mut left_out = false;
        for On { when, action } in self.actions {
            match action {
                _ if !matches!(when, When::Above(ns) if exceeded.value > *ns) => {}
                Action::Report | Action::Continue => {}
                Action::Signal { signal, pid } => send(*signal, *pid, terminal),
                Action::Command(_) if is_busy => left_out = true,
                Action::Command(command) => {
                    let variables = [
                        (
                            format!("TARE_{}_NS", measure.to_uppercase()),
                            exceeded.value,
                        ),
                        ("TARE_THREAD".to_owned(), exceeded.set.into()),
                        ("TARE_ACTIVATION".to_owned(), exceeded.index),
                    ];
                    self.start(command, variables, terminal);
                }
            }
        }
        self.left_out += u64::from(left_out);
    }

    /// Returns whether a value of this many ns ends the run: an action is for it, and none of its
    /// limit goes on.
    pub fn ends_at(&self, ns: u64) -> bool {
        let goes_on = |when| {
            self.actions.contains(&On {
                when,
                action: Action::Continue,
            })
        };
        let mut all = self.actions.iter().map(|on| on.when);
        all.any(|when| matches!(when, When::Above(limit) if ns > limit) && !goes_on(when))
    }

    /// Does what is to be done at the end of the run.
    fn end(&mut self, terminal: &Terminal) {
        for on in self.actions.iter().filter(|on| on.when == When::End) {
            match &on.action {
                Action::Signal { signal, pid } => send(*signal, *pid, terminal),
                Action::Command(command) => self.start(command, [], terminal),
                Action::Report | Action::Continue => {}
            }
        }
    }

    /// Looks after what was started. Returns after how long again, or None if nothing runs.
    pub fn look(&mut self, terminal: &Terminal) -> Option<Duration> {
        self.running.retain_mut(|(child, ends)| {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return false,
                Ok(Some(status)) => {
                    terminal.warn(&format!("the command of an action failed: {status}"));
                    return false;
                }
                Err(error) => {
                    terminal.warn(&error.to_string());
                    return false;
                }
                Ok(None) => {}
            }
            let late = Instant::now() >= *ends;
            if late {
                terminal.warn(&format!(
                    "the command of an action took longer than {} s and was ended",
                    COMMAND_LIMIT.as_secs()
                ));
                if let Err(error) = child.kill_group() {
                    terminal.warn(&error.to_string());
                }
            }
            !late
        });
        (!self.running.is_empty()).then_some(LOOK)
    }

    /// Waits for what still runs, does what is to be done at the end, and waits for that; for each
    /// at most until it is ended for taking too long, or the user wants to stop.
    pub fn finish(mut self, interrupt: &Interrupt, terminal: &Terminal) {
        self.wait(interrupt, terminal);
        self.end(terminal);
        self.wait(interrupt, terminal);
        if self.left_out > 0 {
            terminal.note(&format!(
                "the limit was exceeded {} more times while the command of an action still ran; it was not started \
                 again for them",
                self.left_out
            ));
        }
    }

    fn wait(&mut self, interrupt: &Interrupt, terminal: &Terminal) {
        while let Some(pause) = self.look(terminal)
            && !interrupt.stop_requested()
        {
            std::thread::sleep(pause);
        }
    }

    fn start(
        &mut self,
        command: &str,
        variables: impl IntoIterator<Item = (String, u64)>,
        terminal: &Terminal,
    ) {
        let variables = variables.into_iter();
        // Standard output is for results.
        let mut sh = Command::new("/bin/sh");
        sh.arg("-c")
            .arg(command)
            .envs(variables.map(|(name, value)| (name, value.to_string())))
            .stdin(Stdio::null())
            .stdout(terminal.for_command());
        match self.guard.spawn(&mut sh) {
            Ok(child) => self.running.push((child, Instant::now() + COMMAND_LIMIT)),
            Err(error) => terminal.warn(&format!(
                "the command of an action could not be started: {error}"
            )),
        }
    }
}

fn send(signal: Signal, pid: Option<Pid>, terminal: &Terminal) {
    let parent = || i32::try_from(parent_id()).ok().and_then(Pid::from_raw);
    let Some(pid) = pid.or_else(parent) else {
        return terminal.warn("there is no parent to send the signal of an action to");
    };
    if let Err(errno) = kill_process(pid, signal) {
        let number = pid.as_raw_nonzero();
        terminal.warn(&format!(
            "the signal of an action could not be sent to process {number}: {errno}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_read_as_they_are_described() {
        let to = |pid| Action::Signal {
            signal: Signal::USR1,
            pid,
        };
        for (text, action) in [
            ("report", Action::Report),
            ("continue", Action::Continue),
            ("trace", Action::Report),
            ("shell:true", Action::Command("true".to_owned())),
            ("signal:10", to(None)),
            ("signal:USR1", to(None)),
            ("signal:SIGUSR1,pid=123", to(Pid::from_raw(123))),
            (
                "command:echo a:b, c",
                Action::Command("echo a:b, c".to_owned()),
            ),
        ] {
            assert_eq!(Action::parse(text), Ok(action), "{text}");
        }
        for text in [
            "",
            "stop",
            "command:",
            "command: ",
            "signal:",
            "signal:0",
            "signal:32",
            "signal:USR3",
            "signal:USR1,pid=0",
            "signal:USR1,pid=-1",
            "report:now",
        ] {
            assert!(Action::parse(text).is_err(), "{text}");
        }
    }
}
