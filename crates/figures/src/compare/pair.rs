//! One figure of both sides: its values in each repetition, and whether they can be compared.

use tare_stats::{Kind, Level, over_runs};

use crate::group::distinct;
use crate::modes;
use crate::rows::{Figure, Row};

/// One figure of both sides.
pub struct Pair<'a> {
    pub base: Figures<'a>,
    pub new: Figures<'a>,
}

/// One figure of one side, once for each repetition.
pub struct Figures<'a> {
    pub row: &'a Row,
    /// Its values, or why a repetition lacks it.
    pub values: Result<Vec<f64>, String>,
    /// Why its times and rates are not those of the planned rate in one of its runs.
    pub doubt: Option<&'static str>,
    /// How long each of its cells measured, in ns, as far as that is known.
    pub lengths: Vec<f64>,
}

impl Figures<'_> {
    /// Returns why a repetition lacks the figure.
    pub fn refused(&self) -> Option<String> {
        self.values.as_ref().err().cloned()
    }

    /// Returns its row, with what makes any of its runs doubtful.
    pub fn doubted_row(&self) -> Row {
        let mut row = self.row.clone();
        row.doubt = self.doubt;
        row
    }

    pub fn values(&self) -> Vec<f64> {
        self.values.clone().unwrap_or_default()
    }

    fn repeats(&self) -> bool {
        let values = self.values();
        !values.is_empty() && values.windows(2).all(|two| two[0] == two[1])
    }
}

impl Pair<'_> {
    /// Returns why times and rates of a side are not those of the planned rate.
    pub fn doubt(&self) -> Option<String> {
        let doubt = self.base.doubt.or(self.new.doubt)?;
        Some(format!("{doubt}, so that it is not of that rate"))
    }

    /// Returns why a quantile says nothing of a shift: it is once in one mode and once in the
    /// other, so that it jumps where their shares hardly change, and the other side's lies between.
    pub fn between_modes(&self) -> Option<String> {
        let sides = [&self.base, &self.new];
        match self.base.row.figure {
            Figure::Slow if !self.has_same_modes()? => {
                let [base, new] = sides.map(|side| Some(modes::both(side.row, side.row.modes?)));
                return Some(format!(
                    "its modes are not the same two: {}, and {}",
                    base?, new?
                ));
            }
            Figure::Quantile(_) => {}
            _ => return None,
        }
        let spans = sides.map(|side| {
            let values = side.values();
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let modes = side.row.modes.filter(|_| side.row.is_between_modes());
            modes.map_or((least, most), |modes| (modes.low, modes.high))
        });
        let overlap = spans[0].0.max(spans[1].0) <= spans[0].1.min(spans[1].1);
        let between = sides.into_iter().find(|side| side.row.is_between_modes());
        let of = between
            .filter(|_| overlap)
            .or_else(|| self.in_same_modes())?;
        let has_both = self.has_same_modes() == Some(true);
        let instead = format!(": compare {}.{}", of.row.measure.id, Figure::Slow);
        let is_between = |side: &Figures<'_>| side.row.is_between_modes();
        let are_both = is_between(&self.base) && is_between(&self.new);
        let on = if are_both { "both sides" } else { "one side" };
        let named = match are_both {
            true => vec![self.base.row, self.new.row],
            false => vec![of.row],
        };
        let named = named
            .into_iter()
            .filter_map(|row| Some(modes::both(row, row.modes?)));
        let those = distinct(named).join("; and ");
        Some(format!(
            "on {on} it may be in either of two modes, {those}{}",
            if has_both { &instead } else { "" }
        ))
    }

    /// Returns whether the modes of both sides are the same two, so that they say something of one
    /// another; `None` if one side has but one.
    fn has_same_modes(&self) -> Option<bool> {
        let (modes, new_modes) = (self.base.row.modes?, self.new.row.modes?);
        let (least, most) = (
            modes.border.min(new_modes.border),
            modes.border.max(new_modes.border),
        );
        Some(modes.low.max(new_modes.low) <= least && most < modes.high.min(new_modes.high))
    }

    /// Returns BASE's figure if both sides have the same two modes, and one side's is in the one and
    /// the other's in the other.
    fn in_same_modes(&self) -> Option<&Figures<'_>> {
        let is_same = self.has_same_modes()?;
        let is_slow = |side: &Figures<'_>| {
            let border = side.row.modes.map_or(0.0, |modes| modes.border);
            let values = side.values();
            let count = values.iter().filter(|value| **value > border).count();
            (count > 0, count < values.len())
        };
        let [base, new] = [&self.base, &self.new].map(is_slow);
        let jumps = (base.0 || new.0) && (base.1 || new.1);
        (is_same && jumps).then_some(&self.base)
    }

    /// Returns whether another measure has the same times in all repetitions: that of the response
    /// latency where no activation was missed.
    pub fn is_same(&self, other: &Self) -> bool {
        let (own, of) = (self.base.row, other.base.row);
        let is_of_times = matches!(own.unit, "ns" | "cycles") || own.figure == Figure::Slow;
        let is_same_place = own.experiment == of.experiment
            && own.target == of.target
            && own.load == of.load
            && own.labels == of.labels;
        let has_same = |own: &Figures<'_>, of: &Figures<'_>| match (&own.values, &of.values) {
            (Ok(own), Ok(of)) => !own.is_empty() && own == of,
            _ => false,
        };
        own.figure == of.figure
            && own.unit == of.unit
            && is_of_times
            && is_same_place
            && has_same(&self.base, &other.base)
            && has_same(&self.new, &other.new)
    }

    /// Returns how many times as long a run of NEW measured as one of BASE, by their medians;
    /// `None` if that is unknown.
    pub fn times_as_long(&self) -> Option<f64> {
        let base = median(&self.base.lengths).filter(|base| *base > 0.0)?;
        Some(median(&self.new.lengths)? / base)
    }

    /// Says whether both sides were counted in instructions and repeat themselves.
    pub fn is_exact(&self) -> bool {
        let counted = |row: &Row| row.counts_instructions;
        counted(self.base.row) && counted(self.new.row) && self.base.repeats() && self.new.repeats()
    }
}

/// Returns the median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let over = over_runs(Kind::Order, values, Level::P95);
    over.ok().map(|over| over.estimate)
}
