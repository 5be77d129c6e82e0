//! What is lost below any operating system, and what the operating system adds.
//!
//! A unikernel that does not take interrupts loses only what is taken from below it: by the
//! firmware, by a hypervisor. A process on the same core loses that too, and besides what its
//! operating system takes. The difference is the operating system's part.
//!
//! Blocks hold both, one soon after the other, so they are paired by block, and the interval is that
//! of the mean difference over blocks by Student's t. Nothing is concluded from a difference whose
//! interval holds 0 or lies below it.
//!
//! A unikernel that runs as a guest of this machine's own kernel has that kernel below it: its ticks
//! and interrupts stop the guest too, for longer than they would stop a process, since each costs
//! an exit. For a process the split then is a bound: *at most* so much is lost below any operating
//! system, and the operating system adds *at least* the difference. For a Linux guest beside it the
//! same lies below both, and the difference is what the guest's own kernel adds.

mod find;

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::target::Group;

use super::figures::{Interval, Observed};

pub(super) use find::{Source, find};

/// Says how the time that is lost divides, or why that cannot be told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Attribution {
    /// The splits, one for each load and target with an operating system.
    pub splits: Vec<Split>,
    /// Why there is none, where there might have been.
    pub refused: Vec<Refused>,
}

/// Divides what a target loses into what is lost below any operating system and what its own adds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Split {
    /// Load as it is written on the command line.
    pub load: String,
    /// Workload: `gap` where both have it.
    pub workload: String,
    /// Limit of `prime`, elements of `copy`; null for `gap`.
    pub size: Option<u64>,
    /// The target with an operating system: `process`.
    pub target: String,
    /// The group that it belongs to.
    pub group: Group,
    /// The target without one: `unikernel,irq=off`.
    pub reference: String,
    /// Whether the kernel of this machine is below the reference but not below the target: then
    /// `below` is an upper bound, and `difference` a lower one.
    pub is_bound: bool,
    /// The blocks that hold both.
    pub blocks: Vec<u32>,
    /// The quantities that are divided; the first is the one that the verdict speaks of.
    pub parts: Vec<Part>,
}

/// Is one quantity, divided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Part {
    /// What is divided.
    pub quantity: Quantity,
    /// Mean over the blocks on the target.
    pub all: f64,
    /// Mean over the blocks on the reference: what is lost below.
    pub below: f64,
    /// Mean over blocks of target less reference, with its interval at 95 % by itself; null with too
    /// few blocks, or if none differs. It is a finding only if `finding` says so.
    pub difference: Option<Interval>,
    /// What the difference says.
    pub finding: Finding,
    /// How much of the quantity could be seen on both.
    pub observed: Observed,
}

/// Is a quantity that can be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Quantity {
    /// Time lost to gaps, as a share of 1.
    TimeLost,
    /// Gaps per second.
    GapsPerSecond,
    /// Gaps per second of one class of delays.
    ClassPerSecond {
        /// Letter of the class.
        class: char,
        /// Longer than this, in cycles above the mean.
        above_cycles: u64,
        /// Up to this; null for the last class.
        up_to_cycles: Option<u64>,
    },
    /// Time in delays above a limit, as a share of 1.
    TimeInDelays {
        /// The limit, in cycles above the mean.
        above_cycles: u64,
    },
    /// Delays of one class in a million repetitions.
    ClassPerMillion {
        /// Letter of the class.
        class: char,
        /// Longer than this, in cycles above the mean.
        above_cycles: u64,
        /// Up to this; null for the last class.
        up_to_cycles: Option<u64>,
    },
}

/// Says what a difference tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The whole interval lies above 0: the operating system adds that.
    Added,
    /// It does not: whether the operating system adds anything is not told.
    NotDistinguishable,
    /// There is no interval, since too few blocks hold both.
    TooFewBlocks,
}

/// Says why a split was refused.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Refused {
    /// Load as it is written on the command line; null if it concerns all.
    pub load: Option<String>,
    /// Why.
    pub reason: Refusal,
}

/// Is a reason for which time lost is not divided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Refusal {
    /// Not both targets were asked for.
    NoPair,
    /// Both were asked for, and no block has figures of both.
    NotMeasured,
    /// An emulator executed one of them.
    Emulated {
        /// Which.
        target: String,
    },
    /// They did not run on the same CPU of this machine.
    OtherCpu {
        /// The one that did not run on the run's CPU.
        target: String,
        /// The CPU that it ran on; null if it was not pinned.
        cpu: Option<u32>,
        /// The run's CPU.
        expected: u32,
    },
    /// One counts shorter gaps than the other.
    Thresholds {
        /// The lower threshold, in cycles.
        low_cycles: u64,
        /// The higher one.
        high_cycles: u64,
    },
}
