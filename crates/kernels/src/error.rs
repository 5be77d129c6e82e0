//! What can go wrong with kernels, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use tare_guard::GuardError;
use thiserror::Error;

/// What went wrong with a kernel, its modules, an initramfs or a root file system.
#[derive(Debug, Error)]
pub enum KernelError {
    /// Neither variable that leads to the cache folder is set.
    #[error("there is no folder for kernels: set TARE_KERNELS, or HOME, to an absolute path")]
    NoStoreDir,
    /// The folder can be written by others, so what is in it can't be believed.
    #[error("the folder of kernels {} is not used: {why}", path.display())]
    StoreUnsafe {
        /// The folder.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// No kernel can have this name.
    #[error(
        "there is no kernel '{name}': want {wanted}, a name from `tare kernel list`, host, or the \
         path of a vmlinuz"
    )]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        wanted: String,
    },
    /// The kernel would be known, but is not here.
    #[error("the kernel '{name}' is not here; to get it: {remedy}")]
    Missing {
        /// The kernel.
        name: String,
        /// The command that gets it.
        remedy: String,
    },
    /// The host's own kernel is not in /boot.
    #[error("/boot holds no kernel that can be read: {why}; name another, or give its path")]
    NoHostKernel {
        /// Why not.
        why: String,
    },
    /// A file of the store is not what it was when it was put there.
    #[error(
        "{} has changed since it was put there; type `tare kernel remove {name}` and get it again",
        path.display()
    )]
    Changed {
        /// The kernel, or root file system.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// A name for a kernel can't be used.
    #[error("a kernel can't be called '{name}': {why}")]
    BadName {
        /// The name.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// A path in a disk image can't be used.
    #[error("'{name}' can't be put into a disk image: want an absolute path of plain letters")]
    BadFileName {
        /// The path.
        name: String,
    },
    /// The name is taken.
    #[error("there is a kernel '{name}' already; type `tare kernel remove {name}` first")]
    Exists {
        /// The name.
        name: String,
    },
    /// The kernel has no modules here.
    #[error(
        "the kernel '{kernel}' needs the module {module}, but its modules are missing; give their \
         folder: tare kernel add NAME {} --modules DIR", vmlinuz.display()
    )]
    NoModules {
        /// The kernel.
        kernel: String,
        /// The first module that is wanted.
        module: String,
        /// The kernel's file.
        vmlinuz: PathBuf,
    },
    /// The kernel has modules, but not this one.
    #[error(
        "the kernel '{kernel}' has no module {module}, neither built in nor in {}{}",
        folder.display(),
        wanted_by.as_ref().map(|by| format!(" ({by} needs it)")).unwrap_or_default()
    )]
    MissingModule {
        /// The kernel.
        kernel: String,
        /// The module.
        module: String,
        /// The module that depends on it.
        wanted_by: Option<String>,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// The distribution's tools are not here.
    #[error("{program} is not found: {why}; {remedy}")]
    NoTool {
        /// The program.
        program: &'static str,
        /// The purpose.
        why: &'static str,
        /// What to do instead.
        remedy: String,
    },
    /// The distribution's sources don't have the kernel.
    #[error("apt's sources offer no package for '{name}': {why}")]
    NotOffered {
        /// The kernel.
        name: String,
        /// The missing thing, and the remedy.
        why: String,
    },
    /// A tool failed.
    #[error("{what} failed: {said}")]
    Tool {
        /// The action, with the tool's name.
        what: String,
        /// The last lines that it printed.
        said: String,
    },
    /// The user asked to stop.
    #[error("stopped; nothing incomplete was kept")]
    Interrupted,
    /// Something can't be used, found or done: the words say what and why.
    #[error("{0}")]
    Failed(String),
    /// It requires root.
    #[error("{what} requires root; run the same command as root")]
    NotRoot {
        /// What does.
        what: &'static str,
    },
    /// A file can't be used.
    #[error("can't {action} {}: {source}", path.display())]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A process or folder can't be owned.
    #[error(transparent)]
    Guard(#[from] GuardError),
}

impl KernelError {
    /// Returns the command that would make the kernel usable, if it is a missing one.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Self::Missing { remedy, .. } => Some(remedy),
            _ => None,
        }
    }

    /// Says that something which can be fetched is not here.
    pub(crate) fn missing(name: &str) -> Self {
        Self::Missing {
            name: name.to_owned(),
            remedy: format!("tare kernel fetch {name}"),
        }
    }
}

/// Add to what the system says what was tried, and with which file.
pub(crate) trait Doing<T> {
    fn doing(self, action: &'static str, path: &Path) -> Result<T, KernelError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, action: &'static str, path: &Path) -> Result<T, KernelError> {
        self.map_err(|source| KernelError::Io {
            action,
            path: path.to_owned(),
            source: source.into(),
        })
    }
}
