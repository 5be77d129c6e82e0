//! Loads: what was asked for and what they really did; daemons that were running.

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::{Achieved, Cell, LoadPlace, Record};
use tare_results::target::{Group, TargetSpec};
use tare_stats::{Kind, Level, over_runs};

use crate::format::Numbers;
use crate::group::{distinct, entry};
use crate::interval::Spread;
use crate::notices::AgentNotice;

/// The work of a load while one target was measured.
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
    /// Whether an emulator executed the target, and a load inside with it.
    pub emulated: bool,
    /// Whether it is a schedule of loads, each of which has its figures.
    pub is_schedule: bool,
    /// Rates per second, one entry for each counted thing.
    pub rates: Vec<LoadRate>,
    /// In what it differs from the published load, and what else it remarked.
    pub notices: Vec<AgentNotice>,
}

/// One thing that a load did, per second.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadRate {
    /// The counted thing, in the plural: `bytes written`, for example.
    pub what: String,
    /// How many per second; the unit of replication is the block.
    pub per_second: Spread,
    /// Blocks that it is known of.
    pub blocks: Vec<u32>,
    /// The rate of each block.
    #[serde(skip)]
    pub each: Vec<f64>,
}

/// A daemon that ran on this machine, with the blocks.
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
pub(crate) struct Disturbances {
    loads: Vec<Collected>,
    daemons: Vec<Daemon>,
}

#[derive(Debug)]
struct Collected {
    load: String,
    target: TargetSpec,
    place: LoadPlace,
    emulated: bool,
    is_schedule: bool,
    done: Vec<Done>,
    notices: Vec<AgentNotice>,
}

/// How much a load did of one thing in one block.
#[derive(Debug)]
struct Done {
    what: String,
    block: u32,
    amount: u64,
    ns: u64,
}

impl LoadFigure {
    /// Returns where it ran, as seen from the measured code.
    #[must_use]
    pub fn place(&self) -> &'static str {
        match self.place {
            LoadPlace::Beside => "next to it",
            LoadPlace::Inside => "inside",
        }
    }
}

impl LoadRate {
    /// Returns the counted thing without its unit.
    #[must_use]
    pub fn name(&self) -> &str {
        self.what.trim_start_matches("ns of ")
    }

    /// Writes one of its rates: `412 MB/s`, `1,203/s`; of CPU time how many CPUs that is.
    #[must_use]
    pub fn written(&self, numbers: Numbers, per_second: f64) -> String {
        if self.what == "ns of CPU time" {
            return numbers.with_unit(&numbers.short(per_second / 1e9), "CPUs");
        }
        if !self.what.starts_with("bytes") {
            return numbers.rate(per_second);
        }
        let (value, unit) = match per_second {
            v if v < 999.5 => (v, "B/s"),
            v if v < 999.5e3 => (v / 1e3, "kB/s"),
            v if v < 999.5e6 => (v / 1e6, "MB/s"),
            v => (v / 1e9, "GB/s"),
        };
        numbers.with_unit(&numbers.short(value), unit)
    }
}

impl Disturbances {
    /// Takes what a cell says that was measured.
    pub fn take(&mut self, cell: &Cell) {
        let plan = &cell.plan;
        for name in &cell.daemons {
            let new = || Daemon {
                name: name.clone(),
                blocks: Vec::new(),
                cells: Vec::new(),
            };
            let daemon = entry(&mut self.daemons, |known| known.name == *name, new);
            daemon.cells.push(plan.id);
            daemon.blocks.push(plan.block);
            daemon.blocks.sort_unstable();
            daemon.blocks.dedup();
        }
        let Some(load) = &cell.load else { return };
        let program = cell.outcome.record().and_then(Record::program);
        let emulated = program.is_some_and(|program| program.agent.emulated);
        let of = (&plan.target, load.place, emulated);
        let known = self.load(plan.load.as_str(), of);
        known.is_schedule |= !load.phases.is_empty();
        known.add(plan.block, &load.achieved);
        for text in &load.notices {
            AgentNotice::add(&mut known.notices, text, plan.id);
        }
        // A load without a count is idle.
        let phases = load
            .phases
            .iter()
            .filter(|phase| !phase.achieved.is_empty());
        for phase in phases {
            let known = self.load(&phase.load, of);
            known.add(plan.block, &phase.achieved);
        }
    }

    fn load(
        &mut self,
        load: &str,
        (target, place, emulated): (&TargetSpec, LoadPlace, bool),
    ) -> &mut Collected {
        let is_same = |known: &Collected| {
            known.load == load && known.target == *target && known.place == place
        };
        entry(&mut self.loads, is_same, || Collected {
            load: load.to_owned(),
            target: target.clone(),
            place,
            emulated,
            is_schedule: false,
            done: Vec::new(),
            notices: Vec::new(),
        })
    }

    /// Returns what the loads did, in the order of loads and groups, and the daemons.
    pub fn finish(self) -> (Vec<LoadFigure>, Vec<Daemon>) {
        let mut figures: Vec<LoadFigure> = self.loads.into_iter().map(Collected::figure).collect();
        figures.sort_by(|a, b| (&a.load, a.group, &a.target).cmp(&(&b.load, b.group, &b.target)));
        (figures, self.daemons)
    }
}

impl Collected {
    fn add(&mut self, block: u32, achieved: &[Achieved]) {
        for achieved in achieved {
            let is_same = |done: &Done| done.what == achieved.what && done.block == block;
            let done = entry(&mut self.done, is_same, || Done {
                what: achieved.what.clone(),
                block,
                amount: 0,
                ns: 0,
            });
            done.amount = done.amount.saturating_add(achieved.amount);
            done.ns = done.ns.saturating_add(achieved.ns);
        }
    }

    fn figure(self) -> LoadFigure {
        let names = distinct(self.done.iter().map(|done| done.what.as_str()));
        let rates = names.into_iter().filter_map(|what| {
            // A load that ran for no time has no rate.
            let done = || self.done.iter().filter(|d| d.what == what && d.ns > 0);
            let rates: Vec<f64> = done()
                .map(|d| d.amount as f64 / (d.ns as f64 / 1e9))
                .collect();
            Some(LoadRate {
                what: what.to_owned(),
                per_second: Spread::of(&over_runs(Kind::Order, &rates, Level::P95).ok()?),
                blocks: done().map(|d| d.block).collect(),
                each: rates,
            })
        });
        LoadFigure {
            rates: rates.collect(),
            group: self.target.group,
            load: self.load,
            target: self.target.text,
            place: self.place,
            emulated: self.emulated,
            is_schedule: self.is_schedule,
            notices: self.notices,
        }
    }
}
