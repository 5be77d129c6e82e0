//! `tare kernel`, with the real apt and debootstrap.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::common::{
    self, Bench, Ran, files, is_root, processes_with, skip, wait_for, wait_for_up_to,
};
use rustix::process::Signal;

/// Prepares to run `tare` with a store of the test's own.
fn command(bench: &Bench, words: &str) -> Command {
    let mut command = bench.command(words);
    command.env("TARE_KERNELS", store(bench));
    command
}

fn store(bench: &Bench) -> PathBuf {
    bench.work().join("kernels")
}

fn run(bench: &Bench, words: &str) -> Ran {
    Ran::of(command(bench, words).output().unwrap())
}

fn has_apt() -> bool {
    Command::new("apt-get").arg("--version").output().is_ok()
}

#[test]
fn bad_words_are_errors_with_remedies() {
    let bench = Bench::new();
    fs::write(bench.work().join("garbage"), "garbage").unwrap();
    for (words, code, said) in [
        ("kernel", 2, "Usage"),
        ("kernel fetch", 2, "--all"),
        ("kernel fetch ubuntu", 2, "debian-cloud or debian-rt"),
        ("kernel fetch --all debian", 2, "cannot be used with"),
        ("kernel add debian garbage", 2, "another meaning"),
        (
            "kernel add mine garbage",
            1,
            "not a Linux kernel for x86-64",
        ),
        ("kernel add mine nowhere", 1, "nowhere"),
        ("kernel add mine .", 1, "it is a folder"),
        ("kernel remove mine", 2, "there is no kernel 'mine'"),
        (
            "kernel remove debian-root",
            5,
            "tare kernel fetch debian-root",
        ),
    ] {
        run(&bench, words).expect(code, &[said]);
    }
    let list = run(&bench, "kernel list");
    list.expect(
        0,
        &[
            "tare kernel fetch debian-rt-6.12",
            "tare kernel fetch debian-root",
        ],
    );
    assert_eq!(files(&bench.work()), ["garbage"]);
}

#[test]
fn the_list_as_json_has_what_can_be_fetched() {
    let bench = Bench::new();
    let ran = run(&bench, "kernel list --json");
    ran.expect(0, &[]);
    let list: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert!(list["kernels"].is_array());
    let commands: Vec<&str> = list["fetchable"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fetchable| fetchable["command"].as_str().unwrap())
        .collect();
    assert_eq!(commands.len(), 7, "{commands:?}");
    assert!(commands.contains(&"tare kernel fetch debian-cloud-6.1"));
}

#[test]
fn another_distribution_is_told_how_to_add_a_kernel() {
    let bench = Bench::new();
    let mut command = command(&bench, "kernel fetch debian");
    // Nothing of Debian's tools is found.
    let nothing = bench.work().join("nothing");
    let ran = Ran::of(command.env("PATH", nothing).output().unwrap());
    ran.expect(
        5,
        &[
            "apt-get is not found",
            "tare kernel add NAME VMLINUZ --modules DIR",
        ],
    );
}

#[test]
fn what_would_be_fetched_is_told_with_its_size() {
    if !has_apt() {
        return skip("apt", "it is not installed");
    }
    let bench = Bench::new();
    let ran = run(
        &bench,
        "kernel fetch --dry-run debian-cloud debian-cloud-6.12",
    );
    if ran.code != Some(0) {
        return skip("the distribution's packages", &ran.err);
    }
    ran.expect(
        0,
        &["linux-image-6.", " MB", "to download: ", "in 2 packages"],
    );
    assert_eq!(files(&store(&bench)), Vec::<String>::new());
}

#[test]
fn a_fetch_that_is_killed_leaves_nothing_after_one_more_command() {
    if !has_apt() {
        return skip("apt", "it is not installed");
    }
    let bench = Bench::new();
    let mut child = command(&bench, "kernel fetch debian-cloud-6.1")
        .spawn()
        .unwrap();
    // As soon as it has a scratch folder: it asks apt then, or downloads.
    wait_for("a scratch folder", || {
        let mut names = fs::read_dir(store(&bench)).ok()?.flatten();
        names.find(|entry| entry.file_name() != "kernels")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    run(&bench, "kernel list").expect(0, &["tare kernel fetch debian-cloud-6.1"]);
    assert_eq!(files(&store(&bench)), Vec::<String>::new());
    let mark = bench.work().display().to_string();
    assert_eq!(processes_with(&mark), Vec::<u32>::new());
}

#[test]
fn an_ordinary_user_fetches_lists_where_the_machine_has_none() {
    if !is_root() || !has_apt() {
        return skip(
            "a machine without lists",
            "hiding them requires root, and fetching apt",
        );
    }
    let bench = Bench::new();
    // Where every user can come; the folders of the test are root's.
    let folder = tempfile::Builder::new()
        .prefix("tare")
        .tempdir_in("/tmp")
        .unwrap();
    std::os::unix::fs::chown(folder.path(), Some(65_534), Some(65_534)).unwrap();
    let program = folder.path().join("tare");
    fs::copy(env!("CARGO_BIN_EXE_tare"), &program).unwrap();
    let script = "mount -t tmpfs tmpfs /var/lib/apt/lists && \
        setpriv --reuid=65534 --regid=65534 --clear-groups \
            \"$0\" kernel fetch debian-cloud-6.1; code=$?; \
        find /var/lib/apt/lists -type f; exit $code";
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--mount", "sh", "-c", script])
        .arg(&program)
        .current_dir(bench.work())
        .env("TARE_STATE_DIR", folder.path().join("state"))
        .env("TARE_KERNELS", folder.path().join("kernels"));
    let ran = Ran::of(unshare.output().unwrap());
    if ran.code != Some(0) {
        return skip("the distribution's packages", &ran.err);
    }
    ran.expect(0, &["fetching the lists of packages", "debian-cloud-6.1"]);
    // The machine's own lists stay as they are, here none.
    assert!(!ran.out.contains("/var/lib/apt/lists"), "{ran:?}");
    let stored = files(&folder.path().join("kernels"));
    assert!(
        stored.iter().any(|name| name.ends_with("/vmlinuz")),
        "{stored:?}"
    );
    assert!(
        stored.iter().all(|name| name.starts_with("kernels/")),
        "{stored:?}"
    );
}

#[test]
fn a_full_disk_keeps_nothing() {
    if !is_root() || !has_apt() {
        return skip(
            "a full disk",
            "mounting one requires root, and fetching apt",
        );
    }
    let bench = Bench::new();
    fs::create_dir(bench.work().join("disk")).unwrap();
    // In a separate mount namespace, so that nothing is left mounted. The package is larger.
    let script = "mount -t tmpfs -o size=20m tmpfs disk && \
        \"$0\" kernel fetch debian-cloud-6.1; code=$?; find disk -type f; exit $code";
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_tare")])
        .current_dir(bench.work())
        .env("TARE_STATE_DIR", bench.state())
        .env("TARE_KERNELS", "disk/kernels");
    let ran = Ran::of(unshare.output().unwrap());
    if ran.err.contains("unshare: ") || ran.err.contains("mount: ") {
        return skip("a full disk", &ran.err);
    }
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
    let said = ran.err.to_lowercase();
    // The one if apt has found nothing out yet, the other if it has.
    assert!(
        said.contains("space") || said.contains("error writing"),
        "{ran:?}"
    );
}

#[test]
fn a_debian_that_is_interrupted_or_killed_leaves_nothing_mounted() {
    if !is_root() {
        return skip("debootstrap", "it requires root");
    }
    for signal in [Signal::INT, Signal::KILL] {
        let bench = Bench::new();
        let mut child = command(&bench, "kernel fetch debian-root").spawn().unwrap();
        // Interrupted while debootstrap is asked for its packages, which takes most of a minute,
        // and killed when it makes the tree. Without the network it ends before.
        let plans = signal == Signal::INT;
        let begun = wait_for_up_to(Duration::from_secs(300), "a Debian that grows", || {
            let entries = fs::read_dir(store(&bench)).ok()?.flatten();
            let mut trees = entries.filter(|entry| {
                let is_plan = entry.file_name().to_string_lossy().contains("-plan-");
                is_plan == plans && entry.path().join("tree").exists()
            });
            let begun = trees.next().is_some();
            (begun || child.try_wait().unwrap().is_some()).then_some(begun)
        });
        if !begun {
            let said = Ran::of(child.wait_with_output().unwrap()).err;
            return skip("debootstrap", &said);
        }
        common::send(child.id(), signal);
        let ended = child.wait_with_output().unwrap();
        if signal == Signal::INT {
            Ran::of(ended).expect(4, &["nothing incomplete was kept"]);
        }
        run(&bench, "kernel list").expect(0, &["tare kernel fetch debian-root"]);
        assert_eq!(files(&store(&bench)), Vec::<String>::new());
        let mark = bench.work().display().to_string();
        assert_eq!(processes_with(&mark), Vec::<u32>::new());
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(&mark), "{mounts}");
    }
}
