//! Threads that are moved to another CPU while they measure, as by `taskset`, a cpuset or hotplug.

use std::fs;
use std::thread;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::agent::{Agent, refused};

/// A way to move a thread.
#[derive(Clone, Copy)]
enum Way {
    There,
    ThereAndBack,
}

/// Returns two usable CPUs; the measured one first.
fn two_cpus() -> Option<[usize; 2]> {
    let set = sched_getaffinity(None).unwrap();
    let mut cpus = (0..CpuSet::MAX_CPU).rev().filter(|cpu| set.is_set(*cpu));
    let two = cpus.next().zip(cpus.next());
    if two.is_none() {
        tare_testkit::skip("moving a thread", "there is but one CPU");
    }
    two.map(|(here, there)| [here, there])
}

fn pin(tid: Pid, cpu: usize) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(Some(tid), &set)
}

/// Starts an agent on a CPU, moves the measuring thread, and returns the agent's report.
fn said_when_moved(words: &str, measures_from: &str, name: &str, way: Way) -> Option<String> {
    let [here, there] = two_cpus()?;
    let counts = fs::read_to_string("/proc/thread-self/sched");
    if matches!(way, Way::ThereAndBack) && counts.is_err() {
        tare_testkit::skip("a thread that is moved and back", "the kernel counts none");
        return None;
    }
    let mut agent = Agent::start(&format!("{words} cpu={here}"));
    agent.read_until(measures_from);
    let tasks = fs::read_dir(format!("/proc/{}/task", agent.pid().as_raw_pid())).unwrap();
    let mut tasks = tasks.map(|task| task.unwrap().path());
    let task = tasks.find(|task| fs::read_to_string(task.join("comm")).unwrap().trim() == name);
    let tid = task.unwrap().file_name().unwrap().to_str().unwrap().parse();
    let tid = Pid::from_raw(tid.unwrap()).unwrap();
    thread::sleep(Duration::from_millis(150));
    pin(tid, there).unwrap();
    if let Way::ThereAndBack = way {
        thread::sleep(Duration::from_millis(100));
        // A thread that checks its CPU at each wake-up may have ended.
        let _ = pin(tid, here);
    }
    let said = refused(agent);
    assert!(
        said.contains(&format!("moved from CPU {here} to ")),
        "{said}"
    );
    assert!(said.contains("taskset"), "{said}");
    Some(said.to_owned())
}

#[test]
fn a_batch_that_was_moved_yields_no_figures() {
    for way in [Way::There, Way::ThereAndBack] {
        let words = "workload=gap repetitions=80000000";
        said_when_moved(words, "calibration", "tare-agent", way);
    }
}

#[test]
fn wakeups_that_were_moved_yield_no_figures_and_end_at_once() {
    for (way, duration) in [(Way::There, "600s"), (Way::ThereAndBack, "2s")] {
        let words = format!("workload=wakeup policy=other interval=1ms duration={duration}");
        said_when_moved(&words, "begins", "tare-measure/0", way);
    }
}

#[test]
fn the_switches_of_a_batch_are_counted() {
    let told = super::agent::measured("workload=gap repetitions=20000000");
    for name in ["involuntary context switches", "voluntary context switches"] {
        assert!(told.counter(name).is_some(), "{name}");
    }
    let [had, of] = ["CPU time", "time"].map(|name| told.counter(name).unwrap());
    // The two clocks are not read at the same moment, between which the thread may have to wait.
    assert!(0 < had && had <= of + of / 10, "{had} of {of}");
}
