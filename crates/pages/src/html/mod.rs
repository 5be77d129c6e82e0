//! The kit of a page: sections, and the pictures and tables in them.

pub mod distributions;
pub mod dot_plot;
pub mod overview;
pub mod parts;

use maud::Markup;

/// How much a page may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The size of all plots of samples over time together, in bytes.
    pub bytes: usize,
    /// The number of choices of a parameter that get pictures.
    pub pictures: usize,
    /// The greatest number of rows in tables of single cells.
    pub rows: usize,
}

/// A section of the page.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its anchor.
    pub id: String,
    /// Its heading.
    pub name: String,
    /// What stands below it.
    pub content: Markup,
}

impl Detail {
    /// As much as there is room for if the run is not large.
    pub const FULL: Self = Self {
        bytes: 900_000,
        pictures: 12,
        rows: 2_000,
    };

    /// Returns by how much pictures are coarser than they could be: 1 for not at all.
    #[must_use]
    pub fn coarseness(&self) -> usize {
        Self::FULL.bytes / self.bytes.max(1)
    }
}

impl Section {
    /// Makes a section.
    #[must_use]
    pub fn new(id: &str, name: &str, content: Markup) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            content,
        }
    }
}
