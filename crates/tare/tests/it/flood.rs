//! Agents that write without end: what tare keeps of it, and that it can be ended.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::Signal;
use tare_testkit::sshd::Sshd;
use tare_wire::line::Encoder;
use tare_wire::record::{Fact, Record};

use crate::common::{Bench, Started, send};

/// The most memory that tare may have at any time, in KiB.
const MOST_KIB: u64 = 256 << 10;
/// How long it is watched while a flood lasts, and one of records at most.
const WATCHED: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(110);
/// Longer than the two seconds that an end may take, where bursts of stolen time let it.
const MOMENT: Duration = Duration::from_secs(8);

/// Floods, each with the script that writes it after the agent's first record.
const FLOODS: [(&str, &str); 3] = [
    ("zeros", "exec cat /dev/zero"),
    ("lines", "exec yes 'no record'"),
    ("records", "cat flood; exec sleep 1000"),
];

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
    records(&lines);
    let flood = flood.replace("flood", &lines.display().to_string());
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

/// Runs tare on each of these agents, and interrupts it twice in the middle; of records there is an end.
fn flooded(words: &str, target: impl Fn(&Bench) -> Option<(Option<Sshd>, String)>) {
    for (name, flood) in FLOODS {
        let bench = Bench::new();
        let Some((_sshd, target)) = target(&bench) else {
            return;
        };
        let mut command = bench.command(&format!("{words} --target {target} --output run"));
        let started = Started::of(command.env("TARE_AGENT", agent(&bench, flood)));
        let (begun, mut peak) = (Instant::now(), 0);
        // Another machine's agent floods while it is prepared, too.
        let is_ended = name == "records" && words.starts_with("wakeup") && target == "process";
        let limit = if is_ended { LONGEST } else { WATCHED };
        while begun.elapsed() < limit && !started.has_ended() {
            peak = peak.max(peak_kib(started.pid()).unwrap_or(0));
            thread::sleep(Duration::from_millis(5));
        }
        let begun = Instant::now();
        for _ in 0..2 {
            if !started.has_ended() {
                send(started.pid(), Signal::INT);
            }
            thread::sleep(Duration::from_millis(100));
        }
        let ran = started.end();
        let took = begun.elapsed();
        assert!(took < MOMENT, "{name}: {took:?}");
        assert!((1..MOST_KIB).contains(&peak), "{name}: {peak} KiB");
        assert!(matches!(ran.code, Some(1 | 4)), "{name}: {ran:?}");
        if is_ended {
            ran.expect(1, &["it sent more than its plan can have"]);
        }
    }
}

#[test]
fn an_agent_that_writes_without_end_takes_neither_memory_nor_patience() {
    flooded(
        "wakeup -D 1 -i 10000 --policy other --runs 1 --cell-limit 100s",
        |_| Some((None, "process".to_owned())),
    );
}

#[test]
fn nor_does_one_on_another_machine() {
    flooded(
        "wakeup -D 1 -i 10000 --policy other --runs 1 --cell-limit 100s",
        |bench| {
            let folder = bench.work().with_file_name("sshd");
            fs::create_dir(&folder).unwrap();
            let sshd = Sshd::start(&folder, "")?;
            let target = format!("ssh,{}", sshd.options());
            Some((Some(sshd), target))
        },
    );
}

#[test]
fn nor_do_instances_that_are_started() {
    flooded("start --interval alone --runs 1", |_| {
        Some((None, "process".to_owned()))
    });
}
