//! The tables of primitives, in the order of the catalogue.

use maud::Markup;
use tare_figures::Run;
use tare_figures::group::sort_in_groups;
use tare_figures::rows::{Figure, Row, labelled};
use tare_measured::primitives::linux::{all, find};
use tare_pages::html::parts::Table;
use tare_pages::tables::{Column, Line, Tabled};
use tare_results::model::Labels;

use super::super::{AREA, BANDWIDTH, PRIMITIVE, SHARE};
use super::measures::id_of;

const COSTS: &[Column] = &[
    Column::new("expected", "expected", Figure::Value)
        .worked_out()
        .beside(),
    Column::new("cost", "cost", Figure::Best).worked_out(),
    Column::new("95 % interval", "cost", Figure::Best)
        .worked_out()
        .interval()
        .page_only(),
    Column::new("times the\nexpected", "ratio", Figure::MEDIAN)
        .beside()
        .spared(1),
    Column::new("single,\np50", "single", Figure::MEDIAN),
    Column::new("p99", "single", Figure::P99).spared(2),
    Column::new("max", "single", Figure::Max).page_only(),
    Column::new("mean in\na row", "in-a-row", Figure::Mean)
        .worked_out()
        .spared(3),
];

const BANDWIDTHS: &[Column] = &[
    Column::new("expected", "expected-bandwidth", Figure::Value).beside(),
    Column::new("best of\na run", "bandwidth", Figure::Best),
    Column::new("95 % interval", "bandwidth", Figure::Best)
        .interval()
        .page_only(),
    Column::new("times the\nexpected", "ratio", Figure::MEDIAN).beside(),
    Column::new("p50", "bandwidth", Figure::MEDIAN),
];

const SHARES: &[Column] = &[
    Column::new("expected", "expected-share", Figure::Value).beside(),
    Column::new("share", "share", Figure::MEDIAN),
    Column::new("times the\nexpected", "ratio", Figure::MEDIAN).beside(),
];

/// Returns the tables.
pub(super) fn tables() -> Vec<Tabled> {
    vec![
        Tabled::new(
            "What primitives cost",
            "Cost is the intrinsic one: the least of a run (the median of the runs), without stamps and loops around it. Single \
                   ones are timed one by one, with all that comes in between. Quantiles are medians of the runs, means the mean of \
                   the runs' means. Cost is the difference of two times, so it may be above the p50 of single ones.",
            COSTS,
        ),
        Tabled::new(
            "Bandwidths",
            "Bytes that a program asks for; what a write fetches before is not counted. Each figure is the median of the runs.",
            BANDWIDTHS,
        ),
        Tabled::new("Shares of a CPU", "", SHARES),
    ]
}

/// Puts the lines of a table in the order of the catalogue, target by target.
pub(super) fn arrange(lines: &mut [Line<'_>]) {
    let target = |line: &Line<'_>| (line.of.target.clone(), line.of.load.clone());
    sort_in_groups(lines, target, |line| place(&line.labels));
}

/// Returns the place of a primitive in the catalogue.
pub(super) fn place(labels: &Labels) -> Option<usize> {
    all().position(|primitive| primitive.id == id_of(labels))
}

/// Names a line by its primitive, with its target and area above it.
pub(super) fn name(run: &Run, line: &Line<'_>) -> (Option<String>, String) {
    let primitive = find(id_of(&line.labels));
    let several = |of: fn(&Row) -> &str| run.rows.0.iter().any(|row| of(row) != of(line.of));
    let is_one_of_several = several(|row| &row.target) || several(|row| row.load.as_str());
    let place = || format!("{}{}", line.target(), line.of.load.under());
    let mut heading = Vec::from_iter(is_one_of_several.then(place));
    heading.extend(primitive.map(|primitive| primitive.area.name().to_owned()));
    let heading = (!heading.is_empty()).then(|| heading.join(" · "));
    (heading, named(&line.labels))
}

/// Names a primitive with what distinguishes it: `fork memory=64M`.
pub(super) fn named(labels: &Labels) -> String {
    let id = labels.get(PRIMITIVE);
    let rest = labels
        .iter()
        .filter(|(key, _)| ![PRIMITIVE, AREA].contains(key));
    let rest = rest.map(|(key, value)| labelled(labels, key, value));
    let words: Vec<String> = id.map(str::to_owned).into_iter().chain(rest).collect();
    words.join(" ")
}

/// Lists what was expected, with its reasoning; `None` if nothing was.
pub(super) fn reasoning(run: &Run) -> Option<Markup> {
    let mut table = Table::new(["", "expected", "why"]);
    table.ends_in_prose = true;
    let mut seen: Vec<&Labels> = Vec::new();
    let cells = run.cells.iter().flat_map(|cell| &cell.plan.expected);
    let mut cells: Vec<_> = cells.collect();
    cells.sort_by_key(|expected| place(&expected.labels));
    for expected in cells {
        if seen.contains(&&expected.labels) {
            continue;
        }
        seen.push(&expected.labels);
        let unit = match expected.measure.as_str() {
            BANDWIDTH => "bytes/s",
            SHARE => "1",
            _ => "ns",
        };
        let value = tare_figures::rows::written(expected.value, unit);
        table.row([named(&expected.labels), value, expected.why.clone()]);
    }
    (!table.rows.is_empty()).then(|| table.render())
}
