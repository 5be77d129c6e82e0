//! From the driver's records to the facts of a cell.
//!
//! The lines may come over their own pipe, or out of a guest among those of the measured code:
//! the two streams are numbered apart, so what is not the load's is skipped.

use tare_host::visible_in_line;
use tare_results::model::{self, Achieved, LeftTool, LoadPhase, LoadPlace};
use tare_results::receive::{Incomplete, Sequence};
use tare_wire::line::{MAX_PAYLOAD, Stream};
use tare_wire::record::Record;

use crate::error::LoadError;

/// The records of one load, collected.
#[derive(Debug)]
pub struct LoadReceiver {
    sequence: Sequence,
    going: bool,
    load: model::Load,
}

impl LoadReceiver {
    /// Creates the receiver of a load at `place`.
    pub fn at(place: LoadPlace) -> Self {
        Self {
            sequence: Sequence::of(Stream::Load),
            going: false,
            load: model::Load {
                place,
                achieved: Vec::new(),
                notices: Vec::new(),
                phases: Vec::new(),
                left: Vec::new(),
            },
        }
    }

    /// Takes one line, with or without its newline.
    pub fn line(&mut self, line: &[u8]) {
        if self.sequence.is_full() {
            return;
        }
        let mut room = [0; MAX_PAYLOAD];
        if let Ok(record) = self.sequence.decode(line, &mut room) {
            self.record(&record);
        }
    }

    /// Returns whether the load does its full work.
    pub(crate) fn is_going(&self) -> bool {
        self.going
    }

    /// Returns what the load did.
    ///
    /// # Errors
    ///
    /// Returns [`LoadError`] with the first thing that was wrong.
    pub fn finish(mut self) -> Result<model::Load, LoadError> {
        self.sequence.check_whole().map_err(|error| match error {
            Incomplete::Failed { text } => LoadError::Failed { text },
            error => error.into(),
        })?;
        match self.going {
            true => Ok(self.load),
            false => Err(LoadError::NeverGoing),
        }
    }

    fn record(&mut self, record: &Record<'_>) {
        // Whatever it is, no text of it is longer.
        self.sequence.take(MAX_PAYLOAD);
        match record {
            Record::Going => self.going = true,
            Record::Phase(it) => self.load.phases.push(LoadPhase {
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
                let achieved = match self.load.phases.last_mut() {
                    Some(phase) => &mut phase.achieved,
                    None => &mut self.load.achieved,
                };
                achieved.push(Achieved {
                    what: it.what.to_owned(),
                    amount: it.amount,
                    ns: it.ns,
                });
            }
            Record::Leftovers(it) => self.load.left.push(LeftTool {
                tool: it.tool.to_owned(),
                pid: it.pid,
                phase: it.phase,
                until: it.until,
                ended: it.ended,
            }),
            Record::Notice(it) => self
                .load
                .notices
                .push(visible_in_line(it.text).into_owned()),
            Record::Hello(_) | Record::Failure(_) | Record::End(_) => {}
            // Of the measured code, which has its own stream.
            record => {
                let what = format!("a {} record among them", record.kind());
                self.sequence.error(Incomplete::Contradiction { what });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tare_wire::PROTOCOL;
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
        let mut receiver = LoadReceiver::at(LoadPlace::Inside);
        for line in lines {
            receiver.line(line);
        }
        receiver.finish().map_err(|error| error.to_string())
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
        assert!(receive(&[]).unwrap_err().contains("received no record"));
        assert!(
            receive(&lines()[..3])
                .unwrap_err()
                .contains("broke off after number 2")
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
