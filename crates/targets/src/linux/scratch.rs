//! The place that the loads of a guest write to: a disk, or memory.
//!
//! A disk answers when the host does. Where the guest's clock counts instructions, that alone would
//! keep runs from being identical (docs/linux-guests.md), so loads get a RAM disk there: a tmpfs.
//! It is another load than a disk, which the load's driver reports.

use std::fmt;

use tare_results::target::Clock;

use crate::options::{Size, Value};

/// The form of `disk=`.
pub(super) const USAGE: &str = "scratch:SIZE|ram:SIZE";

/// Its description.
pub(super) const WANTED: &str =
    "scratch: or ram: and a size in MiB or GiB from 128M to 1024G, such as scratch:512M";

/// The smallest: a file system with its journal, the tree of files that loads read (55 MB), and
/// room for writing.
const LEAST: Size = Size::mib(128);

/// A place for files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scratch {
    /// A disk of the guest's, with ext4 and the tree of files that loads read.
    Disk(Size),
    /// A part of the guest's memory.
    Ram(Size),
}

impl Scratch {
    /// Returns the default for a load.
    pub(super) fn of_load(clock: Clock) -> Self {
        const SIZE: Size = Size::mib(512);
        match clock {
            Clock::Host => Self::Disk(SIZE),
            Clock::Instructions => Self::Ram(SIZE),
        }
    }

    /// Returns the size of the disk, if it is one.
    pub(super) fn disk(self) -> Option<Size> {
        match self {
            Self::Disk(size) => Some(size),
            Self::Ram(_) => None,
        }
    }

    /// Returns how much of the guest's memory it takes.
    pub(super) fn memory(self) -> Size {
        match self {
            Self::Disk(_) => Size::mib(0),
            Self::Ram(size) => size,
        }
    }
}

impl Value for Scratch {
    fn parse(text: &str) -> Option<Self> {
        let (kind, size) = text.split_once(':')?;
        let size = Size::parse(size).filter(|size| (LEAST..=Size::MOST).contains(size))?;
        match kind {
            "scratch" => Some(Self::Disk(size)),
            "ram" => Some(Self::Ram(size)),
            _ => None,
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(size) => write!(f, "scratch:{size}"),
            Self::Ram(size) => write!(f, "ram:{size}"),
        }
    }
}
