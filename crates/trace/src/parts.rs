//! The parts of a latency, after landolfi-2018: L1 the late interrupt, L2 what could not be
//! preempted, L3 scheduling.
//!
//! ```text
//!  planned      timer's interrupt      made runnable      on the CPU      reads the clock
//!     |---------------->|-------------------->|---------------->|------------------>|
//!        late interrupt    its own service       others: by rank     the way back
//! ```
//!
//! Each stretch of the CPU's time belongs to one part, so that they sum up to the latency:
//!
//! - *Late interrupt*: before the interrupt was entered, while no handler of another one ran.
//! - *Non-preemptible*: handlers of interrupts, which run with interrupts off; softirqs; the
//!   timer's own handler; and, after the thread was made runnable, a thread of lower rank that went
//!   on nevertheless.
//! - *Scheduling*: after that, threads of higher or the same rank; or threads that the scheduler
//!   chose first.
//! - *Return*: the thread itself, from the switch to it until it read the clock.
//!
//! Interrupts that are off are not seen by themselves: such a time is part of the late interrupt,
//! as it is for timerlat's IRQ latency, and the culprit says what is known of it.

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::Trace;

use crate::blame::Culprit;
use crate::timeline::{Doing, IDLE, Stretch, TIMER, Thread, Timeline};

/// Holds the parts of a latency. They sum up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Parts {
    /// L1: from the planned time to the timer's interrupt.
    pub late_interrupt_ns: u64,
    /// L2: interrupts, softirqs, and sections that can't be preempted.
    pub non_preemptible_ns: u64,
    /// L3: threads of higher or the same rank, and what else the scheduler chose first.
    pub scheduling_ns: u64,
    /// The thread itself, on its way to reading the clock.
    pub return_ns: u64,
    /// The events that the kernel's buffer lost.
    pub unseen_ns: u64,
}

impl Parts {
    /// Returns their sum: the latency.
    pub fn total_ns(&self) -> u64 {
        let parts = [
            self.late_interrupt_ns,
            self.non_preemptible_ns,
            self.scheduling_ns,
            self.return_ns,
            self.unseen_ns,
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    fn part(&mut self, part: Part) -> &mut u64 {
        match part {
            Part::LateInterrupt => &mut self.late_interrupt_ns,
            Part::NonPreemptible => &mut self.non_preemptible_ns,
            Part::Scheduling => &mut self.scheduling_ns,
            Part::Return => &mut self.return_ns,
            Part::Unseen => &mut self.unseen_ns,
        }
    }
}

/// Names a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    LateInterrupt,
    NonPreemptible,
    Scheduling,
    Return,
    Unseen,
}

/// Divides a latency into its parts, and says who caused how much of it, from the greatest share
/// on. Both sum up to it.
pub fn divide(wakeup: &Trace) -> (Parts, Vec<(Culprit, u64)>) {
    let timeline = Timeline::new(wakeup);
    let mut parts = Parts::default();
    let mut shares: Vec<(Culprit, u64)> = Vec::new();
    for stretch in &timeline.stretches {
        for (from_ns, to_ns) in cut(stretch, &timeline) {
            let (part, culprit) = judge(&timeline, from_ns, stretch.doing);
            let ns = to_ns - from_ns;
            *parts.part(part) += ns;
            match shares.iter_mut().find(|share| share.0 == culprit) {
                Some(share) => share.1 += ns,
                None => shares.push((culprit, ns)),
            }
        }
    }
    // The sort keeps the order of time among equal ones.
    shares.sort_by_key(|share| std::cmp::Reverse(share.1));
    (parts, shares)
}

/// Cuts a stretch where the wake-up enters another stage.
fn cut(stretch: &Stretch<'_>, timeline: &Timeline<'_>) -> impl Iterator<Item = (u64, u64)> {
    let inside = |at: &u64| stretch.from_ns < *at && *at < stretch.to_ns;
    let stages = [timeline.asleep_ns, timeline.entered_ns, timeline.woken_ns];
    let mut edges = vec![stretch.from_ns];
    edges.extend(stages.into_iter().filter(inside));
    edges.push(stretch.to_ns);
    edges.dedup();
    let ends = edges.clone().into_iter().skip(1);
    edges.into_iter().zip(ends)
}

/// Says to which part a stretch belongs that begins at a time, and whose it is.
fn judge(timeline: &Timeline<'_>, from_ns: u64, doing: Doing<'_>) -> (Part, Culprit) {
    let runnable = from_ns < timeline.asleep_ns || from_ns >= timeline.woken_ns;
    match doing {
        Doing::Unseen { last } => {
            let last = last.map(|thread| timeline.named(thread));
            (Part::Unseen, Culprit::Unseen { last })
        }
        Doing::Interrupt { name, thread } => {
            let (name, thread) = (name.to_owned(), timeline.named(thread));
            (Part::NonPreemptible, Culprit::Interrupt { name, thread })
        }
        Doing::Softirq { name, thread } if from_ns >= timeline.entered_ns || runnable => {
            let (name, thread) = (name.to_owned(), timeline.named(thread));
            (Part::NonPreemptible, Culprit::Softirq { name, thread })
        }
        Doing::Thread(thread) if runnable => after_waking(timeline, thread),
        Doing::Thread(thread) if from_ns >= timeline.entered_ns => {
            (Part::NonPreemptible, section(thread.name, timeline))
        }
        Doing::Softirq { name, thread } => {
            let softirq = Some(name.to_owned());
            (Part::LateInterrupt, late(timeline, thread, softirq))
        }
        Doing::Thread(thread) => (Part::LateInterrupt, late(timeline, thread.name, None)),
    }
}

/// Says why the timer's interrupt came late while a thread ran. The code that the interrupt came
/// into is known of the last moment only, but an interrupt that is pending comes as soon as it may.
fn late(timeline: &Timeline<'_>, thread: &str, softirq: Option<String>) -> Culprit {
    if !timeline.by_timer {
        return Culprit::OtherCpu;
    }
    let entry = timeline.entry.filter(|entry| entry.at_ns >= 0);
    let from_user = entry.is_some_and(|entry| entry.from_user);
    if thread == IDLE || from_user {
        return Culprit::OutsideKernel;
    }
    Culprit::InterruptsOff {
        thread: timeline.named(thread),
        softirq,
        function: entry.and_then(|entry| interrupted(&entry.stack)),
    }
}

/// Says why a thread ran while ours was runnable.
fn after_waking(timeline: &Timeline<'_>, thread: Thread<'_>) -> (Part, Culprit) {
    let name = || timeline.named(thread.name);
    if thread.ours {
        return (Part::Return, Culprit::OwnThread);
    }
    let chosen = thread
        .since_ns
        .and_then(|since| u64::try_from(since).ok())
        .is_some_and(|since| since >= timeline.woken_ns);
    let is_idle = thread.name == IDLE;
    let ours = timeline.priority;
    let is_real_time = ours.is_some_and(|ours| ours < LOWEST_REAL_TIME);
    match (ours, thread.priority) {
        (Some(ours), Some(theirs)) if !is_idle && theirs < ours => {
            let thread = name();
            (Part::Scheduling, Culprit::HigherPriority { thread })
        }
        (Some(ours), Some(theirs)) if !is_idle && theirs == ours => {
            let thread = name();
            (Part::Scheduling, Culprit::SamePriority { thread })
        }
        _ if chosen && is_real_time => {
            let instead = name();
            (Part::Scheduling, Culprit::Throttled { instead })
        }
        _ if chosen => (Part::Scheduling, Culprit::ChosenFirst { thread: name() }),
        _ => (Part::NonPreemptible, section(thread.name, timeline)),
    }
}

/// The first priority that is not a real-time one, as the kernel counts (MAX_RT_PRIO).
const LOWEST_REAL_TIME: i32 = 100;

/// Names a section of a thread that can't be preempted, with the function where it ended.
fn section(thread: &str, timeline: &Timeline<'_>) -> Culprit {
    if thread == IDLE {
        return Culprit::LeavingIdle;
    }
    let until = timeline.switch.and_then(|switch| led_to(&switch.stack));
    Culprit::NonPreemptible {
        thread: timeline.named(thread),
        function: until,
    }
}

/// Returns the function that an interrupt came into, leaving out the lock whose release let it in.
fn interrupted(stack: &[String]) -> Option<String> {
    let mut functions = stack.iter();
    let function = functions.find(|name| !name.starts_with("_raw_"));
    function.or_else(|| stack.first()).cloned()
}

/// Returns the function that ended with a switch, leaving out the scheduler's own and what calls it
/// on the way out of an interrupt or a system call.
fn led_to(stack: &[String]) -> Option<String> {
    const SCHEDULERS: [&str; 9] = [
        "schedule",
        "preempt_schedule",
        "__cond_resched",
        "dynamic_cond_resched",
        "irqentry_exit",
        "raw_irqentry_exit",
        "asm_",
        "_raw_",
        "rt_spin_unlock",
    ];
    let is_own = |name: &str| SCHEDULERS.iter().any(|own| name.starts_with(own));
    stack.iter().find(|name| !is_own(name)).cloned()
}

/// Returns whether a name is that of the timer's interrupt.
pub(crate) fn is_timer(name: &str) -> bool {
    name == TIMER
}
