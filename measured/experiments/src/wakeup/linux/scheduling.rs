//! The scheduling policy of a thread: set, and read back.
//!
//! `sched_setattr(2)` and `sched_getattr(2)` support all policies; the C library has no wrapper for
//! them.

use crate::wakeup::Plan;
use rustix::io::Errno;
use rustix::process::getpriority_process;
use tare_wire::scheduling::Policy;

/// The least share of its interval that a SCHED_DEADLINE thread reserves, as a divisor: the kernel
/// admits 95 % of a CPU in total, and a measuring thread needs little.
const RESERVED_SHARE: u64 = 10;

/// The reservation of a SCHED_DEADLINE thread, in sleeps: a thread that exceeds it is stopped until
/// the next period, and would measure that.
const RESERVED_SLEEPS: u64 = 4;

/// The scheduling of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// A policy with a priority or without parameters.
    Priority {
        /// SCHED_FIFO, SCHED_RR or SCHED_OTHER.
        policy: Policy,
        /// From 1 to 99; 0 for SCHED_OTHER.
        priority: u32,
    },
    /// SCHED_DEADLINE: reserved time in each period.
    Deadline {
        /// Time reserved in each period.
        runtime_ns: u64,
        /// The period; the deadline is its end.
        period_ns: u64,
    },
}

impl Scheduling {
    /// Returns the scheduling of a thread of the plan, if a sleep costs `sleep_ns`.
    pub fn of(plan: &Plan, thread: u32, sleep_ns: u64) -> Self {
        match plan.policy {
            Policy::Deadline => {
                let period_ns = plan.interval_of(thread);
                let least = sleep_ns.saturating_mul(RESERVED_SLEEPS);
                Self::Deadline {
                    runtime_ns: (period_ns / RESERVED_SHARE).max(least).min(period_ns),
                    period_ns,
                }
            }
            policy => Self::Priority {
                policy,
                priority: plan.priority_of(thread),
            },
        }
    }

    /// Returns the policy.
    pub fn policy(self) -> Policy {
        match self {
            Self::Priority { policy, .. } => policy,
            Self::Deadline { .. } => Policy::Deadline,
        }
    }

    /// Returns the real-time priority, or 0.
    pub fn priority(self) -> u32 {
        match self {
            Self::Priority { priority, .. } => priority,
            Self::Deadline { .. } => 0,
        }
    }

    /// Returns whether such a thread takes precedence over every ordinary one.
    pub fn is_real_time(self) -> bool {
        self.policy() != Policy::Other
    }

    /// Applies it to the calling thread.
    ///
    /// # Errors
    ///
    /// Returns the kernel's refusal: EPERM, EINVAL, EBUSY.
    pub fn apply(self) -> Result<(), Errno> {
        let attributes = match self {
            // An ordinary thread keeps its nice value: a better one would require a privilege.
            Self::Priority { policy, priority } => Attributes {
                size: SIZE,
                policy: number(policy),
                priority,
                nice: getpriority_process(None).unwrap_or(0),
                ..Attributes::default()
            },
            Self::Deadline {
                runtime_ns,
                period_ns,
            } => Attributes {
                size: SIZE,
                policy: number(Policy::Deadline),
                runtime: runtime_ns,
                deadline: period_ns,
                period: period_ns,
                ..Attributes::default()
            },
        };
        // SAFETY: a live structure that contains its size; the kernel only reads it.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
        outcome(result)
    }

    /// Reads the scheduling of the calling thread.
    ///
    /// # Errors
    ///
    /// Returns the kernel's refusal, or EINVAL for a policy that a plan can't request.
    pub fn read() -> Result<Self, Errno> {
        let mut attributes = Attributes::default();
        // SAFETY: a live structure of `SIZE` bytes, which the kernel fills with integers.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, SIZE, 0) };
        outcome(result)?;
        let policy = Policy::ALL
            .into_iter()
            .find(|policy| number(*policy) == attributes.policy)
            .ok_or(Errno::INVAL)?;
        Ok(match policy {
            Policy::Deadline => Self::Deadline {
                runtime_ns: attributes.runtime,
                period_ns: attributes.period,
            },
            policy => Self::Priority {
                policy,
                priority: attributes.priority,
            },
        })
    }
}

/// `struct sched_attr` in its first version (include/uapi/linux/sched/types.h).
#[derive(Default)]
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SIZE: u32 = size_of::<Attributes>() as u32;

/// Returns the kernel's number of a policy.
fn number(policy: Policy) -> u32 {
    let number = match policy {
        Policy::Fifo => libc::SCHED_FIFO,
        Policy::RoundRobin => libc::SCHED_RR,
        Policy::Deadline => libc::SCHED_DEADLINE,
        Policy::Other => libc::SCHED_OTHER,
    };
    number.unsigned_abs()
}

/// Returns the name of a policy as in the manuals.
pub fn name(policy: Policy) -> &'static str {
    match policy {
        Policy::Fifo => "SCHED_FIFO",
        Policy::RoundRobin => "SCHED_RR",
        Policy::Deadline => "SCHED_DEADLINE",
        Policy::Other => "SCHED_OTHER",
    }
}

fn outcome(result: libc::c_long) -> Result<(), Errno> {
    match result {
        0.. => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_reserves_a_share_and_at_least_some_sleeps() {
        let plan = Plan {
            policy: Policy::Deadline,
            priority: 0,
            ..Plan::new(1_000_000, 1)
        };
        let reserved = |sleep_ns| match Scheduling::of(&plan, 0, sleep_ns) {
            Scheduling::Deadline { runtime_ns, .. } => runtime_ns,
            other => panic!("{other:?}"),
        };
        assert_eq!(reserved(5_000), 100_000);
        assert_eq!(reserved(100_000), 400_000);
        assert_eq!(reserved(u64::MAX), 1_000_000);
    }

    #[test]
    fn only_threads_that_share_a_cpu_differ_in_priority() {
        let words = "workload=wakeup interval=1ms duration=1s priority=3";
        let priorities = |more: &str| {
            let words = format!("{words} {more}");
            let plan = Plan::parse(words.split_whitespace()).unwrap();
            [0, 1, 2, 3, 4].map(|thread| Scheduling::of(&plan, thread, 0).priority())
        };
        assert_eq!(priorities("cpu=0-4"), [3, 3, 3, 3, 3]);
        assert_eq!(priorities("cpu=0-1"), [3, 3, 2, 2, 1]);
        assert_eq!(priorities(""), [3, 2, 1, 1, 1]);
    }

    #[test]
    fn what_a_thread_is_scheduled_under_is_read_back() {
        // Threads of tests are ordinary ones.
        let ordinary = Scheduling::Priority {
            policy: Policy::Other,
            priority: 0,
        };
        assert_eq!(Scheduling::read(), Ok(ordinary));
        assert_eq!(ordinary.apply(), Ok(()));
    }
}
