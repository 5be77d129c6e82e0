//! The records by which measured code reports.
//!
//! A sequence is: [`Hello`], [`Ready`], [`Calibration`], then a [`Batch`] and its lists
//! ([`Record::Counts`], [`Record::Delays`], [`Record::Envelope`], [`Record::Window`]) in any order
//! among each other, each list in the order of its rows, [`Counter`] for each thing counted, then [`Frequency`] once for each source,
//! and at last [`End`]. [`Notice`], [`Fact`] and [`Failure`] may stand anywhere behind [`Hello`];
//! nothing follows a [`Failure`] or the [`End`].
//!
//! A load speaks on a stream of its own ([`crate::line::Stream::Load`]): [`Hello`], [`Record::Going`] as soon as it
//! disturbs, and when it is stopped [`Achieved`] for each thing it did, then [`End`].
//!
//! Wake-ups take the place of the batch: [`Begins`] before the first one, [`Live`] and [`Exceeded`] meanwhile where
//! the plan asks for them, then for each thread a [`Thread`] and the lists ([`Record::LatencyCounts`],
//! [`Record::Peaks`], [`Record::LatencyEnvelope`], [`Record::RawLatencies`]), and for each traced one a [`Worst`]
//! with [`Record::TraceEvents`] and [`Name`]s.
//!
//! All times are TSC ticks of the measured CPU ("cycles") unless a name says otherwise.

use serde::{Deserialize, Serialize};

use crate::packed::Packed;

/// Is one record.
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
    /// Sums up one batch of repetitions.
    Batch(Batch),
    /// Counts per value: rows of (value − value of the row before, count); starts from 0 in every
    /// record. For `gap`, only the gaps at or above the threshold.
    #[serde(borrow)]
    Counts(List<'a>),
    /// Delays above the threshold: rows of (index − the one before, start − the one before,
    /// duration). Index starts from 0 and start from the batch's first stamp in every record.
    #[serde(borrow)]
    Delays(List<'a>),
    /// Envelope over time: rows of (bin number − the one before, samples, sum, shortest, longest);
    /// the bin number starts from 0 in every record, empty bins are left out. A sample belongs
    /// to the bin of its start.
    #[serde(borrow)]
    Envelope(List<'a>),
    /// Raw samples: rows of (index, start − the batch's first stamp, duration).
    #[serde(borrow)]
    Window(List<'a>),
    /// Says something that the reader should know.
    #[serde(borrow)]
    Notice(Notice<'a>),
    /// Says why nothing more comes.
    #[serde(borrow)]
    Failure(Failure<'a>),
    /// Ends the sequence.
    End(End),
    /// Counts something that happened beneath the batch.
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
    /// Says when the first wake-up is due.
    Begins(Begins),
    /// Sums up the wake-ups of one thread.
    #[serde(borrow)]
    Thread(Thread<'a>),
    /// Counts per latency: rows of (thread, slot, ns − ns of the row before, count). The value starts
    /// from 0 in every record and with every other thread or slot. Slots are numbered through, each phase has
    /// [`crate::wakeup::SLOTS`].
    #[serde(borrow)]
    LatencyCounts(List<'a>),
    /// Wake-ups above the threshold: rows of (thread, number of the activation, latency in ns).
    #[serde(borrow)]
    Peaks(List<'a>),
    /// Envelope over time: rows of (thread, number of the bin, wake-ups, sum, least, greatest latency in
    /// ns); empty bins are left out. A wake-up belongs to the bin of its planned time.
    #[serde(borrow)]
    LatencyEnvelope(List<'a>),
    /// Wake-ups as they were: rows of (thread, activation − the one before, latency in ns). The
    /// activation starts from 0 in every record and with every other thread.
    #[serde(borrow)]
    RawLatencies(List<'a>),
    /// Says how far a thread is.
    Live(Live),
    /// Says that a latency above the plan's limit was seen.
    Exceeded(Exceeded),
    /// Says of which wake-up the trace events that follow are.
    Worst(Worst),
    /// Trace events around one of the worst wake-ups: rows of (its place among them, time relative to the
    /// planned one in ns, zigzag, kind, and two values whose meaning is the kind's, [`crate::trace`]).
    #[serde(borrow)]
    TraceEvents(List<'a>),
    /// Names what trace events give by number.
    #[serde(borrow)]
    Name(Name<'a>),
    /// Says when one phase of a load was; what it achieved follows.
    #[serde(borrow)]
    Phase(Phase<'a>),
    /// Says which tool of a load could not be ended in its time.
    #[serde(borrow)]
    Left(Left<'a>),
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
            Self::Batch(_) => "batch",
            Self::Counts(_) => "counts",
            Self::Delays(_) => "delays",
            Self::Envelope(_) => "envelope",
            Self::Window(_) => "window",
            Self::Notice(_) => "notice",
            Self::Failure(_) => "failure",
            Self::End(_) => "end",
            Self::Counter(_) => "counter",
            Self::Fact(_) => "fact",
            Self::Going => "going",
            Self::Achieved(_) => "achieved",
            Self::Begins(_) => "begins",
            Self::Thread(_) => "thread",
            Self::LatencyCounts(_) => "latency-counts",
            Self::Peaks(_) => "peaks",
            Self::LatencyEnvelope(_) => "latency-envelope",
            Self::RawLatencies(_) => "raw-latencies",
            Self::Live(_) => "live",
            Self::Exceeded(_) => "exceeded",
            Self::Worst(_) => "worst",
            Self::TraceEvents(_) => "trace-events",
            Self::Name(_) => "name",
            Self::Phase(_) => "phase",
            Self::Left(_) => "left",
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

/// Says what the stamps and the loop cost, on this CPU, just before the workload ran.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Step of the timer: the greatest common divisor of differences between consecutive reads.
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

/// Is a source of the TSC's frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Sums up one batch of repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Repetitions asked for; for `gap`, timer reads.
    pub repetitions: u64,
    /// TSC of the first stamp.
    pub first_tsc: u64,
    /// TSC of the last stamp.
    pub last_tsc: u64,
    /// Sum of all durations; for `gap`, equal to the time from first to last.
    pub sum_cycles: u64,
    /// Sum of the squared durations below the threshold, `gap` only: they are not counted per
    /// value.
    pub quiet_squares: Option<u64>,
    /// What the work yielded: the number of primes; for others 0.
    pub result: u64,
    /// Elementary steps in one repetition: divisions, elements copied, timer reads.
    pub work: u64,
    /// Least delay that is listed; for `gap`, the least gap.
    pub threshold_cycles: u64,
    /// Delays above the threshold.
    pub delays_seen: u64,
    /// Delays that are listed: fewer than seen if the buffer was full.
    pub delays_kept: u64,
    /// Longest delay that is not listed, as duration; 0 if all are.
    pub unkept_longest: u64,
    /// Sum of the durations that are not listed.
    pub unkept_cycles: u64,
    /// Samples whose second stamp is before their first one; they are counted here only.
    pub backwards: u64,
    /// Width of one envelope bin.
    pub bin_cycles: u64,
    /// Time spent on folding the samples after the batch.
    pub fold_cycles: u64,
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

/// Counts something that happened on the measured CPU from just before the batch's first stamp to
/// just after its last one.
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

/// Says when the first wake-up is due, [`crate::wakeup::LEAD_NS`] before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begins {
    /// Planned time of activation 0 of every thread, by the place's clock: CLOCK_MONOTONIC, or the time
    /// since the start where there is no kernel.
    pub origin_ns: u64,
}

/// Sums up the wake-ups of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread<'a> {
    /// Number of the thread, from 0.
    pub number: u32,
    /// Its id in the kernel; 0 where there is none.
    pub tid: u32,
    /// CPU that it is pinned to.
    pub cpu: Option<u32>,
    /// Policy it was scheduled under: `fifo`, `rr`, `deadline`, `other`, or `interrupt` in the unikernel.
    pub policy: &'a str,
    /// Its real-time priority, or 0.
    pub priority: u32,
    /// Time between two activations. Activation `n` was planned for the origin and `n` intervals.
    pub interval_ns: u64,
    /// Wake-ups: each has one latency.
    pub woken: u64,
    /// Activations that were due before the thread had run for the one before. They have no wake-up.
    pub missed: u64,
    /// Least latency.
    pub min_ns: u64,
    /// Greatest latency.
    pub max_ns: u64,
    /// Sum of all latencies.
    pub sum_ns: u64,
    /// Least latency that is listed among the peaks.
    pub threshold_ns: u64,
    /// Wake-ups at or above the threshold.
    pub peaks_seen: u64,
    /// Wake-ups that are listed: fewer than seen if the buffer was full.
    pub peaks_kept: u64,
    /// Wake-ups whose latency is not in the counts, because there was no room for another value.
    pub uncounted: u64,
    /// Sum of their latencies.
    pub uncounted_ns: u64,
    /// Greatest of their latencies.
    pub uncounted_max_ns: u64,
    /// Width of one bin of the envelope.
    pub bin_ns: u64,
    /// Wake-ups kept as they were, from the first on.
    pub raw_kept: u64,
    /// Median time that recording one wake-up took, measured before the first one.
    pub recording_ns: u64,
}

/// Says how far a thread is, while it measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// Number of the thread.
    pub thread: u32,
    /// Its id in the kernel.
    pub tid: u32,
    /// Wake-ups so far.
    pub woken: u64,
    /// Missed activations so far.
    pub missed: u64,
    /// Least latency so far.
    pub min_ns: u64,
    /// Latency of the last wake-up.
    pub last_ns: u64,
    /// Sum of all latencies so far.
    pub sum_ns: u64,
    /// Greatest latency so far.
    pub max_ns: u64,
}

/// Says that a latency above the plan's limit was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exceeded {
    /// Number of the thread.
    pub thread: u32,
    /// Number of the activation.
    pub activation: u64,
    /// The latency.
    pub latency_ns: u64,
}

/// Says of which wake-up trace events are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worst {
    /// Place among the worst, from 0.
    pub place: u32,
    /// Number of the thread.
    pub thread: u32,
    /// Number of the activation.
    pub activation: u64,
    /// The latency.
    pub latency_ns: u64,
    /// Events that follow.
    pub events: u32,
    /// Whether the kernel's buffer reaches back to the planned time: else the events are the last ones only.
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
