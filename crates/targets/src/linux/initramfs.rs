//! What the guest finds when it starts: the agent as `/init`, and no more files than it needs.
//!
//! Every byte is copied by the guest's kernel before the agent runs. So the agent goes in without
//! what no kernel loads (its symbols and debugging information, three quarters of the file), the
//! archive is not compressed, and only modules are in it that stand between the guest and its first
//! record.

use std::path::PathBuf;

use object::Endianness;
use object::read::elf::{FileHeader, ProgramHeader};
use tare_kernels::{Initramfs, Kernel, KernelError, Module};
use tare_wire::guest::{MODULES, SCRATCH, SERVICES};

/// The modules of the virtio port.
const PORT_MODULES: &[&str] = &["virtio_pci", "virtio_console"];

/// The module of its card.
const CARD_MODULE: &str = "virtio_net";

/// The modules of a scratch disk.
const DISK_MODULES: &[&str] = &["virtio_blk", "ext4"];

/// The module that ext4 requests while it mounts; Linux would call modprobe for it.
const CHECKSUM_MODULE: &str = "crc32c_generic";

/// The requirements of a guest besides the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Whether its records come over a port; else they come over its console.
    pub(super) port: bool,
    /// Whether its loads write somewhere.
    pub(super) scratch: bool,
    /// Whether that is a disk.
    pub(super) disk: bool,
    /// The program of the network services, if it serves.
    pub(super) services: Option<Vec<u8>>,
    /// Whether its root file system is on a disk.
    pub(super) root: bool,
    /// Programs of this machine that its load executes.
    pub(super) programs: Vec<PathBuf>,
}

impl Needs {
    /// Returns what a guest without a load needs.
    pub(super) fn plain() -> Self {
        Self {
            port: true,
            ..Self::default()
        }
    }
}

/// Returns the archive.
///
/// # Errors
///
/// Returns [`KernelError`] if the kernel lacks a module, or a program can't be packed.
pub(super) fn archive(
    agent: &[u8],
    kernel: &Kernel,
    needs: &Needs,
) -> Result<Vec<u8>, KernelError> {
    compose(agent, &modules(kernel, needs)?, needs)
}

pub(super) fn compose(
    agent: &[u8],
    modules: &[Module],
    needs: &Needs,
) -> Result<Vec<u8>, KernelError> {
    let mut initramfs = Initramfs::new();
    for folder in ["/dev", "/proc", "/sys", "/tmp", "/run"] {
        initramfs.dir(folder, 0o755)?;
    }
    // What init has to say before it has mounted anything.
    initramfs.node("/dev/console", 0o600, 5, 1)?;
    initramfs.file("/init", 0o755, loaded_part(agent))?;
    let folder = MODULES.rsplit_once('/').map_or("/", |(folder, _)| folder);
    let mut order = String::new();
    for module in modules {
        let file = format!("{}.ko", module.name);
        initramfs.file(format!("{folder}/{file}"), 0o644, module.bytes.clone())?;
        order.push_str(&file);
        order.push('\n');
    }
    initramfs.file(MODULES, 0o644, order)?;
    if needs.scratch {
        initramfs.dir(SCRATCH, 0o755)?;
    }
    if let Some(services) = &needs.services {
        initramfs.file(SERVICES, 0o755, loaded_part(services))?;
    }
    for program in &needs.programs {
        initramfs.program(program)?;
    }
    Ok(initramfs.finish())
}

fn modules(kernel: &Kernel, needs: &Needs) -> Result<Vec<Module>, KernelError> {
    if !needs.disk && !needs.root {
        if !needs.port {
            return Ok(Vec::new());
        }
        let card: &[&str] = if needs.services.is_some() {
            &[CARD_MODULE]
        } else {
            &[]
        };
        return match kernel.modules_for(&[PORT_MODULES, card].concat()) {
            // A kernel of which only the file is known may have the drivers built in. If not, the
            // agent reports on the console.
            Err(KernelError::NoModules { .. }) => Ok(Vec::new()),
            modules => modules,
        };
    }
    let all = [PORT_MODULES, DISK_MODULES].concat();
    match kernel.modules_for(&[&all[..], &[CHECKSUM_MODULE]].concat()) {
        // Newer kernels have it as a library.
        Err(KernelError::MissingModule { module, .. }) if module == CHECKSUM_MODULE => {
            kernel.modules_for(&all)
        }
        modules => modules,
    }
}

/// Returns the part of a program that a kernel loads; all of it if it is not of the usual form.
fn loaded_part(program: &[u8]) -> Vec<u8> {
    let end = || -> Option<usize> {
        let header = object::elf::FileHeader64::<Endianness>::parse(program).ok()?;
        let endian = header.endian().ok()?;
        let headers = header.program_headers(endian, program).ok()?;
        let ends = headers.iter().map(|header| {
            let (offset, size) = header.file_range(endian);
            offset.checked_add(size)
        });
        let end = ends.collect::<Option<Vec<u64>>>()?.into_iter().max()?;
        usize::try_from(end)
            .ok()
            .filter(|end| (64..=program.len()).contains(end))
    };
    let Some(end) = end() else {
        return program.to_vec();
    };
    let mut part = program[..end].to_vec();
    // The table of sections is gone: its place, the number of its rows, the row of its names
    // (e_shoff, e_shnum, e_shstrndx of the System V ABI's ELF header).
    part[40..48].fill(0);
    part[60..64].fill(0);
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::MeasuredFile;

    #[test]
    fn the_agent_still_runs_without_what_is_not_loaded() {
        let agent = MeasuredFile::agent();
        let Ok(whole) = agent.read() else {
            return tare_testkit::skip("the agent", "it is not built");
        };
        let part = loaded_part(&whole);
        assert!(part.len() < whole.len());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent");
        std::fs::write(&path, part).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
        let output = std::process::Command::new(&path).arg("--version").output();
        assert!(output.unwrap().status.success());
    }

    #[test]
    fn what_is_no_program_is_left_as_it_is() {
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01\x01"] {
            assert_eq!(loaded_part(bytes), bytes);
        }
    }

    #[test]
    fn modules_are_listed_in_their_order() {
        let module = |name: &str| Module {
            name: name.to_owned(),
            bytes: vec![1, 2, 3],
        };
        let modules = [module("virtio_ring"), module("virtio")];
        let archive = compose(b"agent", &modules, &Needs::default()).unwrap();
        let text = String::from_utf8_lossy(&archive);
        assert!(text.contains("virtio_ring.ko\nvirtio.ko\n"), "{text}");
        assert!(!text.contains("scratch"), "{text}");
    }
}
