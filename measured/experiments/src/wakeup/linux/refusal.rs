//! Why the kernel refuses a scheduling policy, and the remedy.
//!
//! The kernel returns EPERM, EINVAL or EBUSY for unrelated reasons. Limits, capabilities and
//! control groups show which one applies.

use std::fmt;
use std::fs;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use tare_wire::scheduling::Policy;

use super::group::Group;
use super::scheduling::{Scheduling, name};

/// A refused policy, with the state of the system that explains it.
#[derive(Debug)]
pub struct Refusal {
    errno: Errno,
    asked: Scheduling,
    /// Whether the thread was already pinned.
    pinned: Option<u32>,
    privileged: bool,
    /// Whether the privilege is limited to a user namespace.
    in_user_namespace: bool,
    /// The highest real-time priority without privileges.
    priority_limit: u64,
    group: Option<Group>,
}

impl Refusal {
    /// Collects the state that explains why the calling thread was refused.
    pub fn explain(errno: Errno, asked: Scheduling, pinned: Option<u32>) -> Self {
        let privileged =
            capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_NICE));
        Self {
            errno,
            asked,
            pinned,
            privileged,
            in_user_namespace: in_user_namespace(),
            priority_limit: getrlimit(Resource::Rtprio).current.unwrap_or(u64::MAX),
            group: Group::own(),
        }
    }

    fn is_for_want_of_privilege(&self) -> bool {
        let enough = match self.asked.policy() {
            Policy::Fifo | Policy::RoundRobin => {
                self.priority_limit >= u64::from(self.asked.priority())
            }
            Policy::Deadline => false,
            Policy::Other => true,
        };
        !enough && (!self.privileged || self.in_user_namespace)
    }

    fn without_privilege(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_limit = self.asked.policy().has_priority();
        let priority = self.asked.priority();
        f.write_str("it takes CAP_SYS_NICE")?;
        if has_limit {
            let limit = self.priority_limit;
            write!(
                f,
                ", or a limit of real-time priorities (RLIMIT_RTPRIO, `ulimit -r`) of at least {priority}; \
                 here it is {limit}"
            )?;
        }
        if self.privileged {
            f.write_str(
                ". The capability is there, but only for this user namespace: run outside of it, as root",
            )
        } else if has_limit {
            write!(
                f,
                ". Run as root, or give your user the limit (`echo \"$USER - rtprio {priority}\" >> \
                 /etc/security/limits.d/realtime.conf`, then log in again), or measure with policy=other"
            )
        } else {
            f.write_str(". Run as root")
        }
    }

    fn without_budget(&self, group: &Group, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &group.path;
        if group.is_version_2 {
            return write!(
                f,
                "the kernel divides real-time time among control groups (RT_GROUP_SCHED), and gives those of \
                 version 2 below the root none; this process is in {path}. Run in the root group \
                 (`echo $$ > /sys/fs/cgroup/cgroup.procs`), or boot with rt_group_sched=0 (since Linux 6.16)"
            );
        }
        let Some(file) = group.budget_file() else {
            return write!(
                f,
                "this process is in the control group {path}, which probably has no real-time time \
                 (RT_GROUP_SCHED); from here that can't be seen. Set cpu.rt_runtime_us of the group on the \
                 host, or run outside of it"
            );
        };
        write!(
            f,
            "the control group {path} of this process has no real-time time (RT_GROUP_SCHED: {} is 0). Give \
             it some, as `tare doctor` shows there, or run in the root group",
            file.display()
        )
    }

    fn why(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = self.asked.policy();
        let budget = self.group.as_ref().map(|group| (group, group.budget()));
        match (self.errno, self.asked) {
            (Errno::PERM, _) if self.is_for_want_of_privilege() => self.without_privilege(f),
            (Errno::PERM, Scheduling::Deadline { .. }) if self.pinned.is_some() => write!(
                f,
                "a SCHED_DEADLINE thread may only be pinned to all CPUs of its scheduling domain, and CPU {} \
                 is one of several. Leave cpu= (-a) out, or run in a cpuset that holds that CPU alone and balances \
                 no load with others (version 2: `echo root > cpuset.cpus.partition`)",
                self.pinned.unwrap_or_default()
            ),
            (Errno::PERM, _) if policy.has_priority() => match budget {
                Some((_, Some(budget))) if budget.runtime_us != 0 => f.write_str(
                    "the kernel does not say why: a security module or a seccomp filter may forbid it",
                ),
                Some((group, _)) => self.without_budget(group, f),
                None => f.write_str(
                    "the kernel does not say why: a security module or a seccomp filter may forbid it",
                ),
            },
            (Errno::BUSY, Scheduling::Deadline { runtime_ns, period_ns }) => write!(
                f,
                "what all SCHED_DEADLINE threads have reserved would be more than the kernel admits \
                 (/proc/sys/kernel/sched_rt_runtime_us of sched_rt_period_us on each CPU); each thread of the \
                 plan reserves {} of {} µs. Ask for fewer threads or a longer interval",
                runtime_ns / 1_000,
                period_ns / 1_000
            ),
            (Errno::INVAL, Scheduling::Deadline { period_ns, .. }) => write!(
                f,
                "the period of {} µs is out of the kernel's bounds for SCHED_DEADLINE \
                 (/proc/sys/kernel/sched_deadline_period_min_us, sched_deadline_period_max_us: usually from \
                 100 µs to 4.19 s). Choose another interval, or policy=fifo",
                period_ns / 1_000
            ),
            (errno, _) => write!(f, "the kernel says: {errno}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = name(self.asked.policy());
        match self.asked.priority() {
            0 => write!(f, "{policy} is refused: ")?,
            priority => write!(f, "{policy} with priority {priority} is refused: ")?,
        }
        self.why(f)
    }
}

/// Returns whether this process is in a user namespace other than the initial one, which maps all
/// users to themselves (user_namespaces(7)).
fn in_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let fields: Vec<&str> = map.split_whitespace().collect();
    !fields.is_empty() && fields != ["0", "0", "4294967295"]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIFO: Scheduling = Scheduling::Priority {
        policy: Policy::Fifo,
        priority: 95,
    };
    const DEADLINE: Scheduling = Scheduling::Deadline {
        runtime_ns: 100_000,
        period_ns: 1_000_000,
    };

    fn refusal(errno: Errno, asked: Scheduling) -> Refusal {
        Refusal {
            errno,
            asked,
            pinned: None,
            privileged: true,
            in_user_namespace: false,
            priority_limit: 0,
            group: None,
        }
    }

    #[track_caller]
    fn says(refusal: &Refusal, words: &[&str]) {
        let text = refusal.to_string();
        for word in words {
            assert!(text.contains(word), "{word}: {text}");
        }
    }

    #[test]
    fn want_of_privilege_is_told_with_both_remedies() {
        let mut refused = refusal(Errno::PERM, FIFO);
        refused.privileged = false;
        refused.priority_limit = 10;
        says(
            &refused,
            &[
                "SCHED_FIFO with priority 95",
                "CAP_SYS_NICE",
                "here it is 10",
                "limits.d",
            ],
        );
        refused.privileged = true;
        refused.in_user_namespace = true;
        says(&refused, &["user namespace"]);
        let mut refused = refusal(Errno::PERM, DEADLINE);
        refused.privileged = false;
        says(
            &refused,
            &["SCHED_DEADLINE is refused", "CAP_SYS_NICE", "as root"],
        );
    }

    #[test]
    fn a_group_without_time_is_named_where_privilege_is_not_the_reason() {
        let mut refused = refusal(Errno::PERM, FIFO);
        refused.group = Some(unseen(true));
        says(&refused, &["/docker/1f", "rt_group_sched=0"]);
        refused.group = Some(unseen(false));
        says(
            &refused,
            &["/docker/1f", "can't be seen", "cpu.rt_runtime_us"],
        );
        // A priority within the limit needs no capability, but still a budget.
        refused.privileged = false;
        refused.priority_limit = 99;
        says(&refused, &["/docker/1f"]);
        refused.group = None;
        says(&refused, &["does not say why"]);
    }

    fn unseen(is_version_2: bool) -> Group {
        let (groups, mounts) = if is_version_2 {
            ("0::/docker/1f", "")
        } else {
            ("2:cpu:/docker/1f", "")
        };
        Group::find(groups, mounts).unwrap()
    }

    #[test]
    fn each_refusal_of_a_deadline_has_its_own_reason() {
        let mut pinned = refusal(Errno::PERM, DEADLINE);
        pinned.pinned = Some(3);
        says(&pinned, &["CPU 3", "Leave cpu= (-a) out"]);
        says(&refusal(Errno::BUSY, DEADLINE), &["100 of 1000 µs"]);
        says(&refusal(Errno::INVAL, DEADLINE), &["1000 µs", "period_min"]);
        says(&refusal(Errno::NOSYS, DEADLINE), &["the kernel says"]);
    }
}
