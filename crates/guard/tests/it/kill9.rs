//! A run may die at any moment. Whenever that is, one sweep leaves nothing of it behind.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::support::{Ended, Stage, Turn, real_sysctl};

const MOMENTS: u32 = 30;
const LATEST_MILLISECONDS: u64 = 120;

#[test]
fn nothing_is_left_after_kill_9_at_random_moments() {
    let stage = Stage::new();
    let turn = Turn::wait_for();
    let (mut journals, mut undone) = (0, 0);
    for round in 0..MOMENTS {
        let moment = Duration::from_micros(fastrand::u64(0..LATEST_MILLISECONDS * 1000));
        let mut owner = Ended(
            stage
                .play("kill9::part_busy_owner_of_a_sysctl")
                .spawn()
                .unwrap(),
        );
        thread::sleep(moment);
        owner.kill();
        let report = stage.sweep();
        let told = report.sentences();
        assert!(
            report.undo.is_complete(),
            "round {round}, after {moment:?}: {told:#?}"
        );
        assert_eq!(report.live, 0, "round {round}, after {moment:?}");
        if stage.state().exists() {
            println!("round {round}, after {moment:?}: {told:?}");
            stage.assert_clean();
        }
        if let Some(turn) = &turn {
            turn.assert_restored();
        }
        journals += report.cleaned;
        undone += report.undo.undone.len();
    }
    // Otherwise the moments have all missed what they were to hit.
    assert!(
        journals > 5 && undone > 10,
        "{journals} journals, {undone} things"
    );
}

#[test]
fn a_sweep_that_is_killed_itself_is_completed_by_the_next_one() {
    const ROUNDS: u32 = 10;
    let mut halfway = 0;
    for round in 0..ROUNDS {
        let stage = Stage::new();
        for _ in 0..3 {
            let mut owner = Ended(stage.play("kill9::part_busy_owner").spawn().unwrap());
            thread::sleep(Duration::from_millis(40));
            owner.kill();
        }
        let moment = Duration::from_micros(fastrand::u64(0..30_000));
        let mut sweeper = Ended(stage.play("kill9::part_sweeper").spawn().unwrap());
        thread::sleep(moment);
        sweeper.kill();
        let report = stage.sweep();
        let told = report.sentences();
        assert!(
            report.undo.is_complete() && report.live == 0,
            "round {round}: {told:#?}"
        );
        stage.assert_clean();
        halfway += u32::from((1..3).contains(&report.cleaned));
    }
    println!("{halfway} of {ROUNDS} sweeps were killed halfway");
}

#[test]
fn part_sweeper() {
    if let Some(stage) = Stage::given() {
        stage.sweep();
    }
}

#[test]
fn part_busy_owner() {
    if let Some(stage) = Stage::given() {
        own_and_give_up(&stage, None);
    }
}

/// The same with a real setting. Only one test may use this part, since the two stages of two tests
/// know nothing of each other, and settings of the kernel are there only once.
#[test]
fn part_busy_owner_of_a_sysctl() {
    if let Some(stage) = Stage::given() {
        own_and_give_up(&stage, real_sysctl().as_deref());
    }
}

/// Owns and gives up things without a pause, until it is killed.
fn own_and_give_up(stage: &Stage, sysctl: Option<&Path>) -> ! {
    loop {
        let guard = stage.guard();
        let scratch = guard.scratch("busy").unwrap();
        for name in ["one", "two/three"] {
            fs::create_dir_all(scratch.path().join(name)).unwrap();
            fs::write(scratch.path().join(name).join("file"), "x").unwrap();
        }
        let _a = guard.set(&stage.setting("a"), "7").unwrap();
        guard
            .set(&stage.setting("b"), "8")
            .unwrap()
            .leave_to_guard();
        let _real = sysctl.map(|path| guard.set(path, "33").unwrap());
        let script = "setsid sleep 120 & setsid sleep 120 & exec sleep 120";
        guard
            .spawn(&mut stage.command("sh", &["-c", script]))
            .unwrap()
            .leave_to_guard();
        for _ in 0..3 {
            let short = guard.spawn(&mut stage.command("true", &[])).unwrap();
            let _c = guard.set(&stage.setting("c"), "9").unwrap();
            drop(short);
        }
        drop(scratch);
    }
}
