//! The records that the agent prints, as a reader of the wire sees them.

mod agent;
mod moved;
mod wakeup;

use std::process::Command;

use rustix::process::{Signal, kill_process};
use tare_testkit::records::{Lists, RecordList};
use tare_wire::record::Unit;

use self::agent::{Agent, measured, refused};

/// Runs a plan with one set.
fn batch(words: &str) -> (RecordList, Lists) {
    let told = measured(words);
    let mut sets = told.sets();
    assert_eq!(sets.len(), 1);
    let lists = sets.remove(0);
    lists.check();
    (told, lists)
}

#[test]
fn prime_accounts_for_every_repetition() {
    let (told, lists) = batch("workload=prime limit=22 repetitions=20000 window=50");
    let set = lists.set;
    let what = (set.measure, set.labels, set.unit);
    assert_eq!(what, ("duration", "", Unit::Cycles));
    let value = |measure| told.value(measure, "").unwrap();
    assert_eq!((value("result"), value("work")), (8.0, 84.0));
    assert_eq!(value("threshold"), 400.0);
    assert!(value("fold time") > 0.0);
    assert_eq!((set.n, set.parts, set.period, set.raw), (20_000, 1, 0, 50));
    assert_eq!(set.squares_below, None);
    assert_eq!(set.threshold, set.sum / set.n + 401);
    assert!(set.sum < set.last - set.first);
    let kinds = told.kinds();
    assert_eq!(
        (kinds.first(), kinds.last()),
        (Some(&"hello"), Some(&"end"))
    );
}

#[test]
fn gap_on_several_cpus_has_a_set_for_each_and_all_spin_at_the_same_time() {
    let cpus = tare_load_driver::cpus::current().unwrap();
    let cpus: Vec<u32> = cpus.iter().take(2).collect();
    let [a, b] = cpus[..] else {
        return tare_testkit::skip("two threads at the same time", "there is but one CPU");
    };
    let told = measured(&format!(
        "workload=gap repetitions=5000000 threshold=1us cpu={a},{b}"
    ));
    let sets = told.sets();
    let labels = sets.iter().map(|lists| lists.set.labels.to_owned());
    assert_eq!(
        labels.collect::<Vec<_>>(),
        [format!("cpu={a}"), format!("cpu={b}")]
    );
    for lists in &sets {
        lists.check();
        assert_eq!((lists.set.n, lists.set.measure), (5_000_000, "gap"));
    }
    let overlap = sets.iter().map(|lists| lists.set.last).min().unwrap()
        - sets.iter().map(|lists| lists.set.first).max().unwrap();
    assert!(overlap > (sets[0].set.last - sets[0].set.first) / 4);
    let why = refused(Agent::start(&format!(
        "workload=prime limit=22 repetitions=10 cpu={a},{b}"
    )));
    assert!(why.contains("CPUs must be from 1 to 1, not 2"), "{why}");
}

#[test]
fn facts_about_the_place_follow_the_batch() {
    let told = measured("workload=prime limit=22 repetitions=10");
    for name in ["kernel release", "kernel command line", "CPUs online"] {
        assert!(told.fact(name, "").is_some(), "{name}");
    }
    let at = |kind| told.kinds().iter().position(|seen| *seen == kind);
    assert!(at("fact") > at("set"));
}

#[test]
fn copy_accounts_for_every_repetition_with_both_timings() {
    for timing in ["fenced", "published"] {
        let words = format!("workload=copy size=100 repetitions=5000 timing={timing}");
        let (told, lists) = batch(&words);
        assert_eq!(told.value("work", ""), Some(100.0));
        assert_eq!(lists.set.n, 5_000);
    }
}

#[test]
fn gap_lists_each_gap_and_says_when_the_list_is_full() {
    let (told, lists) = batch("workload=gap repetitions=100000 threshold=1 capacity=500");
    let set = lists.set;
    assert_eq!((set.measure, set.n, set.kept), ("gap", 100_000, 500));
    assert!(set.seen > 500);
    assert_eq!((set.min, set.threshold, set.squares_below), (0, 1, Some(0)));
    assert_eq!(told.value("threshold", ""), Some(1.0));
    let longest = lists.counts.last().unwrap().value;
    assert_eq!(set.max, longest.max(set.unkept_max));
    let listed: u64 = lists.events.iter().map(|gap| gap.value).sum();
    assert_eq!(
        listed + set.unkept_sum,
        set.sum,
        "with a threshold of one tick every tick is in a gap"
    );
}

#[test]
fn a_spin_of_a_given_time_counts_every_gap_and_ends_when_asked() {
    // With a threshold of one tick, nearly every read is a gap: tens of millions.
    let words = "workload=gap repetitions=100000 threshold=1 duration=3s list=1s capacity=1 bins=7";
    let (told, lists) = batch(words);
    let set = lists.set;
    // A delay between two spins that is too long to be its own counts as a read.
    assert!(set.n >= 100_000 && set.n % 100_000 < 100, "{}", set.n);
    assert_eq!(
        (set.kept, set.listed, set.unkept_sum),
        (set.seen, Some(0), 0)
    );
    let (n, sum) = lists.counts.iter().fold((0, 0), |(n, sum), row| {
        (n + row.count, sum + row.count * row.value)
    });
    assert_eq!((n, sum), (set.seen, set.sum));
    assert_eq!(lists.counts.last().unwrap().value, set.max);
    assert!(told.value("unwatched", "").unwrap() > 0.0);

    let words = "workload=gap repetitions=100000 duration=60s above=0ns until=1s";
    let mut agent = Agent::start(words);
    assert!(agent.read_until("exceeded").kinds().contains(&"begins"));
    kill_process(agent.pid(), Signal::TERM).unwrap();
    let (status, told) = agent.finish();
    assert_eq!(status, Some(0));
    assert!(told.kinds().contains(&"cut-short"));

    let words = "workload=gap repetitions=100000 threshold=1 duration=60s above=0ns until=1ns";
    let told = measured(words);
    assert_eq!(told.sets()[0].set.n, 100_000);
    assert!(!told.kinds().contains(&"cut-short"));
}

#[test]
fn a_plan_out_of_bounds_is_a_failure_record_and_status_1() {
    for (words, what) in [
        ("workload=prime limit=0 repetitions=1", "limit"),
        ("workload=copy size=100000000 repetitions=1", "size"),
        ("workload=gap repetitions=1 threshold=99999999", "threshold"),
    ] {
        let failure = refused(Agent::start(words));
        assert!(failure.contains(what), "{failure}");
    }
}

#[test]
fn a_plan_that_can_not_be_read_is_status_2() {
    for (words, what) in [
        (
            "workload=prime limit=22 repetitions=1 cpus=2",
            "no such key 'cpus'",
        ),
        ("workload=prime limit=22 repetitions=1 cpu=9999", "cpu"),
        ("workload=wakeup interval=1ms", "'duration=…' is missing"),
    ] {
        let output = Agent::command(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(what), "{said}");
        assert!(output.stdout.is_empty());
    }
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
