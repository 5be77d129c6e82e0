//! The plan of an instance, as words.

use core::fmt;

use tare_wire::words::PlanError;
use tare_workloads::prime::{MAX_LIMIT, MIN_LIMIT};

use crate::words::{self, Form, Put, Slot, Word};

/// The description of the words, for the help.
pub const USAGE: &str = "
Words of an instance whose start is measured:
  workload=start            report that it runs, do the work, exit
  work=hello                no work (the default)
  work=prime limit=N        count the primes below N, once
  work=thumbnail            decode a picture (PNG) and scale it down
  report=yes                report the program and its environment
";

/// The plan of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The work.
    pub work: Job,
    /// Whether it reports its program and environment.
    pub report: bool,
    /// CPU to which it is pinned; any if None.
    pub cpu: Option<u32>,
}

/// The work between start and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Job {
    /// Nothing.
    #[default]
    Hello,
    /// Counts the primes below a limit.
    Prime {
        /// The limit.
        limit: u32,
    },
    /// Decodes a picture and scales it down.
    Thumbnail,
}

/// The values of the words, before their combination is checked.
#[derive(Clone, Copy, Default)]
struct PlanWords {
    work: Kind,
    limit: Option<u32>,
    report: bool,
    cpu: Option<u32>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Hello,
    Prime,
    Thumbnail,
}

impl Kind {
    const WORDS: [(Self, &'static str); 3] = [
        (Self::Hello, "hello"),
        (Self::Prime, "prime"),
        (Self::Thumbnail, "thumbnail"),
    ];
}

impl Form for Kind {
    fn read(&mut self, text: &str) -> Result<(), &'static str> {
        let mut words = Self::WORDS.iter();
        let found = words.find(|(_, word)| *word == text);
        *self = found.ok_or("hello, prime or thumbnail")?.0;
        Ok(())
    }

    fn write(&self, put: Put<'_>) -> fmt::Result {
        let mut words = Self::WORDS.iter();
        let (_, word) = words.find(|(kind, _)| kind == self).ok_or(fmt::Error)?;
        put(word)
    }
}

const WORDS: [Word<PlanWords>; 4] = [
    ("work", |values| Slot::Form(&mut values.work)),
    ("limit", |values| Slot::AnySmall(&mut values.limit)),
    ("report", |values| Slot::Form(&mut values.report)),
    ("cpu", |values| Slot::AnySmall(&mut values.cpu)),
];

impl Plan {
    /// Reads a plan from its words.
    ///
    /// # Errors
    ///
    /// Returns [`PlanError`] for an invalid or a missing word.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, PlanError<'a>> {
        let mut values = PlanWords::default();
        words::read(&mut values, &WORDS, words, &["workload"])?;
        let work = match (values.work, values.limit) {
            (Kind::Hello, None) => Job::Hello,
            (Kind::Thumbnail, None) => Job::Thumbnail,
            (Kind::Prime, Some(limit)) if (MIN_LIMIT..=MAX_LIMIT).contains(&limit) => {
                Job::Prime { limit }
            }
            (Kind::Prime, None) => return Err(PlanError::Missing("limit")),
            (Kind::Prime, Some(_)) => {
                return Err(PlanError::BadValue {
                    key: "limit",
                    value: "",
                    wanted: "a whole number from 3 to 65536",
                });
            }
            (Kind::Hello | Kind::Thumbnail, Some(_)) => return Err(PlanError::UnknownKey("limit")),
        };
        Ok(Self {
            work,
            report: values.report,
            cpu: values.cpu,
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (work, limit) = match self.work {
            Job::Hello => (Kind::Hello, None),
            Job::Prime { limit } => (Kind::Prime, Some(limit)),
            Job::Thumbnail => (Kind::Thumbnail, None),
        };
        let values = PlanWords {
            work,
            limit,
            report: self.report,
            cpu: self.cpu,
        };
        f.write_str("workload=start ")?;
        words::write(values, &WORDS, f)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn a_plan_is_written_as_it_is_read() {
        for text in [
            "workload=start work=hello",
            "workload=start work=prime limit=1000",
            "workload=start work=thumbnail report=yes cpu=3",
        ] {
            let plan = Plan::parse(text.split_whitespace()).unwrap();
            assert_eq!(plan.to_string(), text);
        }
        assert_eq!(Plan::parse(["workload=start"]), Ok(Plan::default()));
    }

    #[test]
    fn words_that_do_not_belong_together_are_refused() {
        for (text, told) in [
            ("work=prime", "plan: 'limit=…' is missing"),
            ("work=hello limit=5", "plan: no such key 'limit'"),
            (
                "work=prime limit=1",
                "plan: 'limit=': want a whole number from 3 to 65536",
            ),
            (
                "work=sleep",
                "plan: 'work=sleep': want hello, prime or thumbnail",
            ),
        ] {
            let words = ["workload=start"].into_iter().chain(text.split(' '));
            assert_eq!(Plan::parse(words).unwrap_err().to_string(), told);
        }
    }
}
