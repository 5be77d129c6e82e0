//! Where the measured code ran: which CPU, and what the place looks like from inside.

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::{Cell, CellPlan, Plan, Program, Record};
use tare_results::target::Group;

use crate::group::entry;

/// The CPU that a cell was measured on. A guest numbers its CPUs by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub struct Placement {
    /// CPU of this machine; null if it was not pinned, or ran on another machine.
    pub host_cpu: Option<u32>,
    /// The same CPU as the guest numbers it; null where there is no guest.
    pub guest_cpu: Option<u32>,
    /// CPU of the other machine; null where there is none.
    pub remote_cpu: Option<u32>,
}

/// A target as it looks from inside.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Place {
    /// Target as it is written on the command line.
    pub target: String,
    /// The group that it belongs to.
    pub group: Group,
    /// Its facts, in the order in which they were reported.
    pub facts: Vec<PlaceFact>,
}

/// One thing about a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlaceFact {
    /// The name: `kernel release`, for example.
    pub name: String,
    /// The values. More than one means that the place changed between cells.
    pub values: Vec<FactValue>,
}

/// A value with the cells in which it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FactValue {
    /// The value.
    pub value: String,
    /// The cells.
    pub cells: Vec<u32>,
}

impl Placement {
    /// Returns the CPU that a cell was measured on.
    #[must_use]
    pub fn of(plan: &Plan, cell: &CellPlan, measured: &Program) -> Self {
        let named = measured.preparation.cpu;
        let nowhere = Self {
            host_cpu: None,
            guest_cpu: None,
            remote_cpu: None,
        };
        match cell.target.kernel() {
            // The instance that reports its place is pinned, the many instances are not.
            _ if !cell.has_its_cpus() => nowhere,
            kernel if kernel.is_remote() => Self {
                remote_cpu: named,
                ..nowhere
            },
            // Its virtual CPU's thread is pinned before the guest runs.
            kernel if measured.agent.accelerator.is_some() || kernel.is_guest() => Self {
                host_cpu: Some(plan.cpu),
                guest_cpu: named,
                ..nowhere
            },
            _ => Self {
                host_cpu: named,
                ..nowhere
            },
        }
    }

    /// Says it in words: `pinned to host CPU 1; the guest's CPU 0`.
    #[must_use]
    pub fn words(&self) -> String {
        match (self.host_cpu, self.guest_cpu, self.remote_cpu) {
            (_, _, Some(cpu)) => format!("pinned to CPU {cpu} of that machine"),
            (Some(host), Some(guest), _) => {
                format!("pinned to host CPU {host}; the guest's CPU {guest}")
            }
            (Some(host), None, _) => format!("pinned to host CPU {host}"),
            (None, ..) => "not pinned".to_owned(),
        }
    }
}

/// How many facts of a cell, and of a place, are taken, whatever a stranger sends.
const MOST_FACTS: usize = 500;

/// Collects the facts that cells report of their places, by target in the order of the groups.
pub(crate) fn collect(cells: &[Cell]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for cell in cells {
        let Some(program) = cell.outcome.record().and_then(Record::program) else {
            continue;
        };
        // A fact of a thread is no fact of the place.
        let facts = program.facts.iter().filter(|fact| fact.labels.is_empty());
        let mut facts = facts.peekable();
        if facts.peek().is_none() {
            continue;
        }
        let target = &cell.plan.target;
        let new = || Place {
            target: target.text.clone(),
            group: target.group,
            facts: Vec::new(),
        };
        let place = entry(&mut places, |place| *target == *place.target, new);
        for fact in facts.take(MOST_FACTS) {
            add(&mut place.facts, &fact.name, &fact.value, cell.plan.id);
        }
    }
    places.sort_by(|a, b| (a.group, &a.target).cmp(&(b.group, &b.target)));
    places
}

fn add(facts: &mut Vec<PlaceFact>, name: &str, value: &str, cell: u32) {
    let new = || PlaceFact {
        name: name.to_owned(),
        values: Vec::new(),
    };
    if facts.len() == MOST_FACTS && !facts.iter().any(|fact| fact.name == name) {
        return;
    }
    let fact = entry(facts, |fact| fact.name == name, new);
    let new = || FactValue {
        value: value.to_owned(),
        cells: Vec::new(),
    };
    let known = entry(&mut fact.values, |known| known.value == value, new);
    known.cells.push(cell);
}
