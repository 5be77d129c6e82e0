//! Takes the wake-up cells of a run one by one and puts their figures together.

use tare_results::model::{Cell, CellPlan, Plan, Samples};
use tare_stats::Kind;

use super::combine::{self, WakeupCombination};
use super::picture::{RunPicture, WakeupPictures};
use super::run::{self, WakeupRun};
use super::threads::Thread;
use super::worst::{self, WorstFigure};
use crate::analysis::{Counted, Placement, Spread, count_together};

/// Collects the figures of wake-up cells.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    groups: Vec<Repeated>,
}

/// Collects the cells that repeat each other.
#[derive(Debug)]
struct Repeated {
    plan: CellPlan,
    planned_runs: u64,
    runs: Vec<WakeupRun>,
    worst: Vec<WorstFigure>,
    counted: Vec<Counted>,
    pictures: WakeupPictures,
    facts: Facts,
}

/// Is what the records of the cells say beside figures.
#[derive(Debug, Default)]
struct Facts {
    placements: Vec<Placement>,
    emulated: bool,
    kernel: Option<String>,
    preemption: Option<String>,
    policy: String,
    priority: u32,
    intervals_ns: Vec<u64>,
}

impl Collector {
    /// Starts with the wake-up cells that a plan has.
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut groups: Vec<Repeated> = Vec::new();
        for cell in plan.cells.iter().filter(|cell| is_wakeup(cell)) {
            match groups.iter_mut().find(|group| group.plan.repeats(cell)) {
                Some(group) => group.planned_runs += 1,
                None => groups.push(Repeated {
                    plan: cell.clone(),
                    planned_runs: 1,
                    runs: Vec::new(),
                    worst: Vec::new(),
                    counted: Vec::new(),
                    pictures: WakeupPictures::default(),
                    facts: Facts::default(),
                }),
            }
        }
        Self { groups }
    }

    /// Takes a cell that ran to its end; says what is wrong with it if it cannot be used.
    pub(crate) fn take(
        &mut self,
        run: &Plan,
        cell: &Cell,
        samples: &Samples,
    ) -> Result<(), String> {
        let record = cell.outcome.record();
        let record = record.ok_or("its record has no wake-ups")?;
        let threads = Thread::all(record, samples)?;
        if threads.iter().all(|thread| thread.woken() == 0) {
            return Err("no thread of it was ever woken; measure it longer".to_owned());
        }
        let plan = &cell.plan;
        // Every cell of the plan has its group.
        let Some(group) = self.groups.iter_mut().find(|g| g.plan.repeats(plan)) else {
            return Err("the plan does not have it".to_owned());
        };
        let contribution = run::analyse(plan, &threads, cell.load.as_ref())?;
        group.pictures.count(contribution.counts)?;
        group.runs.push(contribution.run);
        let picture = RunPicture::new(plan, &threads);
        group.pictures.runs.push(picture);
        let mut worst = worst::find(plan, &threads, &record.traces, cell.load.as_ref());
        group.worst.append(&mut worst);
        worst::keep_worst(&mut group.worst);
        group.counted.push(Counted::of(record, None));
        let facts = &mut group.facts;
        if let Some(program) = record.program() {
            facts.emulated |= program.agent.emulated;
            let told = |name| program.fact(name).map(str::to_owned);
            facts.kernel = facts.kernel.take().or_else(|| told("kernel release"));
            facts.preemption = facts.preemption.take().or_else(|| told("preemption model"));
            let placement = Placement::of(run, &plan.target, program);
            if !facts.placements.contains(&placement) {
                facts.placements.push(placement);
            }
        }
        if let Some(first) = threads.first() {
            facts.policy = first.policy().to_owned();
            facts.priority = first.priority();
            facts.intervals_ns = threads.iter().map(|t| t.interval_ns).collect();
        }
        Ok(())
    }

    /// Returns the combinations that have figures, with their pictures, in the order of the plan.
    pub(crate) fn finish(self) -> (Vec<WakeupCombination>, Vec<WakeupPictures>) {
        let done = self
            .groups
            .into_iter()
            .filter(|group| !group.runs.is_empty());
        let mut done: Vec<_> = done.map(Repeated::combine).collect();
        // The order within a block is drawn at random; a target should have its place in every report.
        done.sort_by_key(|(c, _)| {
            (
                c.traced,
                c.load != "idle",
                c.load.clone(),
                c.group,
                rank(c),
                c.target.clone(),
            )
        });
        done.into_iter().unzip()
    }
}

/// Says whether a cell measures wake-ups.
pub(crate) fn is_wakeup(cell: &CellPlan) -> bool {
    cell.experiment == "wakeup"
}

/// Orders kernels as landolfi-2018 does, from none to full real-time preemption.
fn rank(combination: &WakeupCombination) -> usize {
    const ORDER: [&str; 5] = ["none", "voluntary", "lazy", "full", "rt"];
    let model = combination.preemption.as_deref();
    let place = model.and_then(|model| ORDER.iter().position(|known| *known == model));
    place.unwrap_or(ORDER.len())
}

impl Repeated {
    fn combine(self) -> (WakeupCombination, WakeupPictures) {
        let (plan, facts, runs) = (self.plan, self.facts, self.runs);
        let threads = || runs.iter().flat_map(|run| &run.threads);
        let phases: Vec<_> = runs.iter().map(|run| run.phases.as_slice()).collect();
        let averages: Vec<f64> = runs.iter().filter_map(|run| run.average_max_ns).collect();
        let cost =
            |thread: &run::ThreadRun| thread.recording_ns as f64 / thread.interval_ns.max(1) as f64;
        let slowest = threads().max_by(|a, b| cost(a).total_cmp(&cost(b)));
        let combination = WakeupCombination {
            label: plan.label(),
            group: plan.target.group,
            placements: facts.placements,
            phase_seconds: run::phase_ns(&plan).map(|ns| ns / 1e9),
            policy: facts.policy,
            priority: facts.priority,
            intervals_ns: facts.intervals_ns,
            traced: plan.is_traced(),
            emulated: facts.emulated,
            clock: plan.target.clock,
            kernel: facts.kernel,
            preemption: facts.preemption,
            planned_runs: self.planned_runs,
            runs: runs.len() as u64,
            cells: runs.iter().map(|run| run.id).collect(),
            intervals_refused: combine::refused(runs.len()),
            woken: threads().map(|thread| thread.woken).sum(),
            missed: threads().map(|thread| thread.missed).sum(),
            uncounted: threads().map(|thread| thread.uncounted).sum(),
            recording_ns: slowest.map_or(0, |thread| thread.recording_ns),
            recording_share: slowest.map_or(0.0, cost),
            phases: combine::phases(&phases),
            threads: combine::threads(&runs),
            average_max: Spread::of(Kind::Order, &averages),
            worst: self.worst,
            counters: count_together(&self.counted),
            target: plan.target.text.clone(),
            spec: plan.target,
            load: plan.load,
            each: runs,
        };
        (combination, self.pictures)
    }
}
