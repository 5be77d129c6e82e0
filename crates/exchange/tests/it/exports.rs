//! What is exported is laid out as the tools themselves do it.

use crate::common::{self, JSON, QUIET, imported, latencies};
use jiff::Timestamp;
use proptest::prelude::*;
use tare_cyclictest::Latencies;
use tare_cyclictest::format::{
    Head, Histogram, State, System, Unit, breaks, height, histogram, json, policy, spikes, status,
    status_lines, values,
};
use tare_exchange::csv;
use tare_exchange::hgrm::{Uncounted, hgrm};
use tare_exchange::import::read;
use tare_results::model::{
    Count, Event, Fact, Labels, Record, Samples, Schedule, SetHead, SetSamples, Unit as TimeUnit,
    Value,
};
use tare_stats::{Counts, missed_by};

const INTERVAL_NS: u64 = 100_000;

/// When the first activation was due.
const ORIGIN_NS: u64 = 1_000_000_000;

/// Adds a thread of latencies in ns to a cell, as the agent reports it: all long ones listed, none
/// kept raw.
fn thread(number: u32, all: &[u64], (record, samples): &mut (Record, Samples)) {
    let labels = Labels::default().with("thread", number);
    let mut index = 0;
    let threshold = 50_000;
    let mut missed = 0;
    let mut events = Vec::new();
    for value in all {
        if *value >= threshold {
            let at = ORIGIN_NS + index * INTERVAL_NS;
            let value = *value;
            events.push(Event { index, at, value });
        }
        let skipped = missed_by(*value, INTERVAL_NS);
        index += 1 + skipped;
        missed += skipped;
    }
    let counts = Counts::from_samples(all.to_vec());
    record.sets.push(SetHead {
        measure: "latency".to_owned(),
        labels: labels.clone(),
        unit: TimeUnit::Ns,
        n: counts.total(),
        sum: u64::try_from(counts.sum()).unwrap(),
        min: counts.min().unwrap_or(0),
        max: counts.max().unwrap_or(0),
        first: ORIGIN_NS,
        last: ORIGIN_NS + index * INTERVAL_NS,
        period: INTERVAL_NS,
        threshold,
        seen: events.len() as u64,
        kept: events.len() as u64,
        ..SetHead::default()
    });
    let rows = counts.iter();
    samples.sets.push(SetSamples {
        counts: rows.map(|(value, count)| Count { value, count }).collect(),
        events,
        ..SetSamples::default()
    });
    record.values.push(Value {
        measure: "missed".to_owned(),
        labels: labels.clone(),
        unit: String::new(),
        value: missed as f64,
    });
    let facts = [
        ("thread id", 1_234 + number),
        ("CPU", number),
        ("priority", 95),
    ];
    let program = &mut record.programs[0];
    program.facts.extend(facts.map(|(name, value)| Fact {
        name: name.to_owned(),
        labels: labels.clone(),
        value: value.to_string(),
    }));
}

/// Makes a cell that has no thread yet.
fn no_thread() -> (Record, Samples) {
    let made = imported(&read("cyclictest", QUIET).unwrap());
    let mut program = common::record(&made, 0).programs[0].clone();
    program.facts.clear();
    let record = Record {
        programs: vec![program],
        ..Record::default()
    };
    (record, Samples::default())
}

/// Makes one thread.
fn one_thread(all: &[u64]) -> Vec<Latencies> {
    let mut cell = no_thread();
    thread(0, all, &mut cell);
    Latencies::of_cell(&cell.0, &cell.1).unwrap()
}

/// Makes two threads; the first one was held up for 2.5 ms once.
fn two() -> (Record, Samples) {
    let mut cell = no_thread();
    let mut first = vec![3_999, 4_000, 5_500, 4_100, 7_000];
    first.extend([2_500_000, 4_999, 60_000]);
    thread(0, &first, &mut cell);
    thread(1, &[9_000, 2_000, 2_001], &mut cell);
    cell
}

fn two_latencies() -> Vec<Latencies> {
    let (record, samples) = two();
    Latencies::of_cell(&record, &samples).unwrap()
}

fn style(size: u64, all: bool) -> Histogram {
    let unit = Unit::Micros;
    Histogram { size, unit, all }
}

fn head() -> Head {
    let at = |second| Timestamp::from_second(second).unwrap();
    Head {
        command: "tare cyclictest -q --json=\"x\"".to_owned(),
        version: "tare 0.1.0".to_owned(),
        start: at(1_700_000_000),
        end: at(1_700_000_010),
        return_code: 0,
        system: System {
            sysname: "Linux".to_owned(),
            nodename: "lab".to_owned(),
            release: "6.1.0".to_owned(),
            version: "#1 SMP".to_owned(),
            machine: "x86_64".to_owned(),
            realtime: true,
        },
    }
}

#[test]
fn the_histogram_has_cyclictest_s_layout() {
    insta::assert_snapshot!(histogram(&two_latencies(), &style(10, false)));
    insta::assert_snapshot!("histofall", histogram(&two_latencies(), &style(10, true)));
    let one = &two_latencies()[..1];
    assert_eq!(
        histogram(one, &style(10, true)),
        histogram(one, &style(10, false))
    );
}

#[test]
fn a_response_histogram_has_the_missed_ones() {
    let response: Vec<_> = two_latencies()
        .iter()
        .map(|l| l.response().unwrap())
        .collect();
    assert_eq!(response[0].thread.woken, 8 + 24);
    insta::assert_snapshot!(histogram(&response, &style(10, false)));
}

#[test]
fn status_lines_are_cyclictest_s() {
    let state = State {
        number: 0,
        tid: 1_234,
        priority: 95,
        interval_ns: 100_000,
        woken: 10_000,
        min_ns: 3_999,
        last_ns: 5_000,
        mean_ns: 6_999,
        max_ns: 37_000,
    };
    assert_eq!(
        status(&state, Unit::Micros),
        "T: 0 ( 1234) P:95 I:100 C:  10000 Min:      3 Act:    5 Avg:    6 Max:      37\n"
    );
    assert_eq!(
        status(&state, Unit::Nanos),
        "T: 0 ( 1234) P:95 I:100 C:  10000 Min:   3999 Act:    5000 Avg:    6999 Max:   37000\n"
    );
    let new = State {
        interval_ns: 1_000_000,
        ..State::default()
    };
    assert_eq!(
        status(&new, Unit::Micros),
        "T: 0 (    0) P: 0 I:1000 C:      0 Min:1000000 Act:    0 Avg:    0 Max:       0\n"
    );
    // Means of what is cut off to µs before: 2,588 and 13 µs.
    assert_eq!(
        status_lines(&two_latencies(), |_| 60_000, Unit::Micros),
        "T: 0 ( 1234) P:95 I:100 C:      8 Min:      3 Act:   60 Avg:  323 Max:    2500\n\
         T: 1 ( 1235) P:95 I:100 C:      3 Min:      2 Act:   60 Avg:    4 Max:       9\n"
    );
    assert_eq!(
        policy("fifo", "0.1 0.2 0.3 1/2 3\n"),
        "policy: fifo: loadavg: 0.1 0.2 0.3 1/2 3          \n\n"
    );
    assert_eq!(height(2), 4);
}

#[test]
fn what_broke_what_spiked_and_what_was_seen_are_listed_as_there() {
    let threads = two_latencies();
    assert_eq!(
        breaks(&threads, Some((1, 9_999)), Unit::Micros),
        "# Thread Ids: 01234 01235\n# Break thread: 1235\n# Break value: 9\n"
    );
    assert_eq!(
        breaks(&threads, None, Unit::Micros),
        "# Thread Ids: 01234 01235\n"
    );
    // Activations 5 and, after 24 missed ones, 31 from 1 s on.
    let spiked = spikes(&threads, 59, 10, Unit::Micros);
    assert_eq!(
        spiked,
        "\nT: 0 Spike:    2500: TS:      1003000\nT: 0 Spike:      60: TS:      1003160\nspikes = 2\n\n"
    );
    assert!(spikes(&threads, 59, 1, Unit::Micros).contains("spikes = 1"));
    let all = [77_000, 69_000, 70_000, 61_000];
    assert_eq!(
        values(0, &all[..2], 1, Unit::Micros),
        "       0:       0:      77\n       0:       1:      69\n"
    );
    assert_eq!(
        values(0, &all, 2, Unit::Micros),
        "       0:       0:      77\n       0:       2:      70\n"
    );
}

#[test]
fn the_json_begins_as_cyclictest_s_and_says_more() {
    let text = json(&head(), &two_latencies(), 10, Unit::Micros).unwrap();
    insta::assert_snapshot!(text);
    let none = json(&head(), &two_latencies(), 0, Unit::Micros).unwrap();
    assert!(none.contains("\"histogram\": {      },\n"));
    serde_json::from_str::<serde_json::Value>(&none).unwrap();
}

#[test]
fn the_json_is_cyclictest_s_line_by_line() {
    let foreign = read("cyclictest", JSON).unwrap();
    let text = json(
        &head(),
        &latencies(&imported(&foreign), 0),
        60,
        Unit::Micros,
    )
    .unwrap();
    let ours = ["\"missed\"", "\"service_ns\"", "\"response_ns\""];
    let kept: Vec<&str> = text
        .lines()
        .filter(|line| !ours.iter().any(|key| line.contains(key)))
        .collect();
    // What identifies the run differs; so does a comma where our keys follow, and the node, which
    // is not told.
    let values = |line: &str| {
        let line = line.trim_end_matches(',');
        match line.split_once(": ") {
            Some((key, _)) if key.contains("node\"") => key.to_owned(),
            Some((key, value)) if value.starts_with('"') || key.contains("realtime") => {
                key.to_owned()
            }
            _ => line.to_owned(),
        }
    };
    let kept: Vec<String> = kept.into_iter().map(values).collect();
    let theirs: Vec<String> = JSON.lines().map(values).collect();
    assert_eq!(kept, theirs);
}

#[test]
fn percentiles_are_those_of_hdrhistogram() {
    let pairs = [
        (1_200, 10),
        (5_034, 100),
        (7_001, 300),
        (14_555, 5_000),
        (30_123, 900),
        (100_007, 40),
        (120_000, 3),
        (131_071, 1),
    ];
    let text = hgrm(&Counts::from_pairs(pairs).unwrap(), &Uncounted::default());
    let (lines, foot): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| !line.starts_with('#'));
    // Written by HdrHistogram's port to Python, with the step of its original.
    assert_eq!(
        lines,
        include_str!("../samples/percentiles.hgrm")
            .lines()
            .collect::<Vec<_>>()
    );
    assert_eq!(
        foot,
        [
            "#[Mean    =       16.839, StdDeviation   =        9.320]",
            "#[Max     =      131.071, Total count    =         6354]",
            "#[Buckets =            1, SubBuckets     =       131072]",
        ]
    );
    assert_eq!(
        hgrm(&Counts::default(), &Uncounted::default())
            .lines()
            .count(),
        5
    );
}

#[test]
fn tables_have_a_line_for_each_row() {
    let (record, samples) = two();
    insta::assert_snapshot!(csv::histogram(&record, &samples));
    let response = csv::response_histogram(&record, &samples).unwrap();
    assert_eq!(response.lines().count(), 1 + 8 + 24 + 3);
}

#[test]
fn phases_have_their_number_and_what_was_before_their_load_is_marked() {
    let set = |labels: &str| SetHead {
        labels: Labels::parse(labels).unwrap(),
        first: ORIGIN_NS,
        period: INTERVAL_NS,
        ..SetHead::default()
    };
    let labels = [
        "thread=0 phase=0",
        "thread=0 phase=1",
        "thread=0 phase=1 between=yes",
    ];
    let made = imported(&read("cyclictest", QUIET).unwrap());
    let record = Record {
        programs: common::record(&made, 0).programs.clone(),
        sets: labels.map(set).into(),
        ..Record::default()
    };
    let kept = |indices: &[u64]| {
        let event = |index: &u64| Event {
            index: *index,
            at: ORIGIN_NS + index * INTERVAL_NS,
            value: 5,
        };
        SetSamples {
            counts: vec![Count { value: 5, count: 1 }],
            raw: indices.iter().map(event).collect(),
            ..SetSamples::default()
        }
    };
    let samples = Samples {
        instances: Vec::new(),
        sets: vec![kept(&[0, 2]), kept(&[9]), kept(&[3])],
    };
    assert_eq!(
        csv::raw(&record, &samples),
        "thread,activation,planned_ns,phase,between,latency_ns\n0,0,0,0,0,5\n0,2,200000,0,0,5\n0,3,300000,1,1,5\n0,9,900000,1,0,5\n"
    );
    assert_eq!(
        csv::histogram(&record, &samples),
        "thread,phase,between,latency_ns,count\n0,0,0,5,1\n0,1,0,5,1\n0,1,1,5,1\n"
    );
    let mut cell = made.cells[0].0.clone();
    cell.plan.load = Schedule::parse("1s:idle;command:dd 1,2").unwrap();
    cell.plan.phases = cell.plan.load.phases();
    cell.plan.phase_seconds = Some(0.000_25);
    assert_eq!(
        csv::events(&cell, &record),
        "phase,load,start_ns,started_ns,stopping_ns,stopped_ns\n0,idle,0,,,\n1,\"command:dd 1,2\",250000,,,\n"
    );
}

proptest! {
    #[test]
    fn the_places_of_long_latencies_follow_from_what_was_missed(
        all in prop::collection::vec(prop_oneof![1_000_u64..90_000, 1_000_u64..1_000_000], 1..80),
    ) {
        let latencies = &one_thread(&all)[0];
        let is_above = |(_, ns): &(u64, &u64)| **ns >= 60_000;
        let expected: Vec<u64> = (0..).zip(&all).filter(is_above).map(|(cycle, _)| cycle).collect();
        prop_assert_eq!(latencies.first_above(60_000, usize::MAX), expected);
        // Shorter ones were not listed, so nothing is known of them.
        prop_assert!(latencies.first_above(40_000, 10).is_empty());
    }

    #[test]
    fn what_is_exported_is_imported(
        all in prop::collection::vec(1_000_u64..90_000, 1..80),
        size in 100_u64..150,
    ) {
        let latencies = one_thread(&all);
        let text = histogram(&latencies, &style(size, false));
        let made = imported(&read("cyclictest", &text).unwrap());
        let again = histogram(&common::latencies(&made, 0), &style(size, false));
        prop_assert_eq!(text, again);
        let text = json(&head(), &latencies, size, Unit::Micros).unwrap();
        let made = imported(&read("cyclictest", &text).unwrap());
        let counts: Vec<u64> = all.iter().map(|ns| ns / 1_000 * 1_000).collect();
        prop_assert_eq!(&common::latencies(&made, 0)[0].counts, &Counts::from_samples(counts));
    }
}
