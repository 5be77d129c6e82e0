//! What a recorder reports, against a model that keeps everything in maps.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tare_services::output::Output;
use tare_services::platform::{Memory, MemoryError, Platform, Prepared, WriteError};
use tare_services::wakeup::{Identity, Pace, Plan, Recorder, Snapshot, arena_bytes};
use tare_wire::line::{Line, MAX_PAYLOAD, decode};
use tare_wire::phases::{SLOTS, slot_begin_ns};
use tare_wire::record::{Record, Set, Unit};
use tare_wire::rows;

/// Keeps the lines; nothing else is asked of it.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Platform for Lines {
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

    fn monotonic_ns(&self) -> Option<u64> {
        None
    }

    fn reference_ns(&self) -> Option<u64> {
        None
    }

    fn reference_detail(&self) -> &str {
        ""
    }

    fn steering_ppm(&self) -> Option<f64> {
        None
    }

    fn pause(&self, _ns: u64) {}

    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        Ok(())
    }
}

/// What a report says of one thread.
#[derive(Debug, Default, PartialEq)]
struct Report {
    /// Rows of (part, latency, count).
    counts: Vec<(u64, u64, u64)>,
    peaks: Vec<(u64, u64)>,
    raw: Vec<(u64, u64)>,
    bins: Vec<[u64; 5]>,
    /// When each part begins, counted from the first activation; empty if there is one.
    parts: Vec<u64>,
    set: Set<'static>,
    missed: u64,
}

const NUMBER: u32 = 3;
const ORIGIN_NS: u64 = 5_000_000_000;

/// Writes the records and reads them again.
fn report(recorder: Recorder) -> Report {
    let identity = Identity {
        tid: 7,
        cpu: Some(1),
        policy: "fifo",
        priority: 95,
    };
    let mut lines = Lines::default();
    recorder
        .report(identity, ORIGIN_NS, &mut lines, &mut Output::default())
        .unwrap();
    let mut report = Report::default();
    let mut facts = vec![];
    let mut room = [0; MAX_PAYLOAD];
    for line in lines.0.split(|byte| *byte == b'\n') {
        match decode(line, &mut room) {
            Line::Record {
                record: Record::Fact(fact),
                ..
            } => facts.push([fact.name, fact.labels, fact.value].join("; ")),
            Line::Record { record, .. } => report.read(&record),
            other => assert_eq!(other, Line::Other),
        }
    }
    let interval = format!("interval; thread=3; {} ns", report.set.period);
    let expected = [
        "thread id; thread=3; 7",
        "CPU; thread=3; 1",
        "scheduling policy; thread=3; fifo",
        "priority; thread=3; 95",
        &interval,
    ];
    assert_eq!(facts, expected);
    report
}

impl Report {
    fn read(&mut self, record: &Record<'_>) {
        let period = self.set.period;
        let samples = |list| {
            let samples = rows::samples(list, move |set| (set == NUMBER).then_some(period));
            samples.map(move |sample| {
                let sample = sample.unwrap();
                assert_eq!(sample.time, sample.index * period);
                (sample.index, sample.value)
            })
        };
        match *record {
            Record::Set(set) => {
                assert_eq!((set.measure, set.labels), ("latency", "thread=3"));
                self.set = Set {
                    measure: "",
                    labels: "",
                    ..set
                };
            }
            Record::Value(value) => {
                assert_eq!(value.labels, "thread=3");
                match value.measure {
                    "missed" => self.missed = value.value as u64,
                    other => assert_eq!((other, value.unit), ("recording time", "ns")),
                }
            }
            Record::Counts(list) => {
                for row in rows::counts(list) {
                    let row = row.unwrap();
                    assert_eq!(row.set, NUMBER);
                    self.counts.push((row.part.into(), row.value, row.count));
                }
            }
            Record::Parts(list) => {
                let parts = rows::parts(list).map(Result::unwrap);
                self.parts.extend(parts.map(|part| part.begin));
            }
            Record::Events(list) => self.peaks.extend(samples(list)),
            Record::Raw(list) => self.raw.extend(samples(list)),
            Record::Envelope(list) => {
                let bins = rows::bins(list).map(|bin| bin.unwrap().pack());
                self.bins.extend(bins.map(|[_, rest @ ..]| rest));
            }
            ref other => panic!("{other:?}"),
        }
    }

    /// Checks what must fit together in every report: the laboratory refuses it otherwise.
    fn check(&self) {
        let counted: u64 = self.counts.iter().map(|(_, _, count)| count).sum();
        assert_eq!(counted + self.set.uncounted, self.set.n);
        let sum: u64 = self.counts.iter().map(|(_, ns, count)| ns * count).sum();
        assert_eq!(sum + self.set.uncounted_sum, self.set.sum);
        assert!(self.counts.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
        assert_eq!(self.bins.iter().map(|bin| bin[1]).sum::<u64>(), self.set.n);
        assert_eq!(
            self.bins.iter().map(|bin| bin[2]).sum::<u64>(),
            self.set.sum
        );
        for list in [&self.peaks, &self.raw] {
            assert!(list.is_sorted_by(|a, b| a.0 < b.0));
            let last = list.last().map_or(0, |(activation, _)| activation + 1);
            assert!(last <= self.set.n + self.missed);
        }
    }
}

/// Keeps all in maps, and says afterwards what a recorder with `room` different values must report.
fn model(plan: &Plan, wakeups: &[(u64, u64)], missed: u64, room: usize) -> Report {
    let interval_ns = plan.interval_of(NUMBER);
    let duration_ns = plan.duration_ns.unwrap();
    let threshold_ns = plan.threshold_ns.unwrap_or(interval_ns);
    let phase_ns = (duration_ns / u64::from(plan.phases)).max(1);
    let slots = if plan.phases > 1 { SLOTS } else { 1 };
    let begins_of = |phase| {
        let begin = move |slot| u64::from(phase) * phase_ns + slot_begin_ns(phase_ns, slot);
        (0..slots).map(begin)
    };
    let begins: Vec<u64> = (0..plan.phases).flat_map(begins_of).collect();
    let mut set = Set {
        number: NUMBER,
        unit: Unit::Ns,
        min: u64::MAX,
        first: ORIGIN_NS,
        last: ORIGIN_NS,
        period: interval_ns,
        threshold: threshold_ns,
        bin: duration_ns.div_ceil(plan.bins.into()),
        parts: plan.phases * slots,
        ..Set::default()
    };
    let mut report = Report {
        missed,
        ..Report::default()
    };
    let mut counts = BTreeMap::<(u64, u64), u64>::new();
    let mut bins = BTreeMap::<u64, [u64; 4]>::new();
    let mut known = BTreeSet::new();
    for &(activation, latency_ns) in wakeups {
        let planned_ns = activation * interval_ns;
        let part = begins
            .iter()
            .rposition(|begin| *begin <= planned_ns)
            .unwrap() as u64;
        set.n += 1;
        set.sum += latency_ns;
        set.min = set.min.min(latency_ns);
        set.max = set.max.max(latency_ns);
        set.last = ORIGIN_NS + planned_ns + latency_ns;
        if report.raw.len() < plan.raw.min(plan.activations(NUMBER)) as usize {
            report.raw.push((activation, latency_ns));
        }
        let mut is_listed = false;
        if latency_ns >= threshold_ns {
            set.seen += 1;
            is_listed = report.peaks.len() < plan.capacity.min(plan.activations(NUMBER)) as usize;
            if is_listed {
                report.peaks.push((activation, latency_ns));
            } else {
                set.unkept_max = set.unkept_max.max(latency_ns);
                set.unkept_sum += latency_ns;
            }
        }
        if known.len() < room {
            known.insert((part, latency_ns));
        }
        if known.contains(&(part, latency_ns)) || is_listed {
            *counts.entry((part, latency_ns)).or_default() += 1;
        } else {
            set.uncounted += 1;
            set.uncounted_sum += latency_ns;
            set.uncounted_max = set.uncounted_max.max(latency_ns);
        }
        let bin = (planned_ns / set.bin).min(u64::from(plan.bins) - 1);
        let bin = bins.entry(bin).or_insert([0, 0, u64::MAX, 0]);
        *bin = [
            bin[0] + 1,
            bin[1] + latency_ns,
            bin[2].min(latency_ns),
            bin[3].max(latency_ns),
        ];
    }
    let rows = counts.into_iter();
    report.counts = rows.map(|((part, ns), n)| (part, ns, n)).collect();
    let bins = bins.into_iter();
    report.bins = bins.map(|(n, [a, b, c, d])| [n, a, b, c, d]).collect();
    if begins.len() > 1 {
        report.parts = begins;
    }
    if set.n == 0 {
        set.min = 0;
    }
    set.kept = report.peaks.len() as u64;
    set.raw = report.raw.len() as u64;
    report.set = set;
    report
}

fn recorder(plan: &Plan) -> Recorder {
    #[derive(Clone)]
    #[repr(C, align(64))]
    struct Line([u8; 64]);
    let bytes = arena_bytes(plan, NUMBER);
    let lines = vec![Line([0; 64]); bytes.div_ceil(64)].leak();
    // SAFETY: `bytes` bytes of a block that lives for ever and is lent once.
    let memory = unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), bytes) };
    Recorder::new(plan, NUMBER, memory)
}

/// Is the interval of the thread.
const INTERVAL_NS: u64 = 100_000;

/// Makes plans whose lists may be too short for what comes.
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

/// Makes latencies: mostly short ones of few values, some of any, some that miss activations.
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
        let reported = report(recorder);
        reported.check();
        prop_assert_eq!(reported, model(&plan, &wakeups, missed, usize::MAX));
    }

    #[test]
    fn what_finds_no_room_is_summed_up(plan in plans(), latencies in latencies()) {
        // The table is made for one wake-up: 64 entries, of which 48 are used.
        let plan = Plan { duration_ns: Some(INTERVAL_NS), ..plan };
        let mut recorder = recorder(&plan);
        let wakeups: Vec<_> = (0..).zip(latencies).collect();
        for (activation, latency_ns) in &wakeups {
            recorder.record(*activation, *latency_ns);
        }
        let reported = report(recorder);
        reported.check();
        prop_assert_eq!(reported, model(&plan, &wakeups, 0, 48));
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
    // A full period of a linear congruential generator: all values are different.
    let latency = |n: u64| (n * 30_009 + 7) % 65_536;
    let wakeups: Vec<_> = (0..50_000).map(|n| (n, latency(n))).collect();
    for (activation, latency_ns) in &wakeups {
        recorder.record(*activation, *latency_ns);
    }
    let reported = report(recorder);
    reported.check();
    assert_eq!(reported.counts.len(), 50_000);
    assert_eq!(reported, model(&plan, &wakeups, 0, usize::MAX));
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
        assert_eq!(recorder.progress().snapshot(), Snapshot::default());
        recorder.record(0, 1_234);
        assert_eq!(recorder.progress().snapshot().min_ns, 1_234);
        let reported = report(recorder);
        reported.check();
        assert_eq!(reported, model(&plan, &[(0, 1_234)], 0, usize::MAX));
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
    assert_eq!(
        (seen.min_ns, seen.max_ns, seen.last_ns),
        (500, 10_499, 10_499)
    );
    assert_eq!((seen.n, seen.missed), (10_000, 3));
    assert_eq!(seen.sum_ns, 10_000 * 500 + 9_999 * 10_000 / 2);
}
