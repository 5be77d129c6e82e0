//! The plan, as words.

use core::fmt;

use tare_wire::bounds::{Refusal, within};
use tare_wire::words::PlanError;

use crate::arena::Arena;
use crate::words::{self, Slot, Word};

/// The id of its plans.
pub const NAME: &str = "stream";

/// The description of the words, for the help.
pub const USAGE: &str = "
Words of a measurement of bandwidth:
  workload=stream           Copy, Scale, Add and Triad, in turn
  kib=N                     size of each of the three arrays, in KiB
  passes=N                  how often each is measured in a data set
  attempts=N                data sets at most, until the two halves of Triad's agree
  cpu=N                     CPU to which it is pinned
";

/// The bounds of the size of an array, in KiB.
pub const KIB: [u64; 2] = [1, 4 << 20];
/// The bounds of the number of passes: a half has two at least, or there is no variance.
pub const PASSES: [u64; 2] = [4, 10_000];
/// The bounds of the number of data sets.
pub const ATTEMPTS: [u64; 2] = [1, 100];

/// A plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Size of each array, in KiB.
    pub kib: u64,
    /// Passes of a data set.
    pub passes: u64,
    /// The greatest number of data sets.
    pub attempts: u64,
    /// CPU to which it is pinned; any if None.
    pub cpu: Option<u32>,
}

impl Default for Plan {
    /// Arrays of the size of STREAM's own.
    fn default() -> Self {
        Self {
            kib: 80_000_000 / 1_024,
            passes: 40,
            attempts: 5,
            cpu: None,
        }
    }
}

const WORDS: &[Word<Plan>] = &[
    ("kib", |plan| Slot::Number(&mut plan.kib)),
    ("passes", |plan| Slot::Number(&mut plan.passes)),
    ("attempts", |plan| Slot::Number(&mut plan.attempts)),
    ("cpu", |plan| Slot::AnySmall(&mut plan.cpu)),
];

impl Plan {
    /// Reads a plan from its words.
    ///
    /// # Errors
    ///
    /// Returns [`PlanError`] for an invalid word.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, PlanError<'a>> {
        let mut plan = Self::default();
        words::read(&mut plan, WORDS, words, &["workload"])?;
        Ok(plan)
    }

    /// Checks its bounds.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let all = [
            ("kib", self.kib, KIB),
            ("passes", self.passes, PASSES),
            ("attempts", self.attempts, ATTEMPTS),
        ];
        let mut all = all.into_iter();
        all.try_for_each(|(what, given, [least, most])| within(what, given, least, most))
    }

    /// Returns the number of elements of an array, of 8 bytes each.
    pub(super) fn elements(&self) -> u64 {
        self.kib * const { 1_024 / 8 }
    }

    /// Returns the size of the buffers, in bytes: three arrays, and the ticks of each pass twice.
    pub fn buffer_bytes(&self) -> u64 {
        let arrays = 3 * Arena::bytes::<u64>(self.elements() as usize);
        let ticks = super::KERNELS.len() * Arena::bytes::<u64>(self.passes as usize);
        let sorted = Arena::bytes::<u64>(self.passes as usize);
        (arrays + ticks + sorted) as u64
    }
}

impl fmt::Display for Plan {
    /// Writes all words but the id.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        words::write(*self, WORDS, f)
    }
}
