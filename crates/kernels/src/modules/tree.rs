//! The folder of a kernel's modules, `lib/modules/RELEASE`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::modinfo::ModInfo;
use super::{bad, normal, unpack};
use crate::error::{Doing, KernelError};
use crate::files::if_there;

/// Holds where each module is, and what is built in.
pub(super) struct Tree {
    folder: PathBuf,
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

/// The file with the paths of what is built in.
const BUILT_IN: &str = "modules.builtin";
/// The file with the `.modinfo` of what is built in, `module.key=value`.
const BUILT_IN_INFO: &str = "modules.builtin.modinfo";

/// Where what others ask for by an alias lies: checksums and ciphers.
const PROVIDERS: [&str; 3] = ["kernel/crypto", "kernel/arch/x86/crypto", "kernel/lib"];

impl Tree {
    /// Lists a folder of modules.
    pub(super) fn read(folder: &Path) -> Result<Self, KernelError> {
        let mut files = BTreeMap::new();
        for path in walk(folder)? {
            if let Some(name) = module_name(&path) {
                files.insert(name, path);
            }
        }
        let list = folder.join(BUILT_IN);
        let text = if_there(fs::read_to_string(&list)).doing("read", &list)?;
        let built_in = text
            .unwrap_or_default()
            .lines()
            .filter_map(|line| module_name(Path::new(line)))
            // The names by which what is built in can be asked for.
            .chain(built_in_aliases(folder)?)
            .collect();
        Ok(Self {
            folder: folder.to_owned(),
            files,
            built_in,
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn file(&self, name: &str) -> Option<PathBuf> {
        self.files.get(name).map(|path| self.folder.join(path))
    }

    /// Returns whether a module, or what is asked for by an alias, is part of the kernel itself.
    pub(super) fn is_built_in(&self, name: &str) -> bool {
        self.built_in.contains(name)
    }

    /// Finds the module that provides `alias`, one for every CPU if there is.
    pub(super) fn provider(&self, alias: &str) -> Result<Option<String>, KernelError> {
        let mut special = None;
        for (name, path) in &self.files {
            if !PROVIDERS.iter().any(|folder| path.starts_with(folder)) {
                continue;
            }
            let file = self.folder.join(path);
            let info = info(&file)?;
            if info.provides(alias) {
                if !info.needs_cpu_feature() {
                    return Ok(Some(name.clone()));
                }
                special = special.or_else(|| Some(name.clone()));
            }
        }
        Ok(special)
    }
}

/// Adds up the sizes of the files of a folder of modules, as far as they can be read.
pub(crate) fn bytes(folder: &Path) -> u64 {
    let files = walk(folder).unwrap_or_default();
    files
        .iter()
        .filter_map(|path| Some(fs::metadata(folder.join(path)).ok()?.len()))
        .sum()
}

/// Lists the files of a folder of modules that are worth keeping, relative to it.
///
/// Most of a plain kernel's modules are drivers of hardware that no guest has. This keeps the
/// modules that are no drivers, the drivers of the devices that QEMU offers, and their
/// dependencies.
pub(crate) fn files_to_keep(folder: &Path) -> Result<Vec<PathBuf>, KernelError> {
    let tree = Tree::read(folder)?;
    let mut kept: BTreeSet<String> = tree
        .files
        .iter()
        .filter(|(_, path)| is_for_guests(path))
        .map(|(name, _)| name.clone())
        .collect();
    let mut open: Vec<String> = kept.iter().cloned().collect();
    while let Some(name) = open.pop() {
        let Some(file) = tree.file(&name) else {
            continue;
        };
        let info = info(&file)?;
        for needed in info.depends().map(normal) {
            if tree.files.contains_key(&needed) && kept.insert(needed.clone()) {
                open.push(needed);
            }
        }
    }
    let lists = [BUILT_IN, BUILT_IN_INFO].map(PathBuf::from);
    let mut files: Vec<PathBuf> = kept
        .iter()
        .filter_map(|name| tree.files.get(name).cloned())
        .chain(lists.into_iter().filter(|path| folder.join(path).is_file()))
        .collect();
    files.sort();
    Ok(files)
}

fn info(file: &Path) -> Result<ModInfo, KernelError> {
    ModInfo::parse(&unpack::read(file)?).map_err(|why| bad(file, why))
}

/// Drivers of what a guest in QEMU can have, and of what has no hardware.
const DRIVERS: &str = "acpi ata block cdrom char clocksource cpufreq dax firmware \
    md nvme ptp rtc vdpa vhost virt virtio";
/// Of these only the files next to the makers' folders: virtio_net, tun, virtio_scsi…
const DRIVERS_WITHOUT_MAKERS: [&str; 2] = ["net", "scsi"];

fn is_for_guests(path: &Path) -> bool {
    let parts: Vec<&str> = path
        .components()
        .filter_map(|part| part.as_os_str().to_str())
        .collect();
    match parts.as_slice() {
        ["kernel", "sound", ..] => false,
        ["kernel", "drivers", kind, _file] if DRIVERS_WITHOUT_MAKERS.contains(kind) => true,
        ["kernel", "drivers", kind, ..] => DRIVERS.split(' ').any(|known| known == *kind),
        _ => true,
    }
}

/// Returns a module's name if the path is that of a module.
fn module_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    unpack::SUFFIXES
        .iter()
        .find_map(|suffix| file.strip_suffix(suffix))
        .map(normal)
}

fn built_in_aliases(folder: &Path) -> Result<Vec<String>, KernelError> {
    let path = folder.join(BUILT_IN_INFO);
    // Kernels before 5.2 have none.
    let bytes = if_there(fs::read(&path)).doing("read", &path)?;
    let bytes = bytes.unwrap_or_default();
    let aliases = bytes.split(|byte| *byte == 0).filter_map(|text| {
        let (_, alias) = std::str::from_utf8(text).ok()?.split_once(".alias=")?;
        Some(normal(alias))
    });
    Ok(aliases.collect())
}

/// Lists the files below a folder, relative to it, in the order of their names. Links are left out.
fn walk(folder: &Path) -> Result<Vec<PathBuf>, KernelError> {
    let mut files = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        let path = folder.join(&below);
        for entry in fs::read_dir(&path).doing("list", &path)? {
            let entry = entry.doing("list", &path)?;
            let kind = entry.file_type().doing("list", &path)?;
            let relative = below.join(entry.file_name());
            if kind.is_dir() {
                open.push(relative);
            } else if kind.is_file() {
                files.push(relative);
            }
        }
    }
    files.sort();
    Ok(files)
}
