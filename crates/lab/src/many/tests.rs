//! Real processes, started in great numbers.

use std::time::Duration;

use tare_guard::{Guard, Interrupt};
use tare_results::model::{Arrivals, Fate, Instance};
use tare_results::work::Work;
use tare_targets::Target;
use tare_targets::measured::MeasuredFile;
use tare_targets::process::Process;
use tare_targets::starter::Order;

use super::Ran;
use super::field::Field;
use super::watch::Watched;

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
    ran_until(arrivals, script, &interrupt, &mut || None).unwrap()
}

fn ran_until(
    arrivals: &Arrivals,
    script: &str,
    interrupt: &Interrupt,
    tick: &mut dyn FnMut() -> Option<Duration>,
) -> Option<Ran> {
    let state = tempfile::tempdir().unwrap();
    let guard = Guard::open(state.path()).unwrap();
    let words = ["/bin/sh", "-c", script].map(str::to_owned);
    let order = Order {
        work: &Work::default(),
        command: Some(&words),
        most_live: arrivals.most_live,
    };
    let process = Process::new(MeasuredFile::agent());
    let starter = process.starter(&order, &guard).unwrap();
    let limit = Duration::from_secs(60);
    let ran = super::run(arrivals, &starter, None, limit, &guard, interrupt, tick).unwrap();
    drop(starter);
    let undone = guard.close();
    assert!(undone.problems.is_empty(), "{undone:?}");
    ran
}

fn counted(ran: &Ran, fate: Fate) -> Vec<&Instance> {
    let counted = ran.instances.iter().filter(|one| one.counts == 1);
    counted.filter(|one| one.fate() == fate).collect()
}

#[test]
fn each_arrival_has_its_time_and_its_stamps_in_order() {
    let ran = ran(&arrivals(20 * MS, 400), "echo hello");
    let done = counted(&ran, Fate::Done);
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
    assert!(!counted(&ran, Fate::Done).is_empty());
    for pair in ran.instances.windows(2) {
        assert!(pair[1].started_ns >= pair[0].exited_ns, "{pair:?}");
    }
    assert_eq!(ran.arrived.saturated, None);
}

#[test]
fn what_meets_the_cap_is_refused_at_its_time() {
    let few = Arrivals {
        most_live: 2,
        ..arrivals(10 * MS, 300)
    };
    let ran = ran(&few, "echo hello; sleep 0.2");
    let refused = counted(&ran, Fate::Refused);
    assert!(refused.len() > 10, "{ran:?}");
    assert!(
        refused
            .iter()
            .all(|one| one.started_ns == 0 && one.exited_ns >= one.planned_ns)
    );
    let why = ran.arrived.saturated.unwrap();
    assert!(why.contains("refused"), "{why}");
    let live = ran.values.iter().find(|value| value.measure == "live");
    assert!(live.unwrap().value <= 2.0);
}

#[test]
fn what_takes_too_much_memory_together_is_refused() {
    let little = Arrivals {
        most_bytes: Some(1),
        ..arrivals(10 * MS, 300)
    };
    let ran = ran(&little, "echo hello; sleep 0.1");
    assert!(!counted(&ran, Fate::Refused).is_empty(), "{ran:?}");
    // One alone may always run.
    assert!(ran.instances.iter().any(|one| one.fate() == Fate::Done));
}

#[test]
fn a_window_ends_with_the_last_instance_that_a_cell_may_have() {
    let state = tempfile::tempdir().unwrap();
    let guard = Guard::open(state.path()).unwrap();
    let process = Process::new(MeasuredFile::agent());
    let words = ["/bin/true".to_owned()];
    for interval_ns in [None, Some(MS)] {
        let endless = Arrivals {
            warmup_ns: 0,
            // None is started, so that all are refused at once.
            most_live: 0,
            ..arrivals(interval_ns, 600_000)
        };
        let order = Order {
            work: &Work::default(),
            command: Some(&words),
            most_live: 1,
        };
        let starter = process.starter(&order, &guard).unwrap();
        let children = guard.children(starter.name).unwrap();
        let field = Field::new(&endless, 0, &starter, &children, None).unwrap();
        super::pace::pace(&field, 10);
        let ran = field.ran(Watched::default());
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
        .filter(|one| one.fate() == Fate::Failed);
    let [failure] = &ran.arrived.failures[..] else {
        panic!("{:?}", ran.arrived);
    };
    assert_eq!(failure.reason, "it ended with status 3; it said: oops");
    assert_eq!(failure.count, failed.count() as u64);
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
    let mut tick = || {
        ticks_there += u32::from(there.exists());
        if ticks_there > 100 {
            interrupt.request_finish();
        }
        None
    };
    let ran = ran_until(&endless, &script, &interrupt, &mut tick).unwrap();
    assert!(ran.cut_short.is_some());
    let [first, second] = &ran.instances[..] else {
        panic!("{ran:?}");
    };
    assert_eq!((first.counts, first.fate()), (0, Fate::Done));
    assert_eq!((second.counts, second.fate()), (1, Fate::Unfinished));
}

#[test]
fn an_instance_that_hangs_ends_at_the_limit() {
    let interrupt = Interrupt::detached().unwrap();
    let state = tempfile::tempdir().unwrap();
    let guard = Guard::open(state.path()).unwrap();
    let words = ["/bin/sleep", "1000"].map(str::to_owned);
    let order = Order {
        work: &Work::default(),
        command: Some(&words),
        most_live: 4,
    };
    let process = Process::new(MeasuredFile::agent());
    let starter = process.starter(&order, &guard).unwrap();
    let limit = Duration::from_secs(1);
    let alone = arrivals(None, 100);
    let ran = super::run(
        &alone,
        &starter,
        None,
        limit,
        &guard,
        &interrupt,
        &mut || None,
    );
    let ran = ran.unwrap().unwrap();
    assert_eq!(ran.instances.len(), 1, "{ran:?}");
    assert_eq!(ran.instances[0].fate(), Fate::Unfinished);
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
    let (refused, started): (Vec<Instance>, Vec<Instance>) = ran
        .instances
        .into_iter()
        .partition(|one| one.fate() == Fate::Refused);
    assert_eq!(started.len(), 4, "{refused:?}");
    assert!(
        started
            .iter()
            .all(|one| one.fate() == Fate::Unfinished && one.exited_ns > 0)
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
    assert!(ended.clone().all(|one| one.fate() == Fate::Unfinished));
}

#[test]
fn a_request_to_end_keeps_what_there_is() {
    let interrupt = Interrupt::detached().unwrap();
    let state = tempfile::tempdir().unwrap();
    let there = state.path().join("there");
    let mut ticks_there = 0;
    let mut tick = || {
        ticks_there += u32::from(there.exists());
        if ticks_there == 100 {
            interrupt.request_finish();
        }
        None
    };
    let long = arrivals(20 * MS, 600_000);
    let script = format!("echo hello; touch {}", there.display());
    let ran = ran_until(&long, &script, &interrupt, &mut tick).unwrap();
    assert!(ran.cut_short.is_some());
    assert!(!counted(&ran, Fate::Done).is_empty());
    assert!(ran.arrived.until_ns - ran.arrived.from_ns < 60_000 * MS);
}
