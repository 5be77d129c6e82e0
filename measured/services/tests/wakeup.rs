//! What a recorder reports, against a model that keeps everything in maps.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tare_services::output::Output;
use tare_services::platform::{Memory, MemoryError, Platform, Prepared, WriteError};
use tare_services::wakeup::{Identity, Pace, Plan, Recorder, Snapshot, arena_bytes};
use tare_wire::line::{Line, MAX_PAYLOAD, decode};
use tare_wire::record::{Record, Thread};

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

/// Is what a report says of one thread.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    counts: Vec<(u64, u64, u64)>,
    peaks: Vec<(u64, u64)>,
    raw: Vec<(u64, u64)>,
    bins: Vec<[u64; 5]>,
    woken: u64,
    missed: u64,
    extremes_ns: (u64, u64),
    sum_ns: u64,
    peaks_seen: u64,
    uncounted: u64,
    uncounted_ns: u64,
    uncounted_max_ns: u64,
    bin_ns: u64,
}

const NUMBER: u32 = 3;

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
        .report(identity, &mut lines, &mut Output::default())
        .unwrap();
    let mut report = Report::default();
    let mut room = [0; MAX_PAYLOAD];
    for line in lines.0.split(|byte| *byte == b'\n') {
        if let Line::Record { record, .. } = decode(line, &mut room) {
            report.read(&record);
        }
    }
    report
}

impl Report {
    fn read(&mut self, record: &Record<'_>) {
        match record {
            Record::Thread(thread) => self.sums(thread),
            Record::LatencyCounts(list) => {
                let mut before = (u64::MAX, 0);
                for row in list.rows.rows::<4>() {
                    let [thread, phase, step, count] = row.unwrap();
                    assert_eq!(thread, NUMBER.into());
                    let base = if before.0 == phase { before.1 } else { 0 };
                    before = (phase, base + step);
                    self.counts.push((phase, base + step, count));
                }
            }
            Record::Peaks(list) => {
                let rows = list.rows.rows::<3>().map(Result::unwrap);
                self.peaks.extend(rows.map(|[_, n, ns]| (n, ns)));
            }
            Record::RawLatencies(list) => {
                let mut activation = 0;
                for row in list.rows.rows::<3>() {
                    let [_, step, latency_ns] = row.unwrap();
                    activation += step;
                    self.raw.push((activation, latency_ns));
                }
            }
            Record::LatencyEnvelope(list) => {
                let rows = list.rows.rows::<6>().map(Result::unwrap);
                self.bins.extend(rows.map(|[_, rest @ ..]| rest));
            }
            other => panic!("{other:?}"),
        }
    }

    fn sums(&mut self, thread: &Thread<'_>) {
        assert_eq!((thread.number, thread.tid), (NUMBER, 7));
        self.woken = thread.woken;
        self.missed = thread.missed;
        self.extremes_ns = (thread.min_ns, thread.max_ns);
        self.sum_ns = thread.sum_ns;
        self.peaks_seen = thread.peaks_seen;
        self.uncounted = thread.uncounted;
        self.uncounted_ns = thread.uncounted_ns;
        self.uncounted_max_ns = thread.uncounted_max_ns;
        self.bin_ns = thread.bin_ns;
    }

    /// Checks what must fit together in every report: the laboratory refuses it otherwise.
    fn check(&self) {
        let counted: u64 = self.counts.iter().map(|(_, _, count)| count).sum();
        assert_eq!(counted + self.uncounted, self.woken);
        let sum: u64 = self.counts.iter().map(|(_, ns, count)| ns * count).sum();
        assert_eq!(sum + self.uncounted_ns, self.sum_ns);
        assert!(self.counts.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
        assert_eq!(self.bins.iter().map(|bin| bin[1]).sum::<u64>(), self.woken);
        assert_eq!(self.bins.iter().map(|bin| bin[2]).sum::<u64>(), self.sum_ns);
        for list in [&self.peaks, &self.raw] {
            assert!(list.is_sorted_by(|a, b| a.0 < b.0));
            let last = list.last().map_or(0, |(activation, _)| activation + 1);
            assert!(last <= self.woken + self.missed);
        }
    }
}

/// Keeps all in maps, and says afterwards what a recorder with `room` different values must report.
fn model(plan: &Plan, wakeups: &[(u64, u64)], missed: u64, room: usize) -> Report {
    let interval_ns = plan.interval_of(NUMBER);
    let duration_ns = plan.duration_ns.unwrap();
    let threshold_ns = plan.threshold_ns.unwrap_or(interval_ns);
    let phase_ns = (duration_ns / u64::from(plan.phases)).max(1);
    let mut report = Report {
        missed,
        bin_ns: duration_ns.div_ceil(plan.bins.into()),
        extremes_ns: (u64::MAX, 0),
        ..Report::default()
    };
    let mut counts = BTreeMap::<(u64, u64), u64>::new();
    let mut bins = BTreeMap::<u64, [u64; 4]>::new();
    let mut known = BTreeSet::new();
    for &(activation, latency_ns) in wakeups {
        let planned_ns = activation * interval_ns;
        let phase = (planned_ns / phase_ns).min(u64::from(plan.phases) - 1);
        report.woken += 1;
        report.sum_ns += latency_ns;
        let (min, max) = report.extremes_ns;
        report.extremes_ns = (min.min(latency_ns), max.max(latency_ns));
        if report.raw.len() < plan.raw.min(plan.activations(NUMBER)) as usize {
            report.raw.push((activation, latency_ns));
        }
        let mut is_listed = false;
        if latency_ns >= threshold_ns {
            report.peaks_seen += 1;
            is_listed = report.peaks.len() < plan.capacity.min(plan.activations(NUMBER)) as usize;
            if is_listed {
                report.peaks.push((activation, latency_ns));
            }
        }
        if known.len() < room {
            known.insert((phase, latency_ns));
        }
        if known.contains(&(phase, latency_ns)) || is_listed {
            *counts.entry((phase, latency_ns)).or_default() += 1;
        } else {
            report.uncounted += 1;
            report.uncounted_ns += latency_ns;
            report.uncounted_max_ns = report.uncounted_max_ns.max(latency_ns);
        }
        let bin = (planned_ns / report.bin_ns).min(u64::from(plan.bins) - 1);
        let bin = bins.entry(bin).or_insert([0, 0, u64::MAX, 0]);
        *bin = [
            bin[0] + 1,
            bin[1] + latency_ns,
            bin[2].min(latency_ns),
            bin[3].max(latency_ns),
        ];
    }
    let rows = counts.into_iter();
    report.counts = rows.map(|((phase, ns), n)| (phase, ns, n)).collect();
    let bins = bins.into_iter();
    report.bins = bins.map(|(n, [a, b, c, d])| [n, a, b, c, d]).collect();
    if report.woken == 0 {
        report.extremes_ns = (0, 0);
    }
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
            recorder.record(due.activation, latency_ns);
            wakeups.push((due.activation, latency_ns));
            let before = pace.woke(due.planned_ns + latency_ns);
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
        let seen = progress.snapshot().woken;
        assert!(seen >= woken);
        woken = seen;
    }
    measuring.join().unwrap();
    let seen = progress.snapshot();
    assert_eq!(
        (seen.min_ns, seen.max_ns, seen.last_ns),
        (500, 10_499, 10_499)
    );
    assert_eq!((seen.woken, seen.missed), (10_000, 3));
    assert_eq!(seen.sum_ns, 10_000 * 500 + 9_999 * 10_000 / 2);
}
