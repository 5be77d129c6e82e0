//! `tare noise top`: who interrupts which CPU now.

use std::fs;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use tare_testkit::skip;

use crate::common::{Bench, Ran, alone, is_root};

/// Runs something while a CPU is busy and a thread on it wakes up each ms, for a tenth of one. It is
/// never idle, since some kernels record no interrupts that end its idle sleep.
fn with_plants<R>(cpu: usize, run: impl FnOnce() -> R) -> R {
    let is_over = AtomicBool::new(false);
    let busy = |time: Duration| {
        let start = Instant::now();
        while start.elapsed() < time {
            black_box(start);
        }
    };
    let plant = |sleep: Duration, work: Duration| {
        let mut one = CpuSet::new();
        one.set(cpu);
        sched_setaffinity(None, &one).unwrap();
        while !is_over.load(Ordering::Relaxed) {
            thread::sleep(sleep);
            busy(work);
        }
    };
    thread::scope(|scope| {
        for (name, sleep, work) in [("planted-busy", 0, 5_000), ("planted-top", 1_000, 100)] {
            let [sleep, work] = [sleep, work].map(Duration::from_micros);
            let named = thread::Builder::new().name(name.to_owned());
            named
                .spawn_scoped(scope, move || plant(sleep, work))
                .unwrap();
        }
        let result = run();
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

/// Returns the rate in a row.
fn rate(row: &str) -> f64 {
    let rate = row
        .split_whitespace()
        .find_map(|word| word.strip_suffix("/s"));
    rate.unwrap().replace(',', "").parse().unwrap()
}

#[test]
fn a_planted_timer_is_found_by_name() {
    let _alone = alone();
    let bench = Bench::new();
    let cpu = sched_getcpu();
    let ran = with_plants(cpu, || {
        bench.run(&format!("noise top --count 2 --cpu {cpu}"))
    });
    let out = &ran.expect(0, &["ran most"]).out;
    if out.contains("events are not recorded") {
        return skip("trace events", out);
    }
    let last = out.rsplit("Most was taken by ").next().unwrap();
    // A busy machine lets it sleep longer.
    let of = |named: &[&str]| {
        let rows = last
            .lines()
            .filter(|row| named.iter().all(|name| row.contains(name)));
        rows.filter(|row| row.contains("/s")).map(rate).sum::<f64>()
    };
    // Threads have the name of their process.
    let process = fs::read_to_string("/proc/self/comm").unwrap();
    assert!(
        of(&[&format!("process {}", process.trim_end())]) > 100.0,
        "{last}"
    );
    assert!(
        of(&["interrupt local timer", "hrtimer_wakeup"]) > 100.0,
        "{last}"
    );
    assert!(last.contains(" kernel events; "), "{last}");
}

#[test]
fn counts_take_the_place_of_events_that_can_not_be_recorded() {
    let bench = Bench::new();
    if !is_root() {
        return skip("root", "a PID namespace takes it");
    }
    let cpu = sched_getcpu();
    let tare = env!("CARGO_BIN_EXE_tare");
    let top = format!("--pid --fork --mount-proc {tare} noise top --cpu {cpu}");
    let words = Vec::from_iter(top.split(' '));
    let mut unshared = bench.command_of("unshare".as_ref(), &words);
    let ran = with_plants(cpu, || Ran::of(unshared.output().unwrap()));
    ran.expect(0, &["Most often came ", "PID namespace", "softirq TIMER"]);
    let offline = bench.run("noise top --cpu 4000");
    offline.expect(2, &["CPU 4000 is not online"]);
}
