//! The samples of a cell, as its Parquet files hold them.

/// The samples of one cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// The instances that ran, in the order in which they were started.
    pub instances: Vec<Instance>,
    /// The samples of each set, in the order of the record's heads.
    pub sets: Vec<SetSamples>,
}

/// The samples of one set. Values and times are in the set's unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetSamples {
    /// Exact counts per value, ascending; only of the listed samples where the head has `squares_below`.
    pub counts: Vec<Count>,
    /// Samples at or above the threshold, in order of time.
    pub events: Vec<Event>,
    /// Envelope over time, empty bins left out.
    pub envelope: Vec<Bin>,
    /// Consecutive samples as they were.
    pub raw: Vec<Event>,
}

impl SetSamples {
    /// Returns every value that is counted, listed, or the greatest of a bin.
    pub(crate) fn values(&self) -> impl Iterator<Item = u64> {
        let listed = self.events.iter().chain(&self.raw);
        let counted = self.counts.iter().map(|row| row.value);
        let greatest = self.envelope.iter().map(|bin| bin.max);
        counted
            .chain(listed.map(|event| event.value))
            .chain(greatest)
    }
}

/// A count of the samples of one value: a row of `counts.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The value.
    pub value: u64,
    /// How many samples have it.
    pub count: u64,
}

/// One sample with its time: a row of `events.parquet` or `raw.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Number of the sample, from 0. Numbers left out were missed.
    pub index: u64,
    /// When it was due or began.
    pub at: u64,
    /// Its value.
    pub value: u64,
}

/// The sum of the samples within one bin of time: a row of `envelope.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// Number of the bin, from 0; it starts `bin × head.bin` after the head's first sample.
    pub bin: u32,
    /// Samples in it.
    pub n: u64,
    /// Sum of their values.
    pub sum: u64,
    /// Least value.
    pub min: u64,
    /// Greatest value.
    pub max: u64,
}

/// One instance of a target: a row of `instances.parquet`. Times are CLOCK_MONOTONIC of this machine in ns, 0 where
/// the moment never came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// Place of its program in the record.
    pub program: u32,
    /// When it should start.
    pub planned_ns: u64,
    /// When the call that starts it was made.
    pub started_ns: u64,
    /// When its first sign of readiness was read.
    pub ready_ns: u64,
    /// When its end was seen.
    pub exited_ns: u64,
}
