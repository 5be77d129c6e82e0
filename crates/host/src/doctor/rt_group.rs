//! RT_GROUP_SCHED: why SCHED_FIFO is refused with "Operation not permitted" even for root.
//!
//! A kernel with this option gives each control group its own real-time budget, and
//! a new group has none. The budgets of the children may together not exceed that of
//! their parent, and a group can only get a budget after its parent has one, so the
//! remedy is a sequence of writes from the top down with figures that fit.

use super::{Examination, Judgement, Severity::*, advise, good};
use crate::cgroup::{Cgroup, CgroupVersion};
use crate::machine::RtGroup;
use crate::source::Source;

/// What is proposed where the root group has no limit: the kernel's default.
const DEFAULT_BUDGET_US: i64 = 950_000;

/// Check whether the control group of this process may run real-time tasks.
pub(super) fn budget(e: &Examination<'_>) -> Judgement {
    let group = e.machine.process.rt_group.get()?;
    match group {
        RtGroup::Budget { runtime_us: 0 } => {
            let folder = Cgroup::of_self(e.source, "cpu").map(|group| group.folder());
            let folder = folder.known().map_or("the control group", String::as_str);
            let state = format!("no budget: cpu.rt_runtime_us is 0 in {folder}");
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
        return "give the control group a value in cpu.rt_runtime_us".to_owned();
    };
    let to_root = format!(
        "move the shell that starts tare into the root group: `echo $$ | sudo tee {}/cgroup.procs`",
        group.mount
    );
    let Some(writes) = writes(e.source, &group) else {
        return format!("its parents have no budget left to give, so {to_root}");
    };
    let commands = writes.iter();
    let commands =
        commands.map(|(folder, us)| format!("echo {us} | sudo tee {folder}/cpu.rt_runtime_us"));
    let commands = commands.collect::<Vec<_>>().join(" && ");
    format!("`{commands}`, or {to_root}")
}

/// Work out which budgets to write, from the top down. `None` when nothing is left to give.
///
/// All groups are taken to have the same period, which is the default.
fn writes(source: &Source, group: &Cgroup) -> Option<Vec<(String, i64)>> {
    if group.version != CgroupVersion::One {
        return None;
    }
    let mut lineage = group.lineage();
    lineage.reverse();
    let mut folders = lineage.into_iter();
    let root = folders.next()?;
    let mut available = match runtime(source, &root) {
        Some(value) if value >= 0 => value,
        _ => DEFAULT_BUDGET_US,
    };
    let mut parent = root;
    let mut writes = Vec::new();
    for folder in folders {
        let spoken_for = children_but(source, &parent, &folder);
        let own = runtime(source, &folder).unwrap_or(0);
        if own > 0 {
            available = own;
        } else {
            available = available.saturating_sub(spoken_for);
            if available <= 0 {
                return None;
            }
            writes.push((folder.clone(), available));
        }
        parent = folder;
    }
    Some(writes)
}

fn runtime(source: &Source, folder: &str) -> Option<i64> {
    source
        .value(&format!("{folder}/cpu.rt_runtime_us"))
        .into_known()
}

/// Sum the budgets of all children of a group except one.
fn children_but(source: &Source, parent: &str, except: &str) -> i64 {
    let names = source.names(parent).into_known().unwrap_or_default();
    names
        .iter()
        .map(|name| format!("{parent}/{name}"))
        .filter(|folder| folder != except)
        .filter_map(|folder| runtime(source, &folder))
        .filter(|value| *value > 0)
        .fold(0, i64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::Tree;

    const CPU: &str = "/sys/fs/cgroup/cpu";

    fn group(path: &str) -> Cgroup {
        Cgroup {
            version: CgroupVersion::One,
            mount: CPU.to_owned(),
            path: path.to_owned(),
        }
    }

    #[test]
    fn budgets_are_written_from_the_top_down_and_leave_the_siblings_theirs() {
        let tree = Tree::new()
            .file(&format!("{CPU}/cpu.rt_runtime_us"), "950000\n")
            .file(&format!("{CPU}/other/cpu.rt_runtime_us"), "200000\n")
            .file(&format!("{CPU}/a/cpu.rt_runtime_us"), "0\n")
            .file(&format!("{CPU}/a/b/cpu.rt_runtime_us"), "0\n")
            .file(&format!("{CPU}/a/c/cpu.rt_runtime_us"), "0\n");
        assert_eq!(
            writes(&tree.source(), &group("/a/b")).unwrap(),
            [
                (format!("{CPU}/a"), 750_000),
                (format!("{CPU}/a/b"), 750_000)
            ]
        );
    }

    #[test]
    fn a_parent_that_has_a_budget_keeps_it() {
        let tree = Tree::new()
            .file(&format!("{CPU}/cpu.rt_runtime_us"), "950000\n")
            .file(&format!("{CPU}/a/cpu.rt_runtime_us"), "400000\n")
            .file(&format!("{CPU}/a/x/cpu.rt_runtime_us"), "100000\n")
            .file(&format!("{CPU}/a/b/cpu.rt_runtime_us"), "0\n");
        assert_eq!(
            writes(&tree.source(), &group("/a/b")).unwrap(),
            [(format!("{CPU}/a/b"), 300_000)]
        );
    }

    #[test]
    fn when_siblings_hold_everything_there_is_nothing_to_write() {
        let tree = Tree::new()
            .file(&format!("{CPU}/cpu.rt_runtime_us"), "950000\n")
            .file(&format!("{CPU}/other/cpu.rt_runtime_us"), "950000\n")
            .file(&format!("{CPU}/a/cpu.rt_runtime_us"), "0\n");
        assert_eq!(writes(&tree.source(), &group("/a")), None);
    }
}
