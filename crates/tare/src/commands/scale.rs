//! `tare scale`: what the noise of a run costs on many nodes.

use std::path::Path;
use std::time::Duration;

use anstyle::Style;
use serde::Serialize;
use tare_experiments::noise;
use tare_figures::format::Numbers;
use tare_figures::rows::CellData;
use tare_figures::words::{NONE, counted, percent_range};
use tare_lab::units::human;
use tare_pages::Table;
use tare_pages::html::Section;
use tare_pages::kit::curve::{Curve, Dimension, Line, Point, Scaling};
use tare_pages::page::of_sections;
use tare_pages::text::{Page, Text};
use tare_results::{CellState, RunFolder};
use tare_stats::{AtScale, Bad, Level, NoiseRun, Program, Scaled, at_scale};

use super::clean_up;
use super::run_folder::open;
use crate::cli::scale::{BadNoise, ScaleArguments};
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

const N: Numbers = Numbers::PLAIN;

/// How to read the figures.
const READ: &str = "Nodes like the measured CPU, each with delays of its own. A figure with ≥ is a lower bound: the run is too \
                    short to hold the delays that decide it. docs/scale.md has the model.";

/// Computes the noise of runs at scale, and writes a page.
pub fn run(arguments: &ScaleArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    clean_up(terminal);
    let folders: Vec<RunFolder> = match &arguments.runs[..] {
        [] => vec![open(None)?],
        paths => paths
            .iter()
            .map(|path| open(Some(path)))
            .collect::<Result<_, _>>()?,
    };
    let (noise, mut is_sound) = noise_of(&folders, terminal)?;
    let bad = match arguments.bad.as_ref().map(|bad| &bad.noise) {
        Some(BadNoise::Run(path)) => of_bad(path, terminal)?,
        _ => Vec::new(),
    };
    let program = Program {
        step_ns: arguments.step as f64,
        correlated: arguments.correlated,
        bad: arguments.bad.as_ref().map(|nodes| match nodes.noise {
            BadNoise::Longer(factor) => (nodes.share, Bad::Longer(factor)),
            BadNoise::Run(_) => (nodes.share, Bad::Runs(&bad)),
        }),
    };
    let mut nodes = arguments.nodes.clone();
    nodes.sort_unstable();
    nodes.dedup();
    let series = noise.into_iter().map(|(place, runs)| {
        let points = at_scale(&runs, &program, &nodes, Level::P95)?;
        Ok(Series::new(place, &runs, &points, arguments.step as f64))
    });
    let shown = Shown {
        schema: 1,
        step_ns: arguments.step,
        correlated: arguments.correlated,
        bad: arguments.bad.as_ref().map(|bad| bad.text.clone()),
        series: series.collect::<Result<_, CommandError>>()?,
    };
    match arguments.json {
        true => terminal.print_json(&shown)?,
        false => terminal.print_text(&shown.text(terminal.width()))?,
    }
    let written = folders[0].derived(arguments.output.as_deref());
    match written.and_then(|to| to.write("scale.html", shown.page().as_bytes())) {
        Ok(page) if !arguments.json => {
            terminal.print_sentence(&format!("page: {}", page.display()))?
        }
        Ok(_) => {}
        Err(error) => {
            terminal.error(&error.to_string());
            is_sound = false;
        }
    }
    Ok(if is_sound { exit::DONE } else { exit::FAILED })
}

/// The runs of each place: target and load.
type Noise = Vec<(String, Vec<NoiseRun>)>;

/// Reads the noise of runs, and says whether all cells could be read.
fn noise_of(folders: &[RunFolder], terminal: &Terminal) -> Result<(Noise, bool), CommandError> {
    let (mut all, mut is_sound) = (Noise::new(), true);
    for folder in folders {
        let cells = folder.plan().cells.iter();
        for plan in cells.filter(|plan| plan.experiment == noise::NAME) {
            let id = plan.id;
            let (state, samples) = folder.read(id);
            let cell = match &state {
                CellState::Done(cell) => cell,
                CellState::Damaged { path, reason } => {
                    is_sound = false;
                    terminal.warn(&format!(
                        "cell {id} is damaged and not used: {} {reason}",
                        path.display()
                    ));
                    continue;
                }
                _ => continue,
            };
            let Some(data) = CellData::new(cell, &samples) else {
                continue;
            };
            let run = noise::run_of(&data)
                .map_err(|why| CommandError::Measurement(format!("cell {id}: {why}")))?;
            let Some(run) = run else { continue };
            let emulated = data.program().is_some_and(|program| program.agent.emulated);
            let emulated = if emulated { " (emulated)" } else { "" };
            let place = format!("{}{}{emulated}", plan.target, plan.load.under());
            match all.iter_mut().find(|(known, _)| *known == place) {
                Some((_, runs)) => runs.push(run),
                None => all.push((place, vec![run])),
            }
        }
    }
    match (all.is_empty(), folders) {
        (true, [first, ..]) => Err(CommandError::Usage(format!(
            "{} has no run of the workload gap; `tare noise --workload gap` measures it",
            first.path().display()
        ))),
        _ => Ok((all, is_sound)),
    }
}

/// Reads the noise of bad nodes.
fn of_bad(path: &Path, terminal: &Terminal) -> Result<Vec<NoiseRun>, CommandError> {
    let (mut noise, _) = noise_of(&[open(Some(path))?], terminal)?;
    match (noise.pop(), noise.len()) {
        (Some((_, runs)), 0) => Ok(runs),
        _ => Err(CommandError::Usage(format!(
            "--bad: {} has several targets or loads: give a run with one",
            path.display()
        ))),
    }
}

/// The result.
#[derive(Debug, Serialize)]
struct Shown {
    schema: u32,
    step_ns: u64,
    correlated: f64,
    bad: Option<String>,
    series: Vec<Series>,
}

/// The noise of one place at scale.
#[derive(Debug, Serialize)]
struct Series {
    place: String,
    runs: usize,
    seconds: f64,
    verdict: Vec<String>,
    points: Vec<OfNodes>,
}

#[derive(Debug, Serialize)]
struct OfNodes {
    nodes: u64,
    slowdown: Figure,
    fan_out_p99_ns: Figure,
}

/// A figure with its interval over runs at 95 %, or why it has none.
#[derive(Debug, Serialize)]
struct Figure {
    value: f64,
    is_lower_bound: bool,
    low: Option<f64>,
    high: Option<f64>,
    no_interval: Option<String>,
    needed_seconds: f64,
}

impl From<&Scaled> for Figure {
    fn from(scaled: &Scaled) -> Self {
        let interval = scaled.interval.ok();
        Self {
            value: scaled.value,
            is_lower_bound: scaled.is_least,
            low: interval.map(|both| both.low),
            high: interval.map(|both| both.high),
            no_interval: scaled.interval.err().map(|why| why.to_string()),
            needed_seconds: scaled.needed_ns / 1e9,
        }
    }
}

impl Series {
    fn new(place: String, runs: &[NoiseRun], points: &[AtScale], step_ns: f64) -> Self {
        let seconds = runs.iter().map(|run| run.length_ns / 1e9).sum();
        let points = points.iter().map(|point| OfNodes {
            nodes: point.nodes,
            slowdown: (&point.slowdown).into(),
            fan_out_p99_ns: (&point.fan_out_p99_ns).into(),
        });
        let mut series = Self {
            place,
            runs: runs.len(),
            seconds,
            verdict: Vec::new(),
            points: points.collect(),
        };
        series.verdict = series.sentences(step_ns);
        series
    }

    /// Says what a step costs on the most nodes that the runs are long enough for.
    fn sentences(&self, step_ns: f64) -> Vec<String> {
        let known = self
            .points
            .iter()
            .rfind(|point| !point.slowdown.is_lower_bound);
        let Some(point) = known.or(self.points.first()) else {
            return Vec::new();
        };
        let (place, step) = (&self.place, N.ns_tick(step_ns));
        let nodes = |nodes| counted(N, nodes, "node", "nodes");
        let [least, value, interval] = point.slowdown.written(percent, percent_range);
        let interval = match interval.as_str() {
            NONE => String::new(),
            interval => format!(" (95 % interval {interval})"),
        };
        let least = if least.is_empty() { "" } else { "at least " };
        let on = nodes(point.nodes);
        let first = format!(
            "With the noise of {place}, a step of {step} takes {least}{value} longer on {on}{interval}."
        );
        let short = self
            .points
            .iter()
            .find(|point| point.slowdown.is_lower_bound);
        let short = short.map(|point| {
            let needed = human(Duration::from_secs_f64(point.slowdown.needed_seconds));
            let has = human(Duration::from_secs_f64(self.seconds));
            format!(
                "The run is too short for {}: it has {has} of noise, they need at least {needed}.",
                nodes(point.nodes)
            )
        });
        [first].into_iter().chain(short).collect()
    }
}

fn percent(share: f64) -> String {
    N.percent(share)
}

fn time(ns: f64) -> String {
    N.ns(ns, None)
}

impl Figure {
    /// Writes the sign of a lower bound, the figure and its interval.
    fn written(
        &self,
        figure: fn(f64) -> String,
        range: fn(Numbers, f64, f64) -> String,
    ) -> [String; 3] {
        let interval = self
            .low
            .zip(self.high)
            .map(|(low, high)| range(N, low, high));
        let least = if self.is_lower_bound { "≥ " } else { "" };
        let interval = interval.unwrap_or_else(|| NONE.to_owned());
        [least.to_owned(), figure(self.value), interval]
    }
}

impl Shown {
    fn table(&self) -> Table {
        let heads = [
            "nodes",
            "a step takes\nlonger by",
            "95 % interval",
            "p99 delay of\na fan-out",
            "95 % interval",
        ];
        let mut table = Table::new(heads);
        for series in &self.series {
            table.heading(&series.place);
            for point in &series.points {
                let [least, slowdown, of_step] = point.slowdown.written(percent, percent_range);
                let times = |_: Numbers, low, high| format!("{} – {}", time(low), time(high));
                let [at_least, p99, of_p99] = point.fan_out_p99_ns.written(time, times);
                let cells = [
                    N.count(point.nodes),
                    least + &slowdown,
                    of_step,
                    at_least + &p99,
                    of_p99,
                ];
                table.row(cells);
            }
        }
        table
    }

    /// Writes it for a terminal, the answers first.
    fn text(&self, width: usize) -> Text {
        let mut page = Page::new(width);
        for series in &self.series {
            for (place, sentence) in series.verdict.iter().enumerate() {
                let style = if place == 0 {
                    Style::new().bold()
                } else {
                    Style::new()
                };
                page.paragraph(sentence, style, "");
            }
        }
        page.blank();
        page.table(&self.table());
        page.note(READ);
        page.finish()
    }

    /// Returns the page: the answers, a picture of each figure, and the table.
    fn page(&self) -> String {
        let upward = |title, write| Dimension {
            scaling: Scaling::WithZero,
            ..Dimension::logarithmic(title, write, write)
        };
        let sections = [
            self.picture(
                "slowdown",
                "A bulk-synchronous step",
                upward("a step takes longer by", percent),
                |point| &point.slowdown,
            ),
            self.picture(
                "fan-out",
                "A request that fans out",
                upward("delay that 99 % do not exceed", time),
                |point| &point.fan_out_p99_ns,
            ),
            Some(Section::new("figures", "Figures", self.table().render())),
        ];
        let sentences: Vec<String> = self
            .series
            .iter()
            .flat_map(|series| series.verdict.clone())
            .collect();
        of_sections(
            "tare scale",
            &sentences,
            &Vec::from_iter(sections.into_iter().flatten()),
        )
    }

    fn picture(
        &self,
        id: &str,
        name: &str,
        upward: Dimension<'_>,
        figure: fn(&OfNodes) -> &Figure,
    ) -> Option<Section> {
        let point = |of: &OfNodes| Point {
            name: N.count(of.nodes),
            at: (of.nodes as f64, figure(of).value),
            interval: figure(of).low.zip(figure(of).high).map(Into::into),
            doubt: figure(of)
                .is_lower_bound
                .then(|| "a lower bound".to_owned()),
            ..Point::default()
        };
        let lines = self.series.iter().map(|series| {
            (
                series.place.clone(),
                series.points.iter().map(point).collect(),
            )
        });
        let across = Dimension::logarithmic("nodes", |nodes| N.tick(nodes), |nodes| N.tick(nodes));
        let curve = Curve {
            title: name,
            read: "Upright bars are 95 % intervals over the runs; rings are lower bounds.",
            ..Curve::new(Line::each(lines), across, upward)
        };
        Some(Section::new(id, name, curve.render()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of 10 s with a tick of 5 µs every 4 ms, and one delay of 2 ms each second or less often.
    fn runs() -> Vec<NoiseRun> {
        let run = |number: u32| {
            let seconds = 10.0 + f64::from(number);
            let every = 1e9 + 1e8 * f64::from(number);
            let gaps = (0..2_500).map(|tick| {
                let start = f64::from(tick) * 4e6 + 1e6;
                let is_long = (start / every).fract() < 4e6 / every;
                (start, if is_long { 2e6 } else { 5e3 })
            });
            NoiseRun {
                length_ns: seconds * 1e9,
                gaps: gaps.collect(),
            }
        };
        (0..4).map(run).collect()
    }

    #[test]
    fn the_answer_comes_first_and_lower_bounds_are_marked() {
        let program = Program {
            step_ns: 1e6,
            correlated: 0.0,
            bad: None,
        };
        let runs = runs();
        let points = at_scale(&runs, &program, &[1, 100, 1_000, 1_000_000], Level::P95).unwrap();
        let shown = Shown {
            schema: 1,
            step_ns: 1_000_000,
            correlated: 0.0,
            bad: None,
            series: vec![Series::new(
                "process under dd".to_owned(),
                &runs,
                &points,
                1e6,
            )],
        };
        insta::assert_snapshot!(shown.text(100).to_string());
        let page = shown.page();
        assert!(
            page.contains("a lower bound") && page.contains("<svg"),
            "{page}"
        );
    }
}
