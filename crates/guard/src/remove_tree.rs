//! Removes a folder with all that is in it, and nothing else.
//!
//! What a load wrote into a scratch folder may contain links to anywhere, and something may have
//! been mounted there. So every step goes through a descriptor of the folder that holds the entry:
//! no link is followed, also if one is put in place of a folder at the last moment, and no mount
//! point is crossed.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use crate::error::GuardError;

/// Removes a folder whose name ends with a mark; says whether it was there.
///
/// Goes on after an error, so that as much as possible is removed.
///
/// # Errors
///
/// [`GuardError::ScratchRefused`] if the folder is not named so, is not a folder, belongs to
/// another user or has something mounted in it; [`GuardError::Io`] with the first entry that
/// could not be removed.
pub(crate) fn remove_marked(path: &Path, mark: &str) -> Result<bool, GuardError> {
    let refused = |why| {
        Err(GuardError::ScratchRefused {
            path: path.to_owned(),
            why,
        })
    };
    let failed = |errno: Errno| failed("remove", path, errno);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str()))
    else {
        return refused("its path has no name");
    };
    if mark.is_empty() || !name.ends_with(mark) {
        return refused("its name does not carry the owner's id");
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = match rustix::fs::open(parent, flags, Mode::empty()) {
        // Below what is not a folder there never was one.
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(false),
        opened => opened.map_err(failed)?,
    };
    let status = match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(false),
        status => status.map_err(failed)?,
    };
    if !FileType::from_raw_mode(status.st_mode).is_dir() {
        return refused("it is not a folder");
    }
    if status.st_uid != rustix::process::geteuid().as_raw() {
        return refused("it belongs to another user");
    }
    let name = CString::new(name).expect("a file name has no NUL");
    let mount = mount_of(&parent).map_err(failed)?;
    let mut removal = Removal {
        mount,
        first_problem: None,
    };
    removal.remove_folder(&parent, &name, path);
    removal.first_problem.map_or(Ok(true), Err)
}

struct Removal {
    mount: Mount,
    first_problem: Option<GuardError>,
}

impl Removal {
    fn remove_folder(&mut self, parent: &OwnedFd, name: &CStr, path: &Path) {
        // Something that is just ending may still add a file, so an attempt may have to be
        // repeated.
        for attempt in 1.. {
            let folder = match self.open_folder(parent, name, path) {
                Ok(folder) => folder,
                Err(problem) => return self.note(problem),
            };
            if let Err(errno) = self.empty(&folder, path) {
                return self.note(failed("remove", path, errno));
            }
            match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => return,
                // If there is a problem already, then it says why the folder is not empty.
                Err(Errno::NOTEMPTY) if self.first_problem.is_some() => return,
                Err(Errno::NOTEMPTY) if attempt < 3 => {}
                Err(errno) => return self.note(failed("remove", path, errno)),
            }
        }
    }

    /// Opens a folder for reading, unless it is a link or a mount point.
    fn open_folder(
        &self,
        parent: &OwnedFd,
        name: &CStr,
        path: &Path,
    ) -> Result<OwnedFd, GuardError> {
        let failed = |errno: Errno| failed("remove", path, errno);
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let place = rustix::fs::openat(parent, name, flags | OFlags::PATH, Mode::empty())
            .map_err(failed)?;
        if mount_of(&place).map_err(failed)? != self.mount {
            let why = "a file system is mounted there; unmount it first";
            return Err(GuardError::ScratchRefused {
                path: path.to_owned(),
                why,
            });
        }
        // A load may have taken away the permissions that are needed to remove what is inside.
        let mode = rustix::fs::fstat(&place).map_err(failed)?.st_mode & 0o7777;
        if mode & 0o700 != 0o700 {
            // A descriptor of this kind has no fchmod; its link in /proc leads to the same folder.
            let link = format!("/proc/self/fd/{}", place.as_raw_fd());
            rustix::fs::chmod(link, Mode::from_raw_mode(mode | 0o700)).map_err(failed)?;
        }
        rustix::fs::openat(&place, c".", flags | OFlags::RDONLY, Mode::empty()).map_err(failed)
    }

    fn empty(&mut self, folder: &OwnedFd, path: &Path) -> Result<(), Errno> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            if entry.file_name() != c"." && entry.file_name() != c".." {
                entries.push((entry.file_name().to_owned(), entry.file_type()));
            }
        }
        for (name, kind) in entries {
            let inside = path.join(name.to_string_lossy().as_ref());
            let kind = match kind {
                FileType::Unknown => rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(kind, |status| FileType::from_raw_mode(status.st_mode)),
                known => known,
            };
            if kind.is_dir() {
                self.remove_folder(folder, &name, &inside);
                continue;
            }
            match rustix::fs::unlinkat(folder, &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => self.note(failed("remove", &inside, errno)),
            }
        }
        Ok(())
    }

    fn note(&mut self, problem: GuardError) {
        self.first_problem.get_or_insert(problem);
    }
}

/// Tells mounts apart: by their number, or before Linux 5.8 by the device, which does not tell a
/// bind mount of the same file system.
#[derive(Debug, PartialEq, Eq)]
enum Mount {
    Number(u64),
    Device(u64),
}

fn mount_of(folder: impl AsFd) -> Result<Mount, Errno> {
    let extended = rustix::fs::statx(&folder, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok();
    match extended.filter(|found| found.stx_mask & StatxFlags::MNT_ID.bits() != 0) {
        Some(found) => Ok(Mount::Number(found.stx_mnt_id)),
        None => rustix::fs::fstat(&folder).map(|status| Mount::Device(status.st_dev)),
    }
}

pub(crate) fn failed(action: &str, path: &Path, source: impl Into<io::Error>) -> GuardError {
    GuardError::io(
        format!("{action} the scratch folder {}", path.display()),
        source,
        "",
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use std::path::PathBuf;

    use super::*;

    const MARK: &str = "-mark-1";

    fn folder(root: &Path) -> PathBuf {
        let path = root.join("tare-x-mark-1");
        fs::create_dir(&path).unwrap();
        path
    }

    #[test]
    fn a_tree_is_removed_with_links_and_locked_folders() {
        let root = tempfile::tempdir().unwrap();
        let path = folder(root.path());
        let outside = root.path().join("outside");
        fs::create_dir_all(outside.join("deep")).unwrap();
        fs::write(outside.join("precious"), "kept").unwrap();
        fs::create_dir_all(path.join("a/b/c")).unwrap();
        fs::write(path.join("a/b/file"), "x").unwrap();
        fs::write(path.join("a/\u{1f980} name\n"), "x").unwrap();
        symlink(&outside, path.join("a/link")).unwrap();
        symlink(outside.join("precious"), path.join("link")).unwrap();
        symlink("nowhere", path.join("dangling")).unwrap();
        fs::hard_link(outside.join("precious"), path.join("hard")).unwrap();
        fs::set_permissions(path.join("a/b"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(path.join("a"), fs::Permissions::from_mode(0o500)).unwrap();
        assert!(remove_marked(&path, MARK).unwrap());
        assert!(!path.exists());
        assert_eq!(
            fs::read_to_string(outside.join("precious")).unwrap(),
            "kept"
        );
        assert!(outside.join("deep").is_dir());
        assert!(
            !remove_marked(&path, MARK).unwrap(),
            "a second time there is nothing"
        );
    }

    #[test]
    fn what_is_not_named_so_or_not_a_folder_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let other = root.path().join("tare-x-mark-12");
        fs::create_dir(&other).unwrap();
        let target = root.path().join("target");
        fs::create_dir(&target).unwrap();
        let link = root.path().join("link-mark-1");
        symlink(&target, &link).unwrap();
        let file = root.path().join("file-mark-1");
        fs::write(&file, "x").unwrap();
        for path in [&other, &link, &file] {
            let outcome = remove_marked(path, MARK);
            assert!(
                matches!(outcome, Err(GuardError::ScratchRefused { .. })),
                "{path:?}"
            );
            assert!(path.exists());
        }
        assert!(matches!(
            remove_marked(&other, ""),
            Err(GuardError::ScratchRefused { .. })
        ));
        assert!(matches!(
            remove_marked(Path::new("/"), MARK),
            Err(GuardError::ScratchRefused { .. })
        ));
    }

    #[test]
    fn a_mounted_file_system_is_not_entered() {
        use std::process::Command;
        let root = tempfile::tempdir().unwrap();
        let path = folder(root.path());
        let outside = root.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("precious"), "kept").unwrap();
        let inside = path.join("mounted");
        fs::create_dir(&inside).unwrap();
        let mounted = Command::new("mount")
            .arg("--bind")
            .args([&outside, &inside])
            .output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            tare_testkit::skip("mount", "needs root and the right to mount");
            return;
        }
        let outcome = remove_marked(&path, MARK);
        assert!(
            Command::new("umount")
                .arg(&inside)
                .status()
                .unwrap()
                .success()
        );
        assert!(
            matches!(outcome, Err(GuardError::ScratchRefused { .. })),
            "{outcome:?}"
        );
        assert_eq!(
            fs::read_to_string(outside.join("precious")).unwrap(),
            "kept"
        );
        assert!(remove_marked(&path, MARK).unwrap());
    }
}
