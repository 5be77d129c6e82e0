//! What disturbed on purpose, and how much of it there really was; and which daemons ran meanwhile.

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::{Cell, LoadPlace};

use super::combine::Spread;
use super::summary::Notice;
use crate::groups::Group;

/// Says what a load did while one target was measured.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadFigure {
    /// Load as it is written on the command line.
    pub load: String,
    /// Target as it is written on the command line.
    pub target: String,
    /// The group that the target belongs to.
    pub group: Group,
    /// Where the load ran, as seen from the measured code.
    pub place: LoadPlace,
    /// What it did per second, one entry for each thing that was counted.
    pub rates: Vec<LoadRate>,
    /// In what it differs from the published load, and what else it remarked.
    pub notices: Vec<Notice>,
}

/// Says how much of one thing a load did per second.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadRate {
    /// What is counted, in the plural: `bytes written`, for example.
    pub what: String,
    /// How many per second; the unit of replication is the block.
    pub per_second: Spread<f64>,
    /// Blocks that it is known of.
    pub blocks: Vec<u32>,
}

/// Says while which blocks a daemon ran on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Daemon {
    /// Its name: `dockerd`, for example.
    pub name: String,
    /// The blocks in which it ran during at least one cell, ascending.
    pub blocks: Vec<u32>,
    /// The cells during which it ran.
    pub cells: Vec<u32>,
}

/// Collects loads and daemons cell by cell.
#[derive(Debug, Default)]
pub(super) struct Disturbances {
    loads: Vec<Collected>,
    daemons: Vec<Daemon>,
}

#[derive(Debug)]
struct Collected {
    load: String,
    target: String,
    place: LoadPlace,
    done: Vec<Done>,
    notices: Vec<Notice>,
}

/// Is how much a load did of one thing in one block.
#[derive(Debug)]
struct Done {
    what: String,
    block: u32,
    amount: u64,
    ns: u64,
}

impl Disturbances {
    /// Takes what one cell says, whether it was measured or failed.
    pub fn take(&mut self, cell: &Cell) {
        let plan = &cell.plan;
        for name in &cell.daemons {
            let daemon = match self.daemons.iter_mut().find(|known| known.name == *name) {
                Some(known) => known,
                None => {
                    self.daemons.push(Daemon {
                        name: name.clone(),
                        blocks: Vec::new(),
                        cells: Vec::new(),
                    });
                    let last = self.daemons.len() - 1;
                    &mut self.daemons[last]
                }
            };
            daemon.cells.push(plan.id);
            daemon.blocks.push(plan.block);
            daemon.blocks.sort_unstable();
            daemon.blocks.dedup();
        }
        let Some(load) = &cell.load else { return };
        let is_same = |known: &&mut Collected| {
            known.load == plan.load && known.target == plan.target && known.place == load.place
        };
        let known = match self.loads.iter_mut().find(is_same) {
            Some(known) => known,
            None => {
                self.loads.push(Collected {
                    load: plan.load.clone(),
                    target: plan.target.clone(),
                    place: load.place,
                    done: Vec::new(),
                    notices: Vec::new(),
                });
                let last = self.loads.len() - 1;
                &mut self.loads[last]
            }
        };
        for achieved in &load.achieved {
            let is_same = |done: &&mut Done| done.what == achieved.what && done.block == plan.block;
            match known.done.iter_mut().find(is_same) {
                Some(done) => {
                    done.amount = done.amount.saturating_add(achieved.amount);
                    done.ns = done.ns.saturating_add(achieved.ns);
                }
                None => known.done.push(Done {
                    what: achieved.what.clone(),
                    block: plan.block,
                    amount: achieved.amount,
                    ns: achieved.ns,
                }),
            }
        }
        for text in &load.notices {
            Notice::add(&mut known.notices, text, plan.id);
        }
    }

    /// Returns what the loads did, in the order of loads and groups, and the daemons.
    pub fn finish(self) -> (Vec<LoadFigure>, Vec<Daemon>) {
        let mut figures: Vec<LoadFigure> = self.loads.into_iter().map(Collected::figure).collect();
        figures.sort_by(|a, b| (&a.load, a.group, &a.target).cmp(&(&b.load, b.group, &b.target)));
        (figures, self.daemons)
    }
}

impl Collected {
    fn figure(self) -> LoadFigure {
        let mut names: Vec<&str> = Vec::new();
        for done in &self.done {
            if !names.contains(&done.what.as_str()) {
                names.push(&done.what);
            }
        }
        let rates = names.into_iter().filter_map(|what| {
            // A load that ran for no time has no rate.
            let done = || self.done.iter().filter(|d| d.what == what && d.ns > 0);
            let rates: Vec<f64> = done()
                .map(|d| d.amount as f64 / (d.ns as f64 / 1e9))
                .collect();
            Some(LoadRate {
                what: what.to_owned(),
                per_second: Spread::of(&rates)?,
                blocks: done().map(|d| d.block).collect(),
            })
        });
        LoadFigure {
            rates: rates.collect(),
            group: Group::of(&self.target),
            load: self.load,
            target: self.target,
            place: self.place,
            notices: self.notices,
        }
    }
}
