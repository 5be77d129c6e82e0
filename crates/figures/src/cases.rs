//! Cases: the cells that repeat each other, with their rows.

use std::collections::HashMap;

use tare_results::model::{Cell, CellPlan, Labels, Program, Record};
use tare_stats::OverRuns;

use crate::group::{distinct, grouped};
use crate::places::Placement;
use crate::rows::{Figure, Row};
use crate::run::{Run, tsc};

/// The cells of one target under one load (or loads one after the other) with one choice of
/// parameters.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// The run.
    pub run: &'a Run,
    /// The attributes that its cells have in common.
    pub plan: &'a CellPlan,
    /// Those of them that have figures, in running order.
    pub cells: Vec<&'a Cell>,
    /// How many runs were planned.
    pub planned: usize,
}

impl<'a> Case<'a> {
    /// Returns the cases of an experiment that have figures: idle first, then by load, group,
    /// target and labels.
    #[must_use]
    pub fn all(run: &'a Run, experiment: &str) -> Vec<Self> {
        let plans = run.plan.cells.iter();
        let own = plans.filter(|plan| plan.experiment == experiment);
        let mut cells = HashMap::<_, Vec<&Cell>>::new();
        for cell in &run.cells {
            let of = cells.entry(cell.plan.combination()).or_default();
            of.push(cell);
        }
        let cases = grouped(own.map(|plan| (plan.combination(), plan)));
        let cases = cases.into_iter().filter_map(|(combination, plans)| {
            Some(Self {
                run,
                plan: plans.first()?,
                cells: cells.remove(&combination)?,
                planned: plans.len(),
            })
        });
        let mut cases: Vec<Self> = cases.collect();
        // The order within a block is drawn at random; rows have theirs.
        let place = |case: &Self| run.rows.0.iter().position(|row| case.has(row));
        cases.sort_by_cached_key(|case| place(case).unwrap_or(usize::MAX));
        cases
    }

    /// Returns whether a row is of it.
    #[must_use]
    pub fn has(&self, row: &Row) -> bool {
        let plan = self.plan;
        let is_under = match row.labels.number("phase") {
            Some(phase) => plan.phases.get(phase as usize) == Some(&row.load),
            None => row.load == plan.load,
        };
        row.experiment == plan.experiment
            && row.target == plan.target.text
            && row.plan == plan.labels
            && is_under
    }

    /// Returns its rows.
    pub fn rows(&self) -> impl Iterator<Item = &'a Row> {
        let rows = self.run.rows.0.iter();
        rows.filter(|row| self.has(row))
    }

    /// Returns the row of a figure that has exactly the plan's labels and these.
    #[must_use]
    pub fn row(&self, measure: &str, figure: Figure, labels: &[(&str, &str)]) -> Option<&'a Row> {
        let plan = self.plan.labels.clone();
        let labels = labels
            .iter()
            .fold(plan, |all: Labels, (key, value)| all.with(key, value));
        let mut rows = self.rows();
        rows.find(|row| row.measure.id == measure && row.figure == figure && row.labels == labels)
    }

    /// Returns a figure over its runs; `None` if there is none, or a run does not carry it.
    #[must_use]
    pub fn over(
        &self,
        measure: &str,
        figure: Figure,
        labels: &[(&str, &str)],
    ) -> Option<&'a OverRuns> {
        self.row(measure, figure, labels)?.over.as_ref().ok()
    }

    /// Returns the value of a figure over its runs that has no other labels than the plan's.
    #[must_use]
    pub fn value(&self, measure: &str, figure: Figure) -> Option<f64> {
        self.row(measure, figure, &[])?.estimate()
    }

    /// Returns why its figures are not those of the planned rate, and in how many of its runs if not
    /// in all: `saturated in 1 of 2 runs`.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        let all = self.cells.len();
        let doubts = self.cells.iter().flat_map(|cell| cell.doubts());
        let each = grouped(doubts.map(|doubt| (doubt, ()))).into_iter();
        let each = each.map(|(doubt, runs)| match runs.len() {
            has if has == all => doubt.to_owned(),
            has => format!("{doubt} in {has} of {all} runs"),
        });
        let each = Vec::from_iter(each);
        (!each.is_empty()).then(|| each.join(", "))
    }

    /// Returns the labels that all cases of its experiment have, if there are several: a name among
    /// others leaves them out.
    #[must_use]
    pub fn common(&self) -> Labels {
        let plans = self.run.plan.cells.iter();
        let own = plans.filter(|plan| plan.experiment == self.plan.experiment);
        let is_several = own
            .clone()
            .any(|plan| plan.combination() != self.plan.combination());
        let of_all =
            |key: &str, value: &str| own.clone().all(|plan| plan.labels.get(key) == Some(value));
        let labels = self.plan.labels.iter().filter(|_| is_several);
        labels
            .filter(|(key, value)| of_all(key, value))
            .fold(Labels::default(), |common, (key, value)| {
                common.with(key, value)
            })
    }

    /// Returns the records of its cells.
    pub fn records(&self) -> impl Iterator<Item = &'a Record> {
        let cells = self.cells.iter();
        cells.filter_map(|cell| cell.outcome.record())
    }

    /// Returns the program that measured first.
    #[must_use]
    pub fn program(&self) -> Option<&'a Program> {
        self.records().find_map(Record::program)
    }

    /// Returns a fact that its programs report of their place; the first report.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<&'a str> {
        self.records()
            .find_map(|record| record.program()?.fact(name))
    }

    /// Returns whether an emulator executed the measured code.
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        let mut programs = self.records().filter_map(Record::program);
        programs.any(|program| program.agent.emulated)
    }

    /// Returns the frequency of the TSC of its first cell; `None` if it is unknown.
    #[must_use]
    pub fn hz(&self) -> Option<f64> {
        self.cells.first().and_then(|cell| Some(tsc(cell)?.hz))
    }

    /// Returns the CPUs that it was measured on: one, unless the runs were placed differently.
    #[must_use]
    pub fn placements(&self) -> Vec<Placement> {
        let programs = self.records().filter_map(Record::program);
        distinct(programs.map(|program| Placement::of(&self.run.plan, self.plan, program)))
    }

    /// Names its target; marked if its times are not those of a machine.
    #[must_use]
    pub fn target(&self) -> String {
        let first = self.rows().next();
        first.map_or_else(|| self.plan.target.text.clone(), Row::marked_target)
    }
}
