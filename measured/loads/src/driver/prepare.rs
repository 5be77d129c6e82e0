//! Preparation before the load starts: checks, the scratch folder, the tree, the tasks of every
//! load.

use std::collections::BTreeSet;
use std::path::Path;

use tare_wire::cpus::Cpus;

use super::folder::{self, Folder};
use super::options::Options;
use crate::cpus;
use crate::device;
use crate::error::DriverError;
use crate::kinds::{Setup, Walk};
use crate::processes;
use crate::schedule::Schedule;
use crate::spec::{Load, Part};
use crate::task::Task;
use crate::tools::Tool;
use crate::tree;

/// The share of a file system's free space that a load may use.
const SHARE_OF_FREE: f64 = 0.9;

/// A load of a schedule, ready to start.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The load, as written.
    pub(super) text: String,
    pub(super) tasks: Vec<Task>,
    /// The limit on written bytes for tools without their own limit.
    pub(super) limit: Option<u64>,
}

/// Prepares all loads. Returns the folder, the loads, and notices.
pub(super) fn prepare(
    options: &Options,
) -> Result<(Folder, Vec<Prepared>, Vec<String>), DriverError> {
    let schedule = &options.schedule;
    check(schedule)?;
    let loads = with_cpus(options)?;
    let folder = Folder::make(&options.dir)?;
    let mut setup = Setup {
        cpus: Cpus::default(),
        dir: folder.path().to_owned(),
        room: 0,
        tree: None,
        walk: match folder::ram_disk(Path::new("/")) {
            Some(_) => Walk::Tree,
            None => Walk::Root,
        },
        notices: Vec::new(),
    };
    if loads.iter().any(|(load, _)| !load.is_idle()) {
        look_around(&mut setup);
        setup.room = furnish(options, &loads, &mut setup)?;
    }
    let mut prepared = Vec::new();
    let mut remarks = BTreeSet::new();
    for (load, cpus) in loads {
        setup.cpus = cpus;
        let mut tasks = Vec::new();
        for part in load.parts() {
            tasks.extend((part.kind.tasks)(&mut setup, &part.words)?);
        }
        remarks.extend(tasks.iter().filter_map(|task| task.meter.remark()));
        let watched = load.parts().iter().any(|part| part.kind.example.is_some());
        prepared.push(Prepared {
            text: load.to_string(),
            tasks,
            limit: watched.then_some(options.limit),
        });
    }
    let mut notices = schedule.deviations();
    for text in setup.notices.into_iter().chain(remarks) {
        // Several phases may have the same notice.
        if !notices.contains(&text) {
            notices.push(text);
        }
    }
    Ok((folder, prepared, notices))
}

/// Checks the schedule before anything is created.
fn check(schedule: &Schedule) -> Result<(), DriverError> {
    let missing = |tool: &Tool| tool.find().is_none();
    if let Some(tool) = schedule.tools().into_iter().find(missing) {
        return Err(DriverError(format!(
            "the load needs {}, which is in no folder of PATH; Debian's package {} has it",
            tool.program, tool.package
        )));
    }
    if let Some((load, why)) = schedule.needs_root()
        && !rustix::process::geteuid().is_root()
    {
        return Err(DriverError(format!(
            "the load '{load}' requires root: {why}"
        )));
    }
    let mut kinds = parts(schedule.loads()).map(|part| part.kind);
    if let Some(kind) = kinds.find(|kind| kind.loopback)
        && !device::is_loopback_up()
    {
        return Err(DriverError(format!(
            "the load '{}' speaks to 127.0.0.1, and the loopback device is down: `ip link set lo up`",
            kind.name
        )));
    }
    Ok(())
}

fn parts<'a>(loads: impl IntoIterator<Item = &'a Load>) -> impl Iterator<Item = &'a Part> {
    loads.into_iter().flat_map(Load::parts)
}

/// Chooses the CPUs of each load.
fn with_cpus(options: &Options) -> Result<Vec<(&Load, Cpus)>, DriverError> {
    let allowed = cpus::allowed()?;
    let chosen = |load| {
        let wanted = options.cpus.as_ref().unwrap_or(Load::cpus(load));
        Ok((load, wanted.choose(&allowed, &options.except)?))
    };
    options.schedule.loads().iter().map(chosen).collect()
}

/// Adds notices on differences between this system and the study's.
fn look_around(setup: &mut Setup) {
    if let Some(kind) = folder::ram_disk(&setup.dir) {
        setup.notices.push(format!(
            "the scratch folder is on {kind}: a RAM disk is another load than the disk of the study"
        ));
    }
    if processes::io(rustix::process::getpid()).is_none() {
        setup.notices.push(
            "this kernel keeps no account of what processes read and write (CONFIG_TASK_IO_ACCOUNTING): \
             what is cut short, of hackbench and tar, is not counted, and of nc whole blocks only"
                .to_owned(),
        );
    }
}

/// Creates the tree if one is needed, and checks that there is room for all loads: a file stays
/// when its phase is over, and serves the next one of the same load. Returns the limit for tools
/// that use all free space.
fn furnish(
    options: &Options,
    loads: &[(&Load, Cpus)],
    setup: &mut Setup,
) -> Result<u64, DriverError> {
    let dir = setup.dir.clone();
    let free = (folder::free(&dir)? as f64 * SHARE_OF_FREE) as u64;
    let mut room = options.limit.min(free);
    let mut take = |need: u64| {
        let left = room.checked_sub(need);
        room = left.ok_or_else(|| DriverError::no_room(&dir, room, need))?;
        Ok(())
    };
    let mut kinds = parts(loads.iter().map(|(load, _)| *load)).map(|part| part.kind);
    if kinds.any(|kind| (kind.needs_tree)(&setup.walk)) {
        setup.tree = Some(match &options.tree {
            Some(path) => {
                let size = tree::count(path)
                    .map_err(|error| DriverError::at("read the tree", path, error))?;
                (path.clone(), size)
            }
            None => {
                take(tree::size(tree::SEED).disk_bytes())?;
                let path = dir.join("tree");
                let made = std::fs::create_dir(&path).and_then(|()| tree::make(&path, tree::SEED));
                let size = made.map_err(|error| DriverError::at("make the tree", &path, error))?;
                (path, size)
            }
        });
    }
    let mut seen: Vec<&Part> = Vec::new();
    let mut takers = 0;
    for (load, cpus) in loads {
        setup.cpus = *cpus;
        for part in load.parts() {
            if seen.contains(&part) {
                continue;
            }
            seen.push(part);
            match (part.kind.writes)(setup) {
                Some(need) => take(need)?,
                None => takers += 1,
            }
        }
    }
    Ok(room / takers.max(1))
}
