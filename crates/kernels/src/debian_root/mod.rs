//! A whole Debian on a disk, for what wants a distribution's user space around it.
//!
//! It is made once, by `debootstrap`, which requires root and the network, and is kept in the
//! store. Guests boot it without changing it (QEMU's `snapshot=on`). It is another kind of guest
//! than one whose only program is the agent, and is labelled as such.
//!
//! What is measured is not in it yet: [`DebianRoot::with_files`] makes a copy that holds the agent
//! and whatever starts it, so that a new agent needs no new Debian.
//!
//! `debootstrap` mounts file systems and runs the packages' own scripts. All that happens in a
//! mount and a process namespace: they end with it, however it ends, and there is nothing to
//! unmount.

mod image;
mod make;

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tare_guard::Guard;

pub use make::{RootPlan, check_tools, make, plan};

use crate::error::{Doing, KernelError};
use crate::files::{entries, remove_dir};
use crate::store::{Store, hex};

/// The name by which it is fetched.
pub const NAME: &str = "debian-root";

const FOLDER: &str = "roots/debian";
const RECORD: &str = "root.json";
const IMAGE: &str = "root.ext4";

/// A Debian in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DebianRoot {
    /// Its disk: an ext4 file system without partitions.
    pub image: PathBuf,
    /// Its contents.
    #[serde(flatten)]
    pub record: RootRecord,
}

/// The contents of a Debian.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootRecord {
    /// The release's name: `bookworm`.
    pub suite: String,
    /// debootstrap's variant: `standard` if none was named.
    pub variant: String,
    /// Names and versions of the packages, `name=version`, sorted.
    pub packages: Vec<String>,
    /// SHA-256 of the image, in hexadecimal.
    pub sha256: String,
    /// Size of the image, with its holes.
    pub bytes: u64,
}

/// A file that is put into a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootFile {
    /// Its absolute path; the folders must exist, or be [`GUEST_FOLDER`].
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// An empty folder in each Debian, for files of ours.
pub const GUEST_FOLDER: &str = "/usr/lib/tare";

/// Finds the Debian of the store, without network.
///
/// # Errors
///
/// [`KernelError::Missing`] with the command that makes it.
pub fn find(store: &Store) -> Result<DebianRoot, KernelError> {
    let folder = store.dir().join(FOLDER);
    let image = folder.join(IMAGE);
    let record = fs::read(folder.join(RECORD)).ok();
    let record = record.and_then(|text| serde_json::from_slice::<RootRecord>(&text).ok());
    record
        .filter(|record| fs::metadata(&image).is_ok_and(|status| status.len() == record.bytes))
        .map(|record| DebianRoot { image, record })
        .ok_or_else(|| KernelError::missing(NAME))
}

/// Removes the Debian of the store.
///
/// # Errors
///
/// [`KernelError::Missing`] if there is none, [`KernelError::Io`] if it can't be removed.
pub fn remove(store: &Store) -> Result<(), KernelError> {
    find(store)?;
    remove_dir(&store.dir().join(FOLDER))
}

impl DebianRoot {
    /// Returns the image of a copy that also holds these files, owned by root.
    ///
    /// The copy stays in the store until other files are asked for: the same files cost no time. It
    /// takes no root, and is made in a scratch folder first.
    ///
    /// # Errors
    ///
    /// [`KernelError::NoTool`] without `debugfs`; [`KernelError::Tool`] if a path can't be written;
    /// [`KernelError::Io`].
    pub fn with_files(&self, files: &[RootFile], guard: &Guard) -> Result<PathBuf, KernelError> {
        let folder = self.image.parent().unwrap_or(Path::new("/"));
        let name = format!("with-{}.ext4", self.fingerprint(files));
        let copy = folder.join(&name);
        if copy.is_file() {
            return Ok(copy);
        }
        let partial = folder.join(format!(".{name}.partial-{}", std::process::id()));
        let made = image::copy_sparse(&self.image, &partial)
            .and_then(|()| image::write_files(&partial, files, guard))
            .and_then(|()| fs::rename(&partial, &copy).doing("make", &copy));
        if let Err(error) = made {
            // The error names the file.
            let _ = fs::remove_file(&partial);
            return Err(error);
        }
        remove_others(folder, &name);
        Ok(copy)
    }

    /// Computes what names a copy: the base and every file.
    fn fingerprint(&self, files: &[RootFile]) -> String {
        let mut hash = Sha256::new();
        hash.update(&self.record.sha256);
        for file in files {
            for part in [file.path.as_bytes(), &file.mode.to_le_bytes(), &file.bytes] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
        }
        hex(&hash.finalize())[..16].to_owned()
    }
}

/// Removes copies with other files. A guest that runs from one keeps it open; what a killed command
/// left unfinished goes, too.
fn remove_others(folder: &Path, name: &str) {
    for entry in entries(folder) {
        let other = entry.file_name().to_string_lossy().into_owned();
        let is_copy = other.starts_with("with-") || other.starts_with(".with-");
        if is_copy && other != name {
            // If it stays, it costs room and is tried again next time.
            let _ = fs::remove_file(entry.path());
        }
    }
}
