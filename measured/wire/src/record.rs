//! The records with which measured code reports. They name no experiment: the words of a [`Set`]
//! describe the measurement.
//!
//! A sequence is:
//!
//! 1. [`Hello`], [`Ready`], [`Calibration`];
//! 2. [`Begins`], and during the measurement [`Live`] and [`Exceeded`], if the plan asks for them;
//! 3. each [`Set`], followed by its lists ([`Record::Parts`], [`Record::Counts`],
//!    [`Record::Events`], [`Record::Envelope`], [`Record::Raw`]) in any order, the rows of each
//!    list in order;
//! 4. each [`Trace`], followed by its [`Record::TraceEvents`]; [`Name`]s;
//! 5. [`Record::CutShort`] if the measured code was asked to end before its plan was done;
//! 6. [`Frequency`] once for each source, and [`End`].
//!
//! [`Value`], [`Counter`], [`Fact`], [`Notice`] and [`Failure`] may be anywhere behind [`Hello`];
//! nothing follows a [`Failure`] or the [`End`].
//!
//! A load has its own stream ([`crate::line::Stream::Load`]): [`Hello`], [`Record::Going`] at full
//! load, and after its end [`Achieved`] for each kind of work, then [`End`].

use serde::{Deserialize, Serialize};

use crate::packed::Packed;

/// One record.
///
/// New kinds are added at the end: the index of a variant is part of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record<'a> {
    /// The sender.
    #[serde(borrow)]
    Hello(Hello<'a>),
    /// The end of the preparation and the start of the workload.
    Ready(Ready),
    /// The costs of the time stamps and the loop.
    Calibration(Calibration),
    /// The TSC's frequency by one source.
    #[serde(borrow)]
    Frequency(Frequency<'a>),
    /// The head of the samples of one set.
    #[serde(borrow)]
    Set(Set<'a>),
    /// Exact counts per value: rows of (set, part, value − value of the row before, count). The
    /// value starts from 0 in every record and with every other set or part.
    #[serde(borrow)]
    Counts(List<'a>),
    /// Samples at or above the set's threshold: rows of (set, index − the one before, time, value).
    /// The time is the difference from the time at which the sample was due (zigzag) if the set has
    /// a period, otherwise from the time of the row before. The index starts from 0 and the time
    /// from the set's first in every record and with every other set.
    #[serde(borrow)]
    Events(List<'a>),
    /// The envelope over time: rows of (set, number of the bin, samples, sum, least, greatest
    /// value). A sample belongs to the bin of its time; empty bins are omitted.
    #[serde(borrow)]
    Envelope(List<'a>),
    /// Single samples: rows like those of [`Record::Events`].
    #[serde(borrow)]
    Raw(List<'a>),
    /// A number that is not sampled.
    #[serde(borrow)]
    Value(Value<'a>),
    /// A notice for the reader.
    #[serde(borrow)]
    Notice(Notice<'a>),
    /// The reason why the sequence ends here.
    #[serde(borrow)]
    Failure(Failure<'a>),
    /// The end of the sequence.
    End(End),
    /// A count of events below the measured code.
    #[serde(borrow)]
    Counter(Counter<'a>),
    /// A fact about the target.
    #[serde(borrow)]
    Fact(Fact<'a>),
    /// A load has reached full load.
    Going,
    /// The work of a load.
    #[serde(borrow)]
    Achieved(Achieved<'a>),
    /// The time at which the first sample is due.
    Begins(Begins),
    /// The state of a set during the measurement.
    Live(Live),
    /// A value above the plan's limit.
    Exceeded(Exceeded),
    /// The sample of the trace events that follow; or samples around which the same happened, whose times
    /// are added up.
    Trace(Trace),
    /// Trace events around one of the greatest samples: rows of (place of its [`Trace`], time
    /// relative to the sample in ns (zigzag), kind, and two values that depend on the kind,
    /// [`crate::trace`]).
    #[serde(borrow)]
    TraceEvents(List<'a>),
    /// The name behind a number in trace events.
    #[serde(borrow)]
    Name(Name<'a>),
    /// The times of one phase of a load; its work follows.
    #[serde(borrow)]
    Phase(Phase<'a>),
    /// Parts of time into which a set's counts are divided, if there are several: rows of (set,
    /// beginning of the part − that of the part before), a row for each part, the first one 0.
    /// Beginnings are relative to the set's first sample, start from 0 in every record and with
    /// every other set, and don't fall. A sample belongs to the last part that begins no later than
    /// the sample was due; the last part has no end.
    #[serde(borrow)]
    Parts(List<'a>),
    /// A tool of a load that did not end in time.
    #[serde(borrow)]
    Leftovers(Leftovers<'a>),
    /// The measured code was asked to end before its plan was done. It follows the results.
    CutShort,
}

impl Record<'_> {
    /// Returns the name of the record in its line.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Ready(_) => "ready",
            Self::Calibration(_) => "calibration",
            Self::Frequency(_) => "frequency",
            Self::Set(_) => "set",
            Self::Counts(_) => "counts",
            Self::Events(_) => "events",
            Self::Envelope(_) => "envelope",
            Self::Raw(_) => "raw",
            Self::Value(_) => "value",
            Self::Notice(_) => "notice",
            Self::Failure(_) => "failure",
            Self::End(_) => "end",
            Self::Counter(_) => "counter",
            Self::Fact(_) => "fact",
            Self::Going => "going",
            Self::Achieved(_) => "achieved",
            Self::Begins(_) => "begins",
            Self::Live(_) => "live",
            Self::Exceeded(_) => "exceeded",
            Self::Trace(_) => "trace",
            Self::TraceEvents(_) => "trace-events",
            Self::Name(_) => "name",
            Self::Phase(_) => "phase",
            Self::Parts(_) => "parts",
            Self::Leftovers(_) => "left",
            Self::CutShort => "cut-short",
        }
    }
}

/// The sender. The first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello<'a> {
    /// [`crate::PROTOCOL`] of the sender.
    pub protocol: u16,
    /// The version of the agent or image.
    pub version: &'a str,
    /// The platform of the measured code: `linux` or `unikernel`.
    pub environment: &'a str,
    /// The plan in words.
    pub plan: &'a str,
}

/// The end of the preparation; the workload's warm-up follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// TSC at that moment.
    pub tsc: u64,
    /// CLOCK_MONOTONIC in ns, if there is a kernel.
    pub monotonic_ns: Option<u64>,
    /// The CPU to which the code is pinned.
    pub cpu: Option<u32>,
    /// The size of the buffers in bytes.
    pub buffer_bytes: u64,
    /// Whether the buffers are locked in memory.
    pub locked: bool,
    /// Whether deep C-states are disabled during the run.
    pub latency_held: bool,
}

/// The cost of the stamps and of the loop, on the measured CPU just before the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// Least duration that an empty region between fenced stamps reads as.
    pub fenced_region_cycles: u64,
    /// Median total time of a repetition with an empty region, fenced.
    pub fenced_cost_cycles: f64,
    /// Least duration that an empty region between bare `rdtscp` reads as.
    pub published_region_cycles: u64,
    /// Median total time of a repetition with an empty region, bare `rdtscp`.
    pub published_cost_cycles: f64,
    /// Median time of one bare `rdtsc` among many, unrolled.
    pub bare_read_cycles: f64,
    /// Step of the timer.
    pub step_cycles: u64,
    /// Median time of one iteration of an empty loop.
    pub loop_cycles: f64,
}

impl Calibration {
    /// Returns the least duration of an empty region, between fenced stamps or bare `rdtscp`, in
    /// cycles. One shorter than the timer's step is 0: an emulator may let two reads within a step
    /// differ by a cycle.
    pub fn empty_region(&self, is_published: bool) -> u64 {
        let region = match is_published {
            true => self.published_region_cycles,
            false => self.fenced_region_cycles,
        };
        // A fractional step reads as the next whole number of cycles.
        if region + 1 < self.step_cycles {
            0
        } else {
            region
        }
    }
}

/// The TSC's frequency by one source.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frequency<'a> {
    /// The source.
    pub source: FrequencySource,
    /// The frequency in Hz.
    pub hz: f64,
    /// The uncertainty of the reading in parts per million, if it is known.
    pub uncertainty_ppm: Option<f64>,
    /// Details, such as the kernel's clock source.
    pub detail: &'a str,
}

/// A source of the TSC's frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FrequencySource {
    /// CPUID leaf 0x15: crystal clock and ratio.
    CpuidCrystal,
    /// CPUID leaf 0x40000010: the hypervisor's word.
    CpuidHypervisor,
    /// The kernel's CLOCK_MONOTONIC_RAW, read between TSC reads at both ends of the run.
    KernelClock,
    /// The same, corrected by the rate at which NTP or PTP steers the kernel's clock.
    DisciplinedClock,
    /// A timer of known frequency, counted against the TSC.
    HardwareTimer,
    /// The factor by which a hypervisor's paravirtual clock turns TSC ticks into ns.
    ParavirtualClock,
}

/// What values are counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Ticks of the measured CPU's TSC.
    #[default]
    Cycles,
    /// Nanoseconds of the place's clock.
    Ns,
}

/// The head of one set: all samples of one measure with one choice of labels. Values and times are
/// in its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set<'a> {
    /// The number of the set, from 0, to which the rows of lists refer.
    pub number: u32,
    /// The measure of a sample, such as `duration`.
    pub measure: &'a str,
    /// The labels that distinguish the set from others of its measure: words `key=value`, separated
    /// by blanks. May be empty.
    pub labels: &'a str,
    /// Unit of values and times.
    pub unit: Unit,
    /// Samples.
    pub n: u64,
    /// Sum of all values.
    pub sum: u64,
    /// Least value; 0 where values below the threshold are not known one by one.
    pub min: u64,
    /// Greatest value, also if it is not counted and listed; 0 if none reaches the threshold and
    /// those below it are not known one by one.
    pub max: u64,
    /// Time of the first sample; where the set has a period, when it was due.
    pub first: u64,
    /// Time at which the last sample ended.
    pub last: u64,
    /// Time between two samples: sample `i` is due at `first + i × period`. 0 if samples are not
    /// periodic.
    pub period: u64,
    /// Least value that is listed among the events.
    pub threshold: u64,
    /// Samples at or above the threshold.
    pub seen: u64,
    /// Events listed: fewer than seen if the buffer was full.
    pub kept: u64,
    /// Events listed, if only longer ones are, of all that are kept in the counts.
    pub listed: Option<u64>,
    /// Greatest value at or above the threshold that is not listed; 0 if all are.
    pub unkept_max: u64,
    /// Sum of the values at or above the threshold that are not listed.
    pub unkept_sum: u64,
    /// Sum of the squares of the values below the threshold, if only those at or above it are
    /// counted per value.
    pub squares_below: Option<u64>,
    /// Samples that were not counted, because there was no room for another value.
    pub uncounted: u64,
    /// Sum of the uncounted values.
    pub uncounted_sum: u64,
    /// Least uncounted value.
    pub uncounted_min: u64,
    /// Greatest uncounted value.
    pub uncounted_max: u64,
    /// Samples whose end is before their start, since clocks of CPUs differ. They count in no other
    /// figure except the sum of a set whose values below the threshold are not known one by one:
    /// that is the time from the first to the last.
    pub backwards: u64,
    /// Width of one bin of the envelope, from the first sample; 0 if the set has none.
    pub bin: u64,
    /// Single samples kept.
    pub raw: u64,
    /// Parts of time into which the counts are divided ([`Record::Parts`]); 1 if they are not.
    pub parts: u32,
}

/// A number that is not sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value<'a> {
    /// The measure, such as `missed` or `work`.
    pub measure: &'a str,
    /// Labels, as [`Set::labels`].
    pub labels: &'a str,
    /// The unit, such as `ns` or `cycles`; empty for a plain number.
    pub unit: &'a str,
    /// The number.
    pub value: f64,
}

/// A packed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct List<'a> {
    /// The rows.
    #[serde(borrow)]
    pub rows: Packed<'a>,
}

/// A notice for the reader, for example that memory could not be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice<'a> {
    /// What happened, why, and what to do.
    pub text: &'a str,
}

/// The reason why the sequence ends here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure<'a> {
    /// What happened, why, and what to do.
    pub text: &'a str,
}

/// A count of events on the measured CPU, from just before the first sample to just after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter<'a> {
    /// The events, such as `timer interrupts`.
    pub name: &'a str,
    /// The count.
    pub count: u64,
    /// The CPU of several that are measured at once, such as `cpu=1`; empty for the only one.
    pub labels: &'a str,
}

/// The [`Counter`] of the time that a hypervisor says it took from a CPU, in ticks of 10 ms.
pub const STEAL: &str = "ticks stolen by the hypervisor";

/// The [`Counter`] of the measured thread's CPU time, in ns.
pub const CPU_TIME: &str = "CPU time";

/// The [`Counter`] of the time in which it had that, in ns.
pub const TIME: &str = "time";

/// A fact about the target, as seen from inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact<'a> {
    /// The name, such as `preemption model`.
    pub name: &'a str,
    /// Labels, as [`Set::labels`]; empty for a fact about the whole target.
    pub labels: &'a str,
    /// The value.
    pub value: &'a str,
}

/// The work of a load, from the start of its tools until it was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Achieved<'a> {
    /// The counted things, in the plural: `bytes written`, `messages`, `packets`, `files`.
    pub what: &'a str,
    /// Their number.
    pub amount: u64,
    /// The time.
    pub ns: u64,
}

/// The time at which the first sample is due, sent [`crate::phases::LEAD_NS`] before it. From then
/// on the measurement can be asked to end early, and reports its results so far: by SIGTERM, and
/// the unikernel by an NMI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begins {
    /// The time of the first sample by the target's clock: CLOCK_MONOTONIC, or the time since the
    /// start if there is no kernel.
    pub origin_ns: u64,
}

/// The state of a set during the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// Number of the set.
    pub set: u32,
    /// The kernel's id of the thread that measures it.
    pub tid: u32,
    /// Samples so far.
    pub n: u64,
    /// Samples that were due so far and missed.
    pub missed: u64,
    /// Least value so far.
    pub min: u64,
    /// Value of the last sample.
    pub last: u64,
    /// Sum of all values so far.
    pub sum: u64,
    /// Greatest value so far.
    pub max: u64,
}

/// A value above the plan's limit, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exceeded {
    /// Place of the set in the record, from 0.
    pub set: u32,
    /// Number of the sample.
    pub index: u64,
    /// The value.
    pub value: u64,
}

/// The sample of the trace events that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Its place among the kept samples, from 0.
    pub place: u32,
    /// Number of the set.
    pub set: u32,
    /// Number of the sample; of several, that of the greatest.
    pub index: u64,
    /// Its value; of several, their sum.
    pub value: u64,
    /// The greatest value.
    pub greatest: u64,
    /// How many samples it stands for.
    pub samples: u64,
    /// The kernel's id of the thread that measured it.
    pub tid: u32,
    /// Events that follow.
    pub events: u32,
    /// Whether the kernel's buffer reaches back to the time of the sample; otherwise the first
    /// events are missing.
    pub complete: bool,
}

/// The name behind a number in trace events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name<'a> {
    /// The kind: `thread`, `process`, `interrupt`, `softirq`, `vector`, `page` or `function`.
    pub of: &'a str,
    /// Its number; of a process, that of one of its threads.
    pub number: u64,
    /// Its name.
    pub name: &'a str,
}

/// The times of one phase of a load, by CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase<'a> {
    /// Number of the phase, from 0.
    pub number: u32,
    /// The load, as written.
    pub load: &'a str,
    /// The time at which it was due.
    pub due_ns: u64,
    /// The start of its tools; the time at which it was skipped, if more than half of it had
    /// passed.
    pub started_ns: u64,
    /// The time at which they were asked to end.
    pub stopping_ns: u64,
    /// The end of the last tool, or the time at which it was left running.
    pub stopped_ns: u64,
    /// The tool that ended last.
    pub last_tool: Option<&'a str>,
}

/// A tool of a load that did not end in time and was left running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftovers<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The id of its process, in its own kernel.
    pub pid: u32,
    /// The number of its phase, from 0.
    pub phase: u32,
    /// The number of the last phase that began while it was running: its own if none did.
    pub until: u32,
    /// Whether it had ended when the load did.
    pub ended: bool,
}

/// The end of the sequence, so that a lost tail is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Records before this one.
    pub records: u64,
}
