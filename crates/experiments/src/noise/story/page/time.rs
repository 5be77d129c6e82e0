//! Durations over time: every run, every listed delay, every maximum.

use maud::Markup;
use tare_figures::interval::Time;
use tare_figures::words;
use tare_pages::html::parts::N;
use tare_pages::kit::over_time::{OverTime, Strip};
use tare_pages::kit::sentence::MANY;
use tare_results::model::Labels;

use super::super::panels::Panel;

/// The height of the line with a target's name, in pixels.
const NAME: f64 = 22.0;

/// Renders all runs of a panel over time, in about `budget` bytes; `None` if nothing was drawn.
pub(super) fn over_time(panel: &Panel<'_>, budget: usize) -> Option<Markup> {
    let strips = panel.members.iter().map(|member| Strip {
        name: format!(
            "{} · {}",
            member.group().capabilities().heading,
            member.name()
        ),
        nothing: ": nothing to draw, there was no gap",
        target: member.name(),
        tracks: &member.pictures.runs,
        ..Strip::default()
    });
    let (read, when_full) = reading(panel);
    let picture = OverTime {
        title: match panel.only_reads_clock() {
            true => format!("Interruptions over time{}", panel.plan().load.under()),
            false => format!("{} over time", panel.title()),
        },
        read,
        when_full,
        since: "since the first stamp",
        strips: strips.collect(),
        heights: match panel.members.len() {
            1 => (270.0, 0.0),
            ..=MANY => (120.0, NAME),
            _ => (52.0, NAME),
        },
        side_by_side: true,
        budget,
        ..OverTime::default()
    };
    picture.render(Some(picture.peaks("repetition")))
}

/// Says what is drawn, and what is known where the list of delays was full.
fn reading(panel: &Panel<'_>) -> (String, &'static str) {
    let first = &panel.members[0].case;
    if panel.only_reads_clock() {
        let read = "Each dot is one interruption: when it came, and how long it lasted. Dots at one height and at even \
                    distances have one periodic cause.";
        return (read.to_owned(), "nothing is known of single gaps");
    }
    let threshold = first.records().next();
    let threshold = threshold.and_then(|record| record.value("threshold", &Labels::default()));
    let threshold = Time::new(threshold.unwrap_or_default(), first.hz());
    let read = format!(
        "Each dot is one repetition that took over {} more than the mean. The band holds all others, from the shortest to \
         the longest of each moment, the line is their mean.",
        words::both(N, threshold, None)
    );
    (read, "only the longest repetition of each moment is known")
}
