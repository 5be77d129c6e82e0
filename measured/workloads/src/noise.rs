//! The workloads of the experiment `noise`: a descriptor next to the code of each, and one table.
//!
//! All code that runs or shows `noise` reads the descriptor: the plan and its bounds, the measuring
//! loop, options and help, estimates, tables, sentences and checks. So a new workload is one file
//! and two lines: its module in `lib.rs`, and its descriptor in [`WORKLOADS`]
//! (docs/adding-a-workload.md).

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::gap::{Buffers, Totals};
use crate::timing::Stamp;
use crate::{copy, gap, prime};

/// The workloads, in the order of reports.
pub const WORKLOADS: &[Workload] = &[gap::WORKLOAD, prime::WORKLOAD, copy::WORKLOAD];

/// A workload: its code, and the texts about it.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The part that an image needs, too.
    pub code: Code,
    /// The measured symbols.
    pub symbols: &'static [&'static str],
    /// Default number of repetitions of a run.
    pub repetitions: u64,
    /// Approximate time of a repetition of a size in ns, without stamps.
    pub ns: fn(u64) -> f64,
    /// Keywords for help: `registers only`.
    pub keywords: &'static str,
    /// Predicate of a sentence whose subject is the id: `computes in registers only`.
    pub does: &'static str,
    /// Description for the report's page, a paragraph whose subject is the id.
    pub method: &'static str,
    /// Work of a repetition as the title of an axis: `array elements of 8 bytes`.
    pub steps: &'static str,
    /// Whether its steps are on a linear axis, not on a logarithmic one.
    pub is_linear: bool,
    /// Whether it works on memory, so that the size of pages matters.
    pub uses_memory: bool,
}

/// The part of a workload that measures.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// Word by which it is selected.
    pub id: &'static str,
    /// Its size; None if it has none.
    pub size: Option<Size>,
    /// The measured functions.
    pub kind: Kind,
}

/// The size of a workload's repetition: a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Name of the parameter, which no other workload has.
    pub key: &'static str,
    /// Least value.
    pub least: u64,
    /// Greatest value.
    pub most: u64,
    /// Default value.
    pub default: u64,
    /// Meaning of a value N, in a sentence without its full stop.
    pub meaning: &'static str,
}

/// How a workload is measured.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Each repetition is timed by two stamps.
    Timed(Timed),
    /// It only reads the timer, and lists the differences that reach a threshold.
    Clock(unsafe extern "C" fn(u64, u64, *const Buffers, *mut Totals)),
}

/// The functions of a workload whose repetitions are timed.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// The measured code with fenced stamps.
    pub fenced: Repeated,
    /// The measured code with the bare stamps of kot-2019.
    pub published: Repeated,
    /// Returns the numbers of 8 bytes that a size needs as memory.
    pub room: fn(u64) -> u64,
    /// Fills that memory, which is zeroed.
    pub prepare: fn(&mut [u64]),
    /// Returns the elementary steps of one repetition, such as divisions.
    pub steps: fn(u64) -> u64,
}

/// Measured code: runs a number of repetitions of a size on its memory, stores a stamp for each,
/// and returns the result of the last one, or 0.
///
/// # Safety
///
/// The size is within its bounds, the memory is valid for as many numbers as [`Timed::room`]
/// says, and the stamps for as many as repetitions.
pub type Repeated = unsafe extern "C" fn(u64, *mut u64, u64, *mut Stamp) -> u64;

impl Code {
    /// Returns whether it only reads the timer.
    pub fn only_reads_clock(&self) -> bool {
        matches!(self.kind, Kind::Clock(_))
    }
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Code {}

/// The code of [`WORKLOADS`] alone, so that an image contains none of the texts.
pub static CODE: [Code; WORKLOADS.len()] = {
    let mut all = [WORKLOADS[0].code; WORKLOADS.len()];
    let mut place = 1;
    while place < all.len() {
        all[place] = WORKLOADS[place].code;
        place += 1;
    }
    all
};

/// The workloads that a program adds to those of tare.
static ADDED: AtomicPtr<&[Workload]> = AtomicPtr::new(ptr::null_mut());

/// Adds workloads to those of tare, once and before anything reads them; each program has its own
/// set.
pub fn add(workloads: &'static &'static [Workload]) {
    ADDED.store(ptr::from_ref(workloads).cast_mut(), Ordering::Release);
}

fn added() -> &'static [Workload] {
    // SAFETY: null, or a reference that `add` has stored.
    unsafe { ADDED.load(Ordering::Acquire).as_ref() }.map_or(&[], |added| added)
}

/// Returns all workloads, in the order of reports.
pub fn workloads() -> impl Iterator<Item = &'static Workload> {
    WORKLOADS.iter().chain(added())
}

/// Returns the code of all workloads.
pub fn codes() -> impl Iterator<Item = &'static Code> {
    let added = added().iter().map(|workload| &workload.code);
    CODE.iter().chain(added)
}

/// Finds the code of a workload by its id.
pub fn find(id: &str) -> Option<&'static Code> {
    codes().find(|code| code.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_workloads_share_a_word() {
        let words = WORKLOADS.iter().flat_map(|workload| {
            let key = workload.code.size.map(|size| size.key);
            [Some(workload.code.id), key].into_iter().flatten()
        });
        for (place, word) in words.clone().enumerate() {
            assert!(
                words.clone().skip(place + 1).all(|other| other != word),
                "{word}"
            );
        }
    }

    #[test]
    fn a_default_is_within_its_bounds() {
        for size in WORKLOADS.iter().filter_map(|workload| workload.code.size) {
            assert!(
                (size.least..=size.most).contains(&size.default),
                "{}",
                size.key
            );
        }
    }
}
