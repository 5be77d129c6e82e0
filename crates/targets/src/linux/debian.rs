//! A whole Debian as the guest's root file system, as calder-2020 measured one.
//!
//! The kernel and the modules of its disk and port still come from the store and an initramfs, so
//! that any kernel can be measured with any root. The disk holds Debian: its init starts everything
//! that an installed system starts, and then the agent, as a unit of systemd.

use tare_guard::Guard;
use tare_kernels::KernelError;
use tare_kernels::debian_root::{DebianRoot, GUEST_FOLDER, RootFile};
use tare_wire::guest::{IN_SYSTEM, ROOT_SERIAL};

use crate::qemu::Disk;

/// The name of the unit that starts the agent.
pub(super) const UNIT: &str = "tare.service";

/// Returns the disk with the agent and its unit in it. The guest's writes are lost when it ends.
///
/// # Errors
///
/// Returns [`KernelError`] if the files can't be put into a copy of the disk.
pub(super) fn disk(root: &DebianRoot, agent: Vec<u8>, guard: &Guard) -> Result<Disk, KernelError> {
    let program = format!("{GUEST_FOLDER}/agent");
    // The end of the unit ends the guest, so that nothing has to depend on it.
    let unit = format!(
        "[Unit]\nDescription=What is measured\nAfter=multi-user.target\n\n[Service]\n\
         ExecStart={program} {IN_SYSTEM}\nStandardError=journal+console\nLimitMEMLOCK=infinity\n"
    );
    let file = |path: String, mode, bytes| RootFile { path, mode, bytes };
    let files = [
        file(program, 0o755, agent),
        file(
            format!("/etc/systemd/system/{UNIT}"),
            0o644,
            unit.into_bytes(),
        ),
    ];
    Ok(Disk {
        path: root.with_files(&files, guard)?,
        is_kept_as_it_is: true,
        serial: ROOT_SERIAL,
    })
}

/// Names the Debian exactly.
pub(super) fn label(root: &DebianRoot) -> String {
    format!(
        "Debian {}, {} packages, SHA-256 {}",
        root.record.suite,
        root.record.packages.len(),
        root.record.sha256
    )
}
