//! The driver's folder, and properties of its file system.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{statfs, statvfs};

use crate::error::DriverError;

/// A folder that is removed at the end, with its content.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    is_there: bool,
}

impl Folder {
    /// Creates a new folder below `dir`.
    pub(super) fn make(dir: &Path) -> Result<Self, DriverError> {
        let failed = |error: io::Error| DriverError::at("use the scratch folder", dir, error);
        // Tools get paths, and work in the folder itself.
        let dir = fs::canonicalize(dir).map_err(failed)?;
        let path = dir.join(format!("load-{}", std::process::id()));
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(failed)?;
        Ok(Self {
            path,
            is_there: true,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder.
    pub(super) fn remove(mut self) -> Result<(), DriverError> {
        self.is_there = false;
        fs::remove_dir_all(&self.path).map_err(|error| DriverError::at("remove", &self.path, error))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_there {
            // An earlier error is reported; the folder's creator removes it.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Returns the type of the file system if it is in memory.
pub(super) fn ram_disk(path: &Path) -> Option<&'static str> {
    // linux/magic.h
    const RAMFS: u64 = 0x8584_58f6;
    const TMPFS: u64 = 0x0102_1994;
    match statfs(path).ok()?.f_type as u64 & 0xffff_ffff {
        RAMFS => Some("ramfs"),
        TMPFS => Some("tmpfs"),
        _ => None,
    }
}

/// Returns the free space for this user, in bytes.
pub(super) fn free(path: &Path) -> Result<u64, DriverError> {
    let found = statvfs(path)
        .map_err(|errno| DriverError::at("determine the free space in", path, errno))?;
    // A ramfs reports a size of 0, but grows until memory is full.
    if found.f_blocks == 0 {
        return Ok(u64::MAX);
    }
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Returns the disk usage of a folder, in bytes; files that vanish during the count are skipped.
pub(super) fn used(path: &Path) -> u64 {
    let mut bytes = 0;
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if let Ok(data) = entry.metadata() {
                // According to stat(2), blocks of 512 bytes for any file system.
                bytes += data.blocks() * 512;
                if data.is_dir() {
                    open.push(entry.path());
                }
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_new_counted_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::make(dir.path()).unwrap();
        assert!(Folder::make(dir.path()).is_err(), "not ours a second time");
        fs::write(folder.path().join("file"), [1; 10_000]).unwrap();
        assert!((10_000..40_000).contains(&used(folder.path())));
        assert!(free(folder.path()).unwrap() > 0);
        folder.remove().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_ram_disk_is_known() {
        assert_eq!(ram_disk(Path::new("/proc")), None);
        assert!(Path::new("/dev/shm").exists() && ram_disk(Path::new("/dev/shm")) == Some("tmpfs"));
    }
}
