//! The records that the agent prints, as a reader of the wire sees them.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use tare_wire::line::{Line, MAX_PAYLOAD, decode};
use tare_wire::record::{Record, Set, Unit};
use tare_wire::rows;

/// What a test wants to know of one execution.
#[derive(Default)]
struct Read {
    kinds: Vec<&'static str>,
    /// The set, and its measure.
    set: Set<'static>,
    measure: String,
    /// Numbers that are not sampled, by what they are and their unit.
    values: BTreeMap<(String, String), f64>,
    counted: u64,
    counted_cycles: u64,
    /// The least and the greatest value that was counted.
    counted_range: Option<(u64, u64)>,
    listed: u64,
    least_listed: Option<u64>,
    window: u64,
    /// The latest time of a sample that is listed or kept.
    latest: u64,
    enveloped: u64,
    facts: Vec<String>,
    failure: Option<String>,
}

impl Read {
    fn value(&self, measure: &str, unit: &str) -> f64 {
        self.values[&(measure.to_owned(), unit.to_owned())]
    }
}

#[test]
fn prime_accounts_for_every_repetition() {
    let read = measured("workload=prime limit=22 repetitions=20000 window=50");
    let set = read.set;
    assert_eq!(
        (read.measure.as_str(), set.unit),
        ("duration", Unit::Cycles)
    );
    assert_eq!(
        (read.value("result", ""), read.value("work", "")),
        (8.0, 84.0)
    );
    assert_eq!(read.value("threshold", "cycles"), 400.0);
    assert!(read.value("fold time", "cycles") > 0.0);
    assert_eq!((set.n, set.parts, set.period), (20_000, 1, 0));
    assert_eq!(set.squares_below, None);
    assert_eq!(set.threshold, set.sum / set.n + 401);
    assert_eq!((read.counted, read.counted_cycles), (20_000, set.sum));
    assert_eq!(read.counted_range, Some((set.min, set.max)));
    assert_eq!(read.enveloped, 20_000);
    assert_eq!(read.listed, set.kept);
    assert!(read.least_listed.is_none_or(|least| least >= set.threshold));
    assert_eq!((read.window, set.raw), (50, 50));
    assert!(set.sum < set.last - set.first);
    // Times count from the first sample on.
    assert!(read.latest < set.last - set.first);
    assert_eq!(read.kinds.first(), Some(&"hello"));
    assert_eq!(read.kinds.last(), Some(&"end"));
}

#[test]
fn facts_about_the_place_follow_the_batch() {
    let read = measured("workload=prime limit=22 repetitions=10");
    for name in ["kernel release", "kernel command line", "CPUs online"] {
        assert!(read.facts.iter().any(|fact| fact == name), "{name}");
    }
    let at = |kind| read.kinds.iter().position(|seen| *seen == kind);
    assert!(at("fact") > at("set"));
}

#[test]
fn copy_accounts_for_every_repetition_with_both_timings() {
    for timing in ["fenced", "published"] {
        let read = measured(&format!(
            "workload=copy size=100 repetitions=5000 timing={timing}"
        ));
        assert_eq!(read.value("work", ""), 100.0);
        assert_eq!(read.counted, 5_000);
    }
}

#[test]
fn gap_lists_each_gap_and_says_when_the_list_is_full() {
    let read = measured("workload=gap repetitions=100000 threshold=1 capacity=500");
    let set = read.set;
    assert_eq!((read.measure.as_str(), set.n), ("gap", 100_000));
    assert_eq!((set.kept, read.listed, read.counted), (500, 500, 500));
    assert!(set.seen > 500);
    assert_eq!((set.min, set.threshold, set.squares_below), (0, 1, Some(0)));
    assert_eq!(read.value("threshold", "cycles"), 1.0);
    let longest = read.counted_range.unwrap().1;
    assert_eq!(set.max, longest.max(set.unkept_max));
    assert_eq!(
        read.counted_cycles + set.unkept_sum,
        set.sum,
        "with a threshold of one tick every tick is in a gap"
    );
}

#[test]
fn a_plan_out_of_bounds_is_a_failure_record_and_status_1() {
    for (words, what) in [
        ("workload=prime limit=0 repetitions=1", "limit"),
        ("workload=copy size=100000000 repetitions=1", "size"),
        ("workload=gap repetitions=1 threshold=99999999", "threshold"),
        ("workload=prime limit=22 repetitions=1 cpu=9999", "CPU"),
    ] {
        let output = agent(words);
        assert_eq!(output.status.code(), Some(1), "{words}");
        let failure = read(&output).failure.unwrap();
        assert!(failure.contains(what), "{failure}");
    }
}

#[test]
fn a_plan_that_can_not_be_read_is_status_2() {
    let output = agent("workload=prime limit=22 repetitions=1 cpus=2");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no such key 'cpus'"));
    assert!(output.stdout.is_empty());
}

#[test]
fn nobody_reading_is_no_crash() {
    let status = Command::new("sh")
        .args([
            "-c",
            "\"$0\" workload=gap repetitions=1000 threshold=1 | true; exit 0",
        ])
        .arg(env!("CARGO_BIN_EXE_tare-agent"))
        .status()
        .unwrap();
    assert!(status.success());
}

fn agent(words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tare-agent"))
        .args(words.split_whitespace())
        .output()
        .unwrap()
}

fn measured(words: &str) -> Read {
    let output = agent(words);
    assert!(output.status.success(), "{output:?}");
    read(&output)
}

fn read(output: &Output) -> Read {
    let mut read = Read::default();
    for (expected, line) in (0_u64..).zip(output.stdout.split_inclusive(|b| *b == b'\n')) {
        let mut room = [0; MAX_PAYLOAD];
        let Line::Record { sequence, record } = decode(line, &mut room) else {
            panic!("{}", String::from_utf8_lossy(line));
        };
        assert_eq!(sequence, expected);
        read.kinds.push(record.kind());
        match record {
            Record::Set(set) => {
                assert_eq!((set.number, set.labels), (0, ""));
                read.measure = set.measure.to_owned();
                read.set = Set {
                    measure: "",
                    labels: "",
                    ..set
                };
            }
            Record::Value(value) => {
                let of = (value.measure.to_owned(), value.unit.to_owned());
                read.values.insert(of, value.value);
            }
            Record::Counts(list) => {
                for row in rows::counts(list).map(Result::unwrap) {
                    read.counted += row.count;
                    read.counted_cycles += row.value * row.count;
                    let (least, greatest) = read.counted_range.unwrap_or((u64::MAX, 0));
                    read.counted_range = Some((least.min(row.value), greatest.max(row.value)));
                }
            }
            Record::Events(list) => {
                for sample in rows::samples(list, |_| Some(0)).map(Result::unwrap) {
                    read.listed += 1;
                    read.latest = read.latest.max(sample.time);
                    let least = read.least_listed.unwrap_or(u64::MAX);
                    read.least_listed = Some(least.min(sample.value));
                }
            }
            Record::Raw(list) => {
                for sample in rows::samples(list, |_| Some(0)).map(Result::unwrap) {
                    read.window += 1;
                    read.latest = read.latest.max(sample.time);
                }
            }
            Record::Envelope(list) => {
                read.enveloped += rows::bins(list).map(|bin| bin.unwrap().n).sum::<u64>();
            }
            Record::Fact(fact) => read.facts.push(fact.name.to_owned()),
            Record::Failure(failure) => read.failure = Some(failure.text.to_owned()),
            Record::End(end) => assert_eq!(end.records, expected),
            _ => {}
        }
    }
    read
}
