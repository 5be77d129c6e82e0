//! The plan of one batch, as words.
//!
//! The agent takes these words as arguments, the unikernel finds the same words on its command
//! line: `workload=prime limit=22 repetitions=1000000 timing=fenced cpu=1`. Words without `=` or
//! with an unknown key are errors, so that a typing mistake can't measure something else.

use core::fmt;

use tare_wire::words::{PlanError, set};

/// Is what the measured code is asked to do.
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

/// Is a workload with its size.
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

/// Is a way of taking the time stamps around a repetition.
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
    /// Is how many delays are listed at most, unless the plan says otherwise.
    pub const DEFAULT_CAPACITY: u64 = 1 << 20;
    /// Is how many bins the envelope has, unless the plan says otherwise.
    pub const DEFAULT_BINS: u32 = 1_000;
    /// Is how many raw samples are kept, unless the plan says otherwise: what kot-2019 plots.
    pub const DEFAULT_WINDOW: u32 = 500;
    /// Is how many repetitions run before, unless the plan says otherwise.
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
    /// that stands twice, or a missing workload, size or number of repetitions.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, PlanError<'a>> {
        let mut read = Read::default();
        for word in words {
            read.word(word)?;
        }
        read.plan()
    }
}

/// Writes the words of a plan that only its workload reads: all but which one it is, and on which CPU.
#[derive(Clone, Copy, Debug)]
pub struct OwnWords<'a>(pub &'a Plan);

impl fmt::Display for OwnWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.0;
        match plan.workload {
            Workload::Prime { limit } => write!(f, "limit={limit} ")?,
            Workload::Copy { size } => write!(f, "size={size} ")?,
            Workload::Gap => {}
        }
        write!(
            f,
            "repetitions={} warmup={} timing={} threshold={} capacity={} bins={} window={}",
            plan.repetitions,
            plan.warmup,
            plan.timing.name(),
            plan.threshold,
            plan.capacity,
            plan.bins,
            plan.window
        )
    }
}

impl fmt::Display for Plan {
    /// Writes the plan in the words that [`Plan::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workload={} {}", self.workload.name(), OwnWords(self))?;
        match self.cpu {
            Some(cpu) => write!(f, " cpu={cpu}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Threshold {
    /// Writes `auto`, `400cycles` or `500ns`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cycles(cycles) => write!(f, "{cycles}cycles"),
            Self::Ns(ns) => write!(f, "{ns}ns"),
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

/// Collects the words of a plan before they are put together.
#[derive(Default)]
struct Read<'a> {
    workload: Option<&'a str>,
    limit: Option<u32>,
    size: Option<u64>,
    repetitions: Option<u64>,
    warmup: Option<u64>,
    timing: Option<Timing>,
    threshold: Option<Threshold>,
    capacity: Option<u64>,
    bins: Option<u32>,
    window: Option<u32>,
    cpu: Option<u32>,
}

impl<'a> Read<'a> {
    fn word(&mut self, word: &'a str) -> Result<(), PlanError<'a>> {
        let (key, value) = word.split_once('=').ok_or(PlanError::NotAPair(word))?;
        const NUMBER: &str = "a whole number";
        match key {
            "workload" => set(&mut self.workload, key, value, Some(value), ""),
            "limit" => set(&mut self.limit, key, value, value.parse().ok(), NUMBER),
            "size" => set(&mut self.size, key, value, value.parse().ok(), NUMBER),
            "repetitions" => set(
                &mut self.repetitions,
                key,
                value,
                value.parse().ok(),
                NUMBER,
            ),
            "warmup" => set(&mut self.warmup, key, value, value.parse().ok(), NUMBER),
            "timing" => {
                let timing = [Timing::Fenced, Timing::Published]
                    .into_iter()
                    .find(|timing| timing.name() == value);
                set(&mut self.timing, key, value, timing, "fenced or published")
            }
            "threshold" => set(
                &mut self.threshold,
                key,
                value,
                Threshold::parse(value),
                "auto, or a number with the unit cycles, ns, us or ms",
            ),
            "capacity" => set(&mut self.capacity, key, value, value.parse().ok(), NUMBER),
            "bins" => set(&mut self.bins, key, value, value.parse().ok(), NUMBER),
            "window" => set(&mut self.window, key, value, value.parse().ok(), NUMBER),
            "cpu" => set(&mut self.cpu, key, value, value.parse().ok(), NUMBER),
            _ => Err(PlanError::UnknownKey(key)),
        }
    }

    fn plan(self) -> Result<Plan, PlanError<'a>> {
        let name = self.workload.ok_or(PlanError::Missing("workload"))?;
        let workload = match name {
            "prime" => Workload::Prime {
                limit: self.limit.ok_or(PlanError::Missing("limit"))?,
            },
            "copy" => Workload::Copy {
                size: self.size.ok_or(PlanError::Missing("size"))?,
            },
            "gap" => Workload::Gap,
            _ => {
                return Err(PlanError::BadValue {
                    key: "workload",
                    value: name,
                    wanted: "prime, copy or gap",
                });
            }
        };
        let repetitions = self.repetitions.ok_or(PlanError::Missing("repetitions"))?;
        let default = Plan::new(workload, repetitions);
        Ok(Plan {
            warmup: self.warmup.unwrap_or(default.warmup),
            timing: self.timing.unwrap_or(default.timing),
            threshold: self.threshold.unwrap_or(default.threshold),
            capacity: self.capacity.unwrap_or(default.capacity),
            bins: self.bins.unwrap_or(default.bins),
            window: self.window.unwrap_or(default.window),
            cpu: self.cpu,
            ..default
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;

    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Plan, PlanError<'_>> {
        Plan::parse(text.split_whitespace())
    }

    fn plans() -> impl Strategy<Value = Plan> {
        let workload = prop_oneof![
            any::<u32>().prop_map(|limit| Workload::Prime { limit }),
            any::<u64>().prop_map(|size| Workload::Copy { size }),
            Just(Workload::Gap),
        ];
        let threshold = prop_oneof![
            Just(Threshold::Auto),
            any::<u64>().prop_map(Threshold::Cycles),
            any::<u64>().prop_map(Threshold::Ns),
        ];
        let timing = prop_oneof![Just(Timing::Fenced), Just(Timing::Published)];
        let sizes = any::<(u64, u64, u64, u32, u32, Option<u32>)>();
        (workload, threshold, timing, sizes).prop_map(|(workload, threshold, timing, sizes)| Plan {
            workload,
            repetitions: sizes.0,
            warmup: sizes.1,
            timing,
            threshold,
            capacity: sizes.2,
            bins: sizes.3,
            window: sizes.4,
            cpu: sizes.5,
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(plan in plans()) {
            let words = plan.to_string();
            prop_assert_eq!(parse(&words), Ok(plan));
        }

        #[test]
        fn any_text_ends_without_panic(text in "\\PC{0,80}") {
            let _ = parse(&text);
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
    fn errors_name_the_word() {
        for (text, message) in [
            ("workload", "plan: 'workload' is not of the form key=value"),
            ("wrokload=prime", "plan: no such key 'wrokload'"),
            ("cpu=1 cpu=2", "plan: 'cpu' stands twice"),
            ("limit=many", "plan: 'limit=many': want a whole number"),
            (
                "workload=sieve",
                "plan: 'workload=sieve': want prime, copy or gap",
            ),
            ("repetitions=1", "plan: 'workload=…' is missing"),
            ("workload=copy repetitions=1", "plan: 'size=…' is missing"),
            ("workload=gap", "plan: 'repetitions=…' is missing"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message);
        }
    }
}
