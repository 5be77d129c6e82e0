//! The whole Debian of the user's store, which `make kernels` makes as root.

use std::fs;
use std::path::Path;
use std::process::Command;

use tare_guard::Guard;
use tare_kernels::debian_root::{self, DebianRoot, GUEST_FOLDER, RootFile};
use tare_kernels::{KernelError, Store, default_store_dir};
use tare_testkit::skip;

/// Asks debugfs about an image.
fn debugfs(image: &Path, request: &str) -> String {
    let output = Command::new("/usr/sbin/debugfs")
        .args(["-R", request])
        .arg(image)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn file(path: &str, mode: u32, bytes: &[u8]) -> RootFile {
    RootFile {
        path: path.to_owned(),
        mode,
        bytes: bytes.to_owned(),
    }
}

#[test]
fn a_missing_debian_has_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store")).unwrap();
    let missing = debian_root::find(&store).unwrap_err();
    assert_eq!(missing.remedy(), Some("tare kernel fetch debian-root"));
}

#[test]
fn files_are_put_into_a_copy_and_the_debian_stays_as_it_is() {
    let store = Store::open(&default_store_dir().unwrap()).unwrap();
    let root = match debian_root::find(&store) {
        Ok(root) => root,
        Err(error) => return skip("debian-root", &error.to_string()),
    };
    let has = |name: &str| root.record.packages.iter().any(|p| p.starts_with(name));
    assert!(
        has("systemd-sysv=") && has("bash="),
        "{:?}",
        root.record.packages
    );

    // In a folder of the test's own: the copy of the user's store stays.
    let folder = tempfile::tempdir().unwrap();
    let own = DebianRoot {
        image: folder.path().join("root.ext4"),
        ..root.clone()
    };
    std::os::unix::fs::symlink(&root.image, &own.image).unwrap();
    let guard = Guard::open(&folder.path().join("state")).unwrap();
    let agent = format!("{GUEST_FOLDER}/agent");
    let files = [
        file(&agent, 0o755, b"agent"),
        file("/etc/hostname", 0o644, b"other\n"),
    ];
    let before = fs::metadata(&root.image).unwrap().modified().unwrap();
    let copy = own.with_files(&files, &guard).unwrap();
    assert_eq!(debugfs(&copy, &format!("cat {agent}")), "agent");
    assert_eq!(debugfs(&copy, "cat /etc/hostname"), "other\n");
    let stat = debugfs(&copy, &format!("stat {agent}"));
    assert!(
        stat.contains("Type: regular") && stat.contains("Mode:  0755"),
        "{stat}"
    );
    let checked = Command::new("/usr/sbin/e2fsck")
        .args(["-fn"])
        .arg(&copy)
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
    assert_eq!(debugfs(&root.image, "cat /etc/hostname"), "guest\n");
    assert_eq!(
        fs::metadata(&root.image).unwrap().modified().unwrap(),
        before
    );

    // The same files are the same copy, other files another one in its place.
    let made = fs::metadata(&copy).unwrap().modified().unwrap();
    assert_eq!(own.with_files(&files, &guard).unwrap(), copy);
    assert_eq!(fs::metadata(&copy).unwrap().modified().unwrap(), made);
    let other = own.with_files(&files[..1], &guard).unwrap();
    assert!(other != copy && other.is_file() && !copy.exists());

    for path in [
        "/no/such/folder/file",
        "relative",
        "/with space",
        "/a\nrm /etc/passwd",
    ] {
        let refused = own
            .with_files(&[file(path, 0o644, b"x")], &guard)
            .unwrap_err();
        let told = matches!(
            refused,
            KernelError::Tool { .. } | KernelError::BadFileName { .. }
        );
        assert!(told, "{refused}");
    }
    assert!(guard.close().problems.is_empty());
    let mut left: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "state")
        .collect();
    left.sort();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(left[0], "root.ext4");
}
