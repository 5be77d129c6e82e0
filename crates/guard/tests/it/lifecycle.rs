//! What a guard owns ends with it: on a return, on an error, in a panic.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::support::{Counts, Ended, Stage, Turn, is_alive, read_pid};
use tare_guard::{Guard, GuardError, OWNER_VARIABLE, Undone};
use tare_testkit::skip;

#[test]
fn a_child_is_killed_and_reaped_when_it_is_dropped() {
    let stage = Stage::new();
    let guard = stage.guard();
    let child = guard.spawn(&mut stage.command("sleep", &["120"])).unwrap();
    let pid = child.pid();
    assert!(is_alive(pid));
    drop(child);
    assert!(
        !Path::new(&format!("/proc/{pid}")).exists(),
        "not even a zombie is left"
    );
    let report = guard.close();
    assert_eq!(report.processes_killed(), 1);
    assert!(report.is_complete());
    stage.assert_clean();
}

#[test]
fn a_child_leads_its_own_group_and_carries_the_mark() {
    let stage = Stage::new();
    let guard = stage.guard();
    let mut child = guard
        .spawn(&mut stage.shell("echo $TARE_OWNER; ps -o pgid= $$"))
        .unwrap();
    let mut text = String::new();
    child
        .take_stdout()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let mut lines = text.lines();
    assert_eq!(OWNER_VARIABLE, "TARE_OWNER");
    assert_eq!(lines.next().unwrap(), format!("{}/1", guard.owner()));
    if let Some(group) = lines.next() {
        assert_eq!(group.trim(), child.pid().to_string());
    }
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_exit_status_is_given_again_and_again() {
    let stage = Stage::new();
    let guard = stage.guard();
    let mut child = guard.spawn(&mut stage.shell("exit 7")).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7));
    assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(7));
    assert_eq!(
        child.kill_group().unwrap().code(),
        Some(7),
        "too late to be killed"
    );
    drop(child);
    assert_eq!(guard.close().processes_killed(), 0);
    stage.assert_clean();
}

#[test]
fn waiting_ends_at_the_deadline_and_leaves_the_child_running() {
    let stage = Stage::new();
    let guard = stage.guard();
    let mut child = guard.spawn(&mut stage.command("sleep", &["120"])).unwrap();
    assert_eq!(child.try_wait().unwrap(), None);
    let soon = Instant::now() + Duration::from_millis(20);
    assert_eq!(child.wait_with_deadline(soon).unwrap(), None);
    assert!(Instant::now() >= soon && is_alive(child.pid()));
}

#[test]
fn a_child_that_will_not_stop_is_killed() {
    let stage = Stage::new();
    let guard = stage.guard();
    let mut obedient = guard.spawn(&mut stage.command("sleep", &["120"])).unwrap();
    let status = obedient.stop_group(Duration::from_secs(10)).unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(15)
    );
    let script = "trap '' TERM; echo $$; while :; do sleep 0.01; done";
    let mut stubborn = guard.spawn(&mut stage.shell(script)).unwrap();
    read_pid(stubborn.take_stdout().unwrap());
    let status = stubborn.stop_group(Duration::from_millis(50)).unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(9)
    );
}

#[test]
fn a_grandchild_that_left_the_group_is_killed_with_the_child() {
    let stage = Stage::new();
    let guard = stage.guard();
    let mut sleeper = guard.spawn(&mut stage.command("sleep", &["120"])).unwrap();
    let script = "setsid sh -c 'echo $$; exec sleep 120' & wait";
    let mut child = guard.spawn(&mut stage.shell(script)).unwrap();
    let grandchild = read_pid(child.take_stdout().unwrap());
    assert!(is_alive(grandchild));
    drop(child);
    assert!(!is_alive(grandchild));
    assert_eq!(
        sleeper.try_wait().unwrap(),
        None,
        "another child's processes are not touched"
    );
}

#[test]
fn a_group_member_without_the_mark_is_killed_when_its_leader_exits() {
    let stage = Stage::new();
    let guard = stage.guard();
    let script = "env -i sleep 120 & echo $!";
    let mut child = guard.spawn(&mut stage.shell(script)).unwrap();
    let member = read_pid(child.take_stdout().unwrap());
    assert!(child.wait().unwrap().success());
    let limit = Instant::now() + Duration::from_secs(60);
    while is_alive(member) {
        assert!(Instant::now() < limit);
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn very_many_descendants_are_all_killed() {
    const MANY: usize = 400;
    let stage = Stage::new();
    let guard = stage.guard();
    let script =
        format!("i=0; while [ $i -lt {MANY} ]; do setsid sleep 120 & i=$((i+1)); done; wait");
    let child = guard.spawn(&mut stage.shell(&script)).unwrap();
    let asleep = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n")
    };
    let limit = Instant::now() + Duration::from_secs(30);
    while stage.processes().iter().filter(|pid| asleep(pid)).count() < MANY {
        assert!(Instant::now() < limit);
        thread::sleep(Duration::from_millis(10));
    }
    drop(child);
    assert_eq!(stage.processes(), [0_u32; 0]);
    assert_eq!(guard.close().processes_killed(), MANY + 1);
}

#[test]
fn a_process_whose_first_thread_has_ended_is_found() {
    let stage = Stage::new();
    let guard = stage.guard();
    let part = stage.play("lifecycle::part_without_first_thread");
    let mut command = stage.shell(r#"setsid "$0" "$@" > /dev/null & echo $!; wait"#);
    command.arg(part.get_program()).args(part.get_args()).envs(
        part.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let mut child = guard.spawn(&mut command).unwrap();
    let grandchild = read_pid(child.take_stdout().unwrap());
    let threads = || fs::read_dir(format!("/proc/{grandchild}/task")).map_or(0, Iterator::count);
    let limit = Instant::now() + Duration::from_secs(60);
    while is_alive(grandchild) || threads() != 2 {
        assert!(Instant::now() < limit);
        thread::sleep(Duration::from_millis(1));
    }
    drop(child);
    assert!(threads() < 2, "the thread that went on has ended");
}

#[test]
fn a_program_that_does_not_exist_is_an_error_and_leaves_nothing() {
    let stage = Stage::new();
    let guard = stage.guard();
    let error = guard
        .spawn(&mut Command::new("/no/such/program"))
        .unwrap_err();
    assert!(matches!(&error, GuardError::Spawn { program, .. } if program == "/no/such/program"));
    assert!(guard.close().is_empty());
    stage.assert_clean();
}

#[test]
fn a_child_survives_the_thread_that_asked_for_it() {
    let stage = Stage::new();
    let guard = stage.guard();
    let mut child = thread::scope(|scope| {
        let spawn = || guard.spawn(&mut stage.command("sleep", &["120"])).unwrap();
        scope.spawn(spawn).join().unwrap()
    });
    let soon = Instant::now() + Duration::from_millis(50);
    assert_eq!(child.wait_with_deadline(soon).unwrap(), None);
}

#[test]
fn a_command_can_be_used_again() {
    let stage = Stage::new();
    let guard = stage.guard();
    let mut command = stage.command("true", &[]);
    for _ in 0..3 {
        assert!(guard.spawn(&mut command).unwrap().wait().unwrap().success());
    }
    assert_eq!(command.get_program(), "true");
}

#[test]
fn all_is_undone_in_a_panic() {
    let stage = Stage::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let guard = stage.guard();
        let _child = guard.spawn(&mut stage.command("sleep", &["120"])).unwrap();
        guard
            .spawn(&mut stage.command("sleep", &["120"]))
            .unwrap()
            .leave_to_guard();
        let scratch = guard.scratch("panic").unwrap();
        fs::write(scratch.path().join("file"), "x").unwrap();
        guard
            .set(&stage.setting("a"), "7")
            .unwrap()
            .leave_to_guard();
        let _setting = guard.set(&stage.setting("b"), "7").unwrap();
        assert_eq!(stage.processes().len(), 2);
        panic!("on purpose");
    }));
    assert!(outcome.is_err());
    stage.assert_clean();
}

#[test]
fn closing_undoes_first_what_runs_and_then_the_rest_in_reverse() {
    let stage = Stage::new();
    let guard = stage.guard();
    let child = guard.spawn(&mut stage.command("sleep", &["120"])).unwrap();
    let pid = i32::try_from(child.pid()).unwrap();
    let scratch = guard.scratch("order").unwrap();
    let (folder, a, b) = (
        scratch.path().to_owned(),
        stage.setting("a"),
        stage.setting("b"),
    );
    let first = guard.set(&a, "7").unwrap();
    let second = guard.set(&b, "8").unwrap();
    assert_eq!(
        (stage.value("a"), stage.value("b")),
        ("7".into(), "8".into())
    );
    let report = guard.close();
    let restored = |path: &Path| Undone::SettingRestored {
        path: path.canonicalize().unwrap(),
        value: "1".into(),
    };
    let expected = [
        Undone::ProcessKilled {
            pid,
            name: "sleep".into(),
        },
        restored(&b),
        restored(&a),
        Undone::ScratchRemoved { path: folder },
    ];
    assert_eq!(report.undone, expected);
    stage.assert_clean();
    // Their guard is gone, so they do nothing any more.
    fs::write(&a, "7\n").unwrap();
    drop((child, scratch, first, second));
    assert_eq!(stage.value("a"), "7");
}

#[test]
fn processes_that_are_not_ours_survive() {
    let stage = Stage::new();
    let guard = stage.guard();
    let other = |value: Option<String>| {
        let mut command = Command::new("sleep");
        command.arg("120").env_remove(OWNER_VARIABLE);
        command.envs(value.map(|value| (OWNER_VARIABLE, value)));
        Ended(command.spawn().unwrap())
    };
    let owner = guard.owner();
    let mut others = [
        other(None),
        other(Some(owner.to_string())),
        other(Some(format!("{owner}0/1"))),
        other(Some("3f2a91bc-4242-9f31c4d2e0aa17b3/1".into())),
    ];
    let child = guard.spawn(&mut stage.command("sleep", &["120"])).unwrap();
    drop(child);
    assert_eq!(guard.close().processes_killed(), 1);
    for other in &mut others {
        assert_eq!(other.0.try_wait().unwrap(), None);
    }
}

#[test]
fn a_scratch_folder_is_private_and_named_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    let guard = stage.guard();
    let (one, two) = (
        guard.scratch("load").unwrap(),
        guard.scratch("load").unwrap(),
    );
    assert_ne!(one.path(), two.path());
    let name = one.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(name, format!("tare-load-{}-1", guard.owner()));
    assert_eq!(
        fs::metadata(&one).unwrap().permissions().mode() & 0o777,
        0o700
    );
    one.remove().unwrap();
    assert_eq!(stage.scratch_folders(), [two.path()]);
    for prefix in ["", "a/b", "..\0", "\u{e9}", &"x".repeat(65)] {
        assert!(matches!(
            guard.scratch(prefix),
            Err(GuardError::ScratchPrefix { .. })
        ));
    }
    drop(two);
    assert!(guard.close().is_complete());
    stage.assert_clean();
}

#[test]
fn a_folder_put_in_the_place_of_ours_is_reported_and_left() {
    let stage = Stage::new();
    let guard = stage.guard();
    let path = guard.scratch("swap").unwrap().leave_to_guard();
    fs::rename(&path, stage.root().join("moved")).unwrap();
    std::os::unix::fs::symlink(stage.settings_root(), &path).unwrap();
    let report = guard.close();
    assert!(matches!(
        &report.problems[..],
        [GuardError::ScratchRefused { .. }]
    ));
    assert_eq!(
        stage.value("a"),
        "1",
        "what the link points to is still there"
    );
    assert_eq!(
        stage.journals().len(),
        1,
        "the next sweep will say so again"
    );
    fs::remove_file(&path).unwrap();
    assert_eq!(stage.sweep().cleaned, 1);
}

#[test]
fn a_setting_that_somebody_else_changed_is_left_alone() {
    let stage = Stage::new();
    let guard = stage.guard();
    let setting = guard.set(&stage.setting("a"), "7").unwrap();
    assert_eq!((setting.before(), setting.value()), ("1", "7"));
    assert_eq!(setting.overwritten().unwrap(), None);
    fs::write(stage.setting("a"), "9\n").unwrap();
    assert_eq!(setting.overwritten().unwrap().as_deref(), Some("9"));
    setting.restore().unwrap();
    assert_eq!(stage.value("a"), "9");
    let report = guard.close();
    assert_eq!(
        (report.settings_left_alone(), report.settings_restored()),
        (1, 0)
    );
    assert!(report.sentences()[0].contains("by somebody else since; left alone"));
    assert!(report.is_complete() && stage.journals().is_empty());
}

#[test]
fn values_of_other_lengths_and_choices_in_brackets_come_back() {
    let stage = Stage::new();
    let guard = stage.guard();
    fs::write(stage.setting("a"), "always [madvise] never\n").unwrap();
    fs::write(stage.setting("b"), "123456789\n").unwrap();
    let bracketed = guard.set(&stage.setting("a"), "never").unwrap();
    let long = guard.set(&stage.setting("b"), "1").unwrap();
    assert_eq!(
        (bracketed.before(), long.before()),
        ("madvise", "123456789")
    );
    assert_eq!(
        (stage.value("a"), stage.value("b")),
        ("never".into(), "1".into())
    );
    drop((bracketed, long));
    assert_eq!(
        (stage.value("a"), stage.value("b")),
        ("madvise".into(), "123456789".into())
    );
}

#[test]
fn only_one_guard_at_a_time_holds_a_setting() {
    let stage = Stage::new();
    let (one, two) = (stage.guard(), stage.guard());
    let held = one.set(&stage.setting("a"), "7").unwrap();
    for guard in [&one, &two] {
        match guard.set(&stage.setting("a"), "8") {
            Err(GuardError::SettingInUse { owner, .. }) => assert_eq!(&owner, one.owner()),
            other => panic!("{other:?}"),
        }
    }
    let _other_file = two.set(&stage.setting("b"), "8").unwrap();
    drop(held);
    let taken = two.set(&stage.setting("a"), "8").unwrap();
    assert_eq!(taken.before(), "1");
}

#[test]
fn guards_with_other_state_folders_are_kept_apart_too() {
    let stage = Stage::new();
    let elsewhere = stage.root().join("another-state");
    let (one, two) = (
        stage.guard(),
        Guard::open_with(&elsewhere, stage.options()).unwrap(),
    );
    let held = one.set(&stage.setting("a"), "7").unwrap();
    let refused = two.set(&stage.setting("a"), "8");
    assert!(
        matches!(refused, Err(GuardError::SettingLocked { .. })),
        "{refused:?}"
    );
    assert_eq!(stage.value("a"), "7");
    one.close();
    // The handle is still there, but the setting is nobody's now.
    let taken = two.set(&stage.setting("a"), "8").unwrap();
    assert_eq!(taken.before(), "1");
    drop(held);
    assert_eq!(stage.value("a"), "8");
}

#[test]
fn what_is_not_a_setting_is_refused() {
    let stage = Stage::new();
    let guard = stage.guard();
    let outside = stage.root().join("outside");
    fs::write(&outside, "1\n").unwrap();
    std::os::unix::fs::symlink(&outside, stage.setting("link")).unwrap();
    fs::write(stage.setting("lines"), "1\n2\n").unwrap();
    // It can be read without an end.
    std::os::unix::fs::symlink("/dev/full", stage.setting("full")).unwrap();
    for path in [
        outside.clone(),
        stage.setting("link"),
        stage.setting("full"),
        stage.settings_root(),
        stage.settings_root().join("../outside"),
        stage.setting("lines"),
        "/etc/passwd".into(),
    ] {
        let outcome = guard.set(&path, "7");
        assert!(
            matches!(outcome, Err(GuardError::SettingRefused { .. })),
            "{outcome:?}"
        );
    }
    for value in ["", " 7", "7\n", "7\n8", "7\0"] {
        let outcome = guard.set(&stage.setting("a"), value);
        assert!(
            matches!(outcome, Err(GuardError::SettingRefused { .. })),
            "{outcome:?}"
        );
    }
    let missing = guard.set(&stage.setting("missing"), "7");
    assert!(matches!(missing, Err(GuardError::Io { .. })));
    assert_eq!(fs::read_to_string(&outside).unwrap(), "1\n");
    assert!(guard.close().is_empty());
}

#[test]
fn the_kernels_own_settings_are_changed_and_put_back() {
    let Some(turn) = Turn::wait_for() else { return };
    let (path, original) = (&turn.path, turn.original.trim());
    let stage = Stage::new();
    let guard = stage.guard();
    let refused = guard.set(path, "nonsense");
    assert!(matches!(refused, Err(GuardError::Io { .. })), "{refused:?}");
    turn.assert_restored();
    let wanted = if original == "7" { "8" } else { "7" };
    // Written with a zero in front, which the kernel does not keep.
    let setting = guard.set(path, &format!("0{wanted}")).unwrap();
    assert_eq!(setting.value(), wanted);
    assert_eq!(fs::read_to_string(path).unwrap().trim(), wanted);
    drop(setting);
    turn.assert_restored();

    let choices = Path::new("/sys/kernel/mm/transparent_hugepage/defrag");
    match fs::read_to_string(choices) {
        Ok(original) => {
            let before = original.split(['[', ']']).nth(1).unwrap();
            let wanted = if before == "never" {
                "madvise"
            } else {
                "never"
            };
            let setting = guard.set(choices, wanted).unwrap();
            let chosen = format!("[{wanted}]");
            assert!(fs::read_to_string(choices).unwrap().contains(&chosen));
            assert_eq!((setting.before(), setting.value()), (before, wanted));
            drop(setting);
            assert_eq!(fs::read_to_string(choices).unwrap(), original);
        }
        Err(error) => skip("transparent_hugepage/defrag", &error.to_string()),
    }
    assert!(guard.close().is_complete());
}

#[test]
fn a_state_folder_that_cannot_be_made_is_an_error_with_a_remedy() {
    let stage = Stage::new();
    let error = Guard::open(&stage.setting("a").join("state")).unwrap_err();
    assert!(error.to_string().contains("TARE_STATE_DIR"), "{error}");
}

/// Ends the first thread of this process, in which the tests' harness waits, and goes on.
#[test]
fn part_without_first_thread() {
    extern "C" fn end_this_thread(_: libc::c_int) {
        // SAFETY: the thread holds nothing that another one needs; only `part_without_first_thread`
        // is running, and it only sleeps.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
    if Stage::given().is_none() {
        return;
    }
    let handler: extern "C" fn(libc::c_int) = end_this_thread;
    let process = libc::pid_t::try_from(std::process::id()).unwrap();
    // SAFETY: the handler makes one system call, which is allowed in a handler.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    // SAFETY: sends a signal to the first thread of this process, whose id is that of the process.
    unsafe { libc::syscall(libc::SYS_tgkill, process, process, libc::SIGUSR1) };
    thread::sleep(Duration::from_secs(120));
}
