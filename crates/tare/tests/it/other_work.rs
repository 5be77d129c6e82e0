//! What else happens to the measured CPU: other runs, other work, and code that is moved away from
//! it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

use crate::common::{Bench, Ran, alone, json, skip, wait_for};

/// Returns two CPUs that may be used; the one to measure on first.
fn two_cpus() -> Option<[usize; 2]> {
    let set = sched_getaffinity(None).unwrap();
    let mut cpus = (0..CpuSet::MAX_CPU).rev().filter(|cpu| set.is_set(*cpu));
    let two = cpus.next().zip(cpus.next());
    if two.is_none() {
        skip("a second CPU", "there is only one CPU");
    }
    two.map(|(here, there)| [here, there])
}

fn pin(pid: u32, cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    let pid = Pid::from_raw(pid.try_into().unwrap());
    sched_setaffinity(pid, &set).unwrap();
}

/// A shell that does nothing as fast as it can, on one CPU.
struct Hog(Child);

impl Hog {
    fn on(cpu: usize) -> Self {
        Self::called(Path::new("sh"), cpu)
    }

    fn called(shell: &Path, cpu: usize) -> Self {
        let words = ["-c", "while :; do :; done"];
        let hog = Self(Command::new(shell).args(words).spawn().unwrap());
        pin(hog.0.id(), cpu);
        hog
    }

    /// The same above everybody else; `None` where that is not allowed.
    fn fifo_on(cpu: usize) -> Option<Self> {
        Self::on(cpu).raised()
    }

    fn raised(self) -> Option<Self> {
        let pid = self.0.id().to_string();
        let raised = Command::new("chrt").args(["-f", "-p", "99", &pid]).status();
        let is_raised = raised.is_ok_and(|status| status.success());
        if !is_raised {
            skip("SCHED_FIFO", "chrt can't give a priority here");
        }
        is_raised.then_some(self)
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a task of a process and returns its id.
fn task_of(process: u32, name: &str) -> u32 {
    wait_for(name, || {
        let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
        let is_named = |path: &PathBuf| {
            fs::read_to_string(path.join("comm")).is_ok_and(|found| found.trim() == name)
        };
        let mut tasks = tasks.filter_map(|task| Some(task.ok()?.path()));
        tasks.find(is_named)?.file_name()?.to_str()?.parse().ok()
    })
}

/// Waits until a task of the agent has pinned itself and has had time to begin.
fn measures_on(task: u32, cpu: usize) {
    let pinned = format!("Cpus_allowed_list:\t{cpu}");
    wait_for("a pinned task", || {
        let status = fs::read_to_string(format!("/proc/{task}/status")).ok()?;
        status.lines().any(|line| line == pinned).then_some(())
    });
    thread::sleep(Duration::from_millis(600));
}

fn cell(run: &Path) -> Value {
    json(&run.join("cells/0001/cell.json"))
}

fn alarm<'a>(summary: &'a Value, id: &str) -> Option<&'a str> {
    let mut alarms = summary["alarms"].as_array().unwrap().iter();
    alarms.find(|alarm| alarm["id"] == id)?["text"].as_str()
}

#[test]
fn a_second_run_on_a_measured_cpu_is_refused_unless_it_is_to_share() {
    let _alone = alone();
    let Some([cpu, other]) = two_cpus() else {
        return;
    };
    let bench = Bench::new();
    let noise = format!("noise --workload gap --cpu {cpu} --runs 1");
    let first = bench.start(&format!("{noise} --repetitions 600000000 --output a"));
    first.agent();
    let run = bench.work().join("a");
    let second = bench.run(&format!("{noise} --repetitions 1000 --output b"));
    second.expect(
        5,
        &[
            &format!("CPU {cpu} can't be used here"),
            &format!("{} (process {})", run.display(), first.pid()),
            " left",
            "--share-cpu",
        ],
    );
    assert!(!bench.work().join("b").exists());
    let wakeup = format!("wakeup -i 1000 -D 1 --policy other --runs 1 --cpu {cpu} --output b");
    bench.run(&wakeup).expect(5, &["--share-cpu"]);
    let cyclictest = format!("cyclictest -q -D 1 -a {cpu} -t 1 --policy other");
    bench.run(&cyclictest).expect(5, &["--share-cpu"]);
    let doctor = format!(
        "{} (process {}) measures on CPU {cpu}: ",
        run.display(),
        first.pid()
    );
    bench.run("doctor").expect(0, &[&doctor, " left"]);
    let doctor = bench.run(&format!("doctor --json --cpu {other}"));
    assert!(!doctor.out.contains("measured-now"), "{}", doctor.out);
    // Nobody asked for that CPU.
    bench.run("noise --runs 1 --dry-run").expect(
        0,
        &[
            &format!("on CPU {other}"),
            &format!("other runs of tare measure on CPU {cpu}"),
        ],
    );
    // It lasts long enough to be seen by the first one.
    let shared = format!("{noise} --repetitions 60000000 --share-cpu --output c");
    let shared = bench.run(&shared);
    let warning = format!("CPU {cpu} is shared with the run {}", run.display());
    shared.expect(
        0,
        &[&warning, "Another run of tare measured on the same CPU"],
    );
    let ran = bench.run(&format!("{cyclictest} --share-cpu"));
    ran.expect(
        0,
        &[&warning, "Another run of tare measured on the same CPU: "],
    );
    first.end().expect(0, &[]);
    for (own, of) in [("a", "c"), ("c", "a")] {
        let own = bench.work().join(own);
        let runs = cell(&own)["other_work"]["runs"].clone();
        let of = bench.work().join(of).display().to_string();
        let mut runs = runs.as_array().unwrap().iter();
        assert!(runs.any(|run| run.as_str().unwrap().starts_with(&of)));
        let summary = json(&own.join("summary.json"));
        assert!(alarm(&summary, "cpu-shared").unwrap().contains(&of));
    }
    // Then the CPU is free again.
    bench
        .run(&format!("{noise} --repetitions 1000 --output d"))
        .expect(0, &[]);
}

#[test]
fn a_run_that_was_killed_holds_no_cpu() {
    let _alone = alone();
    let bench = Bench::new();
    let words = "noise --workload gap --runs 1 --cpu 0 --output";
    let first = bench.start(&format!("{words} a --repetitions 5000000000"));
    first.agent();
    first.signal(Signal::KILL);
    drop(first);
    bench
        .run(&format!("{words} b --repetitions 1000"))
        .expect(0, &[]);
    let left = fs::read_dir(bench.state().join("cpus")).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn work_that_comes_and_goes_within_a_cell_is_named() {
    let _alone = alone();
    let Some([cpu, _]) = two_cpus() else {
        return;
    };
    for start in [|cpu| Some(Hog::on(cpu)), Hog::fifo_on] {
        comes_and_goes(cpu, start);
    }
}

fn comes_and_goes(cpu: usize, start: fn(usize) -> Option<Hog>) {
    let bench = Bench::new();
    let words = format!("wakeup -i 1000 -D 5 --policy other --cpu {cpu} --runs 1");
    let started = bench.start(&format!("{words} --output run"));
    task_of(started.agent(), "tare-measure/0");
    thread::sleep(Duration::from_secs(1));
    let Some(hog) = start(cpu) else {
        return;
    };
    let pid = hog.0.id();
    thread::sleep(Duration::from_millis(2_500));
    drop(hog);
    started.end().expect(0, &["Other work ran on"]);
    let run = bench.work().join("run");
    let other = cell(&run)["other_work"].clone();
    let tasks = other["tasks"].as_array().unwrap();
    let hog = tasks.iter().find(|task| task["pid"] == pid).unwrap();
    assert_eq!((&hog["name"], &hog["cpu"]), (&"sh".into(), &cpu.into()));
    let (had, watched) = (hog["ns"].as_u64(), other["watched_ns"].as_u64());
    assert!(had > Some(10_000_000) && had < watched, "{other}");
    // Other tests may run there as well, some of them as `sh`.
    let said = format!(") used CPU {cpu} for about ");
    let summary = json(&run.join("summary.json"));
    assert!(alarm(&summary, "other-work").unwrap().contains(&said));
    let cautions = summary["verdict"]["cautions"].as_array().unwrap();
    assert!(cautions[0].as_str().unwrap().contains(&said));
}

#[test]
fn a_cell_that_fails_says_what_took_its_cpu() {
    let _alone = alone();
    let Some([cpu, _]) = two_cpus() else {
        return;
    };
    let bench = Bench::new();
    // Whoever may run something may call it what they like.
    let shell = bench.work().join("\u{1b}[2J\nEVIL");
    symlink("/bin/sh", &shell).unwrap();
    let Some(hog) = Hog::called(&shell, cpu).raised() else {
        return;
    };
    let words = "noise --workload gap --repetitions 2000000000 --runs 1 --cell-limit 4s";
    let said = format!("(process {}) used CPU {cpu} for about ", hog.0.id());
    let ran = bench.run(&format!("{words} --cpu {cpu} --output run"));
    ran.expect(1, &["timed out after 4 s", &said, "1 of 1 cells failed"]);
    ran.expect(1, &["\\u001b[2J"]);
    let all = format!("{}{}", ran.out, ran.err);
    assert!(!all.contains('\u{1b}') && !all.contains("\nEVIL"), "{all}");
}

#[test]
fn cyclictest_names_other_work_as_well() {
    let _alone = alone();
    let Some([cpu, _]) = two_cpus() else {
        return;
    };
    let bench = Bench::new();
    let _hog = Hog::on(cpu);
    let words = format!("cyclictest -q -D 3 -a {cpu} -t 1 --policy other");
    let said = format!(") used CPU {cpu} for about ");
    bench
        .run(&words)
        .expect(0, &["Other work ran on the measured CPU: ", &said]);
}

/// A cpuset of one CPU, in the hierarchy of version 1.
struct Cpuset(PathBuf);

impl Cpuset {
    fn of(cpu: usize) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup/cpuset");
        let folder = root.join(format!("tare-test-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let cpuset = Self(folder);
        let nodes = fs::read_to_string(root.join("cpuset.mems")).ok()?;
        fs::write(cpuset.0.join("cpuset.mems"), nodes).ok()?;
        fs::write(cpuset.0.join("cpuset.cpus"), cpu.to_string()).ok()?;
        Some(cpuset)
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        // Who is in it must have ended.
        wait_for("the end of the cpuset", || fs::remove_dir(&self.0).ok());
    }
}

#[test]
fn a_cell_whose_code_was_put_into_another_cpuset_fails_with_the_reason() {
    let _alone = alone();
    let Some([cpu, other]) = two_cpus() else {
        return;
    };
    let Some(cpuset) = Cpuset::of(other) else {
        return skip(
            "a cpuset",
            "it requires root and control groups of version 1",
        );
    };
    let bench = Bench::new();
    let words = "noise --workload gap --repetitions 300000000 --runs 1 --output run";
    let started = bench.start(&format!("{words} --cpu {cpu}"));
    started.measures();
    let agent = started.agent();
    fs::write(cpuset.0.join("tasks"), agent.to_string()).unwrap();
    let moved = format!("moved from CPU {cpu} to CPU {other}");
    started
        .end()
        .expect(1, &[&moved, "cpuset", "1 of 1 cells failed"]);
}

#[test]
fn a_cpu_that_a_cpuset_holds_for_itself_is_refused_to_containers() {
    let _alone = alone();
    let Some([other, cpu]) = two_cpus() else {
        return;
    };
    let Some(cpuset) = Cpuset::of(cpu) else {
        return skip(
            "a cpuset",
            "it requires root and control groups of version 1",
        );
    };
    fs::write(cpuset.0.join("cpuset.cpu_exclusive"), "1").unwrap();
    let name = cpuset.0.file_name().unwrap().to_string_lossy().into_owned();
    let said = format!("the cpuset '{name}' holds CPU {cpu} for itself");
    let bench = Bench::new();
    let words = "noise --workload gap --repetitions 100000 --runs 1 --output run";
    for dry in ["", "--dry-run"] {
        let ran = bench.run(&format!("{words} --cpu {cpu} --target crun {dry}"));
        ran.expect(5, &[&said, "--cpu"]);
    }
    bench.run(&format!("{words} --cpu {cpu}")).expect(0, &[]);
    // Who may not use the CPU at all learns who holds it, and not to widen its own mask.
    let words = format!(
        "-c {other} {} {words} --cpu {cpu}",
        env!("CARGO_BIN_EXE_tare")
    );
    let words: Vec<&str> = words.split_whitespace().collect();
    let ran = bench.command_of(Path::new("taskset"), &words).output();
    Ran::of(ran.unwrap()).expect(5, &[&said]);
}

#[test]
fn a_cell_whose_code_was_moved_fails_with_the_reason() {
    let _alone = alone();
    let Some([cpu, other]) = two_cpus() else {
        return;
    };
    let bench = Bench::new();
    for (words, task) in [
        ("noise --workload gap --repetitions 80000000", "tare-agent"),
        ("wakeup -i 1000 -D 60 --policy other", "tare-measure/0"),
    ] {
        let words = format!("{words} --runs 1 --cpu {cpu} --output {}", &words[..4]);
        let started = bench.start(&words);
        // The wake-ups' thread is there once it can measure.
        let tid = task_of(started.agent(), task);
        measures_on(tid, cpu);
        pin(tid, other);
        let moved = format!("moved from CPU {cpu} to CPU {other}");
        started
            .end()
            .expect(1, &[&moved, "taskset", "1 of 1 cells failed"]);
    }
}
