//! Runs the agent and reads what it reports of wake-ups.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tare_wire::line::{Line, MAX_PAYLOAD, decode};
use tare_wire::record::{Exceeded, List, Record, Set, Unit};
use tare_wire::rows::{self, Bin, Count, Sample};

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

/// What an agent reports.
#[derive(Debug, Default)]
pub struct Woken {
    pub kinds: Vec<&'static str>,
    pub ready_ns: Option<u64>,
    pub origin_ns: Option<u64>,
    pub threads: Vec<Thread>,
    pub counts: Vec<Count>,
    pub raw: Vec<Sample>,
    pub peaks: Vec<Sample>,
    pub bins: Vec<Bin>,
    pub exceeded: Vec<Exceeded>,
    /// Facts of the place.
    pub facts: Vec<(String, String)>,
    pub failure: Option<String>,
}

/// What is told of one thread.
#[derive(Debug, Default)]
pub struct Thread {
    pub set: Set<'static>,
    pub missed: u64,
    pub recording_ns: u64,
    pub tid: u32,
    pub cpu: Option<u32>,
    pub policy: String,
    pub priority: u32,
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

    /// Checks that every list says the same as the heads of the sets.
    pub fn check_lists(&self) {
        for thread in &self.threads {
            let set = &thread.set;
            let counts = || self.counts.iter().filter(|row| row.set == set.number);
            assert_eq!(counts().map(|row| row.count).sum::<u64>(), set.n);
            let sum = counts().map(|row| row.value * row.count).sum::<u64>();
            assert_eq!(sum, set.sum);
            let latencies = || counts().map(|row| row.value);
            assert_eq!(latencies().min().unwrap_or(0), set.min);
            assert_eq!(latencies().max().unwrap_or(0), set.max);
            assert!(counts().all(|row| row.part < set.parts));

            let bins = || self.bins.iter().filter(|bin| bin.set == set.number);
            assert_eq!(bins().map(|bin| bin.n).sum::<u64>(), set.n);
            assert_eq!(bins().map(|bin| bin.sum).sum::<u64>(), set.sum);

            let raw = || self.raw.iter().filter(|sample| sample.set == set.number);
            assert_eq!((raw().count() as u64, set.raw), (set.n, set.n));
            assert_eq!(raw().map(|sample| sample.value).sum::<u64>(), set.sum);
            assert!(raw().is_sorted_by(|a, b| a.index < b.index));
            assert!(raw().all(|sample| sample.time == sample.index * set.period));
            if let Some(last) = raw().next_back() {
                assert!(last.index < set.n + thread.missed);
                assert_eq!(set.last, set.first + last.time + last.value);
            }

            let peaks = || self.peaks.iter().filter(|peak| peak.set == set.number);
            assert_eq!(peaks().count() as u64, set.kept);
            assert!(peaks().all(|peak| peak.value >= set.threshold && self.raw.contains(peak)));
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
        match *record {
            Record::Ready(ready) => self.ready_ns = ready.monotonic_ns,
            Record::Begins(begins) => self.origin_ns = Some(begins.origin_ns),
            Record::Set(set) => {
                assert_eq!((set.measure, set.unit), ("latency", Unit::Ns));
                assert_eq!(set.labels, format!("thread={}", self.threads.len()));
                assert_eq!(set.number, self.threads.len() as u32);
                assert_eq!(Some(set.first), self.origin_ns);
                self.threads.push(Thread {
                    set: Set {
                        measure: "",
                        labels: "",
                        ..set
                    },
                    ..Thread::default()
                });
            }
            Record::Value(value) => {
                let number = value.value as u64;
                let thread = self.thread(value.labels);
                match (value.measure, value.unit) {
                    ("missed", "") => thread.missed = number,
                    ("recording time", "ns") => thread.recording_ns = number,
                    other => panic!("{other:?}"),
                }
            }
            Record::Counts(list) => self.counts.extend(rows::counts(list).map(Result::unwrap)),
            Record::Raw(list) => {
                self.raw.extend(samples(&self.threads, list));
            }
            Record::Events(list) => {
                self.peaks.extend(samples(&self.threads, list));
            }
            Record::Envelope(list) => self.bins.extend(rows::bins(list).map(Result::unwrap)),
            Record::Exceeded(exceeded) => self.exceeded.push(exceeded),
            Record::Fact(fact) if fact.labels.is_empty() => {
                let fact = (fact.name.to_owned(), fact.value.to_owned());
                self.facts.push(fact);
            }
            Record::Fact(fact) => {
                let thread = self.thread(fact.labels);
                match fact.name {
                    "thread id" => thread.tid = fact.value.parse().unwrap(),
                    "CPU" => thread.cpu = Some(fact.value.parse().unwrap()),
                    "scheduling policy" => thread.policy = fact.value.to_owned(),
                    "priority" => thread.priority = fact.value.parse().unwrap(),
                    "interval" => assert_eq!(fact.value, format!("{} ns", thread.set.period)),
                    other => panic!("{other}"),
                }
            }
            Record::Failure(failure) => self.failure = Some(failure.text.to_owned()),
            _ => {}
        }
    }

    /// Returns the thread of the labels, whose set came before.
    fn thread(&mut self, labels: &str) -> &mut Thread {
        let number = labels.strip_prefix("thread=").unwrap();
        &mut self.threads[number.parse::<usize>().unwrap()]
    }
}

fn samples(threads: &[Thread], list: List<'_>) -> impl Iterator<Item = Sample> {
    let period_of = |set| Some(threads.get(set as usize)?.set.period);
    rows::samples(list, period_of).map(Result::unwrap)
}
