//! Sentences that list figures with what they are of.

use crate::plain::{MANY, sure};
use tare_figures::rows::Row;

/// Lists figures, each with its text: all of a few; of many the least and the greatest, and their number. Nothing if there
/// is none.
#[must_use]
pub fn few_or_ends(figures: &[(f64, String)]) -> String {
    match ends(figures) {
        Some((least, greatest)) if figures.len() > MANY => {
            format!("{least} to {greatest}, {} in all", figures.len())
        }
        _ => {
            let all: Vec<&str> = figures.iter().map(|(_, text)| text.as_str()).collect();
            all.join(", ")
        }
    }
}

/// Returns the texts of the least and the greatest figure; `None` if there is none.
#[must_use]
pub fn ends(figures: &[(f64, String)]) -> Option<(&str, &str)> {
    let by_figure = |a: &&(f64, String), b: &&(f64, String)| a.0.total_cmp(&b.0);
    let (least, greatest) = (
        figures.iter().min_by(by_figure)?,
        figures.iter().max_by(by_figure)?,
    );
    Some((&least.1, &greatest.1))
}

/// Joins the texts of the first of many, if there is any: `begin` first, `between` them, and `end` last.
#[must_use]
pub fn joined(
    begin: &str,
    texts: impl IntoIterator<Item = String>,
    between: &str,
    end: &str,
) -> Option<String> {
    let texts: Vec<String> = texts.into_iter().take(MANY).collect();
    (!texts.is_empty()).then(|| format!("{begin}{}{end}", texts.join(between)))
}

/// Says how sure the first figures are, each with its text: `Longest of a run on process: …`. A figure that several have in
/// common is said once.
#[must_use]
pub fn certainty<'a>(figures: impl IntoIterator<Item = (String, &'a Row)>) -> Vec<String> {
    let figures = figures.into_iter().take(MANY);
    let mut sentences: Vec<String> = figures.map(|(what, row)| sure(&what, row)).collect();
    sentences.dedup();
    sentences
}
