//! The plan of one batch, as words.
//!
//! The agent receives these words as arguments, the unikernel on its command line:
//! `workload=prime limit=22 repetitions=1000000 timing=fenced cpu=1`. Words without `=` or with an
//! unknown key are errors, so that a typing mistake cannot select another measurement.

use core::fmt;

use heapless::Vec;
use tare_wire::cpus::Cpus;
use tare_wire::words::PlanError;
use tare_workloads::noise::{CODE, Code, codes, find, workloads};

use crate::words::{self, Form, Put, Slot, Word};

/// Writes a description of the words, for the help.
///
/// # Errors
///
/// Returns the error of the writer.
pub fn usage(f: &mut dyn fmt::Write) -> fmt::Result {
    f.write_str("\nWords of a batch:\n")?;
    for workload in workloads() {
        let id = workload.code.id;
        let size = workload.code.size.map_or("", |size| size.key);
        let number = if size.is_empty() { "" } else { "=N" };
        writeln!(
            f,
            "  workload={id:<7} {size}{number:<w$}{}",
            workload.does,
            w = 10 - size.len()
        )?;
    }
    f.write_str(WORDS_OF_ALL)
}

const WORDS_OF_ALL: &str = "\
  repetitions=N             repetitions that are timed, or timer reads
  warmup=N                  untimed repetitions before (1000)
  timing=fenced|published   how a repetition is timed (fenced)
  threshold=auto|N[UNIT]    from which delay on samples are listed; UNIT: cycles, ns, us, ms
  capacity=N                how many delays are listed at most (1048576)
  bins=N                    bins of the envelope over time (1000)
  window=N                  raw samples kept from the middle of the batch (500)
  explain=TIME              from which delay on the kernel's events say what it was (Linux)
  duration=TIME             repeat the timer reads until this time is over; counts are to 2 %
  list=TIME                 from which length on gaps are then listed (none)
  above=TIME                gap that is then reported at once
  until=TIME                gap that then ends the batch
  cpu=CPUS                  CPU to run on; gap on Linux: several, one thread on each at the same time
";

/// A batch of one workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The workload.
    pub workload: &'static Code,
    /// Its size; 0 if it has none.
    pub size: u64,
    /// Number of timed repetitions.
    pub repetitions: u64,
    /// Number of untimed repetitions before.
    pub warmup: u64,
    /// Kind of time stamps.
    pub timing: Timing,
    /// Delay from which samples are listed one by one.
    pub threshold: Threshold,
    /// Greatest number of listed delays.
    pub capacity: u64,
    /// Number of bins in the envelope.
    pub bins: u32,
    /// Number of raw samples stored from the middle of the batch.
    pub window: u32,
    /// Delay from which on the kernel's events around it are recorded, in ns; None for none.
    pub explain_ns: Option<u64>,
    /// Time of a spin that repeats its timer reads until then, in ns; None for one spin.
    pub duration_ns: Option<u64>,
    /// Length from which on gaps of such a spin are listed, in ns; None for none.
    pub list_ns: Option<u64>,
    /// Length above which a gap of such a spin is reported at once, in ns.
    pub above_ns: Option<u64>,
    /// Length above which a gap ends such a spin, in ns.
    pub until_ns: Option<u64>,
    /// CPUs to which the code is pinned, one thread each; None leaves one where it starts.
    pub cpus: Option<Cpus>,
}

/// A way to take the time stamps around a repetition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// `lfence; rdtsc; lfence` before, `rdtscp; lfence` after.
    #[default]
    Fenced,
    /// Two bare `rdtscp`, as in kot-2019.
    Published,
}

impl Timing {
    /// Returns the word that selects it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fenced => "fenced",
            Self::Published => "published",
        }
    }
}

/// The delay from which samples are listed one by one.
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
    /// The default of [`Plan::capacity`].
    pub const DEFAULT_CAPACITY: u64 = 1 << 20;
    /// The default of [`Plan::bins`].
    pub const DEFAULT_BINS: u32 = 1_000;
    /// The default of [`Plan::window`]: as many samples as kot-2019 plots.
    pub const DEFAULT_WINDOW: u32 = 500;
    /// The default of [`Plan::warmup`].
    pub const DEFAULT_WARMUP: u64 = 1_000;

    /// Returns a plan with default settings.
    pub fn new(workload: &'static Code, size: u64, repetitions: u64) -> Self {
        Self {
            workload,
            size,
            repetitions,
            warmup: Self::DEFAULT_WARMUP,
            timing: Timing::default(),
            threshold: Threshold::default(),
            capacity: Self::DEFAULT_CAPACITY,
            bins: Self::DEFAULT_BINS,
            window: Self::DEFAULT_WINDOW,
            explain_ns: None,
            duration_ns: None,
            list_ns: None,
            above_ns: None,
            until_ns: None,
            cpus: None,
        }
    }

    /// Returns the number of measuring threads.
    pub fn threads(&self) -> u32 {
        self.cpus.map_or(1, |cpus| cpus.count())
    }

    /// Returns the CPU of the first thread.
    pub fn first_cpu(&self) -> Option<u32> {
        self.cpus?.in_turn(0)
    }

    /// Reads a plan from words.
    ///
    /// # Errors
    ///
    /// Returns [`PlanError`] for a word that is not `key=value`, an unknown key or value, a
    /// duplicate key, or a missing workload, size or number of repetitions.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, PlanError<'a>> {
        let mut plan = Self::new(&CODE[0], 0, 0);
        let sizes = || codes().filter_map(|code| Some(code.size?.key));
        let slot: fn(&mut Self) -> Slot<'_> = |plan| Slot::Number(&mut plan.size);
        let table: Vec<Word<Self>, 64> = sizes().map(|key| (key, slot)).chain(WORDS).collect();
        let given = words::read(&mut plan, &table, words, &["workload", "repetitions"])?;
        plan.workload = find(given.workload).ok_or(PlanError::BadValue {
            key: "workload",
            value: given.workload,
            wanted: "one that `tare-agent --help` lists",
        })?;
        let own = plan.workload.size.map(|size| size.key);
        let is_given = |key: &&str| given.keys.contains(key);
        if let Some(other) = sizes().filter(is_given).find(|key| own != Some(*key)) {
            return Err(PlanError::UnknownKey(other));
        }
        match own.filter(|key| !is_given(key)) {
            Some(missing) => Err(PlanError::Missing(missing)),
            None => Ok(plan),
        }
    }
}

/// The words besides the workload and its size. The CPU comes last.
const WORDS: [Word<Plan>; 13] = [
    ("repetitions", |plan| Slot::Number(&mut plan.repetitions)),
    ("warmup", |plan| Slot::Number(&mut plan.warmup)),
    ("timing", |plan| Slot::Form(&mut plan.timing)),
    ("threshold", |plan| Slot::Form(&mut plan.threshold)),
    ("capacity", |plan| Slot::Number(&mut plan.capacity)),
    ("bins", |plan| Slot::Small(&mut plan.bins)),
    ("window", |plan| Slot::Small(&mut plan.window)),
    ("explain", |plan| Slot::AnyTime(&mut plan.explain_ns)),
    ("duration", |plan| Slot::AnyTime(&mut plan.duration_ns)),
    ("list", |plan| Slot::AnyTime(&mut plan.list_ns)),
    ("above", |plan| Slot::AnyTime(&mut plan.above_ns)),
    ("until", |plan| Slot::AnyTime(&mut plan.until_ns)),
    ("cpu", |plan| Slot::Cpus(&mut plan.cpus)),
];

/// Displays the words of a plan without its workload and its CPU.
#[derive(Clone, Copy, Debug)]
pub struct OwnWords<'a>(pub &'a Plan);

impl fmt::Display for OwnWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(&WORDS[..12], f)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workload={} ", self.workload.id)?;
        self.write(&WORDS, f)
    }
}

impl Plan {
    fn write(&self, words: &[Word<Self>], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(size) = self.workload.size {
            write!(f, "{}={} ", size.key, self.size)?;
        }
        words::write(*self, words, f)
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

    /// Writes `auto`, `400cycles` or `500ns`.
    fn write(&self, put: Put<'_>) -> fmt::Result {
        match self {
            Self::Auto => put(&"auto"),
            Self::Cycles(cycles) => put(&format_args!("{cycles}cycles")),
            Self::Ns(ns) => put(&format_args!("{ns}ns")),
        }
    }
}

impl Threshold {
    /// Parses `auto`, or a whole number with a unit: `400cycles`, `500ns`, `2us`, `1ms`. A bare
    /// number is in cycles, as in kot-2019.
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
    use std::string::ToString;

    use super::*;

    fn parse(text: &str) -> Result<Plan, PlanError<'_>> {
        Plan::parse(text.split_whitespace())
    }

    #[test]
    fn what_is_read_is_written_as_it_was() {
        let rest =
            "repetitions=1 warmup=2 timing=published threshold=3ns capacity=4 bins=5 window=6";
        for workload in workloads() {
            let mut text = std::format!("workload={} ", workload.code.id);
            if let Some(size) = workload.code.size {
                text += &std::format!("{}=7 ", size.key);
            }
            let text = text + rest + " cpu=8";
            let plan = parse(&text).unwrap();
            assert_eq!(plan.to_string(), text);
            assert!(text.ends_with(&std::format!("{} cpu=8", OwnWords(&plan))));
        }
    }

    #[test]
    fn defaults_fill_what_is_not_given() {
        let plan = parse("workload=prime limit=22 repetitions=1000000").unwrap();
        assert_eq!(plan, Plan::new(find("prime").unwrap(), 22, 1_000_000));
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
    fn a_plan_has_its_workload_and_the_size_of_that() {
        for (text, message) in [
            (
                "workload=sieve repetitions=1",
                "plan: 'workload=sieve': want one that `tare-agent --help` lists",
            ),
            ("workload=copy repetitions=1", "plan: 'size=…' is missing"),
            (
                "workload=copy size=1 limit=22 repetitions=1",
                "plan: no such key 'limit'",
            ),
            ("workload=gap", "plan: 'repetitions=…' is missing"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message);
        }
    }
}
