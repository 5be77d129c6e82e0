//! Wake-ups on the unikernel: what the records say, and what is refused.

mod common;

use common::{DONE, Ended, FAILED, Guest};
use tare_wire::line::{Line, MAX_PAYLOAD, decode};
use tare_wire::record::{Exceeded, Record};
use tare_wire::wakeup::SLOTS;

const BENCH: &str = env!("CARGO_BIN_EXE_bench");

/// Is one thread's sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    cpu: Option<u32>,
    interval_ns: u64,
    woken: u64,
    missed: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u64,
    peaks: u64,
    raw: u64,
}

/// Is what a test wants to know of one guest.
#[derive(Debug, Default)]
struct Read {
    origin_ns: Option<u64>,
    threads: Vec<Sums>,
    /// Rows of (thread, slot, latency, count).
    counts: Vec<[u64; 4]>,
    exceeded: Vec<Exceeded>,
    timer_interrupts: u64,
    timer: Option<String>,
    notices: Vec<String>,
    failure: Option<String>,
    last: &'static str,
}

fn guest(words: &str) -> Guest {
    let words = format!("service=bench workload=wakeup {words} bins=10");
    Guest {
        memory_mib: 128,
        ..Guest::new(BENCH, &words)
    }
}

/// Counts instructions as time: a run can be repeated exactly.
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
        let [thread] = read.threads[..] else {
            panic!("{read:?}")
        };
        assert_eq!(thread.woken + thread.missed, 300, "{machine}: {thread:?}");
        assert!(thread.woken > 0 && thread.raw == thread.woken);
        let counted: u64 = read.counts.iter().map(|row| row[3]).sum();
        let sum: u64 = read.counts.iter().map(|row| row[2] * row[3]).sum();
        assert_eq!((counted, sum), (thread.woken, thread.sum_ns));
        assert!(read.timer_interrupts > 0, "{machine}");
        assert_eq!(read.last, "end");
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
    let [thread] = read.threads[..] else {
        panic!("{read:?}")
    };
    assert_eq!((thread.woken, thread.missed, thread.raw), (1_000, 0, 10));
    assert!(thread.max_ns < 100_000, "{thread:?}");
    for phase in 0..4 {
        let of_phase = read
            .counts
            .iter()
            .filter(|row| row[1] / u64::from(SLOTS) == phase);
        assert_eq!(of_phase.map(|row| row[3]).sum::<u64>(), 250, "{phase}");
    }
    // One that comes early is followed by another for the rest.
    assert!((1_000..=2_000).contains(&read.timer_interrupts));
    assert!(read.timer.unwrap().contains("APIC"));
}

#[test]
fn a_tick_shares_the_timer() {
    let words = "interval=10ms duration=1s irq=on timer-hz=1000";
    let Some(ended) = deterministic(words).boot() else {
        return;
    };
    let read = read(&ended);
    assert_eq!(read.threads[0].woken, 100);
    // Up to the last wake-up; a tick may fall together with one, and one that comes early is followed by
    // another.
    assert!(
        (990..=1_200).contains(&read.timer_interrupts),
        "{}",
        read.timer_interrupts
    );
}

#[test]
fn each_thread_has_a_cpu_of_its_own() {
    let words = "interval=2ms distance=1ms duration=200ms threads=2 cpus=3";
    for (cpu, expected) in [("", [0, 1]), ("cpu=2,1", [1, 2]), ("cpu=0,2", [0, 2])] {
        let guest = Guest {
            cpus: 3,
            ..guest(&format!("{words} {cpu}"))
        };
        let Some(ended) = guest.boot() else { return };
        assert_eq!(ended.status, DONE, "{cpu}: {}", ended.text);
        let threads = read(&ended).threads;
        let cpus: Vec<_> = threads.iter().map(|thread| thread.cpu).collect();
        assert_eq!(cpus, expected.map(Some), "{cpu}");
        let due: Vec<_> = threads.iter().map(|t| t.woken + t.missed).collect();
        assert_eq!(due, [100, 67], "{cpu}");
        assert_eq!(threads[1].interval_ns, 3_000_000);
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
    assert_eq!(read(&ended).threads[0].cpu, Some(1));
}

#[test]
fn a_latency_above_the_limit_ends_it_unless_it_is_to_go_on() {
    let words = "interval=100us duration=50ms above=0us";
    let Some(ended) = deterministic(words).boot() else {
        return;
    };
    let stopped = read(&ended);
    assert_eq!(stopped.threads[0].woken, 1);
    let [exceeded] = stopped.exceeded[..] else {
        panic!("{stopped:?}")
    };
    assert_eq!(exceeded.activation, 0);
    assert_eq!(exceeded.latency_ns, stopped.threads[0].max_ns);

    let ended = deterministic(&format!("{words} go-on=yes")).boot().unwrap();
    let went_on = read(&ended);
    assert_eq!(went_on.threads[0].woken, 500);
    // The first ones are listed.
    assert_eq!(went_on.exceeded.len(), 64);
    assert!(went_on.exceeded.is_sorted_by_key(|one| one.activation));
}

#[test]
fn loops_end_it_too() {
    let Some(ended) = deterministic("interval=1ms loops=20").boot() else {
        return;
    };
    assert_eq!(read(&ended).threads[0].woken, 20);
}

#[test]
fn what_needs_a_kernel_is_told_or_refused() {
    let words = "interval=1ms duration=10ms";
    let Some(ended) = deterministic(&format!("{words} trace=10")).boot() else {
        return;
    };
    assert_eq!(ended.status, DONE);
    let notices = read(&ended).notices;
    assert!(
        notices.iter().any(|text| text.contains("trace=")),
        "{notices:?}"
    );
    for (rest, what) in [
        ("threads=2", "cpus="),
        ("threads=2 cpus=2 cpu=1", "two threads on one CPU"),
        ("threads=2 cpus=2 cpu=1,2", "cpu must be from 0 to 1"),
        ("phases=0", "phases must be"),
        ("cpu=1", "did not all start"),
    ] {
        let guest = Guest {
            cpus: 2,
            ..guest(&format!("{words} {rest}"))
        };
        let ended = guest.boot().unwrap();
        assert_eq!(ended.status, FAILED, "{rest}: {}", ended.text);
        let failure = read(&ended).failure.unwrap();
        assert!(failure.contains(what), "{failure}");
    }
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
            Record::Begins(begins) => read.origin_ns = Some(begins.origin_ns),
            Record::Thread(thread) => {
                assert_eq!((thread.policy, thread.priority), ("interrupt", 0));
                read.threads.push(Sums {
                    cpu: thread.cpu,
                    interval_ns: thread.interval_ns,
                    woken: thread.woken,
                    missed: thread.missed,
                    min_ns: thread.min_ns,
                    max_ns: thread.max_ns,
                    sum_ns: thread.sum_ns,
                    peaks: thread.peaks_kept,
                    raw: thread.raw_kept,
                });
            }
            Record::LatencyCounts(list) => {
                let mut before = (u64::MAX, 0, 0);
                for row in list.rows.rows::<4>() {
                    let [thread, slot, step, count] = row.unwrap();
                    let goes_on = (before.0, before.1) == (thread, slot);
                    let base = if goes_on { before.2 } else { 0 };
                    before = (thread, slot, base + step);
                    read.counts.push([thread, slot, base + step, count]);
                }
            }
            Record::Exceeded(exceeded) => read.exceeded.push(exceeded),
            Record::Counter(counter) if counter.name == "timer interrupts" => {
                read.timer_interrupts = counter.count;
            }
            Record::Fact(fact) if fact.name == "wake-up timer" => {
                read.timer = Some(fact.value.to_owned());
            }
            Record::Notice(notice) => read.notices.push(notice.text.to_owned()),
            Record::Failure(failure) => read.failure = Some(failure.text.to_owned()),
            _ => {}
        }
    }
    read
}
