//! Measurements of wake-ups by the real kernel, as a reader of the wire sees them.

mod woken;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity};
use rustix::time::{ClockId, clock_gettime};
use tare_wire::phases::SLOTS;
use tare_wire::record::Exceeded;

use self::woken::{Agent, Woken};

/// Needs no rights, and an interval that any machine can hold.
const EASY: &str = "workload=wakeup policy=other interval=1ms";

/// Is the interval of the tests that look at figures.
const INTERVAL_NS: u64 = 100_000;

#[test]
fn every_activation_is_woken_or_missed_and_all_lists_agree() {
    let words = format!("{EASY} duration=300ms threads=2 distance=1ms phases=3 bins=30 live=50ms");
    let woken = Woken::of(&words);
    assert_eq!(woken.threads.len(), 2);
    for (thread, activations) in woken.threads.iter().zip([300, 150]) {
        assert_eq!(thread.set.n + thread.missed, activations, "{thread:?}");
        assert_eq!((thread.policy.as_str(), thread.priority), ("other", 0));
        assert!(thread.tid > 0 && thread.cpu.is_none());
        assert!(thread.recording_ns < 1_000_000);
        assert_eq!(thread.set.parts, 3 * SLOTS);
    }
    woken.check_lists();
    let at = |kind| woken.kinds.iter().position(|seen| *seen == kind);
    let order = [
        "hello",
        "ready",
        "calibration",
        "begins",
        "live",
        "set",
        "fact",
        "end",
    ];
    let places = order.map(|kind| at(kind).unwrap_or_else(|| panic!("no {kind} record")));
    assert!(places.is_sorted(), "{:?}", woken.kinds);
    assert_eq!(woken.kinds.last(), Some(&"end"));
    assert!(woken.origin_ns.unwrap() > woken.ready_ns.unwrap() + 100_000_000);
    for name in ["scheduling", "timer slack", "tick", "kernel release"] {
        assert!(woken.facts.iter().any(|(fact, _)| fact == name), "{name}");
    }
    // An ordinary thread is woken as late as the kernel lets every ordinary thread be woken.
    if let Ok(slack) = std::fs::read_to_string("/proc/self/timerslack_ns") {
        let told = woken.facts.iter().find(|(fact, _)| fact == "timer slack");
        let begin = format!("{} ns", slack.trim());
        assert!(
            told.is_some_and(|(_, value)| value.starts_with(&begin)),
            "{told:?}"
        );
    }
}

#[test]
fn so_many_loops_are_so_many_wakeups() {
    let woken = Woken::of(&format!("{EASY} loops=20"));
    assert_eq!(woken.threads[0].set.n, 20);
    woken.check_lists();
}

#[test]
fn two_threads_measure_on_two_cpus() {
    let cpus = allowed();
    let [first, second, ..] = cpus[..] else {
        return tare_testkit::skip("two CPUs", "this machine gives us one");
    };
    let words = format!("{EASY} duration=50ms threads=2 cpu={first},{second}");
    let woken = Woken::of(&words);
    let pinned: Vec<Option<u32>> = woken.threads.iter().map(|thread| thread.cpu).collect();
    assert_eq!(pinned, [Some(first), Some(second)]);
    assert_ne!(woken.threads[0].tid, woken.threads[1].tid);
    woken.check_lists();
}

#[test]
fn real_time_policies_are_what_the_kernel_says() {
    for (words, policy, priority) in [
        ("policy=fifo priority=3", "fifo", 3),
        ("policy=rr priority=4", "rr", 4),
        ("policy=deadline", "deadline", 0),
    ] {
        let words = format!("workload=wakeup interval=2ms duration=100ms {words}");
        let woken = Woken::whatever(&words);
        if let Some(why) = woken.failure {
            tare_testkit::skip(policy, &why);
            continue;
        }
        let thread = &woken.threads[0];
        assert_eq!(
            (thread.policy.as_str(), thread.priority),
            (policy, priority)
        );
    }
}

#[test]
fn a_stall_shows_in_full_and_every_activation_in_it_is_missed() {
    const STALL_NS: u64 = 10_000_000;
    let cpu = *allowed().last().unwrap();
    let words = format!(
        "workload=wakeup interval={INTERVAL_NS}ns duration=600ms cpu={cpu} policy=fifo priority=50"
    );
    let mut agent = Agent::start(&words);
    let Some(origin_ns) = agent.read_until("begins").origin_ns else {
        return tare_testkit::skip("SCHED_FIFO", &agent.finish().1.failure.unwrap());
    };
    let hog = thread::spawn(move || {
        become_fifo(cpu, 60);
        sleep_until(origin_ns + 200_000_000);
        let until_ns = now_ns() + STALL_NS;
        while now_ns() < until_ns {}
    });
    let (status, woken) = agent.finish();
    hog.join().unwrap();
    assert_eq!(status, Some(0));
    woken.check_lists();
    let thread = &woken.threads[0];
    assert!(thread.set.max >= STALL_NS / 10 * 9, "{thread:?}");
    assert_eq!(thread.set.n + thread.missed, 6_000);
    // What was due while it was late is missed, no more and no less: the numbers jump by that.
    let mut missed = 0;
    for pair in woken.raw.windows(2) {
        let [woken, next] = *pair else { unreachable!() };
        let late = woken.value.div_ceil(INTERVAL_NS).max(1);
        assert_eq!(next.index, woken.index + late, "late by {} ns", woken.value);
        missed += late - 1;
    }
    assert!(missed >= STALL_NS / INTERVAL_NS / 10 * 9, "{missed}");
    assert!(thread.missed >= missed);
    let longest = woken.peaks.iter().map(|peak| peak.value).max();
    assert_eq!(longest, Some(thread.set.max));
}

#[test]
fn a_latency_above_the_limit_is_told_at_once_and_ends_the_measurement() {
    // Every latency is above 1 ns.
    let woken = Woken::of(&format!("{EASY} duration=1000s above=1ns threads=2"));
    assert!(!woken.exceeded.is_empty());
    let raw = |woken: &Woken| {
        let samples = woken.raw.iter();
        samples
            .map(|sample| Exceeded {
                set: sample.set,
                index: sample.index,
                value: sample.value,
            })
            .collect::<Vec<_>>()
    };
    assert!(raw(&woken).contains(&woken.exceeded[0]));
    assert!(woken.threads.iter().all(|thread| thread.set.n < 1_000));
    woken.check_lists();

    let woken = Woken::of(&format!("{EASY} loops=50 above=1ns go-on=yes"));
    assert_eq!(woken.exceeded.len(), 50);
    assert_eq!(woken.exceeded, raw(&woken));
}

#[test]
fn a_signal_ends_it_early_and_what_was_measured_is_reported() {
    for (signal, interval) in [(Signal::TERM, "1ms"), (Signal::INT, "50s")] {
        let words =
            format!("workload=wakeup policy=other interval={interval} duration=1000s live=10ms");
        let mut agent = Agent::start(&words);
        // Then it has been woken up at least once.
        agent.read_until("live");
        kill_process(agent.pid(), signal).unwrap();
        let (status, woken) = agent.finish();
        assert_eq!(status, Some(0), "{signal:?}");
        let thread = &woken.threads[0];
        assert!(thread.set.n > 0 && thread.set.n + thread.missed < 1_000_000);
        assert_eq!(woken.kinds.last(), Some(&"end"));
        woken.check_lists();
    }
}

#[test]
fn without_the_right_to_it_the_remedies_are_named() {
    let mut agent = Agent::command("workload=wakeup interval=1ms duration=1s priority=7");
    let drop_right = || {
        const CAP_SYS_NICE: libc::c_ulong = 23;
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: no memory but a live limit. A right that was not there can't be dropped either.
        unsafe {
            libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_NICE);
            libc::prctl(
                libc::PR_CAP_AMBIENT,
                libc::PR_CAP_AMBIENT_CLEAR_ALL,
                0,
                0,
                0,
            );
            libc::setrlimit(libc::RLIMIT_RTPRIO, &raw const none);
        }
        Ok(())
    };
    before_exec(&mut agent, drop_right);
    let failure = refused(Agent::spawn(agent));
    for words in [
        "SCHED_FIFO with priority 7",
        "CAP_SYS_NICE",
        "rtprio 7",
        "policy=other",
    ] {
        assert!(failure.contains(words), "{failure}");
    }
}

#[test]
fn a_control_group_without_real_time_time_is_named_and_the_remedy_works() {
    let group = match Group::make() {
        Ok(group) => group,
        Err(why) => return tare_testkit::skip("RT_GROUP_SCHED", &why),
    };
    let tasks = group.path.join("tasks");
    let start = || {
        let mut agent = Agent::command("workload=wakeup interval=1ms duration=50ms");
        let tasks = tasks.clone();
        before_exec(&mut agent, move || fs::write(&tasks, "0"));
        Agent::spawn(agent)
    };
    let failure = refused(start());
    let name = group.path.file_name().unwrap().to_str().unwrap();
    assert!(
        failure.contains(&format!("control group /{name}")),
        "{failure}"
    );
    let command = failure.split('`').nth(1).unwrap();
    assert!(command.contains("cpu.rt_runtime_us"), "{failure}");
    if !accepted(command) {
        let why = format!("others have taken the time of this machine: {command}");
        return tare_testkit::skip("RT_GROUP_SCHED", &why);
    }
    let (status, woken) = start().finish();
    assert_eq!(status, Some(0), "{:?}", woken.failure);
    assert_eq!(woken.threads[0].policy, "fifo");
}

#[test]
fn what_can_not_be_held_or_watched_is_refused_with_the_reason() {
    let failure = |words: &str| refused(Agent::start(words));
    let text = failure("workload=wakeup interval=1us duration=1s policy=other");
    assert!(text.contains("1.0 µs can't be held here"), "{text}");
    let text = failure("workload=wakeup interval=1ms duration=1s policy=other cpu=1000");
    assert!(text.contains("offline or outside"), "{text}");
    let text = failure("workload=wakeup interval=1ms duration=1s policy=other main=1000");
    assert!(text.contains("CPU 1000 is offline or outside"), "{text}");
    let text = failure("workload=wakeup interval=100ns duration=1s");
    assert!(text.contains("interval must be"), "{text}");
    let cpus = allowed();
    let [first, second, ..] = cpus[..] else {
        return tare_testkit::skip("two CPUs", "this machine gives us one");
    };
    let text = failure(&format!(
        "workload=wakeup interval=1ms duration=1s cpu={first} main={first}"
    ));
    assert!(text.contains("where real-time threads measure"), "{text}");
    assert!(text.contains(&format!("main={second}")), "{text}");
}

#[test]
fn words_that_are_no_plan_are_status_2() {
    let (status, woken) = Agent::start("workload=wakeup interval=1ms").finish();
    assert_eq!(status, Some(2));
    assert!(woken.kinds.is_empty());
}

/// Executes a command, until the kernel accepts it: the time of a group that was removed comes back a little later.
fn accepted(command: &str) -> bool {
    (0..100).any(|_| {
        let output = Command::new("sh").args(["-c", command]).output().unwrap();
        let done = output.status.success();
        if !done {
            thread::sleep(Duration::from_millis(50));
        }
        done
    })
}

/// Returns why a plan was refused, by status 1 and a failure record.
fn refused(agent: Agent) -> String {
    let (status, woken) = agent.finish();
    assert_eq!(status, Some(1), "{:?}", woken.kinds);
    assert!(woken.threads.is_empty());
    woken.failure.expect("a failure record")
}

/// Returns the CPUs that this process may run on.
fn allowed() -> Vec<u32> {
    let set = sched_getaffinity(None).unwrap();
    let all = 0..CpuSet::MAX_CPU;
    all.filter(|cpu| set.is_set(*cpu))
        .map(|cpu| cpu as u32)
        .collect()
}

fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

fn sleep_until(ns: u64) {
    thread::sleep(Duration::from_nanos(ns.saturating_sub(now_ns())));
}

/// Lets this thread run on one CPU only, before whatever has a lower priority there.
fn become_fifo(cpu: u32, priority: i32) {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &set).unwrap();
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: live parameters; 0 is this thread.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}

/// Has something done in the child before it becomes the agent.
fn before_exec(command: &mut Command, act: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    use std::os::unix::process::CommandExt;
    // SAFETY: what the tests do there are system calls, without locks; the parent's other threads hold none
    // that they need.
    unsafe { command.pre_exec(act) };
}

/// Is a control group of version 1 without real-time time. Dropping it removes it.
struct Group {
    path: PathBuf,
}

impl Group {
    fn make() -> Result<Self, String> {
        let top = Path::new("/sys/fs/cgroup/cpu");
        if !top.join("cpu.rt_runtime_us").exists() {
            return Err("no budgets in control groups of version 1 here".to_owned());
        }
        let path = top.join(format!("test-of-tare-agent-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| error.to_string())?;
        Ok(Self { path })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A process that has just ended may still be counted.
        while fs::remove_dir(&self.path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy)
        {
            thread::sleep(Duration::from_millis(5));
        }
    }
}
