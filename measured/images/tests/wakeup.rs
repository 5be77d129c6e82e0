//! Wake-ups on the unikernel: records, and rejected plans.

mod common;

use common::{DONE, Ended, FAILED, Guest};
use tare_testkit::records::{Lists, RecordList};
use tare_wire::line::Stream;
use tare_wire::record::{Exceeded, Record};
use tare_wire::rows::Count;

const BENCH: &str = env!("CARGO_BIN_EXE_bench");

/// The results of one guest.
struct Read {
    told: RecordList,
    origin_ns: Option<u64>,
    /// The samples of each thread, and the missed ones.
    threads: Vec<(Lists, u64)>,
    exceeded: Vec<Exceeded>,
    timer_interrupts: u64,
}

fn guest(words: &str) -> Guest {
    let words = format!("service=bench workload=wakeup {words} bins=10");
    Guest {
        memory_mib: 128,
        ..Guest::new(BENCH, &words)
    }
}

/// Returns a guest whose time counts instructions, so that runs are reproducible.
fn deterministic(words: &str) -> Guest {
    Guest {
        shift: Some(1),
        ..guest(words)
    }
}

#[test]
fn every_activation_is_woken_for_or_missed_on_every_machine() {
    for (machine, irq) in [
        ("microvm", "irq=off"),
        ("pc", "irq=on timer-hz=1000"),
        ("q35", "irq=on"),
    ] {
        let words = format!("interval=1ms duration=300ms phases=3 {irq}");
        let guest = Guest {
            machine,
            ..guest(&words)
        };
        let Some(ended) = guest.boot() else { return };
        assert_eq!(ended.status, DONE, "{machine}: {}", ended.text);
        let read = read(&ended);
        assert!(read.origin_ns.is_some_and(|ns| ns >= 200_000_000));
        let [(lists, missed)] = &read.threads[..] else {
            panic!("{:?}", read.told)
        };
        let set = lists.set;
        assert_eq!(set.n + missed, 300, "{machine}: {set:?}");
        assert!(set.n > 0 && set.raw == set.n);
        assert!(read.timer_interrupts > 0, "{machine}");
        assert_eq!(read.told.kinds().last(), Some(&"end"));
    }
}

#[test]
fn two_deterministic_runs_give_identical_records() {
    for irq in ["irq=off", "irq=on timer-hz=1000"] {
        let words = format!("interval=100us duration=100ms phases=2 {irq}");
        let Some(first) = deterministic(&words).boot() else {
            return;
        };
        assert_eq!(first.status, DONE, "{}", first.text);
        assert_eq!(first.text, deterministic(&words).boot().unwrap().text);
    }
}

#[test]
fn where_instructions_are_time_no_activation_is_missed_and_each_has_its_interrupt() {
    let words = "interval=100us duration=100ms phases=4 raw=10 irq=off";
    let Some(ended) = deterministic(words).boot() else {
        return;
    };
    let read = read(&ended);
    let [(lists, missed)] = &read.threads[..] else {
        panic!("{:?}", read.told)
    };
    let set = lists.set;
    assert_eq!((set.n, *missed, set.raw), (1_000, 0, 10));
    assert!(set.max < 100_000, "{set:?}");
    assert_eq!(set.parts as usize, lists.parts.len());
    for phase in 0..4 {
        let phase_ns = phase * 25_000_000..(phase + 1) * 25_000_000;
        let is_of_phase = |row: &&Count| phase_ns.contains(&lists.parts[row.part as usize].begin);
        let of_phase = lists.counts.iter().filter(is_of_phase);
        assert_eq!(of_phase.map(|row| row.count).sum::<u64>(), 250, "{phase}");
    }
    // An early interrupt is followed by another one for the rest.
    assert!((1_000..=2_000).contains(&read.timer_interrupts));
    let timer = read.told.fact("wake-up timer", "").unwrap();
    assert!(timer.contains("APIC"));
}

#[test]
fn a_tick_shares_the_timer() {
    let words = "interval=10ms duration=1s irq=on timer-hz=1000";
    let Some(ended) = deterministic(words).boot() else {
        return;
    };
    let read = read(&ended);
    assert_eq!(read.threads[0].0.set.n, 100);
    // Up to the last wake-up; a tick may coincide with one, and an early interrupt is followed by
    // another one.
    assert!(
        (990..=1_200).contains(&read.timer_interrupts),
        "{}",
        read.timer_interrupts
    );
}

#[test]
fn each_thread_has_a_cpu_of_its_own() {
    let words = "interval=2ms distance=1ms duration=200ms threads=2 cpus=3";
    for (cpu, expected) in [
        ("", ["0", "1"]),
        ("cpu=2,1", ["1", "2"]),
        ("cpu=0,2", ["0", "2"]),
    ] {
        let guest = Guest {
            cpus: 3,
            ..guest(&format!("{words} {cpu}"))
        };
        let Some(ended) = guest.boot() else { return };
        assert_eq!(ended.status, DONE, "{cpu}: {}", ended.text);
        let Read { told, threads, .. } = read(&ended);
        for (thread, expected) in expected.into_iter().enumerate() {
            let fact = told.fact("CPU", &format!("thread={thread}"));
            assert_eq!(fact, Some(expected), "{cpu}");
        }
        let due: Vec<_> = threads.iter().map(|(l, missed)| l.set.n + missed).collect();
        assert_eq!(due, [100, 67], "{cpu}");
        assert_eq!(threads[1].0.set.period, 3_000_000);
    }
}

#[test]
fn one_thread_may_have_any_cpu() {
    let guest = Guest {
        cpus: 2,
        ..guest("interval=1ms duration=50ms cpus=2 cpu=1")
    };
    let Some(ended) = guest.boot() else { return };
    assert_eq!(ended.status, DONE, "{}", ended.text);
    assert_eq!(read(&ended).told.fact("CPU", "thread=0"), Some("1"));
}

#[test]
fn a_latency_above_the_limit_ends_it_unless_it_is_to_go_on() {
    let words = "interval=100us duration=50ms above=0us";
    let Some(ended) = deterministic(words).boot() else {
        return;
    };
    let stopped = read(&ended);
    assert_eq!(stopped.threads[0].0.set.n, 1);
    let [exceeded] = stopped.exceeded[..] else {
        panic!("{:?}", stopped.told)
    };
    assert_eq!((exceeded.set, exceeded.index), (0, 0));
    assert_eq!(exceeded.value, stopped.threads[0].0.set.max);

    let ended = deterministic(&format!("{words} go-on=yes")).boot().unwrap();
    let went_on = read(&ended);
    assert_eq!(went_on.threads[0].0.set.n, 500);
    // The first ones are listed.
    assert_eq!(went_on.exceeded.len(), 64);
    assert!(went_on.exceeded.is_sorted_by_key(|one| one.index));
}

#[test]
fn no_cpu_goes_on_measuring_when_the_records_cannot_be_written() {
    let guest = Guest {
        cpus: 2,
        ..Guest::new(env!("CARGO_BIN_EXE_unread"), "cpus=2 irq=off")
    };
    let Some(ended) = guest.boot() else { return };
    assert_eq!(ended.status, DONE, "{}", ended.text);
}

#[test]
fn loops_end_it_too() {
    let Some(ended) = deterministic("interval=1ms loops=20").boot() else {
        return;
    };
    assert_eq!(read(&ended).threads[0].0.set.n, 20);
}

#[test]
fn what_needs_a_kernel_is_told_or_refused() {
    let words = "interval=1ms duration=10ms";
    let Some(ended) = deterministic(&format!("{words} trace=10")).boot() else {
        return;
    };
    assert_eq!(ended.status, DONE);
    let notices = read(&ended).told.notices();
    assert!(
        notices.iter().any(|text| text.contains("trace=")),
        "{notices:?}"
    );
    for (rest, what) in [
        ("threads=2", "cpus="),
        ("threads=2 cpus=2 cpu=1", "two threads on one CPU"),
        ("threads=2 cpus=2 cpu=1,2", "cpu must be from 0 to 1"),
        ("phases=0", "phases must be"),
        ("cpu=1", "not all requested CPUs started"),
    ] {
        let guest = Guest {
            cpus: 2,
            ..guest(&format!("{words} {rest}"))
        };
        let ended = guest.boot().unwrap();
        assert_eq!(ended.status, FAILED, "{rest}: {}", ended.text);
        let failure = read(&ended).told.failure().unwrap();
        assert!(failure.contains(what), "{failure}");
    }
}

fn read(ended: &Ended) -> Read {
    let told = RecordList::read(Stream::Measured, ended.text.as_bytes());
    let begins = told.all(|record| match record {
        Record::Begins(it) => Some(it.origin_ns),
        _ => None,
    });
    let origin_ns = begins.first().copied();
    let sets = told.sets().into_iter().map(|lists| {
        lists.check();
        let labels = lists.set.labels;
        assert_eq!(labels, format!("thread={}", lists.set.number));
        assert_eq!(Some(lists.set.first), origin_ns);
        let policy = told.fact("scheduling policy", labels);
        assert_eq!(policy, Some("interrupt"));
        let missed = told.value("missed", labels).unwrap() as u64;
        (lists, missed)
    });
    Read {
        origin_ns,
        threads: sets.collect(),
        exceeded: told.all(|record| match record {
            Record::Exceeded(it) => Some(*it),
            _ => None,
        }),
        timer_interrupts: told.counter("timer interrupts").unwrap_or(0),
        told,
    }
}
