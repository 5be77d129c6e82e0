//! The report of a recorder, compared with a simple model.

use proptest::prelude::*;
use tare_measured::output::Output;
use tare_measured::platform::{Memory, MemoryError, Platform, Prepared, WriteError};
use tare_measured::session::Stop;
use tare_measured::wakeup::{Identity, Pace, Plan, Recorder, arena_bytes};
use tare_testkit::records::{Lists, RecordList, Room};
use tare_wire::line::Stream;
use tare_wire::phases::{SLOTS, slot_begin_ns};
use tare_wire::record::{Live, Record, Set, Unit};

/// A platform that only stores the lines.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Platform for Lines {
    type Error = Stop;

    fn version(&self) -> &'static str {
        "0"
    }

    fn environment(&self) -> &'static str {
        "linux"
    }

    fn prepare(&mut self, _cpu: Option<u32>) -> Result<Prepared, &'static str> {
        Ok(Prepared::default())
    }

    fn memory(&mut self, wanted_bytes: usize) -> Result<Memory, MemoryError> {
        Err(MemoryError {
            wanted_bytes,
            reason: "there is none",
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

const NUMBER: u32 = 3;
const ORIGIN_NS: u64 = 5_000_000_000;

/// Writes the records and reads them back: the set with its lists, and the missed activations.
fn report(recorder: Recorder, period: u64) -> (Lists, u64) {
    let identity = Identity {
        tid: 7,
        cpu: Some(1),
        policy: "fifo",
        priority: 95,
    };
    let mut lines = Lines::default();
    // As if there had been earlier sets.
    let mut output = Output::new(&mut lines);
    for number in 0..NUMBER {
        let set = Set {
            number,
            ..Set::default()
        };
        output.put(&Record::Set(set)).unwrap();
    }
    recorder.report(identity, ORIGIN_NS, &mut output).unwrap();
    let told = RecordList::read(Stream::Measured, &lines.0);
    let interval = format!("{period} ns");
    for (fact, value) in [
        ("thread id", "7"),
        ("CPU", "1"),
        ("scheduling policy", "fifo"),
        ("priority", "95"),
        ("interval", &interval),
    ] {
        assert_eq!(told.fact(fact, "thread=3"), Some(value));
    }
    assert!(told.value("recording time", "thread=3").is_some());
    let lists = told.sets().pop().unwrap();
    lists.check();
    (lists, told.value("missed", "thread=3").unwrap() as u64)
}

/// Returns the expected report of a recorder with room for `values` different values.
fn model(plan: &Plan, wakeups: &[(u64, u64)], values: usize) -> Lists {
    let period = plan.interval_of(NUMBER);
    let duration_ns = plan.duration_ns.unwrap();
    let phase_ns = (duration_ns / u64::from(plan.phases)).max(1);
    let begins = (0..plan.phases).flat_map(|phase| {
        let begin = move |slot| u64::from(phase) * phase_ns + slot_begin_ns(phase_ns, slot);
        (0..SLOTS).map(begin)
    });
    let begins: Vec<u64> = begins.filter(|_| plan.phases > 1).collect();
    let set = Set {
        number: NUMBER,
        measure: "latency",
        labels: "thread=3",
        unit: Unit::Ns,
        first: ORIGIN_NS,
        period,
        threshold: plan.threshold_ns.unwrap_or(period),
        bin: duration_ns.div_ceil(plan.bins.into()),
        ..Set::default()
    };
    let most = plan.activations(NUMBER);
    let room = Room {
        values,
        events: plan.capacity.min(most) as usize,
        raw: plan.raw.min(most) as usize,
        bins: plan.bins.into(),
    };
    let samples = wakeups
        .iter()
        .map(|&(index, ns)| (index, index * period, ns));
    Lists::fold(set, &begins, samples, room)
}

fn recorder(plan: &Plan) -> Recorder {
    #[derive(Clone)]
    #[repr(C, align(64))]
    struct Line([u8; 64]);
    let bytes = arena_bytes(plan, NUMBER);
    let lines = vec![Line([0; 64]); bytes.div_ceil(64)].leak();
    // SAFETY: a block of `bytes` bytes that is never freed and is lent once.
    let memory = unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), bytes) };
    Recorder::new(plan, NUMBER, memory)
}

/// The interval of the thread.
const INTERVAL_NS: u64 = 100_000;

/// Generates plans whose lists may be too short.
fn plans() -> impl Strategy<Value = Plan> {
    let time = (1_u64..400, 1_u32..8, 1_u32..50);
    let lists = (0_u64..50, 1_u64..50, prop::option::of(1_u64..200_000));
    (time, lists).prop_map(
        |((activations, phases, bins), (raw, capacity, threshold_ns))| Plan {
            phases,
            bins,
            raw,
            capacity,
            threshold_ns,
            ..Plan::new(INTERVAL_NS, activations * INTERVAL_NS)
        },
    )
}

/// Generates latencies: mostly short ones of few values, some arbitrary, some that miss
/// activations.
fn latencies() -> impl Strategy<Value = Vec<u64>> {
    let latency = prop_oneof![
        6 => 1_000_u64..1_020,
        3 => 0_u64..300_000,
        1 => 300_000_u64..5_000_000,
    ];
    prop::collection::vec(latency, 1..400)
}

proptest! {
    #[test]
    fn every_wakeup_of_a_plan_is_reported(plan in plans(), latencies in latencies()) {
        let mut recorder = recorder(&plan);
        let mut pace = Pace::new(&plan, NUMBER);
        let (mut wakeups, mut missed) = (vec![], 0);
        let mut latencies = latencies.into_iter().cycle();
        while let (Some(due), Some(latency_ns)) = (pace.due(), latencies.next()) {
            recorder.record(due.index, latency_ns);
            wakeups.push((due.index, latency_ns));
            let before = pace.woke(due.at_ns + latency_ns);
            recorder.missed(before);
            missed += before;
        }
        prop_assert_eq!(wakeups.len() as u64 + missed, plan.activations(NUMBER));
        let expected = (model(&plan, &wakeups, usize::MAX), missed);
        prop_assert_eq!(report(recorder, INTERVAL_NS), expected);
    }

    #[test]
    fn what_finds_no_room_is_summed_up(plan in plans(), latencies in latencies()) {
        // The table for one wake-up has 64 entries, of which 48 are used.
        let plan = Plan { duration_ns: Some(INTERVAL_NS), ..plan };
        let mut recorder = recorder(&plan);
        let wakeups: Vec<_> = (0..).zip(latencies).collect();
        for (activation, latency_ns) in &wakeups {
            recorder.record(*activation, *latency_ns);
        }
        prop_assert_eq!(report(recorder, INTERVAL_NS).0, model(&plan, &wakeups, 48));
    }
}

#[test]
fn long_lists_go_over_many_lines() {
    let plan = Plan {
        phases: 3,
        raw: 20_000,
        threshold_ns: Some(40_000),
        ..Plan::new(INTERVAL_NS, 50_000 * INTERVAL_NS)
    };
    let mut recorder = recorder(&plan);
    // A full period of a linear congruential generator: all values differ.
    let latency = |n: u64| (n * 30_009 + 7) % 65_536;
    let wakeups: Vec<_> = (0..50_000).map(|n| (n, latency(n))).collect();
    for (activation, latency_ns) in &wakeups {
        recorder.record(*activation, *latency_ns);
    }
    let (reported, _) = report(recorder, INTERVAL_NS);
    assert_eq!(reported.counts.len(), 50_000);
    assert_eq!(reported, model(&plan, &wakeups, usize::MAX));
}

#[test]
fn calibrating_leaves_nothing_behind() {
    for plan in [
        Plan::new(INTERVAL_NS, INTERVAL_NS),
        Plan::new(1_000, 1 << 30),
    ] {
        let mut recorder = recorder(&plan);
        let clock = std::time::Instant::now();
        recorder.calibrate(|| clock.elapsed().as_nanos() as u64);
        assert_eq!(recorder.progress().snapshot(), Live::default());
        recorder.record(0, 1_234);
        assert_eq!(recorder.progress().snapshot().min, 1_234);
        let (reported, _) = report(recorder, plan.interval_ns);
        assert_eq!(reported, model(&plan, &[(0, 1_234)], usize::MAX));
    }
}

#[test]
fn another_thread_sees_how_far_one_is() {
    let plan = Plan::new(INTERVAL_NS, 1_000_000_000);
    let mut recorder = recorder(&plan);
    let progress = recorder.progress();
    let measuring = std::thread::spawn(move || {
        for activation in 0..10_000 {
            recorder.record(activation, 500 + activation);
        }
        recorder.missed(3);
    });
    let mut woken = 0;
    while woken < 10_000 {
        let seen = progress.snapshot().n;
        assert!(seen >= woken);
        woken = seen;
    }
    measuring.join().unwrap();
    let seen = progress.snapshot();
    let sum = 10_000 * 500 + 9_999 * 10_000 / 2;
    let expected = Live {
        n: 10_000,
        missed: 3,
        min: 500,
        last: 10_499,
        sum,
        max: 10_499,
        ..Live::default()
    };
    assert_eq!(seen, expected);
}
