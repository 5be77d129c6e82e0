//! A dry run starts nothing, asks nothing that runs, and writes nothing.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use crate::common::{Bench, Ran, files};

/// Every program that a target, a kernel's store or a probe would execute.
const PROGRAMS: [&str; 14] = [
    "ssh",
    "qemu-system-x86_64",
    "docker",
    "dockerd",
    "containerd",
    "podman",
    "runc",
    "crun",
    "mke2fs",
    "debugfs",
    "apt-get",
    "apt-cache",
    "dpkg",
    "stress-ng",
];

#[test]
fn no_command_starts_anything_in_a_dry_run() {
    let bench = Bench::new();
    let mark = bench.work().with_file_name("started");
    let programs = bench.work().with_file_name("programs");
    fs::create_dir(&programs).unwrap();
    for name in PROGRAMS {
        let path = programs.join(name);
        let script = format!("#!/bin/sh\necho $0 $@ >>{}\n", mark.display());
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", programs.display());
    let socket = bench.work().with_file_name("docker.sock");
    let engine = UnixListener::bind(&socket).unwrap();
    engine.set_nonblocking(true).unwrap();
    fs::write(
        bench.work().join("s.toml"),
        format!(
            "runs = 1\ntargets = [\"process\", \"ssh,host=lab,option=ProxyCommand=touch {}\"]\n\
             [[experiment]]\nkind = \"noise\"\nworkload = [\"gap\"]\n",
            mark.display()
        ),
    )
    .unwrap();
    let run = |words: &str| {
        let mut command = bench.command(words);
        command
            .env("PATH", &path)
            .env("DOCKER_HOST", format!("unix://{}", socket.display()));
        Ran::of(command.output().unwrap())
    };
    run("run s.toml --dry-run").expect(0, &["2 cells", "ssh,host=lab"]);
    run("quick --dry-run").expect(0, &["unikernel,irq=off gap"]);
    run("reproduce kot-2019 --quick --dry-run").expect(0, &["78 cells"]);
    run("noise --target docker --dry-run").expect(0, &["docker prime"]);
    for target in [
        "podman",
        "crun",
        "runc",
        "linux",
        "linux,root=debian",
        "unikernel,accel=kvm",
    ] {
        // Missing tools are reported; the tools that are here are not tried.
        let ran = run(&format!("noise --target {target} --start-engine --dry-run"));
        assert!([Some(0), Some(5)].contains(&ran.code), "{ran:#?}");
    }
    run("noise --load stress-ng:--cpu=1 --dry-run").expect(0, &["under stress-ng"]);
    let started = fs::read_to_string(&mark).unwrap_or_default();
    assert_eq!(started, "");
    let asked = engine.accept().map_err(|error| error.kind());
    assert_eq!(asked.map(drop), Err(ErrorKind::WouldBlock));
    assert!(!bench.state().exists());
    assert_eq!(files(&bench.work()), ["s.toml"]);
}
