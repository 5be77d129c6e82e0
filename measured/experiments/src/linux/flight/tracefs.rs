//! tracefs, in which the kernel describes its events.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// The usual mount points.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The initial size of the buffer for a file: larger than any setting.
const ROOM: usize = 4_096;

/// The root folder of tracefs.
pub struct Tracefs {
    root: OwnedFd,
}

impl Tracefs {
    /// Opens tracefs, whether it is mounted or not. A mount made for it is detached, invisible to
    /// others, and ends with this value.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error; usually a missing permission, or no tracefs.
    pub fn open() -> io::Result<Self> {
        let root = detached().or_else(|reason| mounted().ok_or(reason))?;
        Ok(Self { root })
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error.
    pub fn read(&self, path: &str) -> io::Result<String> {
        let file = openat(
            &self.root,
            path,
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        // Some files (`osnoise/cpus`) reject reads with a buffer shorter than their text, even at
        // its end.
        let mut text = String::with_capacity(ROOM);
        File::from(file).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Writes a setting with a terminating NUL: kernels read lists of CPUs (`osnoise/cpus`) beyond
    /// the end of the data, up to a NUL; numbers and names are accepted either way.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error.
    pub fn write(&self, path: &str, value: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC;
        let file = openat(&self.root, path, flags, Mode::empty())?;
        File::from(file).write_all(format!("{value}\0").as_bytes())
    }

    /// Lists a folder.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error.
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

/// Opens an existing mount, which this user may be permitted to read.
fn mounted() -> Option<OwnedFd> {
    PLACES.into_iter().find_map(|place| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(place, flags, Mode::empty()).ok()?;
        // An unmounted mount point is an empty folder.
        let events = openat(&root, "events", flags, Mode::empty());
        events.is_ok().then_some(root)
    })
}
