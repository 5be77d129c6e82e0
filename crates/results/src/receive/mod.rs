//! From the lines of an instance to the facts of a cell.
//!
//! A line is believed only if its checksum matches and its number follows the one before; a cell
//! is done only if everything from `hello` to `end` has arrived and the sums agree with the lists.
//! Whatever is wrong becomes an [`Incomplete`], which names what is missing.

mod parts;
mod trace;

use std::collections::VecDeque;

use tare_wire::PROTOCOL;
use tare_wire::line::{Damage, Line, MAX_PAYLOAD, decode};
use tare_wire::packed::{Malformed, Packed};
use tare_wire::record::{self, Record};
use tare_wire::trace::unzigzag;
use thiserror::Error;

use crate::model::{
    Bin, Calibration, Counter, Event, Exceeded, Fact, Frequency, FrequencySource, Labels,
    Preparation, SetHead, SetSamples, Trace, Unit, Value,
};

pub use parts::Phase;
use parts::{Divided, PartCount};
use trace::Collector;

/// Is how many lines that are no records are kept, to tell what an instance said before it failed.
const KEPT_LINES: usize = 10;

/// Collects the records of one instance.
#[derive(Debug, Default)]
pub struct Receiver {
    next: u64,
    version: String,
    environment: String,
    preparation: Option<Preparation>,
    calibration: Option<Calibration>,
    frequencies: Vec<Frequency>,
    counters: Vec<Counter>,
    facts: Vec<Fact>,
    values: Vec<Value>,
    sets: Vec<Set>,
    exceeded: Vec<Exceeded>,
    traces: Collector,
    notices: Vec<String>,
    other: VecDeque<String>,
    trouble: Option<Incomplete>,
    ended: bool,
    /// How many slots of each phase were before its load began.
    apart: Vec<u32>,
}

/// One set as it comes.
#[derive(Clone, Debug, PartialEq)]
struct Set {
    head: SetHead,
    samples: SetSamples,
    divided: Divided,
}

/// What a line was, as far as the one who waits for it needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The instance is ready: the measured code starts.
    Ready,
    /// The first sample is due at this time of the place's clock.
    Begins {
        /// CLOCK_MONOTONIC, or the time since the start where there is no kernel.
        origin_ns: u64,
    },
    /// A set tells how far it is.
    Live(record::Live),
    /// A value above the plan's limit was seen.
    Exceeded(Exceeded),
    /// Another record.
    Record,
    /// The last record: nothing follows.
    Last,
    /// No record.
    Other,
}

/// Everything that an instance reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// Version of the agent or image.
    pub version: String,
    /// What the measured code ran on: `linux` or `unikernel`.
    pub environment: String,
    /// How it was prepared.
    pub preparation: Preparation,
    /// What the stamps and the loop cost.
    pub calibration: Calibration,
    /// What each source claims of the TSC's frequency.
    pub frequencies: Vec<Frequency>,
    /// What was counted on the measured CPU meanwhile.
    pub counters: Vec<Counter>,
    /// What the place looks like from inside.
    pub facts: Vec<Fact>,
    /// Numbers that are not sampled.
    pub values: Vec<Value>,
    /// Values above the plan's limit.
    pub exceeded: Vec<Exceeded>,
    /// What the kernel did around the greatest samples.
    pub traces: Vec<Trace>,
    /// What the agent remarked.
    pub notices: Vec<String>,
    sets: Vec<Set>,
}

/// Says why an instance's records are not a whole cell.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Incomplete {
    /// No record came.
    #[error("no record came{}", tail(.last_words))]
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
    #[error("record {got} came where {expected} was due")]
    OutOfOrder {
        /// Number that was due.
        expected: u64,
        /// Number that came.
        got: u64,
    },
    /// A record arrived damaged.
    #[error("record {number} arrived damaged ({what})")]
    Damaged {
        /// Number that was due.
        number: u64,
        /// What is wrong with it.
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
    /// All records came, but they contradict each other.
    #[error("the records contradict each other: {what}")]
    Contradiction {
        /// Which ones, and how.
        what: String,
    },
}

impl Receiver {
    /// Takes one line, with or without its newline.
    pub fn line(&mut self, line: &[u8]) -> Seen {
        let mut room = [0; MAX_PAYLOAD];
        let (sequence, record) = match decode(line, &mut room) {
            Line::Record { sequence, record } => (sequence, record),
            Line::Damaged(damage) => {
                let number = self.next;
                self.next += 1;
                let what = describe(damage);
                self.trouble(Incomplete::Damaged { number, what });
                return Seen::Record;
            }
            Line::Other => {
                self.keep(line);
                return Seen::Other;
            }
        };
        self.number(sequence);
        self.record(record)
    }

    /// Returns how the instance was prepared, once it has said so.
    #[must_use]
    pub fn preparation(&self) -> Option<&Preparation> {
        self.preparation.as_ref()
    }

    /// Takes note of how many slots of each phase of wake-ups were before its load began
    /// ([`Load::slots_apart`](crate::model::Load::slots_apart)).
    pub fn count_apart(&mut self, slots: Vec<u32>) {
        self.apart = slots;
    }

    /// Returns the facts of the cell.
    ///
    /// # Errors
    ///
    /// Returns [`Incomplete`] with the first thing that was wrong.
    pub fn finish(self) -> Result<Received, Incomplete> {
        let last_words = Vec::from(self.other);
        if let Some(trouble) = self.trouble {
            return Err(trouble);
        }
        if self.next == 0 {
            return Err(Incomplete::Silent { last_words });
        }
        if !self.ended {
            let last = self.next - 1;
            return Err(Incomplete::BrokeOff { last, last_words });
        }
        let missing = |what: &str| Incomplete::Contradiction {
            what: format!("no {what} record among them"),
        };
        let contradiction = |what: String| Incomplete::Contradiction { what };
        if let Some(stray) = self
            .exceeded
            .iter()
            .find(|e| e.set as usize >= self.sets.len())
        {
            return Err(contradiction(format!("there is no set {}", stray.set)));
        }
        let traces = self.traces.finish().map_err(|Malformed| {
            contradiction("the trace events do not fit to their samples".to_owned())
        })?;
        for set in &self.sets {
            agree(set).map_err(contradiction)?;
        }
        Ok(Received {
            version: self.version,
            environment: self.environment,
            preparation: self.preparation.ok_or_else(|| missing("ready"))?,
            calibration: self.calibration.ok_or_else(|| missing("calibration"))?,
            frequencies: self.frequencies,
            counters: self.counters,
            facts: self.facts,
            values: self.values,
            exceeded: self.exceeded,
            traces,
            notices: self.notices,
            sets: self.sets,
        })
    }

    fn number(&mut self, sequence: u64) {
        let expected = self.next;
        if sequence > expected {
            self.trouble(Incomplete::Lost {
                from: expected,
                to: sequence - 1,
            });
        } else if sequence < expected {
            let got = sequence;
            self.trouble(Incomplete::OutOfOrder { expected, got });
        }
        self.next = sequence.saturating_add(1);
    }

    fn record(&mut self, record: Record<'_>) -> Seen {
        let listed = match record {
            Record::Hello(hello) => {
                if hello.protocol != PROTOCOL {
                    let theirs = hello.protocol;
                    self.trouble(Incomplete::OtherProtocol { theirs });
                }
                self.version = hello.version.to_owned();
                self.environment = hello.environment.to_owned();
                Ok(())
            }
            Record::Ready(ready) => {
                self.preparation = Some(preparation(&ready));
                return Seen::Ready;
            }
            Record::Calibration(calibration) => {
                self.calibration = Some(costs(&calibration));
                Ok(())
            }
            Record::Frequency(claim) => {
                self.frequencies.push(frequency(&claim));
                Ok(())
            }
            Record::Counter(counter) => {
                self.counters.push(Counter {
                    name: counter.name.to_owned(),
                    count: counter.count,
                });
                Ok(())
            }
            Record::Fact(fact) => labels(fact.labels).map(|labels| {
                self.facts.push(Fact {
                    name: fact.name.to_owned(),
                    labels,
                    value: fact.value.to_owned(),
                });
            }),
            Record::Value(value) => labels(value.labels).map(|labels| {
                self.values.push(Value {
                    measure: value.measure.to_owned(),
                    labels,
                    unit: value.unit.to_owned(),
                    value: value.value,
                });
            }),
            Record::Set(set) => self.set(&set),
            Record::Parts(list) => Divided::parts(&mut self.sets, list.rows),
            Record::Counts(list) => self.counts(list.rows),
            Record::Events(list) => self.events(list.rows, |samples| &mut samples.events),
            Record::Raw(list) => self.events(list.rows, |samples| &mut samples.raw),
            Record::Envelope(list) => self.envelope(list.rows),
            // A load's, which has a stream of its own.
            Record::Going | Record::Achieved(_) | Record::Phase(_) | Record::Left(_) => {
                let what = format!("a {} record among them", record.kind());
                self.trouble(Incomplete::Contradiction { what });
                Ok(())
            }
            Record::Begins(begins) => {
                let origin_ns = begins.origin_ns;
                return Seen::Begins { origin_ns };
            }
            Record::Live(live) => return Seen::Live(live),
            Record::Exceeded(record::Exceeded { set, index, value }) => {
                let exceeded = Exceeded { set, index, value };
                self.exceeded.push(exceeded);
                return Seen::Exceeded(exceeded);
            }
            Record::Trace(trace) => {
                self.traces.trace(trace);
                Ok(())
            }
            Record::TraceEvents(list) => self.traces.events(list.rows),
            Record::Name(name) => {
                self.traces.name(&name);
                Ok(())
            }
            Record::Notice(notice) => {
                self.notices.push(notice.text.to_owned());
                Ok(())
            }
            Record::Failure(failure) => {
                let text = failure.text.to_owned();
                self.trouble(Incomplete::Failed { text });
                return Seen::Last;
            }
            Record::End(end) => {
                self.ended = true;
                if end.records + 1 != self.next {
                    let what = format!(
                        "the last one counts {} before it, {} came",
                        end.records,
                        self.next - 1
                    );
                    self.trouble(Incomplete::Contradiction { what });
                }
                return Seen::Last;
            }
        };
        if listed.is_err() {
            self.trouble(Incomplete::Damaged {
                number: self.next - 1,
                what: "its list is malformed",
            });
        }
        Seen::Record
    }

    /// Takes the head of the next set.
    fn set(&mut self, set: &record::Set<'_>) -> Result<(), Malformed> {
        if set.number as usize != self.sets.len() {
            return Err(Malformed);
        }
        self.sets.push(Set {
            head: head(set)?,
            samples: SetSamples::default(),
            divided: Divided {
                parts: set.parts,
                ..Divided::default()
            },
        });
        Ok(())
    }

    fn of_set(&mut self, number: u64) -> Result<&mut Set, Malformed> {
        let place = usize::try_from(number).map_err(|_| Malformed)?;
        self.sets.get_mut(place).ok_or(Malformed)
    }

    fn counts(&mut self, rows: Packed<'_>) -> Result<(), Malformed> {
        let mut of = None;
        let mut value: u64 = 0;
        for row in rows.rows::<4>() {
            let [set, part, step, count] = row?;
            if of != Some((set, part)) {
                of = Some((set, part));
                value = 0;
            }
            value = value.checked_add(step).ok_or(Malformed)?;
            let part = u32::try_from(part).map_err(|_| Malformed)?;
            let counts = &mut self.of_set(set)?.divided.counts;
            counts.push(PartCount { part, value, count });
        }
        Ok(())
    }

    /// Takes samples with their times.
    fn events(
        &mut self,
        rows: Packed<'_>,
        list: fn(&mut SetSamples) -> &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        let mut of = None;
        let (mut index, mut at): (u64, u64) = (0, 0);
        for row in rows.rows::<4>() {
            let [set, step, time, value] = row?;
            let number = set;
            let set = self.of_set(set)?;
            if of != Some(number) {
                of = Some(number);
                (index, at) = (0, set.head.first);
            }
            index = index.checked_add(step).ok_or(Malformed)?;
            at = match set.head.period {
                0 => at.wrapping_add(time),
                period => {
                    let due = index.checked_mul(period).ok_or(Malformed)?;
                    let due = set.head.first.wrapping_add(due);
                    due.wrapping_add_signed(unzigzag(time))
                }
            };
            list(&mut set.samples).push(Event { index, at, value });
        }
        Ok(())
    }

    fn envelope(&mut self, rows: Packed<'_>) -> Result<(), Malformed> {
        for row in rows.rows::<6>() {
            let [set, bin, n, sum, min, max] = row?;
            let bin = u32::try_from(bin).map_err(|_| Malformed)?;
            let envelope = &mut self.of_set(set)?.samples.envelope;
            envelope.push(Bin {
                bin,
                n,
                sum,
                min,
                max,
            });
        }
        Ok(())
    }

    /// Keeps the first thing that went wrong: what follows is its consequence.
    fn trouble(&mut self, trouble: Incomplete) {
        self.trouble.get_or_insert(trouble);
    }

    fn keep(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let printable: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
        if printable.trim().is_empty() {
            return;
        }
        if self.other.len() == KEPT_LINES {
            self.other.pop_front();
        }
        self.other.push_back(printable);
    }
}

fn describe(damage: Damage) -> &'static str {
    match damage {
        Damage::Form => "fields are missing",
        Damage::Checksum => "its checksum does not match",
        Damage::Payload => "its content is none that this version knows",
    }
}

fn tail(lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        lines => format!("; the last that was said: {}", lines.join(" / ")),
    }
}

fn preparation(ready: &record::Ready) -> Preparation {
    Preparation {
        cpu: ready.cpu,
        buffer_bytes: ready.buffer_bytes,
        locked: ready.locked,
        latency_held: ready.latency_held,
    }
}

fn costs(calibration: &record::Calibration) -> Calibration {
    Calibration {
        fenced_region_cycles: calibration.fenced_region_cycles,
        fenced_cost_cycles: calibration.fenced_cost_cycles,
        published_region_cycles: calibration.published_region_cycles,
        published_cost_cycles: calibration.published_cost_cycles,
        bare_read_cycles: calibration.bare_read_cycles,
        step_cycles: calibration.step_cycles,
        loop_cycles: calibration.loop_cycles,
    }
}

fn frequency(claim: &record::Frequency<'_>) -> Frequency {
    Frequency {
        source: match claim.source {
            record::FrequencySource::CpuidCrystal => FrequencySource::CpuidCrystal,
            record::FrequencySource::CpuidHypervisor => FrequencySource::CpuidHypervisor,
            record::FrequencySource::KernelClock => FrequencySource::KernelClock,
            record::FrequencySource::DisciplinedClock => FrequencySource::DisciplinedClock,
            record::FrequencySource::HardwareTimer => FrequencySource::HardwareTimer,
            record::FrequencySource::ParavirtualClock => FrequencySource::ParavirtualClock,
        },
        hz: claim.hz,
        uncertainty_ppm: claim.uncertainty_ppm,
        detail: claim.detail.to_owned(),
    }
}

fn labels(words: &str) -> Result<Labels, Malformed> {
    Labels::parse(words).map_err(|_| Malformed)
}

fn head(set: &record::Set<'_>) -> Result<SetHead, Malformed> {
    Ok(SetHead {
        measure: set.measure.to_owned(),
        labels: labels(set.labels)?,
        unit: match set.unit {
            record::Unit::Cycles => Unit::Cycles,
            record::Unit::Ns => Unit::Ns,
        },
        n: set.n,
        sum: set.sum,
        min: set.min,
        max: set.max,
        first: set.first,
        last: set.last,
        period: set.period,
        threshold: set.threshold,
        seen: set.seen,
        kept: set.kept,
        unkept_max: set.unkept_max,
        unkept_sum: set.unkept_sum,
        squares_below: set.squares_below,
        uncounted: set.uncounted,
        uncounted_sum: set.uncounted_sum,
        uncounted_max: set.uncounted_max,
        backwards: set.backwards,
        bin: set.bin,
        raw: set.raw,
    })
}

/// Checks the head of a set against its lists; says what contradicts it.
fn agree(set: &Set) -> Result<(), String> {
    let Set {
        head,
        samples,
        divided,
    } = set;
    let listed = samples.events.len() as u64;
    if listed != head.kept {
        return Err(format!(
            "{} samples were to be listed, {listed} are",
            head.kept
        ));
    }
    let due = match head.squares_below {
        Some(_) => Some(head.kept),
        None => head.n.checked_sub(head.uncounted),
    };
    let mut counts = divided.counts.iter();
    let counted = counts.try_fold(0_u64, |sum, row| sum.checked_add(row.count));
    if counted.is_none() || counted != due {
        let told = |n: Option<u64>| n.map_or("more than 2^64".to_owned(), |n| n.to_string());
        let (due, counted) = (told(due), told(counted));
        return Err(format!("{due} samples were to be counted, {counted} are"));
    }
    let rising = divided
        .counts
        .is_sorted_by(|a, b| (a.part, a.value) < (b.part, b.value));
    match rising && divided.is_sound() {
        true => Ok(()),
        false => Err("the counts or their parts are not in ascending order".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Agent, Instance};
    use tare_wire::line::Encoder;
    use tare_wire::packed::Packer;
    use tare_wire::record::{Calibration, End, Failure, Hello, List, Notice, Ready, Set};

    /// Writes the lines of a small measurement of `prime`: 3 samples, one of them a delay.
    fn lines() -> Vec<Vec<u8>> {
        let mut encoder = Encoder::default();
        let mut lines = Vec::new();
        let mut put = |record: Record<'_>| lines.push(encoder.encode(&record).unwrap().to_vec());
        put(Record::Hello(Hello {
            protocol: PROTOCOL,
            version: "1.2.3",
            environment: "linux",
            plan: "",
        }));
        put(Record::Ready(Ready {
            tsc: 1,
            monotonic_ns: Some(2),
            cpu: Some(1),
            buffer_bytes: 64,
            locked: true,
            latency_held: false,
        }));
        put(Record::Calibration(Calibration {
            fenced_region_cycles: 52,
            fenced_cost_cycles: 94.5,
            published_region_cycles: 26,
            published_cost_cycles: 90.0,
            bare_read_cycles: 24.6,
            step_cycles: 26,
            loop_cycles: 0.7,
        }));
        put(Record::Set(Set {
            measure: "duration",
            n: 3,
            first: 1_000,
            last: 9_000,
            sum: 5_200,
            seen: 1,
            kept: 1,
            bin: 8,
            parts: 1,
            ..Set::default()
        }));
        let mut packer = Packer::default();
        packer.push([0, 0, 100, 2]);
        packer.push([0, 0, 4_900, 1]);
        let rows = packer.packed();
        put(Record::Counts(List { rows }));
        let mut packer = Packer::default();
        packer.push([0, 1, 120, 5_000]);
        let rows = packer.packed();
        put(Record::Events(List { rows }));
        put(Record::Notice(Notice { text: "cold" }));
        put(Record::End(End { records: 7 }));
        lines
    }

    fn receive(lines: &[Vec<u8>]) -> Result<Received, Incomplete> {
        let mut receiver = Receiver::default();
        for line in lines {
            receiver.line(line);
        }
        receiver.finish()
    }

    #[test]
    fn whole_records_become_the_facts_of_a_cell() {
        let received = receive(&lines()).unwrap();
        assert_eq!(received.notices, ["cold"]);
        let (record, samples, _) = received.into_record(Agent::default(), Instance::default(), &[]);
        assert_eq!(record.sets[0].measure, "duration");
        assert_eq!(record.programs[0].agent.version, "1.2.3");
        assert_eq!(samples.sets[0].counts[1].value, 5_000);
        assert_eq!(
            samples.sets[0].events,
            [Event {
                index: 1,
                at: 1_120,
                value: 5_000
            }]
        );
    }

    #[test]
    fn readiness_and_the_end_are_seen_as_they_come() {
        let mut receiver = Receiver::default();
        let seen: Vec<Seen> = lines().iter().map(|line| receiver.line(line)).collect();
        assert_eq!(seen[1], Seen::Ready);
        assert_eq!(seen[7], Seen::Last);
        assert_eq!(receiver.line(b"Linux version 6.1"), Seen::Other);
    }

    #[test]
    fn chatter_between_records_is_skipped() {
        let mut lines = lines();
        lines.insert(3, b"[    1.234] random: crng init done\r\n".to_vec());
        lines.insert(0, b"SeaBIOS\n".to_vec());
        assert!(receive(&lines).is_ok());
    }

    #[test]
    fn every_single_lost_line_is_noticed() {
        for lost in 0..lines().len() {
            let mut lines = lines();
            lines.remove(lost);
            assert!(receive(&lines).is_err(), "line {lost}");
        }
    }

    #[test]
    fn a_repeated_line_is_noticed() {
        let mut lines = lines();
        lines.insert(4, lines[3].clone());
        assert_eq!(
            receive(&lines),
            Err(Incomplete::OutOfOrder {
                expected: 4,
                got: 3
            })
        );
    }

    #[test]
    fn a_damaged_line_is_named() {
        let mut lines = lines();
        lines[4][20] ^= 1;
        assert_eq!(
            receive(&lines).unwrap_err().to_string(),
            "record 4 arrived damaged (its checksum does not match)"
        );
    }

    #[test]
    fn a_failure_is_passed_on_as_it_was_said() {
        let mut lines = lines();
        lines.truncate(2);
        let mut encoder = Encoder::default();
        for _ in 0..2 {
            encoder
                .encode(&Record::Notice(Notice { text: "" }))
                .unwrap();
        }
        let text = "limit must be from 3 to 65536, not 0";
        let failure = Record::Failure(Failure { text });
        lines.push(encoder.encode(&failure).unwrap().to_vec());
        assert_eq!(receive(&lines).unwrap_err().to_string(), text);
    }

    #[test]
    fn silence_is_told_with_the_last_words() {
        assert_eq!(receive(&[]).unwrap_err().to_string(), "no record came");
        let panic = b"Kernel panic - not syncing\x1b[0m\n".to_vec();
        assert_eq!(
            receive(&[panic]).unwrap_err().to_string(),
            "no record came; the last that was said: Kernel panic - not syncing[0m"
        );
    }

    #[test]
    fn lists_that_do_not_match_the_sums_are_a_contradiction() {
        let mut lines = lines();
        let mut encoder = Encoder::default();
        for _ in 0..3 {
            encoder
                .encode(&Record::Notice(Notice { text: "" }))
                .unwrap();
        }
        let set = Set {
            measure: "duration",
            n: 4,
            kept: 1,
            ..Set::default()
        };
        lines[3] = encoder.encode(&Record::Set(set)).unwrap().to_vec();
        let error = receive(&lines).unwrap_err();
        assert!(matches!(error, Incomplete::Contradiction { .. }), "{error}");
    }
}
