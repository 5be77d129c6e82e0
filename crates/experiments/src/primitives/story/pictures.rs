//! Pictures of primitives: expected and measured cost, latency by working set, and by
//! working set and stride.

use maud::{Markup, html};
use tare_figures::Run;
use tare_figures::mark::Mark;
use tare_figures::rows::{Figure, Row, written};
use tare_measured::primitives::linux::find;
use tare_pages::html::dot_plot::{self, Entry};
use tare_pages::html::parts::{self, N};
use tare_pages::kit::curve::{Curve, Dimension, Line, Point};
use tare_pages::kit::heat_map::HeatMap;

use super::super::NAME;
use super::measures::id_of;
use super::tables::{named, place};
use super::{is_same, known, machine};

/// Draws the expected next to the measured cost of the wanted primitives, of the first target and
/// load that have both; `None` if none has.
pub(super) fn expected(run: &Run, title: &str, is_wanted: impl Fn(&Row) -> bool) -> Option<Markup> {
    let costs: Vec<&Row> = known(run, "cost", Figure::Best)
        .filter(|(row, ns)| *ns > 0.0 && is_wanted(row))
        .map(|(row, _)| row)
        .collect();
    let mut expected: Vec<(&Row, f64)> = known(run, "expected", Figure::Value).collect();
    expected.retain(|(row, _)| costs.iter().any(|cost| is_same(cost, row)));
    let (first, _) = *expected.first()?;
    expected.retain(|(row, _)| row.target == first.target && row.load == first.load);
    expected.sort_by_key(|(row, _)| place(&row.labels));
    let mut entries: Vec<Entry> = Vec::new();
    for (row, value) in expected {
        let primitive = find(id_of(&row.labels));
        let cost = costs.iter().find(|cost| is_same(cost, row));
        let Some((primitive, cost)) = primitive.zip(cost) else {
            continue;
        };
        let write = |ns| written(ns, "ns");
        let mut marks = Vec::from_iter(Mark::of(cost, 0, |ns| ns, write));
        marks.push(Mark::expected(value, &write(value)));
        entries.push(Entry {
            group: primitive.area.name().to_owned(),
            name: named(&row.labels),
            marks,
        });
    }
    if entries.is_empty() {
        return None;
    }
    let plot = dot_plot::draw(
        &entries,
        "Expected and measured cost of each primitive".to_owned(),
        ("cost", f64::INFINITY),
        |ns| N.ns_tick(ns),
    );
    let figure = parts::Figure {
        title: title.to_owned(),
        read: format!(
            "On {}{}. A dot is the intrinsic cost as it was measured, the median of the runs; a diamond is its expected cost.",
            first.marked_target(),
            first.load.under()
        ),
        legend: parts::legend(Vec::new(), dot_plot::symbols(&entries, "expected")),
        plot: &plot,
        table: None,
    };
    Some(figure.render())
}

/// Draws the curve and the map of latencies; `None` without any.
pub(super) fn memory(run: &Run) -> Option<Markup> {
    let mut targets: Vec<&Row> = Vec::new();
    for (row, _) in known(run, "latency", Figure::Best).filter(|(row, _)| row.load.is_idle()) {
        if targets.iter().all(|of| of.target != row.target) {
            targets.push(row);
        }
    }
    let curve = curve(run, &targets);
    let maps = targets.iter().filter_map(|of| map(run, of));
    let pictures: Vec<Markup> = curve.into_iter().chain(maps).collect();
    (!pictures.is_empty()).then(|| html! { @for picture in pictures { (picture) } })
}

/// Returns the least latency of all runs, of which the table of levels is made.
fn least(row: &Row) -> Option<f64> {
    let least = row.over.as_ref().ok()?.lowest;
    (least > 0.0).then_some(least)
}

/// Returns the least latencies of a target by working set, on one size of pages.
fn points(run: &Run, target: &str, pages: &str) -> Vec<Point> {
    let rows = run.rows.of(NAME, "latency").filter(|row| {
        let is_own = row.target == target && row.load.is_idle() && row.has("pages", pages);
        is_own && id_of(&row.labels) == "latency"
    });
    let points = rows.filter_map(|row| {
        let size = row.labels.number("size")?;
        Some(Point {
            name: N.bytes(size),
            at: (size as f64, least(row)?),
            ..Point::default()
        })
    });
    let mut points: Vec<Point> = points.collect();
    points.sort_by(|a, b| a.at.0.total_cmp(&b.at.0));
    points
}

/// Draws latencies by working set; `None` without any.
fn curve(run: &Run, targets: &[&Row]) -> Option<Markup> {
    let pages = [("2M", "huge pages"), ("4K", "pages of 4 KiB")];
    let lines = targets.iter().flat_map(|of| {
        let target = of.marked_target();
        pages.map(|(size, name)| (format!("{target}, {name}"), points(run, &of.target, size)))
    });
    let lines = Line::each(lines.filter(|(_, points)| points.len() > 1));
    let sizes = lines
        .iter()
        .flat_map(|line| &line.points)
        .map(|point| point.at.0);
    let (least, most) = sizes.fold((f64::INFINITY, 0.0_f64), |(least, most), size| {
        (least.min(size), most.max(size))
    });
    let octaves = (10..40).step_by(2).map(|power| 2_f64.powi(power));
    let across = Dimension {
        ticks: octaves
            .filter(|size| (least..=most).contains(size))
            .collect(),
        ..Dimension::logarithmic(
            "working set",
            |size| N.bytes(size as u64),
            |size| N.bytes(size as u64),
        )
    };
    let upward = Dimension::logarithmic("a load takes", |ns| N.ns_tick(ns), |ns| N.ns(ns, None));
    let caches = machine::caches(run);
    let caches = caches.iter();
    let bounds = caches.map(|cache| (cache.size_bytes as f64, format!("L{} claimed", cache.level)));
    let curve = Curve {
        title: "Latency by working set",
        read: "Loads that wait for each other, in one random cycle through all lines, in cells without a load; of each size the least latency of all runs, as in the table of what is claimed. Where a line rises, a level of the memory hierarchy \
               ends; the broken lines are where the machine says that it does.",
        bounds: bounds.collect(),
        ..Curve::new(lines, across, upward)
    };
    curve.render()
}

/// Draws latencies by working set and stride as shades; `None` without any.
fn map(run: &Run, of: &Row) -> Option<Markup> {
    let rows = run.rows.of(NAME, "latency");
    let own = rows.filter(|row| {
        row.target == of.target && row.load.is_idle() && id_of(&row.labels) == "latency-stride"
    });
    let tiles = own.filter_map(|row| {
        let [size, stride] = ["size", "stride"].map(|key| row.labels.number(key));
        Some(([size?, stride?], least(row)?))
    });
    let mut map = HeatMap {
        title: format!(
            "Latency by working set and stride on {}",
            of.marked_target()
        ),
        read: String::new(),
        axes: ["working set", "stride"],
        tiles: tiles.collect(),
        labels: [|bytes| N.bytes(bytes); 2],
        write: |ns| N.ns(ns, None),
    };
    let (low, high) = map.ends()?;
    map.read = format!(
        "One load after the other, a stride apart; of each the least latency of all runs. The strongest tile takes {}, the faintest {}. Below the size of a line, several \
         loads share one; long strides that stay fast are foreseen by prefetchers.",
        N.ns(high, None),
        N.ns(low, None)
    );
    map.render()
}
