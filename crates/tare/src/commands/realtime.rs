//! Whether this machine's kernel will schedule measuring threads as a plan asks.
//!
//! Asked before anything starts: every cell would fail for the same reason, and each would say so.

use tare_host::machine::RtGroup;
use tare_results::MachineRecord;
use tare_results::model::{CellPlan, Plan};
use tare_wire::scheduling::Policy;

use crate::error::CommandError;

/// Refuses to start if a cell's threads can't have their policy or priority.
///
/// What can't be found out is left to the kernel, which tells it to the cell.
///
/// # Errors
///
/// Returns [`CommandError::Unavailable`] with what to do.
pub fn require(plan: &Plan, machine: &MachineRecord) -> Result<(), CommandError> {
    plan.cells
        .iter()
        .try_for_each(|cell| of_cell(cell, machine))
}

fn of_cell(cell: &CellPlan, record: &MachineRecord) -> Result<(), CommandError> {
    // In a guest they are root's threads; a container has limits of its own.
    let is_direct = cell.target.capabilities().is_direct;
    let Some(asked) = cell.work.rights.real_time.filter(|_| is_direct) else {
        return Ok(());
    };
    let process = &record.machine.process;
    let limit = process.realtime_priority_limit.known();
    let by_limit = match (asked.policy, limit) {
        (Policy::Deadline, _) => false,
        (_, Some(Some(limit))) => u64::from(asked.priority) <= *limit,
        (_, Some(None) | None) => true,
    };
    let refuse = |why: String, finding: &str| {
        let finding = record.findings.iter().find(|found| found.id == finding);
        let remedy = finding.and_then(|found| found.remedy.as_deref());
        Err(CommandError::Unavailable {
            what: format!("SCHED_{}", asked.policy.name().to_uppercase()),
            why,
            remedy: format!(
                "{}\n  or measure ordinary threads, which wait for others: --policy other",
                remedy.unwrap_or("run tare with sudo")
            ),
        })
    };
    if process.may_use_realtime.known() == Some(&false) && !by_limit {
        let why = match limit {
            Some(Some(limit @ 1..)) if asked.policy != Policy::Deadline => format!(
                "without CAP_SYS_NICE the highest priority is {limit} (RLIMIT_RTPRIO), below {}",
                asked.priority
            ),
            _ => "neither CAP_SYS_NICE nor a real-time priority limit allows it".to_owned(),
        };
        return refuse(why, "realtime");
    }
    // A budget is asked for by SCHED_FIFO and SCHED_RR alone.
    match process.rt_group.known() {
        Some(RtGroup::Budget { runtime_us: 0 }) if asked.policy.has_priority() => refuse(
            "the kernel has RT_GROUP_SCHED, and tare's control group has no real-time budget: it is \
             refused even to root"
                .to_owned(),
            "rt-group",
        ),
        Some(group @ RtGroup::NoBudgetPossible) if asked.policy.has_priority() => {
            refuse(group.to_string(), "rt-group")
        }
        _ => Ok(()),
    }
}
