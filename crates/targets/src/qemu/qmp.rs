//! QMP, the protocol by which QEMU is asked and told things: JSON, one message a line.
//!
//! The client is small on purpose: it sends commands without arguments, one at a time, and keeps
//! the events that come in between. Nothing waits for ever, and nothing is read while a guest runs:
//! what QEMU says meanwhile stays in the socket until it is asked for.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thiserror::Error;

/// Is the length of the longest message that is believed to be one.
const LONGEST: usize = 1 << 20;

/// Is how many events are kept.
const MOST_EVENTS: usize = 1_000;

/// Is a connection to QEMU's monitor.
#[derive(Debug)]
pub(crate) struct Qmp {
    stream: UnixStream,
    /// What was read and is no whole line yet.
    begun: Vec<u8>,
    events: Vec<Event>,
}

/// Is something that happened to a guest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    /// What: `SHUTDOWN`, `RESET`, `STOP`.
    pub(crate) name: String,
    /// The particulars.
    pub(crate) data: Value,
}

/// Says what is wrong with the dialogue.
#[derive(Debug, Error)]
pub(crate) enum QmpError {
    /// There was no answer in time.
    #[error("it did not answer {to} within {} ms", limit.as_millis())]
    Silent {
        /// What was to be answered.
        to: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// QEMU has closed the connection.
    #[error("it closed the connection instead of answering {to}")]
    Closed {
        /// What was to be answered.
        to: String,
    },
    /// QEMU refused.
    #[error("{to} was refused: {why}")]
    Refused {
        /// The command.
        to: String,
        /// QEMU's reason.
        why: String,
    },
    /// What came is no message.
    #[error("the answer to {to} makes no sense: {what}")]
    Nonsense {
        /// What was to be answered.
        to: String,
        /// What came, or the beginning of it.
        what: String,
    },
    /// The socket could not be read or written.
    #[error("the socket fails while waiting for an answer to {to}: {source}")]
    Socket {
        /// What was to be answered.
        to: String,
        /// Why.
        source: io::Error,
    },
}

impl Qmp {
    /// Waits for QEMU's greeting, and ends the negotiation.
    ///
    /// # Errors
    ///
    /// Returns [`QmpError`] if QEMU does not greet within `limit`, as all methods do.
    pub(crate) fn greet(stream: UnixStream, limit: Duration) -> Result<Self, QmpError> {
        let mut qmp = Self {
            stream,
            begun: Vec::new(),
            events: Vec::new(),
        };
        let greeting = qmp.message(&Wait::new("the call", limit))?;
        if greeting.get("QMP").is_none() {
            return Err(nonsense("the call", greeting.to_string().as_bytes()));
        }
        qmp.ask("qmp_capabilities", limit)?;
        Ok(qmp)
    }

    /// Sends a command and returns its answer.
    ///
    /// # Errors
    ///
    /// As [`greet`](Self::greet), and [`QmpError::Refused`].
    pub(crate) fn ask(&mut self, command: &str, limit: Duration) -> Result<Value, QmpError> {
        let wait = Wait::new(command, limit);
        let mut line = json!({ "execute": command }).to_string();
        line.push('\n');
        wait.apply(&self.stream)?;
        self.stream
            .write_all(line.as_bytes())
            .map_err(|error| wait.failed(error))?;
        loop {
            let mut message = self.message(&wait)?;
            if let Some(error) = message.get("error") {
                let why = error["desc"].as_str().unwrap_or("no reason given");
                return Err(QmpError::Refused {
                    to: command.to_owned(),
                    why: why.to_owned(),
                });
            }
            match message.get_mut("return") {
                Some(answer) => return Ok(answer.take()),
                None => self.keep(message),
            }
        }
    }

    /// Returns the events that have come, oldest first, also from a QEMU that has ended.
    pub(crate) fn events(&mut self) -> &[Event] {
        let wait = Wait::new("nothing", Duration::ZERO);
        // The end of what has come is an error like any other.
        while let Ok(message) = self.message(&wait) {
            self.keep(message);
        }
        &self.events
    }

    fn keep(&mut self, mut message: Value) {
        if let Some(name) = message["event"].as_str()
            && self.events.len() < MOST_EVENTS
        {
            self.events.push(Event {
                name: name.to_owned(),
                data: message["data"].take(),
            });
        }
    }

    /// Reads the next message.
    fn message(&mut self, wait: &Wait<'_>) -> Result<Value, QmpError> {
        loop {
            if let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.begun.drain(..=end).collect();
                return serde_json::from_slice(&line).map_err(|_| nonsense(wait.to, &line));
            }
            if self.begun.len() > LONGEST {
                return Err(nonsense(wait.to, &self.begun));
            }
            wait.apply(&self.stream)?;
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => {
                    let to = wait.to.to_owned();
                    return Err(QmpError::Closed { to });
                }
                Ok(n) => self.begun.extend_from_slice(&bytes[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(wait.failed(error)),
            }
        }
    }
}

/// Is a wait for an answer.
struct Wait<'a> {
    to: &'a str,
    limit: Duration,
    deadline: Instant,
}

impl<'a> Wait<'a> {
    fn new(to: &'a str, limit: Duration) -> Self {
        Self {
            to,
            limit,
            deadline: Instant::now() + limit,
        }
    }

    /// Lets the socket wait no longer than to the deadline.
    fn apply(&self, stream: &UnixStream) -> Result<(), QmpError> {
        // A time of zero would mean for ever; the kernel rounds up to its tick.
        let left = self.deadline.saturating_duration_since(Instant::now());
        let left = Some(left.max(Duration::from_millis(1)));
        stream
            .set_read_timeout(left)
            .and_then(|()| stream.set_write_timeout(left))
            .map_err(|error| self.failed(error))
    }

    fn failed(&self, source: io::Error) -> QmpError {
        let to = self.to.to_owned();
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => QmpError::Silent {
                to,
                limit: self.limit,
            },
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => QmpError::Closed { to },
            _ => QmpError::Socket { to, source },
        }
    }
}

fn nonsense(to: &str, bytes: &[u8]) -> QmpError {
    let text = String::from_utf8_lossy(bytes);
    QmpError::Nonsense {
        to: to.to_owned(),
        what: text.trim().chars().take(100).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::thread::{self, JoinHandle};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);
    const GREETING: &str = r#"{"QMP": {"version": {}, "capabilities": []}}"#;
    const DONE: &str = r#"{"return": {}}"#;

    /// Plays QEMU: says the first text, then, after each line that it reads, the next one.
    fn play(texts: &'static [&'static str]) -> (UnixStream, JoinHandle<Vec<String>>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let player = thread::spawn(move || {
            let mut lines = BufReader::new(theirs.try_clone().unwrap()).lines();
            let mut heard = Vec::new();
            for (number, text) in texts.iter().enumerate() {
                if number > 0 {
                    heard.push(lines.next().unwrap().unwrap());
                }
                (&theirs).write_all(text.as_bytes()).unwrap();
            }
            heard
        });
        (ours, player)
    }

    #[test]
    fn commands_are_answered_and_events_are_kept() {
        let (stream, player) = play(&[
            "{\"QMP\": {}}\r\n",
            "{\"return\": {}}\n",
            "{\"event\": \"RESUME\"}\r\n{\"return\": {\"status\": \"running\"}}\r\n{\"event\": \
             \"SHUTDOWN\", \"data\": {\"reason\": \"guest-reset\"}}\n",
        ]);
        let mut qmp = Qmp::greet(stream, LIMIT).unwrap();
        let answer = qmp.ask("query-status", LIMIT).unwrap();
        assert_eq!(answer["status"], "running");
        assert_eq!(
            player.join().unwrap(),
            [
                r#"{"execute":"qmp_capabilities"}"#,
                r#"{"execute":"query-status"}"#
            ]
        );
        let events = qmp.events();
        assert_eq!(events[0].name, "RESUME");
        assert_eq!(events[1].data["reason"], "guest-reset");
    }

    #[test]
    fn what_goes_wrong_is_told_in_time() {
        let short = Duration::from_millis(50);
        for (texts, message) in [
            (
                &[""][..],
                "it closed the connection instead of answering the call",
            ),
            (&["hello\n"], "the answer to the call makes no sense: hello"),
            (
                &["{\"hello\": 1}\n"],
                "the answer to the call makes no sense: {\"hello\":1}",
            ),
            (
                &["{\"QMP\": 1}\n", "{\"error\": {\"desc\": \"not now\"}}\n"],
                "qmp_capabilities was refused: not now",
            ),
            (
                &["{\"QMP\": 1}\n", "{\"retu"],
                "it closed the connection instead of answering qmp_capabilities",
            ),
        ] {
            let (stream, player) = play(texts);
            let error = Qmp::greet(stream, LIMIT).unwrap_err();
            assert_eq!(error.to_string(), message);
            player.join().unwrap();
        }
        let (stream, _silent) = UnixStream::pair().unwrap();
        assert_eq!(
            Qmp::greet(stream, short).unwrap_err().to_string(),
            "it did not answer the call within 50 ms"
        );
    }

    #[test]
    fn a_message_without_end_does_not_fill_the_memory() {
        let (stream, mut theirs) = UnixStream::pair().unwrap();
        let player = thread::spawn(move || while theirs.write_all(&[b'x'; 4096]).is_ok() {});
        let error = Qmp::greet(stream, LIMIT).unwrap_err();
        assert!(matches!(error, QmpError::Nonsense { .. }), "{error}");
        player.join().unwrap();
    }

    #[test]
    fn events_of_a_qemu_that_has_ended_are_still_there() {
        let (stream, mut theirs) = UnixStream::pair().unwrap();
        for line in [GREETING, DONE, r#"{"event": "RESET"}"#] {
            writeln!(theirs, "{line}").unwrap();
        }
        let mut qmp = Qmp::greet(stream, LIMIT).unwrap();
        drop(theirs);
        assert_eq!(qmp.events()[0].name, "RESET");
        assert_eq!(qmp.events().len(), 1);
    }
}
