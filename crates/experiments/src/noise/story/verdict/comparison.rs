//! What targets differ by in the time that they lose, as `tare compare` judges it.

use tare_figures::Run;
use tare_figures::compare;
use tare_figures::rows::Row;
use tare_pages::kit::sentence::MANY;

use super::super::ABOVE_WORDS;
use super::super::panels::Panel;

/// Compares the first target with each other one by the share of time that each workload loses.
///
/// Emulated targets are not compared: their figures say nothing of a machine's speed.
pub(super) fn comparisons(run: &Run, panels: &[Panel<'_>]) -> Vec<String> {
    let what = match panels.iter().all(Panel::only_reads_clock) {
        true => "share of time lost".to_owned(),
        false => format!("share of time lost or in {ABOVE_WORDS}"),
    };
    let each = compare::targets(run, MANY).into_iter();
    let each = each.filter_map(|comparison| {
        let shares = panels.iter().flat_map(|panel| {
            let mut own = panel.native();
            let own = own.find(|member| member.case.plan.target.text == comparison.names[1]);
            Some((panel.title(), own?.share()?.0))
        });
        comparison.about(&what, &shares.collect::<Vec<(String, &Row)>>())
    });
    each.collect()
}
