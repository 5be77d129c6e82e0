//! Runs the agent and reads what it reports of wake-ups.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tare_wire::line::{Line, MAX_PAYLOAD, decode};
use tare_wire::record::{self, Record};

/// Is how long an agent may take to end: only against hanging.
const LIMIT: Duration = Duration::from_secs(120);

/// Is an agent that runs. Dropping it ends it.
pub struct Agent {
    child: Child,
    output: BufReader<ChildStdout>,
    read: Woken,
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
        Self {
            child,
            output,
            read: Woken::default(),
        }
    }

    /// Returns its process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Reads until a record of a kind has come, or to the end, and returns what has come.
    pub fn read_until(&mut self, kind: &str) -> &Woken {
        let mut line = Vec::new();
        while !self.read.kinds.contains(&kind) {
            line.clear();
            if self.output.read_until(b'\n', &mut line).unwrap() == 0 {
                break;
            }
            self.read.line(&line);
        }
        &self.read
    }

    /// Reads to the end. Returns its exit status and all it said.
    pub fn finish(mut self) -> (Option<i32>, Woken) {
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).unwrap();
        for line in rest.split_inclusive(|byte| *byte == b'\n') {
            self.read.line(line);
        }
        let deadline = Instant::now() + LIMIT;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None => assert!(Instant::now() < deadline, "the agent hangs"),
            }
            thread::sleep(Duration::from_millis(1));
        };
        (status, std::mem::take(&mut self.read))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // If it has ended there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Is what an agent reports.
#[derive(Debug, Default)]
pub struct Woken {
    pub kinds: Vec<&'static str>,
    pub ready_ns: Option<u64>,
    pub origin_ns: Option<u64>,
    pub threads: Vec<Thread>,
    /// Rows of (thread, slot, latency, count).
    pub counts: Vec<[u64; 4]>,
    /// Rows of (thread, activation, latency).
    pub raw: Vec<(u64, u64, u64)>,
    /// Rows of (thread, activation, latency).
    pub peaks: Vec<(u64, u64, u64)>,
    /// Rows of (thread, bin, wake-ups, sum, least, greatest).
    pub bins: Vec<[u64; 6]>,
    /// Rows of (thread, activation, latency).
    pub exceeded: Vec<(u64, u64, u64)>,
    pub facts: Vec<(String, String)>,
    pub failure: Option<String>,
}

/// Is the sums of one thread.
#[derive(Debug)]
pub struct Thread {
    pub tid: u32,
    pub cpu: Option<u32>,
    pub policy: String,
    pub priority: u32,
    pub woken: u64,
    pub missed: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    pub sum_ns: u64,
    pub peaks_kept: u64,
    pub recording_ns: u64,
}

impl Woken {
    /// Runs a plan that must succeed.
    pub fn of(words: &str) -> Self {
        let (status, woken) = Agent::start(words).finish();
        assert_eq!(status, Some(0), "{words}: {:?}", woken.failure);
        woken
    }

    /// Runs a plan that may be refused.
    pub fn whatever(words: &str) -> Self {
        Agent::start(words).finish().1
    }

    /// Checks that every list says the same as the sums of the threads.
    pub fn check_lists(&self) {
        for (number, thread) in (0_u64..).zip(&self.threads) {
            let counts = || self.counts.iter().filter(|row| row[0] == number);
            assert_eq!(counts().map(|row| row[3]).sum::<u64>(), thread.woken);
            let sum = counts().map(|row| row[2] * row[3]).sum::<u64>();
            assert_eq!(sum, thread.sum_ns);
            let latencies = || counts().map(|row| row[2]);
            assert_eq!(latencies().min().unwrap_or(0), thread.min_ns);
            assert_eq!(latencies().max().unwrap_or(0), thread.max_ns);

            let bins = || self.bins.iter().filter(|row| row[0] == number);
            assert_eq!(bins().map(|row| row[2]).sum::<u64>(), thread.woken);
            assert_eq!(bins().map(|row| row[3]).sum::<u64>(), thread.sum_ns);

            let raw = || self.raw.iter().filter(|row| row.0 == number);
            assert_eq!(raw().count() as u64, thread.woken);
            assert_eq!(raw().map(|row| row.2).sum::<u64>(), thread.sum_ns);
            assert!(raw().is_sorted_by(|a, b| a.1 < b.1));
            let last = raw().next_back().map_or(0, |row| row.1 + 1);
            assert!(last <= thread.woken + thread.missed);

            let peaks = || self.peaks.iter().filter(|row| row.0 == number);
            assert_eq!(peaks().count() as u64, thread.peaks_kept);
            assert!(peaks().all(|peak| self.raw.contains(peak)));
        }
    }

    fn line(&mut self, line: &[u8]) {
        let mut room = [0; MAX_PAYLOAD];
        let Line::Record { sequence, record } = decode(line, &mut room) else {
            panic!("{}", String::from_utf8_lossy(line));
        };
        assert_eq!(sequence, self.kinds.len() as u64);
        self.kinds.push(record.kind());
        self.record(&record);
    }

    fn record(&mut self, record: &Record<'_>) {
        match record {
            Record::Ready(ready) => self.ready_ns = ready.monotonic_ns,
            Record::Begins(begins) => self.origin_ns = Some(begins.origin_ns),
            Record::Thread(thread) => self.threads.push(Thread::of(thread)),
            Record::LatencyCounts(list) => {
                let mut before = [0; 3];
                for row in list.rows.rows::<4>() {
                    let [thread, slot, step, count] = row.unwrap();
                    let goes_on = before[..2] == [thread, slot];
                    let latency_ns = if goes_on { before[2] + step } else { step };
                    before = [thread, slot, latency_ns];
                    self.counts.push([thread, slot, latency_ns, count]);
                }
            }
            Record::RawLatencies(list) => {
                let mut before = (0, 0);
                for row in list.rows.rows::<3>() {
                    let [thread, step, latency_ns] = row.unwrap();
                    let from = if before.0 == thread { before.1 } else { 0 };
                    before = (thread, from + step);
                    self.raw.push((thread, from + step, latency_ns));
                }
            }
            Record::Peaks(list) => {
                for row in list.rows.rows::<3>() {
                    self.peaks.push(row.unwrap().into());
                }
            }
            Record::LatencyEnvelope(list) => {
                self.bins.extend(list.rows.rows::<6>().map(Result::unwrap));
            }
            Record::Exceeded(it) => {
                let row = (it.thread.into(), it.activation, it.latency_ns);
                self.exceeded.push(row);
            }
            Record::Fact(fact) => {
                let fact = (fact.name.to_owned(), fact.value.to_owned());
                self.facts.push(fact);
            }
            Record::Failure(failure) => self.failure = Some(failure.text.to_owned()),
            _ => {}
        }
    }
}

impl Thread {
    fn of(thread: &record::Thread<'_>) -> Self {
        Self {
            tid: thread.tid,
            cpu: thread.cpu,
            policy: thread.policy.to_owned(),
            priority: thread.priority,
            woken: thread.woken,
            missed: thread.missed,
            min_ns: thread.min_ns,
            max_ns: thread.max_ns,
            sum_ns: thread.sum_ns,
            peaks_kept: thread.peaks_kept,
            recording_ns: thread.recording_ns,
        }
    }
}
