//! RT_GROUP_SCHED: why SCHED_FIFO is refused with "Operation not permitted" even to root.

use super::{Examination, Judgement, Severity::*, advise, good};
use crate::cgroup::Cgroup;
use crate::realtime::{RealTime, RtGroup};

/// Checks whether the control group of this process may run real-time tasks.
pub(super) fn budget(e: &Examination<'_>) -> Judgement {
    let group = e.machine.process.rt_group.get()?;
    match group {
        RtGroup::Budget { runtime_us: 0 } => {
            let folder = Cgroup::of_self(e.source, "cpu").map(|group| group.folder());
            let folder = folder.known().map_or("the control group", String::as_str);
            let state = format!("no budget: {} is 0 in {folder}", RealTime::RUNTIME);
            advise(Warning, state, remedy(e))
        }
        RtGroup::Unlimited | RtGroup::Budget { .. } => good(group.to_string()),
        RtGroup::NoBudgetPossible => {
            let remedy = "boot with `rt_group_sched=0` (Linux 6.16 and later), or move the shell \
                          that starts tare into the root group: `echo $$ | sudo tee \
                          /sys/fs/cgroup/cgroup.procs`";
            advise(Warning, group.to_string(), e.on_kernel(remedy))
        }
    }
}

fn remedy(e: &Examination<'_>) -> String {
    if e.in_container() {
        return "outside the container: start it with a budget and the right to use it, for \
            example `docker run --cpu-rt-runtime=500000 --ulimit rtprio=99 --cap-add=SYS_NICE`; \
            the engine's own group needs one first (dockerd --cpu-rt-runtime)"
            .to_owned();
    }
    let Some(group) = Cgroup::of_self(e.source, "cpu").into_known() else {
        let file = RealTime::RUNTIME;
        return format!("in the folder of the control group: `echo 950000 | sudo tee {file}`");
    };
    let to_root = format!(
        "move the shell that starts tare into the root group: `echo $$ | sudo tee {}/cgroup.procs`",
        group.mount
    );
    let Some(writes) = RealTime::writes(e.source, &group) else {
        return format!("its parents have no budget left to give, so {to_root}");
    };
    let commands = writes.iter().map(|(folder, us)| {
        let file = RealTime::RUNTIME;
        format!("echo {us} | sudo tee {folder}/{file}")
    });
    let commands = commands.collect::<Vec<_>>().join(" && ");
    format!("`{commands}`, or {to_root}")
}
