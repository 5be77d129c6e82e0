//! Where the measured code ran: which CPU, and what the place looks like from inside.

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::{Cell, CellPlan, Plan, Program, Record};
use tare_results::target::Group;

/// Says on which CPU a cell was measured. A guest numbers its CPUs by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Placement {
    /// CPU of this machine; null if it was not pinned, or ran on another machine.
    pub host_cpu: Option<u32>,
    /// The same CPU as the guest numbers it; null where there is no guest.
    pub guest_cpu: Option<u32>,
    /// CPU of the other machine; null where there is none.
    pub remote_cpu: Option<u32>,
}

/// Says what one target looks like from inside.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Place {
    /// Target as it is written on the command line.
    pub target: String,
    /// The group that it belongs to.
    pub group: Group,
    /// What is known of it, in the order in which it was told.
    pub facts: Vec<PlaceFact>,
}

/// One thing about a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlaceFact {
    /// What is told: `kernel release`, for example.
    pub name: String,
    /// What was found. More than one value means that the place changed between cells.
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
    /// Tells on which CPU a cell was measured.
    #[must_use]
    pub fn of(plan: &Plan, cell: &CellPlan, measured: &Program) -> Self {
        let named = measured.preparation.cpu;
        let nowhere = Self {
            host_cpu: None,
            guest_cpu: None,
            remote_cpu: None,
        };
        match cell.target.group {
            // What tells of its place is pinned, the many instances are not.
            _ if !cell.has_its_cpus() => nowhere,
            Group::Remote => Self {
                remote_cpu: named,
                ..nowhere
            },
            // Its virtual CPU's thread is pinned before the guest is let go.
            group if measured.agent.accelerator.is_some() || group.is_guest() => Self {
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

/// Collects what the cells tell of their places, by target in the order of the groups.
pub(crate) fn collect(cells: &[Cell]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for cell in cells {
        let Some(program) = cell.outcome.record().and_then(Record::program) else {
            continue;
        };
        // What is told of a thread is no fact of the place.
        let facts = program.facts.iter().filter(|fact| fact.labels.is_empty());
        let mut facts = facts.peekable();
        if facts.peek().is_none() {
            continue;
        }
        let target = &cell.plan.target;
        let place = match places.iter().position(|place| *target == *place.target) {
            Some(place) => place,
            None => {
                places.push(Place {
                    target: target.text.clone(),
                    group: target.group,
                    facts: Vec::new(),
                });
                places.len() - 1
            }
        };
        for fact in facts {
            add(
                &mut places[place].facts,
                &fact.name,
                &fact.value,
                cell.plan.id,
            );
        }
    }
    places.sort_by(|a, b| (a.group, &a.target).cmp(&(b.group, &b.target)));
    places
}

fn add(facts: &mut Vec<PlaceFact>, name: &str, value: &str, cell: u32) {
    let values = match facts.iter().position(|fact| fact.name == name) {
        Some(known) => &mut facts[known].values,
        None => {
            facts.push(PlaceFact {
                name: name.to_owned(),
                values: Vec::new(),
            });
            let last = facts.len() - 1;
            &mut facts[last].values
        }
    };
    match values.iter_mut().find(|known| known.value == value) {
        Some(known) => known.cells.push(cell),
        None => values.push(FactValue {
            value: value.to_owned(),
            cells: vec![cell],
        }),
    }
}
