//! Gaps of a spin in fixed quanta of time: the work in each, and CPUs over time.

use std::iter;

use maud::Markup;
use tare_figures::format::Numbers;
use tare_figures::rows::CellData;
use tare_figures::words::NONE;
use tare_pages::Titled;
use tare_pages::html::parts::{Figure, legend_of};
use tare_pages::kit::heat_map::HeatMap;
use tare_pages::svg::{Axis, COLOURS, Plot, Scale, Side, colour, scatter};
use tare_pages::table::Table;

use super::measures::Spin;
use super::panels::{Member, Panel, several};

const N: Numbers = Numbers::PLAIN;

/// The length of a quantum, and the most of a run: those of 16 s.
const QUANTUM_NS: f64 = 250_000.0;
const MOST: usize = 1 << 16;
/// How far apart members with the same work are drawn, in pixels.
const APART: f64 = 2.0;
/// The most columns of a heat map, and of its table.
const COLUMNS: usize = 120;
const WORDS: usize = 6;

/// The beginning of a run in quanta.
#[derive(Clone, Debug)]
pub(super) struct InQuanta {
    /// How many quanta of the first CPU of its cell came before.
    before: usize,
    /// The share of each whole quantum that was lost.
    lost: Vec<f64>,
}

impl InQuanta {
    /// Divides a spin of a cell; `None` if the frequency of its TSC is unknown.
    pub fn of(data: &CellData<'_>, spin: &Spin<'_>) -> Result<Option<Self>, String> {
        let Some(ns) = data.ns(spin.head) else {
            return Ok(None);
        };
        let begins = data.record.sets.iter().map(|head| head.first).min();
        let later = spin.head.first - begins.unwrap_or(spin.head.first);
        Ok(Some(Self {
            before: (later as f64 * ns / QUANTUM_NS).round() as usize,
            lost: spin.run(ns)?.quanta(QUANTUM_NS, MOST),
        }))
    }

    fn ends(&self) -> usize {
        self.before + self.lost.len()
    }
}

/// Renders the work in each quantum of the first run; of more members than colours, several times.
pub(super) fn work(panel: &Panel<'_>, bytes: usize) -> impl Iterator<Item = Markup> {
    let (parts, each) = (panel.members.chunks(COLOURS), bytes / panel.members.len());
    parts.filter_map(move |part| work_of(panel, part, each))
}

fn work_of(panel: &Panel<'_>, members: &[Member<'_>], bytes: usize) -> Option<Markup> {
    let first = members.iter();
    let first = first.filter_map(|member| {
        let mut runs = member.pictures.quanta.iter();
        Some((member, runs.find(|run| !run.lost.is_empty())?))
    });
    let first = Vec::from_iter(first);
    let all = first.iter().flat_map(|(_, run)| &run.lost);
    let least = all.map(work_in).reduce(f64::min)?;
    let until_ns = first.iter().map(|(_, run)| run.ends()).max()? as f64 * QUANTUM_NS;
    let quantum = N.ns(QUANTUM_NS, None);
    let title = format!(
        "Work in each quantum of {quantum}{}",
        panel.plan().load.under()
    );
    let mut plot = Plot::new(220.0, title.clone());
    let upwards = Scale::linear((least.min(99.0), 100.0), plot.upwards());
    let across = Scale::linear((0.0, until_ns), plot.across());
    let mut table = Table::new(["all runs", "quanta", "no gap", "mean work", "least"]).of_prose();
    for (series, (member, run)) in first.iter().enumerate() {
        // Members that lose nothing would hide each other.
        let shift = (series as f64 - (first.len() - 1) as f64 / 2.0) * APART;
        let dots = (run.before..).zip(&run.lost).map(|(place, lost)| {
            let begin_ns = place as f64 * QUANTUM_NS;
            (across.at(begin_ns), upwards.at(work_in(lost)) + shift)
        });
        let path = scatter(dots.collect(), bytes);
        plot.path(&format!("dots fine {}", colour(series)), &path);
        let work = member.pictures.quanta.iter().flat_map(|run| &run.lost);
        let work = Vec::from_iter(work.map(work_in));
        let share = |percent: f64| N.percent(percent / 100.0);
        let whole = work.iter().filter(|work| **work == 100.0).count();
        table.row([
            member.name(),
            N.count(work.len() as u64),
            N.percent(whole as f64 / work.len() as f64),
            share(work.iter().sum::<f64>() / work.len() as f64),
            share(work.iter().copied().fold(100.0, f64::min)),
        ]);
    }
    let (marks, times) = (upwards.ticks(5), across.ticks(8));
    let (of_work, since) = ("% of the work", "since the first read, first run");
    let (tick, time) = (|v: f64| N.tick(v), |ns: f64| N.ns_tick(ns));
    plot.axis(Axis::new(Side::Left, upwards, of_work, marks, tick));
    plot.axis(Axis::new(Side::Bottom, across, since, times, time));
    let mut read = format!(
        "Each dot is a quantum of {quantum}: how much work was done in it, as a part of that in a quantum without a gap. \
         The benchmark FTQ counts work in such quanta. Dots are of the first run; the table is of all, up to 16 s of each."
    );
    if first.len() > 1 {
        read.push_str(
            " The dots of each are drawn a little below those of the one before, so that none hides another.",
        );
    }
    let names = first.iter().enumerate();
    let figure = Figure {
        title,
        read,
        legend: legend_of(names.map(|(place, (member, _))| (colour(place), member.name()))),
        plot: &plot,
        table: Some(table),
    };
    Some(figure.render())
}

/// Returns the work in a quantum in percent, by the share of it that was lost.
fn work_in(lost: &f64) -> f64 {
    (1.0 - lost).max(0.0) * 100.0
}

/// Divides the time in which all CPUs measured into at most `most` parts, run after run. Returns
/// their length in ns, and of each CPU the share that it lost in each.
fn parts(cpus: &[Member<'_>], most: usize) -> (f64, Vec<Vec<f64>>) {
    let all = cpus.iter().map(|member| &member.pictures.quanta);
    let all = Vec::from_iter(all);
    let mut lost = vec![Vec::new(); all.len()];
    for run in 0..all.iter().map(|runs| runs.len()).min().unwrap_or(0) {
        let own = || all.iter().map(|runs| &runs[run]);
        let from = own().map(|run| run.before).max().unwrap_or(0);
        let until = own().map(InQuanta::ends).min().unwrap_or(0);
        for (lost, run) in lost.iter_mut().zip(own()).filter(|_| from < until) {
            lost.extend_from_slice(&run.lost[from - run.before..until - run.before]);
        }
    }
    let size = lost[0].len().div_ceil(most).max(1);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let parts = lost
        .iter()
        .map(|lost| lost.chunks(size).map(mean).collect());
    (size as f64 * QUANTUM_NS, parts.collect())
}

/// The title of CPUs over time, and what they are of.
const CPUS: &str = "Time lost, CPU by CPU over time";
const OF_CPUS: &str =
    "Runs follow each other; of each, the time is shown in which all CPUs measured, up to 16 s.";

/// Renders the share of time that each CPU lost over time.
pub(super) fn heat_maps(panel: &Panel<'_>) -> impl Iterator<Item = Markup> {
    several(panel).filter_map(|cpus| {
        let (length_ns, parts) = parts(cpus, COLUMNS);
        let rows = cpus.iter().filter_map(|member| member.cpu);
        let tiles = rows.zip(&parts).flat_map(|(cpu, lost)| {
            let each = (0..).zip(lost);
            each.map(move |(part, lost): (u64, _)| ([part * length_ns as u64, cpu], *lost))
        });
        let map = HeatMap {
            title: format!("{CPUS} · {}{}", cpus[0].case.target(), panel.plan().load.under()),
            read: format!(
                "The stronger a tile, the more of that time that CPU lost; the scale is logarithmic, and an empty tile lost \
                 nothing. A strong column: all CPUs were disturbed at once. A strong row: one CPU lost time throughout. {OF_CPUS}"
            ),
            axes: ["time measured, run after run", "CPU"],
            tiles: tiles.collect(),
            labels: [since, |cpu| cpu.to_string()],
            write: |lost| N.percent(lost),
        };
        map.render()
    })
}

/// Writes a time on an axis, of which any place may be marked.
fn since(ns: u64) -> String {
    match ns {
        0 => N.tick(0.0),
        _ => N.ns(ns as f64, None),
    }
}

/// Returns the same as a table, of all panels.
pub(super) fn cpus_over_time(panels: &[Panel<'_>]) -> Titled {
    let heads = (1..=WORDS).map(|part| format!("part {part}"));
    let mut table = Table::new(iter::once(String::new()).chain(heads)).of_prose();
    for panel in panels {
        for cpus in several(panel) {
            table.heading(format!("{} · {}", panel.title(), cpus[0].case.target()));
            for (member, lost) in cpus.iter().zip(parts(cpus, WORDS).1) {
                let each = lost.into_iter().map(|lost| N.percent(lost));
                let none = iter::repeat(NONE.to_owned());
                table.row(
                    iter::once(member.cpu())
                        .chain(each)
                        .chain(none)
                        .take(WORDS + 1),
                );
            }
        }
    }
    Titled {
        title: CPUS.to_owned(),
        read: format!(
            "The share of time that each CPU lost in each sixth of the measured time. {OF_CPUS}"
        ),
        table,
    }
}
