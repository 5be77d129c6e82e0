//! Loads one after the other: the times of each, and the reports of delays.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};

use rustix::time::{ClockId, clock_gettime};
use tare_load_driver::driver::origin_line;

use super::*;

/// The length of a phase, longer than the usual stalls of a busy machine.
const LENGTH_NS: u64 = 5_000_000_000;

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A driver that waits for the beginning of its first phase.
struct Waiting {
    child: Child,
    told: ChildStdin,
    says: BufReader<ChildStdout>,
    /// Its output so far.
    said: Vec<u8>,
}

impl Waiting {
    /// Starts it, and waits until it is ready.
    fn start(schedule: &str, dir: &Path) -> Self {
        let mut command = agent(schedule, dir, "begin=stdin");
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut says = BufReader::new(child.stdout.take().unwrap());
        let mut said = Vec::new();
        while !String::from_utf8_lossy(&said).contains(" going ") {
            assert!(says.read_until(b'\n', &mut said).unwrap() > 0);
        }
        Self {
            told: child.stdin.take().unwrap(),
            child,
            says,
            said,
        }
    }

    /// Reads the rest of its output.
    fn read(mut self) -> Read {
        drop(self.told);
        std::io::Read::read_to_end(&mut self.says, &mut self.said).unwrap();
        let mut output = self.child.wait_with_output().unwrap();
        output.stdout = self.said;
        Read::of(&output)
    }
}

/// Asserts that each phase is in time, as far as possible on a busy machine.
fn assert_in_order(phases: &[Phase<'_>], origin_ns: u64, loads: &[&str]) {
    let names: Vec<&str> = phases.iter().map(|phase| phase.load).collect();
    assert_eq!(names, loads);
    let mut before_ns = origin_ns;
    for (number, phase) in (0..).zip(phases) {
        assert_eq!(phase.number, number);
        assert!(phase.started_ns >= before_ns, "{phases:?}");
        assert!(phase.started_ns >= origin_ns + u64::from(number) * LENGTH_NS);
        // A machine that stalled for half a phase skips its load, and reports that.
        let left_out = phase.stopping_ns == phase.started_ns;
        assert!(left_out || phase.stopping_ns >= origin_ns + u64::from(number + 1) * LENGTH_NS);
        assert!(phase.stopped_ns >= phase.stopping_ns);
        before_ns = phase.stopped_ns;
    }
}

#[test]
fn each_load_has_its_phase_and_its_own_figures() {
    if !can("hackbench") {
        return;
    }
    let command = "command:sh -c 'while :; do :; done'";
    let begun = now_ns();
    let read = run(
        &format!("5s:idle;hackbench;idle;{}", command.replace(';', ";;")),
        "",
    );
    assert_in_order(&read.phases, begun, &["idle", "hackbench", "idle", command]);
    let cpu = "ns of CPU time";
    let expected = [vec![], vec!["messages", cpu], vec![], vec!["runs", cpu]];
    assert_eq!(read.counted, expected);
    let place = |kind| read.kinds.iter().position(|other| *other == kind);
    assert!(place("hello") < place("going") && place("going") < place("phase"));
    assert_eq!(read.kinds.last(), Some(&"end"));
}

#[test]
fn the_first_phase_begins_when_it_is_told_and_the_end_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut waiting = Waiting::start("5s:idle;command:sleep 100", dir.path());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    let origin_ns = now_ns() + 300_000_000;
    waiting
        .told
        .write_all(origin_line(origin_ns).as_bytes())
        .unwrap();
    let end_ns = origin_ns + 2 * LENGTH_NS;
    let left_ns = end_ns.saturating_sub(now_ns());
    thread::sleep(Duration::from_nanos(left_ns + 500_000_000));
    assert!(waiting.child.try_wait().unwrap().is_none());
    kill(waiting.child.id(), Signal::TERM);
    let read = waiting.read();
    assert_in_order(&read.phases, origin_ns, &["idle", "command:sleep 100"]);
    assert_eq!(read.kinds.last(), Some(&"end"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_load_that_nobody_tells_when_to_begin_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let failure = |waiting: Waiting| waiting.read().failure.unwrap();
    let closed = failure(Waiting::start("2s:idle;dd", dir.path()));
    assert!(
        closed.contains("never got the start time of its first phase"),
        "{closed}"
    );
    let waiting = Waiting::start("2s:idle;dd", dir.path());
    kill(waiting.child.id(), Signal::TERM);
    let ended = failure(waiting);
    assert!(
        ended.contains("never got the start time of its first phase"),
        "{ended}"
    );
    let mut waiting = Waiting::start("2s:idle;dd", dir.path());
    waiting.told.write_all(b"now!\n").unwrap();
    let misread = failure(waiting);
    assert!(misread.contains("received 'now!'"), "{misread}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Returns a shell command as a load in a schedule.
fn shell(script: &str) -> String {
    format!("command:sh -c '{script}'").replace(';', ";;")
}

/// Returns the delay of a phase's beginning, as a share of its length.
fn late(phase: &Phase<'_>, length_ns: u64) -> f64 {
    (phase.started_ns - phase.due_ns) as f64 / length_ns as f64
}

#[test]
fn a_phase_that_the_one_before_holds_up_begins_late_or_is_skipped() {
    let slow = |seconds: &str| {
        let script = format!("trap \"sleep {seconds}; exit 0\" TERM; while :; do sleep 0.1; done");
        shell(&script)
    };
    // The next phase waits for a quarter of its length, at least 1 s.
    let read = run(&format!("4s:{};idle;idle", slow("0.5")), "");
    let [_, held_up, next] = &read.phases[..] else {
        panic!("{read:?}");
    };
    assert!(
        held_up.started_ns >= held_up.due_ns + 500_000_000,
        "{read:?}"
    );
    assert_eq!(read.phases[0].last_tool, Some("sh"));
    assert!(next.started_ns >= next.due_ns && read.left.is_empty());

    let read = run(&format!("1s:{};du;idle;idle;idle", slow("0.9")), "");
    let du = &read.phases[1];
    assert!(late(du, 1_000_000_000) > 0.5, "{read:?}");
    assert_eq!(
        (du.stopped_ns, read.counted[1].len()),
        (du.started_ns, 0),
        "{read:?}"
    );
    assert_eq!(read.phases.len(), 5);
}

#[test]
fn a_tool_whose_write_blocks_and_that_ignores_the_request_to_end_is_killed() {
    let begun = Instant::now();
    let script = "trap \"\" TERM; mkfifo f; exec 3<>f; dd if=/dev/zero >&3 2>&3";
    let read = run(&format!("1s:{};idle;idle;idle;idle", shell(script)), "");
    assert_eq!(read.failure, None);
    assert_eq!(read.phases.len(), 5, "{read:?}");
    assert!(read.phases[1].started_ns >= read.phases[1].due_ns + 1_000_000_000);
    let said = "sh did not end within 1 s after it was asked to, and was killed";
    assert!(read.says(said), "{read:?}");
    assert!(read.left.is_empty(), "{read:?}");
    // Five phases, and the time limits for their ends: nothing waits for the pipe.
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// A control group that can be frozen. In version 1, frozen processes can't be killed.
struct Freezer(std::path::PathBuf);

impl Freezer {
    fn make(name: &str) -> Option<Self> {
        let path = Path::new("/sys/fs/cgroup/freezer").join(name);
        if let Err(error) = fs::create_dir(&path) {
            skip("frozen", &format!("{}: {error}", path.display()));
            return None;
        }
        Some(Self(path))
    }

    fn procs(&self) -> String {
        fs::read_to_string(self.0.join("cgroup.procs")).unwrap()
    }

    fn thaw(&self) {
        fs::write(self.0.join("freezer.state"), "THAWED").unwrap();
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.thaw();
        let deadline = Instant::now() + Duration::from_secs(30);
        while fs::remove_dir(&self.0).is_err() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_tool_that_can_t_be_killed_is_left_and_told_and_ends_as_soon_as_it_can() {
    let name = format!("tare-test-{}", std::process::id());
    let Some(freezer) = Freezer::make(&name) else {
        return;
    };
    let group = freezer.0.display();
    let script =
        format!("echo $$ >{group}/cgroup.procs; echo FROZEN >{group}/freezer.state; sleep 1000");
    let begun = Instant::now();
    let read = run(&format!("1s:idle;{};du;idle;idle;idle", shell(&script)), "");
    assert_eq!(read.failure, None);
    // Six phases, 2 s for the tool, 10 s at the end.
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(read.phases.len(), 6, "{read:?}");
    let [left] = &read.left[..] else {
        panic!("{read:?}");
    };
    assert_eq!((left.tool, left.phase, left.ended), ("sh", 1, false));
    assert!((2..=5).contains(&left.until), "{read:?}");
    assert_eq!(read.phases[1].last_tool, Some("sh"));
    assert!(late(&read.phases[2], 1_000_000_000) > 0.5, "{read:?}");
    assert_eq!(freezer.procs().trim(), left.pid.to_string());
    freezer.thaw();
    wait_for("its end", || freezer.procs().is_empty());
}

#[test]
fn a_schedule_that_is_stopped_on_the_way_reports_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mark = format!("phases-{}", std::process::id());
    let child = started("60s:dd+command:sleep 1000;idle", dir.path(), &mark);
    kill(child.id(), Signal::TERM);
    let read = Read::of(&child.wait_with_output().unwrap());
    assert_eq!(read.phases.len(), 1, "{read:?}");
    let said = "the load was ended in phase 0 of 2, counted from 0";
    assert!(read.says(said), "{read:?}");
    assert_eq!(read.kinds.last(), Some(&"end"));
    assert_eq!(marked(&mark), Vec::<i32>::new());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
