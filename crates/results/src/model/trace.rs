//! What the kernel did around one sample.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kernel's events around one of the greatest samples of a set; or around samples in which the
/// same happened, with their times added up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// Place of the set in the record, from 0.
    pub set: u32,
    /// Number of the sample; of several, that of the greatest.
    pub index: u64,
    /// Its value; of several, their sum.
    pub value: u64,
    /// The greatest value.
    pub greatest: u64,
    /// How many samples it stands for.
    pub samples: u64,
    /// Whether the events reach back to the sample's own time.
    pub complete: bool,
    /// The events of the kernel's trace, in order of time.
    pub events: Vec<TraceEvent>,
    /// The names of the processes of their threads, as far as they are known: `rustc` of
    /// `opt cgu.02/1234`. Threads of the kernel have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub processes: BTreeMap<String, String>,
}

/// One event of the kernel's trace on the CPU of the thread that measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEvent {
    /// Time after the sample's own; negative before it.
    pub at_ns: i64,
    /// What happened.
    #[serde(flatten)]
    pub what: TraceKind,
    /// Whether an interrupt came while the CPU was in user mode, so that interrupts were on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_user: bool,
    /// The thread on another CPU that sent an interrupt, with its name and number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// Time since a softirq that was entered had been raised; of several samples, the sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
    /// Functions of the kernel, innermost first: at an interrupt those that it interrupted, at a
    /// switch those that led to it; of a timer and of work, the one that is called. Empty where the
    /// kernel does not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}

/// What happened, with the names that the kernel has for those concerned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TraceKind {
    /// An interrupt was entered.
    InterruptEntry {
        /// Its name, a device's with its number: `local timer`, `24 virtio0-req.0`.
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
    /// A timer's function was called, in the timer interrupt or a softirq.
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
        /// Its priority as the kernel counts it: less is higher, below 100 for real-time threads,
        /// −1 for SCHED_DEADLINE.
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
    /// A kernel thread began to run a queued function, or an interrupt's handler one that another
    /// CPU asked for.
    Work,
    /// The running thread touched a page that was not there.
    PageFault {
        /// The memory that the page is of, if it is known: `anonymous memory`, `stack`, `file libm.so`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<String>,
    },
}
