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
    /// Exact counts per value, ascending; only of the listed samples where the head has
    /// `squares_below`.
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

/// One instance of a target, or an arrival that was rejected: a row of `instances.parquet`. Times
/// are CLOCK_MONOTONIC of this machine in ns. A value that is unknown, or never came, is 0.
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
    /// When its end was seen, or the arrival was rejected.
    pub exited_ns: u64,
    /// Its outcome: a number of [`InstanceOutcome`].
    pub fate: u32,
    /// Place of the reason in [`Arrived::failures`](super::Arrived::failures), of one that failed;
    /// the limit of one that was rejected: 0 of live instances, 1 of memory.
    pub failure: u32,
    /// Whether it counts: 1 if it was planned behind the warm-up.
    pub counts: u32,
    /// Its status as `wait` reports it: the exit status times 256, or the signal.
    pub status: u32,
    /// When the machine of a guest was reset: its firmware begins.
    pub reset_ns: u64,
    /// When the kernel or unikernel of a guest began to run.
    pub kernel_ns: u64,
    /// When its own code entered `main`.
    pub main_ns: u64,
    /// CPU time in user mode of the process that was started and of those that it waited for: of a
    /// guest, QEMU's with the guest's.
    pub user_ns: u64,
    /// Likewise in the kernel.
    pub system_ns: u64,
    /// CPU time of its own code, as it reports it.
    pub own_ns: u64,
    /// Greatest resident memory of a process that it took.
    pub peak_bytes: u64,
}

/// How an instance ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceOutcome {
    /// It ended as it should.
    Done,
    /// It was not started, because as many as may be were alive, or as much memory as may be was in
    /// use.
    Rejected,
    /// It ended otherwise, or could not be started.
    Failed,
    /// It had not ended when the cell did, and was ended.
    Unfinished,
}

impl InstanceOutcome {
    const ALL: [Self; 4] = [Self::Done, Self::Rejected, Self::Failed, Self::Unfinished];

    /// Returns its number in a row.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// Returns the outcome of a number, if it is one.
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}

impl Instance {
    /// Returns how late it was started, or rejected, in ns; None if neither is known.
    pub fn lag_ns(&self) -> Option<u64> {
        let taken_ns = match self.outcome() {
            InstanceOutcome::Rejected => self.exited_ns,
            InstanceOutcome::Done | InstanceOutcome::Failed | InstanceOutcome::Unfinished => {
                self.started_ns
            }
        };
        (taken_ns > 0).then(|| taken_ns.saturating_sub(self.planned_ns))
    }

    /// Returns its outcome; [`InstanceOutcome::Failed`] where the number is none.
    pub fn outcome(&self) -> InstanceOutcome {
        InstanceOutcome::of(self.fate).unwrap_or(InstanceOutcome::Failed)
    }
}
