//! Pictures of wake-ups: latencies over time with the phases marked, and how often they are how long.
//!
//! Samples are reduced cell by cell: the envelope to columns of pixels, counts to those of each phase.

use maud::{Markup, html};
use tare_results::model::{CellPlan, SetHead};
use tare_stats::{Counts, Response};

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::group::distinct;
use tare_figures::rows::CellData;
use tare_pages::html::Detail;
use tare_pages::html::distributions::{Distributions, Tail, Tailed, Unit, panels};
use tare_pages::html::parts::{Figure, N, Table, legend_of};
use tare_pages::svg::band::{self, COLUMNS, Column};
use tare_pages::svg::{Axis, Path, Plot, Scale, Side, colour, cut};

use super::words::{Phase, cases, intervals, name, name_under, time, undisturbed};
use super::{Woken, measures};

/// The height of what is drawn of one strip, and of its name with the phases above it, in pixels.
const DRAWN: f64 = 88.0;
const NAMES: f64 = 46.0;
/// The greatest number of strips of single runs; with more, the runs of a case are laid over each other.
const STRIPS: usize = 12;
/// The number of strips from which each is drawn more coarsely.
const MANY: usize = 24;

/// What pictures are drawn from, of the cells that repeat each other.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    runs: Vec<OverTime>,
    /// For each phase the latencies of all runs, by the interval of the thread.
    phases: Vec<Vec<(u64, Counts)>>,
}

/// One run over time, or several over each other, all threads together.
#[derive(Clone, Debug)]
struct OverTime {
    block: u32,
    length_ns: u64,
    columns: Vec<Column>,
    /// What is counted apart, since the load of its phase had not begun: it is in no figure.
    apart: Vec<Column>,
}

/// One run of a case, or all of them over each other.
struct Strip<'a> {
    case: &'a Case<'a>,
    name: String,
    run: OverTime,
}

impl Pictures {
    /// Takes the samples of a cell.
    pub(super) fn take(&mut self, data: &CellData<'_>) -> Result<(), String> {
        self.runs.push(OverTime::new(data));
        for (phase, (_, threads)) in measures::phases(data, false)?.into_iter().enumerate() {
            self.phases
                .resize(self.phases.len().max(phase + 1), Vec::new());
            let known = &mut self.phases[phase];
            for (counts, interval) in threads {
                match known.iter_mut().find(|(of, _)| *of == interval) {
                    Some((_, all)) => {
                        *all = all.merge(&counts).map_err(|error| error.to_string())?
                    }
                    None => known.push((interval, counts)),
                }
            }
        }
        Ok(())
    }
}

impl OverTime {
    fn new(data: &CellData<'_>) -> Self {
        let sets = || data.sets("latency");
        // By when they were due: the last one may have come long after that.
        let ends = sets().filter_map(|(head, set)| {
            let last = set.envelope.iter().map(|bin| u64::from(bin.bin)).max()?;
            Some(last.saturating_add(1).saturating_mul(head.bin))
        });
        let length_ns = ends.max().unwrap_or(1).max(1);
        let is_apart = |head: &SetHead| {
            let label = |key| head.labels.get(key);
            label("between").is_some() || label("phase") == Some("unknown")
        };
        let columns = |apart: bool| {
            let sets = sets().filter(move |(head, _)| is_apart(head) == apart);
            let columns = sets.flat_map(|(head, set)| {
                set.envelope.iter().map(move |bin| {
                    let begin_ns = u64::from(bin.bin).saturating_mul(head.bin);
                    let middle_ns = begin_ns.saturating_add(head.bin / 2);
                    let place = middle_ns as f64 / length_ns as f64 * COLUMNS as f64;
                    Column {
                        place: (place as usize).min(COLUMNS - 1),
                        n: bin.n,
                        low: bin.min,
                        mean: bin.sum as f64 / bin.n.max(1) as f64,
                        high: bin.max,
                    }
                })
            });
            band::joined(columns)
        };
        Self {
            block: data.plan().block,
            length_ns,
            columns: columns(false),
            apart: columns(true),
        }
    }

    /// Returns when about the longest latency was, and how long it was.
    fn longest(&self) -> Option<(f64, f64)> {
        let longest = self.columns.iter().max_by_key(|column| column.high)?;
        let at = (longest.place as f64 + 0.5) / COLUMNS as f64;
        Some((at * self.length_ns as f64, longest.high as f64))
    }
}

/// Renders all latencies over time; `None` if there is nothing to draw.
pub(super) fn over_time(story: &Woken, run: &Run, detail: &Detail) -> Option<Markup> {
    let cases = undisturbed(cases(run));
    let names = distinct(cases.iter().map(name));
    let strips = strips(story, &cases);
    let runs = || strips.iter().map(|strip| &strip.run);
    let columns = || runs().flat_map(|run| run.columns.iter().chain(&run.apart));
    let low = columns().map(|column| column.low).min()?.max(1) as f64;
    let high = columns().map(|column| column.high).max()?.max(2) as f64;
    let length = strips.iter().map(|strip| strip.run.length_ns).max()? as f64;
    let coarse = detail.coarseness().max(1) * strips.len().div_ceil(MANY).max(1);
    let longest = time(high);
    let description = format!("wake-up latencies over time; the longest is {longest}");
    let mut plot = Plot::strips(strips.len() as f64 * (DRAWN + NAMES), description);
    let (_, mut y) = plot.upwards();
    let across = Scale::linear((0.0, length), plot.across());
    let mut before = Vec::new();
    for (number, Strip { case, name, run }) in strips.iter().enumerate() {
        let upwards = (y + NAMES + DRAWN, y + NAMES);
        let scale = Scale::log((low / 1.2, high * 1.6), upwards);
        let series = names.iter().position(|known| *known == self::name(case));
        let colour = colour(series.unwrap_or(0));
        plot.text("row", (plot.across().0, y + 20.0), name);
        phases(&mut plot, case.plan, across, upwards);
        let intervals = intervals(case);
        let interval = intervals.iter().min().map(|interval| *interval as f64);
        if let Some(interval) =
            interval.filter(|at| (scale.range().0..scale.range().1).contains(at))
        {
            let end = (across.at(length), scale.at(interval));
            let mut line = Path::default();
            line.move_to(across.at(0.0), end.1);
            line.line_to(end.0, end.1);
            plot.path("limit", &line);
            if intervals != before {
                let name = format!("interval {}", N.ns_tick(interval));
                plot.label("interval", (end.0, end.1 - 8.0), &name);
            }
        }
        before = intervals;
        let width = coarse as f64 / COLUMNS as f64 * run.length_ns as f64;
        for (columns, class) in [(&run.apart, "apart"), (&run.columns, colour.as_ref())] {
            band::draw(
                &mut plot,
                class,
                &band::coarser(columns, coarse),
                |column| across.at(column * width),
                |ns| scale.at(ns.max(1.0)),
            );
        }
        if let Some((at_ns, ns)) = run.longest() {
            let at = (across.at(at_ns), scale.at(ns.max(1.0)));
            let text = N.ns(ns, Some(1.0));
            plot.circle(&format!("ring {colour}"), at, 4.0, &text);
            plot.label("peak", at, &text);
        }
        plot.rule(upwards.0);
        let title = if number == 0 { "latency" } else { "" };
        let ticks = scale.ticks(4);
        plot.axis(Axis::new(Side::Left, scale, title, ticks, |ns| {
            N.ns_tick(ns)
        }));
        y += DRAWN + NAMES;
    }
    let title = "time since the first activation was due";
    let ticks = across.ticks(9);
    plot.axis(Axis::new(Side::Bottom, across, title, ticks, |ns| {
        N.ns_tick(ns)
    }));
    let mut read = "The band reaches from the shortest to the longest latency of each moment, so that every maximum is \
                    in it; the line is the mean. A wake-up above the dashed line was later than an interval and missed \
                    activations."
        .to_owned();
    if cases.iter().any(|case| case.plan.phases.len() > 1) {
        read.push_str(" Vertical lines mark where one load ends and the next begins.");
    }
    if runs().any(|run| !run.apart.is_empty()) {
        read.push_str(" Grey: due before its load began, and excluded from all figures.");
    }
    let figure = Figure {
        title: "Wake-up latency over time".to_owned(),
        read,
        legend: legend_of([]),
        plot: &plot,
        table: Some(table_of(&strips)),
    };
    Some(figure.render())
}

fn strips<'a>(story: &Woken, cases: &'a [Case<'a>]) -> Vec<Strip<'a>> {
    let runs = |case: &Case<'_>| {
        let kept = story.0.of(case.plan);
        kept.map_or(&[][..], |kept| &kept.pictures.runs)
    };
    let are_many = cases.iter().map(|case| runs(case).len()).sum::<usize>() > STRIPS;
    let mut strips = Vec::new();
    for case in cases {
        let runs = runs(case);
        let mut add = |which: String, run: OverTime| {
            let name = format!("{}{which}", name_under(case));
            strips.push(Strip { case, name, run });
        };
        if are_many && runs.len() > 1 {
            let all = OverTime {
                block: 0,
                length_ns: runs.iter().map(|run| run.length_ns).max().unwrap_or(1),
                columns: band::joined(runs.iter().flat_map(|run| run.columns.clone())),
                apart: band::joined(runs.iter().flat_map(|run| run.apart.clone())),
            };
            add(format!(", {} runs over each other", runs.len()), all);
            continue;
        }
        for run in runs {
            let which = match runs.len() {
                1 => String::new(),
                _ => format!(", run {}", run.block),
            };
            add(which, run.clone());
        }
    }
    strips
}

/// Marks where phases begin, and names them as far as there is room.
fn phases(plot: &mut Plot, plan: &CellPlan, across: Scale, (bottom, top): (f64, f64)) {
    let Some(length) = plan.phase_ns() else {
        return;
    };
    let mut splits = Path::default();
    for phase in Phase::all(plan) {
        let edge = |number: usize| across.at(number as f64 * length as f64);
        let (from, to) = (edge(phase.number), edge(phase.number + 1));
        if phase.number > 0 {
            splits.move_to(from, top - 14.0);
            splits.line_to(from, bottom);
        }
        let name = cut(&phase.name(), to - from - 6.0);
        // Two letters and an ellipsis name nothing.
        if name.chars().count() > 3 || !name.contains('…') {
            plot.text("phase", (from + 4.0, top - 5.0), &name);
        }
    }
    plot.path("split", &splits);
}

fn table_of(strips: &[Strip<'_>]) -> Table {
    let mut table = Table::new(["target and run", "longest", "after about", "wake-ups"]);
    for Strip { name, run, .. } in strips {
        let woken: u64 = run.columns.iter().map(|column| column.n).sum();
        if let Some((at_ns, ns)) = run.longest() {
            let after = N.with_unit(&N.fixed(at_ns / 1e9, 2), "s");
            table.row([name.clone(), N.ns(ns, Some(1.0)), after, N.count(woken)]);
        }
    }
    table
}

/// Renders how often latencies are how long: a panel for each load or phase.
pub(super) fn distributions(story: &Woken, run: &Run, detail: &Detail) -> Markup {
    let cases = undisturbed(cases(run));
    let mut all = Vec::new();
    for case in &cases {
        let kept = story.0.of(case.plan);
        let kept = kept.map_or(&[][..], |kept| &kept.pictures.phases);
        for (phase, parts) in Phase::all(case.plan).zip(kept) {
            let service = Counts::merge_all(parts.iter().map(|(_, counts)| counts));
            let response = Response::of(parts.iter().map(|(interval, counts)| (counts, *interval)));
            // Both were computed before, or the cell would have no figures.
            if let (Ok(service), Ok(response)) = (service, response) {
                all.push((name(case), phase.name(), service, response));
            }
        }
    }
    all.retain(|(.., service, _)| !service.is_empty());
    let names = distinct(cases.iter().map(name));
    let tails = all.iter().map(|(name, phase, service, response)| Tailed {
        panel: phase,
        name,
        tail: service,
        second: (response.missed() > 0).then_some(response as &dyn Tail),
    });
    let drawn = Distributions {
        of: "wake-up latencies",
        across: "latency",
        unit: Unit::Ns,
        step: 1,
        coarse: detail.coarseness(),
        runs: cases.iter().map(|case| case.cells.len()).max().unwrap_or(0),
        panels: panels(&names, tails),
        names,
    };
    let exceedance = drawn.exceedance(
        "How often, and how late",
        "Find a latency that would hurt below, go up to a line, and read at the left which share is longer. The solid line counts \
         the wake-ups that happened, as cyclictest does; the dashed one counts all activations, each missed one with what it \
         waited. Where the two part, activations were missed. A line ends at the longest that was seen; it does not say that \
         longer ones don't happen. In the figures behind it those of wake-ups stand above those of all activations.",
        "longer than that",
        None,
    );
    let histogram = drawn.histogram(
        "Histogram",
        "How many of a million have a latency; the scale is logarithmic, so that a single one can be seen. Bars are about 12 % of \
         their latency wide; the first holds all that is shorter. Solid: the wake-ups that happened; dashed: all activations, \
         where some were missed.",
        None,
    );
    html! {
        @if let Some(exceedance) = exceedance { (exceedance) }
        @if let Some(histogram) = histogram { (histogram) }
    }
}
