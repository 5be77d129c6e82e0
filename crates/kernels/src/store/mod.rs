//! The folder of kernels.
//!
//! ```text
//! kernels/debian-rt-6.1.192-2/    one folder for each kernel, named as the kernel
//!     kernel.json                 what it is, where it came from
//!     vmlinuz  config
//!     lib/modules/RELEASE/        its modules
//! roots/debian/                   a whole Debian: root.ext4, root.json
//! ```
//!
//! A folder is prepared under another name and renamed into place, so what is there is complete. It
//! can be copied to another machine, and used there offline.
//!
//! Kernels in it may be booted together with root's files; so it is trusted only if nobody
//! but this user, or root, can have written into it, and each file's SHA-256 is checked when it is
//! used.

mod add;
mod boot;
pub(crate) mod record;

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Doing, KernelError};
use crate::files::{entries, if_there, remove_dir};
use crate::kernel::{Kernel, Source};
use crate::name::Wanted;
use crate::version;

/// The folder of kernels.
#[derive(Clone, Debug)]
pub struct Store {
    dir: PathBuf,
}

/// Says where this user's kernels are.
///
/// `TARE_KERNELS` if it is set, else `$XDG_CACHE_HOME/tare/kernels`, else
/// `$HOME/.cache/tare/kernels`.
///
/// # Errors
///
/// [`KernelError::NoStoreDir`] if none of these variables helps.
pub fn default_store_dir() -> Result<PathBuf, KernelError> {
    choose_store_dir(|name| env::var_os(name))
}

fn choose_store_dir(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, KernelError> {
    let folder = |name| variable(name).map(PathBuf::from);
    if let Some(chosen) = folder("TARE_KERNELS").filter(|path| !path.as_os_str().is_empty()) {
        return Ok(chosen);
    }
    // The XDG specification has relative paths ignored.
    let absolute = |name| folder(name).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".cache")))
        .map(|base| base.join("tare/kernels"))
        .ok_or(KernelError::NoStoreDir)
}

impl Store {
    /// Opens the store in a folder, usually [`default_store_dir`]. The folder is made when
    /// something is put into it.
    ///
    /// # Errors
    ///
    /// [`KernelError::StoreUnsafe`] if others can write into it.
    pub fn open(dir: &Path) -> Result<Self, KernelError> {
        let dir = std::path::absolute(dir).doing("resolve", dir)?;
        let store = Self { dir };
        store.check_owner()?;
        Ok(store)
    }

    /// Returns the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Lists the kernels of the store, then those of the host's /boot that can be read.
    ///
    /// Their files are not checked, which [`find`](Self::find) does.
    pub fn list(&self) -> Vec<Kernel> {
        let mut kernels = self.stored();
        kernels.extend(boot::kernels().0);
        kernels
    }

    /// Finds a kernel by its name, without network.
    ///
    /// * `debian`, `debian-cloud`, `debian-rt`: the newest here of that flavour, of the series that
    ///   is the distribution's default;
    /// * `debian-6.1`, `debian-cloud-6.12`…: the newest here of that flavour and series;
    /// * a name from the list: exactly that one;
    /// * `host`: the newest in /boot;
    /// * anything with a slash: the path of a vmlinuz.
    ///
    /// # Errors
    ///
    /// [`KernelError::Missing`] with the command that fetches it, [`KernelError::Unknown`],
    /// [`KernelError::NoHostKernel`], [`KernelError::Failed`] if a file is no kernel, or
    /// [`KernelError::Changed`] if it is not the one that was put there.
    pub fn find(&self, name: &str) -> Result<Kernel, KernelError> {
        if name == "host" {
            return boot::newest();
        }
        if name.contains('/') {
            return Kernel::at(name.to_owned(), Path::new(name), Source::Path);
        }
        let mut stored = self.stored();
        if let Some(at) = stored.iter().position(|kernel| kernel.name == name) {
            return checked(stored.swap_remove(at));
        }
        if let Some(wanted) = Wanted::parse(name) {
            let newest = newest(stored, wanted);
            return checked(newest.ok_or_else(|| KernelError::missing(name))?);
        }
        let mut kernels = boot::kernels().0.into_iter();
        let found = kernels.find(|kernel| kernel.name == name);
        found.ok_or_else(|| KernelError::Unknown {
            name: name.to_owned(),
            wanted: "debian, debian-cloud or debian-rt, alone or with a series as in debian-6.12"
                .to_owned(),
        })
    }

    /// Returns whether the store has a kernel of this name, or one that the name means; its files
    /// are not checked.
    pub fn has(&self, name: &str) -> bool {
        self.peek(name).is_some()
    }

    /// Returns the kernel of the store that has this name, or that the name means; its files are
    /// not checked.
    pub fn peek(&self, name: &str) -> Option<Kernel> {
        let mut stored = self.stored();
        match stored.iter().position(|kernel| kernel.name == name) {
            Some(at) => Some(stored.swap_remove(at)),
            None => newest(stored, Wanted::parse(name)?),
        }
    }

    /// Removes a kernel that was fetched or added.
    ///
    /// # Errors
    ///
    /// [`KernelError::Unknown`] if there is none of this name, [`KernelError::Io`] if it can't be
    /// removed.
    pub fn remove(&self, name: &str) -> Result<(), KernelError> {
        let is_stored = record::is_name(name) && self.folder(name).is_dir();
        if !is_stored {
            return Err(KernelError::Unknown {
                name: name.to_owned(),
                wanted: "one that was fetched or added".to_owned(),
            });
        }
        // Renamed first: half a kernel must not be found.
        let folder = self.folder(name);
        let doomed = self.kernels_dir().join(format!(".{name}.removed"));
        remove_dir(&doomed)?;
        fs::rename(&folder, &doomed).doing("remove", &folder)?;
        remove_dir(&doomed)
    }

    /// Prepares the folder for what is to be fetched, and says where the guard of a fetch makes its
    /// scratch folders: in the store's file system, so that what is complete can be renamed into
    /// place.
    ///
    /// # Errors
    ///
    /// [`KernelError::Io`] if the folder can't be made, [`KernelError::StoreUnsafe`].
    pub fn guard_options(&self) -> Result<tare_guard::Options, KernelError> {
        self.make(&self.kernels_dir())?;
        Ok(tare_guard::Options {
            scratch_root: self.dir.clone(),
            ..tare_guard::Options::default()
        })
    }

    /// Returns the kernel of exactly this name, unchecked.
    pub(crate) fn stored_as(&self, name: &str) -> Option<Kernel> {
        record::read(&self.folder(name), name)
    }

    fn stored(&self) -> Vec<Kernel> {
        let kernels = entries(&self.kernels_dir()).filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            record::read(&entry.path(), &name)
        });
        let mut kernels: Vec<Kernel> = kernels.collect();
        kernels.sort_by(|a, b| {
            let key = |kernel: &Kernel| (kernel.flavour.is_none(), kernel.flavour, kernel.series());
            let version = |kernel: &Kernel| kernel.version.clone().unwrap_or_default();
            key(a)
                .cmp(&key(b))
                .then_with(|| version::compare(&version(a), &version(b)))
                .then_with(|| a.name.cmp(&b.name))
        });
        kernels
    }

    pub(crate) fn kernels_dir(&self) -> PathBuf {
        self.dir.join("kernels")
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.kernels_dir().join(name)
    }

    /// Makes a folder of the store, for this user only.
    pub(crate) fn make(&self, folder: &Path) -> Result<(), KernelError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .doing("make the folder", folder)?;
        self.check_owner()
    }

    fn check_owner(&self) -> Result<(), KernelError> {
        let status = if_there(fs::metadata(&self.dir)).doing("look at", &self.dir)?;
        let Some(status) = status else { return Ok(()) };
        let user = rustix::process::geteuid().as_raw();
        let why = if !status.is_dir() {
            "it is not a folder".to_owned()
        } else if status.uid() != user && status.uid() != 0 {
            format!("it belongs to user {}, not to {user}", status.uid())
        } else if status.mode() & 0o022 != 0 {
            "others may write into it".to_owned()
        } else {
            return Ok(());
        };
        let path = self.dir.clone();
        Err(KernelError::StoreUnsafe { path, why })
    }
}

/// Chooses the newest of a flavour and series; of the distribution's default if none is named.
fn newest(kernels: Vec<Kernel>, wanted: Wanted) -> Option<Kernel> {
    let fits = |kernel: &Kernel| {
        kernel.flavour == Some(wanted.flavour)
            && match wanted.series {
                Some(series) => kernel.series() == Some(series),
                None => kernel.is_default,
            }
    };
    // They are in the order of their versions.
    kernels.into_iter().rfind(fits)
}

fn checked(kernel: Kernel) -> Result<Kernel, KernelError> {
    if sha256(&kernel.vmlinuz)? == kernel.sha256 {
        return Ok(kernel);
    }
    Err(KernelError::Changed {
        name: kernel.name,
        path: kernel.vmlinuz,
    })
}

/// Computes the SHA-256 of a file of the store.
pub(crate) fn sha256(path: &Path) -> Result<String, KernelError> {
    file_sha256(path).doing("read", path)
}

/// Computes the SHA-256 of a file, in hexadecimal.
///
/// # Errors
///
/// Returns the error if it can't be read.
pub fn file_sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    // A disk may be larger than the memory.
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            count => hash.update(&buffer[..count]),
        }
    }
}

/// Writes bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // A String takes everything.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
