//! The plan of one batch, as words.
//!
//! The agent takes these words as arguments, the unikernel finds the same words on its command
//! line: `workload=prime limit=22 repetitions=1000000 timing=fenced cpu=1`. Words without `=` or
//! with an unknown key are errors, so that a typing mistake can't measure something else.

use core::fmt;

use tare_wire::words::PlanError;

use crate::words::{self, Form, Put, Slot, Word};

/// The words, for those who type them.
pub const USAGE: &str = "
Words of a batch:
  workload=prime limit=N    count the primes below N, in registers
  workload=copy size=N      copy and increment N elements of 8 bytes
  workload=gap              spin on the timer and record every interruption
  repetitions=N             timed repetitions (gap: timer reads)
  warmup=N                  untimed repetitions before (1000)
  timing=fenced|published   how a repetition is timed (fenced)
  threshold=auto|N[UNIT]    from which delay on samples are listed; UNIT: cycles, ns, us, ms
  capacity=N                how many delays are listed at most (1048576)
  bins=N                    bins of the envelope over time (1000)
  window=N                  raw samples kept from the middle of the batch (500)
  cpu=N                     CPU to run on
";

/// What the measured code is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Which work, and how much of it.
    pub workload: Workload,
    /// How many repetitions are timed.
    pub repetitions: u64,
    /// How many repetitions run before, untimed.
    pub warmup: u64,
    /// How a repetition is timed.
    pub timing: Timing,
    /// From which delay on samples are listed one by one.
    pub threshold: Threshold,
    /// How many delays are listed at most.
    pub capacity: u64,
    /// Into how many bins of time the envelope is divided.
    pub bins: u32,
    /// How many raw samples are kept, from the middle of the batch.
    pub window: u32,
    /// Which CPU the code is pinned to; where it starts if `None`.
    pub cpu: Option<u32>,
}

/// A workload with its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Counts the primes below `limit`.
    Prime {
        /// Exclusive upper bound of the numbers tested.
        limit: u32,
    },
    /// Copies the first `size` elements of a `u64` array and increments them.
    Copy {
        /// Elements of 8 bytes.
        size: u64,
    },
    /// Spins on the timer.
    Gap,
}

impl Workload {
    /// Returns the word by which the workload is chosen.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Prime { .. } => "prime",
            Self::Copy { .. } => "copy",
            Self::Gap => "gap",
        }
    }
}

/// A way of taking the time stamps around a repetition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// `lfence; rdtsc; lfence` before, `rdtscp; lfence` behind.
    #[default]
    Fenced,
    /// Two bare `rdtscp`, as kot-2019 did.
    Published,
}

impl Timing {
    /// Returns the word by which the way is chosen.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fenced => "fenced",
            Self::Published => "published",
        }
    }
}

/// Says from which delay on samples are listed one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threshold {
    /// By the workload's documented rule.
    #[default]
    Auto,
    /// In TSC ticks.
    Cycles(u64),
    /// In nanoseconds, converted with the TSC's frequency.
    Ns(u64),
}

impl Plan {
    /// How many delays are listed at most, unless the plan says otherwise.
    pub const DEFAULT_CAPACITY: u64 = 1 << 20;
    /// How many bins the envelope has, unless the plan says otherwise.
    pub const DEFAULT_BINS: u32 = 1_000;
    /// How many raw samples are kept, unless the plan says otherwise: what kot-2019 plots.
    pub const DEFAULT_WINDOW: u32 = 500;
    /// How many repetitions run before, unless the plan says otherwise.
    pub const DEFAULT_WARMUP: u64 = 1_000;

    /// Makes a plan with default settings.
    #[must_use]
    pub fn new(workload: Workload, repetitions: u64) -> Self {
        Self {
            workload,
            repetitions,
            warmup: Self::DEFAULT_WARMUP,
            timing: Timing::default(),
            threshold: Threshold::default(),
            capacity: Self::DEFAULT_CAPACITY,
            bins: Self::DEFAULT_BINS,
            window: Self::DEFAULT_WINDOW,
            cpu: None,
        }
    }

    /// Reads a plan from words.
    ///
    /// # Errors
    ///
    /// Returns [`PlanError`] for a word that is not `key=value`, an unknown key or value, a key
    /// that is given twice, or a missing workload, size or number of repetitions.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, PlanError<'a>> {
        let mut read = Read::from(&Self::new(Workload::Gap, 0));
        let given = words::read(&mut read, &WORDS, words, &["workload", "repetitions"])?;
        let workload = match given.workload {
            "prime" => Workload::Prime {
                limit: read.limit.ok_or(PlanError::Missing("limit"))?,
            },
            "copy" => Workload::Copy {
                size: read.size.ok_or(PlanError::Missing("size"))?,
            },
            "gap" => Workload::Gap,
            value => {
                return Err(PlanError::BadValue {
                    key: "workload",
                    value,
                    wanted: "prime, copy or gap",
                });
            }
        };
        let plan = read.plan;
        Ok(Self { workload, ..plan })
    }
}

/// A plan whose workload is not yet known, or with its sizes beside it.
#[derive(Clone, Copy)]
struct Read {
    plan: Plan,
    limit: Option<u32>,
    size: Option<u64>,
}

/// The CPU stands last.
const WORDS: [Word<Read>; 10] = [
    ("limit", |read| Slot::AnySmall(&mut read.limit)),
    ("size", |read| Slot::AnyNumber(&mut read.size)),
    ("repetitions", |read| {
        Slot::Number(&mut read.plan.repetitions)
    }),
    ("warmup", |read| Slot::Number(&mut read.plan.warmup)),
    ("timing", |read| Slot::Form(&mut read.plan.timing)),
    ("threshold", |read| Slot::Form(&mut read.plan.threshold)),
    ("capacity", |read| Slot::Number(&mut read.plan.capacity)),
    ("bins", |read| Slot::Small(&mut read.plan.bins)),
    ("window", |read| Slot::Small(&mut read.plan.window)),
    ("cpu", |read| Slot::AnySmall(&mut read.plan.cpu)),
];

impl From<&Plan> for Read {
    fn from(plan: &Plan) -> Self {
        let (limit, size) = match plan.workload {
            Workload::Prime { limit } => (Some(limit), None),
            Workload::Copy { size } => (None, Some(size)),
            Workload::Gap => (None, None),
        };
        let plan = *plan;
        Self { plan, limit, size }
    }
}

/// Writes the words of a plan that only its workload reads: all but which one it is, and on which CPU.
#[derive(Clone, Copy, Debug)]
pub struct OwnWords<'a>(pub &'a Plan);

impl fmt::Display for OwnWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        words::write(Read::from(self.0), &WORDS[..9], f)
    }
}

impl fmt::Display for Plan {
    /// Writes the plan in the words that [`Plan::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workload={} ", self.workload.name())?;
        words::write(Read::from(self), &WORDS, f)
    }
}

impl Form for Timing {
    fn read(&mut self, text: &str) -> Result<(), &'static str> {
        let mut all = [Self::Fenced, Self::Published].into_iter();
        let found = all.find(|timing| timing.name() == text);
        *self = found.ok_or("fenced or published")?;
        Ok(())
    }

    fn write(&self, put: Put<'_>) -> fmt::Result {
        put(&self.name())
    }
}

impl Form for Threshold {
    fn read(&mut self, text: &str) -> Result<(), &'static str> {
        let wanted = "auto, or a number with the unit cycles, ns, us or ms";
        *self = Self::parse(text).ok_or(wanted)?;
        Ok(())
    }

    /// Gives `auto`, `400cycles` or `500ns`.
    fn write(&self, put: Put<'_>) -> fmt::Result {
        match self {
            Self::Auto => put(&"auto"),
            Self::Cycles(cycles) => put(&format_args!("{cycles}cycles")),
            Self::Ns(ns) => put(&format_args!("{ns}ns")),
        }
    }
}

impl Threshold {
    /// Reads `auto`, or a whole number with a unit: `400cycles`, `500ns`, `2us`, `1ms`. A number
    /// alone means cycles, as in kot-2019.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "auto" {
            return Some(Self::Auto);
        }
        let unit_at = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let number: u64 = number.parse().ok()?;
        match unit {
            "" | "cycles" => Some(Self::Cycles(number)),
            "ns" => Some(Self::Ns(number)),
            "us" => Some(Self::Ns(number.checked_mul(1_000)?)),
            "ms" => Some(Self::Ns(number.checked_mul(1_000_000)?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;

    use super::*;

    fn parse(text: &str) -> Result<Plan, PlanError<'_>> {
        Plan::parse(text.split_whitespace())
    }

    #[test]
    fn what_is_read_is_written_as_it_was() {
        let rest =
            "repetitions=1 warmup=2 timing=published threshold=3ns capacity=4 bins=5 window=6";
        for own in ["prime limit=22 ", "copy size=7 ", "gap "] {
            let text = std::format!("workload={own}{rest} cpu=8");
            let plan = parse(&text).unwrap();
            assert_eq!(plan.to_string(), text);
            assert!(text.ends_with(&std::format!("{} cpu=8", OwnWords(&plan))));
        }
    }

    #[test]
    fn defaults_fill_what_is_not_said() {
        let plan = parse("workload=prime limit=22 repetitions=1000000").unwrap();
        assert_eq!(plan, Plan::new(Workload::Prime { limit: 22 }, 1_000_000));
    }

    #[test]
    fn thresholds_take_units_and_a_bare_number_means_cycles() {
        for (text, threshold) in [
            ("400", Threshold::Cycles(400)),
            ("400cycles", Threshold::Cycles(400)),
            ("500ns", Threshold::Ns(500)),
            ("2us", Threshold::Ns(2_000)),
            ("1ms", Threshold::Ns(1_000_000)),
            ("auto", Threshold::Auto),
        ] {
            assert_eq!(Threshold::parse(text), Some(threshold));
        }
        for text in [
            "",
            "ns",
            "-1",
            "1.5us",
            "3s",
            "99999999999999999999",
            "99999999999999999ms",
        ] {
            assert_eq!(Threshold::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_a_workload_needs_is_asked_for() {
        for (text, message) in [
            (
                "workload=sieve repetitions=1",
                "plan: 'workload=sieve': want prime, copy or gap",
            ),
            ("workload=copy repetitions=1", "plan: 'size=…' is missing"),
            ("workload=gap", "plan: 'repetitions=…' is missing"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message);
        }
    }
}
