//! Checks of a plan before anything starts: CPUs, targets, loads and real-time rights that this
//! machine does not have. Otherwise every cell would fail for the same reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{io, iter};

use rustix::fs::{Access, access};
use tare_host::realtime::RtGroup;
use tare_host::{Source, exclusive_cpuset, is_of_own_group};
use tare_loads::{Cpus as LoadCpus, Unavailable, availability};
use tare_results::MachineRecord;
use tare_results::model::{CellPlan, LoadPlace, Plan};
use tare_results::target::TargetSpec;
use tare_targets::{Availability, Target, engine, process, server, spec};
use tare_wire::cpus::Cpus;
use tare_wire::scheduling::Policy;

use crate::error::ExperimentError;

/// A reason why a plan can't run on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A set of CPUs names some that do not exist.
    NoSuchCpus(String),
    /// A target, a load or a scheduling policy can't be used.
    Unavailable {
        /// The missing thing.
        what: String,
        /// Why it can't be used.
        why: String,
        /// How to make it usable.
        remedy: String,
    },
    /// Some cells of a study lack what the others do without: they are left out.
    LeftOut {
        /// How many there are.
        cells: usize,
        /// Why they can't be measured.
        why: String,
        /// How to measure them, too.
        remedy: String,
    },
}

/// The way to find out whether a target can be used: by looking, or by trying.
pub type Usable = fn(&dyn Target) -> Availability;

/// Returns everything that keeps a plan from running here, each reason once. `allowed` are the CPUs
/// that this process may use.
///
/// # Errors
///
/// Returns [`ExperimentError`] for a target that does not exist at all.
pub fn check(
    plan: &Plan,
    machine: &MachineRecord,
    allowed: &Cpus,
    usable: Usable,
) -> Result<Vec<Finding>, ExperimentError> {
    let mut findings = Vec::new();
    let mut loads = Vec::new();
    let mut rights = Vec::new();
    let mut seen = BTreeSet::new();
    for cell in &plan.cells {
        let main = cell.work.main.filter(|_| cell.target.kernel().is_host());
        findings.extend(main.and_then(|main| {
            let what = format!("--mainaffinity {main}");
            missing(&what, &main, allowed, "on this machine")
        }));
        rights.extend(real_time(cell, machine));
        rights.extend(held_by_others(cell));
        if !seen.insert((&cell.target, cell.load.as_str())) {
            continue;
        }
        let place = cell.target.capabilities().load_place;
        for load in cell.load.loads() {
            let what = format!("the load '{load}'");
            let guest = cell.target.guest_cpus();
            findings.extend(match (load.cpus(), place, guest) {
                (LoadCpus::These(cpus), LoadPlace::Beside, _) => {
                    missing(&what, cpus, allowed, "on this machine")
                }
                (LoadCpus::These(cpus), LoadPlace::Inside, Some(guest)) => {
                    let whose = format!("in the guest '{}'", cell.target);
                    missing(&what, cpus, &(0..guest).collect(), &whose)
                }
                // The CPUs of another machine are known there.
                _ => None,
            });
            if let Err(Unavailable { why, remedy }) = availability(load, place) {
                loads.push(Finding::Unavailable { what, why, remedy });
            }
        }
    }
    for cell in &plan.cells {
        let Some(work) = &cell.server else {
            continue;
        };
        if let Availability::Unusable { why, remedy } = server::present(work) {
            let what = format!("the server '{}'", work.id);
            findings.push(Finding::Unavailable { what, why, remedy });
        }
    }
    findings.extend(without_network(plan));
    let served = plan.cells.iter().filter(|cell| cell.server.is_some());
    for (name, availability) in served.filter_map(|cell| server::client(&cell.work)) {
        if let Availability::Unusable { why, remedy } = availability {
            let what = format!("the client '{name}'");
            findings.push(Finding::Unavailable { what, why, remedy });
        }
    }
    let specs: BTreeSet<&TargetSpec> = plan.cells.iter().map(|cell| &cell.target).collect();
    for spec in specs {
        let target = spec::of(spec)?;
        let availability = match (usable(target.as_ref()), spec.capabilities().engine) {
            (Availability::Unusable { .. }, Some(needed))
                if plan.start_engine && !engine::runs(needed) =>
            {
                match engine::startable(needed) {
                    Availability::Usable => target.in_private_engine(),
                    unusable => unusable,
                }
            }
            (availability, _) => availability,
        };
        let own = plan.cells.iter().filter(|cell| cell.target == *spec);
        let own = own.filter_map(|cell| cell.arrivals.as_ref()?.command.as_ref());
        let found = own.map(|command| target.finds(command));
        for availability in iter::once(availability).chain(found) {
            if let Availability::Unusable { why, remedy } = availability {
                let what = format!("the target '{spec}'");
                findings.push(Finding::Unavailable { what, why, remedy });
            }
        }
    }
    findings.extend(unwritable(plan));
    let mut each = Vec::new();
    for finding in findings.into_iter().chain(loads).chain(rights) {
        if !each.contains(&finding) {
            each.push(finding);
        }
    }
    Ok(each)
}

/// Returns the cells whose server has no network here. A study measures its others.
fn without_network(plan: &Plan) -> Vec<Finding> {
    let mut lacking = BTreeMap::new();
    for cell in &plan.cells {
        if let Availability::Unusable { why, remedy } = network(cell) {
            *lacking.entry((why, remedy)).or_default() += 1;
        }
    }
    let is_partial = plan.study.is_some() && lacking.values().sum::<usize>() < plan.cells.len();
    let each = lacking.into_iter().map(|((why, remedy), cells)| {
        let what = "the experiment".to_owned();
        match is_partial {
            true => Finding::LeftOut { cells, why, remedy },
            false => Finding::Unavailable { what, why, remedy },
        }
    });
    each.collect()
}

/// Returns whether the network that the server of a cell needs can be made here.
pub(crate) fn network(cell: &CellPlan) -> Availability {
    match &cell.server {
        Some(_) if cell.has_user_network() => Availability::Usable,
        Some(work) if cell.target.kernel().is_guest() || work.words == server::STACK => {
            process::taps()
        }
        Some(_) => process::networks(),
        None => Availability::Usable,
    }
}

fn missing(what: &str, cpus: &Cpus, there: &Cpus, whose: &str) -> Option<Finding> {
    let missing = cpus.without(there);
    (missing.count() > 0).then(|| {
        Finding::NoSuchCpus(format!(
            "{what} names CPU {missing}, which is offline or does not exist {whose} (available: {there})"
        ))
    })
}

/// Returns why no setting of a plan's switches can be changed, if it has some.
fn unwritable(plan: &Plan) -> Option<Finding> {
    let switches = plan.cells.iter().flat_map(|cell| &cell.switches);
    let settings = switches.flat_map(|switch| &switch.settings);
    let paths: BTreeSet<&str> = settings.map(|setting| setting.path.as_str()).collect();
    let mut first = None;
    for path in paths {
        let path = match is_of_own_group(path) {
            true => Path::new(path).ancestors().nth(2)?.join("cgroup.procs"),
            false => path.into(),
        };
        let error = io::Error::from(access(&path, Access::WRITE_OK).err()?);
        first.get_or_insert((path, error));
    }
    let (path, error) = first?;
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => {
            "name a switch (--isolate --dry-run lists them), or a file below /proc/sys or /sys"
        }
        _ => "run tare as root, or measure without --isolate and --screen",
    };
    Some(Finding::Unavailable {
        what: "--isolate or --screen".to_owned(),
        why: format!("{}: {error}", path.display()),
        remedy: remedy.to_owned(),
    })
}

/// Returns which cpuset holds a measured CPU of a container for itself: no other group can have it,
/// and a container is one.
fn held_by_others(cell: &CellPlan) -> Option<Finding> {
    let is_container = cell.target.kernel().is_host() && !cell.target.capabilities().is_direct;
    let cpus = cell.work.measured_cpus();
    let (name, held) = match is_container && cpus.count() > 0 {
        true => exclusive_cpuset(&Source::system(), &cpus)?,
        false => return None,
    };
    Some(Finding::Unavailable {
        what: format!("CPU {cpus}"),
        why: format!(
            "the cpuset '{name}' holds CPU {held} for itself, and containers have their own cpusets"
        ),
        remedy: "measure on another CPU (--cpu), or end what has that cpuset".to_owned(),
    })
}

/// Returns why the threads of a cell can't have their policy or priority. Where that is unknown,
/// the kernel decides when the cell starts.
fn real_time(cell: &CellPlan, record: &MachineRecord) -> Option<Finding> {
    // In a guest the threads are root's; a container has its own limits.
    let asked = cell.work.rights.real_time;
    let asked = asked.filter(|_| cell.target.capabilities().is_direct)?;
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
        Some(Finding::Unavailable {
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
    // Only SCHED_FIFO and SCHED_RR need a budget.
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
        _ => None,
    }
}
