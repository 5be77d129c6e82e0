//! What `tare targets` tells, and what experiments refuse.

use crate::common::{Bench, skip};

#[test]
fn every_kind_is_usable_or_has_a_remedy() {
    let bench = Bench::new();
    let ran = bench.run("targets --json");
    ran.expect(0, &[]);
    let rows: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    for row in rows.as_array().unwrap() {
        match row["state"].as_str().unwrap() {
            "usable" => {}
            "unusable" => assert!(!row["remedy"].as_str().unwrap().is_empty(), "{row}"),
            other => panic!("{other}"),
        }
        let name = row["name"].as_str().unwrap();
        let form = row["form"].as_str().unwrap_or_default();
        let required = ["ssh", "guest"].contains(&name);
        assert_eq!(form.starts_with(&format!("{name},")), required, "{row}");
    }
}

#[test]
fn what_is_missing_on_this_machine_is_told_with_the_command_that_brings_it() {
    let bench = Bench::new();
    let mut command = bench.command("targets");
    let output = command.env("PATH", "/nowhere").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for remedy in [
        "apt-get update && apt-get install -y --no-install-recommends openssh-client",
        "apt-get update && apt-get install -y --no-install-recommends qemu-system-x86",
    ] {
        assert!(
            text.contains(&format!("to make it usable: {remedy}")),
            "{text}"
        );
    }
    assert!(text.contains("written: ssh,host=[USER@]HOST"), "{text}");
}

#[test]
fn an_engine_that_does_not_run_is_best_started_for_its_own_cells() {
    let bench = Bench::new();
    let mut command = bench.command("targets");
    let output = command
        .env("DOCKER_HOST", "unix:///nowhere/docker.sock")
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let remedy = text.lines().find(|line| line.contains("--start-engine"));
    let remedy = remedy.unwrap_or_else(|| panic!("{text}"));
    let [private, shared] = ["--start-engine", "start one for all"].map(|words| remedy.find(words));
    assert!(private < shared, "{remedy}");
}

#[test]
fn a_guest_without_the_agent_measures_no_noise() {
    let bench = Bench::new();
    bench
        .run("noise --target guest,image=/dev/null,ready=x,success=33")
        .expect(2, &["runs no plans", "linux,kernel=PATH"]);
    bench
        .run("noise --target guest,image=/dev/null")
        .expect(2, &["needs 'ready'"]);
}

#[test]
fn the_doctor_examines_a_guest_from_inside() {
    let bench = Bench::new();
    let target = "linux,kernel=debian-cloud-6.1,accel=tcg,cpus=2,isolate=1";
    let ran = bench.run(&format!("doctor --json --target {target}"));
    if ran.code == Some(5) {
        return skip("a guest", &ran.err);
    }
    ran.expect(0, &[]);
    let findings: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let state = |id: &str| {
        let mut all = findings.as_array().unwrap().iter();
        let found = all.find(|finding| finding["id"] == id).unwrap();
        found["state"].as_str().unwrap()
    };
    assert_eq!(state("isolation"), "CPU 1 is isolated (isolcpus=1)");
    assert_eq!(state("container"), "not in one");
    assert!(state("console").starts_with("ttyS0 "), "{findings}");
    assert!(state("hypervisor").starts_with("guest of "), "{findings}");
    assert!(state("load").contains("busy"), "{findings}");
    let unable = bench.run("doctor --target unikernel");
    unable.expect(2, &["which unikernel does not run"]);
}
