//! The same work here and on another machine, and what is left there when `tare` dies.

use std::path::PathBuf;
use std::{fs, thread};

use crate::common::{self, Bench, wait_for};
use rustix::process::Signal;
use tare_host::Finding;
use tare_results::model::Labels;
use tare_results::{CellState, RunFolder};
use tare_testkit::sshd::Sshd;

/// Starts a sshd; None if there is none here.
fn machine(bench: &Bench) -> Option<Sshd> {
    let folder: PathBuf = bench.work().with_file_name("sshd");
    fs::create_dir(&folder).unwrap();
    Sshd::start(&folder, "")
}

fn wait_for_agent(sshd: &Sshd) {
    wait_for("an agent on the other machine", || {
        let runs = |pid: &u32| {
            let exe = fs::read_link(format!("/proc/{pid}/exe"));
            exe.is_ok_and(|exe| exe.display().to_string().contains("/agent-"))
        };
        sshd.workers().iter().any(runs).then_some(())
    });
}

#[test]
fn here_and_another_machine_stand_in_one_report() {
    let bench = Bench::new();
    let Some(sshd) = machine(&bench) else { return };
    let target = format!("ssh,{}", sshd.options());
    bench
        .run(&format!(
            "noise --workload prime --limit 22 --repetitions 20000 --runs 2 --output run \
             --target process --target {target}"
        ))
        .expect(0, &["process", "measured on "]);
    sshd.wait_until_clean();
    let mut notices = 0;
    let run = RunFolder::open(&bench.work().join("run")).unwrap();
    for id in 1..=4 {
        let CellState::Done(cell) = run.state(id) else {
            panic!("{:?}", run.state(id));
        };
        let record = cell.outcome.record().unwrap();
        assert_eq!(record.value("result", &Labels::default()), Some(8.0));
        let told = cell
            .notices
            .iter()
            .any(|text| text.contains("measured on "));
        notices += usize::from(told);
        let times = run.samples(id).unwrap().instances[0];
        let times = [
            times.planned_ns,
            times.started_ns,
            times.ready_ns,
            times.exited_ns,
        ];
        assert!(times.is_sorted() && times[0] > 0, "{times:?}");
    }
    assert_eq!(notices, 2);
    let summary = common::json(&bench.work().join("run/summary.json"));
    let told = summary["alarms"].to_string();
    assert!(told.contains("other-work-unknown"), "{told}");
    // It is the same machine.
    let state = |words: &str| {
        let ran = bench.run(&format!("doctor --json {words}"));
        ran.expect(0, &[]);
        let findings: Vec<Finding> = serde_json::from_str(&ran.out).unwrap();
        let found = findings
            .into_iter()
            .filter(|found| found.id == "clocksource");
        found.map(|found| found.state).collect::<String>()
    };
    assert_eq!(state(&format!("--target {target}")), state(""));
    sshd.wait_until_clean();
}

#[test]
fn a_machine_that_can_not_be_reached_is_unavailable() {
    let bench = Bench::new();
    let Some(sshd) = machine(&bench) else { return };
    fs::remove_file(sshd.file("known_hosts")).unwrap();
    bench
        .run(&format!("noise --runs 1 --target ssh,{}", sshd.options()))
        .expect(5, &["its host key is not known", "ssh-keyscan -p "]);
    bench
        .run("noise --runs 1 --target ssh")
        .expect(2, &["needs 'host'"]);
}

#[test]
fn nothing_is_left_there_when_tare_is_killed_or_stopped() {
    let bench = Bench::new();
    let Some(sshd) = machine(&bench) else { return };
    let words = format!(
        "noise --workload gap --repetitions 100000000000 --runs 1 --target ssh,{} --output",
        sshd.options()
    );
    let started = bench.start(&format!("{words} a"));
    wait_for_agent(&sshd);
    started.signal(Signal::KILL);
    drop(started);
    // Without another command: the machine cleans up by itself.
    sshd.wait_until_clean();
    bench.run("clean").expect(0, &[]);
    assert_eq!(common::files(&bench.scratch()), Vec::<String>::new());

    let started = bench.start(&format!("{words} b"));
    wait_for_agent(&sshd);
    started.signal(Signal::INT);
    thread::sleep(std::time::Duration::from_millis(100));
    started.signal(Signal::INT);
    started.end().expect(4, &[]);
    sshd.wait_until_clean();

    // At moments when the connection or the folder is only being made.
    for _ in 0..3 {
        let started = bench.start(&format!("{words} c"));
        let moment = fastrand::u64(0..900);
        println!("killed after {moment} ms");
        thread::sleep(std::time::Duration::from_millis(moment));
        started.signal(Signal::KILL);
        drop(started);
        sshd.wait_until_clean();
        let _ = fs::remove_dir_all(bench.work().join("c"));
    }
    bench.run("clean").expect(0, &[]);
    let mark = bench.state().display().to_string();
    assert_eq!(common::processes_with(&mark), Vec::<u32>::new());
}
