//! The targets of one run against each other, in sentences of the run's own report.
//!
//! They come from the comparison that `tare compare RUN --by target` prints, of all figures, so
//! that the report and the comparison of one run can't disagree.

use super::verdict::inconclusive;
use super::{ComparedRow, Comparison, compare, sides};
use crate::format::Numbers;
use crate::group::distinct;
use crate::rows::Row;
use crate::run::Run;
use crate::words;

/// The number of figures that a sentence names.
const NAMED: usize = 6;

/// Compares the first target that a machine executed with each other one; with none if there are
/// more than `most` targets, of which no sentence names each.
#[must_use]
pub fn targets(run: &Run, most: usize) -> Vec<Comparison> {
    let pairs = sides::within("target", "", run, |row| !row.emulated).unwrap_or_default();
    let few = pairs.iter().filter(|_| pairs.len() < most);
    few.filter_map(|(base, new)| compare(base, new).ok())
        .collect()
}

impl Comparison {
    /// Names the load of one of NEW's rows, if there are several: ` under dd`, ` without a load`.
    #[must_use]
    pub fn under(&self, row: &Row) -> String {
        let mut all = self.rows.iter();
        match all.any(|own| own.new_load != row.load) {
            true => words::under(&row.load),
            false => String::new(),
        }
    }

    /// Says what it shows of some of NEW's rows, each with its name, below what they are figures of:
    /// `podman against process, share of time lost: worse for gap (+2.1 pp, adjusted p 0.01) (…)`.
    /// `None` if it has none of them.
    #[must_use]
    pub fn about(&self, figures: &[(&str, Vec<(String, &Row)>)]) -> Option<String> {
        let found = figures.iter().map(|(what, rows)| {
            let rows = rows.iter().filter_map(|(name, row)| {
                let mut own = self.rows.iter();
                Some((name.as_str(), own.find(|own| own.of.is_figure_of(row))?))
            });
            ((*what).to_owned(), Vec::from_iter(rows))
        });
        let mut found: Vec<(String, Vec<(&str, &ComparedRow)>)> = found.collect();
        found.retain(|(_, rows)| !rows.is_empty());
        if found.is_empty() {
            return None;
        }
        let [base, new] = &self.names;
        if !self.can_tell {
            let rows = found.iter().flat_map(|(_, rows)| rows);
            let loads = distinct(rows.map(|(_, row)| self.under(&row.of)));
            let loads = words::list(&loads).replace("  ", " ");
            let whats = found.into_iter().map(|(what, _)| what);
            let whats = words::list(&Vec::from_iter(whats));
            return Some(format!(
                "{new} against {base}, {whats}{loads}: {}",
                inconclusive(self)
            ));
        }
        let parts = found
            .iter()
            .map(|(what, rows)| format!("{what}: {}", judged(rows)));
        let parts = Vec::from_iter(parts).join("; ");
        let tests = words::counted(Numbers::PLAIN, self.tests, "figure", "figures");
        let mut said = format!(
            "{new} against {base}, {parts} ({tests} judged together, as by `tare compare --by target`)."
        );
        let rows = found.iter().flat_map(|(_, rows)| rows);
        let mut loads = rows.filter(|(_, row)| !row.new_load.is_idle());
        if loads.next().is_some() {
            for load in &self.more_work {
                said.push_str(&format!(" {load}"));
            }
        }
        Some(said)
    }
}

/// Lists rows by what was found of them: `worse for gap (…); not judged for copy (…)`.
fn judged(rows: &[(&str, &ComparedRow)]) -> String {
    let listed = |result: Judged| {
        let own = rows.iter().filter(|(_, row)| row.judged_as() == result);
        let mut own: Vec<String> = own.map(|(name, row)| item(name, row)).collect();
        let more = own.len().saturating_sub(NAMED);
        own.truncate(NAMED);
        if more > 0 {
            own.push(format!("{more} more"));
        }
        let result = result.words();
        let first = own.first()?;
        // Alone, a load or a rate names where.
        let is_place = ["(", "without a load", "under ", "at "].iter();
        let of = match is_place.into_iter().any(|begin| first.starts_with(begin)) {
            true => "",
            false => "for ",
        };
        Some(format!("{result} {of}{}", words::list(&own)))
    };
    let all = [Judged::Worse, Judged::Better, Judged::NotShown, Judged::Not].map(listed);
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The result of a comparison for a figure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Judged {
    Worse,
    Better,
    NotShown,
    Not,
}

impl Judged {
    fn words(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Better => "better",
            Self::NotShown => "not shown to differ",
            Self::Not => "not judged",
        }
    }
}

impl ComparedRow {
    fn judged_as(&self) -> Judged {
        match (self.differs, self.is_worse) {
            (true, true) => Judged::Worse,
            (true, false) => Judged::Better,
            _ if self.shift.is_some() => Judged::NotShown,
            _ => Judged::Not,
        }
    }
}

/// Writes the name of a figure with what was found:
/// `gap under dd (median difference −20.1 pp, adjusted p 0.022)`.
fn item(name: &str, row: &ComparedRow) -> String {
    let shift = row.shift_in_words();
    let found = match row.judged_as() {
        Judged::Not => row.refused.clone().unwrap_or_default(),
        // A shift that may be chance may have the other sign than the figures of the report.
        Judged::NotShown if !row.exact => format!("adjusted p {}", row.chance()),
        _ if row.exact => format!("{shift}, exact"),
        // The figures of the report are other statistics, so their difference may be another.
        _ => format!("median difference {shift}, adjusted p {}", row.chance()),
    };
    format!("{name} ({found})").trim_start().to_owned()
}
