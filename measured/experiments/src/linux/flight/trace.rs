//! The records of the kernel's events around the worst samples.

use std::collections::BTreeSet;
use std::fs;

use tare_wire::packed::in_lists;
use tare_wire::record::{self, List, Name, Record};
use tare_wire::trace::{Kind, zigzag};

use super::decode::{Decoded, Event, Names};
use super::processes::Processes;
use super::symbols;

/// The maximum number of functions per stack.
const FRAMES: usize = 5;

/// The prefix of the kernel's entry points of interrupts. The functions after it in a stack were
/// interrupted.
const ENTRY: &str = "asm_";

/// The kind of names of functions.
const FUNCTION: &str = "function";

/// The prefix of the function in which the CPU switches to another thread.
const SWITCH: &str = "__schedule";

/// The kernel's events around the worst samples, the worst first.
pub struct Trace {
    worst: Vec<Decoded>,
    /// The names; of functions, by address.
    names: Names,
    /// Addresses of the functions that wake sleeping threads.
    wakers: BTreeSet<u64>,
}

impl Trace {
    /// Names what events give by number; `processes` are those that ran when recording began, if names
    /// are not yet those of processes.
    pub(super) fn new(worst: impl Iterator<Item = Decoded>, processes: Option<&Processes>) -> Self {
        let mut worst: Vec<Decoded> = worst.collect();
        let mut names = Names::new();
        for decoded in &mut worst {
            for (of, name) in std::mem::take(&mut decoded.names) {
                names.entry(of).or_insert(name);
            }
        }
        if let Some(processes) = processes {
            processes.name(&mut names);
        }
        for (number, name) in (0..).zip(softirqs()) {
            names.insert(("softirq", number), name);
        }
        let wakers = worst.iter().filter_map(|decoded| decoded.waker).collect();
        let events = worst.iter().flat_map(|decoded| &decoded.events);
        let functions = events.flat_map(|event| match event.kind {
            Kind::TimerExpired | Kind::Work => std::slice::from_ref(&event.a),
            _ => &event.stack,
        });
        for (address, name) in symbols::resolve(functions.copied()) {
            names.insert((FUNCTION, address), name);
        }
        Self {
            worst,
            names,
            wakers,
        }
    }

    /// Passes the records to `put`, one after the other; `first` samples came before. Returns how many
    /// there are then.
    ///
    /// # Errors
    ///
    /// Returns the first error of `put`.
    pub fn records<E>(
        &self,
        first: u32,
        mut put: impl FnMut(&Record<'_>) -> Result<(), E>,
    ) -> Result<u32, E> {
        let mut used = BTreeSet::new();
        for (place, decoded) in (first..).zip(&self.worst) {
            let rows = self.rows(decoded);
            put(&Record::Trace(record::Trace {
                place,
                events: u32::try_from(rows.len()).unwrap_or(u32::MAX),
                ..decoded.trace
            }))?;
            used.extend(rows.iter().map(|[_, _, a, _]| *a));
            let pack = |[at, kind, a, b]: [u64; 4], _| [u64::from(place), at, kind, a, b];
            in_lists(rows, pack, |rows| put(&Record::TraceEvents(List { rows })))?;
        }
        for ((of, number), name) in &self.names {
            if *of != FUNCTION || used.contains(number) {
                let number = *number;
                put(&Record::Name(Name { of, number, name }))?;
            }
        }
        Ok(first + self.worst.len() as u32)
    }

    /// Returns the events of a sample as rows: time, kind and values.
    fn rows(&self, decoded: &Decoded) -> Vec<[u64; 4]> {
        let mut rows = Vec::new();
        for event in &decoded.events {
            let at = zigzag(event.at_ns);
            let a = match event.kind {
                Kind::TimerExpired => self.wakers.contains(&event.a).into(),
                Kind::Work => 0,
                _ => event.a,
            };
            rows.push([at, event.kind.number(), a, event.b]);
            let Some(stack) = self.stack(event) else {
                continue;
            };
            if stack.is_empty() && event.kind == Kind::TimerEntry {
                rows.push([at, Kind::FromUser.number(), 0, 0]);
            }
            let frames = stack.iter().take(FRAMES);
            rows.extend(frames.map(|address| [at, Kind::Frame.number(), *address, 0]));
        }
        rows
    }

    /// Returns the interrupted functions, or those that led to a switch, innermost first. None if
    /// unknown: the kernel hides the names of its functions, or too many are in between.
    fn stack<'a>(&self, event: &'a Event) -> Option<&'a [u64]> {
        let border = match event.kind {
            Kind::TimerEntry => ENTRY,
            Kind::Switch => SWITCH,
            Kind::TimerExpired | Kind::Work => return Some(std::slice::from_ref(&event.a)),
            _ => return None,
        };
        let mut addresses = event.stack.iter();
        let at = addresses.position(|address| {
            let name = self.names.get(&(FUNCTION, *address));
            name.is_some_and(|name| name.starts_with(border))
        });
        Some(&event.stack[at? + 1..])
    }
}

/// Returns the kernel's names of softirqs, indexed by number.
fn softirqs() -> Vec<String> {
    let text = fs::read_to_string("/proc/softirqs").unwrap_or_default();
    let rows = text.lines().skip(1);
    rows.filter_map(|row| Some(row.split_once(':')?.0.trim().to_owned()))
        .collect()
}
