//! Figures that know how much of them could be seen.
//!
//! A workload that records only what reaches a threshold cannot fill the classes below it. A count
//! of 0 there would read as "no delays", so what was not recorded is part of the type:
//! [`Observed`] holds no figure at all for a class that could not be seen.

/// What was left out of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LeftOut {
    /// Delays from this size on were recorded, in cycles; 0 if the threshold left out nothing.
    pub recorded_from_cycles: f64,
    /// How many more found the buffer full.
    pub unkept: u64,
}

/// A figure together with how much of it could be seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Observed<T> {
    /// Everything that belongs to the figure was recorded.
    Fully(T),
    /// Some of it was not: counts and sums are lower bounds.
    Partly(T, LeftOut),
    /// Nothing of it could be recorded: there is no figure, and 0 would be wrong.
    NotAtAll(LeftOut),
}

impl<T> Observed<T> {
    /// Returns the figure if all of it was seen.
    pub fn fully(&self) -> Option<&T> {
        match self {
            Self::Fully(seen) => Some(seen),
            Self::Partly(..) | Self::NotAtAll(_) => None,
        }
    }

    /// Returns what was seen, which may be a lower bound.
    pub fn seen(&self) -> Option<&T> {
        match self {
            Self::Fully(seen) | Self::Partly(seen, _) => Some(seen),
            Self::NotAtAll(_) => None,
        }
    }

    /// Returns what was left out, if anything.
    pub fn left_out(&self) -> Option<LeftOut> {
        match self {
            Self::Fully(_) => None,
            Self::Partly(_, left_out) | Self::NotAtAll(left_out) => Some(*left_out),
        }
    }
}
