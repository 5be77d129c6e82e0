//! The records that the agent prints, as a reader of the wire sees them.

use std::process::{Command, Output};

use tare_wire::line::{Line, MAX_PAYLOAD, decode};
use tare_wire::record::{Batch, Record};

/// Is what a test wants to know of one execution.
#[derive(Default)]
struct Read {
    kinds: Vec<&'static str>,
    batch: Option<Batch>,
    counted: u64,
    counted_cycles: u64,
    listed: u64,
    window: u64,
    enveloped: u64,
    facts: Vec<String>,
    failure: Option<String>,
}

#[test]
fn prime_accounts_for_every_repetition() {
    let read = measured("workload=prime limit=22 repetitions=20000 window=50");
    let batch = read.batch.unwrap();
    assert_eq!((batch.result, batch.work), (8, 84));
    assert_eq!(read.counted, 20_000);
    assert_eq!(read.counted_cycles, batch.sum_cycles);
    assert_eq!(read.enveloped, 20_000);
    assert_eq!(read.listed, batch.delays_kept);
    assert_eq!(read.window, 50);
    assert!(batch.sum_cycles < batch.last_tsc - batch.first_tsc);
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
    assert!(at("fact") > at("batch"));
}

#[test]
fn copy_accounts_for_every_repetition_with_both_timings() {
    for timing in ["fenced", "published"] {
        let read = measured(&format!(
            "workload=copy size=100 repetitions=5000 timing={timing}"
        ));
        assert_eq!(read.batch.unwrap().work, 100);
        assert_eq!(read.counted, 5_000);
    }
}

#[test]
fn gap_lists_each_gap_and_says_when_the_list_is_full() {
    let read = measured("workload=gap repetitions=100000 threshold=1 capacity=500");
    let batch = read.batch.unwrap();
    assert_eq!(
        (batch.delays_kept, read.listed, read.counted),
        (500, 500, 500)
    );
    assert!(batch.delays_seen > 500);
    assert_eq!(
        read.counted_cycles + batch.unkept_cycles,
        batch.sum_cycles,
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
            Record::Batch(batch) => read.batch = Some(batch),
            Record::Counts(list) => {
                let mut value = 0;
                for row in list.rows.rows::<2>() {
                    let [step, count] = row.unwrap();
                    value += step;
                    read.counted += count;
                    read.counted_cycles += value * count;
                }
            }
            Record::Delays(list) => read.listed += list.rows.rows::<3>().count() as u64,
            Record::Window(list) => read.window += list.rows.rows::<3>().count() as u64,
            Record::Envelope(list) => {
                for row in list.rows.rows::<5>() {
                    read.enveloped += row.unwrap()[1];
                }
            }
            Record::Fact(fact) => read.facts.push(fact.name.to_owned()),
            Record::Failure(failure) => read.failure = Some(failure.text.to_owned()),
            Record::End(end) => assert_eq!(end.records, expected),
            _ => {}
        }
    }
    read
}
