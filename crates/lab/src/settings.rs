//! Kernel settings that a plan changes for the time of its run or of a cell.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Pid;
use rustix::thread::sched_getaffinity;
use tare_guard::{Guard, GuardError, OwnedCgroup, Setting};
use tare_host::{CgroupVersion, is_of_own_group};
use tare_results::model::{CellPlan, Cpus, SettingPlan, SwitchPlan, Unswitched};

use crate::error::ExperimentError;

/// Changed settings. Dropping them puts the old values back.
#[derive(Debug)]
pub struct Settings(Vec<Setting>);

impl Settings {
    /// Changes settings.
    ///
    /// # Errors
    ///
    /// Returns [`ExperimentError::Guard`] for the first that can't be changed; all have their old
    /// values then.
    pub fn change(planned: &[SettingPlan], guard: &Guard) -> Result<Self, ExperimentError> {
        let mut changed = Self(Vec::new());
        for setting in planned {
            changed
                .0
                .push(guard.set(Path::new(&setting.path), &setting.value)?);
        }
        Ok(changed)
    }

    /// Puts the old values back.
    ///
    /// # Errors
    ///
    /// Returns [`ExperimentError::Guard`] for the first that can't be put back.
    pub fn restore(mut self) -> Result<(), ExperimentError> {
        // In reverse order: the last change is the first to be undone.
        while let Some(setting) = self.0.pop() {
            setting.restore()?;
        }
        Ok(())
    }
}

/// The changed settings of a cell's switches, each with the name of its switch. Dropping them puts
/// the old values back.
///
/// A setting that the kernel refuses is reported, and the others are changed.
#[derive(Debug)]
pub(crate) struct Switches<'a> {
    changed: Vec<(&'a str, Setting)>,
    /// The control group that has the measured CPU for itself.
    pub partition: Option<OwnedCgroup>,
    /// Of version 1, that of threads which were on it.
    others: Option<OwnedCgroup>,
    unswitched: Vec<Unswitched>,
}

impl<'a> Switches<'a> {
    /// Changes the settings of a cell's switches, as far as the kernel allows it.
    pub(crate) fn change(plan: &'a CellPlan, guard: &Guard) -> Self {
        let mut all = Self {
            changed: Vec::new(),
            partition: None,
            others: None,
            unswitched: Vec::new(),
        };
        for SwitchPlan { name, settings } in &plan.switches {
            for SettingPlan { path, value } in settings {
                let changed = match is_of_own_group(path) {
                    true => all.isolate(name, path, value, plan, guard),
                    false => guard
                        .set(Path::new(path), value)
                        .map(|setting| all.changed.push((name.as_str(), setting)))
                        .map_err(|why| why.to_string()),
                };
                all.unswitched.extend(changed.err().map(|why| Unswitched {
                    switch: name.clone(),
                    path: path.clone(),
                    refused: true,
                    why,
                }));
            }
        }
        all
    }

    /// Makes a control group of the measured CPUs, which are its own then.
    ///
    /// A partition of version 2 takes them from all others. In version 1 no other group balances
    /// load over them, and the threads that were there last are moved to one of the other CPUs:
    /// without a scheduling domain, none would leave by itself.
    fn isolate(
        &mut self,
        switch: &'a str,
        path: &str,
        value: &str,
        plan: &CellPlan,
        guard: &Guard,
    ) -> Result<(), String> {
        if !plan.target.capabilities().is_direct {
            return Err("a container or guest has threads that need other CPUs".to_owned());
        }
        let told = |why: GuardError| why.to_string();
        let cpus = plan.measured_cpus();
        let group = guard.cgroup("isolated", &["cpuset"]).map_err(told)?;
        group.set("cpuset.cpus", &cpus.to_string()).map_err(told)?;
        let (folder, version) = group.folder("cpuset").ok_or("it has no folder")?;
        let file = path.rsplit('/').next().unwrap_or_default();
        group.set(file, value).map_err(|why| match version {
            CgroupVersion::One => told(why),
            CgroupVersion::Two => {
                format!("{why} (`echo +cpuset | sudo tee /sys/fs/cgroup/cgroup.subtree_control`)")
            }
        })?;
        let found = fs::read_to_string(folder.join(file)).unwrap_or_default();
        if found.trim() != value {
            return Err(format!("the kernel says of it: {}", found.trim()));
        }
        if let (CgroupVersion::One, Some(top)) = (version, folder.parent()) {
            let all = fs::read_to_string(top.join("cpuset.cpus")).unwrap_or_default();
            let rest = Cpus::parse(all.trim()).unwrap_or_default().without(&cpus);
            let others = guard.cgroup_of_others("others", &["cpuset"]);
            let others = self.others.insert(others.map_err(told)?);
            others.set("cpuset.cpus", &rest.to_string()).map_err(told)?;
            for group in balanced(top.to_owned(), &cpus) {
                let balance = guard.set(&group.join(file), value).map_err(told)?;
                self.changed.push((switch, balance));
            }
            let threads = fs::read_to_string(top.join("tasks")).unwrap_or_default();
            let threads = threads.lines().filter_map(|id| id.parse().ok());
            for thread in threads.filter(|id| is_movable(*id, &cpus, &rest)) {
                // Some of the kernel's can't be moved, and some have ended.
                let _ = others.add_thread(thread);
            }
        }
        self.partition = Some(group);
        Ok(())
    }

    /// Puts the old values back, except where another program has changed them since. Returns the
    /// settings that did not have their planned value, or could not be put back.
    pub(crate) fn restore(mut self) -> Vec<Unswitched> {
        for group in self.partition.into_iter().chain(self.others) {
            let path = group.name().to_owned();
            let why = group.remove().err();
            self.unswitched.extend(why.map(|why| Unswitched {
                switch: "cpuset".to_owned(),
                path,
                refused: false,
                why: why.to_string(),
            }));
        }
        while let Some((switch, setting)) = self.changed.pop() {
            let path = setting.path().display().to_string();
            let overwritten = setting.overwritten().map(|found| {
                let of = |found| {
                    format!(
                        "another program wrote {found:?} to {path} during the measurement \
                         (irqbalance, tuned and power managers do so): stop it, or exclude this setting"
                    )
                };
                found.map(of)
            });
            let restored = setting.restore().err();
            let why = restored
                .as_ref()
                .map(GuardError::to_string)
                .or_else(|| overwritten.unwrap_or_else(|gone| Some(gone.to_string())));
            self.unswitched.extend(why.map(|why| Unswitched {
                switch: switch.to_owned(),
                path,
                refused: false,
                why,
            }));
        }
        self.unswitched
    }
}

/// Lists the control groups of version 1 from one on that have some of these CPUs, and balance load
/// over them.
fn balanced(folder: PathBuf, cpus: &Cpus) -> Vec<PathBuf> {
    let read = |file| fs::read_to_string(folder.join(file)).unwrap_or_default();
    let own = Cpus::parse(read("cpuset.cpus").trim()).unwrap_or_default();
    if own.without(cpus) == own {
        return Vec::new();
    }
    let is_balanced = read("cpuset.sched_load_balance").trim() == "1";
    let below = fs::read_dir(&folder).into_iter().flatten().flatten();
    let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found = Vec::from_iter(below.flat_map(|entry| balanced(entry.path(), cpus)));
    found.extend(is_balanced.then_some(folder));
    found
}

/// Returns whether a thread was last on one of these CPUs, and could be on any other one.
fn is_movable(thread: u32, cpus: &Cpus, others: &Cpus) -> bool {
    const CPU: usize = 36;
    let stat = fs::read_to_string(format!("/proc/{thread}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut last = fields.split_whitespace().skip(CPU);
    let last = last.next().and_then(|cpu| cpu.parse().ok());
    let Ok(allowed) = sched_getaffinity(Pid::from_raw(thread.cast_signed())) else {
        return false;
    };
    last.is_some_and(|last| cpus.contains(last))
        && others.iter().all(|cpu| allowed.is_set(cpu as usize))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tare_guard::Options;
    use tare_results::work::Work;

    use super::*;

    #[test]
    fn switches_are_put_back_and_what_did_not_hold_is_reported() {
        const GROUP: &str = "/sys/fs/cgroup/tare/cpuset.cpus.partition";
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("irq");
        fs::create_dir(&root).unwrap();
        let file = |name: &str| root.join(name);
        let names = ["kept", "back", "other", "gone", "full", "read-only"];
        for name in names {
            fs::write(file(name), "0-1\n").unwrap();
        }
        fs::remove_file(file("full")).unwrap();
        symlink("/dev/full", file("full")).unwrap();
        let options = Options {
            // One that the kernel refuses to everybody.
            setting_roots: vec![root.clone(), "/proc/sys/kernel".into()],
            ..Options::default()
        };
        let guard = Guard::open_with(&scratch.path().join("state"), options).unwrap();
        let path = |name: &str| match name {
            "read-only" => "/proc/sys/kernel/ostype".to_owned(),
            name => file(name).display().to_string(),
        };
        let planned = SwitchPlan {
            name: "irq-affinity".to_owned(),
            settings: names
                .map(|name| SettingPlan {
                    path: path(name),
                    value: "0".to_owned(),
                })
                .to_vec(),
        };
        let isolated = SwitchPlan {
            name: "cpuset".to_owned(),
            settings: vec![SettingPlan {
                path: GROUP.to_owned(),
                value: "isolated".to_owned(),
            }],
        };
        let target = tare_targets::spec::parse("docker").unwrap().spec();
        let plan = CellPlan {
            switches: vec![planned, isolated],
            ..CellPlan::new("noise", target, "gap", Work::new("gap", ""))
        };
        let switches = Switches::change(&plan, &guard);
        assert_eq!(fs::read_to_string(file("kept")).unwrap(), "0\n");
        fs::write(file("back"), "0-1\n").unwrap();
        fs::write(file("other"), "7\n").unwrap();
        fs::remove_file(file("gone")).unwrap();
        let found = switches.restore();
        let found: Vec<(String, bool, &str)> = found
            .iter()
            .map(|one| (one.path.clone(), one.refused, one.why.as_str()))
            .collect();
        let why = |name: &str| {
            let mut own = found
                .iter()
                .filter(|(of, ..)| *of == path(name) || of == name);
            own.next().map(|(_, refused, why)| (*refused, *why))
        };
        assert_eq!(why("kept"), None);
        assert_eq!(found.len(), 6, "{found:#?}");
        for (name, refused, words) in [
            ("full", true, "not a setting of the kernel"),
            ("read-only", true, "cannot"),
            ("back", false, "another program wrote \"0-1\""),
            ("other", false, "another program wrote \"7\""),
            ("gone", false, "does not have it"),
            (GROUP, true, "need other CPUs"),
        ] {
            let (is_refused, told) = why(name).unwrap();
            assert!(
                is_refused == refused && told.contains(words),
                "{name}: {told}"
            );
        }
        let read = |name: &str| fs::read_to_string(file(name)).unwrap();
        assert_eq!(
            [read("kept"), read("back"), read("other")],
            ["0-1\n", "0-1\n", "7\n"]
        );
        assert!(guard.close().is_complete());
    }
}
