//! Who caused a late wake-up.
//!
//! What trace events prove, and what they don't:
//!
//! - They show when the kernel entered and left handlers, and which thread ran. A handler or a
//!   thread that was itself held up from outside (by a hypervisor that ran another guest, by
//!   firmware) looks longer than it is.
//! - They do not show whether interrupts were off. A timer's interrupt that comes late while a
//!   thread is in the kernel may have been kept off by it, or from outside: both are named. In user
//!   mode interrupts are on, and the idle thread has them off for some µs only: then what kept it
//!   off is outside this kernel.
//! - They may be missing: kernels have been seen (6.18) that record none while certain threads run.
//!   Then threads leave the CPU without having come, or ours runs without having been switched to;
//!   such a time is called unseen.
//! - The function at which a section ended is where it could be preempted again, not where it
//!   began.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::Trace;

use crate::parts::{Parts, divide, is_timer};
use crate::timeline::IDLE;

/// Who or what kept a thread from running in time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Culprit {
    /// An interrupt's handler.
    Interrupt {
        /// Its name: `virtio0-req.0`, `local timer`.
        name: String,
        /// The thread that it interrupted.
        thread: String,
    },
    /// A softirq.
    Softirq {
        /// Its name: `NET_RX`.
        name: String,
        /// The thread on which it ran.
        thread: String,
    },
    /// A thread of lower rank, in the kernel, where it could not be preempted.
    NonPreemptible {
        /// Its name and number.
        thread: String,
        /// The function at which it could be preempted again, if the kernel tells.
        function: Option<String>,
    },
    /// The way of the CPU from idle to the scheduler.
    LeavingIdle,
    /// Interrupts that were off while a thread was in the kernel; or something outside this kernel,
    /// which can't be distinguished.
    InterruptsOff {
        /// The thread's name and number.
        thread: String,
        /// The softirq that ran on it, if one did.
        softirq: Option<String>,
        /// The function that the interrupt came into at last, if the kernel tells.
        function: Option<String>,
    },
    /// Nothing of this kernel: the hypervisor, firmware, or the timer itself.
    OutsideKernel,
    /// A thread of higher priority.
    HigherPriority {
        /// Its name and number.
        thread: String,
    },
    /// A thread of the same priority, which is not preempted.
    SamePriority {
        /// Its name and number.
        thread: String,
    },
    /// The kernel's limit for real-time threads: it let another one run instead.
    Throttled {
        /// Name and number of that thread.
        instead: String,
    },
    /// A thread that the scheduler chose first, by other rules than priority.
    ChosenFirst {
        /// Its name and number.
        thread: String,
    },
    /// The timer expired on another CPU, which is not traced.
    OtherCpu,
    /// The measuring thread itself: still awake, or on its way to reading the clock.
    OwnThread,
    /// Unknown: the kernel's buffer does not hold it.
    Unseen {
        /// Name and number of the thread that was on the CPU at last, if one is known.
        last: Option<String>,
    },
}

impl fmt::Display for Culprit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupt { name, thread } if is_timer(name) || thread == IDLE => {
                write!(f, "interrupt {name}")
            }
            Self::Interrupt { name, thread } => write!(f, "interrupt {name} in {thread}"),
            Self::Softirq { name, thread } => write!(f, "softirq {name} in {thread}"),
            Self::NonPreemptible { thread, function } => {
                write!(f, "non-preemptible section in {thread}")?;
                at(f, "until", function)
            }
            Self::LeavingIdle => f.write_str("the way out of idle"),
            Self::InterruptsOff {
                thread,
                softirq,
                function,
            } => {
                write!(f, "interrupts off in {thread}")?;
                if let Some(softirq) = softirq {
                    write!(f, ", softirq {softirq}")?;
                }
                at(f, "until", function)?;
                f.write_str(", or outside this kernel")
            }
            Self::OutsideKernel => f.write_str("outside this kernel"),
            Self::HigherPriority { thread } => write!(f, "thread {thread} of higher priority"),
            Self::SamePriority { thread } => write!(f, "thread {thread} of the same priority"),
            Self::Throttled { instead } => {
                write!(f, "real-time throttling: {instead} ran instead")
            }
            Self::ChosenFirst { thread } => {
                write!(f, "thread {thread}, which the scheduler chose first")
            }
            Self::OtherCpu => f.write_str("a timer that expired on another CPU"),
            Self::OwnThread => f.write_str("the measuring thread itself"),
            Self::Unseen { last: None } => f.write_str("not recorded"),
            Self::Unseen { last: Some(thread) } => {
                write!(f, "not recorded; the last thread seen was {thread}")
            }
        }
    }
}

fn at(f: &mut fmt::Formatter<'_>, word: &str, function: &Option<String>) -> fmt::Result {
    match function {
        Some(function) => write!(f, " ({word} {function})"),
        None => Ok(()),
    }
}

/// Says who caused a late wake-up, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Blame {
    /// Number of the thread that was late.
    pub thread: u32,
    /// Number of the activation.
    pub activation: u64,
    /// How late it was.
    pub latency_ns: u64,
    /// The parts of the latency.
    pub parts: Parts,
    /// Whose share of it is the greatest.
    pub culprit: Culprit,
    /// The same as a text: `softirq NET_RX in dd/123`.
    pub culprit_text: String,
    /// All shares, from the greatest on. They sum up to the latency, too.
    pub shares: Vec<Share>,
    /// Whether the events reach back to the planned time, and none are missing between.
    pub complete: bool,
}

impl Blame {
    /// Returns how much of the latency the kernel's events explain: what is neither outside this
    /// kernel nor unseen.
    pub fn explained_ns(&self) -> u64 {
        let shares = self.shares.iter();
        let explained = shares.filter(|share| share.culprit.is_of_kernel());
        explained.map(|share| share.ns).sum()
    }

    /// Says who is to blame and for how much, with durations written by `time`: `softirq NET_RX in
    /// dd/123 explains 612 µs of it (61 %)`.
    pub fn told(&self, time: impl Fn(u64) -> String) -> String {
        let percent = |ns: u64| (ns as f64 / self.latency_ns.max(1) as f64 * 100.0).round();
        let part = |ns: u64| format!("{} of it ({} %)", time(ns), percent(ns));
        let of_culprit = self.shares.first().map_or(0, |share| share.ns);
        match (&self.culprit, self.explained_ns()) {
            (culprit, _) if culprit.is_of_kernel() => {
                format!("{} explains {}", self.culprit_text, part(of_culprit))
            }
            (_, 0) => format!("no kernel event explains it ({})", self.culprit_text),
            (_, explained) => format!(
                "the kernel's events explain {}; {}: {}",
                part(explained),
                self.culprit_text,
                part(of_culprit)
            ),
        }
    }
}

impl Culprit {
    /// Returns whether it is something that this kernel's events show: not what lies outside it, or
    /// may.
    pub fn is_of_kernel(&self) -> bool {
        !matches!(
            self,
            Self::OutsideKernel | Self::InterruptsOff { .. } | Self::Unseen { .. }
        )
    }
}

/// One culprit's share of a latency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Share {
    /// Whose.
    pub culprit: Culprit,
    /// How much.
    pub ns: u64,
}

/// Finds out who caused a late wake-up of a thread.
pub fn blame(wakeup: &Trace, thread: u32) -> Blame {
    let (parts, shares) = divide(wakeup);
    let shares: Vec<Share> = shares
        .into_iter()
        .map(|(culprit, ns)| Share { culprit, ns })
        .collect();
    let culprit = shares
        .first()
        .map_or(Culprit::Unseen { last: None }, |share| {
            share.culprit.clone()
        });
    let complete = wakeup.complete && !shares.is_empty() && parts.unseen_ns == 0;
    Blame {
        thread,
        activation: wakeup.index,
        latency_ns: wakeup.value,
        parts,
        culprit_text: culprit.to_string(),
        culprit,
        shares,
        complete,
    }
}
