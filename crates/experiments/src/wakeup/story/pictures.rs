//! Pictures of wake-ups: latencies over time with the phases marked, and how often they are how
//! long.
//!
//! Samples are reduced cell by cell: the envelope to columns of pixels, counts to those of each
//! phase.

use maud::Markup;
use tare_results::model::{CellPlan, SetHead};
use tare_stats::{Counts, Response};

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::group::distinct;
use tare_figures::rows::CellData;
use tare_pages::html::Detail;
use tare_pages::html::distributions::{Distributions, Tail, Tailed, Unit, Within, panels};
use tare_pages::html::parts::N;
use tare_pages::kit::over_time::{OverTime, Strip};
use tare_pages::kit::track::Track;
use tare_pages::svg::COLOURS;
use tare_pages::svg::band::{self, COLUMNS, Column};

use super::words::{Phase, cases, intervals, name, name_under, undisturbed};
use super::{NAME, Woken, measures};

/// The greatest number of strips of single runs; with more, the runs of a case are laid over each
/// other.
const STRIPS: usize = 12;
/// The number of strips from which each is drawn more coarsely.
const MANY: usize = 24;

/// What pictures are drawn from, of the cells that repeat each other.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    runs: Vec<Track>,
    /// For each phase the latencies of all runs, as short as they can be.
    least: Vec<Merged>,
    /// The same as long as they can be, if some were not counted one by one.
    most: Option<Vec<Merged>>,
}

/// Latencies by the interval of the thread.
type Merged = Vec<(u64, Counts)>;

impl Pictures {
    /// Takes the samples of a cell.
    pub(super) fn take(&mut self, data: &CellData<'_>) -> Result<(), String> {
        self.runs.push(track(data));
        for (phase, (_, latencies)) in measures::phases(data, false)?.into_iter().enumerate() {
            let (least, most) = (latencies.least(), latencies.most());
            if self.most.is_none() && most != least {
                self.most = Some(self.least.clone());
            }
            merge(&mut self.least, phase, least)?;
            if let Some(all) = &mut self.most {
                merge(all, phase, most)?;
            }
        }
        Ok(())
    }
}

/// Adds the latencies of a phase.
fn merge(all: &mut Vec<Merged>, phase: usize, more: &measures::Threads) -> Result<(), String> {
    all.resize(all.len().max(phase + 1), Vec::new());
    for (counts, interval) in more {
        match all[phase].iter_mut().find(|(of, _)| of == interval) {
            Some((_, all)) => *all = all.merge(counts).map_err(|error| error.to_string())?,
            None => all[phase].push((*interval, counts.clone())),
        }
    }
    Ok(())
}

/// Reduces a run to columns, all threads together. Wake-ups before the load of their phase had
/// begun are in a band of their own, and in no figure.
fn track(data: &CellData<'_>) -> Track {
    let sets = || data.sets("latency");
    // By when they were due: the last one may have come long after that.
    let ends = sets().filter_map(|(head, set)| {
        let last = set.envelope.iter().map(|bin| u64::from(bin.bin)).max()?;
        Some(last.saturating_add(1).saturating_mul(head.bin))
    });
    let length = ends.max().unwrap_or(1).max(1);
    let is_apart = |head: &SetHead| {
        let label = |key| head.labels.get(key);
        label("between").is_some() || label("phase") == Some("unknown")
    };
    let columns = |apart: bool| {
        let sets = sets().filter(move |(head, _)| is_apart(head) == apart);
        band::joined(sets.flat_map(|(head, set)| {
            set.envelope.iter().map(move |bin| {
                let begin_ns = u64::from(bin.bin).saturating_mul(head.bin);
                let middle_ns = begin_ns.saturating_add(head.bin / 2);
                let place = middle_ns as f64 / length as f64 * COLUMNS as f64;
                Column::of(bin, (place as usize).min(COLUMNS - 1))
            })
        }))
    };
    Track {
        block: data.plan().block,
        columns: COLUMNS,
        length,
        hz: Some(1e9),
        bands: vec![("apart", columns(true)), ("", columns(false))],
        ..Track::default()
    }
}

/// Renders all latencies over time; `None` if there is nothing to draw.
pub(super) fn over_time(story: &Woken, run: &Run, detail: &Detail) -> Option<Markup> {
    let cases = undisturbed(cases(run));
    let strips = strips(story, &cases);
    let mut read = "The band reaches from the shortest to the longest latency of each moment, so that every maximum is \
                    in it; the line is the mean."
        .to_owned();
    read.push_str(match cases.iter().any(|case| have_several(&intervals(case))) {
        true => {
            " The dashed line is the shortest interval of the threads. A wake-up that was later than its thread's interval missed activations."
        }
        false => " A wake-up above the dashed line was later than an interval and missed activations.",
    });
    if cases.iter().any(|case| case.plan.phases.len() > 1) {
        read.push_str(" Vertical lines mark where one load ends and the next begins.");
    }
    let mut bands = strips
        .iter()
        .flat_map(|strip| strip.tracks)
        .flat_map(|track| &track.bands);
    if bands.any(|(class, columns)| !class.is_empty() && !columns.is_empty()) {
        read.push_str(" Grey: due before its load began, and excluded from all figures.");
    }
    let picture = OverTime {
        title: "Wake-up latency over time".to_owned(),
        read,
        upward: "latency",
        since: "since the first activation was due",
        heights: (88.0, 46.0),
        log: true,
        step_ns: Some(1.0),
        coarse: detail.coarseness().max(1) * strips.len().div_ceil(MANY).max(1),
        strips,
        ..OverTime::default()
    };
    picture.render(None)
}

/// Returns whether threads have different intervals.
fn have_several(intervals: &[u64]) -> bool {
    intervals.iter().min() != intervals.iter().max()
}

fn strips<'a>(story: &'a Woken, cases: &[Case<'_>]) -> Vec<Strip<'a>> {
    let names = distinct(cases.iter().map(name));
    let runs = |case: &Case<'_>| -> &'a [Track] {
        let kept = story.0.of(case.plan);
        kept.map_or(&[], |kept| &kept.pictures.runs)
    };
    let are_many = cases.iter().map(|case| runs(case).len()).sum::<usize>() > STRIPS;
    let mut strips = Vec::new();
    let mut before = None;
    for case in cases {
        let runs = runs(case);
        for tracks in runs.chunks(if are_many { runs.len().max(1) } else { 1 }) {
            let which = match tracks {
                _ if runs.len() == 1 => String::new(),
                [one] => format!(", run {}", one.block),
                all => format!(", {} runs over each other", all.len()),
            };
            let interval = intervals(case).into_iter().min();
            let limit = interval.map(|ns| {
                let is_known = before.replace(ns) == Some(ns);
                let name = format!("interval {}", N.ns_tick(ns as f64));
                (ns as f64, if is_known { String::new() } else { name })
            });
            strips.push(Strip {
                name: format!("{}{which}", name_under(case)),
                series: names
                    .iter()
                    .position(|known| *known == name(case))
                    .unwrap_or(0),
                tracks,
                limit,
                phases: phases(case.plan),
                ..Strip::default()
            });
        }
    }
    strips
}

/// Returns the phases of a plan, each with its end in ns.
fn phases(plan: &CellPlan) -> Vec<(f64, String)> {
    let length = plan.phase_ns().into_iter();
    let phases = length.flat_map(|length| {
        Phase::all(plan).map(move |phase| ((phase.number + 1) as f64 * length as f64, phase.name()))
    });
    phases.collect()
}

/// The distributions of the cases and loads of a run.
struct Found<'a> {
    all: Vec<OfLoad<'a>>,
    runs: usize,
}

/// The latencies of a case under one load.
struct OfLoad<'a> {
    /// The name of the case.
    name: String,
    /// The name of the load, and the same as the end of a sentence.
    load: String,
    under: String,
    /// Of wake-ups.
    service: Box<dyn Tail>,
    /// Of all activations, if some were missed.
    response: Option<Box<dyn Tail + 'a>>,
}

/// Returns the distributions of wake-ups and of all activations; `None` if they can't be counted,
/// which was found before, or the cell would have no figures.
fn distribution(parts: &Merged) -> Option<(Counts, Response<'_>)> {
    let service = Counts::merge_all(parts.iter().map(|(_, counts)| counts));
    let parts = parts.iter().map(|(interval, counts)| (counts, *interval));
    service.ok().zip(Response::of(parts).ok())
}

impl<'a> Found<'a> {
    fn of(story: &'a Woken, run: &Run) -> Self {
        let cases = undisturbed(cases(run));
        let mut all = Vec::new();
        for case in &cases {
            let kept = story.0.of(case.plan);
            let kept = kept.map(|kept| &kept.pictures);
            let least = kept.map_or(&[][..], |kept| &kept.least);
            let most = kept.and_then(|kept| kept.most.as_ref());
            for (place, (phase, parts)) in Phase::all(case.plan).zip(least).enumerate() {
                let most = most.and_then(|most| distribution(most.get(place)?));
                let Some((service, response)) = distribution(parts) else {
                    continue;
                };
                let is_missed = response.missed() > 0
                    || most.as_ref().is_some_and(|(_, most)| most.missed() > 0);
                let (service, response): (Box<dyn Tail>, Box<dyn Tail + 'a>) = match most {
                    Some(most) => (
                        Box::new(Within(service, most.0)),
                        Box::new(Within(response, most.1)),
                    ),
                    None => (Box::new(service), Box::new(response)),
                };
                all.push(OfLoad {
                    name: name(case),
                    load: phase.name(),
                    under: phase.under(),
                    service,
                    response: is_missed.then_some(response),
                });
            }
        }
        all.retain(|one| one.service.total() > 0);
        Self {
            all,
            runs: cases.iter().map(|case| case.cells.len()).max().unwrap_or(0),
        }
    }

    /// Draws something of them: all over each other as long as there are colours, else with a panel
    /// for each load.
    fn draw(
        &self,
        run: &Run,
        detail: &Detail,
        draw: impl Fn(&Distributions<'_>) -> Option<Markup>,
    ) -> Option<Markup> {
        let with_load = |one: &OfLoad<'_>| format!("{}{}", one.name, one.under);
        let together = distinct(self.all.iter().map(with_load));
        let is_together = together.len() <= COLOURS;
        let names = match is_together {
            true => together,
            false => distinct(self.all.iter().map(|one| one.name.clone())),
        };
        let keys = self.all.iter().map(|one| match is_together {
            true => (String::new(), with_load(one)),
            false => (one.load.clone(), one.name.clone()),
        });
        let keys = Vec::from_iter(keys);
        let tails = keys.iter().zip(&self.all);
        let tails = tails.map(|((panel, name), one)| Tailed {
            panel,
            name,
            tail: &*one.service,
            second: one.response.as_deref(),
        });
        draw(&Distributions {
            of: "wake-up latencies",
            across: "latency",
            unit: Unit::Ns,
            // Other tools count whole µs, of which oslat's are the next ones.
            step: if run.is_imported() { 1_000 } else { 1 },
            is_cut_off: run.is_imported()
                && run
                    .plan
                    .cells
                    .iter()
                    .all(|cell| cell.target.text != "oslat"),
            coarse: detail.coarseness(),
            runs: self.runs,
            panels: panels(&names, tails),
            names,
            limits: run.limits(NAME, &["latency", "response"]),
        })
    }
}

/// The end of the caption of a picture in which some are missing.
fn missing(found: &Found<'_>) -> &'static str {
    match found.all.iter().any(|one| one.service.most().is_some()) {
        true => " What was not counted one by one is in the figures, but not drawn.",
        false => "",
    }
}

/// Renders how often latencies are how long.
pub(super) fn exceedance(story: &Woken, run: &Run, detail: &Detail) -> Option<Markup> {
    let found = Found::of(story, run);
    let mut read = "Find a latency that would hurt below, go up to a line, and read at the left which share is longer. The solid line \
                counts the wake-ups that happened, as cyclictest does; the dashed one counts all activations, each missed one with \
                what it waited. Where the two part, activations were missed. A line ends at the longest that was seen; it does not \
                say that longer ones don't happen. In the figures behind it those of wake-ups stand above those of all activations."
        .to_owned();
    read.push_str(missing(&found));
    found.draw(run, detail, |drawn| {
        drawn.exceedance("How often, and how late", &read, "longer than that", None)
    })
}

/// Renders the number of latencies by length.
pub(super) fn histogram(story: &Woken, run: &Run, detail: &Detail) -> Option<Markup> {
    let found = Found::of(story, run);
    let mut read = "How many of a million have a latency; the scale is logarithmic, so that a single one can be seen. Bars are about \
                12 % of their latency wide; the first holds all that is shorter. Solid: the wake-ups that happened; dashed: all \
                activations, where some were missed."
        .to_owned();
    read.push_str(missing(&found));
    found.draw(run, detail, |drawn| {
        drawn.histogram("Histogram", &read, None)
    })
}
