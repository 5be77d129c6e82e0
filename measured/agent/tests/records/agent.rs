//! Runs the agent and reads its records.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tare_testkit::records::RecordList;
use tare_wire::line::Stream;

/// The time limit for an agent, against hanging.
const LIMIT: Duration = Duration::from_secs(120);

/// A running agent. Dropping it kills it.
pub struct Agent {
    child: Child,
    output: BufReader<ChildStdout>,
    told: RecordList,
}

impl Agent {
    /// Returns the command that starts it.
    pub fn command(words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tare-agent"));
        command.args(words.split_whitespace());
        command
    }

    /// Starts it.
    pub fn start(words: &str) -> Self {
        Self::spawn(Self::command(words))
    }

    /// Starts it from a modified command.
    pub fn spawn(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let told = RecordList::default();
        Self {
            child,
            output,
            told,
        }
    }

    /// Returns its process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Reads until a record of a kind, or to the end, and returns all records so far.
    pub fn read_until(&mut self, kind: &str) -> &RecordList {
        let mut line = Vec::new();
        while !self.told.kinds().contains(&kind) {
            line.clear();
            if self.output.read_until(b'\n', &mut line).unwrap() == 0 {
                break;
            }
            assert!(self.told.line(Stream::Measured, &line));
        }
        &self.told
    }

    /// Reads to the end. Returns its exit status and all records.
    pub fn finish(mut self) -> (Option<i32>, RecordList) {
        self.read_until("all");
        let deadline = Instant::now() + LIMIT;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None => assert!(Instant::now() < deadline, "the agent hangs"),
            }
            thread::sleep(Duration::from_millis(1));
        };
        (status, std::mem::take(&mut self.told))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a plan that must succeed.
pub fn measured(words: &str) -> RecordList {
    let (status, told) = Agent::start(words).finish();
    assert_eq!(status, Some(0), "{words}: {:?}", told.failure());
    told
}

/// Returns the reason for a refusal, after checking status 1 and the failure record.
pub fn refused(agent: Agent) -> &'static str {
    let (status, told) = agent.finish();
    assert_eq!(status, Some(1), "{:?}", told.kinds());
    assert!(told.sets().is_empty());
    told.failure().expect("a failure record")
}
