//! The primitives of this machine, of a container, of a guest and of the unikernel.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use tare_figures::rows::{Figure, Row, Rows};
use tare_pages::analyse;
use tare_results::RunFolder;

use crate::common::{
    self, Bench, OtherUser, Started, files, is_root, processes_with, send, skip, wait_for,
};

fn run_of(bench: &Bench) -> PathBuf {
    bench.work().join("run")
}

fn rows(bench: &Bench) -> Rows {
    let folder = RunFolder::open(&run_of(bench)).unwrap();
    let analysis = analyse(&folder, tare_experiments::catalogue()).unwrap();
    analysis.rows().clone()
}

fn find<'a>(rows: &'a Rows, measure: &str, labels: &[(&str, &str)]) -> Vec<&'a Row> {
    let own = rows.0.iter().filter(|row| {
        row.measure.id == measure && labels.iter().all(|(key, value)| row.has(key, value))
    });
    own.collect()
}

/// Returns the one figure of a measure with these labels.
fn value(rows: &Rows, measure: &str, labels: &[(&str, &str)]) -> f64 {
    let found = find(rows, measure, labels);
    let [row] = found[..] else {
        panic!("{} rows of {measure} {labels:?}", found.len());
    };
    row.over.as_ref().unwrap().estimate
}

fn assert_nothing_is_left(bench: &Bench) {
    let mark = format!("TARE_STATE_DIR={}", bench.state().display());
    assert_eq!(processes_with(&mark), Vec::<u32>::new());
    assert_eq!(files(&bench.scratch()), Vec::<String>::new());
}

#[test]
fn nothing_that_could_be_measured_is_a_failure_with_its_reason() {
    let bench = Bench::new();
    let ran =
        bench.run("primitives --only open,close --dir /nonexistent --runs 1 --json --output run");
    ran.expect(
        1,
        &[
            "Nothing was measured: cell 1 ",
            "no folder can be made in /nonexistent",
            "1 of 1 cells ended without a figure",
        ],
    );
    let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (
            &told["done"],
            told["not_measured"].as_array().unwrap().len()
        ),
        (&0.into(), 1)
    );
    let page = std::fs::read_to_string(run_of(&bench).join("report.html")).unwrap();
    assert!(!page.contains("cell of the plan was measured"));
    bench
        .run("report run -q")
        .expect(1, &["no folder can be made in /nonexistent"]);
    // A gate is of figures, and there are none.
    bench
        .run("report run -q --fail-if cost>1s")
        .expect(1, &["Nothing was measured"]);
}

#[test]
fn every_published_row_is_filled_or_has_its_reason() {
    let _alone = common::alone();
    let bench = Bench::new();
    let study = include_str!("../../../../studies/cse221-2022.toml");
    let once = study.replace("runs = 3", "runs = 1");
    std::fs::write(bench.work().join("study.toml"), once).unwrap();
    let ran = bench.run("run study.toml --quick --output run");
    ran.expect(
        0,
        &[
            "Claims of cse221-2022",
            "What primitives cost",
            "On process: a system call",
        ],
    );
    assert_nothing_is_left(&bench);
    let summary = common::json(&run_of(&bench).join("summary.json"));
    let comparisons = summary["reproduction"]["comparisons"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(comparisons.len(), 24);
    for one in comparisons {
        let here = one["here"].as_str().unwrap();
        let is_filled = !one["target"].is_null() && here.contains(", expected");
        let has_reason = here.starts_with("no figure: ") || here.starts_with("no such level");
        // A level by itself has no expectation.
        let is_level =
            one["what"].as_str().unwrap().starts_with("latency-") && !one["target"].is_null();
        assert!(is_filled || has_reason || is_level, "{one}");
    }
    let rows = rows(&bench);
    // The cost of faults is divided by the kernel's count, and a major one was one.
    let faults = [("primitive", "fault-anonymous"), ("of", "faults")];
    assert!(value(&rows, "number", &faults) > 1_000.0);
    let major = find(&rows, "number", &[("primitive", "fault-major")]);
    assert!(!major.is_empty() || ran.out.contains("its folder is no disk"));
    for row in major {
        assert_eq!(row.over.as_ref().unwrap().estimate, 256.0);
    }
    // Every primitive that there is.
    let list = bench.run("primitives --list").out;
    let ids = list.lines().filter_map(|line| line.strip_prefix("  "));
    let ids = ids.filter(|line| !line.starts_with(' '));
    let ids: Vec<&str> = ids.filter_map(|line| line.split(' ').next()).collect();
    assert!(ids.len() > 100, "{ids:?}");
    for id in ids {
        let has_figure = ["cost", "single", "latency", "bandwidth", "share"]
            .iter()
            .any(|measure| !find(&rows, measure, &[("primitive", id)]).is_empty());
        let has_reason = ran.out.contains(&format!("{id} on process"));
        assert!(has_figure || has_reason, "{id}");
    }
    assert_no_connect_waits(&rows);
    // A system call takes longer than a call, and a process longer than a thread.
    let cost = |id| value(&rows, "cost", &[("primitive", id)]);
    assert!(cost("getppid") > 2.0 * cost("call-0"));
    let small = |id| value(&rows, "cost", &[("primitive", id), ("memory", "small")]);
    assert!(small("vfork-exit") > cost("getppid"));
    assert!(small("fork-exit") > cost("thread-create"));
    // Both costs of each that has them: what single ones take is no less than the least.
    let medians = rows
        .0
        .iter()
        .filter(|row| row.measure.id == "single" && row.figure == Figure::MEDIAN);
    assert!(medians.count() > 40);
}

#[test]
fn what_the_barrier_costs_is_a_row_of_each_target() {
    if !is_root() {
        return skip("containers", "crun requires root");
    }
    let bench = Bench::new();
    let ran = bench.run(
        "primitives --only getpid --only call-0 --only fault-anonymous --only wake-to-run --runs 1 --budget 2ms --output run \
         --target process --target crun --target unikernel,accel=tcg --target linux,kernel=debian-cloud-6.1,accel=tcg",
    );
    if ran.code == Some(5) {
        return skip("a place", &ran.err);
    }
    ran.expect(0, &["getpid", "unikernel,accel=tcg", "crun"]);
    let rows = rows(&bench);
    for target in [
        "process",
        "crun",
        "unikernel,accel=tcg",
        "linux,kernel=debian-cloud-6.1,accel=tcg",
    ] {
        for id in ["getpid", "call-0", "fault-anonymous"] {
            let cost = value(&rows, "cost", &[("target", target), ("primitive", id)]);
            assert!(cost > 0.0, "{id} on {target}");
        }
    }
    // Where an emulator executes, nothing is expected.
    assert!(find(&rows, "expected", &[("target", "process")]).len() > 2);
    assert!(find(&rows, "expected", &[("target", "unikernel,accel=tcg")]).is_empty());
    let of = |target| {
        value(
            &rows,
            "cost",
            &[("target", target), ("primitive", "getpid")],
        )
    };
    assert!(of("unikernel,accel=tcg") < of("linux,kernel=debian-cloud-6.1,accel=tcg"));
    assert_nothing_is_left(&bench);
}

#[test]
fn a_helper_that_is_killed_or_hangs_is_a_failed_row() {
    let bench = Bench::new();
    // Something that never ends by itself within the limit: a series that is far longer.
    let started =
        bench.start("primitives --only getppid --only getuid --runs 1 --budget 5s --output run");
    let agent = started.agent();
    let helper = wait_for("the helper", || {
        let children =
            std::fs::read_to_string(format!("/proc/{agent}/task/{agent}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    });
    send(helper, Signal::KILL);
    let ran = started.end();
    ran.expect(
        0,
        &[
            "getppid on process",
            "failed: it was killed by signal 9",
            "getuid",
        ],
    );
    assert!(find(&rows(&bench), "cost", &[("primitive", "getppid")]).is_empty());
    assert_eq!(
        find(&rows(&bench), "cost", &[("primitive", "getuid")]).len(),
        1
    );
    assert_nothing_is_left(&bench);
    let bench = Bench::new();
    let ran = bench
        .run("primitives --only getppid --runs 1 --budget 5s --primitive-limit 1s --output run");
    ran.expect(
        1,
        &["Nothing was measured: cell 1 ", "had not ended after 1 s"],
    );
    assert_nothing_is_left(&bench);
}

#[test]
fn what_cannot_run_here_is_listed_with_its_reason_also_without_root() {
    let Some(user) = OtherUser::new() else {
        return skip("another user", "becoming one requires root and setpriv");
    };
    let ran = user.run(
        "primitives --only tcp-round-trip --only icmp-round-trip --only remote-read-sequential --only file-create --runs 1 \
         --budget 1ms --dir /nowhere --output run",
    );
    ran.expect(
        0,
        &[
            "tcp-round-trip",
            "Primitives not measured, or not to the end",
            "it needs a folder of another machine (--remote-dir)",
            "no folder can be made in /nowhere",
            "CAP_NET_RAW",
        ],
    );
}

#[test]
fn where_nobody_answers_what_was_measured_before_is_kept() {
    let bench = Bench::new();
    let ran = bench.run(
        "primitives --only tcp-round-trip --peer 127.0.0.1:1 --runs 1 --budget 1ms --output run",
    );
    ran.expect(0, &["no connection to 127.0.0.1:1", "'tare-agent peer'"]);
    let labels = [
        ("primitive", "tcp-round-trip"),
        ("at", "loopback"),
        ("cpu", "same"),
    ];
    assert!(value(&rows(&bench), "cost", &labels) > 0.0);
}

#[test]
fn another_machine_is_reached_and_a_queue_that_is_full_is_no_connect() {
    let _alone = common::alone();
    if !is_root() {
        return skip("network namespaces", "they require root");
    }
    let bench = Bench::new();
    let (here, there) = (
        format!("tare-a-{}", std::process::id()),
        format!("tare-b-{}", std::process::id()),
    );
    let made = Namespaces::new(&here, &there);
    let agent = tare_targets::measured::MeasuredFile::agent();
    let peer = Command::new("ip")
        .args(["netns", "exec", &there])
        .arg(agent.path().unwrap())
        .args(["peer", "10.214.7.2:7000"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let _peer = Ending(peer);
    let listening = || {
        let told = Command::new("ip")
            .args(["netns", "exec", &there, "cat", "/proc/net/tcp"])
            .output()
            .ok()?;
        String::from_utf8_lossy(&told.stdout)
            .contains(":1B58")
            .then_some(())
    };
    wait_for("the peer", listening);
    let mut command = bench.command(
        "primitives --only network --runs 1 --budget 5ms --peer 10.214.7.2:7000 --output run",
    );
    let program = command.get_program().to_owned();
    let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let mut within = Command::new("ip");
    within
        .args(["netns", "exec", &here])
        .arg(program)
        .args(words);
    for (key, value) in command.get_envs() {
        if let Some(value) = value {
            within.env(key, value);
        }
    }
    within.current_dir(command.get_current_dir().unwrap());
    within.stdout(Stdio::piped()).stderr(Stdio::piped());
    command = within;
    let ran = Started::of(&mut command).end();
    drop(made);
    ran.expect(0, &["tcp-connect at=peer"]);
    let rows = rows(&bench);
    for id in [
        "tcp-round-trip",
        "udp-round-trip",
        "icmp-round-trip",
        "tcp-connect",
        "tcp-close",
    ] {
        assert!(
            value(&rows, "cost", &[("primitive", id), ("at", "peer")]) > 0.0,
            "{id}"
        );
    }
    assert_eq!(
        find(
            &rows,
            "bandwidth",
            &[("primitive", "tcp-bandwidth"), ("at", "peer")]
        )
        .len(),
        2
    );
    let udp = [("primitive", "udp-bandwidth"), ("at", "peer")];
    assert_eq!(find(&rows, "bandwidth", &udp).len(), 2);
    assert_no_connect_waits(&rows);
}

/// Asserts that no connection waited for a place in a queue, which takes a second.
#[track_caller]
fn assert_no_connect_waits(rows: &Rows) {
    let mut longest = find(rows, "single", &[("primitive", "tcp-connect")]);
    longest.retain(|row| row.figure == Figure::Max);
    assert!(!longest.is_empty());
    for row in longest {
        let ns = row.over.as_ref().unwrap().highest;
        assert!(ns < 900e6, "{} ns at {:?}", ns, row.labels);
    }
}

#[test]
fn a_peer_that_says_nothing_costs_its_own_figures_only() {
    let bench = Bench::new();
    // The kernel accepts for it.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = mute.local_addr().unwrap();
    let ran = bench.run(&format!(
        "primitives --only tcp-round-trip --only udp-round-trip --only tcp-connect --peer {peer} --runs 1 --budget 1ms --output run"
    ));
    ran.expect(
        0,
        &[
            "no answer in time",
            "the other side does not answer in time",
        ],
    );
    let rows = rows(&bench);
    for id in ["tcp-round-trip", "udp-round-trip", "tcp-connect"] {
        let loopback = [("primitive", id), ("at", "loopback"), ("cpu", "same")];
        assert!(value(&rows, "cost", &loopback) > 0.0, "{id}");
        let peer = [("primitive", id), ("at", "peer")];
        assert!(find(&rows, "cost", &peer).is_empty(), "{id}");
    }
    // Also if each of them took as long as it may, the cell would end.
    let plan = common::json(&run_of(&bench).join("plan.json"));
    let limit = plan["cells"][0]["limit_seconds"].as_f64().unwrap();
    assert!(limit > 3.0 * 25.0, "{limit}");
    assert_nothing_is_left(&bench);
}

#[test]
fn a_file_is_read_from_the_folder_of_another_machine_that_is_named() {
    let bench = Bench::new();
    // A disk of this machine in its place: what is read from it is in no cache, either.
    let remote = tempfile::tempdir_in("/var/tmp").unwrap();
    let ran = bench.run(&format!(
        "primitives --only remote-* --remote-dir {} --runs 1 --budget 5ms --output run",
        remote.path().display()
    ));
    if ran.out.contains("its folder is no disk") {
        return skip("a disk", "/var/tmp is in memory");
    }
    ran.expect(0, &["remote-read-sequential", "remote-read-random"]);
    let rows = rows(&bench);
    let of = |id| [("primitive", id), ("at", "remote")];
    assert!(value(&rows, "cost", &of("remote-read-random")) > 0.0);
    let passes = find(&rows, "bandwidth", &of("remote-read-sequential"));
    assert_eq!(passes.len(), 2);
    assert_eq!(files(remote.path()), Vec::<String>::new());
    assert_nothing_is_left(&bench);
}

#[test]
fn a_program_that_is_only_started_writes_to_no_descriptor_that_it_finds() {
    let bench = Bench::new();
    let agent = tare_targets::measured::MeasuredFile::agent();
    let ran = Command::new("sh")
        .args(["-c", "exec \"$0\" stamp 3>found"])
        .arg(agent.path().unwrap())
        .current_dir(bench.work())
        .status();
    assert!(ran.unwrap().success());
    let found = std::fs::read(bench.work().join("found")).unwrap();
    assert_eq!(found, b"");
}

/// Two network namespaces with a cable between them, removed when this is dropped.
struct Namespaces(String, String);

impl Namespaces {
    fn new(here: &str, there: &str) -> Self {
        let made = Self(here.to_owned(), there.to_owned());
        let ip = |words: &str| {
            let ran = Command::new("ip").args(words.split(' ')).output().unwrap();
            assert!(
                ran.status.success(),
                "ip {words}: {}",
                String::from_utf8_lossy(&ran.stderr)
            );
        };
        for name in [here, there] {
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
        }
        ip(&format!(
            "link add tare-veth0 netns {here} type veth peer name tare-veth1 netns {there}"
        ));
        for (name, number) in [(here, 0), (there, 1)] {
            ip(&format!(
                "-n {name} address add 10.214.7.{}/24 dev tare-veth{number}",
                number + 1
            ));
            ip(&format!("-n {name} link set tare-veth{number} up"));
        }
        made
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in [&self.0, &self.1] {
            let _ = Command::new("ip").args(["netns", "delete", name]).output();
        }
    }
}

/// A process that is ended when this is dropped.
struct Ending(std::process::Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_there_is_can_be_listed_compared_and_gated() {
    let bench = Bench::new();
    let ran = bench.run("primitives --list");
    ran.expect(
        0,
        &[
            "getppid",
            "needs a kernel with processes",
            "tags: published; needs a kernel with processes (the unikernel has a counterpart)",
            "tags: timer, vdso",
        ],
    );
    let ran = bench.run("primitives --only nosuch");
    ran.expect(
        2,
        &["the id of a primitive with * and ? for any characters, an area or a tag"],
    );
    std::fs::write(
        bench.work().join("mine.toml"),
        "[predictions]\ngetppid = { is = '7 * us', why = 'a slow day' }\n",
    )
    .unwrap();
    let words = "primitives --only getppid --runs 1 --budget 1ms --predictions mine.toml";
    let ran = bench.run(&format!(
        "{words} --output run --fail-if cost{{primitive=getppid}}>1ns"
    ));
    ran.expect(3, &["7.00 µs"]);
    let page = std::fs::read_to_string(run_of(&bench).join("report.html")).unwrap();
    assert!(page.contains("a slow day"));
    bench
        .run(&format!("{words} --output other"))
        .expect(0, &["getppid"]);
    let ran = bench.run("compare run --to other");
    ran.expect(0, &[]);
    std::fs::write(
        bench.work().join("mine.toml"),
        "[predictions]\ngetppid = { is = '7 * parsec', why = '' }\n",
    )
    .unwrap();
    bench
        .run(&format!("{words} --output third"))
        .expect(2, &["there is no quantity and no unit 'parsec'"]);
}
