//! Programs that a load needs, and their packages.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program that a load executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tool {
    /// Its name, to be found in `PATH`; or its path, if it is executed by path.
    pub program: &'static str,
    /// The Debian package that contains it.
    pub package: &'static str,
}

impl Tool {
    pub(crate) const fn new(program: &'static str, package: &'static str) -> Self {
        Self { program, package }
    }

    /// Finds the program.
    pub fn find(&self) -> Option<PathBuf> {
        find(self.program, &env::var_os("PATH")?)
    }
}

/// Returns whether a program is executable: by its name in `PATH`, or by its path.
pub fn is_found(program: &str) -> bool {
    find(program, &env::var_os("PATH").unwrap_or_default()).is_some()
}

/// Finds a program as `execvp` does: one with a slash is a path, another is looked for in the
/// folders of `path`.
pub(crate) fn find(program: &str, path: &OsStr) -> Option<PathBuf> {
    if program.contains('/') {
        let path = PathBuf::from(program);
        return is_executable(&path).then_some(path);
    }
    env::split_paths(path)
        .map(|folder| folder.join(program))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_order_and_folders_are_none() {
        let path = OsStr::new("/nowhere:/usr/bin:/bin");
        assert_eq!(find("dd", path), Some("/usr/bin/dd".into()));
        assert_eq!(find("/bin/sh", path), Some("/bin/sh".into()));
        for none in ["no-such-program", "/usr", "/etc/passwd", ""] {
            assert_eq!(find(none, path), None, "{none}");
        }
    }
}
