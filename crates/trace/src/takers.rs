//! Who took the CPU from a thread that never sleeps, in its delays.
//!
//! The events of a delay say when handlers and other threads began and ended. The rest is the
//! thread's own: where it is longer than without a delay, the CPU was taken from outside this kernel
//! (by a hypervisor, by firmware), by exclusion. The way of the CPU into a handler and out of it is
//! the handler's.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::{Trace, TraceEvent, TraceKind};

use crate::timeline::{Cpu, Doing, stretches};

/// How long the CPU may take into a handler and out of it, in ns: what is longer was taken from
/// outside.
const EDGES_NS: u64 = 2_000;

/// Who took the CPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Taker {
    /// An interrupt's handler.
    Interrupt {
        /// Its name: `local timer`, `virtio0-req.0`.
        name: String,
        /// The timers' functions that it called.
        functions: Vec<String>,
    },
    /// A softirq.
    Softirq {
        /// Its name: `NET_RX`.
        name: String,
        /// The timers' functions that it called.
        functions: Vec<String>,
    },
    /// Another thread.
    Thread {
        /// Its name, without its number.
        name: String,
        /// The queued functions that it ran, if it is one of the kernel's workers.
        functions: Vec<String>,
    },
    /// A page that the thread touched and that was not there.
    PageFault,
    /// Nothing of this kernel: the hypervisor, or firmware.
    Outside,
    /// Unknown: the kernel's buffer does not hold it.
    Unseen,
}

impl Taker {
    fn of(doing: Doing<'_>) -> Option<Self> {
        let functions = Vec::new();
        Some(match doing {
            Doing::Interrupt { name, .. } => Self::Interrupt {
                name: name.to_owned(),
                functions,
            },
            Doing::Softirq { name, .. } => Self::Softirq {
                name: name.to_owned(),
                functions,
            },
            Doing::Thread(thread) if thread.ours => return None,
            Doing::Thread(thread) => {
                let name = thread.name;
                let end = name.rfind('/').unwrap_or(name.len());
                Self::Thread {
                    name: name[..end].to_owned(),
                    functions,
                }
            }
            Doing::Unseen { .. } => Self::Unseen,
        })
    }

    /// Adds the functions that it called.
    fn calling(mut self, all: &BTreeMap<Self, Vec<String>>) -> Self {
        let called = all.get(&self).cloned().unwrap_or_default();
        match &mut self {
            Self::Interrupt { functions, .. }
            | Self::Softirq { functions, .. }
            | Self::Thread { functions, .. } => *functions = called,
            Self::PageFault | Self::Outside | Self::Unseen => {}
        }
        self
    }
}

impl fmt::Display for Taker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name, functions) = match self {
            Self::Interrupt { name, functions } => ("interrupt", name, functions),
            Self::Softirq { name, functions } => ("softirq", name, functions),
            Self::Thread { name, functions } => ("thread", name, functions),
            Self::PageFault => return f.write_str("page faults"),
            Self::Outside => return f.write_str("outside this kernel"),
            Self::Unseen => return f.write_str("not recorded"),
        };
        write!(f, "{kind} {name}")?;
        match functions.is_empty() {
            true => Ok(()),
            false => write!(f, " ({})", functions.join(", ")),
        }
    }
}

/// Says who took how much of the time of delays, in ns, from the greatest share on; `own_ns` of each
/// of them are not taken. The sum is their time without that.
#[must_use]
pub fn takers(trace: &Trace, own_ns: u64) -> Vec<(Taker, u64)> {
    let own_ns = own_ns.saturating_mul(trace.samples);
    let taken_ns = trace.value.saturating_sub(own_ns);
    if !trace.complete {
        return vec![(Taker::Unseen, taken_ns)];
    }
    let end = i64::try_from(trace.value).unwrap_or(i64::MAX);
    let events: Vec<&TraceEvent> = trace.events.iter().collect();
    let (called, has_faulted) = followed(&events);
    let (mut shares, mut rest_ns) = (BTreeMap::<Taker, u64>::new(), 0);
    for stretch in stretches(&events, end) {
        let ns = stretch.to_ns - stretch.from_ns;
        match Taker::of(stretch.doing) {
            Some(taker) => *shares.entry(taker.calling(&called)).or_default() += ns,
            None => rest_ns += ns,
        }
    }
    let rest_ns = rest_ns.saturating_sub(own_ns);
    let greatest = shares.iter_mut().max_by_key(|(_, ns)| **ns);
    match greatest {
        Some((_, ns)) if rest_ns <= EDGES_NS.saturating_mul(trace.samples) => *ns += rest_ns,
        _ if has_faulted => *shares.entry(Taker::PageFault).or_default() += rest_ns,
        _ => *shares.entry(Taker::Outside).or_default() += rest_ns,
    }
    let mut shares: Vec<_> = shares.into_iter().filter(|(_, ns)| *ns > 0).collect();
    // The sort keeps the order of names among equal ones.
    shares.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    shares
}

/// Returns the functions that each has called, by name, and whether the thread itself has touched a
/// page that was not there.
fn followed(events: &[&TraceEvent]) -> (BTreeMap<Taker, Vec<String>>, bool) {
    let (mut all, mut has_faulted) = (BTreeMap::<Taker, Vec<String>>::new(), false);
    let mut cpu = Cpu::at_first(events);
    for event in events {
        let taker = Taker::of(cpu.doing());
        has_faulted |= taker.is_none() && event.what == TraceKind::PageFault;
        let is_call = matches!(event.what, TraceKind::TimerExpired { .. } | TraceKind::Work);
        if let (true, Some(taker), Some(name)) = (is_call, taker, event.stack.first()) {
            let known = all.entry(taker).or_default();
            if let Err(place) = known.binary_search(name) {
                known.insert(place, name.clone());
            }
        }
        cpu.take(event);
    }
    (all, has_faulted)
}
