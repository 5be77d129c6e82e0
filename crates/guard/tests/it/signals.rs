//! Real signals, sent to a real process that owns things.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::support::{Ended, Stage};
use rustix::process::{Pid, Signal, kill_process};
use tare_guard::Interrupt;

/// Owns things and waits to be asked to stop, as a run does.
#[test]
fn part_run() {
    let Some(stage) = Stage::given() else { return };
    let interrupt = Interrupt::install().unwrap();
    let guard = stage.guard();
    let mut child = guard
        .spawn(&mut stage.shell("setsid sleep 120 & wait"))
        .unwrap();
    let _scratch = guard.scratch("run").unwrap();
    let _setting = guard.set(&stage.setting("a"), "7").unwrap();
    println!("ready");
    loop {
        interrupt.wait(&[child.as_fd()], Duration::MAX).unwrap();
        assert!(
            child.try_wait().unwrap().is_none(),
            "the child does not get the signal"
        );
        if interrupt.stop_requested() {
            println!("stopping");
            break;
        }
        assert!(interrupt.finish_requested());
        println!("finishing");
    }
    // Long enough for more signals to come while things are still owned.
    thread::sleep(Duration::from_millis(50));
    assert!(guard.close().is_complete());
    println!("closed");
}

/// Has nothing left to undo, and no longer asks whether it should stop.
#[test]
fn part_analysis() {
    if Stage::given().is_none() {
        return;
    }
    let interrupt = Interrupt::install().unwrap();
    interrupt.nothing_is_left();
    println!("ready");
    while !interrupt.finish_requested() {
        interrupt.wait(&[], Duration::MAX).unwrap();
    }
    println!("goes on");
    thread::sleep(Duration::from_secs(120));
    println!("closed");
}

/// A running part. The tests may themselves run under `nohup`, so what becomes of a hang-up is
/// always arranged.
struct Run {
    process: Ended,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Run {
    fn start(mut command: Command, ignoring: bool) -> Run {
        use std::io::BufRead;
        use std::os::unix::process::CommandExt;
        let hang_up = if ignoring {
            libc::SIG_IGN
        } else {
            libc::SIG_DFL
        };
        let arrange = move || {
            // SAFETY: the call is allowed between fork and exec.
            unsafe { libc::signal(libc::SIGHUP, hang_up) };
            Ok(())
        };
        // SAFETY: the closure makes one system call and touches no memory.
        unsafe { command.pre_exec(arrange) };
        let mut process = Ended(command.spawn().unwrap());
        let lines = std::io::BufReader::new(process.0.stdout.take().unwrap()).lines();
        let mut run = Run { process, lines };
        run.expect("ready");
        run
    }

    fn expect(&mut self, word: &str) {
        let found = self.lines.by_ref().any(|line| line.unwrap().contains(word));
        assert!(found, "the run ended without saying {word}");
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process.0), signal).unwrap();
    }

    fn assert_ended_well(mut self, stage: &Stage) {
        self.expect("closed");
        assert!(self.process.0.wait().unwrap().success());
        stage.assert_clean();
    }
}

#[test]
fn the_first_interrupt_finishes_the_second_stops_and_more_leave_nothing_either() {
    let stage = Stage::new();
    let mut run = Run::start(stage.play("signals::part_run"), false);
    run.send(Signal::INT);
    run.expect("finishing");
    run.send(Signal::INT);
    run.expect("stopping");
    for _ in 0..20 {
        run.send(Signal::INT);
        thread::sleep(Duration::from_millis(1));
    }
    run.assert_ended_well(&stage);
}

#[test]
fn once_nothing_is_left_the_second_signal_ends_the_process() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let stage = Stage::new();
        let mut run = Run::start(stage.play("signals::part_analysis"), false);
        run.send(signal);
        run.expect("goes on");
        run.send(signal);
        let status = run.process.0.wait().unwrap();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
    }
}

#[test]
fn termination_and_hang_up_stop_at_once() {
    for signal in [Signal::TERM, Signal::HUP] {
        let stage = Stage::new();
        let mut run = Run::start(stage.play("signals::part_run"), false);
        run.send(signal);
        run.expect("stopping");
        run.assert_ended_well(&stage);
    }
}

#[test]
fn a_hang_up_that_is_ignored_stays_ignored() {
    let stage = Stage::new();
    let mut run = Run::start(stage.play("signals::part_run"), true);
    run.send(Signal::HUP);
    run.send(Signal::INT);
    run.expect("finishing");
    assert_eq!(
        fs::read_dir(stage.scratch_root()).unwrap().count(),
        1,
        "it goes on"
    );
    run.send(Signal::TERM);
    run.assert_ended_well(&stage);
}
