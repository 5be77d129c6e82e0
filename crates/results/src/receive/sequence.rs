//! One stream of records: each line is checked as it comes.

use std::collections::VecDeque;
use std::mem;

use tare_host::visible_in_line;
use tare_wire::PROTOCOL;
use tare_wire::line::{Damage, Line, MAX_PAYLOAD, Stream, decode_of};
use tare_wire::record::Record;

use super::{Incomplete, Seen};

/// The number of last lines that are kept to explain a failure.
const KEPT_LINES: usize = 10;

/// The room for what is kept of the records of a stream that needs no buffers, in bytes.
pub(super) const ROOM: u64 = 32 << 20;

/// A stream of records, from its hello to its end.
#[derive(Debug)]
pub struct Sequence {
    stream: Stream,
    /// How many bytes may be kept of it, and how many more may yet.
    room: u64,
    left: u64,
    is_full: bool,
    next: u64,
    other: VecDeque<String>,
    error: Option<Incomplete>,
    ended: bool,
}

impl Default for Sequence {
    fn default() -> Self {
        Self::of(Stream::default())
    }
}

impl Sequence {
    /// Creates the sequence of a stream.
    pub fn of(stream: Stream) -> Self {
        Self::with_room(stream, ROOM)
    }

    /// Creates the sequence of a stream that keeps at most `room` bytes of records.
    pub(super) fn with_room(stream: Stream, room: u64) -> Self {
        Self {
            stream,
            room,
            left: room,
            is_full: false,
            next: 0,
            other: VecDeque::new(),
            error: None,
            ended: false,
        }
    }

    /// Returns the record in a line, which may end with a newline.
    ///
    /// # Errors
    ///
    /// Returns [`Seen::Other`] if the line has no record of the stream, [`Seen::Record`] if its
    /// record is damaged.
    pub fn decode<'r>(
        &mut self,
        line: &[u8],
        room: &'r mut [u8; MAX_PAYLOAD],
    ) -> Result<Record<'r>, Seen> {
        let (sequence, record) = match decode_of(self.stream, line, room) {
            Line::Record { sequence, record } => (sequence, record),
            Line::Damaged(damage) => {
                self.next += 1;
                self.damaged(match damage {
                    Damage::Form => "fields are missing",
                    Damage::Checksum => "its checksum does not match",
                    Damage::Payload => "this version does not know its content",
                });
                return Err(Seen::Record);
            }
            Line::Other => {
                self.keep(line);
                return Err(Seen::Other);
            }
        };
        let expected = self.next;
        if sequence > expected {
            let (from, to) = (expected, sequence - 1);
            self.error(Incomplete::Lost { from, to });
        } else if sequence < expected {
            let got = sequence;
            self.error(Incomplete::OutOfOrder { expected, got });
        }
        self.next = sequence.saturating_add(1);
        match &record {
            Record::Hello(hello) if hello.protocol != PROTOCOL => {
                let theirs = hello.protocol;
                self.error(Incomplete::OtherProtocol { theirs });
            }
            Record::Failure(failure) => {
                let text = visible_in_line(failure.text).into_owned();
                self.error(Incomplete::Failed { text });
            }
            Record::End(end) => {
                self.ended = true;
                if end.records != sequence {
                    let what = format!(
                        "the last one counts {} before it, {sequence} came",
                        end.records
                    );
                    self.error(Incomplete::Contradiction { what });
                }
            }
            _ => {}
        }
        Ok(record)
    }

    /// Notes that the last record is damaged.
    pub(super) fn damaged(&mut self, what: &'static str) {
        let number = self.next - 1;
        self.error(Incomplete::Damaged { number, what });
    }

    /// Keeps the first thing that went wrong: what follows is its consequence.
    pub fn error(&mut self, error: Incomplete) {
        self.error.get_or_insert(error);
    }

    /// Takes room for what is kept of the records.
    pub fn take(&mut self, bytes: usize) {
        match self.left.checked_sub(bytes as u64) {
            Some(left) => self.left = left,
            None => self.fill(format!("{} KiB of records", self.room >> 10)),
        }
    }

    /// Notes that more came than the plan can have: whatever went wrong before, nothing is to be
    /// kept any more.
    pub(super) fn fill(&mut self, what: String) {
        self.is_full = true;
        self.error = Some(Incomplete::TooMuch { what });
    }

    /// Returns whether more came than the plan can have.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Says what went wrong first.
    pub(super) fn first_error(&self) -> String {
        self.error.iter().map(ToString::to_string).collect()
    }

    /// Checks that all records came, from the first to the last.
    ///
    /// # Errors
    ///
    /// Returns [`Incomplete`] with the first thing that was wrong.
    pub fn check_whole(&mut self) -> Result<(), Incomplete> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let last_words = mem::take(&mut self.other).into();
        match (self.next.checked_sub(1), self.ended) {
            (None, _) => Err(Incomplete::Silent { last_words }),
            (Some(last), false) => Err(Incomplete::BrokeOff { last, last_words }),
            (Some(_), true) => Ok(()),
        }
    }

    /// Keeps a line that is no record. Lines among a load's records are not the load's.
    fn keep(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let printable: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
        if self.stream == Stream::Load || printable.trim().is_empty() {
            return;
        }
        if self.other.len() == KEPT_LINES {
            self.other.pop_front();
        }
        self.other.push_back(printable);
    }
}
