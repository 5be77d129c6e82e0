//! Agents that write without end, and engines whose answers are long: what tare keeps of it, and
//! that it can be ended.

use std::io::{BufRead, BufReader, BufWriter, Read, Write, copy, sink};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::Signal;
use tare_testkit::sshd::Sshd;
use tare_wire::line::Encoder;
use tare_wire::record::{Fact, Live, Record};

use crate::common::{Bench, Started, send};

/// The most memory that tare may have at any time, in KiB.
const MOST_KIB: u64 = 256 << 10;
/// How long it is watched while a flood lasts, and one of records at most.
const WATCHED: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(110);
/// The limit of a cell whose flood nobody interrupts.
const LIMIT: Duration = Duration::from_secs(4);
/// How long an end may take.
const MOMENT: Duration = Duration::from_secs(2);
/// How often an end is tried.
const ATTEMPTS: usize = 5;

/// A cell that takes a second.
const WAKEUP: &str = "wakeup -D 1 -i 10000 --policy other --runs 1";

/// Floods, each with the script that writes it after the agent's first record.
const FLOODS: [(&str, &str); 4] = [
    ("zeros", "exec cat /dev/zero"),
    ("lines", "exec yes 'no record'"),
    ("records", "cat 'RECORDS'; exec sleep 1000"),
    ENDLESS,
];
/// Records that any plan has room for: tare keeps none.
const ENDLESS: (&str, &str) = (
    "endless records",
    "exec env TARE_WRITES=1 'TESTS' --exact --nocapture flood::writes_records_without_end_if_asked",
);

/// Writes records that are in order: more than any plan has room for.
fn records(to: &Path) {
    let mut encoder = Encoder::default();
    let value = "x".repeat(2_000);
    let mut all = Vec::new();
    for number in 0..30_000 {
        let name = format!("fact {number}");
        let fact = Fact {
            name: &name,
            labels: "",
            value: &value,
        };
        let line = encoder.encode(&Record::Fact(fact)).unwrap();
        // The first one is the real agent's.
        if number > 0 {
            all.extend_from_slice(line);
        }
    }
    fs::write(to, all).unwrap();
}

/// Makes an agent whose first record is that of the real one.
fn agent(bench: &Bench, flood: &str) -> PathBuf {
    let real = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../measured/target/x86_64-unknown-linux-gnu/release/tare-agent");
    let (fake, lines) = (bench.work().join("fake"), bench.work().join("records"));
    if flood.contains("RECORDS") {
        records(&lines);
    }
    let tests = std::env::current_exe().unwrap();
    let flood = flood
        .replace("RECORDS", &lines.display().to_string())
        .replace("TESTS", &tests.display().to_string());
    let script = format!(
        "#!/bin/sh\n'{}' \"$@\" | head -n 1\n{flood}\n",
        real.display()
    );
    fs::write(&fake, script).unwrap();
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    fake
}

/// Returns the greatest amount of memory that a process had, in KiB.
fn peak_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// The flood itself: the program of the tests is the agent, too.
#[test]
fn writes_records_without_end_if_asked() {
    if std::env::var_os("TARE_WRITES").is_none() {
        return;
    }
    let mut encoder = Encoder::default();
    let live = Record::Live(Live::default());
    // The first one is the real agent's.
    encoder.encode(&live).unwrap();
    #[expect(clippy::disallowed_methods, reason = "it is an agent")]
    let mut output = BufWriter::new(std::io::stdout());
    loop {
        let line = encoder.encode(&live).unwrap();
        if output.write_all(line).is_err() {
            return;
        }
    }
}

/// Runs tare on such an agent. Returns how long its end took after it was due: when it was
/// interrupted twice, or at the limit of its cell. None if there is no such target here.
fn end_of(
    words: &str,
    target: impl Fn(&Bench) -> Option<(Option<Sshd>, String)>,
    (name, flood): (&str, &str),
    limit: Option<Duration>,
) -> Option<Duration> {
    let bench = Bench::new();
    let (_sshd, target) = target(&bench)?;
    let cell_limit = limit.unwrap_or(Duration::from_secs(100)).as_secs();
    let mut command = bench.command(&format!(
        "{words} --cell-limit {cell_limit}s --target {target} --output run"
    ));
    let started = Started::of(command.env("TARE_AGENT", agent(&bench, flood)));
    let (begun, mut peak) = (Instant::now(), 0);
    // Another machine's agent floods while it is prepared, too.
    let is_ended = name == "records" && words.starts_with("wakeup") && target == "process";
    let is_watched_to_its_end = is_ended || limit.is_some();
    let watched = if is_watched_to_its_end {
        LONGEST
    } else {
        WATCHED
    };
    while begun.elapsed() < watched && !started.has_ended() {
        peak = peak.max(peak_kib(started.pid()).unwrap_or(0));
        thread::sleep(Duration::from_millis(5));
    }
    let due = limit.map_or_else(Instant::now, |limit| begun + limit);
    for _ in 0..2 {
        if !started.has_ended() {
            send(started.pid(), Signal::INT);
        }
        thread::sleep(Duration::from_millis(100));
    }
    let ran = started.end();
    let took = due.elapsed();
    assert!((1..MOST_KIB).contains(&peak), "{name}: {peak} KiB");
    // A machine that is busy with the flood may not answer at all.
    let is_remote = target != "process";
    let is_expected = matches!(ran.code, Some(1 | 4)) || is_remote && ran.code == Some(5);
    assert!(is_expected, "{name}: {ran:?}");
    if is_ended {
        ran.expect(1, &["it sent more than its plan can have"]);
    }
    if limit.is_some() {
        ran.expect(1, &["timed out after 4 s"]);
    }
    Some(took)
}

/// Checks that tare ends soon after it is interrupted twice, whatever the agent writes, and after
/// the limit of its cell.
fn flooded(words: &str, target: impl Fn(&Bench) -> Option<(Option<Sshd>, String)>) {
    let interrupted = FLOODS.map(|flood| (flood, None));
    for (flood, limit) in interrupted.into_iter().chain([(ENDLESS, Some(LIMIT))]) {
        let mut ends = Vec::new();
        // Bursts of stolen time delay some.
        while ends.iter().all(|took| *took >= MOMENT) {
            assert!(ends.len() < ATTEMPTS, "{}, {limit:?}: {ends:?}", flood.0);
            let Some(took) = end_of(words, &target, flood, limit) else {
                return;
            };
            ends.push(took);
        }
    }
}

#[test]
fn an_agent_that_writes_without_end_takes_neither_memory_nor_patience() {
    flooded(WAKEUP, |_| Some((None, "process".to_owned())));
}

#[test]
fn nor_does_one_on_another_machine() {
    flooded(WAKEUP, |bench| {
        let folder = bench.work().with_file_name("sshd");
        fs::create_dir(&folder).unwrap();
        let sshd = Sshd::start(&folder, "")?;
        let target = format!("ssh,{}", sshd.options());
        Some((Some(sshd), target))
    });
}

#[test]
fn nor_do_instances_that_are_started() {
    flooded("start --interval alone --runs 1", |_| {
        Some((None, "process".to_owned()))
    });
}

/// The longest answer of an engine that is read, in bytes.
const LONGEST_ANSWER: usize = 8 << 20;

/// An engine in which a call takes a strange way.
#[derive(Clone, Copy)]
struct Engine {
    /// The path of a call whose answer is a long list of lists.
    long: &'static str,
    /// The paths of calls that get no answer.
    silent: &'static [&'static str],
}

impl Engine {
    /// Starts `tare` with such an engine.
    fn start(self, bench: &Bench, words: &str) -> Started {
        let socket = bench.work().with_file_name("docker.sock");
        let engine = UnixListener::bind(&socket).unwrap();
        thread::spawn(move || {
            for call in engine.incoming() {
                thread::spawn(move || self.answer(&call.unwrap()));
            }
        });
        let mut command = bench.command(&format!("{WAKEUP} --target docker --output run {words}"));
        Started::of(command.env("DOCKER_HOST", format!("unix://{}", socket.display())))
    }

    fn answer(self, mut call: &UnixStream) {
        let mut reader = BufReader::new(call);
        let (mut first, mut length) = (String::new(), 0);
        reader.read_line(&mut first).unwrap();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim().split_once(": ") {
                Some(("Content-Length", bytes)) => length = bytes.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        copy(&mut reader.take(length), &mut sink()).unwrap();
        let has = |part: &str| first.contains(part);
        if self.silent.iter().any(|part| has(part)) {
            return thread::sleep(LONGEST);
        }
        let answer = match () {
            () if has(self.long) => format!("[{}[0]]", "[0],".repeat(LONGEST_ANSWER / 4 - 2)),
            () if has("/version") => r#"{"Version":"1"}"#.to_owned(),
            () if has("/images/create") => r#"{"status":"sha256:1"}"#.to_owned(),
            () if has("/containers/create") => r#"{"Id":"1"}"#.to_owned(),
            () if has("/wait") => r#"{"StatusCode":1}"#.to_owned(),
            () if has("/attach") => String::new(),
            () => "[]".to_owned(),
        };
        // What comes after the head is the container's output.
        let length = match has("/attach") {
            true => String::new(),
            false => format!("Content-Length: {}\r\n", answer.len()),
        };
        let _ = call.write_all(format!("HTTP/1.1 200 OK\r\n{length}\r\n{answer}").as_bytes());
    }
}

#[test]
fn long_answers_of_an_engine_take_little_memory() {
    // A call that fails ends the cell; the last one is made at the end of the run.
    for long in [
        "/version",
        "/images/create",
        "/containers/create",
        "/containers/1/json",
        "/containers/json",
    ] {
        let bench = Bench::new();
        let started = Engine { long, silent: &[] }.start(&bench, "");
        let mut peak = 0;
        while !started.has_ended() {
            peak = peak.max(peak_kib(started.pid()).unwrap_or(0));
            thread::sleep(Duration::from_millis(1));
        }
        let ran = started.end();
        assert!(matches!(ran.code, Some(1 | 5)), "{long}: {ran:?}");
        assert!((1..MOST_KIB).contains(&peak), "{long}: {peak} KiB");
    }
}

#[test]
fn an_engine_that_does_not_end_a_container_is_given_up_soon_after_the_limit() {
    let bench = Bench::new();
    let silent = Engine {
        long: "nothing",
        silent: &["/wait", "/kill"],
    };
    let begun = Instant::now();
    let started = silent.start(&bench, "--cell-limit 2s");
    started.end().expect(1, &["1 of 1 cells failed"]);
    // Without the limit, each call has a minute.
    assert!(begun.elapsed() < Duration::from_secs(30));
}
