//! The one result that has just arrived, in one line, for the progress display.

use tare_results::model::{Cell, Outcome, Samples};

use crate::analysis::{CellFigures, Time, figures_of};
use crate::format::Numbers;
use crate::{wakeup, words};

/// Says in one short line what a cell has shown.
///
/// A cell that failed, or whose samples contradict each other, gives the reason.
#[must_use]
pub fn live(cell: &Cell, samples: &Samples) -> String {
    let label = cell.plan.label();
    match &cell.outcome {
        Outcome::Failed { reason } => return format!("{label}: failed: {reason}"),
        Outcome::LeftOut { reason } => return format!("{label}: left out: {reason}"),
        Outcome::Done { record, .. } if wakeup::is_wakeup(&cell.plan) => {
            return format!("{label}: {}", wakeup::live::live(cell, record, samples));
        }
        Outcome::Done { .. } => {}
    }
    match figures_of(cell, samples) {
        Ok((figures, step)) => format!("{label}: {}", in_short(&figures, step)),
        Err(reason) => format!("{label}: {reason}"),
    }
}

fn in_short(figures: &CellFigures, step: Time) -> String {
    const N: Numbers = Numbers::PLAIN;
    let step = Some(step);
    match figures {
        CellFigures::Gap(gap) => {
            let Some(longest) = gap.longest else {
                return format!(
                    "no gap of {} or longer",
                    words::time(N, gap.threshold, step)
                );
            };
            let often = match gap.gaps_per_second {
                Some(rate) => N.rate(rate),
                None => words::counted(N, gap.gaps, "gap", "gaps"),
            };
            format!(
                "{} lost, {often}, longest {}",
                N.percent(gap.share_lost),
                words::time(N, longest, step)
            )
        }
        CellFigures::Timed(timed) => {
            let mut text = format!(
                "median {}, longest {}",
                words::both(N, timed.raw.median, step),
                words::time(N, timed.raw.max, step)
            );
            if let Some((limit, share)) = timed
                .shares
                .first()
                .and_then(|figure| Some((figure.above_cycles, figure.share?)))
            {
                let limit = N.count(limit);
                text.push_str(&format!(
                    ", {} in delays > {limit} cycles",
                    N.percent(share)
                ));
            }
            text
        }
    }
}
