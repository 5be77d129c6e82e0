//! The records of the workloads on the unikernel.

mod common;

use common::{DONE, Ended, FAILED, Guest, MACHINES};
use tare_testkit::records::{Lists, RecordList};
use tare_wire::line::Stream;

const BENCH: &str = env!("CARGO_BIN_EXE_bench");

fn told(ended: &Ended) -> RecordList {
    RecordList::read(Stream::Measured, ended.text.as_bytes())
}

/// Returns the set of a batch, and the number of timer interrupts.
fn read(ended: &Ended) -> (Lists, Option<u64>) {
    let told = told(ended);
    let lists = told.sets().remove(0);
    lists.check();
    (lists, told.counter("timer interrupts"))
}

fn guest(words: &str) -> Guest {
    Guest::new(BENCH, &format!("service=bench {words} bins=10 window=10"))
}

/// Returns a guest whose time counts instructions, so that runs are reproducible.
fn deterministic(words: &str) -> Guest {
    Guest {
        shift: Some(1),
        ..guest(words)
    }
}

#[test]
fn prime_counts_the_same_as_on_linux_on_every_machine() {
    for machine in MACHINES {
        let guest = Guest {
            machine,
            ..guest("workload=prime limit=22 repetitions=10000")
        };
        let Some(ended) = guest.boot() else { return };
        assert_eq!(ended.status, DONE, "{}", ended.text);
        let told = told(&ended);
        let value = |measure| told.value(measure, "");
        assert_eq!((value("result"), value("work")), (Some(8.0), Some(84.0)));
        let (lists, fired) = read(&ended);
        assert_eq!((lists.set.n, fired), (10_000, Some(0)));
        assert!(told.kinds().contains(&"frequency"), "{machine}");
        assert_eq!(told.kinds().last(), Some(&"end"));
    }
}

#[test]
fn copy_runs_with_both_timings() {
    for timing in ["fenced", "published"] {
        let words = format!("workload=copy size=1000 repetitions=1000 timing={timing}");
        let Some(ended) = guest(&words).boot() else {
            return;
        };
        assert_eq!(told(&ended).value("work", ""), Some(1_000.0));
    }
}

#[test]
fn without_interrupts_counted_instructions_give_one_duration() {
    let guest = deterministic("workload=prime limit=22 repetitions=20000 irq=off");
    let Some(ended) = guest.boot() else { return };
    let (lists, _) = read(&ended);
    assert_eq!(lists.counts.len(), 1, "{:?}", lists.counts);
    assert_eq!(lists.counts[0].count, 20_000);
}

#[test]
fn with_interrupts_there_are_delays_exactly_as_often_as_the_timer_fired() {
    let words = "workload=gap repetitions=1000000 threshold=40cycles";
    let Some(quiet) = deterministic(&format!("{words} irq=off")).boot() else {
        return;
    };
    let (quiet, fired) = read(&quiet);
    assert_eq!((quiet.set.seen, fired), (0, Some(0)));
    for hz in [250, 1_000, 20_000] {
        let words = format!("{words} irq=on timer-hz={hz}");
        let (ticking, fired) = read(&deterministic(&words).boot().unwrap());
        let expected = quiet.set.sum * hz / 1_000_000_000;
        let fired = fired.unwrap();
        assert!(
            fired.abs_diff(expected) <= 1 + expected / 4,
            "{hz}: {fired} for {expected}"
        );
        assert_eq!(ticking.set.seen, fired, "{hz}");
    }
}

#[test]
fn two_deterministic_runs_give_identical_records() {
    for words in [
        "workload=prime limit=22 repetitions=5000 irq=on timer-hz=1000",
        "workload=gap repetitions=200000 threshold=20cycles irq=on",
    ] {
        let Some(first) = deterministic(words).boot() else {
            return;
        };
        assert_eq!(first.status, DONE);
        assert_eq!(
            first.text,
            deterministic(words).boot().unwrap().text,
            "{words}"
        );
    }
}

#[test]
fn the_plan_chooses_the_cpu() {
    let words = "workload=prime limit=22 repetitions=1000 cpus=3 cpu=2 irq=on";
    for machine in MACHINES {
        let guest = Guest {
            cpus: 3,
            machine,
            ..guest(words)
        };
        let Some(ended) = guest.boot() else { return };
        assert_eq!(ended.status, DONE, "{machine}: {}", ended.text);
        assert_eq!(told(&ended).value("result", ""), Some(8.0));
    }
}

#[test]
fn what_the_machine_can_not_do_is_a_failure_record() {
    for (rest, cpu, what) in [
        ("repetitions=1", "qemu64", "no RDTSCP"),
        (
            "repetitions=1 cpus=2 cpu=1",
            "max",
            "not all requested CPUs started",
        ),
        (
            "repetitions=1 cpus=2",
            "max",
            "not all requested CPUs started",
        ),
        (
            "repetitions=1 cpu=1",
            "max",
            "not all requested CPUs started",
        ),
        ("repetitions=100000000", "max", "less free memory"),
    ] {
        let guest = Guest {
            cpu,
            ..guest(&format!("workload=prime limit=22 {rest}"))
        };
        let Some(ended) = guest.boot() else { return };
        assert_eq!(ended.status, FAILED, "{rest}");
        let failure = told(&ended).failure().unwrap();
        assert!(failure.contains(what), "{failure}");
    }
}

#[test]
fn a_cpu_without_avx_measures_too() {
    let guest = Guest {
        cpu: "qemu64,+rdtscp",
        ..guest("workload=prime limit=22 repetitions=1000")
    };
    let Some(ended) = guest.boot() else { return };
    assert_eq!(ended.status, DONE, "{}", ended.text);
}
