//! `tare-agent load`, with the real tools: counts, failures, and that nothing is left behind.

mod phases;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, kill_process};
use tare_load_driver::Load;
use tare_testkit::records::RecordList;
use tare_wire::line::Stream;
use tare_wire::record::{Achieved, Leftovers, Phase, Record};

/// The exit code of the shell if nothing can be mounted.
const NO_MOUNT: i32 = 77;

/// The results of one load.
#[derive(Debug, Default)]
struct Read {
    kinds: Vec<&'static str>,
    achieved: Vec<Achieved<'static>>,
    notices: Vec<&'static str>,
    phases: Vec<Phase<'static>>,
    /// The counted units of each phase.
    counted: Vec<Vec<&'static str>>,
    left: Vec<Leftovers<'static>>,
    failure: Option<&'static str>,
}

impl Read {
    fn of(output: &Output) -> Self {
        let told = RecordList::read(Stream::Load, &output.stdout);
        let lines = output.stdout.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(told.records.len(), lines, "each line is a record");
        let mut read = Self {
            kinds: told.kinds(),
            notices: told.notices(),
            failure: told.failure(),
            ..Self::default()
        };
        for record in told.records {
            match record {
                Record::Achieved(it) => {
                    assert!(it.ns > 0);
                    if let Some(counted) = read.counted.last_mut() {
                        counted.push(it.what);
                    }
                    read.achieved.push(it);
                }
                Record::Phase(it) => {
                    read.phases.push(it);
                    read.counted.push(Vec::new());
                }
                Record::Leftovers(it) => read.left.push(it),
                _ => {}
            }
        }
        read
    }

    fn amount(&self, what: &str) -> u64 {
        let named = self.achieved.iter().find(|it| it.what == what);
        named
            .unwrap_or_else(|| panic!("no {what} in {self:?}"))
            .amount
    }

    fn says(&self, what: &str) -> bool {
        self.notices.iter().any(|text| text.contains(what))
    }
}

fn agent(load: &str, dir: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tare-agent"));
    let mut folder = OsString::from("dir=");
    folder.push(dir);
    command
        .args(["load", load])
        .arg(folder)
        .args(words.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The limit on written bytes for dd, which even a slow disk soon reaches.
const LITTLE: &str = "seconds=1 limit=6291456";

/// Runs a load and asserts that its scratch folder is empty afterwards.
fn run(load: &str, words: &str) -> Read {
    let dir = tempfile::tempdir().unwrap();
    let output = agent(load, dir.path(), words).output().unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{load}");
    let read = Read::of(&output);
    assert_eq!(output.status.success(), read.failure.is_none(), "{read:?}");
    read
}

/// Returns whether the load can be tested here; in CI every load can.
fn can(load: &str) -> bool {
    let parsed = Load::parse(load).unwrap();
    let missing = parsed
        .tools()
        .into_iter()
        .find(|tool| tool.find().is_none());
    let why = match missing {
        Some(tool) => format!("{} is missing (package {})", tool.program, tool.package),
        None if parsed.needs_root().is_some() && !rustix::process::geteuid().is_root() => {
            "it requires root".to_owned()
        }
        None => return true,
    };
    skip(load, &why)
}

/// Reports a skipped load.
fn skip(load: &str, why: &str) -> bool {
    tare_testkit::skip(&format!("load {load}"), why);
    false
}

/// Returns the processes whose environment holds `mark`.
fn marked(mark: &str) -> Vec<i32> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_mark = |pid: &i32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(mark))
    };
    numbers.filter(has_mark).collect()
}

#[track_caller]
fn wait_for(what: &str, mut found: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !found() {
        assert!(Instant::now() < deadline, "{what} did not come");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn every_load_does_something_and_says_how_much() {
    for (load, what) in [
        ("dd", "bytes written"),
        ("hackbench", "messages"),
        ("du", "folders"),
        ("tar", "bytes archived"),
        ("nc", "bytes sent"),
        ("ping", "packets answered"),
        ("stress-ng:--cpu 1", "bogo ops of cpu"),
        ("command:sh -c 'exit 0'", "runs"),
    ] {
        if !can(load) {
            continue;
        }
        let words = if load == "dd" { LITTLE } else { "seconds=1" };
        let read = run(load, words);
        assert!(read.amount(what) > 0, "{read:?}");
        assert!(read.amount("ns of CPU time") > 0, "{read:?}");
        assert_eq!(read.kinds.first(), Some(&"hello"));
        assert!(read.kinds.contains(&"going"));
        assert_eq!(read.kinds.last(), Some(&"end"));
        for text in Load::parse(load).unwrap().deviations() {
            assert!(read.says(&text), "{text} in {read:?}");
        }
    }
}

#[test]
fn loads_are_joined_and_pinned() {
    if !can("dd+hackbench") {
        return;
    }
    let read = run("cpus=0:dd+hackbench", LITTLE);
    assert!(
        read.amount("bytes written") > 0 && read.amount("messages") > 0,
        "{read:?}"
    );
}

#[test]
fn hackbench_is_killed_when_it_is_old_and_goes_on() {
    if !can("hackbench") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut driver = agent("hackbench", dir.path(), "seconds=8").spawn().unwrap();
    let children = format!("/proc/{0}/task/{0}/children", driver.id());
    let mut leaders = BTreeSet::new();
    while driver.try_wait().unwrap().is_none() {
        let now = fs::read_to_string(&children).unwrap_or_default();
        leaders.extend(now.split_whitespace().map(str::to_owned));
        thread::sleep(Duration::from_millis(50));
    }
    let read = Read::of(&driver.wait_with_output().unwrap());
    assert!(read.amount("messages") > 0, "{read:?}");
    assert!(leaders.len() > 3, "three at a time: {leaders:?}");
}

#[test]
fn idle_does_nothing() {
    let read = run("idle", "seconds=0.1");
    assert_eq!(read.kinds, ["hello", "going", "end"]);
}

#[test]
fn files_stay_within_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let limit = 6 << 20;
    let mut child = agent("dd", dir.path(), &format!("limit={limit} seconds=3"))
        .spawn()
        .unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let folders = fs::read_dir(dir.path()).unwrap().flatten();
        let files =
            folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
        most = most.max(
            files
                .filter_map(|file| Some(file.metadata().ok()?.len()))
                .sum(),
        );
        thread::sleep(Duration::from_millis(20));
    }
    let read = Read::of(&child.wait_with_output().unwrap());
    assert!((1..=limit).contains(&most), "{most}");
    assert!(read.says("each file has 2 MiB instead of 1024"), "{read:?}");
    assert!(
        read.amount("bytes written") > limit,
        "rewritten again and again"
    );
}

#[test]
fn a_command_that_writes_too_much_is_ended() {
    for (script, said) in [
        (
            "dd if=/dev/zero of=f bs=1M count=30",
            "larger than the load's limit",
        ),
        (
            "for i in 1 2 3 4 5; do head -c 5000000 /dev/zero >$i; done; sleep 60",
            "which may hold 9 MiB",
        ),
    ] {
        let read = run(
            &format!("command:sh -c 'exec 2>&1; {script}; kill -XFSZ $$'"),
            "limit=10000000 seconds=30",
        );
        assert!(read.failure.unwrap().contains(said), "{read:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused_before_it_starts() {
    for load in ["dd", "tar"] {
        let read = run(load, "limit=1000000 seconds=1");
        let failure = read.failure.unwrap();
        assert!(failure.contains("make room"), "{failure}");
    }
}

#[test]
fn a_missing_tool_is_named_with_its_package() {
    let (dir, path) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    symlink("/usr/bin/dd", path.path().join("dd")).unwrap();
    let output = agent("dd+hackbench", dir.path(), "seconds=1")
        .env("PATH", path.path())
        .output()
        .unwrap();
    assert_eq!(
        Read::of(&output).failure,
        Some(
            "the load needs hackbench, which is in no folder of PATH; Debian's package rt-tests has it"
        )
    );
}

#[test]
fn a_tool_that_fails_ends_the_load_with_its_words() {
    for (load, said) in [
        (
            "command:sh -c 'echo oops >&2; exit 3'",
            "ended by itself with status 3; it said: oops",
        ),
        ("command:sh -c 'kill -SEGV $$'", "ended by signal 11"),
        ("command:no-such-program", "can't execute no-such-program"),
        ("stress-ng:--no-such-option", "ended by itself with status"),
    ] {
        if can(load) {
            let failure = run(load, "seconds=20").failure.unwrap();
            assert!(failure.contains(said), "{failure}");
        }
    }
}

#[test]
fn a_tool_that_meets_the_driver_s_own_end_did_nothing_wrong() {
    // As if the driver's whole process group received the signal, and the tool had just been
    // forked. The driver is stopped until the tool has ended, so that it sees both at once.
    let both = "kill -STOP $PPID; kill -TERM $PPID; (sleep 0.2; kill -CONT $PPID) & kill -TERM $$";
    let read = run(&format!("command:sh -c '{both}'"), "seconds=20");
    assert_eq!(read.failure, None);
}

#[test]
fn a_cpu_that_is_not_there_is_told() {
    let failure = run("cpus=1000:dd", "").failure.unwrap();
    assert!(failure.contains("CPU 1000"), "{failure}");
}

#[test]
fn words_that_make_no_sense_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let output = agent("dd", dir.path(), "fast").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}

/// Starts a load with a mark in its environment, and waits until it is running.
fn started(load: &str, dir: &Path, mark: &str) -> Child {
    let child = agent(load, dir, "limit=50000000")
        .env("TARE_TEST_MARK", mark)
        .spawn()
        .unwrap();
    let dd = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "dd")
    };
    wait_for("dd", || marked(mark).iter().any(dd));
    child
}

fn kill(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn a_stopped_load_reports_and_leaves_no_process() {
    let dir = tempfile::tempdir().unwrap();
    let mark = format!("stopped-{}", std::process::id());
    let child = started(
        "dd+command:sh -c 'setsid sleep 1000 & wait'",
        dir.path(),
        &mark,
    );
    thread::sleep(Duration::from_millis(300));
    kill(child.id(), Signal::TERM);
    let read = Read::of(&child.wait_with_output().unwrap());
    assert_eq!(read.kinds.last(), Some(&"end"), "{read:?}");
    assert_eq!(
        marked(&mark),
        Vec::<i32>::new(),
        "neither tools nor what left their group"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_killed_driver_takes_its_tools_along() {
    let dir = tempfile::tempdir().unwrap();
    let mark = format!("killed-{}", std::process::id());
    let mut child = started("dd", dir.path(), &mark);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the end of its tools", || marked(&mark).is_empty());
}

#[test]
fn a_driver_whose_parent_dies_ends_everything() {
    let dir = tempfile::tempdir().unwrap();
    let mark = format!("orphaned-{}", std::process::id());
    let mut parent = Command::new("sh");
    parent
        .args([
            "-c",
            "\"$0\" load dd dir=\"$1\" limit=50000000 >/dev/null 2>&1 & wait",
        ])
        .arg(env!("CARGO_BIN_EXE_tare-agent"))
        .arg(dir.path())
        .env("TARE_TEST_MARK", &mark)
        .process_group(0);
    let mut parent = parent.spawn().unwrap();
    wait_for("the driver's folder", || {
        fs::read_dir(dir.path()).unwrap().count() > 0
    });
    assert!(getppid().is_some());
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_for("the end of the driver", || marked(&mark).is_empty());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_full_disk_is_told_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    // The disk has room when the load starts, and another process fills it: repeatedly, since each
    // dd that restarts frees its file.
    let script = format!(
        "mount -t tmpfs -o size=40m tare-test \"$1\" || exit {NO_MOUNT}
         \"$0\" load dd dir=\"$1\" seconds=60 & load=$!
         while [ ! -e \"$1\"/load-*/dd-3 ]; do sleep 0.02; done
         while :; do cat /dev/zero >>\"$1\"/rest 2>/dev/null; sleep 0.01; done & taker=$!
         wait $load; status=$?
         kill $taker; wait $taker; exit $status"
    );
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command
        .args([
            "--mount",
            "sh",
            "-c",
            &script,
            env!("CARGO_BIN_EXE_tare-agent"),
        ])
        .arg(dir.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(NO_MOUNT) || said.contains("unshare: ") {
        skip("dd", "nothing can be mounted in a namespace here");
        return;
    }
    let read = Read::of(&output);
    let failure = read.failure.unwrap_or_default();
    assert!(
        failure.contains("No space left on device") && failure.contains("make room"),
        "{read:?}"
    );
    assert!(read.says("RAM disk"), "{read:?}");
}
