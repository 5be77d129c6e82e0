//! Real processes, started in great numbers.

use std::fs;
use std::time::{Duration, Instant};

use tare_guard::{Guard, Interrupt, OwnedChildren};
use tare_results::model::{Arrivals, Instance, InstanceOutcome};
use tare_results::work::Work;
use tare_targets::instance::Finish;
use tare_targets::measured::MeasuredFile;
use tare_targets::process::Process;
use tare_targets::{Job, Launch, Target};

use super::shared::Shared;
use super::watch::Watched;
use super::{Notify, Ran};

const MS: u64 = 1_000_000;

fn arrivals(interval_ns: impl Into<Option<u64>>, measure_ms: u64) -> Arrivals {
    Arrivals {
        interval_ns: interval_ns.into(),
        warmup_ns: 50 * MS,
        measure_ns: measure_ms * MS,
        most_live: 64,
        most_bytes: None,
        report: None,
        command: None,
    }
}

/// Starts shell scripts.
fn ran(arrivals: &Arrivals, script: &str) -> Ran {
    let interrupt = Interrupt::detached().unwrap();
    ran_until(arrivals, script, &interrupt, &mut |_| {})
}

fn ran_until(arrivals: &Arrivals, script: &str, interrupt: &Interrupt, notify: Notify<'_>) -> Ran {
    let Launched { launch, guard, .. } = &launch(script);
    let limit = Duration::from_secs(60);
    super::run(arrivals, launch, None, limit, guard, interrupt, notify).unwrap()
}

/// A launch that starts a shell script, with the guard of its files.
struct Launched {
    // Before the guard, which would have to remove what it holds.
    launch: Launch,
    guard: Guard,
    _state: tempfile::TempDir,
}

impl Launched {
    fn children(&self) -> OwnedChildren {
        self.guard.children(self.launch.name).unwrap()
    }
}

fn launch(script: &str) -> Launched {
    let state = tempfile::tempdir().unwrap();
    let guard = Guard::open(state.path()).unwrap();
    let words = ["/bin/sh", "-c", script].map(str::to_owned);
    let process = Process::new(MeasuredFile::agent());
    let work = Work::default();
    let job = Job {
        command: Some(&words),
        is_alone: false,
        ..Job::idle(&work)
    };
    Launched {
        launch: process.launch(&job, &guard).unwrap(),
        guard,
        _state: state,
    }
}

fn counted(ran: &Ran, outcome: InstanceOutcome) -> Vec<&Instance> {
    let counted = ran.instances.iter().filter(|one| one.counts == 1);
    counted.filter(|one| one.outcome() == outcome).collect()
}

#[test]
fn each_arrival_has_its_time_and_its_stamps_in_order() {
    let ran = ran(&arrivals(20 * MS, 400), "echo hello");
    let done = counted(&ran, InstanceOutcome::Done);
    assert_eq!(done.len(), 20, "{ran:?}");
    for pair in ran.instances.windows(2) {
        assert_eq!(pair[1].planned_ns - pair[0].planned_ns, 20 * MS);
    }
    for one in done {
        let stamps = [one.planned_ns, one.started_ns, one.ready_ns, one.exited_ns];
        assert!(stamps.is_sorted() && one.planned_ns > 0, "{one:?}");
    }
    let window = ran.arrived.until_ns - ran.arrived.from_ns;
    assert_eq!(window, 400 * MS);
    assert!(ran.values.iter().any(|value| value.measure == "live"));
}

#[test]
fn a_window_is_a_whole_number_of_intervals() {
    let ran = ran(&arrivals(40 * MS, 100), "echo hello");
    let counted = ran.instances.iter().filter(|one| one.counts == 1);
    assert_eq!(counted.count(), 3, "{ran:?}");
    assert_eq!(ran.arrived.until_ns - ran.arrived.from_ns, 120 * MS);
}

#[test]
fn one_after_the_other_never_overlaps() {
    let ran = ran(&arrivals(None, 100), "echo hello");
    assert!(!counted(&ran, InstanceOutcome::Done).is_empty());
    for pair in ran.instances.windows(2) {
        assert!(pair[1].started_ns >= pair[0].exited_ns, "{pair:?}");
    }
    assert_eq!(ran.arrived.saturated, None);
}

#[test]
fn what_meets_the_cap_is_rejected_at_its_time() {
    let few = Arrivals {
        most_live: 2,
        ..arrivals(10 * MS, 300)
    };
    let ran = ran(&few, "echo hello; sleep 0.2");
    let rejected = counted(&ran, InstanceOutcome::Rejected);
    assert!(rejected.len() > 10, "{ran:?}");
    assert!(
        rejected
            .iter()
            .all(|one| one.started_ns == 0 && one.exited_ns >= one.planned_ns)
    );
    let why = ran.arrived.saturated.unwrap();
    assert!(
        why.contains("rejected at the limit of live instances"),
        "{why}"
    );
    let live = ran.values.iter().find(|value| value.measure == "live");
    assert!(live.unwrap().value <= 2.0);
}

#[test]
fn what_takes_too_much_memory_together_is_rejected() {
    let little = Arrivals {
        most_bytes: Some(1),
        ..arrivals(10 * MS, 300)
    };
    let ran = ran(&little, "echo hello; sleep 0.1");
    let why = ran.arrived.saturated.as_deref().unwrap_or_default();
    assert!(why.contains("rejected at the limit of memory"), "{ran:?}");
    // One alone may always run.
    assert!(
        ran.instances
            .iter()
            .any(|one| one.outcome() == InstanceOutcome::Done)
    );
}

#[test]
fn a_window_ends_with_the_last_instance_that_a_cell_may_have() {
    let launched = launch("true");
    for interval_ns in [None, Some(MS)] {
        let endless = Arrivals {
            warmup_ns: 0,
            // None is started, so that all are rejected at once.
            most_live: 0,
            ..arrivals(interval_ns, 600_000)
        };
        let children = launched.children();
        let shared = Shared::new(&endless, 0, &launched.launch, &children, None).unwrap();
        super::pace::pace(&shared, 10);
        let ran = shared.ran(Watched::default());
        assert_eq!(ran.instances.len(), 10, "{ran:?}");
        let told = ran.notices.iter().any(|text| text.contains("at most 10"));
        assert!(told, "{:?}", ran.notices);
        let window = ran.arrived.from_ns..ran.arrived.until_ns;
        assert!(!window.is_empty() && window.end - window.start < 600_000 * MS);
    }
}

#[test]
fn reasons_of_failures_are_told_once_with_their_number() {
    let ran = ran(&arrivals(20 * MS, 200), "echo oops >&2; exit 3");
    let failed = ran
        .instances
        .iter()
        .filter(|one| one.outcome() == InstanceOutcome::Failed);
    let [failure] = &ran.arrived.failures[..] else {
        panic!("{:?}", ran.arrived);
    };
    assert_eq!(failure.reason, "it ended with status 3; it said: oops");
    assert_eq!(failure.count, failed.count() as u64);
}

#[test]
fn reasons_beyond_the_most_that_are_kept_share_a_line() {
    let endless = arrivals(None, 1);
    let launched = launch("true");
    let children = launched.children();
    let shared = Shared::new(&endless, 64, &launched.launch, &children, None).unwrap();
    for number in 0..25 {
        let failed = Err(format!("reason {number}"));
        shared.ended(number, Instance::default(), failed);
    }
    let failures = shared.ran(Watched::default()).arrived.failures;
    assert_eq!(failures.len(), 21);
    let told = failures.iter().map(|one| (one.reason.as_str(), one.count));
    let last: Vec<(&str, u64)> = told.skip(19).collect();
    assert_eq!(last, [("reason 19", 1), ("other reasons", 5)]);
}

#[test]
fn an_instance_that_fails_does_not_tell_how_long_one_takes() {
    let state = tempfile::tempdir().unwrap();
    let there = state.path().join("there");
    // The first one fails at once, all others take 0.3 s.
    let script = format!(
        "test -e {0} || {{ touch {0}; exit 1; }}; echo; sleep 0.3",
        there.display()
    );
    let ran = ran(&arrivals(100 * MS, 300), &script);
    let before = ran.arrived.from_ns - ran.instances[0].planned_ns;
    assert!(before >= 600 * MS, "{before}");
    assert_eq!(ran.arrived.saturated, None);
}

#[test]
fn a_target_that_never_works_is_not_waited_for() {
    let begun = Instant::now();
    let ran = ran(&arrivals(10 * MS, 100), "exit 1");
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert!(ran.arrived.saturated.unwrap().contains("failed"));
}

#[test]
fn launchers_sleep_until_there_is_something_to_do() {
    let endless = arrivals(None, 1);
    let launched = launch("true");
    let children = launched.children();
    let shared = Shared::new(&endless, 1, &launched.launch, &children, None).unwrap();
    std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        let shared = &shared;
        scope.spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_pid()).unwrap();
            assert!(shared.next().is_none());
        });
        let thread = told.recv().unwrap();
        let switches = || {
            std::thread::sleep(Duration::from_millis(350));
            let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
            let line = |line: &&str| line.starts_with("voluntary_ctxt_switches");
            status.lines().find(line).unwrap().to_owned()
        };
        assert_eq!(switches(), switches());
        shared.all_have_arrived();
        shared.end();
    });
}

#[test]
fn an_instance_that_hangs_ends_with_the_request_to_end() {
    let interrupt = Interrupt::detached().unwrap();
    let endless = Arrivals {
        warmup_ns: 0,
        ..arrivals(None, 600_000)
    };
    // The first is not measured; the second hangs.
    let state = tempfile::tempdir().unwrap();
    let there = state.path().join("there");
    let script = format!(
        "echo hello; test -e {0} && exec sleep 1000; touch {0}",
        there.display()
    );
    let mut ticks_there = 0;
    let mut notify = |_| {
        ticks_there += u32::from(there.exists());
        if ticks_there > 100 {
            interrupt.request_finish();
        }
    };
    let ran = ran_until(&endless, &script, &interrupt, &mut notify);
    assert!(ran.cut_short.is_some());
    let [first, second] = &ran.instances[..] else {
        panic!("{ran:?}");
    };
    assert_eq!((first.counts, first.outcome()), (0, InstanceOutcome::Done));
    assert_eq!(
        (second.counts, second.outcome()),
        (1, InstanceOutcome::Unfinished)
    );
}

#[test]
fn an_instance_that_hangs_ends_at_the_limit() {
    let interrupt = Interrupt::detached().unwrap();
    let launched = launch("exec sleep 1000");
    let limit = Duration::from_secs(1);
    let ran = super::run(
        &arrivals(None, 100),
        &launched.launch,
        None,
        limit,
        &launched.guard,
        &interrupt,
        &mut |_| {},
    );
    let ran = ran.unwrap();
    assert_eq!(ran.instances.len(), 1, "{ran:?}");
    assert_eq!(ran.instances[0].outcome(), InstanceOutcome::Unfinished);
    assert!(ran.notices[0].contains("timed out"), "{:?}", ran.notices);
}

#[test]
fn many_may_be_alive_whatever_the_limit_of_open_files_was() {
    use rustix::process::{Resource, getrlimit};
    let before = getrlimit(Resource::Nofile).current;
    let files = super::Files::for_instances(1_000);
    let raised = getrlimit(Resource::Nofile);
    let most = raised.maximum.unwrap_or(u64::MAX);
    assert!(raised.current.is_none_or(|now| now >= most.min(4_000)));
    drop(files);
    assert_eq!(getrlimit(Resource::Nofile).current, before);
}

#[test]
fn what_does_not_end_is_ended_and_counted() {
    let few = Arrivals {
        most_live: 4,
        ..arrivals(20 * MS, 100)
    };
    let ran = ran(&few, "echo hello; exec sleep 1000");
    let (rejected, started): (Vec<Instance>, Vec<Instance>) = ran
        .instances
        .into_iter()
        .partition(|one| one.outcome() == InstanceOutcome::Rejected);
    assert_eq!(started.len(), 4, "{rejected:?}");
    assert!(
        started
            .iter()
            .all(|one| one.outcome() == InstanceOutcome::Unfinished && one.exited_ns > 0)
    );
}

#[test]
fn who_writes_without_pause_keeps_nobody_waiting() {
    let few = Arrivals {
        most_live: 2,
        ..arrivals(100 * MS, 500)
    };
    let ran = ran(&few, "exec yes");
    let ended = ran.instances.iter().filter(|one| one.started_ns > 0);
    assert!(
        ended.clone().count() > 0 && ended.clone().all(|one| one.exited_ns > 0),
        "{ran:?}"
    );
    assert!(
        ended
            .clone()
            .all(|one| one.outcome() == InstanceOutcome::Unfinished)
    );
}

#[test]
fn a_request_to_end_keeps_what_there_is() {
    let interrupt = Interrupt::detached().unwrap();
    let state = tempfile::tempdir().unwrap();
    let there = state.path().join("there");
    let mut ticks_there = 0;
    let mut finished = Vec::new();
    let mut notify = |finish| {
        ticks_there += u32::from(there.exists());
        if ticks_there == 100 {
            interrupt.request_finish();
        }
        finished.extend(finish);
    };
    let long = arrivals(20 * MS, 600_000);
    let script = format!("echo hello; touch {}", there.display());
    let ran = ran_until(&long, &script, &interrupt, &mut notify);
    assert!(ran.cut_short.is_some());
    assert_eq!(finished, [Finish::Early]);
    assert!(!counted(&ran, InstanceOutcome::Done).is_empty());
    assert!(ran.arrived.until_ns - ran.arrived.from_ns < 60_000 * MS);
}
