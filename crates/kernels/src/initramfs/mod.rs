//! The initramfs: the files that a guest's kernel finds when it starts.
//!
//! It is an archive in the format `newc` of cpio, uncompressed: unpacking would cost the guest more
//! time than reading it costs, above all under an emulator.
//!
//! The same content gives the same bytes: entries are in the order of their paths, times are 0,
//! owners are root.

mod cpio;
mod elf;
mod libraries;

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::error::KernelError;

/// An initramfs that is being put together.
#[derive(Clone, Debug, Default)]
pub struct Initramfs {
    /// By path, without a slash at the beginning; parents sort before what is in them.
    entries: BTreeMap<PathBuf, Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Dir { mode: u32 },
    File { mode: u32, bytes: Vec<u8> },
    Link { target: PathBuf },
    CharDevice { mode: u32, major: u32, minor: u32 },
}

/// The kernel's PATH_MAX: it skips an entry whose path, with its end, is longer.
const PATH_MAX: usize = 4_096;
/// The largest file that the format can hold.
const FILE_MAX: u64 = u32::MAX as u64;

impl Initramfs {
    /// Makes an empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a folder; its parents are added with mode 755. One that is there gets the new mode.
    ///
    /// # Errors
    ///
    /// [`KernelError::Failed`] if something else has this path, or the path leads out of the
    /// initramfs.
    pub fn dir(&mut self, path: impl AsRef<Path>, mode: u32) -> Result<&mut Self, KernelError> {
        self.put(path.as_ref(), Entry::Dir { mode })
    }

    /// Adds a file; its parents are added. The same file may be added twice.
    ///
    /// # Errors
    ///
    /// As [`dir`](Self::dir), and if the file has 4 GiB or more.
    pub fn file(
        &mut self,
        path: impl AsRef<Path>,
        mode: u32,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<&mut Self, KernelError> {
        let bytes = bytes.into();
        if bytes.len() as u64 > FILE_MAX {
            return Err(refused(path.as_ref(), "a file must be smaller than 4 GiB"));
        }
        self.put(path.as_ref(), Entry::File { mode, bytes })
    }

    /// Adds a symbolic link.
    ///
    /// # Errors
    ///
    /// As [`dir`](Self::dir).
    pub fn symlink(
        &mut self,
        path: impl AsRef<Path>,
        target: impl AsRef<Path>,
    ) -> Result<&mut Self, KernelError> {
        let target = target.as_ref().to_owned();
        self.put(path.as_ref(), Entry::Link { target })
    }

    /// Adds a character device.
    ///
    /// # Errors
    ///
    /// As [`dir`](Self::dir).
    pub fn node(
        &mut self,
        path: impl AsRef<Path>,
        mode: u32,
        major: u32,
        minor: u32,
    ) -> Result<&mut Self, KernelError> {
        let entry = Entry::CharDevice { mode, major, minor };
        self.put(path.as_ref(), entry)
    }

    /// Adds a program of the host at the same path, with the dynamic loader and every shared
    /// library that it needs; of a script, also its interpreter.
    ///
    /// Libraries that a program loads by itself while it runs (plug-ins, name services) are not
    /// found.
    ///
    /// # Errors
    ///
    /// [`KernelError::Io`] if a file can't be read; [`KernelError::Failed`] if a library is
    /// missing, if it is no program for this machine, or as [`dir`](Self::dir).
    pub fn program(&mut self, host_path: impl AsRef<Path>) -> Result<&mut Self, KernelError> {
        for (path, bytes) in libraries::closure(host_path.as_ref())? {
            self.file(path, 0o755, bytes)?;
        }
        Ok(self)
    }

    /// Returns the archive.
    pub fn finish(self) -> Vec<u8> {
        cpio::archive(&self.entries)
    }

    fn put(&mut self, path: &Path, entry: Entry) -> Result<&mut Self, KernelError> {
        let normal = normal(path)?;
        if normal.as_os_str().is_empty() {
            return Err(refused(path, "it is the root"));
        }
        let parents = || {
            let parents = normal.ancestors().skip(1);
            parents.filter(|parent| !parent.as_os_str().is_empty())
        };
        // All is checked before anything is added: what is refused leaves no trace.
        for parent in parents() {
            if !matches!(self.entries.get(parent), None | Some(Entry::Dir { .. })) {
                let why = format!("/{} is not a folder there", parent.display());
                return Err(refused(path, &why));
            }
        }
        match self.entries.get(&normal) {
            None => {}
            Some(Entry::Dir { .. }) if matches!(entry, Entry::Dir { .. }) => {}
            Some(there) if *there == entry => {}
            Some(_) => return Err(refused(path, "something else is there already")),
        }
        for parent in parents() {
            self.entries
                .entry(parent.to_owned())
                .or_insert(Entry::Dir { mode: 0o755 });
        }
        self.entries.insert(normal, entry);
        Ok(self)
    }
}

/// Writes a path without its first slash, `.` and doubled slashes.
fn normal(path: &Path) -> Result<PathBuf, KernelError> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) if name.as_bytes().contains(&0) => {
                return Err(refused(path, "its name holds a zero byte"));
            }
            Component::Normal(name) => normal.push(name),
            Component::ParentDir | Component::Prefix(_) => {
                return Err(refused(path, "its path leads upwards"));
            }
        }
    }
    if normal.as_os_str().len() >= PATH_MAX {
        return Err(refused(path, "its path is too long"));
    }
    Ok(normal)
}

fn refused(path: &Path, why: &str) -> KernelError {
    KernelError::Failed(format!(
        "{} can't be put into the initramfs: {why}",
        path.display()
    ))
}
