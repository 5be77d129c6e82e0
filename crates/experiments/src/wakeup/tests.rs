use tare_targets::spec;

use super::*;
use tare_lab::experiment::DEFAULT_RUNS;
use tare_lab::parameter::Value::{Number, Text};
use tare_lab::plan::{Frame, of_one};

fn conditions(targets: &[&str], loads: &[&str]) -> Conditions {
    let loads = loads.iter().map(|load| Schedule::parse(load).unwrap());
    let targets = targets
        .iter()
        .map(|&target| spec::parse(target).unwrap().spec());
    Conditions {
        targets: targets.collect(),
        loads: loads.collect(),
        cpu: 1,
        cpus: None,
        cell_limit: None,
        is_watched: false,
    }
}

fn here() -> Conditions {
    conditions(&["process"], &["idle"])
}

fn frame() -> Frame {
    Frame {
        seed: 7,
        cpu: 1,
        cpu_reason: "asked for".to_owned(),
        command: vec!["tare".to_owned(), "wakeup".to_owned()],
        ..Frame::default()
    }
}

/// Gives parameters values: numbers (times in ns) or words.
fn given(given: &[(&'static str, &str)]) -> Values {
    let mut values = Values::default();
    for (name, text) in given {
        let number = text.parse().map(Number);
        values.give(
            name,
            vec![number.unwrap_or_else(|_| Text((*text).to_owned()))],
        );
    }
    values
}

fn cells(values: &[(&'static str, &str)], conditions: &Conditions) -> Vec<CellPlan> {
    combinations(&given(values), conditions).unwrap_or_else(|error| panic!("{error}"))
}

const PHASES: [&str; 4] = ["idle", "ping", "idle", "dd+command:sh -c 'sync; :'"];

#[test]
fn without_words_a_thread_is_woken_for_seconds_on_the_measured_cpu() {
    let cells = cells(&[], &here());
    assert_eq!(cells.len(), 1);
    let cell = &cells[0];
    assert_eq!(
        cell.work.to_string(),
        "workload=wakeup interval=100000ns distance=0ns threads=1 policy=fifo priority=95 phases=1 \
         capacity=262144 raw=4000000 bins=1000 trace=0 duration=2000000000ns cpu=1"
    );
    assert_eq!(cell.label(), "process wakeup");
    assert!((2.0..10.0 / 3.0).contains(&cell.estimate_seconds));
}

#[test]
fn a_place_is_told_what_the_threads_need() {
    let plan = |threads, policy, trace| {
        let plan = measured::Plan {
            threads,
            policy,
            trace,
            ..measured::Plan::new(100_000, 86_400_000_000_000)
        };
        work(&plan)
    };
    let (one, two) = (plan(1, Policy::Other, 0), plan(2, Policy::Fifo, 10));
    assert_eq!(one.rights, Rights::default());
    assert_eq!(two.rights.real_time.map(|asked| asked.priority), Some(95));
    assert!(two.rights.kernel_events);
    // A day: 64 MB of wake-ups as they were, 4 MiB of those above the threshold, 16 MiB of counts.
    assert_eq!(one.buffer_bytes.div_ceil(1 << 20), 82);
    assert_eq!(two.buffer_bytes, 2 * one.buffer_bytes);
}

#[test]
fn loads_are_cells_of_their_own_or_phases_of_one() {
    let conditions = conditions(&["process", "linux"], &PHASES);
    let apart = cells(&[], &conditions);
    assert_eq!(apart.len(), 8);
    assert!(apart.iter().all(|cell| cell.phases.is_empty()));

    let together = cells(&[("phase", "500000000")], &conditions);
    assert_eq!(together.len(), 2);
    let cell = &together[0];
    assert_eq!(
        cell.load.as_str(),
        "500ms:idle;ping;idle;dd+command:sh -c 'sync;; :'"
    );
    assert_eq!(cell.phases, conditions.loads);
    assert_eq!(cell.phase_seconds, Some(0.5));
    let words = plan_of(cell).unwrap();
    assert_eq!((words.phases, words.duration_ns), (4, Some(2_000_000_000)));
    assert!(together[1].limit_seconds > cell.limit_seconds);
    assert!(
        cell.label().contains("4 phases of 0.5 s"),
        "{}",
        cell.label()
    );
}

#[test]
fn tracing_is_one_more_run_unless_a_limit_is_waited_for() {
    let planned = |conditions: &Conditions, values: &[(&'static str, &str)], runs| {
        of_one(&Wakeup, conditions, &given(values), runs, frame()).unwrap()
    };
    let both = conditions(&["process", "unikernel"], &["idle", "dd"]);
    let plan = planned(&both, &[("trace", "10")], 3);
    let (extra, plain): (Vec<&CellPlan>, Vec<&CellPlan>) = plan
        .cells
        .iter()
        .partition(|cell| cell.work.words.contains("trace=10"));
    // Nothing beneath the unikernel can be asked.
    assert_eq!((extra.len(), plain.len()), (2, 12));
    for cell in extra {
        assert_eq!(cell.target, "process");
        assert!(cell.label().ends_with("traced"), "{}", cell.label());
        assert!(!plain.iter().any(|other| other.repeats(cell)));
    }

    let unikernel = conditions(&["unikernel"], &["idle"]);
    let refused = combinations(&given(&[("trace", "10")]), &unikernel).unwrap_err();
    assert!(refused.to_string().contains("no events of a kernel"));

    let plan = planned(&here(), &[("trace-above", "50000")], 2);
    assert_eq!(plan.cells.len(), 2);
    assert!(plan.cells[0].repeats(&plan.cells[1]));
    assert!(
        plan.cells[0]
            .work
            .words
            .contains("trace=10 duration=60000000000ns above=50000ns")
    );
}

#[test]
fn threads_that_share_a_cpu_are_not_woken_at_once() {
    let cell = |values: &[(&'static str, &str)]| {
        let conditions = Conditions {
            cpus: Cpus::parse("0-2"),
            ..here()
        };
        cells(values, &conditions).remove(0)
    };
    let words = |values: &[(&'static str, &str)]| plan_of(&cell(values)).unwrap();
    let said = Wakeup.announces(&cell(&[("threads", "4")])).unwrap();
    assert!(said.contains("woken every 100 µs to 1600 µs;"), "{said}");
    let apart = words(&[]);
    assert_eq!((apart.threads, apart.distance_ns), (3, 0));
    let sharing = words(&[("threads", "4")]);
    assert_eq!((sharing.threads, sharing.distance_ns), (4, 500_000));
    assert_eq!((sharing.raw, sharing.capacity), (1_000_000, 262_144));
    let many = words(&[("threads", "1024")]);
    assert_eq!(1_024 * many.capacity, measured::MAX_KEPT);
}

#[test]
fn what_only_this_machine_has_is_not_asked_of_a_guest() {
    let watched = Conditions {
        is_watched: true,
        ..conditions(&["process", "linux"], &["idle"])
    };
    let cells = cells(&[("mainaffinity", "0-0")], &watched);
    assert!(
        cells[0]
            .work
            .to_string()
            .ends_with("live=500000000ns cpu=1 main=0")
    );
    assert!(
        cells[1]
            .work
            .to_string()
            .ends_with("duration=2000000000ns cpu=1")
    );
    let several = |target| {
        let conditions = Conditions {
            cpus: Cpus::parse("0-1"),
            ..conditions(&[target], &["idle"])
        };
        combinations(&Values::default(), &conditions)
    };
    let error = several("linux").unwrap_err();
    assert_eq!(
        error.to_string(),
        "wakeup: 'linux' has fewer CPUs (1) than are to be measured (0-1): give it more with cpus="
    );
    for target in ["linux,cpus=2", "unikernel,cpus=3", "process"] {
        several(target).unwrap();
    }
}

#[test]
fn values_that_can_not_be_are_told_with_their_units() {
    for (values, message) in [
        (
            &[("interval", "999")][..],
            "interval must be from 1 µs to 60 s, not 999 ns",
        ),
        (
            &[("priority", "100")],
            "priority must be from 1 to 99, not 100",
        ),
        (
            &[("policy", "other"), ("priority", "5")],
            "SCHED_OTHER has no priority: leave it out",
        ),
        (
            &[("threads", "1025")],
            "threads must be from 1 to 1024, not 1025",
        ),
        (
            &[("duration", "18446744073709551615")],
            "duration must be from 1 µs to 2678400 s, not 18446744073709551615 ns",
        ),
        (
            &[("duration", "50000")],
            "nothing would be woken within 50 µs: the interval is 100 µs",
        ),
        (
            &[("threshold", "0")],
            "a threshold of 0 would list every wake-up",
        ),
        (
            &[("trace-above", "0")],
            "a limit of 0 would list every wake-up",
        ),
        (
            &[("phase", "1000000000"), ("loops", "1")],
            "with phase, leave out duration and loops: the phases set the length",
        ),
        (
            &[("trace-above", "1000"), ("trace", "101")],
            "trace must be from 0 to 100, not 101",
        ),
    ] {
        let refusal = combinations(&given(values), &here()).unwrap_err();
        assert_eq!(refusal.to_string(), format!("wakeup: {message}"));
    }
}

#[test]
fn without_values_the_defaults_hold() {
    let defaults = Wakeup.combinations(&here(), &Values::default()).unwrap();
    assert_eq!(defaults, cells(&[], &here()));
    assert_eq!(Wakeup.default_runs(&Values::default()), DEFAULT_RUNS);
}

#[test]
fn threads_and_cpus_are_named_as_for_cyclictest() {
    let cpus = |values: &[(&'static str, &str)]| {
        let cpus = Wakeup.cpus(&given(values), &Cpus::parse("0-3").unwrap());
        cpus.map(|cpus| cpus.to_string())
    };
    for (values, expected) in [
        (&[][..], None),
        (&[("smp", "")], Some("0-3")),
        (&[("affinity", "all")], Some("0-3")),
        (&[("affinity", "1-2")], Some("1-2")),
        (&[("threads", "0")], Some("0-3")),
        (&[("threads", "1")], None),
        (&[("threads", "2")], Some("2-3")),
        (&[("threads", "2"), ("affinity", "0-2")], Some("0-1")),
    ] {
        assert_eq!(cpus(values).as_deref(), expected, "{values:?}");
    }
}

#[test]
fn the_defaults_that_depend_on_other_values_are_told() {
    let default = |name| {
        let mut all = parameters::ALL.iter();
        all.find(|parameter| parameter.name == name).unwrap()
    };
    for (name, told) in [
        (
            "duration",
            format!(
                "{}; with trace-above {}",
                exact(DEFAULT_DURATION_NS),
                exact(WAITING_NS)
            ),
        ),
        (
            "distance",
            format!(
                "{} where threads share a CPU, else 0",
                exact(DEFAULT_DISTANCE_NS)
            ),
        ),
        (
            "trace",
            format!("0; the option alone, or with trace-above, {DEFAULT_TRACE}"),
        ),
    ] {
        assert_eq!(default(name).default, told);
    }
    assert_eq!(default("trace").bare, Some(&*DEFAULT_TRACE.to_string()));
}
