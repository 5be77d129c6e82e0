//! QMP, the protocol by which QEMU is asked and told things: JSON, one message a line.
//!
//! The client is small on purpose: it sends commands without arguments, one at a time, and of the
//! events that come in between it keeps why QEMU ended. Every wait has a limit, and nothing is read
//! while a guest runs: the messages of QEMU stay in the socket until they are needed.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};
use tare_guard::{Lines, Patience};
use thiserror::Error;

/// The length of the longest message that is believed to be one.
const LONGEST: usize = 1 << 20;

/// How long the last messages are looked for: they have come already.
const LOOK: Duration = Duration::from_millis(20);

/// A connection to QEMU's monitor.
#[derive(Debug)]
pub(crate) struct Qmp {
    stream: UnixStream,
    lines: Lines,
    /// Messages that have come and nobody has asked for yet, and whether each is whole.
    came: VecDeque<(Vec<u8>, bool)>,
    /// The reason of the last SHUTDOWN event.
    shutdown: Option<String>,
}

/// An error of the dialogue.
#[derive(Debug, Error)]
pub(crate) enum QmpError {
    /// QEMU has closed the connection.
    #[error("it closed the connection instead of answering {to}")]
    Closed {
        /// The request.
        to: String,
    },
    /// There is no answer, or another one than expected.
    #[error("{0}")]
    Failed(String),
}

/// Returns why QEMU ended, by its last event.
pub(crate) fn shutdown_reason_in(said: &str) -> Option<String> {
    let messages = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    messages
        .filter_map(|message: Value| shutdown_of(&message))
        .next_back()
}

fn shutdown_of(message: &Value) -> Option<String> {
    let reason = message["data"]["reason"].as_str()?;
    (message["event"] == "SHUTDOWN").then(|| reason.to_owned())
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
            lines: Lines::new(LONGEST),
            came: VecDeque::new(),
            shutdown: None,
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
    /// As [`greet`](Self::greet), and if QEMU refuses.
    pub(crate) fn ask(&mut self, command: &str, limit: Duration) -> Result<Value, QmpError> {
        let wait = Wait::new(command, limit);
        let mut line = json!({ "execute": command }).to_string();
        line.push('\n');
        // A time of zero would mean no limit.
        let most = Some(wait.patience.left().max(Duration::from_millis(1)));
        self.stream
            .set_write_timeout(most)
            .and_then(|()| self.stream.write_all(line.as_bytes()))
            .map_err(|error| wait.failed(error))?;
        loop {
            let mut message = self.message(&wait)?;
            if let Some(error) = message.get("error") {
                let why = error["desc"].as_str().unwrap_or("no reason given");
                return Err(QmpError::Failed(format!("{command} was refused: {why}")));
            }
            match message.get_mut("return") {
                Some(answer) => return Ok(answer.take()),
                None => self.keep(&message),
            }
        }
    }

    /// Returns why QEMU ended, or is about to: `guest-reset`.
    pub(crate) fn shutdown_reason(&mut self) -> Option<&str> {
        let wait = Wait::new("nothing", LOOK);
        // The end of what has come is an error like any other.
        while let Ok(message) = self.message(&wait) {
            self.keep(&message);
        }
        self.shutdown.as_deref()
    }

    fn keep(&mut self, message: &Value) {
        if let Some(reason) = shutdown_of(message) {
            self.shutdown = Some(reason);
        }
    }

    /// Reads the next message.
    fn message(&mut self, wait: &Wait<'_>) -> Result<Value, QmpError> {
        loop {
            if let Some((line, is_whole)) = self.came.pop_front() {
                let message = serde_json::from_slice(&line).ok().filter(|_| is_whole);
                return message.ok_or_else(|| nonsense(wait.to, &line));
            }
            let came = wait.patience.wait(&[self.stream.as_fd()]);
            if !came.map_err(|error| wait.failed(error))? {
                return Err(wait.failed(io::ErrorKind::TimedOut.into()));
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => {
                    let to = wait.to.to_owned();
                    return Err(QmpError::Closed { to });
                }
                Ok(n) => {
                    let came = &mut self.came;
                    let keep = |line: &[u8], is_end| came.push_back((line.to_vec(), is_end));
                    self.lines.take(&bytes[..n], keep);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(wait.failed(error)),
            }
        }
    }
}

/// A wait for an answer.
struct Wait<'a> {
    to: &'a str,
    limit: Duration,
    patience: Patience,
}

impl<'a> Wait<'a> {
    fn new(to: &'a str, limit: Duration) -> Self {
        Self {
            to,
            limit,
            patience: Patience::new(limit),
        }
    }

    fn failed(&self, source: io::Error) -> QmpError {
        let to = self.to;
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let limit = self.limit.as_millis();
                QmpError::Failed(format!("it did not answer {to} within {limit} ms"))
            }
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                QmpError::Closed { to: to.to_owned() }
            }
            _ => QmpError::Failed(format!(
                "the socket fails while waiting for an answer to {to}: {source}"
            )),
        }
    }
}

fn nonsense(to: &str, bytes: &[u8]) -> QmpError {
    let text = String::from_utf8_lossy(bytes);
    let text: String = text.trim().chars().take(100).collect();
    QmpError::Failed(format!("unexpected answer to {to}: {text}"))
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
    fn commands_are_answered_and_the_reason_of_the_end_is_kept() {
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
        assert_eq!(qmp.shutdown_reason(), Some("guest-reset"));
    }

    #[test]
    fn what_goes_wrong_is_told_in_time() {
        let short = Duration::from_millis(50);
        for (texts, message) in [
            (
                &[""][..],
                "it closed the connection instead of answering the call",
            ),
            (&["hello\n"], "unexpected answer to the call: hello"),
            (
                &["{\"hello\": 1}\n"],
                "unexpected answer to the call: {\"hello\":1}",
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
        assert!(error.to_string().contains("unexpected answer"), "{error}");
        player.join().unwrap();
    }

    #[test]
    fn events_without_end_are_read_no_longer_than_an_answer_is_waited_for() {
        let (stream, mut theirs) = UnixStream::pair().unwrap();
        let player =
            thread::spawn(move || while theirs.write_all(b"{\"event\": \"X\"}\n").is_ok() {});
        let mut qmp = Qmp {
            stream,
            lines: Lines::new(LONGEST),
            came: VecDeque::new(),
            shutdown: None,
        };
        assert_eq!(qmp.shutdown_reason(), None);
        let short = Duration::from_millis(50);
        let error = qmp.ask("query-status", short).unwrap_err();
        assert_eq!(
            error.to_string(),
            "it did not answer query-status within 50 ms"
        );
        assert!(qmp.came.len() <= 4096);
        drop(qmp);
        player.join().unwrap();
    }

    #[test]
    fn the_reason_of_a_qemu_that_has_ended_is_still_there() {
        const SHUTDOWN: &str = r#"{"event": "SHUTDOWN", "data": {"reason": "host-qmp-quit"}}"#;
        let (stream, mut theirs) = UnixStream::pair().unwrap();
        for line in [GREETING, DONE, SHUTDOWN] {
            writeln!(theirs, "{line}").unwrap();
        }
        let mut qmp = Qmp::greet(stream, LIMIT).unwrap();
        drop(theirs);
        assert_eq!(qmp.shutdown_reason(), Some("host-qmp-quit"));
    }
}
