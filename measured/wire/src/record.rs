//! The records by which measured code reports. They name no experiment: what is measured is told by the
//! words that a [`Set`] carries.
//!
//! A sequence is: [`Hello`], [`Ready`], [`Calibration`]; [`Begins`], and [`Live`] and [`Exceeded`] meanwhile, where the
//! plan asks for them; then each [`Set`] and behind it its lists ([`Record::Parts`], [`Record::Counts`],
//! [`Record::Events`], [`Record::Envelope`], [`Record::Raw`]) in any order among each other, each list in the order of its
//! rows; each [`Trace`] and behind it its [`Record::TraceEvents`]; [`Name`]s; [`Record::CutShort`] if
//! the measured code ended before its plan was done, because it was asked to; then [`Frequency`] once for each source,
//! and at last [`End`]. [`Value`], [`Counter`], [`Fact`], [`Notice`] and [`Failure`] may stand anywhere behind [`Hello`];
//! nothing follows a [`Failure`] or the [`End`].
//!
//! A load speaks on a stream of its own ([`crate::line::Stream::Load`]): [`Hello`], [`Record::Going`] as soon as it
//! disturbs, and when it is stopped [`Achieved`] for each thing it did, then [`End`].

use serde::{Deserialize, Serialize};

use crate::packed::Packed;

/// One record.
///
/// New kinds are added at the end: the place of a variant is part of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record<'a> {
    /// Says who speaks.
    #[serde(borrow)]
    Hello(Hello<'a>),
    /// Says that everything is prepared and the workload starts.
    Ready(Ready),
    /// Says what the stamps and the loop cost.
    Calibration(Calibration),
    /// Says what one source claims of the TSC's frequency.
    #[serde(borrow)]
    Frequency(Frequency<'a>),
    /// Heads the samples of one set.
    #[serde(borrow)]
    Set(Set<'a>),
    /// Exact counts per value: rows of (set, part, value − value of the row before, count). The value starts from 0 in
    /// every record and with every other set or part.
    #[serde(borrow)]
    Counts(List<'a>),
    /// Samples at or above the set's threshold: rows of (set, index − the one before, time, value). Time is what
    /// it differs from the time at which the sample was due (zigzag) where the set has a period, and else from the time of the
    /// row before. Index starts from 0 and time from the set's first in every record and with every other set.
    #[serde(borrow)]
    Events(List<'a>),
    /// Envelope over time: rows of (set, number of the bin, samples, sum, least, greatest value). A sample belongs to the
    /// bin of its time; empty bins are left out.
    #[serde(borrow)]
    Envelope(List<'a>),
    /// Samples as they were: rows as those of [`Record::Events`].
    #[serde(borrow)]
    Raw(List<'a>),
    /// Gives one number that is not sampled.
    #[serde(borrow)]
    Value(Value<'a>),
    /// Says something that the reader should know.
    #[serde(borrow)]
    Notice(Notice<'a>),
    /// Says why nothing more comes.
    #[serde(borrow)]
    Failure(Failure<'a>),
    /// Ends the sequence.
    End(End),
    /// Counts something that happened beneath the measured code.
    #[serde(borrow)]
    Counter(Counter<'a>),
    /// Says one thing about the place where the code runs.
    #[serde(borrow)]
    Fact(Fact<'a>),
    /// Says that a load does its full work from now on.
    Going,
    /// Says how much a load did.
    #[serde(borrow)]
    Achieved(Achieved<'a>),
    /// Says when the first sample is due.
    Begins(Begins),
    /// Says how far a set is.
    Live(Live),
    /// Says that a value above the plan's limit was seen.
    Exceeded(Exceeded),
    /// Says of which sample the trace events that follow are.
    Trace(Trace),
    /// Trace events around one of the greatest samples: rows of (place of its [`Trace`], time relative to the
    /// sample's own in ns, zigzag, kind, and two values whose meaning is the kind's, [`crate::trace`]).
    #[serde(borrow)]
    TraceEvents(List<'a>),
    /// Names what trace events give by number.
    #[serde(borrow)]
    Name(Name<'a>),
    /// Says when one phase of a load was; what it achieved follows.
    #[serde(borrow)]
    Phase(Phase<'a>),
    /// Parts of time into which a set's counts are divided, if there are several: rows of (set, begin of the part − begin
    /// of the part before), a row for each part, the first one 0. Begins are counted from the set's first sample, and
    /// start from 0 in every record and with every other set; they don't fall. A sample belongs to the last part that
    /// begins no later than the sample was due; the last part has no end.
    #[serde(borrow)]
    Parts(List<'a>),
    /// Says which tool of a load could not be ended in its time.
    #[serde(borrow)]
    Left(Left<'a>),
    /// Says that the measured code was asked to end, and did before its plan was done. It stands behind what was measured.
    CutShort,
}

impl Record<'_> {
    /// Returns the name that the line carries.
    #[must_use]
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
            Self::Left(_) => "left",
            Self::CutShort => "cut-short",
        }
    }
}

/// Says who speaks, first of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello<'a> {
    /// [`crate::PROTOCOL`] of the speaker.
    pub protocol: u16,
    /// Version of the agent or image.
    pub version: &'a str,
    /// What the measured code runs on: `linux` or `unikernel`.
    pub environment: &'a str,
    /// The plan as it was understood, in words.
    pub plan: &'a str,
}

/// Says that everything is prepared; the workload's warm-up comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// TSC at that moment.
    pub tsc: u64,
    /// CLOCK_MONOTONIC of the kernel beneath, in ns, where there is one.
    pub monotonic_ns: Option<u64>,
    /// CPU that the code is pinned to.
    pub cpu: Option<u32>,
    /// Size of the buffers in bytes.
    pub buffer_bytes: u64,
    /// Whether the buffers can't be paged out.
    pub locked: bool,
    /// Whether deep C-states are kept off for the time of the run.
    pub latency_held: bool,
}

/// What the stamps and the loop cost, on the measured CPU just before measuring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// Least duration that an empty region between fenced stamps reads as.
    pub fenced_region_cycles: u64,
    /// Median time that a repetition with an empty region takes in all, fenced.
    pub fenced_cost_cycles: f64,
    /// Least duration that an empty region between bare `rdtscp` reads as.
    pub published_region_cycles: u64,
    /// Median time that a repetition with an empty region takes in all, bare `rdtscp`.
    pub published_cost_cycles: f64,
    /// Median time of one bare `rdtsc` among many, unrolled.
    pub bare_read_cycles: f64,
    /// Step of the timer.
    pub step_cycles: u64,
    /// Median time of one iteration of an empty loop.
    pub loop_cycles: f64,
}

/// Says what one source claims of the TSC's frequency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frequency<'a> {
    /// Where the figure comes from.
    pub source: FrequencySource,
    /// The figure, in Hz.
    pub hz: f64,
    /// Uncertainty by the way it was read, in parts per million, where it can be told.
    pub uncertainty_ppm: Option<f64>,
    /// What is known beyond that, for example which clock source the kernel uses.
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

/// Heads the samples of one set: all of one measure under one choice of labels. Values and times are in its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set<'a> {
    /// Number of the set, from 0: by it, lists say to which set a row belongs.
    pub number: u32,
    /// What a sample is of: `duration`, for example.
    pub measure: &'a str,
    /// What distinguishes the set from others of its measure: words `key=value`, separated by a blank. May be empty.
    pub labels: &'a str,
    /// Unit of values and times.
    pub unit: Unit,
    /// Samples.
    pub n: u64,
    /// Sum of all values.
    pub sum: u64,
    /// Least value; 0 where values below the threshold are not known one by one.
    pub min: u64,
    /// Greatest value, whether it is counted and listed or not; 0 where none reaches the threshold and those below it
    /// are not known one by one.
    pub max: u64,
    /// Time of the first sample; where the set has a period, when it was due.
    pub first: u64,
    /// Time at which the last sample ended.
    pub last: u64,
    /// Time between two samples that are due: sample `i` is due at `first + i × period`. 0 if samples have times of
    /// their own.
    pub period: u64,
    /// Least value that is listed among the events.
    pub threshold: u64,
    /// Samples at or above the threshold.
    pub seen: u64,
    /// Events listed: fewer than seen if the buffer was full.
    pub kept: u64,
    /// Greatest value at or above the threshold that is not listed; 0 if all are.
    pub unkept_max: u64,
    /// Sum of the values at or above the threshold that are not listed.
    pub unkept_sum: u64,
    /// Sum of the squares of the values below the threshold, where only those at or above it are counted per value.
    pub squares_below: Option<u64>,
    /// Samples that are in no count, because there was no room for another value.
    pub uncounted: u64,
    /// Sum of their values.
    pub uncounted_sum: u64,
    /// Greatest of their values.
    pub uncounted_max: u64,
    /// Samples whose end is before their start, since clocks of CPUs differ. They are in no other figure than the sum of a
    /// set whose values below the threshold are not known one by one: that is the time from the first to the last.
    pub backwards: u64,
    /// Width of one bin of the envelope, from the first sample on; 0 if the set has none.
    pub bin: u64,
    /// Samples kept as they were.
    pub raw: u64,
    /// Parts of time into which the counts are divided ([`Record::Parts`]); 1 if they are not.
    pub parts: u32,
}

/// Gives one number that is not sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value<'a> {
    /// What it is: `missed`, `work`.
    pub measure: &'a str,
    /// What distinguishes it from others of its measure, as [`Set::labels`].
    pub labels: &'a str,
    /// Its unit, or nothing for a mere number: `ns`, `cycles`.
    pub unit: &'a str,
    /// The number.
    pub value: f64,
}

/// Carries a packed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct List<'a> {
    /// The rows.
    #[serde(borrow)]
    pub rows: Packed<'a>,
}

/// Says something that the reader should know, for example that memory could not be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice<'a> {
    /// What, why, and what to do.
    pub text: &'a str,
}

/// Says why nothing more comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure<'a> {
    /// What, why, and what to do.
    pub text: &'a str,
}

/// Counts something that happened on the measured CPU from just before the first sample to just after the last
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter<'a> {
    /// What is counted, for example `timer interrupts`.
    pub name: &'a str,
    /// How often it happened.
    pub count: u64,
}

/// Says one thing about the place where the measured code runs, as it looks from inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact<'a> {
    /// What is told, for example `preemption model`.
    pub name: &'a str,
    /// Of what it is told, as [`Set::labels`]; empty for the place as a whole.
    pub labels: &'a str,
    /// What was found.
    pub value: &'a str,
}

/// Says how much of one thing a load did, from the start of its tools until it was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Achieved<'a> {
    /// What is counted, in the plural: `bytes written`, `messages`, `packets`, `files`.
    pub what: &'a str,
    /// How many.
    pub amount: u64,
    /// In what time.
    pub ns: u64,
}

/// Says when the first sample is due, [`crate::phases::LEAD_NS`] before. From then on the measurement can be asked to end
/// early, and reports what it has: by SIGTERM, and the unikernel by an NMI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begins {
    /// Time of the first sample by the place's clock: CLOCK_MONOTONIC, or the time since the start where there is no
    /// kernel.
    pub origin_ns: u64,
}

/// Says how far a set is, while it is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// Number of the set.
    pub set: u32,
    /// Id in the kernel of the thread that measures it.
    pub tid: u32,
    /// Samples so far.
    pub n: u64,
    /// Samples that were due so far and never came.
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

/// A value above the plan's limit.
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

/// Says of which sample trace events are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Place among those that are kept, from 0.
    pub place: u32,
    /// Number of the set.
    pub set: u32,
    /// Number of the sample.
    pub index: u64,
    /// Its value.
    pub value: u64,
    /// Id in the kernel of the thread that measured it.
    pub tid: u32,
    /// Events that follow.
    pub events: u32,
    /// Whether the kernel's buffer reaches back to the sample's own time: else the events are the last ones only.
    pub complete: bool,
}

/// Names what trace events give by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name<'a> {
    /// What is named: `thread`, `interrupt`, `softirq`, `vector` or `function`.
    pub of: &'a str,
    /// Its number.
    pub number: u64,
    /// Its name.
    pub name: &'a str,
}

/// Says when one phase of a load was. All times are CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase<'a> {
    /// Number of the phase, from 0.
    pub number: u32,
    /// The load, as written.
    pub load: &'a str,
    /// When it was due.
    pub due_ns: u64,
    /// When its tools were started; when it was skipped, if more than half of the phase had passed by then.
    pub started_ns: u64,
    /// When they were told to end.
    pub stopping_ns: u64,
    /// When the last one had ended or was left running.
    pub stopped_ns: u64,
    /// The tool that ended last.
    pub last_tool: Option<&'a str>,
}

/// Says which tool of a load could not be ended in its time, and was left running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its process, in its own kernel.
    pub pid: u32,
    /// Number of the phase that it belongs to, from 0.
    pub phase: u32,
    /// Number of the last phase that began while it was still there: its own if none did.
    pub until: u32,
    /// Whether it had ended when the load did.
    pub ended: bool,
}

/// Ends the sequence, so that a lost tail is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Records before this one.
    pub records: u64,
}
