//! From the lines of an instance to the facts of a cell.
//!
//! A line is believed only if its checksum matches and its number follows the one before; a cell
//! is done only if everything from `hello` to `end` has arrived and the sums agree with the lists.
//! Whatever is wrong becomes an [`Incomplete`], which names what is missing.

mod wakeups;

use std::collections::VecDeque;

use tare_wire::PROTOCOL;
use tare_wire::line::{Damage, Line, MAX_PAYLOAD, decode};
use tare_wire::packed::{Malformed, Packed};
use tare_wire::record::{self, Record};
use thiserror::Error;

use crate::model::{
    Batch, Calibration, Count, Counter, Delay, EnvelopeBin, Exceeded, Fact, Frequency,
    FrequencySource, Preparation, Samples,
};

use wakeups::Collector;
pub use wakeups::WakeupFacts;

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
    batch: Option<Batch>,
    wakeups: Option<Collector>,
    samples: Samples,
    notices: Vec<String>,
    other: VecDeque<String>,
    trouble: Option<Incomplete>,
    ended: bool,
    /// How many slots of each phase were before its load began.
    apart: Vec<u32>,
}

/// Is what a line was, as far as the one who waits for it needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The instance is ready: the workload starts.
    Ready,
    /// The first wake-up is due at this time of the place's clock.
    Begins {
        /// CLOCK_MONOTONIC, or the time since the start where there is no kernel.
        origin_ns: u64,
    },
    /// A thread tells how far it is.
    Live(record::Live),
    /// A latency above the plan's limit was seen.
    Exceeded(Exceeded),
    /// Another record.
    Record,
    /// The last record: nothing follows.
    Last,
    /// No record.
    Other,
}

/// Holds everything that an instance reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// Version of the agent or image.
    pub version: String,
    /// What the measured code ran on: `linux` or `unikernel`.
    pub environment: String,
    /// How the batch was prepared.
    pub preparation: Preparation,
    /// What the stamps and the loop cost.
    pub calibration: Calibration,
    /// What each source claims of the TSC's frequency.
    pub frequencies: Vec<Frequency>,
    /// What was measured.
    pub measured: Measured,
    /// What was counted on the measured CPU during the batch.
    pub counters: Vec<Counter>,
    /// What the place looks like from inside.
    pub facts: Vec<Fact>,
    /// The samples.
    pub samples: Samples,
    /// What the agent remarked.
    pub notices: Vec<String>,
}

/// Is what was measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Measured {
    /// Sums over a batch.
    Batch(Batch),
    /// Wake-ups.
    Wakeups(WakeupFacts),
}

impl Received {
    /// Returns the sums over the batch, if it was one.
    #[must_use]
    pub fn batch(&self) -> Option<&Batch> {
        match &self.measured {
            Measured::Batch(batch) => Some(batch),
            Measured::Wakeups(_) => None,
        }
    }

    /// Returns what was reported of wake-ups, if they were measured.
    #[must_use]
    pub fn wakeups(&self) -> Option<&WakeupFacts> {
        match &self.measured {
            Measured::Batch(_) => None,
            Measured::Wakeups(facts) => Some(facts),
        }
    }
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
        let (measured, samples) = match (self.batch, self.wakeups) {
            (Some(batch), None) => {
                let samples = resolve(self.samples, batch.first_tsc);
                (Measured::Batch(batch), samples)
            }
            (None, Some(collector)) => {
                let (facts, wakeups) = collector.finish(&self.apart).map_err(|Malformed| {
                    Incomplete::Contradiction {
                        what: "the trace events do not fit to the wake-ups".to_owned(),
                    }
                })?;
                let samples = Samples {
                    wakeups,
                    ..self.samples
                };
                (Measured::Wakeups(facts), samples)
            }
            (None, None) => return Err(missing("batch")),
            (Some(_), Some(_)) => {
                let what = "a batch and wake-ups in one".to_owned();
                return Err(Incomplete::Contradiction { what });
            }
        };
        let received = Received {
            version: self.version,
            environment: self.environment,
            preparation: self.preparation.ok_or_else(|| missing("ready"))?,
            calibration: self.calibration.ok_or_else(|| missing("calibration"))?,
            frequencies: self.frequencies,
            counters: self.counters,
            facts: self.facts,
            measured,
            samples,
            notices: self.notices,
        };
        agree(&received)?;
        Ok(received)
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
            Record::Fact(fact) => {
                self.facts.push(Fact {
                    name: fact.name.to_owned(),
                    value: fact.value.to_owned(),
                });
                Ok(())
            }
            // A load's, which has a stream of its own.
            Record::Going | Record::Achieved(_) | Record::Phase(_) | Record::Left(_) => {
                let what = format!("a {} record among them", record.kind());
                self.trouble(Incomplete::Contradiction { what });
                Ok(())
            }
            Record::Batch(sums) => {
                self.batch = Some(batch(&sums));
                Ok(())
            }
            Record::Counts(list) => counts(list.rows, &mut self.samples.counts),
            Record::Delays(list) => delays(list.rows, &mut self.samples.delays),
            Record::Envelope(list) => envelope(list.rows, &mut self.samples.envelope),
            Record::Window(list) => window(list.rows, &mut self.samples.window),
            Record::Begins(begins) => {
                let origin_ns = begins.origin_ns;
                self.wakeups().facts.origin_ns = origin_ns;
                return Seen::Begins { origin_ns };
            }
            Record::Live(live) => return Seen::Live(live),
            Record::Exceeded(exceeded) => {
                self.wakeups().exceeded(exceeded);
                return Seen::Exceeded(Exceeded {
                    thread: exceeded.thread,
                    activation: exceeded.activation,
                    latency_ns: exceeded.latency_ns,
                });
            }
            Record::Thread(thread) => {
                self.wakeups().thread(&thread);
                Ok(())
            }
            Record::LatencyCounts(list) => self.wakeups().counts(list.rows),
            Record::Peaks(list) => self.wakeups().peaks(list.rows),
            Record::LatencyEnvelope(list) => self.wakeups().bins(list.rows),
            Record::RawLatencies(list) => self.wakeups().raw(list.rows),
            Record::Worst(worst) => {
                self.wakeups().worst(worst);
                Ok(())
            }
            Record::TraceEvents(list) => self.wakeups().events(list.rows),
            Record::Name(name) => {
                self.wakeups().name(&name);
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

    fn wakeups(&mut self) -> &mut Collector {
        self.wakeups.get_or_insert_default()
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

fn batch(sums: &record::Batch) -> Batch {
    Batch {
        repetitions: sums.repetitions,
        first_tsc: sums.first_tsc,
        last_tsc: sums.last_tsc,
        sum_cycles: sums.sum_cycles,
        quiet_squares: sums.quiet_squares,
        result: sums.result,
        work: sums.work,
        threshold_cycles: sums.threshold_cycles,
        delays_seen: sums.delays_seen,
        delays_kept: sums.delays_kept,
        unkept_longest_cycles: sums.unkept_longest,
        unkept_cycles: sums.unkept_cycles,
        backwards: sums.backwards,
        bin_cycles: sums.bin_cycles,
        fold_cycles: sums.fold_cycles,
    }
}

fn counts(rows: Packed<'_>, out: &mut Vec<Count>) -> Result<(), Malformed> {
    let mut cycles: u64 = 0;
    for row in rows.rows::<2>() {
        let [step, count] = row?;
        cycles = cycles.checked_add(step).ok_or(Malformed)?;
        out.push(Count { cycles, count });
    }
    Ok(())
}

/// Takes rows whose start is still relative to the batch's first stamp.
fn delays(rows: Packed<'_>, out: &mut Vec<Delay>) -> Result<(), Malformed> {
    let (mut index, mut start_tsc): (u64, u64) = (0, 0);
    for row in rows.rows::<3>() {
        let [step, distance, cycles] = row?;
        index = index.checked_add(step).ok_or(Malformed)?;
        start_tsc = start_tsc.wrapping_add(distance);
        out.push(Delay {
            index,
            start_tsc,
            cycles,
        });
    }
    Ok(())
}

fn window(rows: Packed<'_>, out: &mut Vec<Delay>) -> Result<(), Malformed> {
    for row in rows.rows::<3>() {
        let [index, start_tsc, cycles] = row?;
        out.push(Delay {
            index,
            start_tsc,
            cycles,
        });
    }
    Ok(())
}

fn envelope(rows: Packed<'_>, out: &mut Vec<EnvelopeBin>) -> Result<(), Malformed> {
    let mut bin: u64 = 0;
    for row in rows.rows::<5>() {
        let [step, count, sum_cycles, min_cycles, max_cycles] = row?;
        bin = bin.checked_add(step).ok_or(Malformed)?;
        out.push(EnvelopeBin {
            bin: u32::try_from(bin).map_err(|_| Malformed)?,
            count,
            sum_cycles,
            min_cycles,
            max_cycles,
        });
    }
    Ok(())
}

/// Makes the starts absolute.
fn resolve(mut samples: Samples, first_tsc: u64) -> Samples {
    for row in samples.delays.iter_mut().chain(&mut samples.window) {
        row.start_tsc = row.start_tsc.wrapping_add(first_tsc);
    }
    samples
}

/// Checks the sums of the batch against the lists.
fn agree(received: &Received) -> Result<(), Incomplete> {
    let Received {
        measured: Measured::Batch(batch),
        samples,
        ..
    } = received
    else {
        // When a cell is written, its samples are checked against the sums of the threads.
        return Ok(());
    };
    let listed = samples.delays.len() as u64;
    let counted = samples
        .counts
        .iter()
        .try_fold(0_u64, |sum, row| sum.checked_add(row.count));
    let due = if batch.quiet_squares.is_some() {
        batch.delays_kept
    } else {
        batch.repetitions.saturating_sub(batch.backwards)
    };
    let contradiction = |what: String| Err(Incomplete::Contradiction { what });
    if listed != batch.delays_kept {
        return contradiction(format!(
            "{} delays were to be listed, {listed} are",
            batch.delays_kept
        ));
    }
    if counted != Some(due) {
        let counted = counted.map_or("more than 2^64".to_owned(), |n| n.to_string());
        return contradiction(format!("{due} samples were to be counted, {counted} are"));
    }
    if !samples.counts.is_sorted_by(|a, b| a.cycles < b.cycles) {
        return contradiction("the counts are not in ascending order".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_wire::line::Encoder;
    use tare_wire::packed::Packer;
    use tare_wire::record::{Batch, Calibration, End, Failure, Hello, List, Notice, Ready};

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
        put(Record::Batch(Batch {
            repetitions: 3,
            first_tsc: 1_000,
            last_tsc: 9_000,
            sum_cycles: 5_200,
            delays_seen: 1,
            delays_kept: 1,
            bin_cycles: 8,
            ..Batch::default()
        }));
        let mut packer = Packer::default();
        packer.push([100, 2]);
        packer.push([4_900, 1]);
        let rows = packer.packed();
        put(Record::Counts(List { rows }));
        let mut packer = Packer::default();
        packer.push([1, 120, 5_000]);
        let rows = packer.packed();
        put(Record::Delays(List { rows }));
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
        assert_eq!(received.version, "1.2.3");
        assert_eq!(received.samples.counts[1].cycles, 5_000);
        assert_eq!(
            received.samples.delays,
            [Delay {
                index: 1,
                start_tsc: 1_120,
                cycles: 5_000
            }]
        );
        assert_eq!(received.notices, ["cold"]);
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
        let batch = Batch {
            repetitions: 4,
            delays_kept: 1,
            ..Batch::default()
        };
        lines[3] = encoder.encode(&Record::Batch(batch)).unwrap().to_vec();
        let error = receive(&lines).unwrap_err();
        assert!(matches!(error, Incomplete::Contradiction { .. }), "{error}");
    }
}
