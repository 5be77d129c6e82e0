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
    let in_delays = format!("share of time in {ABOVE_WORDS}");
    let each = compare::targets(run, MANY).into_iter();
    let each = each.filter_map(|comparison| {
        let shares = |only_reads_clock: bool| -> Vec<(String, &Row)> {
            let own = panels.iter();
            let own = own.filter(|panel| panel.only_reads_clock() == only_reads_clock);
            let shares = own.filter_map(|panel| {
                let mut own = panel.native();
                let own = own.find(|member| member.case.plan.target.text == comparison.names[1]);
                let own = own.filter(|member| member.cpu.is_none());
                Some((panel.title(), own?.share()?.0))
            });
            shares.collect()
        };
        comparison.about(&[
            ("share of time lost", shares(true)),
            (&in_delays, shares(false)),
        ])
    });
    each.collect()
}
