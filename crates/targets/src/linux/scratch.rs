//! Where the loads of a guest write: a disk, or memory.
//!
//! A disk answers when the host does. Where the guest's clock counts instructions that is the one thing left that no
//! run repeats (docs/linux-guests.md), so loads get a RAM disk there: a tmpfs, which is another load than a disk, and
//! whose reader is told so by the load's driver.

use std::fmt;

use tare_results::target::Clock;

use crate::options::Size;

/// What `disk=` takes.
pub(super) const USAGE: &str = "scratch:SIZE|ram:SIZE";

/// Its description.
pub(super) const WANTED: &str =
    "scratch: or ram: and a size in MiB or GiB from 128M to 1024G, such as scratch:512M";

/// The smallest: a file system with its journal, the tree of files that loads read (55 MB), and room for what they
/// write.
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
    /// Return what a load gets unless the target says otherwise.
    pub(super) fn of_load(clock: Clock) -> Self {
        const SIZE: Size = Size::mib(512);
        match clock {
            Clock::Host => Self::Disk(SIZE),
            Clock::Instructions => Self::Ram(SIZE),
        }
    }

    /// Read the value of the option.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (kind, size) = text.split_once(':')?;
        let size = Size::parse(size).filter(|size| (LEAST..=Size::MOST).contains(size))?;
        match kind {
            "scratch" => Some(Self::Disk(size)),
            "ram" => Some(Self::Ram(size)),
            _ => None,
        }
    }

    /// Return the size of the disk, if it is one.
    pub(super) fn disk(self) -> Option<Size> {
        match self {
            Self::Disk(size) => Some(size),
            Self::Ram(_) => None,
        }
    }

    /// Return how much of the guest's memory it takes.
    pub(super) fn memory(self) -> Size {
        match self {
            Self::Disk(_) => Size::mib(0),
            Self::Ram(size) => size,
        }
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
