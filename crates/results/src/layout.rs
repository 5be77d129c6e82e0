//! Where everything is within a run folder.
//!
//! The layout with every file and column is described for readers in `docs/run-folder.md`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) const PLAN: &str = "plan.json";
pub(crate) const MACHINE: &str = "machine.json";
pub(crate) const CELLS: &str = "cells";
pub(crate) const CELL: &str = "cell.json";

/// Returns the folder of a cell that ran to its end.
pub(crate) fn cell(run: &Path, id: u32) -> PathBuf {
    run.join(CELLS).join(cell_name(id))
}

/// Returns the name under which a file is written before it is renamed.
pub(crate) fn scratch(run: &Path, name: &str) -> PathBuf {
    run.join(format!(".{name}.partial"))
}

/// Returns the folder in which this process prepares a cell.
pub(crate) fn partial(run: &Path, id: u32) -> PathBuf {
    let name = format!("{}{}", partial_prefix(id), std::process::id());
    run.join(CELLS).join(name)
}

/// Lists the folders in which any process prepared this cell and did not finish.
pub(crate) fn partials(run: &Path, id: u32) -> io::Result<Vec<PathBuf>> {
    let prefix = partial_prefix(id);
    let mut found = names(run)?;
    found.retain(|name| name.starts_with(&prefix));
    let paths = found.iter().map(|name| run.join(CELLS).join(name));
    Ok(paths.collect())
}

/// Why an attempt at a cell was set aside.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aside {
    Failed,
    Damaged,
    CutShort,
}

impl Aside {
    fn prefix(self, id: u32) -> String {
        let name = cell_name(id);
        match self {
            Self::Failed => format!("{name}.failed-"),
            Self::Damaged => format!("{name}.damaged-"),
            Self::CutShort => format!("{name}.cut-short-"),
        }
    }

    /// Returns the number and the folder of the newest attempt that was set aside for this reason.
    pub(crate) fn newest(self, run: &Path, id: u32) -> io::Result<Option<(u32, PathBuf)>> {
        let prefix = self.prefix(id);
        let names = names(run)?;
        let numbered = names.iter().filter_map(|name| {
            let number = name.strip_prefix(&prefix)?.parse().ok()?;
            Some((number, run.join(CELLS).join(name)))
        });
        Ok(numbered.max())
    }

    /// Returns the folder for the next attempt that is set aside.
    pub(crate) fn next(self, run: &Path, id: u32) -> io::Result<PathBuf> {
        let highest = self.newest(run, id)?.map_or(0, |(number, _)| number);
        let name = format!("{}{}", self.prefix(id), u64::from(highest) + 1);
        Ok(run.join(CELLS).join(name))
    }
}

/// Lists the names of what is in the folder of cells.
fn names(run: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(run.join(CELLS))?;
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| Ok(name(entry?))).collect()
}

fn cell_name(id: u32) -> String {
    format!("{id:04}")
}

fn partial_prefix(id: u32) -> String {
    format!(".{}.partial-", cell_name(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_numbered_and_cells_are_not_mixed_up() {
        let run = tempfile::tempdir().unwrap();
        let run = run.path();
        for name in [
            "0001.failed-2",
            "0001.failed-10",
            "0001.failed-x",
            "0001.damaged-3",
            "00011.failed-40",
            "0011.failed-50",
            ".0001.partial-7",
            ".0011.partial-7",
        ] {
            fs::create_dir_all(run.join(CELLS).join(name)).unwrap();
        }
        let (number, path) = Aside::Failed.newest(run, 1).unwrap().unwrap();
        assert_eq!((number, path), (10, run.join("cells/0001.failed-10")));
        assert_eq!(
            Aside::Failed.next(run, 1).unwrap(),
            run.join("cells/0001.failed-11")
        );
        assert_eq!(
            Aside::Damaged.next(run, 1).unwrap(),
            run.join("cells/0001.damaged-4")
        );
        assert_eq!(
            Aside::Failed.next(run, 2).unwrap(),
            run.join("cells/0002.failed-1")
        );
        assert_eq!(
            partials(run, 1).unwrap(),
            [run.join("cells/.0001.partial-7")]
        );
        assert_eq!(cell(run, 12_345), run.join("cells/12345"));
    }
}
