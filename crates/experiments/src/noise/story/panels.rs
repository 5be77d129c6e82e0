//! Which cases belong into one picture: those that differ only in their target.
//!
//! Targets stand in the order of their groups.

use std::collections::BTreeMap;

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::rows::{CPU, Figure, Row, behind};
use tare_figures::run::tsc;
use tare_measured::noise::workloads;
use tare_pages::kit::sentence::{MANY, alongside};
use tare_pages::kit::series::PerCase;
use tare_results::model::{Cell, CellPlan, Labels, Schedule, SetHead};
use tare_results::target::Group;
use tare_stats::OverRuns;

use super::super::only_reads_clock;
use super::super::switched::{ISOLATE, SCREEN};
use super::collect::Pictures;
use super::{ABOVE, NAME};

/// A case, or one CPU of a case that measured several at once, with what its pictures are drawn
/// from.
#[derive(Clone, Debug)]
pub(super) struct Member<'a> {
    pub case: Case<'a>,
    pub pictures: &'a Pictures,
    /// The CPU; `None` if the case has but one.
    pub cpu: Option<u64>,
}

/// Cases that differ only in their target, so that they can be compared; at least one.
#[derive(Clone, Debug)]
pub(super) struct Panel<'a> {
    pub members: Vec<Member<'a>>,
}

/// A row that has a figure.
pub(super) type Known<'a> = (&'a Row, &'a OverRuns);

impl<'a> Member<'a> {
    /// Returns the row of a figure if it has one.
    pub fn known(
        &self,
        measure: &str,
        figure: Figure,
        labels: &[(&str, &str)],
    ) -> Option<Known<'a>> {
        let row = self.row(measure, figure, labels)?;
        Some((row, row.over.as_ref().ok()?))
    }

    /// Returns the row of a figure.
    pub fn row(&self, measure: &str, figure: Figure, labels: &[(&str, &str)]) -> Option<&'a Row> {
        let cpu = self.cpu.map(|cpu| cpu.to_string());
        let cpu = cpu.as_deref().map(|cpu| (CPU, cpu));
        let labels = Vec::from_iter(labels.iter().copied().chain(cpu));
        self.case.row(measure, figure, &labels)
    }

    /// Names its target, and its CPU if there are several: `process, CPU 1`.
    pub fn name(&self) -> String {
        let target = self.case.target();
        match self.cpu {
            None => target,
            Some(_) => format!("{target}, {}", self.cpu()),
        }
    }

    /// Names its CPU among several.
    pub fn cpu(&self) -> String {
        format!("CPU {}", self.cpu.unwrap_or_default())
    }

    /// Returns what is kept of it, of all cases.
    pub fn of<'k, T>(&self, cases: &'k PerCpu<T>) -> Option<&'k T> {
        cases.of(self.case.plan)?.get(&self.cpu)
    }

    /// Returns the share of time that stands for it: lost to gaps, or in delays.
    pub fn share(&self) -> Option<Known<'a>> {
        match self.only_reads_clock() {
            true => self.known("lost", Figure::Share, &[]),
            false => self.known("delayed", Figure::Share, &[ABOVE]),
        }
    }

    /// Returns the longest of its gaps or repetitions.
    pub fn longest(&self) -> Option<Known<'a>> {
        let measure = if self.only_reads_clock() {
            "gap"
        } else {
            "duration"
        };
        self.known(measure, Figure::Max, &[])
    }

    pub fn only_reads_clock(&self) -> bool {
        only_reads_clock(&self.case.plan.work.id)
    }

    pub fn group(&self) -> Group {
        self.case.plan.target.group
    }

    /// Names other work that was seen next to it, unless the kernel's events say who had the CPU for
    /// most of the time in delays: they know also of tasks that lived shortly.
    pub fn alongside(&self) -> String {
        let mut values = self.case.records().flat_map(|record| &record.values);
        let traces = || self.case.records().flat_map(|record| &record.traces);
        let all: f64 = traces().map(|trace| trace.value as f64).sum();
        let complete = traces().filter(|trace| trace.complete);
        let complete: f64 = complete.map(|trace| trace.value as f64).sum();
        match values.any(|value| value.measure == "explained") && 2.0 * complete >= all {
            true => String::new(),
            false => alongside(&self.case),
        }
    }

    /// Returns the number of its runs.
    pub fn runs(&self) -> usize {
        self.case.cells.len()
    }

    /// Returns the time from first to last stamp of all its runs, in cycles.
    pub fn wall(&self) -> f64 {
        let heads = self.case.cells.iter().filter_map(|cell| self.head(cell));
        heads.map(|head| head.length() as f64).sum()
    }

    /// Returns the same in seconds, of each run by the frequency that it found; `None` if one found
    /// none.
    pub fn seconds(&self) -> Option<f64> {
        let each = self
            .case
            .cells
            .iter()
            .map(|cell| Some(self.head(cell)?.length() as f64 / tsc(cell)?.hz));
        each.sum()
    }

    /// Returns the head of its set in a cell.
    fn head(&self, cell: &'a Cell) -> Option<&'a SetHead> {
        let mut sets = cell.outcome.record()?.sets.iter();
        sets.find(|head| head.labels.number(CPU) == self.cpu)
    }

    /// Returns the step of its timer in cycles, the largest of its cells.
    pub fn step(&self) -> u64 {
        step(&self.case)
    }
}

/// The data kept for each case, by CPU if it measured several at once.
pub(super) type PerCpu<T> = PerCase<BTreeMap<Option<u64>, T>>;

/// Returns what is kept, of all cases and CPUs.
pub(super) fn each<T>(cases: &PerCpu<T>) -> impl Iterator<Item = &T> {
    cases.iter().flat_map(|(_, cpus)| cpus.values())
}

/// Returns the CPUs of each case that measured several at once.
pub(super) fn several<'p, 'a>(panel: &'p Panel<'a>) -> impl Iterator<Item = &'p [Member<'a>]> {
    let members = &panel.members;
    let cases = members.chunk_by(|a, b| a.case.plan.target == b.case.plan.target);
    cases.filter(|cpus| cpus[0].cpu.is_some())
}

/// Returns the step of a timer in cycles, the largest of the cells.
pub(super) fn step(case: &Case<'_>) -> u64 {
    let programs = case.records().filter_map(|record| record.program());
    let steps = programs.map(|program| program.calibration.step_cycles);
    steps.max().unwrap_or(1)
}

impl<'a> Panel<'a> {
    /// Groups the cases of a run by workload, load and size.
    pub fn all(run: &'a Run, pictures: &'a PerCpu<Pictures>) -> Vec<Self> {
        let mut panels: Vec<Self> = Vec::new();
        for case in Case::all(run, NAME) {
            let plan = case.plan;
            let Some(cpus) = pictures.of(plan) else {
                continue;
            };
            let own = cpus.iter().map(|(cpu, pictures)| Member {
                case: case.clone(),
                pictures,
                cpu: *cpu,
            });
            let takes = |panel: &&mut Self| {
                let first = panel.plan();
                let is_alike = first.labels == plan.labels && first.load == plan.load;
                // Cases that differ in something else (threshold, repetitions) stay apart.
                let mut members = panel.members.iter();
                is_alike && members.all(|member| member.case.plan.target != plan.target)
            };
            let known = panels.iter_mut().find(takes);
            match known {
                Some(panel) => panel.members.extend(own),
                None => panels.push(Self {
                    members: own.collect(),
                }),
            }
        }
        panels.sort_by_cached_key(|panel| {
            let plan = panel.plan();
            let load = (!plan.load.is_idle(), plan.load.to_string());
            (
                rank(&plan.work.id),
                plan.labels.get("timing").map(str::to_owned),
                load,
                plan.labels.number("size"),
            )
        });
        panels
    }

    /// Returns what stands for what all have in common.
    pub fn plan(&self) -> &'a CellPlan {
        // A panel is made with its first member.
        self.members[0].case.plan
    }

    /// Returns whether its workload only reads the clock.
    pub fn only_reads_clock(&self) -> bool {
        self.members[0].only_reads_clock()
    }

    /// Names what its members have in common: `prime 22 under dd`.
    pub fn title(&self) -> String {
        title(self.plan())
    }

    /// Returns whether it measures the same as another one, if perhaps in another way.
    fn measures_as(&self, other: &Self) -> bool {
        let (a, b) = (self.plan(), other.plan());
        is_of_series(a, b) && a.labels.number("size") == b.labels.number("size")
    }

    /// Returns the time that it measured, in cycles.
    fn wall(&self) -> f64 {
        self.members.iter().map(Member::wall).sum()
    }

    /// Returns its members that a machine executed.
    pub fn native(&self) -> impl Iterator<Item = &Member<'a>> {
        let members = self.members.iter();
        members.filter(|member| !member.case.is_emulated())
    }

    /// Returns the frequency of the TSC of all its targets; `None` if it is not known, or they
    /// differ so much that one axis of time would be wrong for some.
    pub fn hz(&self) -> Option<f64> {
        const SAME: f64 = 1e-3;
        let all: Option<Vec<f64>> = self.members.iter().map(|member| member.case.hz()).collect();
        let all = all?;
        let first = *all.first()?;
        let same = |hz: &f64| (hz / first - 1.0).abs() <= SAME;
        all.iter().all(same).then_some(first)
    }

    /// Returns the step of the timer in cycles, the largest of its members.
    pub fn step(&self) -> u64 {
        self.members.iter().map(Member::step).max().unwrap_or(1)
    }

    /// Returns the names of its targets.
    pub fn names(&self) -> Vec<String> {
        let members = self.members.iter();
        members.map(Member::name).collect()
    }
}

/// Divides panels into those that differ only in their size.
pub(super) fn series<'p, 'a>(panels: &'p [Panel<'a>]) -> Vec<&'p [Panel<'a>]> {
    let same = |a: &Panel<'_>, b: &Panel<'_>| is_of_series(a.plan(), b.plan());
    panels.chunk_by(same).collect()
}

fn is_of_series(a: &CellPlan, b: &CellPlan) -> bool {
    let mut labels = ["timing", ISOLATE, SCREEN].iter();
    let is_alike = labels.all(|label| a.labels.get(label) == b.labels.get(label));
    a.work.id == b.work.id && a.load == b.load && is_alike
}

/// Returns the place of a workload in reports.
pub(super) fn rank(workload: &str) -> usize {
    let place = workloads().position(|known| known.code.id == workload);
    place.unwrap_or(usize::MAX)
}

/// Names what a case has in common with those of other targets: `prime 22 under dd`.
pub(super) fn title(plan: &CellPlan) -> String {
    titled(&plan.work.id, &plan.load, &plan.labels)
}

/// Names the same of a row's workload, load and labels of the plan.
pub(super) fn titled(workload: &str, load: &Schedule, labels: &Labels) -> String {
    let mut title = workload.to_owned();
    if let Some(size) = labels.number("size") {
        title.push_str(&format!(" {size}"));
    }
    title.push_str(&load.under());
    if labels.get("timing") == Some("published") && !only_reads_clock(workload) {
        title.push_str(", published timing");
    }
    title + &behind(labels, &["workload", "size", "timing"])
}

/// Returns the panels of a verdict: each work once, of several that measure the same the one that
/// measured longest; and no emulated case next to native ones, unless there are more than [`MANY`]
/// targets, which are only counted.
pub(super) fn of_verdict<'a>(panels: &[Panel<'a>]) -> Vec<Panel<'a>> {
    let mut taken: Vec<Panel<'a>> = Vec::new();
    for panel in panels {
        match taken.last_mut().filter(|last| last.measures_as(panel)) {
            Some(last) if panel.wall() > last.wall() => *last = panel.clone(),
            Some(_) => {}
            None => taken.push(panel.clone()),
        }
    }
    for panel in &mut taken {
        if panel.members.len() <= MANY && panel.native().next().is_some() {
            panel.members.retain(|member| !member.case.is_emulated());
        }
    }
    taken
}
