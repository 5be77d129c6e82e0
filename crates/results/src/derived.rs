//! Files that are made from a run, in its folder or elsewhere, and never in the place of what was
//! measured.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::disk::Folder;
use crate::error::ResultsError;
use crate::layout;
use crate::lock;
use crate::sums;

/// The names that are not for derived files.
const RAW: [&str; 5] = [
    layout::PLAN,
    layout::MACHINE,
    layout::CELLS,
    sums::NAME,
    lock::NAME,
];

/// A folder for derived files.
#[derive(Debug)]
pub struct Derived<'a> {
    folder: Opened<'a>,
    /// How to go on after a file could not be written.
    remedy: String,
}

#[derive(Debug)]
enum Opened<'a> {
    OfRun(&'a Folder),
    Other(Folder),
}

impl<'a> Derived<'a> {
    pub(crate) fn of_run(run: &'a Folder, remedy: String) -> Self {
        let folder = Opened::OfRun(run);
        Self { folder, remedy }
    }

    pub(crate) fn create(path: &Path) -> Result<Self, ResultsError> {
        const REMEDY: &str = "or choose another folder with --output";
        let failed = |action| move |error| ResultsError::io(action, path, error, REMEDY);
        let (folder, _) = Folder::create(path).map_err(failed("created"))?;
        if !folder.names().map_err(failed("read"))?.is_empty() {
            return Err(ResultsError::NotReplaceable {
                path: path.to_owned(),
                what: "is not empty".to_owned(),
                remedy: "choose a new or an empty folder with --output".to_owned(),
            });
        }
        Ok(Self {
            folder: Opened::Other(folder),
            remedy: REMEDY.to_owned(),
        })
    }

    /// Writes a file, replacing an older one as a whole; returns its path.
    ///
    /// # Errors
    ///
    /// [`ResultsError::DerivedName`] unless it is a plain file name that no raw file has, and the
    /// errors of writing.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, ResultsError> {
        let is_plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']);
        if !is_plain || RAW.contains(&name) {
            return Err(ResultsError::DerivedName {
                name: name.to_owned(),
            });
        }
        let folder = match &self.folder {
            Opened::OfRun(folder) => folder,
            Opened::Other(folder) => folder,
        };
        let path = folder.path_of(name);
        match folder.replace(name, content) {
            Ok(()) => Ok(path),
            Err(error) => Err(ResultsError::io("written", &path, error, &self.remedy)),
        }
    }
}

/// Writes a file that a user has named. One that is there is replaced as a whole, and only if that
/// was asked for; what a run has measured never is.
///
/// # Errors
///
/// [`ResultsError::NotReplaceable`] with what is there, and the errors of writing.
pub fn write_file(path: &Path, content: &[u8], replaces: bool) -> Result<(), ResultsError> {
    let failed = |error| ResultsError::io("written", path, error, "or name another file");
    let taken = |what: &str, remedy: &str| ResultsError::NotReplaceable {
        path: path.to_owned(),
        what: what.to_owned(),
        remedy: remedy.to_owned(),
    };
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or(io::ErrorKind::InvalidInput.into());
    let name = name.map_err(failed)?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let folder = Folder::open(parent).map_err(failed)?;
    if is_raw(&folder.real_path().map_err(failed)?, name) {
        return Err(raw(path));
    }
    if !replaces {
        return match folder.write_new(name, content) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let remedy = "name another file, or replace it with --force";
                Err(taken("is there already", remedy))
            }
            written => written.map_err(failed),
        };
    }
    match folder.open_file(name, OFlags::PATH) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(taken(
            "is not a regular file, so it is not replaced",
            "name another file",
        )),
        _ => folder.replace(name, content).map_err(failed),
    }
}

/// Makes a folder that a user has named, with its parents, if it is not there.
///
/// # Errors
///
/// [`ResultsError::NotReplaceable`] among the cells of a run, and the errors of creating.
pub fn create_folder(path: &Path) -> Result<(), ResultsError> {
    let failed = |error| ResultsError::io("created", path, error, "or name another folder");
    let absolute = std::path::absolute(path).map_err(failed)?;
    let mut there = absolute.ancestors();
    if let Some(there) = there.find_map(|path| fs::canonicalize(path).ok())
        && is_raw(&there, "")
    {
        return Err(raw(path));
    }
    Folder::create(path).map(drop).map_err(failed)
}

fn raw(path: &Path) -> ResultsError {
    ResultsError::NotReplaceable {
        path: path.to_owned(),
        what: "is where a run keeps what was measured".to_owned(),
        remedy: "choose another one".to_owned(),
    }
}

/// Says whether a name in a folder is that of a raw file of a run, or of something among its cells.
fn is_raw(folder: &Path, name: &str) -> bool {
    let is_run = |folder: &Path| folder.join(layout::PLAN).symlink_metadata().is_ok();
    let in_cells = folder.ancestors().any(|of| {
        of.file_name() == Some(layout::CELLS.as_ref()) && of.parent().is_some_and(is_run)
    });
    in_cells || (RAW.contains(&name) && is_run(folder))
}
