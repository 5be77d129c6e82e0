//! Services, asked on the real targets, and servers that misbehave.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tare_targets::measured::MeasuredFile;

use crate::common::{self, Bench, OtherUser, Ran, is_root, skip};
use crate::start::assert_nothing_is_left;

/// The variable that makes this program a server, and says which.
const SERVER: &str = "TARE_TEST_SERVER";

/// Is the server of the other tests, if it is called as one: a service that does not always answer
/// as it should.
#[test]
fn a_server() {
    let Ok(kind) = std::env::var(SERVER) else {
        return;
    };
    let (service, kind) = kind.split_once(' ').unwrap();
    let port = if service == "dns" { 53 } else { 7 };
    let socket = UdpSocket::bind(("0.0.0.0", port)).unwrap();
    println!("\nanswering on port {port}");
    let mut bytes = [0; 512];
    for number in 1.. {
        let (mut length, from) = socket.recv_from(&mut bytes).unwrap();
        if service == "dns" {
            length = address(&mut bytes, length);
        }
        match kind {
            "stalls" if number % 1_000 == 0 => thread::sleep(Duration::from_secs(1)),
            "loses" if number % 50 == 0 => continue,
            "limps" => thread::sleep(Duration::from_millis(2)),
            "changes" => bytes[length - 1] ^= 1,
            "dies" if number == 300 => std::process::exit(3),
            _ => {}
        }
        socket.send_to(&bytes[..length], from).unwrap();
    }
}

/// Makes an answer of the request for a host's address. Returns its length.
fn address(bytes: &mut [u8], length: usize) -> usize {
    let label = &bytes[13..13 + usize::from(bytes[12])];
    let host = std::str::from_utf8(&label["host".len()..]).unwrap();
    let address = (10 << 24) + host.parse::<u32>().unwrap();
    // Authoritative, with one record: the name of the question, type A, class IN, an hour.
    bytes[2] |= 0x84;
    bytes[7] = 1;
    let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4];
    let record = [&record[..], &address.to_be_bytes()].concat();
    bytes[length..][..record.len()].copy_from_slice(&record);
    length + record.len()
}

/// Asks a server of a kind. `None`, with a message, without root.
fn ask(bench: &Bench, (service, kind): (&str, &str), words: &str) -> Option<Ran> {
    if !is_root() {
        skip("services", "networks of one's own require root");
        return None;
    }
    let words = format!("service {service} --output run {words}");
    let mut command = bench.command(&words);
    command.env("TARE_SERVICE", script(bench, (service, kind)));
    Some(Ran::of(command.output().unwrap()))
}

/// Writes a program that is a server of a kind.
fn script(bench: &Bench, (service, kind): (&str, &str)) -> PathBuf {
    let script = bench.work().join("server");
    let program = std::env::current_exe().unwrap();
    let text = format!(
        "#!/bin/sh\n{SERVER}='{service} {kind}' exec {} --exact service::a_server --nocapture\n",
        program.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script
}

/// Returns the estimate of a figure, or what it is at least, of the only row of a measure.
fn figure(summary: &Value, measure: &str, figure: &str) -> f64 {
    let rows = summary["figures"].as_array().unwrap();
    let mut rows = rows.iter().filter(|row| {
        row["measure"] == measure && row["figure"] == figure && row["labels"]["place"].is_null()
    });
    let row = rows
        .next()
        .unwrap_or_else(|| panic!("no {measure}.{figure}"));
    let known = row["value"].as_f64().or_else(|| row["low"].as_f64());
    known.unwrap_or_else(|| panic!("nothing is known of {row}"))
}

#[test]
fn a_stall_of_the_server_is_in_the_latency() {
    let bench = Bench::new();
    let words = "--rate 500 --duration 4s --timeout 2s --runs 1 --json";
    let Some(ran) = ask(&bench, ("echo", "stalls"), words) else {
        return;
    };
    ran.expect(0, &[]);
    let summary: Value = serde_json::from_str(&ran.out).unwrap();
    let p99 = figure(&summary, "response", "p99");
    assert!(p99 >= 0.8e9, "{p99}");
    assert_nothing_is_left(&bench);
}

/// Returns whether dnsperf is here; says so if it is not.
fn has_dnsperf() -> bool {
    let has = Command::new("dnsperf").arg("-h").output().is_ok();
    if !has {
        skip("dnsperf", "it is not installed");
    }
    has
}

#[test]
fn dnsperf_does_not_see_what_waited_in_itself() {
    let bench = Bench::new();
    let words = "--client dnsperf --sockets 1 --requests 1100 --timeout 2s --runs 1 --json";
    if !has_dnsperf() {
        return;
    }
    let Some(ran) = ask(&bench, ("dns", "stalls"), words) else {
        return;
    };
    ran.expect(0, &[]);
    let summary: Value = serde_json::from_str(&ran.out).unwrap();
    // Below 10 ms on a machine that does nothing else.
    let p99 = figure(&summary, "service", "p99");
    assert!(p99 < 200e6, "{p99}");
    assert!(figure(&summary, "service", "max") >= 0.9e9);
}

#[test]
fn dnsperf_counts_what_is_lost_and_wrong() {
    if !has_dnsperf() {
        return;
    }
    let bench = Bench::new();
    let words = "--client dnsperf --rate 500 --duration 2s --runs 1 --fail-if service.p99>100ms";
    let Some(ran) = ask(&bench, ("dns", "loses"), words) else {
        return;
    };
    ran.expect(3, &["≥ 250 ms", "98.0 %"]);
}

#[test]
fn dnsperf_and_the_own_client_measure_the_same_median() {
    if !is_root() {
        return skip("services", "networks of one's own require root");
    }
    if !has_dnsperf() {
        return;
    }
    let bench = Bench::new();
    let [own, other] = ["own", "dnsperf"].map(|client| {
        let words = format!(
            "service --client {client} --rate 1000 --duration 1s --runs 3 --json --output {client}"
        );
        let ran = bench.run(&words);
        ran.expect(0, &[]);
        let summary: Value = serde_json::from_str(&ran.out).unwrap();
        // A busy machine loses some.
        assert!(figure(&summary, "answered", "share") > 0.8);
        figure(&summary, "service", "p50")
    });
    assert!((0.4..2.5).contains(&(other / own)), "{own} {other}");
}

#[test]
fn pings_wait_for_a_computation_where_a_task_answers_them() {
    if !is_root() {
        return skip("services", "networks of one's own require root");
    }
    let bench = Bench::new();
    let words = "service ping --compute 100ms --rate 20 --duration 2s --timeout 1s --runs 1";
    let waited = ["process", "unikernel"].map(|target| {
        let ran = bench.run(&format!(
            "{words} --json --target {target} --output {target}"
        ));
        ran.expect(0, &[]);
        let summary: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(figure(&summary, "wrong", "value"), 0.0);
        let rows = summary["figures"].as_array().unwrap();
        let memory = rows.iter().filter(|row| row["measure"] == "memory");
        let memory: Vec<f64> = memory.filter_map(|row| row["value"].as_f64()).collect();
        // A guest has touched some of its memory, and QEMU has more.
        let [inside, outside] = memory[..] else {
            panic!("{memory:?}");
        };
        let is_guest = target == "unikernel";
        assert!(
            inside >= 100e3 && (outside > inside) == is_guest,
            "{memory:?}"
        );
        figure(&summary, "response", "p50")
    });
    // In turns of 110 ms, evenly: half of them wait for 45 ms or more.
    let [system, task] = waited;
    assert!(system < task / 2.0 && task > 20e6, "{system} {task}");
    assert_nothing_is_left(&bench);
}

#[test]
fn other_servers_give_the_same_answers() {
    let _engine = common::engine();
    if !is_root() {
        return skip("services", "networks of one's own require root");
    }
    let has = |program: &str| Path::new(&format!("/usr/sbin/{program}")).exists();
    if !["nsd", "knotd", "nginx"].into_iter().all(has) {
        return skip("other servers", "nsd, knot or nginx is not installed");
    }
    let bench = Bench::new();
    let words = "service dns,http --server own,nsd,knot,nginx --requests 200 --runs 1 --json";
    let targets = ["process", "runc", "crun", "podman", "docker"];
    let named = targets.map(|target| format!("--target {target}")).join(" ");
    let ran = bench.run(&format!("{words} --output run {named} --start-engine"));
    if ran.code == Some(5) {
        return skip("a container", &ran.err);
    }
    ran.expect(0, &[]);
    let summary: Value = serde_json::from_str(&ran.out).unwrap();
    let rows = summary["figures"].as_array().unwrap();
    let servers = [
        ("dns", None),
        ("dns", Some("nsd")),
        ("dns", Some("knot")),
        ("http", None),
        ("http", Some("nginx")),
    ];
    for target in targets {
        for (service, server) in servers {
            let of = |measure: &str, place: Option<&str>| {
                let mut own = rows.iter().filter(|row| {
                    let labels = &row["labels"];
                    row["target"] == target
                        && row["measure"] == measure
                        && labels["service"] == service
                        && labels["server"].as_str() == server
                        && labels["place"].as_str() == place
                });
                own.next().unwrap()["value"].as_f64().unwrap()
            };
            let name = format!("{target} {service} {server:?}");
            assert_eq!(of("answered", None), 1.0, "{name}");
            assert_eq!(of("wrong", None), 0.0, "{name}");
            for measure in ["cpu", "wake-ups"] {
                assert!(of(measure, Some("inside")) > 0.0, "{name} {measure}");
            }
        }
    }
    assert_nothing_is_left(&bench);
    // Where one is missing, nothing is started.
    let hidden = "mount --bind /dev/null /usr/sbin/knotd && exec \"$@\"";
    let tare = env!("CARGO_BIN_EXE_tare");
    let mut all = vec!["-m", "sh", "-c", hidden, "sh", tare];
    all.extend(words.split(' '));
    let mut without = bench.command_of(Path::new("unshare"), &all);
    Ran::of(without.output().unwrap()).expect(
        5,
        &[
            "the server 'knot'",
            "knotd is in no folder",
            "install -y --no-install-recommends knot",
        ],
    );
}

#[test]
fn a_command_of_the_user_s_is_asked() {
    if !is_root() {
        return skip("services", "networks of one's own require root");
    }
    let bench = Bench::new();
    let server = script(&bench, ("echo", "answers"));
    let words =
        "service echo --requests 100 --runs 1 --json --output run --server own,stack,command:";
    let ran = bench.run(&format!("{words}{}", server.display()));
    ran.expect(0, &["with 1 run, no intervals"]);
    let summary: Value = serde_json::from_str(&ran.out).unwrap();
    let rows = summary["figures"].as_array().unwrap();
    let answered = rows.iter().filter(|row| row["measure"] == "answered");
    let all: Vec<f64> = answered.filter_map(|row| row["value"].as_f64()).collect();
    assert_eq!(all, [1.0, 1.0, 1.0]);
    let cpu_of = |server: Option<&str>| {
        let mut own = rows.iter().filter(|row| {
            row["measure"] == "cpu"
                && row["labels"]["place"] == "all"
                && row["labels"]["server"].as_str() == server
        });
        own.next().unwrap()["value"].as_f64().unwrap()
    };
    // No task of it wakes itself between requests.
    let (own, stack) = (cpu_of(None), cpu_of(Some("stack")));
    assert!(stack < 10.0 * own, "{own} {stack}");
    assert_nothing_is_left(&bench);
    // A run folder that names programs may be another user's.
    bench
        .run("service --resume run")
        .expect(2, &["command:", "--trust"]);
    // One that is not there is named before anything is started.
    let run = "service echo --server command:/no/such";
    bench
        .run(run)
        .expect(5, &["the server 'command'", "/no/such"]);
}

#[test]
fn a_lost_request_is_longer_than_the_limit() {
    let bench = Bench::new();
    let words = "--rate 500 --duration 2s --runs 1 --fail-if service.p99>100ms";
    let Some(ran) = ask(&bench, ("echo", "loses"), words) else {
        return;
    };
    ran.expect(3, &["≥ 250 ms", "98.0 %"]);
}

#[test]
fn the_highest_rate_is_what_a_server_can_answer() {
    let bench = Bench::new();
    let words = "--max --duration 500ms --timeout 50ms --runs 1 --json";
    let Some(ran) = ask(&bench, ("echo", "limps"), words) else {
        return;
    };
    ran.expect(0, &[]);
    let summary: Value = serde_json::from_str(&ran.out).unwrap();
    // It takes 2 ms for each, and more where the machine is busy.
    let highest = figure(&summary, "highest", "rate");
    assert!((20.0..=505.0).contains(&highest), "{highest}");
    let multiple = |measure: &str, times: &str| {
        let mut rows = summary["figures"].as_array().unwrap().iter();
        let row = rows.find(|row| row["measure"] == measure && row["labels"]["times"] == times);
        row.unwrap_or_else(|| panic!("no {measure} at {times}"))["value"]
            .as_f64()
            .unwrap()
    };
    let offered =
        ["0.25", "0.5", "0.75", "1", "1.5", "2", "3"].map(|times| multiple("offered", times));
    assert!(offered.is_sorted(), "{offered:?}");
    assert!(
        (2.9..=3.1).contains(&(multiple("offered", "3") / highest)),
        "{offered:?}"
    );
    // Of three times as much, the most that it can do is answered, if in time.
    let goodput = multiple("goodput", "3");
    assert!(goodput < 510.0, "{goodput}");
    assert!(figure(&summary, "recovery", "mean") < 1e9);
}

#[test]
fn servers_that_answer_wrongly_or_end_are_failures_of_their_own() {
    let bench = Bench::new();
    let Some(ran) = ask(&bench, ("echo", "changes"), "--requests 20 --runs 1") else {
        return;
    };
    ran.expect(1, &["gave no right answer"]);
    let bench = Bench::new();
    let Some(ran) = ask(&bench, ("echo", "dies"), "--requests 1000 --runs 2") else {
        return;
    };
    let why = "the server ended while the client asked it: it ended with status 3";
    ran.expect(1, &[why, "2 of 2 cells failed"]);
    assert_nothing_is_left(&bench);
}

#[test]
fn the_same_service_is_asked_on_every_target() {
    if !is_root() {
        return skip("services", "networks of one's own require root");
    }
    let bench = Bench::new();
    let targets = [
        "process",
        "runc",
        "crun",
        "linux,kernel=debian-cloud-6.1,accel=tcg",
        "unikernel,accel=tcg",
        "unikernel,machine=q35,accel=tcg",
    ];
    let named = targets.map(|target| format!("--target {target}")).join(" ");
    let ran = bench.run(&format!(
        "service dns,http --server own,stack --output run --requests 100 --runs 1 --json {named}"
    ));
    ran.expect(0, &[]);
    let summary: Value = serde_json::from_str(&ran.out).unwrap();
    let rows = summary["figures"].as_array().unwrap();
    let ready = |target: &str, until: &str| {
        let mut all = rows.iter();
        let row = all.find(|row| row["target"] == target && row["labels"]["until"] == until);
        row.unwrap_or_else(|| panic!("{target}: no {until}"))["value"]
            .as_f64()
            .unwrap()
    };
    let of_stack =
        |row: &&Value| row["labels"]["server"] == "stack" && row["measure"] == "answered";
    let of_stack: Vec<_> = rows.iter().filter(of_stack).collect();
    assert_eq!(of_stack.len(), 2, "dns and http, as a process");
    assert!(of_stack.iter().all(|row| row["value"] == 1.0));
    for (target, service) in targets.iter().flat_map(|one| [(one, "dns"), (one, "http")]) {
        let of = |measure: &str, figure: &str, place: Value| {
            let mut own = rows.iter().filter(|row| {
                row["target"] == *target
                    && row["labels"]["service"] == service
                    && row["measure"] == measure
                    && row["figure"] == figure
                    && row["labels"]["place"] == place
            });
            let row = own
                .next()
                .unwrap_or_else(|| panic!("{target}, {service}: no {measure}"));
            row["value"].as_f64().unwrap()
        };
        assert_eq!(
            of("answered", "share", Value::Null),
            1.0,
            "{target} {service}"
        );
        let [inside, outside, all] =
            ["inside", "outside", "all"].map(|place| of("cpu", "mean", place.into()));
        assert!(inside > 0.0 && all >= inside + outside - 1.0, "{target}");
        let [line, answer] = ["line", "answer"].map(|until| ready(target, until));
        assert!(0.0 < line && line <= answer, "{target}: {line}, {answer}");
        let is_guest = target.contains("accel");
        assert!(!is_guest || outside > 0.0, "{target}: {outside}");
    }
    assert_nothing_is_left(&bench);
}

#[test]
fn without_root_nothing_is_tried() {
    let Some(user) = OtherUser::new() else {
        return skip("another user", "becoming one requires root");
    };
    user.run("service --output run")
        .expect(5, &["requires root", "run tare as root"]);
}

#[test]
fn without_a_tap_device_qemu_forwards_ports_to_guests() {
    let Some(user) = OtherUser::new() else {
        return skip("another user", "becoming one requires root");
    };
    let images = user.folder().join("images");
    fs::create_dir(&images).unwrap();
    // It looks for the one of plans as well.
    for image in [MeasuredFile::service("dns"), MeasuredFile::image("bench")] {
        let path = image.path().unwrap();
        fs::copy(path, images.join(path.file_name().unwrap())).unwrap();
    }
    let targets = "--target unikernel,accel=tcg --target linux,kernel=debian-cloud-6.1,accel=tcg";
    let named = "unikernel,accel=tcg dns, user-mode network";
    let told = [named, "There was no TAP device for"];
    user.run("service --requests 50 --runs 1 --output run --target unikernel,accel=tcg")
        .expect(0, &told);
    // Neither do root's guests have one where the device is missing.
    let bench = Bench::new();
    let hidden = "mount -t tmpfs none /dev/net && exec \"$@\"";
    let words = format!("service --requests 50 --runs 1 --output run --target process {targets}");
    let tare = env!("CARGO_BIN_EXE_tare");
    let mut all = vec!["-m", "sh", "-c", hidden, "sh", tare];
    all.extend(words.split(' '));
    let mut without = bench.command_of(Path::new("unshare"), &all);
    Ran::of(without.output().unwrap()).expect(0, &told);
    // A study leaves out what takes rights over networks; it has one CPU.
    let study = "name = 'rights'\nruns = 1\n\
        [[experiment]]\nkind = 'service'\nrequests = 50\ntargets = ['process', 'unikernel,accel=tcg']\n\
        [[experiment]]\nkind = 'service'\nservice = 'ping'\nrate = ['20']\ntargets = ['unikernel,accel=tcg']\n";
    fs::write(bench.work().join("rights.toml"), study).unwrap();
    let words = "-c 0 setpriv --bounding-set -net_admin --inh-caps -net_admin";
    let mut all: Vec<&str> = words.split(' ').collect();
    all.extend([tare, "run", "rights.toml", "--output", "rights"]);
    let mut without = bench.command_of(Path::new("taskset"), &all);
    let left_out = "2 cells are left out: a network for a service and its clients requires root";
    Ran::of(without.output().unwrap()).expect(0, &[left_out, "left out: a network", named]);
    // With the right, they are measured.
    let words = ["-c", "0", tare, "run", "--resume", "rights"];
    let mut with = bench.command_of(Path::new("taskset"), &words);
    let ran = Ran::of(with.output().unwrap());
    ran.expect(0, &["[2/2]"]);
    assert!(!ran.out.contains("left out"), "{}", ran.out);
    assert_nothing_is_left(&bench);
}

#[test]
fn a_command_of_the_user_s_asks() {
    if !is_root() {
        return skip("services", "networks of one's own require root");
    }
    let bench = Bench::new();
    let answered = |service: &str, client: &str, name: &str| {
        let words = format!("service {service} --requests 5 --runs 1 --json --output {name}");
        let mut command = bench.command(&words);
        let ran = Ran::of(command.args(["--client", client]).output().unwrap());
        ran.expect(0, &[&format!("{service} by {client}")]);
        let summary: Value = serde_json::from_str(&ran.out).unwrap();
        let mut rows = summary["figures"].as_array().unwrap().iter();
        let row = rows.find(|row| row["measure"] == "answered").unwrap();
        row["value"].as_f64().unwrap()
    };
    let dig = "command:dig +short -p {port} @{address} {name}";
    assert!((answered("dns", dig, "dig") - 1.0).abs() < f64::EPSILON);
    let connects = "command:bash -c ': > /dev/tcp/{address}/{port}; sleep 60 & exit 0'";
    assert!((answered("http", connects, "connects") - 1.0).abs() < f64::EPSILON);
    // One that can't ask is not waited for with every request.
    let fails = "service http --server own --client command:false --runs 1 --output fails";
    let why = "the client (--client) got no right answer to a first request: it ended with exit status: 1";
    bench.run(fails).expect(1, &[why]);
    assert_nothing_is_left(&bench);
    bench
        .run("service --resume dig")
        .expect(2, &["command:dig +short -p {port}", "--trust"]);
}

#[test]
fn a_client_that_is_missing_is_named_before_anything_is_measured() {
    let bench = Bench::new();
    for (client, package) in [("dnsperf", "dnsperf"), ("nslookup", "bind9-dnsutils")] {
        let mut command = bench.command(&format!("service --client {client} --output run"));
        let ran = Ran::of(command.env("PATH", "/nowhere").output().unwrap());
        let client = format!("the client '{client}'");
        ran.expect(5, &[&client, &format!("--no-install-recommends {package}")]);
    }
    bench
        .run("service http --client command:/no/such --output run")
        .expect(5, &["the client '/no/such'", "there is no program"]);
    assert_nothing_is_left(&bench);
}

#[test]
fn the_study_is_reproduced_as_far_as_it_is_measured() {
    if !is_root() {
        return skip("services", "networks of one's own require root");
    }
    let bench = Bench::new();
    let ran = bench.run("reproduce includeos-2015 --quick --output run");
    ran.expect(
        0,
        &[
            "asked by nslookup",
            "The DNS service takes 5.5 to 20 % less CPU in total (",
            "ticks outside the guest",
            "until its first line",
            "triad includeos against ubuntu",
            "VM exits, which only KVM counts",
            "includeos hello VM with QEMU: memory",
            "total CPU ticks Intel: change",
        ],
    );
    assert_nothing_is_left(&bench);
}
