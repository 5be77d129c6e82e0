//! What a run folder says: the plan and one record for each cell.
//!
//! Only facts are here: what was asked, what was seen. Whatever can be derived (means, classes,
//! shares, verdicts) is derived by those who read the folder, so that a better method can be
//! applied to an old run.
//!
//! Units are in the names: `_ns`, `_seconds`, `_bytes`, `_hz`, and `_cycles` for ticks of the
//! measured CPU's TSC.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Target as it is written on the command line: `process`.
    pub target: String,
    /// Load as it is written on the command line: `idle`.
    pub load: String,
    /// Workload: `prime`, `copy` or `gap`.
    pub workload: String,
    /// The kot-2019 column `limit-or-size`: limit of `prime`, elements of `copy`. None for `gap`.
    pub size: Option<u64>,
    /// Timed repetitions; for `gap`, timer reads.
    pub repetitions: u64,
    /// Timing: `fenced` or `published`.
    pub timing: String,
    /// The plan in the words that the agent takes.
    pub words: String,
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
            && self.words == other.words
    }

    /// Names the combination: `process prime 22`.
    #[must_use]
    pub fn label(&self) -> String {
        let mut label = format!("{} {}", self.target, self.workload);
        if let Some(size) = self.size {
            label.push_str(&format!(" {size}"));
        }
        if self.load != "idle" {
            label.push_str(&format!(" under {}", self.load));
        }
        label
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
    /// It ran to its end, and every record arrived.
    Done(Box<Measurement>),
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
