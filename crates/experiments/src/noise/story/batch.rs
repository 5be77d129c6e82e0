//! What the record of a cell says of a batch.

use tare_results::model::{Labels, Program, Record, SetHead};

/// The one set of a batch, and the numbers beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch<'a> {
    /// Who ran it.
    pub program: &'a Program,
    /// What its samples sum up to.
    pub head: &'a SetHead,
    /// What the work yielded: for `prime` the number of primes; for others 0.
    pub result: u64,
    /// Elementary steps in one repetition: divisions, elements, timer reads.
    pub work: u64,
    /// Least delay above the mean that is listed; for `gap`, the least length of a gap. In cycles.
    pub threshold: u64,
}

impl<'a> Batch<'a> {
    /// Takes the record of a cell; `None` if it is of something else.
    pub(crate) fn of(record: &'a Record) -> Option<Self> {
        let [head] = &record.sets[..] else {
            return None;
        };
        let value = |measure| Some(record.value(measure, &Labels::default())? as u64);
        Some(Self {
            program: record.program()?,
            head,
            result: value("result")?,
            work: value("work")?,
            threshold: value("threshold")?,
        })
    }

    /// Says whether only interruptions were recorded, one by one.
    pub(crate) fn is_gap(&self) -> bool {
        self.head.squares_below.is_some()
    }
}

/// A program of which nothing is known.
#[cfg(test)]
pub(super) fn program() -> Program {
    use tare_results::model::{Agent, Calibration, Preparation};

    Program {
        agent: Agent::default(),
        preparation: Preparation {
            cpu: None,
            buffer_bytes: 0,
            locked: true,
            latency_held: true,
        },
        calibration: Calibration {
            fenced_region_cycles: 0,
            fenced_cost_cycles: 0.0,
            published_region_cycles: 0,
            published_cost_cycles: 0.0,
            bare_read_cycles: 0.0,
            step_cycles: 1,
            loop_cycles: 0.0,
        },
        frequencies: Vec::new(),
        counters: Vec::new(),
        facts: Vec::new(),
    }
}
