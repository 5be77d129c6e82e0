//! One open folder, through which everything in it is reached.
//!
//! Whoever may write into a folder can put a link where a file was a moment ago. So a path is
//! resolved once, when its folder is opened; from then on each name is looked up in that folder,
//! and never through a link. A file is created exclusively, and must be a regular file, no longer
//! than files of its kind ever are, to be read.
//!
//! Writing leaves either the old state or the new one, also after a power cut. A rename is atomic,
//! but the kernel may write it to the disk before the content of the file. So content is flushed
//! first, then the name, then the folder that holds it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

/// What could not be written, and why.
pub(crate) type Unwritten = (PathBuf, io::Error);

/// Adds to an error what could not be written.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Unwritten {
    move |error| (path.to_owned(), error)
}

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
    owner: Uid,
    group: Gid,
    /// Whether nobody else may put anything into it.
    is_private: bool,
}

impl Folder {
    /// Opens the folder of a path as it was typed: links on the way to it are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let fd = rustix::fs::open(path, OPEN_FOLDER | OFlags::RDONLY, Mode::empty())?;
        Self::of(fd, path.to_owned())
    }

    /// Opens the folder of a path, and makes it and its parents if they are missing; says whether
    /// it made it.
    pub(crate) fn create(path: &Path) -> io::Result<(Self, bool)> {
        match Self::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return Ok((opened?, false)),
        }
        let name = path.file_name().ok_or(io::ErrorKind::NotFound)?;
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // Only passed through, so it need not be readable.
        let holds = match rustix::fs::open(parent, OPEN_FOLDER | OFlags::PATH, Mode::empty()) {
            Err(Errno::NOENT) => Self::create(parent)?.0,
            opened => Self::of(opened?, parent.to_owned())?,
        };
        match rustix::fs::mkdirat(&holds.fd, name, Mode::from_raw_mode(0o777)) {
            // Another process has just made it.
            Err(Errno::EXIST) => Ok((Self::open(path)?, false)),
            made => {
                made?;
                let fd = open_folder(&holds.fd, name)?;
                holds.hand_over(&fd)?;
                Ok((Self::of(fd, path.to_owned())?, true))
            }
        }
    }

    /// Opens a folder in this one.
    pub(crate) fn folder(&self, name: &str) -> io::Result<Self> {
        let fd = open_folder(&self.fd, name).map_err(|errno| self.refusal(name, errno))?;
        Self::of(fd, self.path_of(name))
    }

    /// Makes a folder in this one.
    pub(crate) fn make_folder(&self, name: &str) -> io::Result<Self> {
        rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o777))?;
        let fd = open_folder(&self.fd, name)?;
        self.hand_over(&fd)?;
        Self::of(fd, self.path_of(name))
    }

    /// Returns the path of the folder, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns where the open folder is now, without links on the way.
    pub(crate) fn real_path(&self) -> io::Result<PathBuf> {
        std::fs::read_link(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
    }

    /// Returns the path of something in it, for messages.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the user to whom the folder belongs, if that is neither who runs this nor the user
    /// behind `sudo`.
    pub(crate) fn foreign_owner(&self) -> Option<u32> {
        let is_own = self.owner == rustix::process::geteuid() || self.sudo_user().is_some();
        (!is_own).then_some(self.owner.as_raw())
    }

    /// Says whether there is something of a name.
    pub(crate) fn has(&self, name: &str) -> io::Result<bool> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(false),
            found => Ok(found.map(|_| true)?),
        }
    }

    /// Lists the names of what is in it, in order.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Reads a file of at most `most` bytes.
    pub(crate) fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let file = self.open_to_read(name, most)?;
        let mut content = Vec::new();
        file.take(most + 1).read_to_end(&mut content)?;
        // It may grow while it is read.
        check_size(content.len() as u64, most)?;
        Ok(content)
    }

    /// Opens a regular file of at most `most` bytes for reading.
    pub(crate) fn open_to_read(&self, name: &str, most: u64) -> io::Result<File> {
        // A FIFO without a writer is opened at once.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.open_file(name, flags)?;
        check_size(file.metadata()?.len(), most)?;
        Ok(file)
    }

    /// Opens a regular file that is there.
    pub(crate) fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.fd, name, flags, Mode::empty());
        let file = File::from(opened.map_err(|errno| self.refusal(name, errno))?);
        match FileType::from_raw_mode(file.metadata()?.mode()) {
            FileType::RegularFile => Ok(file),
            kind => Err(unusual(kind)),
        }
    }

    /// Creates a file that must not exist yet.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o666);
        let file = rustix::fs::openat(&self.fd, name, flags | OFlags::CLOEXEC, mode)?;
        self.hand_over(&file)?;
        Ok(file.into())
    }

    /// Writes a file that must not exist yet, and flushes it to the disk. It is whole, or not
    /// there.
    pub(crate) fn write_new(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut file = self.create_file(name)?;
        let written = file.write_all(content).and_then(|()| file.sync_all());
        written.inspect_err(|_| {
            let _ = self.unlink(name);
        })
    }

    /// Removes a file, and nothing else that may stand there by now.
    fn unlink(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Replaces a file as a whole, or creates it.
    ///
    /// The content goes to a scratch file first. Writers of the same file take turns by a lock on
    /// that; one that was killed leaves it, the next one removes it. Where others may write, they
    /// could hold that lock or put something there: so it has another name each time, and no
    /// existing file is touched.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut scratch = scratch(name);
        loop {
            let mut file = match self.is_private {
                true => self.create_in_turn(&scratch)?,
                false => {
                    scratch = format!("{}-{:016x}", self::scratch(name), fastrand::u64(..));
                    self.create_file(&scratch)?
                }
            };
            let written = file
                .write_all(content)
                .and_then(|()| file.sync_all())
                .and_then(|()| self.rename(&scratch, name));
            match written {
                Ok(()) => return self.sync(),
                // Without locks, another writer may have removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_private => {}
                Err(error) => {
                    // The old file is untouched; the space is given back as far as it can be.
                    let _ = self.unlink(&scratch);
                    return Err(error);
                }
            }
        }
    }

    /// Renames something within the folder.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, from, &self.fd, to)?)
    }

    /// Removes a file, a link, or a folder with all that is in it.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Err(Errno::ISDIR) => {}
            removed => return Ok(removed?),
        }
        let inside = self.folder(name)?;
        for name in inside.names()? {
            inside.remove(&name)?;
        }
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?)
    }

    /// Flushes the names in it to the disk.
    ///
    /// Some network file systems cannot do that, since they write names through. The names then
    /// reach the disk when the kernel sees fit.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match rustix::fs::fsync(&self.fd) {
            Err(Errno::INVAL) => Ok(()),
            synced => Ok(synced?),
        }
    }

    fn of(fd: OwnedFd, path: PathBuf) -> io::Result<Self> {
        let status = rustix::fs::fstat(&fd)?;
        Ok(Self {
            owner: Uid::from_raw(status.st_uid),
            group: Gid::from_raw(status.st_gid),
            is_private: status.st_uid == rustix::process::geteuid().as_raw()
                && status.st_mode & 0o022 == 0,
            fd,
            path,
        })
    }

    /// Returns the user behind `sudo`, if the folder is theirs: what is written into it is to be
    /// theirs, too.
    fn sudo_user(&self) -> Option<Uid> {
        let number = std::env::var("SUDO_UID").ok()?.parse::<u32>().ok()?;
        let is_sudo_user = rustix::process::geteuid().is_root() && self.owner.as_raw() == number;
        is_sudo_user.then_some(self.owner)
    }

    fn hand_over(&self, new: &OwnedFd) -> io::Result<()> {
        match self.sudo_user() {
            Some(user) => Ok(rustix::fs::fchown(new, Some(user), Some(self.group))?),
            None => Ok(()),
        }
    }

    /// Says of a name that can't be opened if that is because of what it is.
    fn refusal(&self, name: &str, errno: Errno) -> io::Error {
        let status = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW);
        match status.map(|status| FileType::from_raw_mode(status.st_mode)) {
            Ok(FileType::RegularFile) if errno != Errno::NOTDIR => errno.into(),
            Ok(FileType::Directory) => errno.into(),
            Ok(kind) => unusual(kind),
            Err(_) => errno.into(),
        }
    }

    /// Creates a scratch file, alone.
    fn create_in_turn(&self, scratch: &str) -> io::Result<File> {
        loop {
            let (file, is_new) = match self.create_file(scratch) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    match self.open_file(scratch, OFlags::RDONLY | OFlags::NONBLOCK) {
                        Ok(file) => (file, false),
                        Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                        // Nothing of ours: a link, perhaps.
                        Err(_) => {
                            self.remove(scratch)?;
                            continue;
                        }
                    }
                }
                created => (created?, true),
            };
            match file.lock() {
                // Without locks, as on some parallel file systems, the last writer wins.
                Err(error) if !is_unsupported(&error) => return Err(error),
                _ => {}
            }
            // Whoever had it before has renamed or removed it: then this is another file by now.
            let found = rustix::fs::statat(&self.fd, scratch, AtFlags::SYMLINK_NOFOLLOW);
            match found {
                Ok(now) if now.st_ino == file.metadata()?.ino() => {}
                Err(errno) if errno != Errno::NOENT => return Err(errno.into()),
                _ => continue,
            }
            if is_new {
                return Ok(file);
            }
            // Its writer was killed.
            self.remove(scratch)?;
        }
    }
}

const OPEN_FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

fn open_folder(holds: &OwnedFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OPEN_FOLDER | OFlags::RDONLY | OFlags::NOFOLLOW;
    rustix::fs::openat(holds, name, flags, Mode::empty())
}

/// Returns the name under which a file is written before it is renamed.
pub(crate) fn scratch(name: &str) -> String {
    format!(".{name}.partial")
}

/// Flushes the name of a folder itself to the disk, if its parent can be read.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    match Folder::open(parent) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        opened => opened?.sync(),
    }
}

fn check_size(bytes: u64, most: u64) -> io::Result<()> {
    match bytes <= most {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("is too large: {bytes} bytes, at most {most}"),
        )),
    }
}

/// Says what something is that is not a regular file.
fn unusual(kind: FileType) -> io::Error {
    let kind = match kind {
        FileType::Symlink => "is a symbolic link; nothing in a run folder is reached through one",
        FileType::Fifo => "is a FIFO, not a regular file",
        FileType::Socket => "is a socket, not a regular file",
        FileType::CharacterDevice | FileType::BlockDevice => "is a device, not a regular file",
        FileType::Directory => "is a folder, not a file",
        _ => "is a file, not a folder",
    };
    io::Error::new(io::ErrorKind::InvalidData, kind)
}

/// Says whether the file system has no locks at all, rather than that somebody holds this one.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    const ENOLCK: i32 = 37;
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(ENOLCK)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        (place, folder)
    }

    #[test]
    fn a_file_is_replaced_whole_by_many_writers_at_once() {
        let (place, folder) = folder();
        // The rest that a killed writer left behind is longer than the new content.
        fs::write(place.path().join(".x.partial"), [b'?'; 100_000]).unwrap();
        std::thread::scope(|scope| {
            for letter in b'a'..b'e' {
                let folder = &folder;
                scope.spawn(move || {
                    for _ in 0..20 {
                        folder.replace("x", &[letter; 10_000]).unwrap();
                        let seen = folder.read("x", 10_000).unwrap();
                        assert_eq!(seen.len(), 10_000);
                        assert!(seen.iter().all(|byte| *byte == seen[0]));
                    }
                });
            }
        });
        assert_eq!(folder.names().unwrap(), ["x"]);
    }

    #[test]
    fn where_others_may_write_nobody_is_waited_for_and_nothing_else_removed() {
        use std::os::unix::fs::PermissionsExt;
        let (place, _) = folder();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let folder = Folder::open(place.path()).unwrap();
        // Locked by somebody who never lets go, and a folder with something in it.
        let held = File::create(place.path().join(".x.partial")).unwrap();
        held.lock().unwrap();
        fs::create_dir_all(place.path().join(".y.partial/kept")).unwrap();
        for name in ["x", "y"] {
            folder.replace(name, b"new").unwrap();
            assert_eq!(folder.read(name, 3).unwrap(), b"new");
        }
        assert!(place.path().join(".y.partial/kept").is_dir());
        let mut names = folder.names().unwrap();
        names.sort();
        assert_eq!(names, [".x.partial", ".y.partial", "x", "y"]);
    }

    #[test]
    fn nothing_is_written_over() {
        let (_place, folder) = folder();
        folder.write_new("x", b"first").unwrap();
        assert!(folder.write_new("x", b"second").is_err());
        assert_eq!(folder.read("x", 5).unwrap(), b"first");
    }

    #[test]
    fn links_lead_nowhere() {
        let (place, folder) = folder();
        let outside = tempfile::tempdir().unwrap();
        let precious = outside.path().join("precious");
        fs::write(&precious, "kept").unwrap();
        for name in ["x", ".x.partial", ".y.partial"] {
            symlink(&precious, place.path().join(name)).unwrap();
        }
        symlink(outside.path(), place.path().join("cells")).unwrap();
        let refused = folder.read("x", 100).unwrap_err().to_string();
        assert!(refused.contains("is a symbolic link"), "{refused}");
        let refused = folder.folder("cells").unwrap_err().to_string();
        assert!(refused.contains("is a symbolic link"), "{refused}");
        assert!(folder.create_file("x").is_err());
        folder.replace("x", b"new").unwrap();
        folder.replace("y", b"new").unwrap();
        assert_eq!(folder.read("x", 3).unwrap(), b"new");
        folder.remove("cells").unwrap();
        assert_eq!(fs::read(&precious).unwrap(), b"kept");
    }

    #[test]
    fn the_open_folder_is_told_by_its_own_path() {
        let place = tempfile::tempdir().unwrap();
        let (first, link) = (place.path().join("first"), place.path().join("link"));
        fs::create_dir(&first).unwrap();
        symlink(&first, &link).unwrap();
        let folder = Folder::open(&link).unwrap();
        fs::remove_file(&link).unwrap();
        symlink("/", &link).unwrap();
        assert_eq!(
            folder.real_path().unwrap(),
            fs::canonicalize(&first).unwrap()
        );
    }

    #[test]
    fn only_ordinary_files_of_a_fitting_size_are_read() {
        let (place, folder) = folder();
        let path = |name| place.path().join(name);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("fifo"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        let sparse = File::create(path("sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        for (name, why) in [
            ("fifo", "is a FIFO"),
            ("socket", "is a socket"),
            ("folder", "is a folder"),
            ("sparse", "is too large: 1099511627776 bytes, at most 1000"),
        ] {
            let refused = folder.read(name, 1_000).unwrap_err().to_string();
            assert!(refused.contains(why), "{name}: {refused}");
        }
    }

    #[test]
    fn folders_are_made_with_their_parents() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b/c");
        let (made, is_new) = Folder::create(&path).unwrap();
        made.write_new("x", b"1").unwrap();
        assert!(is_new && path.join("x").is_file());
        assert!(!Folder::create(&path).unwrap().1);
        assert!(Folder::create(&path.join("x")).is_err());
        assert!(Folder::create(&path.join("x/y")).is_err());
    }
}
