//! Scratch folders: room for files that a load or a target needs.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::GuardError;
use crate::owned::guarded::{Guarded, Inner};
use crate::owned::{Context, check_prefix, mark};
use crate::record::{Record, ScratchRecord};
use crate::remove_tree::{failed, remove_marked};
use crate::report::Undone;

/// A scratch folder. When this is dropped, the folder is removed with all that is in it.
///
/// Links in it are removed, not followed; what is mounted in it is left alone and reported.
#[must_use = "the folder is removed when this is dropped"]
#[derive(Debug)]
pub struct ScratchDir {
    path: PathBuf,
    guarded: Guarded,
}

impl ScratchDir {
    pub(crate) fn create(inner: &Arc<Inner>, prefix: &str) -> Result<ScratchDir, GuardError> {
        check_prefix(prefix, "._-")?;
        let failed = |path, source| failed("make", path, source);
        let root = &inner.options.scratch_root;
        // The journal needs a path that still leads there when links have changed.
        let resolved = fs::canonicalize(root).map_err(|source| failed(root, source))?;
        if !resolved.is_dir() {
            let action = format!("make a scratch folder in {}", root.display());
            let why = io::Error::from(io::ErrorKind::NotADirectory);
            return Err(GuardError::io(action, why, "; set TMPDIR to a folder"));
        }
        let text = resolved.to_str().ok_or_else(|| {
            let why = io::Error::new(io::ErrorKind::InvalidInput, "its path is not UTF-8");
            failed(root, why)
        })?;
        let mut path = String::new();
        let guarded = inner.announce(|number| {
            path = format!("{text}/tare-{prefix}{}", mark(&inner.owner, number));
            Record::Scratch(ScratchRecord { path: path.clone() })
        })?;
        let path = PathBuf::from(path);
        // Fails if something has this name already: what we did not make is not ours.
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|source| failed(&path, source))?;
        Ok(ScratchDir { path, guarded })
    }

    /// Gives the folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder now.
    ///
    /// # Errors
    ///
    /// [`GuardError::Io`] or [`GuardError::ScratchRefused`]; the guard tries again when it is
    /// closed.
    pub fn remove(self) -> Result<(), GuardError> {
        self.guarded.undo()
    }

    /// Keeps the folder until the guard is closed, and gives its path.
    pub fn leave_to_guard(mut self) -> PathBuf {
        self.guarded.leave_to_guard();
        self.path.clone()
    }
}

impl AsRef<Path> for ScratchDir {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl ScratchRecord {
    pub(crate) fn undo(
        &self,
        number: u64,
        context: Context<'_>,
        done: &mut Vec<Undone>,
    ) -> Result<(), GuardError> {
        let path = PathBuf::from(&self.path);
        if remove_marked(&path, &mark(context.owner, number))? {
            done.push(Undone::ScratchRemoved { path });
        }
        Ok(())
    }
}
