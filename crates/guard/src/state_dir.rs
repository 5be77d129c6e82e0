//! The folder in which journals lie.
//!
//! It must outlive a crash and be found by the next command of the same user, so it is not under
//! `/run` or `/tmp`. The entries of a journal are acted upon, perhaps as root; so the folder is
//! trusted only if nobody but this user can have written into it. Files in it are reached through a
//! descriptor of the folder, so that it cannot be swapped for another one after it was checked.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::error::GuardError;

/// Says where this user's journals lie.
///
/// `TARE_STATE_DIR` if it is set; else `/var/lib/tare` for root, and for others
/// `$XDG_STATE_HOME/tare` or `$HOME/.local/state/tare`.
///
/// # Errors
///
/// [`GuardError::NoStateDir`] if none of these variables holds an absolute path.
pub fn default_state_dir() -> Result<PathBuf, GuardError> {
    choose_state_dir(rustix::process::geteuid().is_root(), |name| {
        env::var_os(name)
    })
}

fn choose_state_dir(
    root: bool,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, GuardError> {
    let folder = |name| variable(name).map(PathBuf::from);
    if let Some(chosen) = folder("TARE_STATE_DIR").filter(|path| !path.as_os_str().is_empty()) {
        return Ok(chosen);
    }
    if root {
        return Ok(PathBuf::from("/var/lib/tare"));
    }
    // The XDG specification has relative paths ignored.
    let absolute = |name| folder(name).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local/state")))
        .map(|base| base.join("tare"))
        .ok_or(GuardError::NoStateDir)
}

/// An open, checked folder of journals.
#[derive(Debug)]
pub(crate) struct StateDir {
    journals: OwnedFd,
    path: PathBuf,
}

/// The folder inside the state folder. The state folder itself may be shared with other users.
const JOURNALS: &str = "journal";
const SETTINGS_LOCK: &str = "settings.lock";

impl StateDir {
    /// Opens the journal folder of a state folder, and makes both if they are missing.
    pub(crate) fn create(state_dir: &Path) -> Result<StateDir, GuardError> {
        let path = absolute(state_dir)?.join(JOURNALS);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(|source| failed("make the folder", &path, source))?;
        StateDir::open_journals(path)
    }

    /// Opens the journal folder of a state folder; `None` if there is none.
    pub(crate) fn open(state_dir: &Path) -> Result<Option<StateDir>, GuardError> {
        let path = absolute(state_dir)?.join(JOURNALS);
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => StateDir::open_journals(path).map(Some),
        }
    }

    fn open_journals(path: PathBuf) -> Result<StateDir, GuardError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let journals = rustix::fs::open(&path, flags, Mode::empty())
            .map_err(|errno| failed("open the folder", &path, errno))?;
        let status = rustix::fs::fstat(&journals)
            .map_err(|errno| failed("look at the folder", &path, errno))?;
        let user = rustix::process::geteuid().as_raw();
        let why = match status.st_uid {
            owner if owner != user => format!("it belongs to user {owner}, not to {user}"),
            _ if status.st_mode & 0o022 != 0 => "others may write into it".to_owned(),
            _ => return Ok(StateDir { journals, path }),
        };
        Err(GuardError::StateDirUnsafe { path, why })
    }

    /// Gives the path of a file in the folder, for messages.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Lists the names of the files in the folder, sorted.
    pub(crate) fn names(&self) -> Result<Vec<String>, GuardError> {
        let failed = |errno: Errno| failed("list the folder", &self.path, errno);
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.journals).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // Names that are not text, or are hidden, are not ours.
            match entry.file_name().to_str() {
                Ok(name) if !name.starts_with('.') => names.push(name.to_owned()),
                _ => {}
            }
        }
        names.sort();
        Ok(names)
    }

    /// Makes a new file for this user only.
    pub(crate) fn create_file(&self, name: &str) -> Result<File, Errno> {
        self.open_with(name, OFlags::CREATE | OFlags::EXCL)
    }

    /// Opens a file of the folder to read and to append.
    ///
    /// A link, a device or another user's file is `EPERM`: nobody but us puts files here, so it
    /// was not us.
    pub(crate) fn open_file(&self, name: &str) -> Result<File, Errno> {
        let file = self.open_with(name, OFlags::NONBLOCK)?;
        let status = rustix::fs::fstat(&file)?;
        let regular = rustix::fs::FileType::from_raw_mode(status.st_mode).is_file();
        if regular && status.st_uid == rustix::process::geteuid().as_raw() {
            Ok(file)
        } else {
            Err(Errno::PERM)
        }
    }

    fn open_with(&self, name: &str, more: OFlags) -> Result<File, Errno> {
        // Close-on-exec matters twice: a child must not read the journal, and must not hold its
        // lock when the owner is gone.
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
        rustix::fs::openat(&self.journals, name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
    }

    /// Gives a file another name, and makes the new name last.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), Errno> {
        rustix::fs::renameat(&self.journals, from, &self.journals, to)?;
        rustix::fs::fsync(&self.journals)
    }

    /// Deletes a file.
    pub(crate) fn unlink(&self, name: &str) -> Result<(), Errno> {
        rustix::fs::unlinkat(&self.journals, name, AtFlags::empty())
    }

    /// Waits for the permission to change settings, which is given back when it is dropped.
    ///
    /// Reading a value, noting it and writing another one must not be interleaved with the same
    /// in another process: each would put back what the other had set.
    pub(crate) fn lock_settings(&self) -> Result<Locked, GuardError> {
        let path = self.path_of(SETTINGS_LOCK);
        let failed = |errno: Errno| failed("lock settings with", &path, errno);
        let mut file = self
            .open_with(SETTINGS_LOCK, OFlags::CREATE)
            .map_err(failed)?;
        // A holder keeps it for as long as one file is written. One that was stopped keeps it for
        // ever, hence the limit.
        let give_up = Instant::now() + Duration::from_secs(10);
        loop {
            match Locked::take(file).map_err(failed)? {
                Ok(locked) => return Ok(locked),
                Err(_) if Instant::now() > give_up => {
                    return Err(GuardError::SettingsBusy { path });
                }
                Err(same) => file = same,
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A file with its exclusive lock held, until this is dropped or the process dies.
#[derive(Debug)]
pub(crate) struct Locked {
    file: File,
    /// A fork shares the lock; if it drops its copy, the lock is still its parent's.
    process: u32,
}

impl Locked {
    /// Takes the lock; gives the file back if somebody else holds it.
    pub(crate) fn take(file: File) -> Result<Result<Locked, File>, Errno> {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Ok(Locked {
                file,
                process: std::process::id(),
            })),
            Err(Errno::WOULDBLOCK) => Ok(Err(file)),
            Err(errno) => Err(errno),
        }
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing alone would leave the lock to a child that is just being forked, and has a copy
        // of the descriptor until it executes its program. An error leaves it at that.
        if self.process == std::process::id() {
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, GuardError> {
    std::path::absolute(path).map_err(|source| failed("resolve", path, source))
}

/// Says what cannot be done with the folder for journals, or with a file in it.
pub(crate) fn failed(action: &str, path: &Path, source: impl Into<io::Error>) -> GuardError {
    let advice = "; set TARE_STATE_DIR to a writable folder on a local disk";
    GuardError::io(format!("{action} {}", path.display()), source, advice)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn chosen(root: bool, variables: &[(&str, &str)]) -> Result<PathBuf, GuardError> {
        choose_state_dir(root, |name| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_state_folder_follows_the_variables_in_order() {
        let path = |root, variables| chosen(root, variables).unwrap();
        assert_eq!(path(true, &[("HOME", "/root")]), Path::new("/var/lib/tare"));
        assert_eq!(path(true, &[("TARE_STATE_DIR", "/x")]), Path::new("/x"));
        assert_eq!(
            path(false, &[("HOME", "/h")]),
            Path::new("/h/.local/state/tare")
        );
        assert_eq!(
            path(false, &[("HOME", "/h"), ("XDG_STATE_HOME", "/s")]),
            Path::new("/s/tare")
        );
        assert_eq!(
            path(
                false,
                &[
                    ("HOME", "/h"),
                    ("XDG_STATE_HOME", "s"),
                    ("TARE_STATE_DIR", "")
                ]
            ),
            Path::new("/h/.local/state/tare")
        );
        assert!(matches!(chosen(false, &[]), Err(GuardError::NoStateDir)));
    }

    #[test]
    fn a_folder_that_others_can_write_is_not_believed() {
        let root = tempfile::tempdir().unwrap();
        let state = root.path().join("deep/state");
        StateDir::create(&state).unwrap();
        let journals = state.join(JOURNALS);
        assert_eq!(
            fs::metadata(&journals).unwrap().permissions().mode() & 0o777,
            0o700
        );
        fs::set_permissions(&journals, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(
            StateDir::open(&state),
            Err(GuardError::StateDirUnsafe { .. })
        ));
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", root.path().join(JOURNALS)).unwrap();
        assert!(StateDir::open(root.path()).is_err());
    }
}
