//! `primitives`: what the primitives of a processor and an operating system cost, after cse221-2022 and lmbench.
//!
//! Each primitive is one [`Primitive`] of one table, with the function that measures it. Those that need no operating system
//! stand here ([`processor`], [`memory`]) and run everywhere; a platform adds its own. It also decides where each one
//! runs: under Linux in a process of its own, so that one that dies or hangs is the only one without a result.

#[cfg(feature = "bare")]
pub mod bare;
pub mod bench;
#[cfg(feature = "primitives")]
pub mod linux;
pub mod memory;
mod plan;
pub mod processor;

use core::fmt;

use tare_wire::record::{Record, Set, Unit, Value};
use tare_workloads::calibration::{ADDITIONS, tare_additions};

use crate::output::{self, Output};
use crate::platform::{Platform, WriteError};
use bench::{Bench, Of, Results, Why};

pub use plan::{FOLDER, Plan, USAGE};

/// The id by which plans choose it.
pub const NAME: &str = "primitives";
/// The name of the fact that says why a primitive has no result.
pub const ABSENT: &str = "absent";
/// The name of the fact that says why one was ended.
pub const FAILED: &str = "failed";

/// The primitives that need a kernel elsewhere, and that the unikernel has in a form of its own.
pub const BARE: [&str; 3] = ["getpid", "wake-to-run", "fault-anonymous"];

/// A primitive: what it is, and the function that measures it.
#[derive(Clone, Copy, Debug)]
pub struct Primitive {
    /// Its name in labels, gates and on command lines: `getppid`.
    pub id: &'static str,
    /// What it is, for a reader: `getppid system call`.
    pub title: &'static str,
    /// How it is measured, in a sentence without its full stop.
    pub method: &'static str,
    /// What it belongs to. Those of one area are measured one after the other by one program.
    pub area: Area,
    /// Other words by which it is chosen.
    pub tags: &'static [&'static str],
    /// What it needs; nothing for one that runs everywhere.
    pub needs: &'static [Need],
    /// Measures it.
    pub measure: fn(&mut Bench<'_>, &Surroundings<'_>) -> Result<(), Why>,
}

impl Primitive {
    /// A primitive of which nothing is said yet.
    pub const NEW: Self = Self {
        id: "",
        title: "",
        method: "one between two stamps, and many in a row",
        area: Area::Processor,
        tags: &[],
        needs: &[],
        measure: |_, _| Ok(()),
    };

    /// Says whether a pattern means it: its id, with `*` and `?` for any characters and any single one, its area, or one of its
    /// tags.
    #[must_use]
    pub fn is_meant(&self, pattern: &str) -> bool {
        pattern == self.area.name()
            || self.tags.contains(&pattern)
            || fits(pattern.as_bytes(), self.id.as_bytes())
    }
}

/// Primitives that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    /// Timer reads, loops, procedure calls.
    Processor,
    /// System calls.
    Syscall,
    /// Signals.
    Signal,
    /// Processes and threads.
    Process,
    /// Context switches.
    Switch,
    /// The CPU scheduler.
    Scheduling,
    /// Latency and bandwidth of memory.
    Memory,
    /// Page faults and mappings.
    Fault,
    /// Communication within a machine.
    Ipc,
    /// The network.
    Network,
    /// Files.
    File,
}

impl Area {
    /// The areas, in the order of reports.
    pub const ALL: [Self; 11] = [
        Self::Processor,
        Self::Syscall,
        Self::Signal,
        Self::Process,
        Self::Switch,
        Self::Scheduling,
        Self::Memory,
        Self::Fault,
        Self::Ipc,
        Self::Network,
        Self::File,
    ];

    /// Returns the word by which it is chosen.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Processor => "processor",
            Self::Syscall => "syscall",
            Self::Signal => "signal",
            Self::Process => "process",
            Self::Switch => "switch",
            Self::Scheduling => "scheduling",
            Self::Memory => "memory",
            Self::Fault => "fault",
            Self::Ipc => "ipc",
            Self::Network => "network",
            Self::File => "file",
        }
    }

    /// Returns the area of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|area| area.name() == word)
    }
}

/// What a primitive needs beside a CPU and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A kernel with processes.
    Kernel,
    /// A folder to write in.
    Folder,
    /// A folder of another machine, mounted here, that the user names.
    RemoteFolder,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "a kernel with processes",
            Self::Folder => "a folder to write in",
            Self::RemoteFolder => "a folder of another machine (--remote-dir)",
        })
    }
}

/// What measuring functions know of their surroundings.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// What the plan asks for.
    pub plan: &'a Plan<'a>,
    /// Frequency of the TSC in Hz, to some 0.1 %.
    pub hz: f64,
    /// Memory to work in, aligned to a page. A platform whose functions map their own gives none.
    pub room: Room<'a>,
}

/// Gives memory for one primitive: so many bytes, aligned to 2 MiB, in huge pages or in small ones. It is zeroed, touched, and
/// gone when the primitive is done.
pub type Room<'a> = &'a dyn Fn(usize, Pages) -> Result<&'a mut [usize], Why>;

/// The size of the pages that memory is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Huge,
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Small => "4K",
            Self::Huge => "2M",
        })
    }
}

/// Says whether a text has the form of a pattern with `*` and `?`.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.first(), text.first()) {
        (None, None) => true,
        (Some(b'*'), _) => {
            fits(&pattern[1..], text) || (!text.is_empty() && fits(pattern, &text[1..]))
        }
        (Some(wanted), Some(there)) if *wanted == b'?' || wanted == there => {
            fits(&pattern[1..], &text[1..])
        }
        _ => false,
    }
}

/// What came of a primitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was measured.
    Measured,
    /// It can't be measured here; where only a part of it can't, the results are of the others.
    Absent(Why),
    /// It was begun, and failed or had to be ended; the results are what it had measured by then.
    Failed(Why),
}

/// Measures a primitive in this very program, with the core's clock before and behind it.
pub fn measure(
    primitive: &Primitive,
    surroundings: &Surroundings<'_>,
    results: &mut Results,
    (budget, region): (u64, u64),
) -> Result<(), Why> {
    let mut bench = Bench::new(results, budget, region);
    let before = core_clock();
    (primitive.measure)(&mut bench, surroundings)?;
    let after = core_clock();
    bench.value(Of::Clock, "at=begin", before);
    bench.value(Of::Clock, "at=end", after);
    Ok(())
}

/// The number of passes of additions that show the core's clock.
const PASSES: u64 = 64;
/// How often they run: interruptions are in few of them.
const ROUNDS: u32 = 9;

/// Returns how many ticks of the TSC a cycle of the core's clock takes.
fn core_clock() -> f64 {
    let least = |passes| (0..ROUNDS).map(|_| tare_additions(passes)).min();
    let both = least(2 * PASSES).zip(least(PASSES));
    let ticks = both.map_or(0, |(twice, once)| twice.saturating_sub(once));
    ticks as f64 / (PASSES * ADDITIONS) as f64
}

/// Writes what came of a primitive.
///
/// # Errors
///
/// Returns [`WriteError`] if it can't be written.
pub fn tell<P: Platform>(
    output: &mut Output<'_, P>,
    number: &mut u32,
    primitive: &Primitive,
    ending: &Ending,
    results: &mut Results,
) -> Result<(), WriteError> {
    let id = primitive.id;
    tell_results(output, number, id, results)?;
    let (name, why) = match ending {
        Ending::Measured => return Ok(()),
        Ending::Absent(why) => (ABSENT, why),
        Ending::Failed(why) => (FAILED, why),
    };
    let labels = output::text(&format_args!("primitive={id}"));
    output.fact(name, &labels, why)
}

fn tell_results<P: Platform>(
    output: &mut Output<'_, P>,
    number: &mut u32,
    id: &str,
    results: &mut Results,
) -> Result<(), WriteError> {
    let mut place = 0;
    while let Some(found) = results.all().get(place).copied() {
        place += 1;
        let between = if found.labels().is_empty() { "" } else { " " };
        let labels = output::text(&format_args!("primitive={id}{between}{}", found.labels()));
        let (measure, unit) = found.of().named();
        if matches!(found.of(), Of::Time | Of::Pass) {
            // One that was ended while it kept them.
            if found.is_empty() {
                continue;
            }
            let set = Set {
                number: *number,
                measure,
                labels: &labels,
                unit: Unit::Cycles,
                first: found.first,
                last: found.last,
                ..Set::default()
            };
            *number += 1;
            output.sorted(set, results.sorted(&found))?;
        } else {
            let value = Value {
                measure,
                labels: &labels,
                unit,
                value: found.value,
            };
            output.put(&Record::Value(value))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_ids_areas_and_tags() {
        let primitive = Primitive {
            id: "clock-monotonic",
            area: Area::Syscall,
            tags: &["timer"],
            ..Primitive::NEW
        };
        for meant in [
            "clock-monotonic",
            "clock*",
            "*",
            "?lock-*tonic",
            "syscall",
            "timer",
            "c*k-*",
        ] {
            assert!(primitive.is_meant(meant), "{meant}");
        }
        for other in ["clock", "", "clock-monotonic?", "sys*", "time", "*x*"] {
            assert!(!primitive.is_meant(other), "{other}");
        }
    }

    #[test]
    fn areas_are_found_by_their_words() {
        for area in Area::ALL {
            assert_eq!(Area::parse(area.name()), Some(area));
        }
        assert_eq!(Area::parse("cpu"), None);
    }
}
