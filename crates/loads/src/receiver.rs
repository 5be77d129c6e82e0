//! From the driver's records to the facts of a cell.
//!
//! The lines may come over their own pipe, or out of a guest among those of the measured code:
//! the two streams are numbered apart, so what is not the load's is skipped.

use tare_results::model::{self, Achieved, LeftTool, LoadPhase, LoadPlace};
use tare_wire::PROTOCOL;
use tare_wire::line::{Line, MAX_PAYLOAD, Stream, decode_of};
use tare_wire::record::Record;

use crate::error::LoadError;

/// The records of one load, collected.
#[derive(Debug, Default)]
pub struct LoadReceiver {
    next: u64,
    going: bool,
    ended: bool,
    achieved: Vec<Achieved>,
    phases: Vec<LoadPhase>,
    left: Vec<LeftTool>,
    notices: Vec<String>,
    error: Option<LoadError>,
}

impl LoadReceiver {
    /// Takes one line, with or without its newline.
    pub fn line(&mut self, line: &[u8]) {
        let mut room = [0; MAX_PAYLOAD];
        let due = self.next;
        match decode_of(Stream::Load, line, &mut room) {
            Line::Other => {}
            Line::Damaged(_) => {
                self.next += 1;
                self.note(LoadError::Lost { due });
            }
            Line::Record { sequence, record } => {
                self.next = sequence.saturating_add(1);
                if sequence != due {
                    self.note(LoadError::Lost { due });
                }
                self.record(&record);
            }
        }
    }

    /// Returns whether the load does its full work.
    pub(crate) fn is_going(&self) -> bool {
        self.going
    }

    /// Returns what the load did at `place`.
    ///
    /// # Errors
    ///
    /// Returns [`LoadError`] with the first thing that was wrong.
    pub fn finish(self, place: LoadPlace) -> Result<model::Load, LoadError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let Some(last) = self.next.checked_sub(1) else {
            return Err(LoadError::Silent);
        };
        if !self.ended {
            return Err(LoadError::BrokeOff { last });
        }
        if !self.going {
            return Err(LoadError::NeverGoing);
        }
        Ok(model::Load {
            place,
            achieved: self.achieved,
            notices: self.notices,
            phases: self.phases,
            left: self.left,
        })
    }

    fn record(&mut self, record: &Record<'_>) {
        match record {
            Record::Hello(hello) => {
                let theirs = hello.protocol;
                if theirs != PROTOCOL {
                    self.note(LoadError::OtherProtocol { theirs });
                }
            }
            Record::Going => self.going = true,
            Record::Phase(it) => self.phases.push(LoadPhase {
                number: it.number,
                load: it.load.to_owned(),
                due_ns: it.due_ns,
                started_ns: it.started_ns,
                stopping_ns: it.stopping_ns,
                stopped_ns: it.stopped_ns,
                last_tool: it.last_tool.map(str::to_owned),
                achieved: Vec::new(),
            }),
            Record::Achieved(it) => {
                let achieved = match self.phases.last_mut() {
                    Some(phase) => &mut phase.achieved,
                    None => &mut self.achieved,
                };
                achieved.push(Achieved {
                    what: it.what.to_owned(),
                    amount: it.amount,
                    ns: it.ns,
                });
            }
            Record::Leftovers(it) => self.left.push(LeftTool {
                tool: it.tool.to_owned(),
                pid: it.pid,
                phase: it.phase,
                until: it.until,
                ended: it.ended,
            }),
            Record::Notice(it) => self.notices.push(it.text.to_owned()),
            Record::Failure(it) => {
                let text = it.text.to_owned();
                self.note(LoadError::Failed { text });
            }
            Record::End(end) => {
                self.ended = true;
                if end.records + 1 != self.next {
                    let due = end.records;
                    self.note(LoadError::Lost { due });
                }
            }
            // Of the measured code, which has its own stream.
            _ => {
                let due = self.next - 1;
                self.note(LoadError::Lost { due });
            }
        }
    }

    /// Keeps the first thing that went wrong: what follows is its consequence.
    fn note(&mut self, error: LoadError) {
        self.error.get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use tare_wire::line::Encoder;
    use tare_wire::record::{self, End, Failure, Hello, Notice};

    use super::*;

    fn lines() -> Vec<Vec<u8>> {
        let mut encoder = Encoder::of(Stream::Load);
        let records = [
            Record::Hello(Hello {
                protocol: PROTOCOL,
                version: "1.2.3",
                environment: "load",
                plan: "dd",
            }),
            Record::Notice(Notice { text: "synced" }),
            Record::Going,
            Record::Achieved(record::Achieved {
                what: "bytes written",
                amount: 5,
                ns: 7,
            }),
            Record::End(End { records: 4 }),
        ];
        records
            .iter()
            .map(|record| encoder.encode(record).unwrap().to_vec())
            .collect()
    }

    fn receive(lines: &[Vec<u8>]) -> Result<model::Load, String> {
        let mut receiver = LoadReceiver::default();
        for line in lines {
            receiver.line(line);
        }
        receiver
            .finish(LoadPlace::Inside)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn whole_records_become_the_facts_of_a_load() {
        let load = receive(&lines()).unwrap();
        assert_eq!(load.notices, ["synced"]);
        let what = "bytes written".to_owned();
        assert_eq!(
            load.achieved,
            [Achieved {
                what,
                amount: 5,
                ns: 7
            }]
        );
        assert_eq!(load.place, LoadPlace::Inside);
    }

    #[test]
    fn records_of_the_measured_code_and_chatter_are_skipped() {
        let mut lines = lines();
        let mut measured = Encoder::of(Stream::Measured);
        lines.insert(
            1,
            measured
                .encode(&Record::End(End { records: 0 }))
                .unwrap()
                .to_vec(),
        );
        lines.insert(0, b"[    1.234] random: crng init done\n".to_vec());
        assert!(receive(&lines).is_ok());
    }

    #[test]
    fn every_lost_or_damaged_line_is_noticed() {
        for lost in 0..lines().len() {
            let mut fewer = lines();
            fewer.remove(lost);
            assert!(receive(&fewer).is_err(), "line {lost}");
            let mut damaged = lines();
            let last = damaged[lost].len() - 3;
            damaged[lost][last] ^= 1;
            assert!(receive(&damaged).is_err(), "line {lost}");
        }
        assert!(receive(&[]).unwrap_err().contains("said nothing"));
        assert!(
            receive(&lines()[..3])
                .unwrap_err()
                .contains("broke off after its record 2")
        );
    }

    #[test]
    fn a_failure_is_passed_on_as_it_was_said() {
        let mut encoder = Encoder::of(Stream::Load);
        let text = "the load's dd ended by itself";
        let failure = Record::Failure(Failure { text });
        let line = encoder.encode(&failure).unwrap().to_vec();
        assert_eq!(receive(&[line]).unwrap_err(), text);
    }
}
