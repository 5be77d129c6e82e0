//! Cases put together: along one label, by what executed them, and by name.

use tare_results::model::CellPlan;

use tare_figures::cases::Case;
use tare_figures::rows::{Row, behind};

/// Cases of an experiment that differ in one label alone: the points of a curve, the lines below a
/// heading. It has at least one.
#[derive(Clone, Debug)]
pub struct Series<'a> {
    /// The label.
    pub label: &'static str,
    /// The cases, in the order of their places.
    pub cases: Vec<Case<'a>>,
}

impl<'a> Series<'a> {
    /// Returns the series of cases along a label, in the order of their first cases. `place` orders
    /// the cases of each.
    #[must_use]
    pub fn along<K: Ord>(
        cases: Vec<Case<'a>>,
        label: &'static str,
        place: impl Fn(&Case<'a>) -> K,
    ) -> Vec<Self> {
        let rest = |case: &Case<'a>| case.plan.labels.clone().without(label);
        let mut all: Vec<Self> = Vec::new();
        for case in cases {
            let known = all.iter_mut().find(|series| {
                let first = series.first();
                first.plan.target == case.plan.target
                    && first.plan.load == case.plan.load
                    && rest(first) == rest(&case)
            });
            match known {
                Some(series) => series.cases.push(case),
                None => all.push(Self {
                    label,
                    cases: vec![case],
                }),
            }
        }
        for series in &mut all {
            series.cases.sort_by_key(&place);
        }
        all
    }

    /// Returns its first case.
    #[must_use]
    pub fn first(&self) -> &Case<'a> {
        &self.cases[0]
    }

    /// Returns whether an emulator executed one of its cases.
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        self.cases.iter().any(Case::is_emulated)
    }

    /// Returns the plan of its first case.
    #[must_use]
    pub fn plan(&self) -> &'a CellPlan {
        self.first().plan
    }

    /// Names it: `process under dd, work=prime:1000`.
    #[must_use]
    pub fn name(&self) -> String {
        let plan = self.plan();
        self.first().target() + &plan.load.under() + &behind(&plan.labels, &[self.label])
    }

    /// Returns the series that has a row, and its case; both with their places.
    #[must_use]
    pub fn of_row<'s>(
        all: &'s [Self],
        row: &Row,
    ) -> Option<((usize, usize), &'s Self, &'s Case<'a>)> {
        all.iter().enumerate().find_map(|(at, series)| {
            let place = series.cases.iter().position(|case| case.has(row))?;
            Some(((at, place), series, &series.cases[place]))
        })
    }
}

/// Divides what sentences are about: first what a machine executed, then what an emulator did. If
/// an emulator executed everything, all comes first.
#[must_use]
pub fn native_first<T>(all: Vec<T>, is_emulated: impl Fn(&T) -> bool) -> (Vec<T>, Vec<T>) {
    let (native, emulated): (Vec<T>, Vec<T>) = all.into_iter().partition(|one| !is_emulated(one));
    match native.is_empty() {
        true => (emulated, native),
        false => (native, emulated),
    }
}

/// The data kept for each case while the cells of a run are read one after the other.
#[derive(Clone, Debug)]
pub struct PerCase<T>(Vec<(CellPlan, T)>);

impl<T> Default for PerCase<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Default> PerCase<T> {
    /// Returns what is kept for the case of a cell.
    pub fn entry(&mut self, plan: &CellPlan) -> &mut T {
        let known = self.0.iter().position(|(known, _)| known.repeats(plan));
        let place = known.unwrap_or_else(|| {
            self.0.push((plan.clone(), T::default()));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }
}

impl<T> PerCase<T> {
    /// Returns what is kept for a case.
    #[must_use]
    pub fn of(&self, plan: &CellPlan) -> Option<&T> {
        let mut all = self.0.iter();
        all.find(|(known, _)| known.repeats(plan))
            .map(|(_, kept)| kept)
    }

    /// Returns what is kept, each with the plan of the first cell of its case.
    pub fn iter(&self) -> impl Iterator<Item = (&CellPlan, &T)> {
        self.0.iter().map(|(plan, kept)| (plan, kept))
    }
}
