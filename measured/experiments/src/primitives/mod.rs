//! `primitives`: the cost of a processor's and an operating system's primitives, after cse221-2022
//! and lmbench.
//!
//! Each is one [`Primitive`] in a table, with the function that measures it. Those that need no
//! operating system stand here ([`processor`], [`memory`]) and run everywhere; a platform adds
//! more. It also decides where each one runs: under Linux in a separate process, so that one that
//! dies or hangs is the only one without a result.

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

/// The id by which plans select it.
pub const NAME: &str = "primitives";
/// The name of the fact with the reason why a primitive has no result.
pub const ABSENT: &str = "absent";
/// The name of the fact with the reason why one was aborted.
pub const FAILED: &str = "failed";

/// The primitives that need a kernel elsewhere, and have a bare counterpart on the unikernel.
pub const BARE: [&str; 3] = ["getpid", "wake-to-run", "fault-anonymous"];

/// A primitive: what it is, and the function that measures it.
#[derive(Clone, Copy, Debug)]
pub struct Primitive {
    /// The name in labels, gates and on command lines: `getppid`.
    pub id: &'static str,
    /// The title for readers: `getppid system call`.
    pub title: &'static str,
    /// The method, in a sentence without its full stop.
    pub method: &'static str,
    /// The area. Primitives of one area are measured one after the other by one program.
    pub area: Area,
    /// Other words that select it.
    pub tags: &'static [&'static str],
    /// Requirements; none if it runs everywhere.
    pub needs: &'static [Need],
    /// The function that measures it.
    pub measure: Measure,
}

impl Primitive {
    /// A primitive with empty fields, to be filled in.
    pub const NEW: Self = Self {
        id: "",
        title: "",
        method: "one between two stamps, and many in a row",
        area: Area::Processor,
        tags: &[],
        needs: &[],
        measure: |_, _| Ok(()),
    };

    /// Returns a primitive of this kind with another id and title.
    #[must_use]
    pub const fn named(self, id: &'static str, title: &'static str) -> Self {
        Self { id, title, ..self }
    }

    /// Sets how it is measured, in words.
    #[must_use]
    pub const fn method(self, method: &'static str) -> Self {
        Self { method, ..self }
    }

    /// Sets the area.
    #[must_use]
    pub const fn area(self, area: Area) -> Self {
        Self { area, ..self }
    }

    /// Sets the tags.
    #[must_use]
    pub const fn tags(self, tags: &'static [&'static str]) -> Self {
        Self { tags, ..self }
    }

    /// Sets what it needs.
    #[must_use]
    pub const fn needs(self, needs: &'static [Need]) -> Self {
        Self { needs, ..self }
    }

    /// Sets the function that measures it.
    #[must_use]
    pub const fn by(self, measure: Measure) -> Self {
        Self { measure, ..self }
    }

    /// Returns whether a pattern matches its id (`*` stands for any characters, `?` for a single
    /// one), its area, or one of its tags.
    pub fn is_meant(&self, pattern: &str) -> bool {
        pattern == self.area.name()
            || self.tags.contains(&pattern)
            || fits(pattern.as_bytes(), self.id.as_bytes())
    }
}

/// A function that measures a primitive.
pub type Measure = fn(&mut Bench<'_>, &Context<'_>) -> Result<(), Why>;

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

    /// Returns the word that selects it.
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
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|area| area.name() == word)
    }
}

/// A requirement of a primitive in addition to a CPU and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A kernel with processes.
    Kernel,
    /// A writable folder.
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

/// The context of a measuring function.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The plan.
    pub plan: &'a Plan<'a>,
    /// Frequency of the TSC in Hz, to some 0.1 %.
    pub hz: f64,
    /// Memory to work in, aligned to a page. Unused on platforms whose functions map their own.
    pub room: Room<'a>,
}

/// A function that allocates memory for one primitive, aligned to 2 MiB, in huge pages or in small
/// ones. It is zeroed and touched, and freed when the primitive is done.
pub type Room<'a> = &'a dyn Fn(usize, Pages) -> Result<&'a mut [usize], Why>;

/// A page size.
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

/// Returns whether a text matches a pattern with `*` and `?`.
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

/// The outcome of a primitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was measured.
    Measured,
    /// It can't be measured here; if only a part of it can't, there are results of the others.
    Absent(Why),
    /// It failed or was aborted; the results are those measured by then.
    Failed(Why),
}

/// Measures a primitive in this process, with the core's clock before and after it.
pub fn measure(
    primitive: &Primitive,
    surroundings: &Context<'_>,
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

/// The number of passes of additions that measure the core's clock.
const PASSES: u64 = 64;
/// The number of rounds: interruptions affect only a few.
const ROUNDS: u32 = 9;

/// Returns how many ticks of the TSC a cycle of the core's clock takes.
fn core_clock() -> f64 {
    let least = |passes| (0..ROUNDS).map(|_| tare_additions(passes)).min();
    let both = least(2 * PASSES).zip(least(PASSES));
    let ticks = both.map_or(0, |(twice, once)| twice.saturating_sub(once));
    ticks as f64 / (PASSES * ADDITIONS) as f64
}

/// Writes the outcome of a primitive.
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
            // It was killed while it stored the samples.
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
