//! Loads next to the measured code, by the real driver and the real tools: nothing is left of them,
//! however they end.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tare_guard::{Guard, Interrupt, OWNER_VARIABLE, Options, sweep_with};
use tare_loads::{Load, LoadError, Running, Schedule, availability};
use tare_results::model::LoadPlace;
use tare_targets::instance::now_ns;
use tare_targets::measured::MeasuredFile;
use tare_testkit::skip;
use tare_wire::cpus::Cpus as Measured;
use tare_wire::phases::LEAD_NS;
use tempfile::TempDir;

/// A place for one test: its own journal, its own scratch folders.
struct Bench {
    folder: TempDir,
    agent: PathBuf,
}

impl Bench {
    /// Returns None if the load can't run here.
    fn for_load(load: &str) -> Option<(Self, Load)> {
        let load = Load::parse(load).unwrap();
        if let Err(unavailable) = availability(&load, LoadPlace::Beside) {
            skip(&format!("load {load}"), &unavailable.why);
            return None;
        }
        let agent = match MeasuredFile::agent().path() {
            Ok(path) => path.to_owned(),
            Err(error) => {
                skip(&format!("load {load}"), &error.to_string());
                return None;
            }
        };
        let folder = tempfile::tempdir().unwrap();
        for name in ["state", "scratch"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Some((Self { folder, agent }, load))
    }

    fn options(&self) -> Options {
        Options {
            scratch_root: self.folder.path().join("scratch"),
            ..Options::default()
        }
    }

    fn guard(&self) -> Guard {
        Guard::open_with(&self.folder.path().join("state"), self.options()).unwrap()
    }

    fn start(&self, load: &Load, guard: &Guard) -> Result<Running, LoadError> {
        Running::start(
            &Schedule::from(load.clone()),
            &self.agent,
            &Measured::default(),
            guard,
            &Interrupt::detached().unwrap(),
        )
    }

    fn scratch_is_empty(&self) -> bool {
        let scratch = self.folder.path().join("scratch");
        fs::read_dir(scratch).unwrap().next().is_none()
    }
}

/// Returns the processes that carry the mark of a guard.
fn marked(guard: &Guard) -> Vec<i32> {
    let mark = format!("{OWNER_VARIABLE}={}/", guard.owner());
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_mark = |pid: &i32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(&mark))
    };
    numbers.filter(has_mark).collect()
}

/// Counts the sockets of the processes that carry the mark of a guard.
fn sockets(guard: &Guard) -> usize {
    let of = |pid: &i32| {
        let fds = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten();
        fds.filter_map(|fd| fs::read_link(fd.path()).ok())
            .filter(|target| target.to_string_lossy().starts_with("socket:"))
            .count()
    };
    marked(guard).iter().map(of).sum()
}

#[track_caller]
fn wait_for(what: &str, mut found: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !found() {
        assert!(Instant::now() < deadline, "{what} did not come");
        thread::sleep(Duration::from_millis(10));
    }
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn a_load_works_from_its_start_and_leaves_nothing() {
    for text in [
        "dd",
        "hackbench",
        "du",
        "tar",
        "nc",
        "ping",
        "stress-ng:--cpu 1",
        "cpus=0:dd+nc",
    ] {
        let Some((bench, load)) = Bench::for_load(text) else {
            continue;
        };
        let guard = bench.guard();
        let running = bench.start(&load, &guard).unwrap();
        // Between two runs of a tool there is the driver alone.
        wait_for("the driver and its tools", || marked(&guard).len() > 1);
        let has_sockets = text.ends_with("nc") || ["hackbench", "ping"].contains(&text);
        if has_sockets {
            // One that is killed while it is looked at has none: look again.
            wait_for("a socket", || sockets(&guard) > 0);
        } else {
            assert_eq!(sockets(&guard), 0, "{text}");
        }
        // Where a group would change how the load is scheduled there is none.
        if let Some(processes) = running.processes() {
            assert!(
                processes.contains(&running.pid()) && processes.len() > 1,
                "{text}: {processes:?}"
            );
        }
        thread::sleep(Duration::from_secs(1));
        let did = running.stop().unwrap();
        let first = &did.achieved[0];
        assert!(
            first.amount > 0 && first.ns > 1_000_000_000,
            "{text}: {did:?}"
        );
        assert!(first.rate().unwrap().value > 0.0);
        assert_eq!(did.place, LoadPlace::Beside);
        assert_eq!(marked(&guard), Vec::<i32>::new(), "{text}");
        assert!(bench.scratch_is_empty(), "{text}");
    }
}

#[test]
fn a_tool_that_can_t_be_killed_is_left_to_the_guard_and_found_by_a_sweep() {
    // In version 2 what is frozen can be killed.
    let group = format!("/sys/fs/cgroup/freezer/tare-test-{}", std::process::id());
    if let Err(error) = fs::create_dir(&group) {
        skip("frozen", &format!("{group}: {error}"));
        return;
    }
    /// Lets all go also if the test fails.
    struct Thaw(String);
    impl Drop for Thaw {
        fn drop(&mut self) {
            let _ = fs::write(&self.0, "THAWED");
        }
    }
    let thawed = Thaw(format!("{group}/freezer.state"));
    let Some((bench, _)) = Bench::for_load("idle") else {
        return;
    };
    let script =
        format!("echo $$ >{group}/cgroup.procs; echo FROZEN >{group}/freezer.state; sleep 1000");
    let phases = format!(
        "3s:command:sh -c '{script}';idle;idle",
        script = script.replace(';', ";;")
    );
    let guard = bench.guard();
    let interrupt = Interrupt::detached().unwrap();
    let (phases, none) = (Schedule::parse(&phases).unwrap(), Measured::default());
    let mut running = Running::start(&phases, &bench.agent, &none, &guard, &interrupt).unwrap();
    running.begin(now_ns() + LEAD_NS).unwrap();
    thread::sleep(Duration::from_nanos(LEAD_NS) + Duration::from_secs(10));
    let begun = Instant::now();
    let did = running.stop().unwrap();
    // The driver waits 10 s for what it left before.
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    assert!(did.left.len() == 1 && !did.left[0].ended, "{did:?}");
    assert!(!guard.close().problems.is_empty());

    drop(thawed);
    wait_for("its end", || fs::remove_dir(&group).is_ok());
    let state = bench.folder.path().join("state");
    let swept = sweep_with(&state, &bench.options());
    assert!(swept.undo.problems.is_empty(), "{swept:?}");
    assert!(bench.scratch_is_empty());
    assert!(sweep_with(&state, &bench.options()).undo.undone.is_empty());
}

#[test]
fn a_load_that_dies_on_the_way_is_told_at_the_end() {
    let signs = tempfile::tempdir().unwrap();
    let sign = signs.path().join("sign");
    let script = format!(
        "until [ -e {} ]; do sleep 0.02; done; exit 3",
        sign.display()
    );
    let Some((bench, load)) = Bench::for_load(&format!("command:sh -c '{script}'")) else {
        return;
    };
    let guard = bench.guard();
    let running = bench.start(&load, &guard).unwrap();
    fs::write(&sign, "").unwrap();
    // A process that has ended is not marked, though its parent has not waited for it yet.
    wait_for("the driver's end", || marked(&guard).is_empty());
    let error = running.stop().unwrap_err().to_string();
    assert!(error.contains("ended by itself with status 3"), "{error}");

    // Nothing that writes: the end of its tools would have to wait for the disk.
    let load = Load::parse("command:sleep 1000").unwrap();
    let running = bench.start(&load, &guard).unwrap();
    kill(running.pid());
    let error = running.stop().unwrap_err().to_string();
    assert!(error.contains("driver failed or was killed"), "{error}");
    assert!(bench.scratch_is_empty() && marked(&guard).is_empty());
}

#[test]
fn a_request_to_stop_ends_a_load_that_is_not_going_yet() {
    let Some((bench, load)) = Bench::for_load("tar") else {
        return;
    };
    let guard = bench.guard();
    let interrupt = Interrupt::detached().unwrap();
    interrupt.request_stop();
    let outcome = Running::start(
        &load.into(),
        &bench.agent,
        &Measured::default(),
        &guard,
        &interrupt,
    );
    assert!(matches!(outcome, Err(LoadError::Stopped)), "{outcome:?}");
    assert!(bench.scratch_is_empty() && marked(&guard).is_empty());
}

#[test]
fn what_a_killed_driver_of_hackbench_leaves_is_ended_with_the_handle_or_by_a_sweep() {
    let Some((bench, load)) = Bench::for_load("hackbench") else {
        return;
    };
    let guard = bench.guard();
    let running = bench.start(&load, &guard).unwrap();
    kill(running.pid());
    drop(running);
    assert_eq!(marked(&guard), Vec::<i32>::new());
    assert!(guard.close().problems.is_empty());
    let state = bench.folder.path().join("state");
    assert!(
        sweep_with(&state, &bench.options())
            .undo
            .problems
            .is_empty()
    );
}

#[test]
fn a_slow_end_is_waited_for() {
    let signs = tempfile::tempdir().unwrap();
    let sign = signs.path().join("sign");
    let script = format!(
        "trap \"sleep 1; exit 0\" TERM; : >{}; while :; do sleep 0.1; done",
        sign.display()
    );
    let Some((bench, load)) = Bench::for_load(&format!("command:sh -c '{script}'")) else {
        return;
    };
    let guard = bench.guard();
    let running = bench.start(&load, &guard).unwrap();
    wait_for("the shell's trap", || sign.exists());
    let begun = Instant::now();
    running.stop().unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert!(marked(&guard).is_empty());
}
