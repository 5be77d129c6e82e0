//! `command:WORDS`: any program.

use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::{Kind, PLAIN, Setup};
use crate::error::DriverError;
use crate::task::{Ended, Meter, Task};

pub(crate) const COMMAND: Kind = Kind {
    name: "command",
    usage: "command:WORDS",
    summary: "this command, in a loop; in its scratch folder, without a shell",
    example: Some("command:find /usr -xdev"),
    writes: |_| None,
    tasks,
    ..PLAIN
};

fn tasks(setup: &mut Setup, words: &[String]) -> Result<Vec<Task>, DriverError> {
    let Some((program, args)) = words.split_first() else {
        return Err(DriverError("the load 'command' has no words".to_owned()));
    };
    let task = Task {
        stop: Signal::TERM,
        // Otherwise a short command would be a load of nothing but starts.
        again_after: Duration::from_millis(10),
        ..Task::again(program, setup.cpus, CommandMeter::default())
    };
    Ok(vec![task.args(args)])
}

/// A meter that counts complete runs: the command's work is unknown.
#[derive(Debug, Default)]
struct CommandMeter {
    runs: u64,
}

impl Meter for CommandMeter {
    fn works(&self, _pid: Pid) -> bool {
        // Its work is unknown: it may only wait.
        true
    }

    fn ended(&mut self, ended: &Ended) -> Result<(), String> {
        self.runs += u64::from(ended.status.success());
        Ok(())
    }

    fn totals(&self) -> Vec<(String, u64)> {
        vec![("runs".to_owned(), self.runs)]
    }

    fn remark(&self) -> Option<String> {
        let text = "command: its work is unknown; its complete runs and its CPU time are counted";
        Some(text.to_owned())
    }
}
