//! tracefs, where the kernel describes its events.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Where it is mounted, if it is.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The room in bytes that a file is read into at first: more than any setting takes.
const ROOM: usize = 4_096;

/// The root folder of tracefs.
pub struct Tracefs {
    root: OwnedFd,
}

impl Tracefs {
    /// Opens tracefs, whether it is mounted or not. A mount that is made for it is attached to no folder, is seen
    /// by nobody else, and ends with this value.
    ///
    /// # Errors
    ///
    /// Returns the kernel's reason; as a rule we may not, or it has no tracefs.
    pub fn open() -> io::Result<Self> {
        let root = detached().or_else(|reason| mounted().ok_or(reason))?;
        Ok(Self { root })
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Returns the kernel's reason.
    pub fn read(&self, path: &str) -> io::Result<String> {
        let file = openat(
            &self.root,
            path,
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        // Some files (`osnoise/cpus`) refuse to be read into less room than their text takes, even at its end.
        let mut text = String::with_capacity(ROOM);
        File::from(file).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Writes a setting, and the zero that ends a string in C: kernels read lists of CPUs (`osnoise/cpus`) beyond what
    /// was written, up to a zero or whatever else their memory holds; numbers and names they take either way.
    ///
    /// # Errors
    ///
    /// Returns the kernel's reason.
    pub fn write(&self, path: &str, value: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC;
        let file = openat(&self.root, path, flags, Mode::empty())?;
        File::from(file).write_all(format!("{value}\0").as_bytes())
    }

    /// Lists a folder.
    ///
    /// # Errors
    ///
    /// Returns the kernel's reason.
    pub fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(&self.root, path, flags, Mode::empty())?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

fn detached() -> Result<OwnedFd, Errno> {
    let system = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&system)?;
    fsmount(
        &system,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC,
    )
}

/// Opens it where others have mounted it: they may have let us look.
fn mounted() -> Option<OwnedFd> {
    PLACES.into_iter().find_map(|place| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(place, flags, Mode::empty()).ok()?;
        // Where nothing is mounted there is an empty folder.
        let events = openat(&root, "events", flags, Mode::empty());
        events.is_ok().then_some(root)
    })
}
