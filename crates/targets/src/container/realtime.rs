//! Real-time time for the control groups of containers.
//!
//! In a kernel with RT_GROUP_SCHED ([`tare_host::realtime`]) no thread of a new group gets
//! SCHED_FIFO, whatever its rights. So a container is given the time that the groups at the top of
//! the hierarchy leave.

use std::thread;
use std::time::{Duration, Instant};

use tare_guard::{Guard, GuardError, OwnedCgroup};
use tare_host::Source;
use tare_host::realtime::RealTime;
use tare_results::work::Rights;

/// The time that the kernel may take to give back the time of a removed group; usually some 10 ms.
const RETURN_LIMIT: Duration = Duration::from_secs(5);

/// Returns the time that a container needs for its rights: None if no policy needs a budget, or the
/// kernel has none.
pub(crate) fn for_rights(rights: &Rights) -> Option<RealTime> {
    let needs_budget = rights.real_time?.policy.has_priority();
    needs_budget.then(|| RealTime::left(&Source::system()))?
}

/// Makes a group with this much time for an engine or a runtime to put a container below: a
/// container can't have more than the group above it.
///
/// # Errors
///
/// Returns [`GuardError`] if the group can't be made, or another program has taken the time since.
pub(crate) fn group(
    time: RealTime,
    prefix: &str,
    guard: &Guard,
) -> Result<OwnedCgroup, GuardError> {
    let group = guard.cgroup(prefix, &["cpu"])?;
    group.set(RealTime::PERIOD, &time.period_us.to_string())?;
    let runtime = time.runtime_us.to_string();
    let deadline = Instant::now() + RETURN_LIMIT;
    // The time of a removed group comes back a little after the group has vanished.
    loop {
        match group.set(RealTime::RUNTIME, &runtime) {
            Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
            set => return set.map(|()| group),
        }
    }
}

#[cfg(test)]
mod tests {
    use tare_wire::scheduling::Policy;

    use super::*;

    #[test]
    fn only_policies_with_a_priority_need_a_budget() {
        assert_eq!(for_rights(&Rights::default()), None);
        let deadline = tare_results::work::RealTime {
            policy: Policy::Deadline,
            priority: 0,
        };
        let rights = Rights {
            real_time: Some(deadline),
            ..Rights::default()
        };
        assert_eq!(for_rights(&rights), None);
    }
}
