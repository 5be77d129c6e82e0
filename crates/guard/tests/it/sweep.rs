//! What a dead run has left is cleaned up; what is not a dead run's is left alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Counts, Ended, Stage, is_alive, read_pid};
use tare_guard::{Guard, GuardError, OWNER_VARIABLE, Undone};

/// Owns one thing of each kind, and a grandchild that has left the group.
fn own_things(stage: &Stage, guard: &Guard) {
    let script = "setsid sleep 120 & echo $!; wait";
    let mut child = guard.spawn(&mut stage.shell(script)).unwrap();
    let sleeper = read_pid(child.take_stdout().unwrap());
    // While it executes another program its environment can't be read.
    let name = format!("/proc/{sleeper}/comm");
    while fs::read_to_string(&name).unwrap().trim() != "sleep" {
        thread::sleep(Duration::from_millis(1));
    }
    child.leave_to_guard();
    let scratch = guard.scratch("owner").unwrap().leave_to_guard();
    fs::create_dir_all(scratch.join("deep/er")).unwrap();
    fs::write(scratch.join("deep/er/file"), "x").unwrap();
    std::os::unix::fs::symlink(stage.settings_root(), scratch.join("deep/link")).unwrap();
    guard
        .set(&stage.setting("a"), "7")
        .unwrap()
        .leave_to_guard();
    guard
        .set(&stage.setting("b"), "8")
        .unwrap()
        .leave_to_guard();
}

#[test]
fn part_owner() {
    let Some(stage) = Stage::given() else { return };
    let guard = stage.guard();
    own_things(&stage, &guard);
    println!("owns: {}", guard.owner());
    thread::sleep(Duration::from_secs(120));
}

/// Starts an owner and lets it die with everything in force; gives its id.
fn dead_owner(stage: &Stage) -> String {
    let mut owner = Ended(stage.play("sweep::part_owner").spawn().unwrap());
    let id = owner.read_past("owns: ");
    owner.kill();
    assert_eq!(
        (stage.value("a"), stage.value("b")),
        ("7".into(), "8".into())
    );
    id
}

fn journal_of(stage: &Stage, owner: &str) -> PathBuf {
    stage.state().join("journal").join(format!("{owner}.jsonl"))
}

fn append(path: &Path, text: &str) {
    let mut content = fs::read_to_string(path).unwrap();
    content += text;
    fs::write(path, content).unwrap();
}

#[test]
fn all_that_a_dead_run_left_is_undone() {
    let stage = Stage::new();
    dead_owner(&stage);
    let report = stage.sweep();
    stage.assert_clean();
    assert_eq!((report.cleaned, report.live, report.kept), (1, 0, 0));
    assert!(report.undo.is_complete());
    assert!(report.undo.processes_killed() >= 1, "the grandchild");
    assert_eq!(
        (
            report.undo.scratch_removed(),
            report.undo.settings_restored()
        ),
        (1, 2)
    );
    assert_eq!(
        report.sentences()[0],
        "cleaned up after 1 run that ended early"
    );
    assert!(stage.sweep().is_quiet());
}

#[test]
fn a_run_that_lives_is_not_touched() {
    let stage = Stage::new();
    let guard = stage.guard();
    own_things(&stage, &guard);
    let processes = stage.processes().len();
    let report = stage.sweep();
    assert_eq!((report.live, report.cleaned, report.kept), (1, 0, 0));
    assert!(report.is_quiet());
    assert_eq!(stage.processes().len(), processes);
    assert_eq!(
        (stage.scratch_folders().len(), stage.value("a")),
        (1, "7".into())
    );
    assert!(guard.close().is_complete());
    stage.assert_clean();
}

#[test]
fn what_carries_another_id_or_none_survives() {
    let stage = Stage::new();
    let owner = dead_owner(&stage);
    let start = |value: Option<String>| {
        let mut command = std::process::Command::new("sleep");
        command
            .arg("120")
            .envs(value.map(|value| (OWNER_VARIABLE, value)));
        Ended(command.spawn().unwrap())
    };
    let others = [
        start(None),
        start(Some(format!("{owner}9/1"))),
        start(Some("/1".into())),
    ];
    let forgotten = start(Some(format!("{owner}/99")));
    let folder = stage.scratch_root().join(format!("tare-owner-{owner}-99"));
    fs::create_dir(&folder).unwrap();
    assert_eq!(stage.sweep().cleaned, 1);
    assert!(!is_alive(forgotten.0.id()), "its mark is enough");
    assert!(others.iter().all(|other| is_alive(other.0.id())));
    assert_eq!(stage.scratch_folders(), [folder], "no journal names it");
}

#[test]
fn a_setting_that_was_changed_since_is_left_alone() {
    let stage = Stage::new();
    dead_owner(&stage);
    fs::write(stage.setting("a"), "9\n").unwrap();
    let report = stage.sweep();
    assert_eq!(
        (stage.value("a"), stage.value("b")),
        ("9".into(), "1".into())
    );
    assert_eq!((report.undo.settings_left_alone(), report.cleaned), (1, 1));
}

#[test]
fn a_setting_that_has_gone_does_no_harm() {
    let stage = Stage::new();
    dead_owner(&stage);
    fs::remove_file(stage.setting("a")).unwrap();
    let report = stage.sweep();
    assert_eq!(report.cleaned, 1);
    assert!(
        report
            .undo
            .undone
            .iter()
            .any(|thing| matches!(thing, Undone::SettingGone { .. }))
    );
}

#[test]
fn whoever_wants_a_setting_of_a_dead_run_gets_it_cleaned_up_first() {
    let stage = Stage::new();
    dead_owner(&stage);
    let guard = stage.guard();
    let setting = guard.set(&stage.setting("a"), "5").unwrap();
    assert_eq!(
        setting.before(),
        "1",
        "and not the value that the dead run had set"
    );
    drop(setting);
    assert_eq!(
        guard.close().settings_restored(),
        3,
        "two of the dead run and ours"
    );
    stage.assert_clean();
}

#[test]
fn a_value_that_a_run_with_another_state_folder_will_put_back_is_undone_after_it() {
    let stage = Stage::new();
    dead_owner(&stage);
    let elsewhere = stage.root().join("another-state");
    let other = Guard::open_with(&elsewhere, stage.options()).unwrap();
    let setting = other.set(&stage.setting("a"), "9").unwrap();
    assert_eq!(
        setting.before(),
        "7",
        "the dead run's, which it cannot know"
    );
    let report = stage.sweep();
    assert!(matches!(
        &report.undo.problems[..],
        [GuardError::SettingLocked { .. }]
    ));
    assert_eq!((report.kept, stage.value("a")), (1, "9".into()));
    drop(setting);
    assert_eq!(stage.value("a"), "7");
    assert_eq!(stage.sweep().cleaned, 1);
    stage.assert_clean();
}

#[test]
fn a_line_that_was_being_written_is_ignored() {
    let stage = Stage::new();
    let owner = dead_owner(&stage);
    append(&journal_of(&stage, &owner), r#"{"record":"undone","num"#);
    assert_eq!(stage.sweep().cleaned, 1);
    stage.assert_clean();
}

#[test]
fn a_setting_whose_read_back_value_was_not_noted_is_still_put_back() {
    let stage = Stage::new();
    let owner = dead_owner(&stage);
    let journal = journal_of(&stage, &owner);
    let text = fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains(r#""update""#))
        .collect();
    assert_eq!(lines.len() + 2, text.lines().count());
    fs::write(&journal, lines.join("\n") + "\n").unwrap();
    // As the kernel might write it.
    fs::write(stage.setting("a"), "00000007\n").unwrap();
    let report = stage.sweep();
    assert_eq!((report.cleaned, report.undo.settings_restored()), (1, 2));
    stage.assert_clean();
}

#[test]
fn a_damaged_journal_is_kept_for_a_person_and_its_settings_are_not_guessed_at() {
    let stage = Stage::new();
    let owner = dead_owner(&stage);
    append(&journal_of(&stage, &owner), "\0garbage\n");
    let report = stage.sweep();
    assert_eq!((report.cleaned, report.kept), (0, 1));
    match &report.undo.problems[..] {
        [problem @ GuardError::JournalDamaged { path, .. }] => {
            assert!(path.ends_with(format!("{owner}.jsonl.damaged")) && path.exists());
            assert!(
                problem.to_string().contains(r#"settings/a (before: "1")"#),
                "{problem}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(stage.processes().is_empty() && stage.scratch_folders().is_empty());
    assert_eq!(stage.value("a"), "7");
    assert!(stage.sweep().is_quiet(), "said once");
}

#[test]
fn a_journal_without_a_beginning_still_has_its_processes_ended() {
    let stage = Stage::new();
    let owner = dead_owner(&stage);
    fs::write(journal_of(&stage, &owner), "").unwrap();
    let report = stage.sweep();
    assert!(matches!(
        &report.undo.problems[..],
        [GuardError::JournalDamaged { line: 1, .. }]
    ));
    assert!(stage.processes().is_empty());
    assert_eq!(stage.scratch_folders().len(), 1);
}

#[test]
fn after_a_restart_only_files_are_undone() {
    let stage = Stage::new();
    let owner = dead_owner(&stage);
    let journal = journal_of(&stage, &owner);
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = fs::read_to_string(&journal)
        .unwrap()
        .replace(boot.trim(), "an-earlier-boot");
    fs::write(&journal, text).unwrap();
    let processes = stage.processes();
    let report = stage.sweep();
    assert_eq!((report.cleaned, report.undo.scratch_removed()), (1, 1));
    assert_eq!(
        (
            report.undo.settings_restored(),
            report.undo.processes_killed()
        ),
        (0, 0)
    );
    assert_eq!(
        (stage.value("a"), stage.value("b")),
        ("7".into(), "8".into())
    );
    // The pretended restart has of course not ended them.
    end(&stage, &owner, &processes);
}

/// Ends processes that a test has deliberately left, by the mark that only they carry.
fn end(stage: &Stage, owner: &str, processes: &[u32]) {
    fs::write(journal_of(stage, owner), "").unwrap();
    stage.sweep();
    assert!(processes.iter().all(|pid| !is_alive(*pid)));
}

#[test]
fn journals_from_elsewhere_or_from_the_future_are_left_alone() {
    let stage = Stage::new();
    let owner = dead_owner(&stage);
    let journal = journal_of(&stage, &owner);
    let original = fs::read_to_string(&journal).unwrap();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
    let changes = [
        (namespace.to_str().unwrap(), "pid:[1]"),
        (r#""version":3"#, r#""version":4"#),
    ];
    for (here, there) in changes {
        let text = original.replace(here, there);
        assert_ne!(text, original);
        fs::write(&journal, &text).unwrap();
        let report = stage.sweep();
        assert_eq!((report.cleaned, report.kept), (0, 1));
        assert!(matches!(
            &report.undo.problems[..],
            [GuardError::JournalElsewhere { .. } | GuardError::JournalNewer { version: 4, .. }]
        ));
        assert_eq!(fs::read_to_string(&journal).unwrap(), text);
        assert!(!stage.processes().is_empty());
    }
    fs::write(&journal, original).unwrap();
    assert_eq!(stage.sweep().cleaned, 1);
    stage.assert_clean();
}

#[test]
fn a_journal_cannot_make_a_sweep_act_elsewhere() {
    let stage = Stage::new();
    let owner = dead_owner(&stage);
    let outside = stage.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("setting"), "7\n").unwrap();
    let setting = outside.join("setting");
    let lines = format!(
        "{{\"record\":\"intent\",\"number\":50,\"thing\":{{\"kind\":\"scratch\",\"path\":{outside:?}}}}}\n\
         {{\"record\":\"intent\",\"number\":51,\"thing\":{{\"kind\":\"setting\",\"path\":{setting:?},\
         \"before\":\"1\",\"wanted\":\"7\",\"after\":\"7\"}}}}\n",
    );
    append(&journal_of(&stage, &owner), &lines);
    let report = stage.sweep();
    assert!(matches!(
        &report.undo.problems[..],
        [
            GuardError::SettingRefused { .. },
            GuardError::ScratchRefused { .. }
        ]
    ));
    assert_eq!(fs::read_to_string(&setting).unwrap(), "7\n");
    assert_eq!(
        (
            report.undo.scratch_removed(),
            report.undo.settings_restored()
        ),
        (1, 2)
    );
    // Undone things are recorded, so that only the rest is tried again.
    fs::write(stage.setting("a"), "7\n").unwrap();
    assert_eq!(stage.sweep().undo.settings_restored(), 0);
    assert_eq!(stage.value("a"), "7");
}

#[test]
fn what_can_not_be_undone_is_told_once_and_undone_as_soon_as_it_can_be() {
    let stage = Stage::new();
    let owner = dead_owner(&stage);
    let file = stage.root().join("file");
    fs::write(&file, "").unwrap();
    let scratch = |number: u32, parent: &std::path::Path| {
        let path = parent.join(format!("tare-x-{owner}-{number}"));
        let thing = format!("{{\"kind\":\"scratch\",\"path\":{path:?}}}");
        let line = format!("{{\"record\":\"intent\",\"number\":{number},\"thing\":{thing}}}\n");
        append(&journal_of(&stage, &owner), &line);
        path
    };
    // A path below a file never led to a folder: there is nothing to undo.
    scratch(50, &file);
    let in_the_way = scratch(51, stage.root());
    fs::write(&in_the_way, "").unwrap();
    let report = stage.sweep();
    let told = report.sentences().join("\n");
    assert!(
        told.contains("it is not a folder; look at it, and remove it by hand"),
        "{told}"
    );
    assert_eq!((report.kept, report.undo.problems.len()), (1, 1), "{told}");
    for _ in 0..2 {
        let report = stage.sweep();
        assert!(report.is_quiet(), "{:?}", report.sentences());
        assert!(matches!(
            &report.told[..],
            [GuardError::ScratchRefused { path, .. }] if *path == in_the_way
        ));
    }
    fs::remove_file(&in_the_way).unwrap();
    let report = stage.sweep();
    assert_eq!((report.cleaned, report.told.len()), (1, 0));
    stage.assert_clean();
}

#[test]
fn sweeps_at_the_same_time_undo_everything_once() {
    const SWEEPS: usize = 4;
    let stage = Stage::new();
    let owners = 3;
    for _ in 0..owners {
        let mut owner = Ended(stage.play("sweep::part_scratch_owner").spawn().unwrap());
        owner.read_past("owns: ");
        owner.kill();
    }
    let start = Barrier::new(SWEEPS);
    let sweep = || {
        start.wait();
        stage.sweep()
    };
    let reports: Vec<_> = thread::scope(|scope| {
        let sweeps: Vec<_> = (0..SWEEPS).map(|_| scope.spawn(sweep)).collect();
        sweeps
            .into_iter()
            .map(|sweep| sweep.join().unwrap())
            .collect()
    });
    stage.assert_clean();
    assert_eq!(
        reports.iter().map(|report| report.cleaned).sum::<usize>(),
        owners
    );
    assert_eq!(
        reports
            .iter()
            .map(|report| report.undo.scratch_removed())
            .sum::<usize>(),
        owners
    );
    assert!(reports.iter().all(|report| report.undo.is_complete()));
}

#[test]
fn a_child_dies_with_its_owner_also_without_a_sweep() {
    let stage = Stage::new();
    let mut owner = Ended(stage.play("sweep::part_scratch_owner").spawn().unwrap());
    owner.read_past("owns: ");
    owner.kill();
    let limit = Instant::now() + Duration::from_secs(60);
    while !stage.processes().is_empty() {
        assert!(Instant::now() < limit);
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(stage.sweep().undo.processes_killed(), 0);
    stage.assert_clean();
}

#[test]
fn part_scratch_owner() {
    let Some(stage) = Stage::given() else { return };
    let guard = stage.guard();
    guard
        .spawn(&mut stage.command("sleep", &["120"]))
        .unwrap()
        .leave_to_guard();
    guard.scratch("owner").unwrap().leave_to_guard();
    println!("owns: {}", guard.owner());
    thread::sleep(Duration::from_secs(120));
}

#[test]
fn opening_a_guard_and_sweeping_do_not_disturb_each_other() {
    let stage = Stage::new();
    drop(stage.guard());
    thread::scope(|scope| {
        let guards = scope.spawn(|| {
            for _ in 0..60 {
                let guard = stage.guard();
                let scratch = guard.scratch("race").unwrap();
                assert!(scratch.path().is_dir());
                drop(scratch);
                assert!(guard.close().is_complete());
            }
        });
        while !guards.is_finished() {
            let report = stage.sweep();
            assert_eq!(
                (report.cleaned, report.kept),
                (0, 0),
                "{:?}",
                report.sentences()
            );
        }
    });
    stage.assert_clean();
}

#[test]
fn a_journal_that_was_never_born_is_removed_and_other_files_are_not() {
    let stage = Stage::new();
    drop(stage.guard());
    let journals = stage.state().join("journal");
    let unborn = journals.join("3f2a91bc-4242-9f31c4d2e0aa17b3.jsonl.new");
    let others = ["notes.txt", "x.jsonl", ".hidden.jsonl"].map(|name| journals.join(name));
    for path in others.iter().chain([&unborn]) {
        fs::write(path, "not a journal").unwrap();
    }
    assert!(stage.sweep().is_quiet());
    assert!(!unborn.exists());
    assert!(others.iter().all(|path| path.exists()));
}

#[test]
fn without_a_state_folder_there_is_nothing_to_do() {
    let stage = Stage::new();
    assert!(stage.sweep().is_quiet());
    assert!(!stage.state().exists(), "and none is made");
}
