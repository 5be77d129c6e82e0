//! Control groups: a name under which processes are kept, limited and found again.
//!
//! A process cannot leave its group by itself, whatever becomes of its environment, its parent or
//! its process group. So what runs where the mark in the environment gets lost, in an engine's
//! daemon or a container, is known by its group. A group is ours if its name ends with the owner's
//! id and it is really one: a folder in a cgroup file system.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tare_host::CgroupVersion;

use crate::error::GuardError;
use crate::hierarchies::Hierarchy;
use crate::owned::guarded::{Guarded, Inner};
use crate::owned::{Context, check_prefix, mark};
use crate::processes::{KILL_LIMIT, kill_all};
use crate::record::{CgroupRecord, Record};
use crate::report::Undone;

/// A control group. When it is dropped, the processes in it are killed, or those of others moved
/// back, and it is removed, in every hierarchy in which there is a group of its name, with all groups
/// below.
#[must_use = "the group is removed when this is dropped"]
#[derive(Debug)]
pub struct OwnedCgroup {
    name: String,
    /// The folders that were made here, by hierarchy.
    made: Vec<(Hierarchy, PathBuf)>,
    guarded: Guarded,
}

/// The way into a control group.
#[derive(Debug)]
pub struct CgroupEntry {
    /// Files to which a process writes to get in.
    pub(crate) files: Vec<File>,
}

/// Makes a command start in the groups with these files.
pub(crate) fn enter_when_spawned(command: &mut Command, files: Vec<File>) {
    let enter = move || {
        // "0" is the writing process itself.
        files.iter().try_for_each(|mut file| file.write_all(b"0"))
    };
    // SAFETY: between fork and exec the closure makes system calls on descriptors that it owns
    // and neither allocates nor locks.
    unsafe { command.pre_exec(enter) };
}

impl OwnedCgroup {
    /// Announces a name, under which somebody else will make groups at the top of hierarchies.
    pub(crate) fn reserve(inner: &Arc<Inner>, prefix: &str) -> Result<OwnedCgroup, GuardError> {
        Self::announce(inner, prefix, &Hierarchy::all()?, Record::Cgroup)
    }

    pub(crate) fn create(
        inner: &Arc<Inner>,
        prefix: &str,
        controllers: &[&str],
        record: fn(CgroupRecord) -> Record,
    ) -> Result<OwnedCgroup, GuardError> {
        let all = Hierarchy::all()?;
        let mut wanted: Vec<&Hierarchy> = Vec::new();
        for controller in controllers {
            let found = all.iter().find(|hierarchy| hierarchy.has(controller));
            let found = found.ok_or_else(|| GuardError::NoController {
                controller: (*controller).to_owned(),
            })?;
            if !wanted.contains(&found) {
                wanted.push(found);
            }
        }
        if controllers.is_empty() {
            // Version 2 if there is one: no limit of anybody's is changed by entering it.
            let plain = all.iter().find(|h| h.version == CgroupVersion::Two);
            let found = plain.or(all.first()).ok_or(GuardError::NoController {
                controller: "any".to_owned(),
            })?;
            wanted.push(found);
        }
        let mut group = Self::announce(inner, prefix, &all, record)?;
        for hierarchy in wanted {
            let folder = make(hierarchy, &group.name)?;
            group.made.push((hierarchy.clone(), folder));
        }
        Ok(group)
    }

    fn announce(
        inner: &Arc<Inner>,
        prefix: &str,
        all: &[Hierarchy],
        record: fn(CgroupRecord) -> Record,
    ) -> Result<OwnedCgroup, GuardError> {
        check_prefix(prefix, "_-")?;
        let parents = all.iter().flat_map(|hierarchy| &hierarchy.parents);
        let parents: Vec<String> = parents
            .filter_map(|path| path.to_str().map(str::to_owned))
            .collect();
        let mut name = String::new();
        let guarded = inner.announce(|number| {
            name = format!("tare-{prefix}{}", mark(&inner.owner, number));
            let name = name.clone();
            record(CgroupRecord { name, parents })
        })?;
        let made = Vec::new();
        Ok(OwnedCgroup {
            name,
            made,
            guarded,
        })
    }

    /// Gives the group's name, which is also its path from the top of a hierarchy unless it had to
    /// be made in the group of this process.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the folder in the hierarchy of a controller, and the version of its files; `None` if
    /// the controller was not asked for.
    pub fn folder(&self, controller: &str) -> Option<(&Path, CgroupVersion)> {
        let mut made = self.made.iter();
        let (hierarchy, folder) = made.find(|(hierarchy, _)| hierarchy.has(controller))?;
        Some((folder, hierarchy.version))
    }

    /// Writes a file of the group, such as `memory.max`: the part before the dot names the
    /// controller.
    ///
    /// # Errors
    ///
    /// [`GuardError::NoController`] if the controller was not asked for, [`GuardError::Io`] if
    /// the kernel refuses.
    pub fn set(&self, file: &str, value: &str) -> Result<(), GuardError> {
        let controller = file.split('.').next().unwrap_or_default();
        let (folder, _) = self
            .folder(controller)
            .ok_or_else(|| GuardError::NoController {
                controller: controller.to_owned(),
            })?;
        write(&folder.join(file), value)
    }

    /// Moves a process into the group. The processes that it starts from then on are in it, too.
    ///
    /// # Errors
    ///
    /// [`GuardError::Io`] if the process has ended or the kernel refuses.
    pub fn add(&self, pid: u32) -> Result<(), GuardError> {
        for (_, folder) in &self.made {
            write(&folder.join(PROCS), &pid.to_string())?;
        }
        Ok(())
    }

    /// Moves a thread into the group; in version 2 its process.
    ///
    /// # Errors
    ///
    /// As [`add`](OwnedCgroup::add).
    pub fn add_thread(&self, id: u32) -> Result<(), GuardError> {
        let mut folders = self.made.iter();
        folders.try_for_each(|(_, folder)| write(&threads(folder), &id.to_string()))
    }

    /// Returns the way into the group for programs that are started in great numbers.
    ///
    /// # Errors
    ///
    /// As [`enter`](OwnedCgroup::enter).
    pub fn entry(&self) -> Result<CgroupEntry, GuardError> {
        let open = |(_, folder): &(Hierarchy, PathBuf)| {
            let path = folder.join(PROCS);
            let opened = OpenOptions::new().write(true).open(&path);
            opened.map_err(|source| failed("open", &path, source))
        };
        let files = self.made.iter().map(open).collect::<Result<_, _>>()?;
        Ok(CgroupEntry { files })
    }

    /// Makes a command start in the group: not even its first instruction runs outside.
    ///
    /// # Errors
    ///
    /// [`GuardError::Io`] if the group cannot be opened. That the kernel refuses to let the
    /// command in is reported when it is spawned.
    pub fn enter(&self, command: &mut Command) -> Result<(), GuardError> {
        enter_when_spawned(command, self.entry()?.files);
        Ok(())
    }

    /// Lists the processes in the group and in those below it.
    pub fn procs(&self) -> Vec<u32> {
        let mut pids: Vec<u32> = self.made.iter().flat_map(|(_, f)| procs_below(f)).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Kills the processes in the group and in those below it, and waits for their end. The group
    /// stays.
    ///
    /// # Errors
    ///
    /// [`GuardError::ProcessesRemain`] if some have not ended after five seconds.
    pub fn kill(&self) -> Result<(), GuardError> {
        let folders: Vec<PathBuf> = self.made.iter().map(|(_, folder)| folder.clone()).collect();
        empty(&folders, &mut Vec::new())
    }

    /// Kills what is in the group and removes it now.
    ///
    /// # Errors
    ///
    /// [`GuardError::ProcessesRemain`] or [`GuardError::Io`]; the guard tries again when it is
    /// closed.
    pub fn remove(self) -> Result<(), GuardError> {
        self.guarded.undo()
    }

    /// Keeps the group until the guard is closed, and gives its name.
    pub fn leave_to_guard(mut self) -> String {
        self.guarded.leave_to_guard();
        self.name.clone()
    }
}

/// The file that lists a group's processes and takes new ones.
const PROCS: &str = "cgroup.procs";

/// Returns the file for the threads of a group, of version 2 that for its processes.
fn threads(folder: &Path) -> PathBuf {
    let tasks = folder.join("tasks");
    if tasks.exists() {
        tasks
    } else {
        folder.join(PROCS)
    }
}

impl CgroupRecord {
    pub(crate) fn undo(
        &self,
        number: u64,
        context: Context<'_>,
        empty: fn(&[PathBuf], &mut Vec<Undone>) -> Result<(), GuardError>,
        done: &mut Vec<Undone>,
    ) -> Result<(), GuardError> {
        let refused = |why| GuardError::CgroupRefused {
            name: self.name.clone(),
            why,
        };
        if !self.name.ends_with(&mark(context.owner, number)) || self.name.contains('/') {
            return Err(refused("its name does not carry the owner's id"));
        }
        let folders: Vec<PathBuf> = self
            .parents
            .iter()
            .map(|parent| Path::new(parent).join(&self.name))
            .filter(|folder| folder.is_dir())
            .collect();
        if !folders.iter().all(|folder| is_cgroup(folder)) {
            return Err(refused("it is not in a cgroup file system"));
        }
        empty(&folders, done)?;
        for folder in &folders {
            remove_tree(folder)?;
        }
        if !folders.is_empty() {
            let name = self.name.clone();
            done.push(Undone::CgroupRemoved { name });
        }
        Ok(())
    }
}

/// Makes a group at the top of a hierarchy or, where that is forbidden, in the group of this
/// process.
fn make(hierarchy: &Hierarchy, name: &str) -> Result<PathBuf, GuardError> {
    let mut refusal = None;
    for parent in &hierarchy.parents {
        let folder = parent.join(name);
        match fs::create_dir(&folder) {
            Ok(()) => {
                if hierarchy.version == CgroupVersion::One && hierarchy.has("cpuset") {
                    // Born empty, and an empty set lets nobody in.
                    for file in ["cpuset.cpus", "cpuset.mems"] {
                        let path = parent.join(file);
                        let value = fs::read_to_string(&path)
                            .map_err(|source| failed("read", &path, source))?;
                        write(&folder.join(file), value.trim())?;
                    }
                }
                return Ok(folder);
            }
            Err(source) => refusal.get_or_insert((folder, source)),
        };
    }
    let (folder, source) = refusal.expect("a hierarchy has a top");
    Err(failed("make", &folder, source))
}

/// Moves the threads in groups back to the group above, until none is left.
pub(crate) fn release(folders: &[PathBuf], _done: &mut Vec<Undone>) -> Result<(), GuardError> {
    let begun = Instant::now();
    for folder in folders {
        let above = threads(folder.parent().unwrap_or(folder));
        loop {
            let threads = fs::read_to_string(threads(folder)).unwrap_or_default();
            let mut refused = None;
            for thread in threads.lines() {
                // One that has ended can't be moved.
                refused = write(&above, thread).err().or(refused);
            }
            match refused {
                Some(error) if begun.elapsed() > KILL_LIMIT => return Err(error),
                _ if threads.is_empty() => break,
                _ => {}
            }
        }
    }
    Ok(())
}

/// Kills what is in the groups until nothing is.
pub(crate) fn empty(folders: &[PathBuf], done: &mut Vec<Undone>) -> Result<(), GuardError> {
    let begun = Instant::now();
    loop {
        let inside = || folders.iter().flat_map(|folder| procs_below(folder));
        let mut pids: Vec<u32> = inside().collect();
        if pids.is_empty() {
            return Ok(());
        }
        pids.sort_unstable();
        pids.dedup();
        kill_all(&pids, |pid| inside().any(|other| other == pid), done);
        if begun.elapsed() > KILL_LIMIT {
            let pids: Vec<i32> = inside().filter_map(|pid| pid.try_into().ok()).collect();
            if !pids.is_empty() {
                return Err(GuardError::ProcessesRemain { pids });
            }
        }
    }
}

/// Lists the processes in a group and in those below it; none if it is gone.
fn procs_below(folder: &Path) -> Vec<u32> {
    let text = fs::read_to_string(folder.join(PROCS)).unwrap_or_default();
    let mut pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    for below in folders_in(folder) {
        pids.extend(procs_below(&below));
    }
    pids
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Removes a group with those below it. The files in its folder go with it.
fn remove_tree(folder: &Path) -> Result<(), GuardError> {
    for below in folders_in(folder) {
        remove_tree(&below)?;
    }
    let begun = Instant::now();
    loop {
        match fs::remove_dir(folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            // The last process has ended, and the kernel has not yet let go of it.
            Err(error)
                if error.kind() == ErrorKind::ResourceBusy && begun.elapsed() < KILL_LIMIT =>
            {
                thread::sleep(Duration::from_millis(1));
            }
            Err(source) => return Err(failed("remove", folder, source)),
        }
    }
}

fn is_cgroup(folder: &Path) -> bool {
    const CGROUP_SUPER_MAGIC: u64 = 0x0027_e0eb;
    const CGROUP2_SUPER_MAGIC: u64 = 0x6367_7270;
    rustix::fs::statfs(folder).is_ok_and(|found| {
        let kind = found.f_type as u64;
        kind == CGROUP_SUPER_MAGIC || kind == CGROUP2_SUPER_MAGIC
    })
}

fn write(path: &Path, value: &str) -> Result<(), GuardError> {
    // Not `fs::write`, which would make a file that is not there.
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(value.as_bytes()))
        .map_err(|source| failed("write", path, source))
}

fn failed(action: &str, path: &Path, source: io::Error) -> GuardError {
    GuardError::kernel(
        format!("{action} the control group {}", path.display()),
        source,
    )
}
