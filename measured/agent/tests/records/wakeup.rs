//! Measurements of wake-ups by the real kernel, as read from the wire.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity};
use rustix::time::{ClockId, clock_gettime};
use tare_testkit::records::{Lists, RecordList};
use tare_wire::phases::SLOTS;
use tare_wire::record::{Exceeded, Record, Unit};

use super::agent::{Agent, measured, refused};

/// A plan that needs no privileges, with an interval that any machine can hold.
const EASY: &str = "workload=wakeup policy=other interval=1ms";

/// The interval of the tests on figures.
const INTERVAL_NS: u64 = 100_000;

/// Returns the time of the first sample, if reported.
fn origin_ns(told: &RecordList) -> Option<u64> {
    let begins = told.all(|record| match record {
        Record::Begins(it) => Some(it.origin_ns),
        _ => None,
    });
    begins.first().copied()
}

fn exceeded(told: &RecordList) -> Vec<Exceeded> {
    told.all(|record| match record {
        Record::Exceeded(it) => Some(*it),
        _ => None,
    })
}

/// Returns a fact about a thread.
fn fact<'a>(told: &'a RecordList, name: &str, thread: u32) -> Option<&'a str> {
    told.fact(name, &format!("thread={thread}"))
}

/// Returns the samples of each thread, all of which are raw, and the missed ones.
fn threads(told: &RecordList) -> Vec<(Lists, u64)> {
    let sets = told.sets().into_iter();
    sets.map(|lists| {
        lists.check();
        let set = lists.set;
        assert_eq!((set.measure, set.unit), ("latency", Unit::Ns));
        assert_eq!(set.labels, format!("thread={}", set.number));
        assert_eq!((Some(set.first), set.raw), (origin_ns(told), set.n));
        let period = fact(told, "interval", set.number).unwrap();
        assert_eq!(period, format!("{} ns", set.period));
        let missed = told.value("missed", set.labels).unwrap() as u64;
        if let Some(last) = lists.raw.last() {
            assert!(last.index < set.n + missed);
            assert_eq!(set.last, set.first + last.time + last.value);
        }
        assert!(lists.events.iter().all(|peak| lists.raw.contains(peak)));
        (lists, missed)
    })
    .collect()
}

#[test]
fn every_activation_is_woken_or_missed_and_all_lists_agree() {
    let words = format!("{EASY} duration=300ms threads=2 distance=1ms phases=3 bins=30 live=50ms");
    let told = measured(&words);
    let threads = threads(&told);
    assert_eq!(threads.len(), 2);
    for ((lists, missed), activations) in threads.iter().zip([300, 150]) {
        let set = lists.set;
        assert_eq!(set.n + missed, activations, "{set:?}");
        assert_eq!(set.parts, 3 * SLOTS);
        let fact = |name| fact(&told, name, set.number);
        assert_eq!(fact("scheduling policy"), Some("other"));
        assert!(fact("thread id").is_some());
        assert_eq!((fact("priority"), fact("CPU")), (None, None));
        assert!(told.value("recording time", set.labels).unwrap() < 1e6);
    }
    let kinds = told.kinds();
    let at = |kind| kinds.iter().position(|seen| *seen == kind);
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
    assert!(places.is_sorted(), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&"end"));
    let ready = told.all(|record| match record {
        Record::Ready(it) => it.monotonic_ns,
        _ => None,
    });
    assert!(origin_ns(&told).unwrap() > ready[0] + 100_000_000);
    for name in ["scheduling", "timer slack", "tick", "kernel release"] {
        assert!(told.fact(name, "").is_some(), "{name}");
    }
    // The timer slack of an ordinary thread delays its wake-ups.
    if let Ok(slack) = fs::read_to_string("/proc/self/timerslack_ns") {
        let fact = told.fact("timer slack", "").unwrap();
        assert!(fact.starts_with(&format!("{} ns", slack.trim())), "{fact}");
    }
}

#[test]
fn so_many_loops_are_so_many_wakeups() {
    let told = measured(&format!("{EASY} loops=20"));
    assert_eq!(threads(&told)[0].0.set.n, 20);
}

#[test]
fn two_threads_measure_on_two_cpus() {
    let cpus = allowed();
    let [first, second, ..] = cpus[..] else {
        return tare_testkit::skip("two CPUs", "this machine gives us one");
    };
    let words = format!("{EASY} duration=50ms threads=2 cpu={first},{second}");
    let told = measured(&words);
    assert_eq!(threads(&told).len(), 2);
    for (thread, cpu) in [(0, first), (1, second)] {
        assert_eq!(fact(&told, "CPU", thread), Some(&*cpu.to_string()));
    }
    let tid = |thread| fact(&told, "thread id", thread).unwrap();
    assert_ne!(tid(0), tid(1));
}

#[test]
fn real_time_policies_are_what_the_kernel_says() {
    for (words, policy, priority) in [
        ("policy=fifo priority=3", "fifo", Some("3")),
        ("policy=rr priority=4", "rr", Some("4")),
        ("policy=deadline", "deadline", None),
    ] {
        let words = format!("workload=wakeup interval=2ms duration=100ms {words}");
        let (_, told) = Agent::start(&words).finish();
        if let Some(why) = told.failure() {
            tare_testkit::skip(policy, why);
            continue;
        }
        let fact = |name| fact(&told, name, 0);
        assert_eq!(fact("scheduling policy"), Some(policy));
        assert_eq!(fact("priority"), priority);
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
    let Some(origin_ns) = origin_ns(agent.read_until("begins")) else {
        return tare_testkit::skip("SCHED_FIFO", agent.finish().1.failure().unwrap());
    };
    let hog = thread::spawn(move || {
        become_fifo(cpu, 60);
        sleep_until(origin_ns + 200_000_000);
        let until_ns = now_ns() + STALL_NS;
        while now_ns() < until_ns {}
    });
    let (status, told) = agent.finish();
    hog.join().unwrap();
    assert_eq!(status, Some(0));
    let (lists, all_missed) = threads(&told).remove(0);
    let set = lists.set;
    assert!(set.max >= STALL_NS / 10 * 9, "{set:?}");
    assert_eq!(set.n + all_missed, 6_000);
    // Exactly the activations due while it was late are missed: the numbers jump by that.
    let mut missed = 0;
    for pair in lists.raw.windows(2) {
        let [woken, next] = *pair else { unreachable!() };
        let late = woken.value.div_ceil(INTERVAL_NS).max(1);
        assert_eq!(next.index, woken.index + late, "late by {} ns", woken.value);
        missed += late - 1;
    }
    assert!(missed >= STALL_NS / INTERVAL_NS / 10 * 9, "{missed}");
    assert!(all_missed >= missed);
    let longest = lists.events.iter().map(|peak| peak.value).max();
    assert_eq!(longest, Some(set.max));
}

#[test]
fn a_latency_above_the_limit_is_told_at_once_and_ends_the_measurement() {
    let raw = |told: &RecordList| {
        let all = threads(told).into_iter().flat_map(|(lists, _)| lists.raw);
        all.map(|sample| Exceeded {
            set: sample.set,
            index: sample.index,
            value: sample.value,
        })
        .collect::<Vec<_>>()
    };
    // Every latency is above 1 ns.
    let told = measured(&format!("{EASY} duration=1000s above=1ns threads=2"));
    assert!(raw(&told).contains(&exceeded(&told)[0]));
    assert!(threads(&told).iter().all(|(lists, _)| lists.set.n < 1_000));

    let told = measured(&format!("{EASY} loops=50 above=1ns go-on=yes"));
    assert_eq!(exceeded(&told).len(), 50);
    assert_eq!(exceeded(&told), raw(&told));
}

#[test]
fn a_signal_ends_it_early_and_what_was_measured_is_reported() {
    for (signal, interval) in [(Signal::TERM, "1ms"), (Signal::INT, "50s")] {
        let words =
            format!("workload=wakeup policy=other interval={interval} duration=1000s live=10ms");
        let mut agent = Agent::start(&words);
        // It has then been woken at least once.
        agent.read_until("live");
        kill_process(agent.pid(), signal).unwrap();
        let (status, told) = agent.finish();
        assert_eq!(status, Some(0), "{signal:?}");
        let (lists, missed) = &threads(&told)[0];
        assert!(lists.set.n > 0 && lists.set.n + missed < 1_000_000);
        assert_eq!(told.kinds().last(), Some(&"end"));
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
        // SAFETY: a live limit. Dropping a missing privilege has no effect.
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
    let file = group.path.join("cpu.rt_runtime_us");
    assert!(failure.contains(file.to_str().unwrap()), "{failure}");
    let command = format!("echo 100000 > {}", file.display());
    if !accepted(&command) {
        let why = format!("others have taken the time of this machine: {command}");
        return tare_testkit::skip("RT_GROUP_SCHED", &why);
    }
    let (status, told) = start().finish();
    assert_eq!(status, Some(0), "{:?}", told.failure());
    assert_eq!(fact(&told, "scheduling policy", 0), Some("fifo"));
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

/// Executes a command until the kernel accepts it: the budget of a removed group is freed a little
/// later.
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

/// Restricts this thread to one CPU, with real-time priority.
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

/// Runs a function in the child before it becomes the agent.
fn before_exec(command: &mut Command, act: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    use std::os::unix::process::CommandExt;
    // SAFETY: the tests only make system calls there, without locks; the parent's other threads
    // hold none that they need.
    unsafe { command.pre_exec(act) };
}

/// A control group of version 1 without a real-time budget. Dropping it removes it.
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
