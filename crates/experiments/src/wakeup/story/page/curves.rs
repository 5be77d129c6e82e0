//! How often wake-ups are how late: a small picture for each phase, places over each other.

use maud::{Markup, PreEscaped, html};
use tare_stats::{Counts, Response};

use crate::svg::{Axis, COLOURS, Path, Plot, Scale, Side, colour};
use crate::wakeup::table::phase_name;
use crate::wakeup::words::{name_among, place};
use crate::wakeup::{WakeupCombination, WakeupPhase};

use super::super::histogram::steps;
use super::super::parts::{N, Table, legend_of};
use super::Shown;

/// Is the number of points of a curve.
const POINTS: usize = 240;

/// Is the number of bins for each factor of ten.
const PER_DECADE: f64 = 16.0;

/// Is the height of a picture in pixels.
const HEIGHT: f64 = 250.0;

/// Holds the latencies that belong into one picture.
struct Panel<'a> {
    name: String,
    members: Vec<Member<'a>>,
}

/// Holds the latencies of one place in one phase.
struct Member<'a> {
    combination: &'a WakeupCombination,
    phase: &'a WakeupPhase,
    service: Counts,
    response: Response<'a>,
}

/// Is how far the axes of all pictures reach.
struct Extent {
    low: f64,
    high: f64,
    most: u64,
}

impl Member<'_> {
    fn service_above(&self, ns: u64) -> f64 {
        self.service.count_above(ns) as f64 / self.service.total().max(1) as f64
    }

    fn response_above(&self, ns: u64) -> f64 {
        self.response.count_above(ns) as f64 / self.response.total().max(1) as f64
    }
}

/// Puts what was measured under the same load or phase together.
fn panels<'a>(shown: &Shown<'a>) -> Vec<Panel<'a>> {
    let mut panels: Vec<((String, u32), Panel<'a>)> = Vec::new();
    for (combination, pictures) in &shown.members {
        for (phase, parts) in combination.phases.iter().zip(&pictures.phases) {
            let merged = Counts::merge_all(parts.iter().map(|(_, counts)| counts));
            let response = Response::of(parts.iter().map(|(interval, counts)| (counts, *interval)));
            // Both were computed before, or the cell would have no figures.
            let (Ok(service), Ok(response)) = (merged, response) else {
                continue;
            };
            if service.is_empty() {
                continue;
            }
            let member = Member {
                combination,
                phase,
                service,
                response,
            };
            let key = (combination.load.clone(), phase.number);
            match panels.iter_mut().find(|(known, _)| *known == key) {
                Some((_, panel)) => panel.members.push(member),
                None => panels.push((
                    key,
                    Panel {
                        name: phase_name(combination, phase),
                        members: vec![member],
                    },
                )),
            }
        }
    }
    panels.into_iter().map(|(_, panel)| panel).collect()
}

impl Extent {
    fn of(panels: &[Panel<'_>]) -> Option<Self> {
        let members = || panels.iter().flat_map(|panel| &panel.members);
        Some(Self {
            // What is left of a stall at its end may be arbitrarily short.
            low: members().filter_map(|m| m.service.min()).min()?.max(1) as f64,
            high: members().filter_map(|m| m.service.max()).max()?.max(2) as f64,
            most: members().map(|m| m.response.total()).max()?,
        })
    }

    fn across(&self, plot: &Plot) -> Scale {
        Scale::log((self.low / 1.1, self.high * 1.25), plot.across())
    }
}

/// Renders how often latencies are longer than a length, on logarithmic axes.
pub(super) fn exceedance(shown: &Shown<'_>) -> Markup {
    let read = "Find a latency that would hurt below, go up to a line, and read at the left which share is longer. The \
                solid line counts the wake-ups that happened, as cyclictest does; the dashed one counts all activations, \
                each missed one with what it waited. Where the two part, activations were missed. A line ends at the \
                longest that was seen; it does not say that longer ones don't happen.";
    grid(
        shown,
        "How often, and how late",
        read,
        |panel, extent, coarse| {
            let mut plot = Plot::half(
                HEIGHT,
                format!("share of wake-ups later than a time, {}", panel.name),
            );
            let across = extent.across(&plot);
            let upward = Scale::log((0.7 / extent.most as f64, 1.4), plot.upwards());
            for member in &panel.members {
                let series = shown.series(member.combination);
                let missed = member.response.missed() > 0;
                let lines: [(&str, &dyn Fn(u64) -> f64); 2] = [
                    (" second", &|ns| member.response_above(ns)),
                    ("", &|ns| member.service_above(ns)),
                ];
                for (kind, above) in lines
                    .into_iter()
                    .filter(|(kind, _)| missed || kind.is_empty())
                {
                    let path = falling(member, above, across, upward, coarse);
                    plot.path(&format!("line{kind} {}", colour(series)), &path);
                }
            }
            let share = |share: f64| {
                let percent = share * 100.0;
                N.with_unit(&N.tick(percent), "%")
            };
            plot.axis(Axis::new(
                Side::Left,
                upward,
                "longer than that",
                decades(upward),
                share,
            ));
            latency_axis(&mut plot, across);
            plot
        },
    )
}

/// Draws the share of latencies above each length.
fn falling(
    member: &Member<'_>,
    above: &dyn Fn(u64) -> f64,
    across: Scale,
    upward: Scale,
    coarse: usize,
) -> Path {
    let mut path = Path::default();
    let (low, high) = across.range();
    let longest = member.service.max().unwrap_or(0);
    let shortest = member.response.min().unwrap_or(0).max(1) as f64;
    path.move_to(across.at(shortest), upward.at(1.0));
    let points = (POINTS / coarse).max(20);
    let mut before = 1.0;
    let mut level = None;
    for point in 0..=points {
        let ns = low * (high / low).powf(point as f64 / points as f64);
        let share = above(ns as u64);
        if ns < shortest || ns >= longest as f64 {
            continue;
        }
        // A level stretch needs its ends only.
        if share == before {
            level = Some(ns);
            continue;
        }
        if let Some(end) = level.take() {
            path.line_to(across.at(end), upward.at(before));
        }
        before = share;
        path.line_to(across.at(ns), upward.at(share));
    }
    if let Some(end) = level {
        path.line_to(across.at(end), upward.at(before));
    }
    path.line_to(
        across.at(longest as f64),
        upward.at(above(longest.saturating_sub(1))),
    );
    path
}

/// Renders the histograms with a logarithmic scale upwards.
pub(super) fn histograms(shown: &Shown<'_>) -> Markup {
    let read = "How many of a million have a latency; the scale is logarithmic, so that a single one can be seen. Bars \
                are about 15 % of their latency wide; the first holds all that is shorter. Solid: the wake-ups that happened; dashed: all activations, \
                where some were missed.";
    grid(shown, "Histogram", read, |panel, extent, coarse| {
        let mut plot = Plot::half(
            HEIGHT,
            format!("histogram of wake-up latencies, {}", panel.name),
        );
        let across = extent.across(&plot);
        let edges = edges(extent, coarse);
        let bars = |above: &dyn Fn(u64) -> f64| -> Vec<(f64, f64, f64)> {
            let pairs = edges.windows(2);
            let bar = |edge: &[u64]| {
                // The first bar holds all that is shorter, too.
                let longer = if Some(&edge[0]) == edges.first() {
                    1.0
                } else {
                    above(edge[0] - 1)
                };
                let share = longer - above(edge[1] - 1);
                (edge[0] as f64, edge[1] as f64, share * 1e6)
            };
            pairs.map(bar).collect()
        };
        let least = 1e6 / extent.most as f64;
        let upward = Scale::log((least * 0.6, 1.4e6), plot.upwards());
        let bottom = plot.upwards().0;
        for member in &panel.members {
            let series = shown.series(member.combination);
            let missed = member.response.missed() > 0;
            let lines: [(&str, &dyn Fn(u64) -> f64); 2] = [
                (" second", &|ns| member.response_above(ns)),
                ("", &|ns| member.service_above(ns)),
            ];
            for (kind, above) in lines
                .into_iter()
                .filter(|(kind, _)| missed || kind.is_empty())
            {
                // What rounding leaves of an empty bar is none.
                let bars = bars(above).into_iter();
                let bars = bars.map(|(low, high, height)| {
                    (low, high, if height < least / 2.0 { 0.0 } else { height })
                });
                let path = steps(bars, across, upward, bottom);
                plot.path(&format!("line thin{kind} {}", colour(series)), &path);
            }
        }
        plot.axis(Axis::new(
            Side::Left,
            upward,
            "of a million",
            decades(upward),
            |v| N.tick(v),
        ));
        latency_axis(&mut plot, across);
        plot
    })
}

/// Returns the edges of bins of about equal ratio, whole ns, rising.
fn edges(extent: &Extent, coarse: usize) -> Vec<u64> {
    let per_decade = (PER_DECADE / coarse as f64).max(4.0);
    let decades = (extent.high / extent.low).log10().max(0.1);
    let bins = (decades * per_decade).ceil() as usize;
    let mut edges: Vec<u64> = (0..=bins + 1)
        .map(|n| (extent.low * 10_f64.powf(n as f64 / per_decade)).round() as u64)
        .collect();
    edges.dedup();
    edges
}

/// Returns the powers of ten of a scale, at most about six of them.
fn decades(scale: Scale) -> Vec<f64> {
    let (low, high) = scale.range();
    let (from, to) = (low.log10().ceil() as i32, high.log10().floor() as i32);
    let step = ((to - from) / 6 + 1).max(1) as usize;
    (from..=to)
        .rev()
        .step_by(step)
        .map(|power| 10_f64.powi(power))
        .collect()
}

fn latency_axis(plot: &mut Plot, across: Scale) {
    let ticks = across.ticks(6);
    plot.axis(Axis::new(Side::Bottom, across, "latency", ticks, |ns| {
        N.ns_tick(ns)
    }));
}

/// Renders a picture for each phase, side by side; of more places than colours, several times.
fn grid(
    shown: &Shown<'_>,
    title: &str,
    read: &str,
    draw: impl Fn(&Panel<'_>, &Extent, usize) -> Plot,
) -> Markup {
    let panels = panels(shown);
    let Some(extent) = Extent::of(&panels) else {
        return html! {};
    };
    let parts: Vec<&[&str]> = shown.targets.chunks(COLOURS).collect();
    html! {
        figure {
            h3 { (title) }
            p.read { (read) }
            @for targets in parts {
                (legend_of(targets.iter().filter_map(|target| entry(shown, target))))
                div.pair {
                    @for panel in &panels {
                        @let part = restricted(panel, targets);
                        @if !part.members.is_empty() {
                            div {
                                h4 { (panel.name) }
                                div.plot tabindex="0" { (PreEscaped(draw(&part, &extent, shown.coarse).markup())) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn entry(shown: &Shown<'_>, target: &str) -> Option<(String, String)> {
    let mut members = shown.members.iter();
    let (combination, _) = members.find(|(c, _)| c.target == target)?;
    let all: Vec<&WakeupCombination> = shown.members.iter().map(|(c, _)| *c).collect();
    let name = name_among(combination, &all);
    Some((colour(shown.series(combination)), name))
}

fn restricted<'a>(panel: &Panel<'a>, targets: &[&str]) -> Panel<'a> {
    let is_in = |m: &&Member<'_>| targets.contains(&m.combination.target.as_str());
    let members = panel.members.iter().filter(is_in).map(|m| Member {
        combination: m.combination,
        phase: m.phase,
        service: m.service.clone(),
        response: m.response.clone(),
    });
    Panel {
        name: panel.name.clone(),
        members: members.collect(),
    }
}

/// Renders the figures behind the curves: how many latencies are longer than some lengths.
pub(super) fn table(shown: &Shown<'_>) -> Markup {
    const BOUNDS: [u64; 9] = [
        10_000,
        20_000,
        50_000,
        100_000,
        200_000,
        500_000,
        1_000_000,
        10_000_000,
        100_000_000,
    ];
    let panels = panels(shown);
    let Some(extent) = Extent::of(&panels) else {
        return html! {};
    };
    let bounds = || BOUNDS.iter().filter(|bound| (**bound as f64) < extent.high);
    let mut table = Table::new(["phase · place", "of"]);
    table
        .head
        .extend(bounds().map(|bound| format!("> {}", N.ns_tick(*bound as f64))));
    for panel in &panels {
        for member in &panel.members {
            let name = phase_name(member.combination, member.phase);
            let mut row = vec![
                format!("{name} · {}", place(member.combination)),
                format!(
                    "{}\n{}",
                    N.count(member.service.total()),
                    N.count(member.response.total())
                ),
            ];
            row.extend(bounds().map(|bound| {
                format!(
                    "{}\n{}",
                    N.count(member.service.count_above(*bound)),
                    N.count(member.response.count_above(*bound))
                )
            }));
            table.rows.push(row);
        }
    }
    html! {
        details {
            summary { "Figures: how many are later" }
            p.note { "Above: of the wake-ups that happened; below: of all activations." }
            (table.render())
        }
    }
}
