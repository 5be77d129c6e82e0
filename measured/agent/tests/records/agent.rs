//! Runs the agent and reads what it reports.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tare_testkit::records::Told;
use tare_wire::line::Stream;

/// How long an agent may take to end: only against hanging.
const LIMIT: Duration = Duration::from_secs(120);

/// An agent that runs. Dropping it ends it.
pub struct Agent {
    child: Child,
    output: BufReader<ChildStdout>,
    told: Told,
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

    /// Starts it by a command that may have been changed.
    pub fn spawn(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let told = Told::default();
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

    /// Reads until a record of a kind has come, or to the end, and returns what has come.
    pub fn read_until(&mut self, kind: &str) -> &Told {
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

    /// Reads to the end. Returns its exit status and all it said.
    pub fn finish(mut self) -> (Option<i32>, Told) {
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
        // If it has ended there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a plan that must succeed.
pub fn measured(words: &str) -> Told {
    let (status, told) = Agent::start(words).finish();
    assert_eq!(status, Some(0), "{words}: {:?}", told.failure());
    told
}

/// Returns why a plan was refused, by status 1 and a failure record.
pub fn refused(agent: Agent) -> &'static str {
    let (status, told) = agent.finish();
    assert_eq!(status, Some(1), "{:?}", told.kinds());
    assert!(told.sets().is_empty());
    told.failure().expect("a failure record")
}
