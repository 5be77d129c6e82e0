//! The culprit of a late wake-up, from the kernel's events to its name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Bench, skip};
use rustix::thread::{CpuSet, sched_setaffinity};
use tare_results::model::Cell;
use tare_trace::blame::{Blame, Culprit, blame};
use tare_trace::takers::takers;

/// A shell of a higher priority than the measuring thread; it is ended when this is dropped.
struct Hog(Child);

impl Hog {
    /// Starts it on a CPU: it computes for some ms, ten times a second at most, and for some
    /// seconds only.
    fn start(cpu: usize) -> Option<Self> {
        let script = "n=0; while [ $n -lt 100 ]; do n=$((n+1)); sleep 0.1; \
                      i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done; done";
        let mut child = Command::new("taskset")
            .args([
                "-c",
                &cpu.to_string(),
                "chrt",
                "-f",
                "97",
                "sh",
                "-c",
                script,
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        // Where it may not have the priority, chrt ends at once.
        thread::sleep(Duration::from_millis(300));
        match child.try_wait() {
            Ok(None) => Some(Self(child)),
            _ => None,
        }
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Judges the traced wake-ups of a run; also returns what was remarked.
fn judged(run: &Path) -> (Vec<Blame>, Vec<String>) {
    let mut blames = Vec::new();
    let mut notices = Vec::new();
    for folder in fs::read_dir(run.join("cells")).unwrap() {
        let text = fs::read(folder.unwrap().path().join("cell.json")).unwrap();
        let cell: Cell = serde_json::from_slice(&text).unwrap();
        notices.extend(cell.notices);
        if let Some(record) = cell.outcome.record() {
            // The only thread's.
            blames.extend(record.traces.iter().map(|trace| blame(trace, 0)));
        }
    }
    (blames, notices)
}

#[test]
fn a_thread_of_higher_priority_is_named() {
    let cpus = thread::available_parallelism().unwrap().get();
    if cpus < 2 {
        return skip("two CPUs", "this machine gives us one");
    }
    let cpu = cpus - 1;
    let Some(hog) = Hog::start(cpu) else {
        return skip("SCHED_FIFO", "chrt can't give a priority here");
    };
    let bench = Bench::new();
    let words = format!("wakeup -a {cpu} -i 1000 -D 3 --runs 1 --trace 10 --output run");
    bench.run(&words).expect(0, &[]);
    let (blames, notices) = judged(&bench.work().join("run"));
    let refused = |text: &&String| text.contains("are not recorded");
    if let Some(why) = notices.iter().find(refused) {
        return skip("trace events", why);
    }
    assert_eq!(blames.len(), 10);
    for blame in &blames {
        assert_eq!(blame.parts.total_ns(), blame.latency_ns);
    }
    // Others may be late for other reasons: a hypervisor, for example.
    let shell = Culprit::HigherPriority {
        thread: format!("sh/{}", hog.0.id()),
    };
    let by_hog =
        |blame: &&Blame| blame.culprit == shell && blame.parts.scheduling_ns > blame.latency_ns / 2;
    let texts: Vec<_> = blames.iter().map(|blame| &blame.culprit_text).collect();
    assert!(blames.iter().any(|blame| by_hog(&blame)), "{texts:?}");
}

#[test]
fn who_takes_a_busy_cpu_is_named() {
    let cpus = thread::available_parallelism().unwrap().get();
    let Some(hog) = Hog::start(cpus - 1) else {
        return skip("SCHED_FIFO", "chrt can't give a priority here");
    };
    let bench = Bench::new();
    let cpu = cpus - 1;
    let words =
        format!("noise --workload gap --explain 5us --cpu {cpu} --runs 2 --json --output run");
    let ran = bench.run(&words);
    drop(hog);
    ran.expect(0, &[]);
    let run = bench.work().join("run");
    let (mut taken, mut notices) = (BTreeMap::new(), Vec::new());
    for folder in fs::read_dir(run.join("cells")).unwrap() {
        let text = fs::read(folder.unwrap().path().join("cell.json")).unwrap();
        let cell: Cell = serde_json::from_slice(&text).unwrap();
        notices.extend(cell.notices.clone());
        for trace in cell
            .outcome
            .record()
            .iter()
            .flat_map(|record| &record.traces)
        {
            assert!(trace.samples > 0 && trace.greatest <= trace.value);
            for (taker, ns) in takers(trace, 0, 0).takers {
                *taken.entry(taker.to_string()).or_insert(0) += ns;
            }
        }
    }
    if let Some(why) = notices.iter().find(|text| text.contains("not joined")) {
        return skip("trace events", why);
    }
    // It computes for some 20 ms of each 120 or so.
    let all: u64 = taken.values().sum();
    let by_hog = taken.get("process sh").copied().unwrap_or_default();
    assert!(by_hog > 50_000_000 && by_hog > all / 20, "{taken:?}");
    let report = bench.run("report run");
    report.expect(0, &["Who took the time", "process sh"]);
}

#[test]
fn the_threads_of_a_process_are_told_together_by_its_name() {
    let cpu = thread::available_parallelism().unwrap().get() - 1;
    let bench = Bench::new();
    let ends = AtomicBool::new(false);
    let names = ["first hog", "second hog"];
    thread::scope(|scope| {
        for name in names {
            let spin = || {
                let mut one = CpuSet::new();
                one.set(cpu);
                sched_setaffinity(None, &one).unwrap();
                let began = Instant::now();
                while !ends.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(60) {
                    std::hint::spin_loop();
                }
            };
            let thread = thread::Builder::new().name(name.to_owned());
            thread.spawn_scoped(scope, spin).unwrap();
        }
        let words = format!("noise --workload gap --cpu {cpu} --runs 1 --output run");
        let ran = bench.run(&words);
        ends.store(true, Ordering::Relaxed);
        ran.expect(0, &[]);
    });
    let summary = fs::read(bench.work().join("run/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    let takers = summary["stories"]["noise"]["takers"].as_array().unwrap();
    if takers.is_empty() {
        return skip("trace events", "no delay is explained");
    }
    let own = fs::read_to_string("/proc/self/comm").unwrap();
    let own = takers
        .iter()
        .find(|taker| taker["taker"]["name"] == own.trim_end());
    let own = own.unwrap_or_else(|| panic!("{takers:?}"));
    assert_eq!(own["taker"]["kind"], "process", "{own}");
    let threads = own["threads"].as_array().unwrap();
    assert!(
        names.iter().all(|name| threads.contains(&(*name).into())),
        "{own}"
    );
    assert!(own["share"].as_f64().unwrap() > 0.1, "{own}");
    let hog = |taker: &serde_json::Value| taker["name"].as_str().unwrap().contains("hog");
    assert!(!takers.iter().any(hog), "{takers:?}");
}
