//! Modules of real kernels, in the order in which they load.
//!
//! The kernels are those of the user's store, which `make kernels` fills.

use std::fs;

use tare_kernels::{Kernel, KernelError, Module, Store, default_store_dir};
use tare_testkit::skip;

/// Finds a kernel; None, and a word why, if it was not fetched.
fn kernel(name: &str) -> Option<Kernel> {
    let store = Store::open(&default_store_dir().unwrap()).unwrap();
    match store.find(name) {
        Ok(kernel) => Some(kernel),
        Err(error) => {
            skip(name, &error.to_string());
            None
        }
    }
}

fn names(modules: &[Module]) -> Vec<&str> {
    modules.iter().map(|module| module.name.as_str()).collect()
}

/// Asserts that each of `before` stands in `order` before `module`.
#[track_caller]
fn comes_after(order: &[&str], module: &str, before: &[&str]) {
    let at = |name: &str| {
        let found = order.iter().position(|other| *other == name);
        found.unwrap_or_else(|| panic!("no {name} in {order:?}"))
    };
    for other in before {
        assert!(at(other) < at(module), "{other} after {module}: {order:?}");
    }
}

const GUEST: [&str; 4] = ["virtio_pci", "virtio_console", "virtio_blk", "ext4"];

#[test]
fn the_cloud_kernel_of_6_1_has_ext4_built_in() {
    let Some(kernel) = kernel("debian-cloud-6.1") else {
        return;
    };
    let modules = kernel.modules_for(&GUEST).unwrap();
    let order = names(&modules);
    comes_after(
        &order,
        "virtio_pci",
        &[
            "virtio_ring",
            "virtio",
            "virtio_pci_modern_dev",
            "virtio_pci_legacy_dev",
        ],
    );
    comes_after(&order, "virtio_console", &["virtio_pci"]);
    comes_after(&order, "virtio_blk", &["virtio_console"]);
    assert!(!order.contains(&"ext4"), "{order:?}");
    assert!(
        modules
            .iter()
            .all(|module| module.bytes.starts_with(b"\x7fELF"))
    );
}

#[test]
fn the_cloud_kernel_of_6_12_has_virtio_built_in_and_its_modules_compressed() {
    let Some(kernel) = kernel("debian-cloud-6.12") else {
        return;
    };
    let modules = kernel.modules_for(&GUEST).unwrap();
    assert_eq!(names(&modules), ["virtio_blk"]);
    assert!(modules[0].bytes.starts_with(b"\x7fELF"));
    let folder = kernel.modules.as_ref().unwrap();
    assert!(
        folder
            .join("kernel/drivers/block/virtio_blk.ko.xz")
            .is_file()
    );
}

#[test]
fn ext4_of_the_plain_kernel_gets_a_checksum_for_every_cpu() {
    for name in ["debian-6.1", "debian-rt-6.1"] {
        let Some(kernel) = kernel(name) else {
            continue;
        };
        let modules = kernel.modules_for(&GUEST).unwrap();
        let order = names(&modules);
        comes_after(
            &order,
            "ext4",
            &["jbd2", "mbcache", "crc16", "crc32c_generic"],
        );
        assert!(!order.contains(&"crc32c_intel"), "{order:?}");
        // What depends on much, over several folders.
        for wanted in ["virtio_net", "9p", "btrfs", "xfs", "overlay", "virtio_scsi"] {
            let alone = kernel.modules_for(&[wanted]).unwrap();
            assert_eq!(
                alone.last().map(|module| module.name.as_str()),
                Some(wanted)
            );
        }
    }
}

#[test]
fn the_flavours_are_told_by_their_configuration() {
    for (name, preemption) in [
        ("debian-cloud-6.1", "dynamic, voluntary"),
        ("debian-rt-6.1", "PREEMPT_RT"),
    ] {
        if let Some(kernel) = kernel(name) {
            assert_eq!(kernel.preemption().as_deref(), Some(preemption), "{name}");
            // What isolated guests rely on.
            assert!(kernel.option("NO_HZ_FULL").unwrap().is_yes(), "{name}");
        }
    }
}

#[test]
fn bad_modules_are_errors_that_name_kernel_and_module() {
    let Some(kernel) = kernel("debian-cloud-6.1") else {
        return;
    };
    let said =
        |kernel: &Kernel, wanted: &str| kernel.modules_for(&[wanted]).unwrap_err().to_string();
    let missing = said(&kernel, "frobnicate");
    assert!(
        missing.contains(&kernel.name) && missing.contains("frobnicate"),
        "{missing}"
    );

    let bare = Kernel {
        modules: None,
        ..kernel.clone()
    };
    let none = bare.modules_for(&["virtio_blk"]).unwrap_err();
    assert!(matches!(none, KernelError::NoModules { .. }), "{none}");
    assert!(none.to_string().contains("tare kernel add"), "{none}");
    // Nothing wanted, nothing missing.
    assert_eq!(bare.modules_for(&[]).unwrap(), []);

    let folder = tempfile::tempdir().unwrap();
    let block = folder.path().join("kernel/drivers/block");
    fs::create_dir_all(&block).unwrap();
    let with = |release: &str| Kernel {
        modules: Some(folder.path().to_owned()),
        release: release.to_owned(),
        ..kernel.clone()
    };
    let good = fs::read(
        kernel
            .modules
            .as_ref()
            .unwrap()
            .join("kernel/drivers/block/virtio_blk.ko"),
    )
    .unwrap();
    fs::write(block.join("virtio-blk.ko"), &good).unwrap();
    // It depends on what is not there.
    let needs = said(&with(&kernel.release), "virtio_blk");
    assert!(needs.contains("virtio_blk needs it"), "{needs}");
    let other = said(&with("6.1.0-1-amd64"), "virtio_blk");
    assert!(other.contains("was built for"), "{other}");
    fs::write(block.join("virtio-blk.ko"), &good[..good.len() / 3]).unwrap();
    assert!(said(&with(&kernel.release), "virtio_blk").contains("can't be used"));
    fs::write(block.join("nbd.ko.xz"), b"no xz").unwrap();
    assert!(said(&with(&kernel.release), "nbd").contains("nbd.ko.xz"));
    fs::write(block.join("rbd.ko.zst"), b"no zst").unwrap();
    assert!(said(&with(&kernel.release), "rbd").contains("rbd.ko.zst"));
}

#[test]
fn modules_compressed_by_zstd_are_read() {
    let Some(kernel) = kernel("debian-cloud-6.1") else {
        return;
    };
    let original = kernel.modules_for(&["virtio_blk"]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let flat = folder.path().join("kernel");
    fs::create_dir(&flat).unwrap();
    for module in &original {
        let packed = zstd::encode_all(&module.bytes[..], 1).unwrap();
        fs::write(flat.join(format!("{}.ko.zst", module.name)), packed).unwrap();
    }
    let packed = Kernel {
        modules: Some(folder.path().to_owned()),
        ..kernel
    };
    assert_eq!(packed.modules_for(&["virtio-blk"]).unwrap(), original);
}
