//! Control groups keep, limit and find processes, and nothing of them is left.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{self, Ended, Stage, is_alive};
use tare_guard::{Guard, GuardError, OwnedCgroup, PrivateMount, Undone, private_mounts};

/// Makes a group, or says what is skipped.
fn group(guard: &Guard, controllers: &[&str]) -> Option<OwnedCgroup> {
    match guard.cgroup("test", controllers) {
        Ok(group) => Some(group),
        Err(error) => {
            tare_testkit::skip("cgroup", &error.to_string());
            None
        }
    }
}

/// Counts the folders of this name anywhere in the hierarchies.
fn folders_named(name: &str) -> usize {
    fn count(folder: &Path, name: &str, depth: u32) -> usize {
        let Ok(entries) = fs::read_dir(folder) else {
            return 0;
        };
        let folders = entries
            .flatten()
            .filter(|e| e.file_type().unwrap().is_dir());
        folders
            .map(|entry| {
                let here = usize::from(entry.file_name().to_str() == Some(name));
                let below = if depth > 0 {
                    count(&entry.path(), name, depth - 1)
                } else {
                    0
                };
                here + below
            })
            .sum()
    }
    count(Path::new("/sys/fs/cgroup"), name, 4)
}

#[test]
fn what_starts_in_a_group_is_found_and_killed_wherever_it_went() {
    let stage = Stage::new();
    let guard = stage.guard();
    let Some(group) = group(&guard, &[]) else {
        return;
    };
    let name = group.name().to_owned();
    // Neither process group nor environment leads to the second process.
    let mut command = Command::new("sh");
    command
        .args(["-c", "env -i setsid sleep 1000 & echo $!; wait"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    group.enter(&mut command).unwrap();
    let mut child = guard.spawn(&mut command).unwrap();
    let sleeper = support::read_pid(child.take_stdout().unwrap());
    assert_eq!(group.procs().len(), 2);
    group.kill().unwrap();
    assert!(!is_alive(sleeper));
    assert_eq!(group.procs(), [0_u32; 0]);
    drop(child);
    group.remove().unwrap();
    assert_eq!(folders_named(&name), 0);
    assert!(guard.close().is_complete());
    stage.assert_clean();
}

#[test]
fn a_process_can_be_moved_in_and_limited() {
    let stage = Stage::new();
    let guard = stage.guard();
    let Some(group) = group(&guard, &["pids"]) else {
        return;
    };
    let sleeper = Ended(stage.command("sleep", &["1000"]).spawn().unwrap());
    group.add(sleeper.0.id()).unwrap();
    assert_eq!(group.procs(), [sleeper.0.id()]);
    group.set("pids.max", "7").unwrap();
    let (folder, _) = group.folder("pids").unwrap();
    let limit = fs::read_to_string(folder.join("pids.max")).unwrap();
    assert_eq!(limit.trim(), "7");
    assert!(matches!(
        group.set("memory.max", "1G"),
        Err(GuardError::NoController { .. })
    ));
    assert!(matches!(
        group.set("pids.nonsense", "1"),
        Err(GuardError::Io { .. })
    ));
    assert!(matches!(
        guard.cgroup("test", &["nonsense"]),
        Err(GuardError::NoController { .. })
    ));
    drop(group);
    assert!(!is_alive(sleeper.0.id()));
}

#[test]
fn groups_that_others_made_under_a_reserved_name_are_removed_with_those_below() {
    let stage = Stage::new();
    let guard = stage.guard();
    let Some(example) = group(&guard, &[]) else {
        return;
    };
    let reserved = guard.reserve_cgroup("test").unwrap();
    let name = reserved.name().to_owned();
    assert_eq!(folders_named(&name), 0, "only announced");
    for hierarchy in ["pids", "unified", "."] {
        let top = Path::new("/sys/fs/cgroup").join(hierarchy);
        if top.join("cgroup.procs").exists() {
            fs::create_dir_all(top.join(&name).join("a/b")).unwrap();
        }
    }
    assert!(folders_named(&name) > 0);
    drop(example);
    let report = guard.close();
    assert!(report.is_complete());
    assert_eq!(folders_named(&name), 0);
}

#[test]
fn a_sweep_ends_what_a_dead_run_left_in_its_group() {
    let stage = Stage::new();
    {
        let guard = stage.guard();
        if group(&guard, &[]).is_none() {
            return;
        }
    }
    let mut owner = Ended(stage.play("cgroups::part_cgroup_owner").spawn().unwrap());
    let told = owner.read_past("owns: ");
    let [name, others, sleeper, other] = Vec::from_iter(told.split(' '))[..] else {
        panic!("{told}");
    };
    owner.kill();
    assert!(is_alive(sleeper.parse().unwrap()));
    let report = stage.sweep();
    assert!(report.undo.is_complete(), "{:?}", report.sentences());
    let removed = Undone::CgroupRemoved {
        name: name.to_owned(),
    };
    assert!(report.undo.undone.contains(&removed));
    assert!(!is_alive(sleeper.parse().unwrap()));
    assert_eq!([name, others].map(folders_named), [0, 0]);
    stage.assert_clean();
    // Of others, a thread is moved back.
    let other: u32 = other.parse().unwrap();
    assert!(is_alive(other));
    let groups = fs::read_to_string(format!("/proc/{other}/cgroup")).unwrap();
    assert!(!groups.contains("tare-"), "{groups}");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(other.cast_signed()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}

#[test]
fn part_cgroup_owner() {
    let Some(stage) = Stage::given() else { return };
    let guard = stage.guard();
    let group = guard.cgroup("test", &["pids"]).unwrap();
    // Moved in by its id and not marked: only the group tells whose it is.
    let start = || {
        let mut command = Command::new("setsid");
        command.args(["sleep", "1000"]).stdin(Stdio::null());
        Ended(command.env_clear().spawn().unwrap())
    };
    let (sleeper, other) = (start(), start());
    group.add(sleeper.0.id()).unwrap();
    // Of version 2 where there is one.
    let others = guard.cgroup_of_others("test", &[]).unwrap();
    others.add_thread(other.0.id()).unwrap();
    println!(
        "owns: {} {} {} {}",
        group.name(),
        others.name(),
        sleeper.0.id(),
        other.0.id()
    );
    thread::sleep(Duration::from_secs(120));
}

#[test]
fn a_journal_cannot_make_a_sweep_remove_other_folders() {
    let stage = Stage::new();
    let guard = stage.guard();
    let owner = guard.owner().to_string();
    drop(guard);
    let name = format!("tare-test-{owner}-1");
    let outside = stage.root().join(&name);
    fs::create_dir(&outside).unwrap();
    // The journal of a run that died, as an attacker might write it.
    let guard = stage.guard();
    let mine = stage
        .state()
        .join("journal")
        .join(format!("{}.jsonl", guard.owner()));
    let text = fs::read_to_string(mine)
        .unwrap()
        .replace(guard.owner().as_str(), &owner);
    drop(guard);
    let parent = stage.root();
    let line = format!(
        "{{\"record\":\"intent\",\"number\":1,\"thing\":{{\"kind\":\"cgroup\",\"name\":{name:?},\
         \"parents\":[{parent:?}]}}}}\n"
    );
    let journal = stage.state().join("journal").join(format!("{owner}.jsonl"));
    fs::write(&journal, text + &line).unwrap();
    let report = stage.sweep();
    assert!(matches!(
        &report.undo.problems[..],
        [GuardError::CgroupRefused { .. }]
    ));
    assert!(outside.is_dir());
}

#[test]
fn private_mounts_are_seen_by_the_command_alone() {
    let stage = Stage::new();
    let guard = stage.guard();
    let place = stage.root().join("place");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("outside"), "").unwrap();
    let path = place.to_str().unwrap().to_owned();
    let mut command = stage.shell(&format!(
        "ls {path} | wc -l; touch {path}/inside; ls {path}"
    ));
    let without = PrivateMount::Without(stage.root().to_str().unwrap().to_owned());
    private_mounts(&mut command, &[PrivateMount::Empty(path), without]);
    let mut child = match guard.spawn(&mut command) {
        Ok(child) => child,
        Err(error) => return tare_testkit::skip("mount", &error.to_string()),
    };
    let mut output = child.take_stdout().unwrap();
    let mut seen = String::new();
    std::io::Read::read_to_string(&mut output, &mut seen).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(seen, "0\ninside\n");
    assert!(place.join("outside").exists() && !place.join("inside").exists());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(place.to_str().unwrap()));
}
