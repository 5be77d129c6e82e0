//! The initramfs, read back by the real cpio, and its programs run in it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use tare_kernels::Initramfs;
use tare_testkit::skip;

fn has_cpio() -> bool {
    Command::new("cpio").arg("--version").output().is_ok()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs cpio on an archive, in a folder, and returns what it printed.
fn cpio(archive: &[u8], arguments: &[&str], folder: &Path) -> String {
    let mut child = Command::new("cpio")
        .args(arguments)
        .args(["--quiet", "--no-absolute-filenames"])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(archive).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Describes what lies below a folder: path, kind, permissions, content.
fn below(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let status = fs::symlink_metadata(&path).unwrap();
            let mode = status.mode() & 0o7777;
            let what = if status.is_dir() {
                open.push(path.clone());
                format!("dir {mode:o}")
            } else if status.is_symlink() {
                format!("link {}", fs::read_link(&path).unwrap().display())
            } else {
                format!("file {mode:o} {:?}", fs::read(&path).unwrap())
            };
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), what);
        }
    }
    found
}

#[test]
fn cpio_lists_what_was_put_in_in_the_order_of_paths() {
    if !has_cpio() {
        return skip("cpio", "it is not installed");
    }
    let mut initramfs = Initramfs::new();
    initramfs
        .file("/init", 0o755, "#!/bin/sh\n")
        .unwrap()
        .file("bin/b", 0o644, Vec::new())
        .unwrap()
        .symlink("/sbin", "bin")
        .unwrap()
        .dir("dev", 0o700)
        .unwrap()
        .node("/dev/console", 0o600, 5, 1)
        .unwrap();
    let archive = initramfs.clone().finish();
    let folder = tempfile::tempdir().unwrap();
    let list = cpio(&archive, &["-t"], folder.path());
    assert_eq!(
        list.lines().collect::<Vec<_>>(),
        ["bin", "bin/b", "dev", "dev/console", "init", "sbin"]
    );
    let long = cpio(&archive, &["-t", "-v", "-n"], folder.path());
    let console = long.lines().find(|line| line.contains("console")).unwrap();
    assert!(console.starts_with("crw-------"), "{console}");
    assert!(console.contains("5,   1"), "{console}");
    // The same again gives the same bytes.
    assert_eq!(archive, initramfs.finish());
    if is_root() {
        cpio(&archive, &["-i"], folder.path());
        let status = fs::metadata(folder.path().join("dev/console")).unwrap();
        assert!(status.file_type().is_char_device());
        assert_eq!(status.rdev(), rustix::fs::makedev(5, 1));
    }
}

#[derive(Clone, Debug)]
enum What {
    Dir(u32),
    File(u32, Vec<u8>),
    Link(String),
}

fn what() -> impl Strategy<Value = What> {
    // Modes with which the user can read it and, to remove it, enter it.
    let mode = |least: u32| (0_u32..0o1000).prop_map(move |mode| mode | least);
    prop_oneof![
        mode(0o700).prop_map(What::Dir),
        (mode(0o600), proptest::collection::vec(any::<u8>(), 0..600))
            .prop_map(|(mode, bytes)| What::File(mode, bytes)),
        "[a-z/.]{1,40}".prop_map(What::Link),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn cpio_unpacks_what_was_put_in(
        entries in proptest::collection::vec(("[a-d]{1,2}(/[a-dé ]{1,30}){0,3}", what()), 0..25)
    ) {
        if !has_cpio() {
            skip("cpio", "it is not installed");
            return Ok(());
        }
        let mut initramfs = Initramfs::new();
        let mut expected = BTreeMap::new();
        for (path, what) in entries {
            let added = match what.clone() {
                What::Dir(mode) => initramfs.dir(&path, mode).map(drop),
                What::File(mode, bytes) => initramfs.file(&path, mode, bytes).map(drop),
                What::Link(target) => initramfs.symlink(&path, target).map(drop),
            };
            // A path that is taken, or goes through a file, is refused.
            if added.is_err() {
                continue;
            }
            let path = PathBuf::from(path);
            for parent in path.ancestors().skip(1).filter(|parent| *parent != Path::new("")) {
                expected.entry(parent.to_owned()).or_insert_with(|| "dir 755".to_owned());
            }
            expected.insert(path, match what {
                What::Dir(mode) => format!("dir {mode:o}"),
                What::File(mode, bytes) => format!("file {mode:o} {bytes:?}"),
                What::Link(target) => format!("link {target}"),
            });
        }
        let folder = tempfile::tempdir().unwrap();
        cpio(&initramfs.finish(), &["-i"], folder.path());
        prop_assert_eq!(below(folder.path()), expected);
    }
}

#[test]
fn programs_run_with_nothing_but_what_was_packed() {
    if !has_cpio() {
        return skip("cpio", "it is not installed");
    }
    if !is_root() {
        return skip("chroot", "it requires root");
    }
    // One with several libraries, one of which needs others; a script and its interpreter.
    let mut initramfs = Initramfs::new();
    for program in ["/bin/tar", "/bin/ls", "/usr/bin/ldd", "/bin/sh"] {
        initramfs.program(program).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    cpio(&initramfs.finish(), &["-i"], folder.path());
    for words in [
        &["/bin/tar", "--version"][..],
        &["/bin/ls", "-l", "/"],
        &["/bin/sh", "-c", "exit 0"],
        &["/usr/bin/ldd", "--version"],
    ] {
        let output = Command::new("chroot")
            .arg(folder.path())
            .args(words)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
    }
}

#[test]
fn bad_input_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let garbage = folder.path().join("garbage");
    fs::write(&garbage, "neither program nor script").unwrap();
    let said =
        |result: Result<&mut Initramfs, tare_kernels::KernelError>| result.unwrap_err().to_string();
    let mut initramfs = Initramfs::new();
    assert!(said(initramfs.program(&garbage)).contains("no 64-bit program"));
    assert!(said(initramfs.program("/nowhere/at/all")).contains("/nowhere/at/all"));
    assert!(said(initramfs.program(folder.path())).contains("read"));
    assert!(said(initramfs.dir("a/../b", 0o755)).contains("upwards"));
    assert!(said(initramfs.dir("/", 0o755)).contains("root"));
    assert!(said(initramfs.file("x".repeat(5_000), 0o644, "")).contains("too long"));
    initramfs.file("file", 0o644, "1").unwrap();
    initramfs.file("/file", 0o644, "1").unwrap();
    assert!(said(initramfs.file("file", 0o644, "2")).contains("already"));
    assert!(said(initramfs.dir("file/below", 0o755)).contains("/file is not a folder"));
    // A program with half its bytes missing.
    let whole = fs::read("/bin/ls").unwrap();
    fs::write(&garbage, &whole[..whole.len() / 2]).unwrap();
    assert!(said(initramfs.program(&garbage)).contains("garbage"));
}
