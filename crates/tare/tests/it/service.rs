//! Services, asked on the real targets, and servers that misbehave.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Bench, OtherUser, Ran, is_root, skip};
use crate::start::assert_nothing_is_left;

/// The variable that makes this program a server, and says which.
const SERVER: &str = "TARE_TEST_SERVER";

/// Is the server of the other tests, if it is called as one: an echo service that does not always
/// answer as it should.
#[test]
fn a_server() {
    let Ok(kind) = std::env::var(SERVER) else {
        return;
    };
    let socket = UdpSocket::bind(("0.0.0.0", 7)).unwrap();
    println!("\nanswering on port 7");
    let mut bytes = [0; 512];
    for number in 1.. {
        let (length, from) = socket.recv_from(&mut bytes).unwrap();
        match &*kind {
            "stalls" if number % 1_000 == 0 => thread::sleep(Duration::from_secs(1)),
            "loses" if number % 50 == 0 => continue,
            "limps" => thread::sleep(Duration::from_millis(2)),
            "changes" => bytes[length - 1] ^= 1,
            "dies" if number == 100 => std::process::exit(3),
            _ => {}
        }
        socket.send_to(&bytes[..length], from).unwrap();
    }
}

/// Asks a server of a kind. `None`, with a message, without root.
fn ask(bench: &Bench, kind: &str, words: &str) -> Option<Ran> {
    if !is_root() {
        skip("services", "networks of one's own require root");
        return None;
    }
    let script = bench.work().join("server");
    let program = std::env::current_exe().unwrap();
    let text = format!(
        "#!/bin/sh\n{SERVER}={kind} exec {} --exact service::a_server --nocapture\n",
        program.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let words = format!("service echo --output run {words}");
    let mut command = bench.command(&words);
    command.env("TARE_SERVICE", script);
    Some(Ran::of(command.output().unwrap()))
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
    let Some(ran) = ask(&bench, "stalls", words) else {
        return;
    };
    ran.expect(0, &[]);
    let summary: Value = serde_json::from_str(&ran.out).unwrap();
    let p99 = figure(&summary, "response", "p99");
    assert!(p99 >= 0.8e9, "{p99}");
    assert_nothing_is_left(&bench);
}

#[test]
fn a_lost_request_is_longer_than_the_limit() {
    let bench = Bench::new();
    let words = "--rate 500 --duration 2s --runs 1 --fail-if service.p99>100ms";
    let Some(ran) = ask(&bench, "loses", words) else {
        return;
    };
    ran.expect(3, &["> 250 ms", "98.0 %"]);
}

#[test]
fn the_highest_rate_is_what_a_server_can_answer() {
    let bench = Bench::new();
    let words = "--max --duration 500ms --runs 1 --json";
    let Some(ran) = ask(&bench, "limps", words) else {
        return;
    };
    ran.expect(0, &[]);
    let summary: Value = serde_json::from_str(&ran.out).unwrap();
    // It takes 2 ms for each, and more where the machine is busy.
    let highest = figure(&summary, "highest", "rate");
    assert!((20.0..=510.0).contains(&highest), "{highest}");
    assert!(figure(&summary, "recovery", "mean") < 1e9);
}

#[test]
fn servers_that_answer_wrongly_or_end_are_failures_of_their_own() {
    let bench = Bench::new();
    let Some(ran) = ask(&bench, "changes", "--requests 20 --runs 1") else {
        return;
    };
    ran.expect(1, &["gave no right answer"]);
    let bench = Bench::new();
    let Some(ran) = ask(&bench, "dies", "--requests 1000 --runs 2") else {
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
        "service dns,http --output run --requests 100 --runs 1 --json {named}"
    ));
    ran.expect(0, &[]);
    let summary: Value = serde_json::from_str(&ran.out).unwrap();
    let rows = summary["figures"].as_array().unwrap();
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
            "The DNS service takes 5.5 to 20 % less CPU in total.",
            "; outside ",
            "until its first line",
            "Triad: ",
            "tare does not measure VM exits yet",
            "memory of the minimal VM",
        ],
    );
    assert_nothing_is_left(&bench);
}
