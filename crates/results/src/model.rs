//! What a run folder says: the plan and one record for each cell.
//!
//! Only facts are here: what was asked, what was seen. Whatever can be derived (means, classes,
//! shares, verdicts) is derived by those who read the folder, so that a better method can be
//! applied to an old run.
//!
//! Units are in the names: `_ns`, `_seconds`, `_bytes`, `_hz`, and `_cycles` for ticks of the
//! measured CPU's TSC.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::target::TargetSpec;
use crate::work::Work;

/// Is the version of the run folder's schema. It is raised when a reader of the old version would
/// misread the new one; fields that are only added do not raise it.
pub const SCHEMA: u32 = 1;

/// Is `plan.json`: what the run was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Version of the schema, [`SCHEMA`].
    pub schema: u32,
    /// Version of `tare` that made the plan.
    pub tare_version: String,
    /// Name of the experiment, `noise`; of several joined by `+`.
    pub experiment: String,
    /// When the plan was made, UTC.
    #[schemars(with = "String")]
    pub created: Timestamp,
    /// The command line, program name first.
    pub command: Vec<String>,
    /// Seed of the random order within each block.
    pub seed: u64,
    /// CPU that the workloads are pinned to.
    pub cpu: u32,
    /// Why that CPU.
    pub cpu_reason: String,
    /// Kernel settings changed for the time of the run, and put back afterwards.
    pub settings: Vec<SettingPlan>,
    /// The study that asked for it; None if the command line did.
    #[serde(default)]
    pub study: Option<StudyPlan>,
    /// Whether an engine that targets need and that does not run is started for their cells, and
    /// stopped after them.
    #[serde(default)]
    pub start_engine: bool,
    /// The cells, in the order in which they run: block by block.
    pub cells: Vec<CellPlan>,
}

/// Says which study a run belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StudyPlan {
    /// Its name.
    pub name: String,
    /// The published study whose tables and claims the report is to show beside the figures.
    pub reproduces: Option<String>,
    /// Whether its shorter variant ran.
    pub quick: bool,
    /// The study's file, as it was when the plan was made.
    pub text: String,
}

impl Plan {
    /// Returns the command that goes on with the run, without the name of its folder.
    #[must_use]
    pub fn resume_command(&self) -> String {
        match self.study {
            Some(_) => "tare run --resume".to_owned(),
            None => format!("tare {} --resume", self.experiment),
        }
    }
}

/// Says which kernel setting is changed for the time of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingPlan {
    /// File below /proc/sys or /sys.
    pub path: String,
    /// Value during the run.
    pub value: String,
}

/// Says what one cell is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellPlan {
    /// Number of the cell, from 1, in running order. Names its folder.
    pub id: u32,
    /// Number of the block (run) that it belongs to, from 1. A block holds every combination once.
    pub block: u32,
    /// Experiment that it belongs to.
    #[serde(default = "noise")]
    pub experiment: String,
    /// Target.
    pub target: TargetSpec,
    /// Load as it is written on the command line: `idle`. Of loads one after the other, the schedule:
    /// `25s:idle;dd`.
    pub load: String,
    /// The loads that run one after the other in one measurement, each as long as `phase_seconds`; empty if there is
    /// but one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<String>,
    /// How long each phase is, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_seconds: Option<f64>,
    /// Workload: `prime`, `copy`, `gap` or `wakeup`.
    pub workload: String,
    /// The kot-2019 column `limit-or-size`: limit of `prime`, elements of `copy`. None for `gap`.
    pub size: Option<u64>,
    /// Timed repetitions; for `gap`, timer reads; for `wakeup`, activations of the first thread.
    pub repetitions: u64,
    /// Timing: `fenced` or `published`; for `wakeup`, `absolute`.
    pub timing: String,
    /// What distinguishes it from others of its experiment beside target and load.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// What the measured code is asked to do.
    pub work: Work,
    /// Estimated duration of the cell in seconds.
    pub estimate_seconds: f64,
    /// Time after which the cell counts as hung, in seconds.
    pub limit_seconds: f64,
}

/// Is the experiment of runs from before there were others.
fn noise() -> String {
    "noise".to_owned()
}

impl CellPlan {
    /// Says whether two cells differ only in their block: then they are repetitions of each other.
    #[must_use]
    pub fn repeats(&self, other: &Self) -> bool {
        self.experiment == other.experiment
            && self.target == other.target
            && self.load == other.load
            && self.work == other.work
    }

    /// Names the combination: `process prime 22`.
    #[must_use]
    pub fn label(&self) -> String {
        let mut label = format!("{} {}", self.target, self.workload);
        if let Some(size) = self.size {
            label.push_str(&format!(" {size}"));
        }
        if let Some(seconds) = self.phase_seconds {
            label.push_str(&format!(" in {} phases of {seconds} s", self.phases.len()));
        } else if self.load != "idle" {
            label.push_str(&format!(" under {}", self.load));
        }
        if self.is_traced() {
            label.push_str(" traced");
        }
        label
    }

    /// Says whether the kernel's events are recorded, which costs time.
    #[must_use]
    pub fn is_traced(&self) -> bool {
        self.work.rights.kernel_events
    }
}

/// What distinguishes cells of one target and load from each other: `workload=prime size=22`.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// Returns the same with one more.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.0.insert(key.to_owned(), value.to_string());
        self
    }

    /// Returns the value of a label.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Says whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Is `cell.json`: what was seen of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Version of the schema, [`SCHEMA`].
    pub schema: u32,
    /// What was asked.
    pub plan: CellPlan,
    /// When the cell was started, UTC.
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    /// The four time stamps of the instance.
    pub events: Events,
    /// What came of it.
    pub outcome: Outcome,
    /// What the agent or this tool remarked.
    pub notices: Vec<String>,
    /// What the load did, where one ran.
    #[serde(default)]
    pub load: Option<Load>,
    /// Daemons that ran on this machine meanwhile and may disturb: `dockerd`, `containerd`.
    #[serde(default)]
    pub daemons: Vec<String>,
}

/// Says what a load did while a cell ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// Where it ran.
    pub place: LoadPlace,
    /// How much it did.
    pub achieved: Vec<Achieved>,
    /// In what it differs from the published load, and what else it remarked.
    pub notices: Vec<String>,
    /// When each phase was and what it achieved, where loads ran one after the other. `achieved` is empty then.
    #[serde(default)]
    pub phases: Vec<LoadPhase>,
}

/// Says when one phase of a load was, and what it achieved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPhase {
    /// Number of the phase, from 0.
    pub number: u32,
    /// The load, as written on the command line.
    pub load: String,
    /// When its tools were started, by the CLOCK_MONOTONIC of the kernel that they ran under.
    pub started_ns: u64,
    /// When they were told to end.
    pub stopping_ns: u64,
    /// When the last one had ended.
    pub stopped_ns: u64,
    /// How much it did.
    pub achieved: Vec<Achieved>,
}

/// Is the place of a load, as seen from the measured code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadPlace {
    /// On the machine that the target runs on, beside it.
    Beside,
    /// Inside the target, under the same kernel as the measured code.
    Inside,
}

/// Says how much of one thing a load did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Achieved {
    /// What is counted, in the plural: `bytes written`, `messages`, `packets`, `files`.
    pub what: String,
    /// How many.
    pub amount: u64,
    /// In what time.
    pub ns: u64,
}

/// Holds the four time stamps that every instance of every target yields, CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Events {
    /// When it should start.
    pub planned_ns: u64,
    /// When the call that starts it was made.
    pub started_ns: u64,
    /// When its first sign of readiness was read.
    pub ready_ns: Option<u64>,
    /// When its end was seen.
    pub exited_ns: Option<u64>,
}

/// Says what came of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// A batch ran to its end, and every record arrived.
    Done(Box<Measurement>),
    /// Threads measured their wake-ups to the end, and every record arrived.
    Woken(Box<Wakeups>),
    /// It did not.
    Failed {
        /// What happened, and what to do.
        reason: String,
    },
}

/// Holds the facts of a batch that ran to its end; its samples are in the Parquet files beside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Who ran it.
    pub agent: Agent,
    /// How it was prepared.
    pub preparation: Preparation,
    /// What the stamps and the loop cost.
    pub calibration: Calibration,
    /// What each source claims of the TSC's frequency.
    pub frequencies: Vec<Frequency>,
    /// Sums over the batch.
    pub batch: Batch,
    /// What was counted on the measured CPU during the batch: interrupts of the unikernel.
    #[serde(default)]
    pub counters: Vec<Counter>,
    /// What the place looks like from inside.
    #[serde(default)]
    pub facts: Vec<Fact>,
}

/// Holds the facts of a wake-up measurement that ran to its end; the latencies are in the Parquet files
/// beside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wakeups {
    /// Who ran it.
    pub agent: Agent,
    /// How it was prepared.
    pub preparation: Preparation,
    /// What the time stamps cost.
    pub calibration: Calibration,
    /// What each source claims of the TSC's frequency.
    pub frequencies: Vec<Frequency>,
    /// What was counted on the measured CPU meanwhile.
    #[serde(default)]
    pub counters: Vec<Counter>,
    /// What the place looks like from inside.
    #[serde(default)]
    pub facts: Vec<Fact>,
    /// Planned time of activation 0 of every thread, by the place's own CLOCK_MONOTONIC.
    pub origin_ns: u64,
    /// The threads that measured.
    pub threads: Vec<WakeupThread>,
    /// Latencies above the limit that the plan set, in the order in which they were seen.
    #[serde(default)]
    pub exceeded: Vec<Exceeded>,
    /// What the kernel did around the worst wake-ups, where it was traced.
    #[serde(default)]
    pub worst: Vec<WorstWakeup>,
}

/// Sums up the wake-ups of one thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WakeupThread {
    /// Number of the thread, from 0.
    pub number: u32,
    /// Its id in the kernel; 0 where there is none.
    pub tid: u32,
    /// CPU that it was pinned to.
    pub cpu: Option<u32>,
    /// Policy it was scheduled under: `fifo`, `rr`, `deadline`, `other`, or `interrupt` in the unikernel.
    pub policy: String,
    /// Its real-time priority, or 0.
    pub priority: u32,
    /// Time between two activations.
    pub interval_ns: u64,
    /// Wake-ups: each has one latency.
    pub woken: u64,
    /// Activations that were due before the thread had run for the one before; they have no wake-up.
    pub missed: u64,
    /// Least latency.
    pub min_ns: u64,
    /// Greatest latency.
    pub max_ns: u64,
    /// Sum of all latencies.
    pub sum_ns: u64,
    /// Least latency listed in `peaks.parquet`.
    pub threshold_ns: u64,
    /// Wake-ups at or above the threshold.
    pub peaks_seen: u64,
    /// Wake-ups listed: fewer than seen if the buffer was full.
    pub peaks_kept: u64,
    /// Wake-ups that are not in `latencies.parquet`, because there was no room for another value.
    pub uncounted: u64,
    /// Sum of their latencies.
    pub uncounted_ns: u64,
    /// Greatest of their latencies.
    pub uncounted_max_ns: u64,
    /// Width of one bin of `bins.parquet`.
    pub bin_ns: u64,
    /// Wake-ups in `raw.parquet`, from the first on.
    pub raw_kept: u64,
    /// Median time that recording one wake-up took.
    pub recording_ns: u64,
}

/// Says that a latency above the plan's limit was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exceeded {
    /// Number of the thread.
    pub thread: u32,
    /// Number of the activation.
    pub activation: u64,
    /// The latency.
    pub latency_ns: u64,
}

/// Says what the kernel did around one of the worst wake-ups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorstWakeup {
    /// Number of the thread.
    pub thread: u32,
    /// Number of the activation.
    pub activation: u64,
    /// The latency.
    pub latency_ns: u64,
    /// Whether the events reach back to the planned time.
    pub complete: bool,
    /// What the kernel's trace has, in order of time.
    pub events: Vec<TraceEvent>,
}

/// Is one event of the kernel's trace on the CPU of a late thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEvent {
    /// Time after the planned wake-up; negative before it.
    pub at_ns: i64,
    /// What happened.
    #[serde(flatten)]
    pub what: TraceKind,
    /// Whether an interrupt came while the CPU was in user mode, so that interrupts were on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_user: bool,
    /// Functions of the kernel, innermost first: at an interrupt those that it interrupted, at a switch those that
    /// led to it. Empty where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}

/// Says what happened, with the names that the kernel has for those concerned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TraceKind {
    /// An interrupt was entered.
    InterruptEntry {
        /// Its name: `local timer`, `virtio0-req.0`.
        name: String,
    },
    /// It was left.
    InterruptExit {
        /// Its name.
        name: String,
    },
    /// A softirq was entered.
    SoftirqEntry {
        /// Its name: `NET_RX`.
        name: String,
    },
    /// It was left.
    SoftirqExit {
        /// Its name.
        name: String,
    },
    /// A timer's function was called in the timer interrupt.
    TimerExpired {
        /// Whether it wakes a sleeping thread up.
        wakes: bool,
    },
    /// A thread was made runnable.
    Waking {
        /// Its name and number: `dd/1234`.
        thread: String,
        /// Whether it is the thread that measures.
        ours: bool,
        /// Its priority as the kernel counts it: less is higher, below 100 for real-time threads, −1 for
        /// SCHED_DEADLINE.
        priority: i32,
    },
    /// A thread was running when the events begin. Always the first one.
    Running {
        /// Its name and number; `idle` if nothing was to do.
        thread: String,
        /// Whether it is the thread that measures.
        ours: bool,
    },
    /// The CPU went on to another thread.
    Switch {
        /// Who ran before.
        from: String,
        /// Its priority as the kernel counts it.
        from_priority: i32,
        /// Who runs now.
        to: String,
        /// Its priority as the kernel counts it.
        to_priority: i32,
        /// Whether that is the thread that measures.
        ours: bool,
    },
}

/// Says one thing about the place where the measured code ran, as it looks from inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// What is told: `preemption model`, for example.
    pub name: String,
    /// What was found.
    pub value: String,
}

/// Counts something that happened on the measured CPU during the batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counter {
    /// What is counted: `timer interrupts`, for example.
    pub name: String,
    /// How often it happened.
    pub count: u64,
}

/// Says who ran the workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// Its version.
    pub version: String,
    /// What the measured code ran on: `linux` or `unikernel`.
    pub environment: String,
    /// SHA-256 of the program or image, in hexadecimal.
    pub sha256: String,
    /// Whether an emulator (QEMU's TCG) executed the measured code: then the figures say nothing
    /// of a machine's speed.
    pub emulated: bool,
    /// What executed a guest: `KVM` or `TCG`, with QEMU's version. None where there is no guest.
    #[serde(default)]
    pub accelerator: Option<String>,
    /// The kernel beneath it that the target brought along, with its package and SHA-256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

/// Says how a batch was prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Preparation {
    /// CPU that it was pinned to.
    pub cpu: Option<u32>,
    /// Size of the buffers in bytes.
    pub buffer_bytes: u64,
    /// Whether they could not be paged out.
    pub locked: bool,
    /// Whether /dev/cpu_dma_latency was held at 0.
    pub latency_held: bool,
}

/// Says what the stamps and the loop cost, on the measured CPU just before the batch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Frequency {
    /// Where the figure comes from.
    pub source: FrequencySource,
    /// The figure.
    pub hz: f64,
    /// Uncertainty of the reading in parts per million, where it can be told.
    pub uncertainty_ppm: Option<f64>,
    /// What is known beyond that: the kernel's clock source, for example.
    pub detail: String,
}

/// Is a source of the TSC's frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

/// Holds the sums over a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Batch {
    /// Repetitions; for `gap`, timer reads.
    pub repetitions: u64,
    /// TSC of the first stamp.
    pub first_tsc: u64,
    /// TSC of the last stamp.
    pub last_tsc: u64,
    /// Sum of all durations; for `gap`, equal to the time from first to last stamp.
    pub sum_cycles: u64,
    /// Sum of the squared durations below the threshold, `gap` only: its short iterations are not
    /// counted per value.
    pub quiet_squares: Option<u64>,
    /// What the work yielded: for `prime` the number of primes; for others 0.
    pub result: u64,
    /// Elementary steps in one repetition: divisions, elements, timer reads.
    pub work: u64,
    /// Least delay listed in `delays.parquet`: duration above the batch's mean; for `gap`, the
    /// least length of a gap.
    pub threshold_cycles: u64,
    /// Delays above the threshold.
    pub delays_seen: u64,
    /// Delays listed: fewer than seen if the buffer was full.
    pub delays_kept: u64,
    /// Longest duration that is above the threshold and not listed; 0 if all are.
    pub unkept_longest_cycles: u64,
    /// Sum of the durations above the threshold that are not listed.
    pub unkept_cycles: u64,
    /// Samples whose second stamp is before their first one: TSCs are not synchronised. They are
    /// in no other figure.
    pub backwards: u64,
    /// Width of one bin of `envelope.parquet`.
    pub bin_cycles: u64,
    /// Time spent on folding the samples after the batch.
    pub fold_cycles: u64,
}

impl Batch {
    /// Returns the time from first to last stamp.
    #[must_use]
    pub fn wall_cycles(&self) -> u64 {
        self.last_tsc.wrapping_sub(self.first_tsc)
    }
}

/// Holds the samples of one cell, as its Parquet files do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// Exact counts per value, ascending; for `gap`, of the listed gaps only.
    pub counts: Vec<Count>,
    /// Delays above the threshold, in order of time.
    pub delays: Vec<Delay>,
    /// Envelope over time, empty bins left out.
    pub envelope: Vec<EnvelopeBin>,
    /// Consecutive raw samples from the middle of the batch; empty for `gap`.
    pub window: Vec<Delay>,
    /// The latencies of a wake-up measurement, which has none of the above.
    pub wakeups: WakeupSamples,
}

/// Holds the latencies of a wake-up measurement, as its Parquet files do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WakeupSamples {
    /// Exact counts per latency, ascending within each thread and phase.
    pub counts: Vec<LatencyCount>,
    /// Wake-ups at or above the threshold, in order of time within each thread.
    pub peaks: Vec<Wakeup>,
    /// Envelope over time, empty bins left out.
    pub bins: Vec<LatencyBin>,
    /// Wake-ups as they were, from the first on, in order of time within each thread.
    pub raw: Vec<Wakeup>,
}

/// Counts the wake-ups of one latency: a row of `latencies.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyCount {
    /// Number of the thread, from 0.
    pub thread: u32,
    /// Number of the phase, from 0.
    pub phase: u32,
    /// The latency.
    pub latency_ns: u64,
    /// How many wake-ups have it.
    pub count: u64,
}

/// Is one wake-up: a row of `peaks.parquet` or `raw.parquet`. It was planned for the origin and `activation`
/// intervals of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// Number of the thread, from 0.
    pub thread: u32,
    /// Number of the activation, from 0. Numbers left out were missed.
    pub activation: u64,
    /// How late it was.
    pub latency_ns: u64,
}

/// Sums up the wake-ups that were planned within one bin of time: a row of `bins.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyBin {
    /// Number of the thread, from 0.
    pub thread: u32,
    /// Number of the bin, from 0; it starts `bin × bin_ns` after the origin.
    pub bin: u32,
    /// Wake-ups in it.
    pub count: u64,
    /// Sum of their latencies.
    pub sum_ns: u64,
    /// Least latency.
    pub min_ns: u64,
    /// Greatest latency.
    pub max_ns: u64,
}

/// Counts the samples of one value: a row of `counts.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The value.
    pub cycles: u64,
    /// How many samples have it.
    pub count: u64,
}

/// Is one sample with its place: a row of `delays.parquet` or `window.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Number of the repetition, from 0.
    pub index: u64,
    /// TSC of its first stamp.
    pub start_tsc: u64,
    /// Its duration.
    pub cycles: u64,
}

/// Sums up the samples that started within one bin of time: a row of `envelope.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvelopeBin {
    /// Number of the bin, from 0; it starts `bin × bin_cycles` after the first stamp.
    pub bin: u32,
    /// Samples in it.
    pub count: u64,
    /// Sum of their durations.
    pub sum_cycles: u64,
    /// Shortest duration.
    pub min_cycles: u64,
    /// Longest duration.
    pub max_cycles: u64,
}
