//! Which rows a gate is of.

use tare_results::model::{CellPlan, Plan};

use crate::analysis::Experiments;
use crate::group::distinct;
use crate::rows::naming::is_value;
use crate::rows::{Figure, Measure, Row, Rows};

/// The rows that a gate is of: `[experiment/]measure[.figure][{label=value,…}]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    pub(super) text: String,
    pub(super) experiment: Option<String>,
    pub(super) measure: String,
    pub(super) figure: Option<String>,
    pub(super) labels: Vec<(String, String)>,
}

impl Selector {
    /// Reads a selector.
    ///
    /// # Errors
    ///
    /// The problem with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (head, labels) = match text.split_once('{') {
            Some((head, rest)) => {
                let inside = rest
                    .strip_suffix('}')
                    .ok_or("its labels have no closing brace")?;
                (head.trim(), pairs(inside)?)
            }
            None => (text, Vec::new()),
        };
        let (experiment, rest) = match head.split_once('/') {
            Some((experiment, rest)) => (Some(experiment.to_owned()), rest),
            None => (None, head),
        };
        let (measure, figure) = match rest.split_once('.') {
            Some((measure, figure)) => (measure, Some(figure.to_owned())),
            None => (rest, None),
        };
        let is_name = |name: &str| {
            let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ' ');
            !name.is_empty() && name.chars().all(letter)
        };
        if !is_name(measure) || experiment.as_deref().is_some_and(|name| !is_name(name)) {
            return Err("it names no measure".to_owned());
        }
        Ok(Self {
            text: text.to_owned(),
            experiment,
            measure: measure.to_owned(),
            figure,
            labels,
        })
    }

    /// Returns what it names before its labels, without the experiment.
    pub(super) fn head(&self) -> String {
        let figure = self.figure.iter().map(|figure| format!(".{figure}"));
        self.measure.clone() + &figure.collect::<String>()
    }

    /// Returns whether a row is of its kind, but for the figure.
    fn is_of(&self, row: &Row) -> bool {
        let mut labels = self.labels.iter();
        self.experiment
            .as_ref()
            .is_none_or(|of| *of == row.experiment)
            && self.measure == row.measure.id
            && labels.all(|(key, value)| row.has(key, value))
    }

    /// Returns whether a row is of its kind.
    #[must_use]
    pub fn matches(&self, row: &Row) -> bool {
        self.figure_of(row.measure) == Some(row.figure) && self.is_of(row)
    }

    /// Returns a row of samples with one mode, if it is of the share of the slow one.
    pub(super) fn of_one_mode<'a>(&self, rows: &'a Rows) -> Option<&'a Row> {
        let is_slow = |row: &&Row| self.figure_of(row.measure) == Some(Figure::Slow);
        let mut rows = rows.0.iter().filter(is_slow);
        rows.find(|row| self.is_of(row) && row.modes.is_none())
    }

    /// Returns the measure that it names, if the experiment of a planned cell is its own and has
    /// it.
    pub(super) fn measure_of(
        &self,
        cell: &CellPlan,
        known: &dyn Experiments,
    ) -> Option<&'static Measure> {
        let own = self.experiment.as_ref();
        let measures = known.measures(&cell.experiment);
        let measures = measures.filter(|_| own.is_none_or(|own| *own == cell.experiment))?;
        measures.iter().find(|measure| measure.id == self.measure)
    }

    /// Returns whether a planned cell may have rows of its kind. A label that no cell of its
    /// experiment has may be one that its samples add, which is not known before.
    pub(super) fn may_be_of(&self, cell: &CellPlan, plan: &Plan) -> bool {
        let is_planned = |key: &str| {
            let mut others = plan
                .cells
                .iter()
                .filter(|other| other.experiment == cell.experiment);
            others.any(|other| other.labels.get(key).is_some())
        };
        let has = |(key, value): &(String, String)| match key.as_str() {
            "target" => cell.target.text == *value,
            "load" => {
                let mut loads = cell.phases.iter().chain([&cell.load]);
                loads.any(|load| load.as_str() == value)
            }
            "group" => cell.target.capabilities().id == value,
            "phase" if !cell.phases.is_empty() => {
                let mut phases = 0..cell.phases.len();
                phases.any(|phase| phase.to_string() == *value)
            }
            key => match cell.labels.get(key) {
                Some(own) => is_value(key, own, value),
                None => !is_planned(key),
            },
        };
        self.labels.iter().all(has)
    }

    /// Returns the figure that it names of a measure: the first, if it names none.
    pub(super) fn figure_of(&self, measure: &Measure) -> Option<Figure> {
        let mut figures = measure.figures.iter().copied();
        match &self.figure {
            Some(name) if *name == Figure::Slow.to_string() => {
                let is_distribution = figures.any(|figure| figure == Figure::MEDIAN);
                is_distribution.then_some(Figure::Slow)
            }
            Some(name) => figures.find(|figure| figure.to_string() == *name),
            None => figures.next(),
        }
    }

    /// Says what a run has, for a selector that matches nothing there.
    #[must_use]
    pub(crate) fn there(&self, rows: &Rows) -> String {
        let of = |pick: &dyn Fn(&Row) -> Option<String>| {
            distinct(rows.0.iter().filter_map(pick)).join(", ")
        };
        let figures = of(&|row| self.is_of(row).then(|| row.figure.to_string()));
        if !figures.is_empty() {
            return format!("{} has {figures}", self.measure);
        }
        let same = |row: &Row| row.measure.id == self.measure;
        if rows.0.iter().any(same) {
            let there = of(&|row| same(row).then(|| row.place()));
            return format!("{} was measured of {there}", self.measure);
        }
        let all = of(&|row| Some(format!("{}/{}", row.experiment, row.measure.id)));
        match all.is_empty() {
            true => "it has no figures".to_owned(),
            false => format!("it has {all}"),
        }
    }
}

/// Reads `key=value` pairs at commas; two commas are one that belongs to a value.
fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pieces = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match pieces.last_mut() {
            Some(piece) if c != ',' || chars.next_if_eq(&',').is_some() => piece.push(c),
            _ => pieces.push(String::new()),
        }
    }
    let pair = |piece: &String| {
        let (key, value) = piece.split_once('=')?;
        let (key, value) = (key.trim(), value.trim());
        Some((key.to_owned(), value.to_owned()))
    };
    let read = pieces
        .iter()
        .map(|piece| pair(piece).ok_or_else(|| format!("'{piece}' is not a label")));
    read.collect()
}
