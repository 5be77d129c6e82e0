//! Files that a user names, opened only if that can't wait without end.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file for reading. Opening a FIFO waits for a writer, and a device may do
/// anything or have no end, so those are refused before.
///
/// # Errors
///
/// That of the system, or that it is not a regular file.
pub fn open_ordinary(path: &Path) -> io::Result<File> {
    match fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
///
/// As [`open_ordinary`], or that it is larger.
pub fn read_ordinary(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open_ordinary(path)?
        .take(most + 1)
        .read_to_end(&mut bytes)?;
    match read as u64 > most {
        true => Err(io::Error::other(format!("it has more than {most} bytes"))),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_large_files_are_refused() {
        let read = |path: &Path| read_ordinary(path, 3).map_err(|error| error.to_string());
        let refused = read(Path::new("/dev/zero")).unwrap_err();
        assert!(refused.contains("not a regular file"), "{refused}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "abc").unwrap();
        assert_eq!(read(&file), Ok(b"abc".to_vec()));
        fs::write(&file, "abcd").unwrap();
        assert_eq!(read(&file), Err("it has more than 3 bytes".to_owned()));
    }
}
