//! Files and folders, with errors that say what was tried.

use std::fs::{self, DirEntry, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use serde::Serialize;

use crate::error::{Doing, KernelError};

/// Makes a folder with its parents.
pub(crate) fn make_dir(folder: &Path) -> Result<(), KernelError> {
    fs::create_dir_all(folder).doing("make the folder", folder)
}

/// Makes an empty folder, in a scratch folder.
pub(crate) fn make_empty(folder: &Path) -> Result<(), KernelError> {
    remove_dir(folder)?;
    make_dir(folder)
}

/// Removes a folder with all that is in it, if it is there.
pub(crate) fn remove_dir(folder: &Path) -> Result<(), KernelError> {
    if_there(fs::remove_dir_all(folder)).doing("remove", folder)?;
    Ok(())
}

/// Moves a file to where its folder may have to be made.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), KernelError> {
    make_dir(to.parent().unwrap_or(to))?;
    fs::rename(from, to).doing("move", from)
}

/// Copies a file to where its folder may have to be made.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), KernelError> {
    make_dir(to.parent().unwrap_or(to))?;
    fs::copy(from, to).map(drop).doing("copy", from)
}

/// Writes a file.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), KernelError> {
    fs::write(path, bytes).doing("write", path)
}

/// Writes a file in JSON.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), KernelError> {
    let text = serde_json::to_string_pretty(value).doing("write", path)?;
    write(path, text + "\n")
}

/// Lists what is in a folder, as far as it can be seen.
pub(crate) fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// Turns the error that there is no such file into none.
pub(crate) fn if_there<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Waits until a folder is on the disk: after a power cut, a published kernel must be whole.
pub(crate) fn sync(folder: &Path) -> Result<(), KernelError> {
    let opened = File::open(folder).doing("write to the disk", folder)?;
    rustix::fs::syncfs(&opened).doing("write to the disk", folder)
}

/// Returns whether a text has no more than `most` letters, digits and signs that are safe in a
/// path.
pub(crate) fn is_plain(text: &str, most: usize) -> bool {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "._+~-".contains(c);
    text.len() <= most && text.chars().all(is_safe)
}

/// Returns whether this is the file of a package.
pub(crate) fn is_deb(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "deb")
}
