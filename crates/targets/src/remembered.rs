//! Small files in the state folder with what was found out here once.
//!
//! Nothing depends on them: what is missing, damaged or of an older version is found out again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a file; None if there is none that makes sense.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Writes a file, under another name first, so that nobody reads half of it.
pub(crate) fn write<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let text = serde_json::to_vec_pretty(value)?;
    let begun = path.with_extension(format!("json.{}", std::process::id()));
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&begun)
        .and_then(|mut file| file.write_all(&text))
        .and_then(|()| fs::rename(&begun, path));
    if written.is_err() {
        let _ = fs::remove_file(&begun);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_half_a_file_is_none() {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join("some.json");
        assert_eq!(read::<u32>(&path), None);
        for value in [1, 2] {
            write(&path, &value).unwrap();
            assert_eq!(read(&path), Some(value));
        }
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1);
        fs::write(&path, "{\"half").unwrap();
        assert_eq!(read::<u32>(&path), None);
    }
}
