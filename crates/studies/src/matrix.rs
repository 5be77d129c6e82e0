//! What can't be measured although every word of a study is right.

use std::collections::HashMap;
use std::ops::Range;

use tare_lab::ExperimentError;
use tare_lab::plan::{Starts, at_most};
use tare_results::model::{CellPlan, Schedule};
use tare_results::target::TargetSpec;
use tare_results::work::Work;
use toml::de::DeTable;

use crate::study::{Study, Variant};
use crate::value::Reader;

/// Finds combinations that can't be, or are there twice, or not at all, and says where in the file.
pub(crate) fn check(
    reader: &mut Reader<'_>,
    table: &DeTable<'_>,
    study: &Study,
    exclusions: &[Range<usize>],
) {
    let mut used = vec![false; exclusions.len()];
    let mut seen: HashMap<(TargetSpec, Schedule, Work), usize> = HashMap::new();
    let mut all: u64 = 0;
    for (number, part) in (1..).zip(&study.parts) {
        // Which CPU is chosen has no bearing on what is possible.
        let cells = match part.combinations(0, Starts::Guessed) {
            Ok(cells) => cells,
            Err(error) => {
                let place = blamed(table, number, &error).unwrap_or_else(|| part.place.clone());
                reader.wrong(place, error.to_string());
                continue;
            }
        };
        let mut left = 0;
        for cell in cells {
            let mut is_out = false;
            for (excluded, used) in study.exclusions.iter().zip(&mut used) {
                if excluded.covers(&cell) {
                    (is_out, *used) = (true, true);
                }
            }
            if is_out {
                continue;
            }
            left += 1;
            let CellPlan {
                target, load, work, ..
            } = &cell;
            let key = (target.clone(), load.clone(), work.clone());
            match seen.get(&key) {
                Some(first) if *first != number => {
                    let text = format!(
                        "this experiment measures '{}' just as experiment {first} does; use 'runs' for \
                         repetitions",
                        cell.label()
                    );
                    return reader.wrong(part.place.clone(), text);
                }
                _ => {
                    seen.insert(key, number);
                }
            }
        }
        if left == 0 {
            let text = "every combination of this experiment is excluded by an [[exclude]]";
            reader.wrong(part.place.clone(), text);
        }
        all = all.saturating_add(left * u64::from(part.runs));
    }
    if let Err(error) = at_most(all) {
        let place = study.parts.first().map_or(0..0, |part| part.place.clone());
        reader.wrong(place, error.to_string());
    }
    if reader.failed() {
        return;
    }
    // Combinations that the shorter variant lacks may still be excluded for the full one.
    if study.variant == Variant::Full {
        for (place, _) in exclusions.iter().zip(&used).filter(|(_, used)| !**used) {
            let text = "this exclusion fits no combination: a word may be wrong, or the \
                        combination is not in the matrix";
            reader.wrong(place.clone(), text);
        }
    }
}

/// Finds the value that an experiment complains of.
fn blamed(table: &DeTable<'_>, number: usize, error: &ExperimentError) -> Option<Range<usize>> {
    let name = match error {
        ExperimentError::OutOfBounds { refusal, .. } => refusal.what,
        ExperimentError::TimeOutOfBounds { what, .. } => what,
        ExperimentError::NoEffect { parameter, .. } => parameter,
        _ => return None,
    };
    let experiments = table.get("experiment")?.get_ref().as_array()?;
    let experiment = experiments
        .get(number.checked_sub(1)?)?
        .get_ref()
        .as_table()?;
    Some(experiment.get(name)?.span())
}
