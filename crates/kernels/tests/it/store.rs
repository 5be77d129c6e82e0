//! The store: names, bad input, who may write.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tare_guard::Guard;
use tare_kernels::{KernelError, Store, default_store_dir};
use tare_testkit::skip;

/// Opens a guard that owns what is added to a store, which is made then.
fn guard(store: &Store) -> Guard {
    let state = store.dir().with_file_name("state");
    Guard::open_with(&state, store.guard_options().unwrap()).unwrap()
}

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("deep/store")).unwrap();
    (folder, store)
}

#[test]
fn a_kernel_that_is_not_here_has_its_remedy() {
    let (_folder, store) = store();
    for name in ["debian", "debian-rt", "debian-cloud-6.12", "debian-6.99"] {
        let error = store.find(name).unwrap_err();
        let remedy = format!("tare kernel fetch {name}");
        assert_eq!(error.remedy(), Some(&*remedy));
        assert!(error.to_string().contains(&remedy), "{error}");
    }
    for name in [
        "",
        "debain",
        "debian-",
        "..",
        ".",
        "debian-rt-6.1.192-2",
        "a\nb",
    ] {
        let error = store.find(name).unwrap_err();
        assert!(
            matches!(error, KernelError::Unknown { .. }),
            "{name}: {error}"
        );
        assert!(error.to_string().contains("debian-cloud"), "{error}");
    }
    // Asking makes nothing.
    assert!(!store.dir().exists());
}

#[test]
fn what_is_no_kernel_is_refused_and_leaves_nothing() {
    let (folder, store) = store();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let guard = guard(&store);
    let elf = fs::read("/proc/self/exe").unwrap();
    for (path, said) in [
        (file("empty", b""), "it is empty"),
        (
            file("text", &b"not a kernel ".repeat(100)),
            "no x86 boot header",
        ),
        (file("short", b"short"), "only 5 bytes"),
        (file("vmlinux", &elf), "arch/x86/boot/bzImage"),
        (folder.path().to_owned(), "it is a folder"),
        (Path::new("/dev/null").to_owned(), "not a regular file"),
        (folder.path().join("nowhere"), "nowhere"),
    ] {
        let path = path.to_str().unwrap();
        let found = store.find(path).unwrap_err().to_string();
        assert!(found.contains(said), "{found}");
        let added = store
            .add("mine", Path::new(path), None, &guard)
            .unwrap_err()
            .to_string();
        assert!(added.contains(said), "{added}");
    }
    let left: Vec<_> = fs::read_dir(store.dir())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left, ["kernels"]);
    assert_eq!(
        fs::read_dir(store.dir().join("kernels")).unwrap().count(),
        0
    );
}

#[test]
fn a_kernel_without_permission_is_refused() {
    if rustix::process::geteuid().is_root() {
        // Root may read everything: there is nothing to refuse.
        return;
    }
    let (folder, store) = store();
    let path = folder.path().join("vmlinuz");
    fs::write(&path, "x").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let said = store.find(path.to_str().unwrap()).unwrap_err().to_string();
    assert!(said.contains("ermission denied"), "{said}");
}

#[test]
fn names_with_a_meaning_can_not_be_given() {
    let (folder, store) = store();
    let guard = guard(&store);
    for name in [
        "",
        "host",
        "debian",
        "debian-rt-6.1",
        "debian-mine",
        "../x",
        ".hidden",
        "a/b",
        "ä",
        "a b",
    ] {
        let error = store.add(name, folder.path(), None, &guard).unwrap_err();
        assert!(
            matches!(error, KernelError::BadName { .. }),
            "{name}: {error}"
        );
    }
    for name in ["", "..", "nowhere", "a/b"] {
        let error = store.remove(name).unwrap_err();
        assert!(
            matches!(error, KernelError::Unknown { .. }),
            "{name}: {error}"
        );
    }
}

#[test]
fn a_store_that_others_can_write_is_not_used() {
    let (_folder, store) = store();
    fs::create_dir_all(store.dir()).unwrap();
    fs::set_permissions(store.dir(), fs::Permissions::from_mode(0o777)).unwrap();
    let error = Store::open(store.dir()).unwrap_err();
    assert!(matches!(error, KernelError::StoreUnsafe { .. }), "{error}");
    fs::remove_dir(store.dir()).unwrap();
    fs::write(store.dir(), "").unwrap();
    assert!(
        Store::open(store.dir())
            .unwrap_err()
            .to_string()
            .contains("not a folder")
    );
}

#[test]
fn damaged_folders_of_a_store_are_no_kernels() {
    let (_folder, store) = store();
    let kernels = store.dir().join("kernels");
    for (name, record) in [
        ("empty", ""),
        (
            "other",
            "{\"schema\": 99, \"release\": \"6.1\", \"sha256\": \"\"}",
        ),
        (
            "escaping",
            "{\"schema\": 1, \"release\": \"../../etc\", \"sha256\": \"\"}",
        ),
    ] {
        let folder = kernels.join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("kernel.json"), record).unwrap();
        fs::write(folder.join("vmlinuz"), "").unwrap();
        assert!(!store.has(name), "{name}");
        // It can be removed nevertheless.
        store.remove(name).unwrap();
    }
    assert_eq!(fs::read_dir(&kernels).unwrap().count(), 0);
}

#[test]
fn an_added_kernel_brings_its_modules_and_takes_no_more() {
    let own = Store::open(&default_store_dir().unwrap()).unwrap();
    let kernel = match own.find("debian-cloud-6.12") {
        Ok(kernel) => kernel,
        Err(error) => return skip("debian-cloud-6.12", &error.to_string()),
    };
    let (folder, store) = store();
    // As `make modules_install INSTALL_MOD_PATH=DIR` leaves it, with links to the build folder.
    let install = folder
        .path()
        .join("install/lib/modules")
        .join(&kernel.release);
    fs::create_dir_all(install.parent().unwrap()).unwrap();
    symlink(kernel.modules.as_ref().unwrap(), &install).unwrap();
    let bare = folder.path().join("bzImage");
    fs::copy(&kernel.vmlinuz, &bare).unwrap();
    let guard = guard(&store);
    let given = folder.path().join("install");
    let added = store.add("mine", &bare, Some(&given), &guard).unwrap();
    assert_eq!(
        (&added.release, &added.sha256),
        (&kernel.release, &kernel.sha256)
    );
    assert_eq!(
        added.modules_for(&["virtio_blk"]).unwrap(),
        kernel.modules_for(&["virtio_blk"]).unwrap()
    );
    assert_eq!(store.find("mine").unwrap(), added);
    let none = store
        .add("second", &bare, Some(folder.path()), &guard)
        .unwrap_err()
        .to_string();
    assert!(none.contains("no modules of"), "{none}");
    let names: Vec<_> = fs::read_dir(store.dir().join("kernels"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["mine"]);
}
