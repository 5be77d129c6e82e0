//! Pictures of primitives: what was expected beside what it took, latency by working set, and by working set and stride.

use maud::{Markup, html};
use tare_figures::Run;
use tare_figures::mark::Mark;
use tare_figures::rows::{Figure, Row, written};
use tare_pages::html::dot_plot::{self, Entry};
use tare_pages::html::parts::{self, N};
use tare_pages::svg::{Axis, Path, Plot, Scale, Side, colour};

use super::super::NAME;
use super::measures::id_of;
use super::tables::named;
use super::{estimate, known, machine};

/// The height of a picture of curves, in pixels.
const HEIGHT: f64 = 360.0;

/// Draws what was expected beside what it took, of those that are wanted; `None` if nothing was expected of them.
pub(super) fn expected(run: &Run, is_wanted: impl Fn(&Row) -> bool) -> Option<Markup> {
    let costs: Vec<(&Row, f64)> = known(run, "cost", Figure::Min)
        .filter(|(_, ns)| *ns > 0.0)
        .collect();
    let mut entries: Vec<Entry> = Vec::new();
    let mut seen: Vec<&Row> = Vec::new();
    for primitive in tare_measured::primitives::linux::all() {
        let own = known(run, "expected", Figure::Value)
            .filter(|(row, _)| id_of(&row.labels) == primitive.id);
        for (row, value) in own {
            let is_same = |other: &Row| {
                other.labels == row.labels && other.target == row.target && other.load == row.load
            };
            let Some((cost, _)) = costs
                .iter()
                .find(|(cost, _)| is_same(cost) && is_wanted(cost))
            else {
                continue;
            };
            // Several targets have the same expectation; the first one is drawn.
            if seen.iter().any(|other| other.labels == row.labels) {
                continue;
            }
            seen.push(row);
            let write = |ns| written(ns, "ns");
            let mut marks = Vec::from_iter(Mark::of(cost, 0, |ns| ns, write));
            marks.push(Mark::expected(value, &write(value)));
            entries.push(Entry {
                group: primitive.area.name().to_owned(),
                name: named(&row.labels),
                marks,
            });
        }
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
        title: "What each primitive should cost, and what it costs".to_owned(),
        read: "A dot is the intrinsic cost as it was measured; a diamond is what was expected of it before.".to_owned(),
        legend: parts::legend(Vec::new(), dot_plot::symbols(&entries, "expected")),
        plot: &plot,
        table: None,
    };
    Some(figure.render())
}

/// Draws the curve and the map of latencies; `None` without any.
pub(super) fn memory(run: &Run) -> Option<Markup> {
    let mut targets: Vec<&str> = Vec::new();
    for (row, _) in known(run, "latency", Figure::Min).filter(|(row, _)| row.load == "idle") {
        if !targets.contains(&row.target.as_str()) {
            targets.push(&row.target);
        }
    }
    let curve = curve(run, &targets);
    let maps = targets.iter().filter_map(|target| map(run, target));
    let pictures: Vec<Markup> = curve.into_iter().chain(maps).collect();
    (!pictures.is_empty()).then(|| html! { @for picture in pictures { (picture) } })
}

/// A curve: its name, and its points by rising place.
type Curve = (String, Vec<(f64, f64)>);

fn points(run: &Run, target: &str, id: &str, pages: &str) -> Vec<(f64, f64)> {
    let rows = run.rows.of(NAME, "latency");
    let own = rows.filter(|row| {
        row.target == target
            && row.load == "idle"
            && id_of(&row.labels) == id
            && row.has("pages", pages)
    });
    let mut points: Vec<(f64, f64)> = own
        .filter_map(|row| Some((row.labels.number("size")? as f64, estimate(row)?)))
        .filter(|(_, ns)| *ns > 0.0)
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn curve(run: &Run, targets: &[&str]) -> Option<Markup> {
    let mut curves: Vec<Curve> = Vec::new();
    for target in targets {
        for (pages, name) in [("2M", "huge pages"), ("4K", "pages of 4 KiB")] {
            let points = points(run, target, "latency", pages);
            if points.len() > 1 {
                curves.push((format!("{target}, {name}"), points));
            }
        }
    }
    let all = || curves.iter().flat_map(|(_, points)| points);
    let ends = |of: fn(&(f64, f64)) -> f64| {
        let low = all().map(of).reduce(f64::min)?;
        Some((low, all().map(of).reduce(f64::max)?))
    };
    let (sizes, times) = (ends(|point| point.0)?, ends(|point| point.1)?);
    let mut plot = Plot::new(HEIGHT, "Latency of a load by working set");
    let across = Scale::log((sizes.0 / 1.1, sizes.1 * 1.1), plot.across());
    let upward = Scale::log((times.0 / 1.3, times.1 * 1.4), plot.upwards());
    for cache in machine::caches(run) {
        let x = across.at(cache.size_bytes as f64);
        if (sizes.0..sizes.1).contains(&(cache.size_bytes as f64)) {
            let (bottom, top) = plot.upwards();
            let mut line = Path::default();
            line.move_to(x, bottom);
            line.line_to(x, top);
            plot.path("limit", &line);
            plot.label(
                "peak",
                (x, top + 14.0),
                &format!("L{} claimed", cache.level),
            );
        }
    }
    for (place, (name, points)) in curves.iter().enumerate() {
        let colour = colour(place);
        let mut line = Path::default();
        for (number, (size, ns)) in points.iter().enumerate() {
            match number {
                0 => line.move_to(across.at(*size), upward.at(*ns)),
                _ => line.line_to(across.at(*size), upward.at(*ns)),
            }
        }
        plot.path(&format!("line dashed {colour}"), &line);
        for (size, ns) in points {
            let told = format!("{name}, {}: {}", N.bytes(*size as u64), N.ns(*ns, None));
            plot.circle(
                &format!("mark {colour}"),
                (across.at(*size), upward.at(*ns)),
                2.5,
                &told,
            );
        }
    }
    let ticks = upward.ticks(6);
    plot.axis(Axis::new(Side::Left, upward, "a load takes", ticks, |ns| {
        N.ns_tick(ns)
    }));
    let octaves = (10..40).step_by(2).map(|power| 2_f64.powi(power));
    let octaves = octaves.filter(|size| (sizes.0..=sizes.1).contains(size));
    plot.axis(Axis::new(
        Side::Bottom,
        across,
        "working set",
        octaves,
        |size| N.bytes(size as u64),
    ));
    let legend = curves
        .iter()
        .enumerate()
        .map(|(place, (name, _))| (colour(place), name.clone()));
    let figure = parts::Figure {
        title: "Latency by working set".to_owned(),
        read: "Loads that wait for each other, in one random cycle through all lines. Where a line rises, a level of the memory hierarchy \
               ends; the broken lines are where the machine says that it does."
            .to_owned(),
        legend: parts::line_legend(legend),
        plot: &plot,
        table: None,
    };
    Some(figure.render())
}

/// Draws latencies by working set and stride as shades; `None` without any.
fn map(run: &Run, target: &str) -> Option<Markup> {
    const TILE: f64 = 24.0;
    let rows = run.rows.of(NAME, "latency");
    let own = rows.filter(|row| {
        row.target == target && row.load == "idle" && id_of(&row.labels) == "latency-stride"
    });
    let tiles: Vec<(u64, u64, f64)> = own
        .filter_map(|row| {
            Some((
                row.labels.number("size")?,
                row.labels.number("stride")?,
                estimate(row)?,
            ))
        })
        .filter(|(.., ns)| *ns > 0.0)
        .collect();
    let axis = |of: fn(&(u64, u64, f64)) -> u64| {
        let mut all: Vec<u64> = tiles.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let (sizes, strides) = (axis(|tile| tile.0), axis(|tile| tile.1));
    let low = tiles.iter().map(|tile| tile.2).reduce(f64::min)?;
    let high = tiles.iter().map(|tile| tile.2).reduce(f64::max)?;
    let mut plot = Plot::strips(
        TILE * strides.len() as f64,
        "Latency of a load by working set and stride",
    );
    let ((left, right), (bottom, top)) = (plot.across(), plot.upwards());
    let width = (right - left) / sizes.len() as f64;
    let height = (bottom - top) / strides.len() as f64;
    let place =
        |all: &[u64], value: u64| all.iter().position(|own| *own == value).unwrap_or(0) as f64;
    for (size, stride, ns) in &tiles {
        let (column, row) = (place(&sizes, *size), place(&strides, *stride));
        let from = (left + column * width, bottom - (row + 1.0) * height);
        let part = (ns / low).ln() / (high / low).ln().max(f64::MIN_POSITIVE);
        let told = format!(
            "{} by {}: {}",
            N.bytes(*size),
            N.bytes(*stride),
            N.ns(*ns, None)
        );
        plot.tile(from, (width, height), part, &told);
    }
    let middles = |count: usize, from: f64, step: f64| {
        (from + step / 2.0, from + step * (count as f64 - 0.5))
    };
    let across = Scale::linear(
        (0.0, sizes.len() as f64 - 1.0),
        middles(sizes.len(), left, width),
    );
    let upward = Scale::linear(
        (0.0, strides.len() as f64 - 1.0),
        middles(strides.len(), bottom, -height),
    );
    let at = |all: &[u64], place: f64| {
        all.get(place as usize)
            .map_or_else(String::new, |bytes| N.bytes(*bytes))
    };
    let columns = (0..sizes.len()).map(|place| place as f64);
    plot.axis(Axis::new(
        Side::Bottom,
        across,
        "working set",
        columns,
        |place| at(&sizes, place),
    ));
    let rows = (0..strides.len()).map(|place| place as f64);
    plot.axis(Axis::new(Side::Left, upward, "stride", rows, |place| {
        at(&strides, place)
    }));
    let figure = parts::Figure {
        title: format!("Latency by working set and stride on {target}"),
        read: format!(
            "One load after the other, a stride apart. The darkest takes {}, the lightest {}. Below the size of a line, several loads share \
             one; long strides that stay fast are foreseen by prefetchers.",
            N.ns(high, None),
            N.ns(low, None)
        ),
        legend: html! {},
        plot: &plot,
        table: None,
    };
    Some(figure.render())
}
