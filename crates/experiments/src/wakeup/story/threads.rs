//! The threads of a cell: each with the sets that it measured, one for each phase.

use tare_results::model::{Labels, Record, Samples, SetHead, SetSamples};

/// A thread that measured its wake-ups.
#[derive(Debug)]
pub(crate) struct Thread<'a> {
    /// Number of the thread, from 0.
    pub number: u32,
    /// Time between two activations.
    pub interval_ns: u64,
    /// Its sets, by rising place in the record.
    pub sets: Vec<Set<'a>>,
    record: &'a Record,
}

/// The wake-ups of a thread in one phase.
#[derive(Debug)]
pub(crate) struct Set<'a> {
    /// Place in the record.
    pub place: u32,
    /// Number of the phase, from 0; `None` if nobody knows it, since there was no room to count them.
    pub phase: Option<u32>,
    /// Whether the load of the phase had not begun yet.
    pub between: bool,
    /// What they sum up to.
    pub head: &'a SetHead,
    /// The wake-ups.
    pub samples: &'a SetSamples,
}

impl<'a> Thread<'a> {
    /// Finds the threads of a cell, in their order; says what is wrong with its record.
    pub(crate) fn all(record: &'a Record, samples: &'a Samples) -> Result<Vec<Self>, String> {
        let mut threads: Vec<Self> = Vec::new();
        for ((place, head), samples) in (0..).zip(&record.sets).zip(&samples.sets) {
            let labels = &head.labels;
            let number = |key: &str| labels.number(key).and_then(|n| u32::try_from(n).ok());
            let odd = || format!("it has a set labelled '{labels}'; measure it again");
            let phase = match labels.get("phase") {
                None => Some(0),
                Some("unknown") => None,
                Some(_) => Some(number("phase").ok_or_else(odd)?),
            };
            let set = Set {
                place,
                phase,
                between: labels.get("between").is_some(),
                head,
                samples,
            };
            let number = number("thread").ok_or_else(odd)?;
            match threads.iter_mut().find(|thread| thread.number == number) {
                Some(thread) => thread.sets.push(set),
                None => threads.push(Self {
                    number,
                    interval_ns: head.period,
                    sets: vec![set],
                    record,
                }),
            }
        }
        Ok(threads)
    }

    /// Returns how many wake-ups it had.
    pub(crate) fn woken(&self) -> u64 {
        self.sum(|head| head.n)
    }

    /// Returns how many wake-ups are in no count.
    pub(crate) fn uncounted(&self) -> u64 {
        self.sum(|head| head.uncounted)
    }

    /// Returns its longest latency, counted or not.
    pub(crate) fn max_ns(&self) -> u64 {
        let sets = self.sets.iter();
        sets.map(|set| set.head.max).max().unwrap_or(0)
    }

    /// Returns how many activations it missed.
    pub(crate) fn missed(&self) -> u64 {
        self.value("missed")
    }

    /// Returns the median time that recording one wake-up took.
    pub(crate) fn recording_ns(&self) -> u64 {
        self.value("recording time")
    }

    fn fact(&self, name: &str) -> Option<&'a str> {
        self.record.program()?.fact_of(name, &self.labels())
    }

    /// Returns the CPU that it was pinned to.
    pub(crate) fn cpu(&self) -> Option<u32> {
        self.fact("CPU")?.parse().ok()
    }

    /// Returns the policy that it was scheduled under.
    pub(crate) fn policy(&self) -> &'a str {
        self.fact("scheduling policy").unwrap_or_default()
    }

    /// Returns its real-time priority, or 0.
    pub(crate) fn priority(&self) -> u32 {
        let priority = self.fact("priority").map(str::parse);
        priority.and_then(Result::ok).unwrap_or(0)
    }

    fn value(&self, measure: &str) -> u64 {
        self.record.value(measure, &self.labels()).unwrap_or(0.0) as u64
    }

    fn labels(&self) -> Labels {
        Labels::default().with("thread", self.number)
    }

    fn sum(&self, of: fn(&SetHead) -> u64) -> u64 {
        self.sets.iter().map(|set| of(set.head)).sum()
    }
}
