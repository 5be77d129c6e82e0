//! Where everything is within a run folder.
//!
//! The layout with every file and column is described for readers in `docs/run-folder.md`.

use crate::sums;

pub(crate) const PLAN: &str = "plan.json";
pub(crate) const MACHINE: &str = "machine.json";
pub(crate) const CELLS: &str = "cells";
pub(crate) const CELL: &str = "cell.json";
/// The same of a long run, which has hundreds of cells.
pub(crate) const PACKED_CELL: &str = "cell.json.zst";

/// Returns how many bytes a file of this name may have: more than any that is written here has.
pub(crate) fn most_bytes(name: &str) -> u64 {
    match name {
        // As many cells as a plan may have. Read, each takes several times as much memory.
        PLAN => 192 << 20,
        CELL | PACKED_CELL => 32 << 20,
        MACHINE => 16 << 20,
        sums::NAME => 1 << 20,
        // All samples that the buffers of measured code may list.
        _ => 2 << 30,
    }
}

/// Maximum number of commas in `machine.json`: three bytes there may be a set of CPUs, which takes a
/// kilobyte.
const MOST_COMMAS: usize = 1 << 16;

/// Refuses to write what would not be read; says why.
pub(crate) fn check_size(name: &str, content: &[u8]) -> Result<(), String> {
    if name == MACHINE && content.iter().filter(|byte| **byte == b',').count() > MOST_COMMAS {
        return Err(format!("{name} has more than {MOST_COMMAS} members"));
    }
    match (content.len() as u64, most_bytes(name)) {
        (bytes, most) if bytes > most => Err(format!("{name} has {bytes} bytes, more than {most}")),
        _ => Ok(()),
    }
}

/// Returns the name of the folder of a cell that ran to its end.
pub(crate) fn cell(id: u32) -> String {
    format!("{id:04}")
}

/// Returns the name of the folder in which this process prepares a cell.
pub(crate) fn partial(id: u32) -> String {
    format!("{}{}", partial_prefix(id), std::process::id())
}

/// Says whether a name is that of a folder in which any process prepared this cell and did not
/// finish.
pub(crate) fn is_partial(id: u32, name: &str) -> bool {
    name.starts_with(&partial_prefix(id))
}

/// Why an attempt at a cell was set aside.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aside {
    Failed,
    Damaged,
    CutShort,
    LeftOut,
}

impl Aside {
    fn prefix(self, id: u32) -> String {
        let name = cell(id);
        match self {
            Self::Failed => format!("{name}.failed-"),
            Self::Damaged => format!("{name}.damaged-"),
            Self::CutShort => format!("{name}.cut-short-"),
            Self::LeftOut => format!("{name}.left-out-"),
        }
    }

    /// Returns the number and the name of the newest attempt that was set aside for this reason, of
    /// all names in the folder of cells, in order.
    pub(crate) fn newest(self, names: &[String], id: u32) -> Option<(u32, &str)> {
        let prefix = self.prefix(id);
        let first = names.partition_point(|name| *name < prefix);
        let own = names[first..].iter().map_while(|name| {
            let number = name.strip_prefix(&prefix)?;
            Some((number.parse().ok(), name.as_str()))
        });
        let numbered = own.filter_map(|(number, name)| Some((number?, name)));
        numbered.max()
    }

    /// Returns the name for the next attempt that is set aside.
    pub(crate) fn next(self, names: &[String], id: u32) -> String {
        let highest = self.newest(names, id).map_or(0, |(number, _)| number);
        format!("{}{}", self.prefix(id), u64::from(highest) + 1)
    }
}

fn partial_prefix(id: u32) -> String {
    format!(".{}.partial-", cell(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_numbered_and_cells_are_not_mixed_up() {
        let mut names = [
            "0001.failed-2",
            "0001.failed-10",
            "0001.failed-x",
            "0001.damaged-3",
            "00011.failed-40",
            "0011.failed-50",
            ".0001.partial-7",
            ".0011.partial-7",
        ]
        .map(str::to_owned);
        names.sort();
        let newest = Aside::Failed.newest(&names, 1);
        assert_eq!(newest, Some((10, "0001.failed-10")));
        assert_eq!(Aside::Failed.next(&names, 1), "0001.failed-11");
        assert_eq!(Aside::Damaged.next(&names, 1), "0001.damaged-4");
        assert_eq!(Aside::Failed.next(&names, 2), "0002.failed-1");
        let partials = names.iter().filter(|name| is_partial(1, name));
        assert_eq!(partials.collect::<Vec<_>>(), [".0001.partial-7"]);
        assert_eq!(cell(12_345), "12345");
    }
}
