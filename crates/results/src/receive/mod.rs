//! From the lines of an instance to the facts of a cell.
//!
//! A line is believed only if its checksum matches and its number follows the one before; a cell
//! is done only if everything from `hello` to `end` has arrived and the sums agree with the lists.
//! Whatever is wrong becomes an [`Incomplete`], which names what is missing.
//!
//! * `sequence`: one stream of records, whole and in order;
//! * `sets`: heads of sets and their lists, as they come;
//! * `divide`: what becomes of them, when it is known when the phases of a load really were;
//! * `trace`: names for what the kernel's events give by number.

mod divide;
mod sequence;
mod sets;
#[cfg(test)]
mod tests;
mod trace;

use std::mem;

use tare_host::visible_in_line;
use tare_wire::PROTOCOL;
use tare_wire::line::{MAX_PAYLOAD, Stream};
use tare_wire::packed::Malformed;
use tare_wire::record::{self, Record};
use thiserror::Error;

use self::sets::Sets;
use self::trace::Collector;
use crate::bounds;
use crate::model::{
    self, Calibration, Counter, Exceeded, Fact, Frequency, Labels, Preparation, Program, Value,
};
use crate::work::Work;

pub use divide::Phase;
pub use sequence::Sequence;
pub use trace::traces;

/// The room for the records of one that is only started: some values and facts.
const ROOM_OF_STARTED: u64 = 64 << 10;

/// The room that a text takes, besides its own bytes.
pub const TEXT: usize = 48;

/// The most remarks and facts of one instance.
const MOST_NOTICES: usize = 1_000;
const MOST_FACTS: usize = 10_000;

/// Collects the records of one instance. Its memory is bounded, whatever arrives.
#[derive(Debug)]
pub struct Receiver {
    sequence: Sequence,
    preparation: Option<Preparation>,
    calibration: Option<Calibration>,
    ready_tsc: u64,
    program: Program,
    record: model::Record,
    sets: Sets,
    traces: Collector,
    notices: Vec<String>,
    cut_short: bool,
    /// Whether its plan has a limit above which it reports values.
    has_limit: bool,
}

/// The kind of a line, as far as its reader needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The instance is ready: the measured code starts.
    Ready,
    /// The first sample is due at this time of the place's clock.
    Begins {
        /// CLOCK_MONOTONIC, or the time since the start where there is no kernel.
        origin_ns: u64,
    },
    /// A set reports its progress.
    Live(record::Live),
    /// A value above the plan's limit was seen.
    Exceeded(Exceeded),
    /// A remark, or how it is prepared.
    Remark,
    /// Another record: of what was measured.
    Record,
    /// The last record: nothing follows.
    Last,
    /// No record.
    Other,
}

/// Everything that an instance reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The measuring program, its preparation, and its facts about its place.
    pub program: Program,
    /// Remarks of the agent.
    pub notices: Vec<String>,
    /// Whether it was asked to end before its plan was done, by whomever.
    pub cut_short: bool,
    /// The measurements other than sets.
    record: model::Record,
    sets: Sets,
}

/// The report of an instance that was only started.
#[derive(Clone, Debug, PartialEq)]
pub struct StartedUp {
    /// The TSC of its place when it was ready.
    pub ready_tsc: u64,
    /// What else it told.
    pub values: Vec<Value>,
}

/// Says why an instance's records are not a whole cell.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Incomplete {
    /// No record came.
    #[error("received no record{}", tail(.last_words))]
    Silent {
        /// The last lines that were no records.
        last_words: Vec<String>,
    },
    /// The speaker is of another protocol.
    #[error(
        "the agent speaks protocol {theirs} and this tare {PROTOCOL}; build both from one source \
         (make build)"
    )]
    OtherProtocol {
        /// Protocol of the speaker.
        theirs: u16,
    },
    /// Records are missing.
    #[error("records {from} to {to} were lost on the way")]
    Lost {
        /// First one that is missing.
        from: u64,
        /// Last one that is missing.
        to: u64,
    },
    /// A record arrived twice or out of order.
    #[error("expected record {expected}, received {got}")]
    OutOfOrder {
        /// Number that was expected.
        expected: u64,
        /// Number that was received.
        got: u64,
    },
    /// A record arrived damaged.
    #[error("record {number} arrived damaged ({what})")]
    Damaged {
        /// Number that was expected.
        number: u64,
        /// The problem with it.
        what: &'static str,
    },
    /// The measured code gave up.
    #[error("{text}")]
    Failed {
        /// What, why, and what to do.
        text: String,
    },
    /// The records stopped before the end.
    #[error("the records broke off after number {last}{}", tail(.last_words))]
    BrokeOff {
        /// Last one that came.
        last: u64,
        /// The last lines that were no records.
        last_words: Vec<String>,
    },
    /// More came than the instance's plan can have.
    #[error("it sent more than its plan can have: {what}")]
    TooMuch {
        /// How much its plan can have.
        what: String,
    },
    /// A figure is one that no measurement can have.
    #[error("the records are not those of a measurement: {what}")]
    OutOfBounds {
        /// Which one, and what it may be.
        what: String,
    },
    /// All records came, but they contradict each other.
    #[error("the records contradict each other: {what}")]
    Contradiction {
        /// Which ones, and how.
        what: String,
    },
}

impl Default for Receiver {
    fn default() -> Self {
        Self::with_room(sequence::ROOM)
    }
}

impl Receiver {
    fn with_room(room: u64) -> Self {
        Self {
            sequence: Sequence::with_room(Stream::default(), room),
            preparation: None,
            calibration: None,
            ready_tsc: 0,
            program: Program::default(),
            record: model::Record::default(),
            sets: Sets::default(),
            traces: Collector::default(),
            notices: Vec::new(),
            cut_short: false,
            has_limit: true,
        }
    }

    /// Makes the receiver of an instance that measures: with room for twice its buffers, since a
    /// row takes more here than there, and for what needs no buffers.
    pub fn of(work: &Work) -> Self {
        let buffers = work.buffer_bytes.saturating_mul(2);
        Self {
            has_limit: work.above.is_some(),
            ..Self::with_room(buffers.saturating_add(sequence::ROOM))
        }
    }

    /// Makes the receiver of an instance that is only started ([`started`](Self::started)).
    pub fn of_started() -> Self {
        Self::with_room(ROOM_OF_STARTED)
    }

    /// Takes one line, with or without its newline.
    pub fn line(&mut self, line: &[u8]) -> Seen {
        if self.sequence.is_full() {
            return Seen::Other;
        }
        let mut room = [0; MAX_PAYLOAD];
        let taken = self.sequence.decode(line, &mut room);
        let seen = taken.map_or_else(
            |seen| seen,
            |record| {
                self.record(&record).unwrap_or_else(|Malformed| {
                    self.sequence.damaged("its list is malformed");
                    Seen::Record
                })
            },
        );
        for (has, most, what) in [
            (self.notices.len(), MOST_NOTICES, "remarks"),
            (self.program.facts.len(), MOST_FACTS, "facts"),
            (
                self.program.counters.len(),
                bounds::MOST_COUNTERS,
                "counters",
            ),
            (self.record.values.len(), bounds::MOST_VALUES, "values"),
            (self.sets.0.len(), bounds::MOST_SENT_SETS, "sets"),
            (self.traces.len(), bounds::MOST_TRACES, "traced samples"),
        ] {
            if has > most {
                self.sequence.fill(format!("{most} {what}"));
            }
        }
        if self.sequence.is_full() {
            // Nothing of it is of use.
            *self = Self {
                sequence: mem::take(&mut self.sequence),
                ..Self::default()
            };
        }
        seen
    }

    /// Says why nothing that comes can make a whole cell any more: there was more than its plan can
    /// have. None if that is not so.
    pub fn too_much(&self) -> Option<String> {
        self.sequence.is_full().then(|| self.sequence.first_error())
    }

    /// Returns how the instance was prepared, once it has said so.
    pub fn preparation(&self) -> Option<&Preparation> {
        self.preparation.as_ref()
    }

    /// Returns what an instance told that was only started: its values, and the TSC when it was
    /// ready. It measures nothing, and so has neither calibration nor sets.
    ///
    /// # Errors
    ///
    /// As [`Receiver::finish`].
    pub fn started(mut self) -> Result<StartedUp, Incomplete> {
        self.sequence.check_whole()?;
        bounds::check_rest(&self.record).map_err(|what| Incomplete::OutOfBounds { what })?;
        Ok(StartedUp {
            ready_tsc: self.ready_tsc,
            values: self.record.values,
        })
    }

    /// Returns the facts of the cell.
    ///
    /// # Errors
    ///
    /// Returns [`Incomplete`] with the first thing that was wrong.
    pub fn finish(mut self) -> Result<Received, Incomplete> {
        self.sequence.check_whole()?;
        let contradiction = |what| Incomplete::Contradiction { what };
        let missing = |what| contradiction(format!("no {what} record among them"));
        let program = Program {
            preparation: self.preparation.ok_or_else(|| missing("ready"))?,
            calibration: self.calibration.ok_or_else(|| missing("calibration"))?,
            ..self.program
        };
        let traces = self.traces.finish().map_err(|Malformed| {
            contradiction("the trace events do not match their samples".to_owned())
        })?;
        let of_exceeded = self.record.exceeded.iter().map(|exceeded| exceeded.set);
        let named = of_exceeded.chain(traces.iter().map(|trace| trace.set));
        self.sets.check(named).map_err(contradiction)?;
        let record = model::Record {
            traces,
            ..self.record
        };
        bounds::check_program(&program)
            .and_then(|()| self.sets.check_bounds())
            .and_then(|()| bounds::check_rest(&record))
            .map_err(|what| Incomplete::OutOfBounds { what })?;
        Ok(Received {
            program,
            notices: self.notices,
            cut_short: self.cut_short,
            record,
            sets: self.sets,
        })
    }

    fn record(&mut self, record: &Record<'_>) -> Result<Seen, Malformed> {
        let texts = |texts: &[&str]| -> usize { texts.iter().map(|text| text.len() + TEXT).sum() };
        let kept = match *record {
            Record::Frequency(claim) => texts(&[claim.detail]),
            Record::Counter(counter) => texts(&[counter.name, counter.labels]),
            Record::Fact(fact) => texts(&[fact.name, fact.labels, fact.value]),
            Record::Value(value) => texts(&[value.measure, value.labels, value.unit]),
            Record::Set(ref set) => texts(&[set.measure, set.labels]) + size_of::<sets::Set>(),
            Record::Trace(_) => size_of::<model::Trace>(),
            Record::Name(ref name) => texts(&[name.of, name.name]),
            Record::Notice(notice) => texts(&[notice.text]),
            _ => 0,
        };
        self.sequence.take(kept);
        match *record {
            Record::Hello(hello) => {
                self.program.agent.version = hello.version.to_owned();
                self.program.agent.environment = hello.environment.to_owned();
                return Ok(Seen::Remark);
            }
            Record::Ready(ready) => {
                self.ready_tsc = ready.tsc;
                self.preparation = Some(Preparation {
                    cpu: ready.cpu,
                    buffer_bytes: ready.buffer_bytes,
                    locked: ready.locked,
                    latency_held: ready.latency_held,
                });
                return Ok(Seen::Ready);
            }
            Record::Calibration(calibration) => {
                self.calibration = Some(calibration);
                return Ok(Seen::Remark);
            }
            Record::Frequency(claim) => self.program.frequencies.push(Frequency {
                source: claim.source,
                hz: claim.hz,
                uncertainty_ppm: claim.uncertainty_ppm,
                detail: claim.detail.to_owned(),
            }),
            Record::Counter(counter) => self.program.counters.push(Counter {
                name: counter.name.to_owned(),
                count: counter.count,
                labels: labels(counter.labels)?,
            }),
            Record::Fact(fact) => self.program.facts.push(Fact {
                name: fact.name.to_owned(),
                labels: labels(fact.labels)?,
                value: fact.value.to_owned(),
            }),
            Record::Value(value) => self.record.values.push(Value {
                measure: value.measure.to_owned(),
                labels: labels(value.labels)?,
                unit: value.unit.to_owned(),
                value: value.value,
            }),
            Record::Set(ref set) => self.sets.head(set)?,
            Record::Parts(_)
            | Record::Counts(_)
            | Record::Events(_)
            | Record::Raw(_)
            | Record::Envelope(_) => {
                let kept = self.sets.list(record)?;
                self.sequence.take(kept);
            }
            // A load's, which has its own stream.
            Record::Going | Record::Achieved(_) | Record::Phase(_) | Record::Leftovers(_) => {
                let what = format!("a {} record among them", record.kind());
                self.sequence.error(Incomplete::Contradiction { what });
            }
            Record::Begins(record::Begins { origin_ns }) => return Ok(Seen::Begins { origin_ns }),
            Record::Live(live) => return Ok(Seen::Live(live)),
            Record::Exceeded(_) if !self.has_limit => {
                self.sequence
                    .fill("no limit that a value is above".to_owned());
            }
            Record::Exceeded(exceeded) => {
                if self.record.exceeded.len() < bounds::MOST_EXCEEDED {
                    self.record.exceeded.push(exceeded);
                }
                return Ok(Seen::Exceeded(exceeded));
            }
            Record::Trace(_) | Record::TraceEvents(_) | Record::Name(_) => {
                let kept = self.traces.take(record)?;
                self.sequence.take(kept);
            }
            Record::Notice(notice) => {
                self.notices.push(visible_in_line(notice.text).into_owned());
                return Ok(Seen::Remark);
            }
            Record::CutShort => self.cut_short = true,
            Record::Failure(_) | Record::End(_) => return Ok(Seen::Last),
        }
        Ok(Seen::Record)
    }
}

fn labels(words: &str) -> Result<Labels, Malformed> {
    Labels::parse(words).map_err(|_| Malformed)
}

fn tail(lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        lines => format!("; last output: {}", lines.join(" / ")),
    }
}
