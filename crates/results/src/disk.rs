//! Writing so that a power cut leaves either the old state or the new one.
//!
//! A rename is atomic, but the kernel may write it to the disk before the content of the file.
//! So content is flushed first, then the name, then the folder that holds the name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What could not be written, and why.
pub(crate) type Unwritten = (PathBuf, io::Error);

/// Adds to an error what could not be written.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Unwritten {
    move |error| (path.to_owned(), error)
}

/// Writes a file that must not exist yet, and flushes it to the disk.
pub(crate) fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Replaces a file as a whole, or creates it.
///
/// The content goes to `scratch` first, a name in the same folder. Writers of the same file take
/// turns by a lock on the scratch file; one that was killed leaves it, the next one uses it up.
pub(crate) fn replace(path: &Path, scratch: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = open_in_turn(scratch)?;
    let written = file
        .set_len(0)
        .and_then(|()| file.write_all(content))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(scratch, path));
    if written.is_err() {
        // The old file is untouched; the space is given back as far as it can be.
        let _ = fs::remove_file(scratch);
        return written;
    }
    sync_parent(path)
}

/// Flushes the names in a folder to the disk.
///
/// Some network file systems cannot do that, since they write names through; and a folder may be
/// writable, but not readable. The names then reach the disk when the kernel sees fit.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    match File::open(path).and_then(|folder| folder.sync_all()) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        result => result,
    }
}

/// Flushes the name of a file or folder itself to the disk.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync_folder(Path::new(".")),
        Some(parent) => sync_folder(parent),
        None => Ok(()),
    }
}

/// Opens the scratch file, alone.
fn open_in_turn(scratch: &Path) -> io::Result<File> {
    loop {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(scratch)?;
        match file.lock() {
            Ok(()) => {}
            // Without locks, as on some parallel file systems, the last writer wins.
            Err(error) if is_unsupported(&error) => return Ok(file),
            Err(error) => return Err(error),
        }
        // Whoever had it before has renamed or removed it: then this is another file by now.
        match fs::metadata(scratch) {
            Ok(now) if now.ino() == file.metadata()?.ino() => return Ok(file),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
}

/// Says whether the file system has no locks at all, rather than that somebody holds this one.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    const ENOLCK: i32 = 37;
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(ENOLCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_by_many_writers_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (path, scratch) = (folder.path().join("x"), folder.path().join(".x.partial"));
        // What a killed writer left behind is longer than what comes.
        fs::write(&scratch, [b'?'; 100_000]).unwrap();
        std::thread::scope(|scope| {
            for letter in b'a'..b'e' {
                let (path, scratch) = (&path, &scratch);
                scope.spawn(move || {
                    for _ in 0..20 {
                        replace(path, scratch, &[letter; 10_000]).unwrap();
                        let seen = fs::read(path).unwrap();
                        assert_eq!(seen.len(), 10_000);
                        assert!(seen.iter().all(|byte| *byte == seen[0]));
                    }
                });
            }
        });
        assert!(!scratch.exists());
    }

    #[test]
    fn nothing_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        write_new(&path, b"first").unwrap();
        assert!(write_new(&path, b"second").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"first");
    }
}
