//! The workloads on the unikernel: what the records say.

mod common;

use common::{DONE, Ended, FAILED, Guest, MACHINES};
use tare_wire::line::{Line, MAX_PAYLOAD, decode};
use tare_wire::record::{Record, Set};
use tare_wire::rows;

const BENCH: &str = env!("CARGO_BIN_EXE_bench");

/// What a test wants to know of one guest.
#[derive(Debug, Default)]
struct Read {
    set: Set<'static>,
    result: f64,
    work: f64,
    /// Durations with their counts.
    counts: Vec<(u64, u64)>,
    timer_interrupts: Option<u64>,
    hz: Vec<f64>,
    failure: Option<String>,
    last: &'static str,
}

fn guest(words: &str) -> Guest {
    Guest::new(BENCH, &format!("service=bench {words} bins=10 window=10"))
}

/// Counts instructions as time: a run can be repeated exactly.
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
        let read = read(&ended);
        assert_eq!((read.result, read.work), (8.0, 84.0));
        assert_eq!(
            read.counts.iter().map(|(_, count)| count).sum::<u64>(),
            10_000
        );
        assert_eq!(read.timer_interrupts, Some(0));
        assert_eq!(read.last, "end");
        assert!(!read.hz.is_empty(), "{machine}");
    }
}

#[test]
fn copy_runs_with_both_timings() {
    for timing in ["fenced", "published"] {
        let words = format!("workload=copy size=1000 repetitions=1000 timing={timing}");
        let Some(ended) = guest(&words).boot() else {
            return;
        };
        assert_eq!(read(&ended).work, 1_000.0);
    }
}

#[test]
fn without_interrupts_counted_instructions_give_one_duration() {
    let guest = deterministic("workload=prime limit=22 repetitions=20000 irq=off");
    let Some(ended) = guest.boot() else { return };
    let read = read(&ended);
    assert_eq!(read.counts.len(), 1, "{:?}", read.counts);
    assert_eq!(read.counts[0].1, 20_000);
}

#[test]
fn with_interrupts_there_are_delays_exactly_as_often_as_the_timer_fired() {
    let words = "workload=gap repetitions=1000000 threshold=40cycles";
    let Some(quiet) = deterministic(&format!("{words} irq=off")).boot() else {
        return;
    };
    let quiet = read(&quiet);
    assert_eq!((quiet.set.seen, quiet.timer_interrupts), (0, Some(0)));
    for hz in [250, 1_000, 20_000] {
        let words = format!("{words} irq=on timer-hz={hz}");
        let ticking = read(&deterministic(&words).boot().unwrap());
        let expected = quiet.set.sum * hz / 1_000_000_000;
        let fired = ticking.timer_interrupts.unwrap();
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
        assert_eq!(read(&ended).result, 8.0);
    }
}

#[test]
fn what_the_machine_can_not_do_is_a_failure_record() {
    for (rest, cpu, what) in [
        ("repetitions=1", "qemu64", "no RDTSCP"),
        ("repetitions=1 cpus=2 cpu=1", "max", "did not all start"),
        ("repetitions=1 cpus=2", "max", "did not all start"),
        ("repetitions=1 cpu=1", "max", "did not all start"),
        ("repetitions=100000000", "max", "less free memory"),
    ] {
        let guest = Guest {
            cpu,
            ..guest(&format!("workload=prime limit=22 {rest}"))
        };
        let Some(ended) = guest.boot() else { return };
        assert_eq!(ended.status, FAILED, "{rest}");
        let failure = read(&ended).failure.unwrap();
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

fn read(ended: &Ended) -> Read {
    let mut read = Read::default();
    let mut room = [0; MAX_PAYLOAD];
    for line in ended.text.lines() {
        let Line::Record { record, .. } = decode(line.as_bytes(), &mut room) else {
            continue;
        };
        read.last = record.kind();
        match record {
            Record::Set(set) => {
                read.set = Set {
                    measure: "",
                    labels: "",
                    ..set
                }
            }
            Record::Value(value) if value.measure == "result" => read.result = value.value,
            Record::Value(value) if value.measure == "work" => read.work = value.value,
            Record::Counts(list) => {
                let counts = rows::counts(list).map(Result::unwrap);
                read.counts.extend(counts.map(|row| (row.value, row.count)));
            }
            Record::Counter(counter) if counter.name == "timer interrupts" => {
                read.timer_interrupts = Some(counter.count);
            }
            Record::Frequency(frequency) => read.hz.push(frequency.hz),
            Record::Failure(failure) => read.failure = Some(failure.text.to_owned()),
            _ => {}
        }
    }
    read
}
