//! The share of time lost in each run: how much the runs of a case differ.

use maud::Markup;
use tare_report::html::parts::{Figure, N, legend_of};
use tare_report::rows::{Figure as Of, Row};
use tare_report::svg::{Axis, Plot, Scale, Side, colour};

use super::super::panels::{Member, Panel};

/// Renders the shares by run; `None` with a single run. Those above the higher limit are hollow.
pub(super) fn by_run(panel: &Panel<'_>) -> Option<Markup> {
    let members = panel.members.iter().enumerate();
    let mut lines: Vec<(usize, &Row)> = members
        .flat_map(|(series, member)| rows(member).map(move |row| (series, row)))
        .collect();
    lines.sort_by_key(|(series, row)| (*series, is_hollow(row)));
    let runs = || lines.iter().flat_map(|(_, row)| &row.each);
    let mut blocks: Vec<u32> = runs().map(|run| run.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let ([first, .., last], what) = (blocks.as_slice(), what(panel)) else {
        return None;
    };
    let mut plot = Plot::new(240.0, format!("{what} in each run of {}", panel.title()));
    let shares: Vec<f64> = runs()
        .filter_map(|run| Some(run.carried.value()? * 100.0))
        .collect();
    let upward = Scale::with_a_place_for_zero(&shares, plot.upwards());
    let across = Scale::linear(
        (f64::from(*first) - 0.5, f64::from(*last) + 0.5),
        plot.across(),
    );
    for (series, row) in &lines {
        let (hollow, aside) = match is_hollow(row) {
            true => (" hollow", 7.0),
            false => ("", 0.0),
        };
        for run in &row.each {
            let Some(share) = run.carried.value() else {
                continue;
            };
            let said = format!("{}, run {}: {}", named(row), run.block, N.percent(share));
            let at = (
                across.at(f64::from(run.block)) + aside,
                upward.at(share * 100.0),
            );
            plot.circle(&format!("mark{hollow} {}", colour(*series)), at, 4.0, &said);
        }
    }
    let label = |v: f64| N.with_unit(&N.tick(v), "%");
    plot.axis(Axis::new(Side::Left, upward, what, upward.ticks(5), label));
    let ticks = blocks.iter().map(|block| f64::from(*block));
    plot.axis(Axis::new(Side::Bottom, across, "run", ticks, |v| N.tick(v)));
    let figure = Figure {
        title: "From run to run".to_owned(),
        read: "Each mark is one run. How far they lie apart is how sure the result is: intervals are made from these marks, \
               not from the samples within a run."
            .to_owned(),
        legend: legend_of(lines.iter().map(|(series, row)| {
            let hollow = if is_hollow(row) { " hollow" } else { "" };
            (format!("{}{hollow}", colour(*series)), named(row))
        })),
        plot: &plot,
        table: None,
    };
    Some(figure.render())
}

fn what(panel: &Panel<'_>) -> &'static str {
    match panel.is_gap() {
        true => "time lost",
        false => "time in delays",
    }
}

fn rows<'a>(member: &Member<'a>) -> impl Iterator<Item = &'a Row> {
    let measure = if member.is_gap() { "lost" } else { "delayed" };
    let rows: Vec<&Row> = member.case.rows().collect();
    let of = move |row: &&Row| row.measure.id == measure && row.figure == Of::Share;
    rows.into_iter().filter(of)
}

fn is_hollow(row: &Row) -> bool {
    row.has("above", "2000cycles")
}

fn named(row: &Row) -> String {
    match row.labels.get("above") {
        Some("2000cycles") => format!("{}, above 2,000 cycles", row.marked_target()),
        Some(_) => format!("{}, above 400 cycles", row.marked_target()),
        None => row.marked_target(),
    }
}
