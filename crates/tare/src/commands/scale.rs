//! `tare scale`: what the noise of a run costs on many nodes.

use std::time::Duration;

use anstyle::Style;
use serde_json::{Value, json};
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
use tare_stats::{AtScale, Level, NoiseRun, Program, Scaled, at_scale};

use super::clean_up;
use super::run_folder::open;
use crate::cli::scale::ScaleArguments;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

const N: Numbers = Numbers::PLAIN;

/// How to read the figures.
const READ: &str = "Nodes are like the measured CPU, and delayed independently. A figure with \
                    ≥ is a lower bound: the run is too short for the delays that decide it. \
                    docs/scale.md has the model.";

/// Computes the noise of runs at scale, and writes a page.
pub fn run(arguments: &ScaleArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    clean_up(terminal);
    let mut folders = Vec::new();
    for path in &arguments.runs {
        folders.push(open(Some(path))?);
    }
    if folders.is_empty() {
        folders.push(open(None)?);
    }
    let (noise, mut is_sound) = noise_of(&folders, terminal)?;
    let bad = match &arguments.bad {
        None => None,
        Some((share, path)) => match &mut noise_of(&[open(Some(path))?], terminal)?.0[..] {
            [(_, runs)] => Some((*share, std::mem::take(runs))),
            _ => {
                let why = "--bad: the run has several targets or loads: give one with one of each";
                return Err(CommandError::Usage(why.to_owned()));
            }
        },
    };
    let mut nodes = arguments.nodes.clone();
    nodes.sort_unstable();
    nodes.dedup();
    let mut all = Vec::new();
    for (place, noise) in noise {
        let program = Program {
            step_ns: arguments.step as f64,
            correlated: arguments.correlated,
            noise: &noise,
            bad: bad.as_ref().map(|(share, runs)| (*share, &runs[..])),
        };
        let points = at_scale(&program, &nodes, Level::P95)?;
        all.push(Series::new(place, &program, points));
    }
    match arguments.json {
        true => terminal.print_json(&in_json(arguments, &all))?,
        false => terminal.print_text(&text(&all, terminal.width()))?,
    }
    let to = folders[0].derived(arguments.output.as_deref());
    match to.and_then(|to| to.write("scale.html", page(&all).as_bytes())) {
        Ok(page) if !arguments.json => {
            terminal.print_sentence(&format!("page: {}", page.display()))?;
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

/// Reads the noise of runs, and says whether no cell was damaged.
fn noise_of(folders: &[RunFolder], terminal: &Terminal) -> Result<(Noise, bool), CommandError> {
    let (mut all, mut is_sound) = (Noise::new(), true);
    let cells = folders.iter().flat_map(|folder| {
        let plans = folder.plan().cells.iter();
        plans.map(move |plan| (folder, plan))
    });
    for (folder, plan) in cells.filter(|(_, plan)| plan.experiment == noise::NAME) {
        let (state, samples) = folder.read(plan.id);
        if let CellState::Damaged { path, reason } = &state {
            is_sound = false;
            terminal.warn(&format!(
                "{} is damaged and not used: {reason}",
                path.display()
            ));
        }
        let CellState::Done(cell) = &state else {
            continue;
        };
        let Some(data) = CellData::new(cell, &samples) else {
            continue;
        };
        let place = || format!("cell {} of {}", plan.id, folder.path().display());
        let run = noise::run_of(&data);
        let run = run.map_err(|why| CommandError::Usage(format!("{}: {why}", place())));
        let Some(run) = run? else {
            continue;
        };
        let emulated = data.program().filter(|program| program.agent.emulated);
        let emulated = emulated.map_or("", |_| " (emulated)");
        let place = format!("{}{}{emulated}", plan.target, plan.load.under());
        match all.iter_mut().find(|(known, _)| *known == place) {
            Some((_, runs)) => runs.push(run),
            None => all.push((place, vec![run])),
        }
    }
    if all.is_empty() {
        return Err(CommandError::Usage(format!(
            "{} has no run of the workload gap; `tare noise --workload gap` measures it",
            folders[0].path().display()
        )));
    }
    Ok((all, is_sound))
}

/// The noise of one place at scale.
struct Series {
    place: String,
    seconds: f64,
    runs: usize,
    points: Vec<AtScale>,
    /// The answer, and what limits it.
    verdict: Vec<String>,
}

impl Series {
    /// Says what a step costs on the most nodes that the runs are long enough for.
    fn new(place: String, program: &Program<'_>, points: Vec<AtScale>) -> Self {
        let seconds: f64 = program.noise.iter().map(|run| run.length_ns / 1e9).sum();
        let known = points.iter().rfind(|point| !point.slowdown.is_least);
        let answer = known.or(points.first()).map(|point| {
            let [value, interval] = slowdown(&point.slowdown);
            let (step, on) = (N.ns_tick(program.step_ns), nodes(point));
            let least = value.replace("≥", "at least");
            let interval = match interval.as_str() {
                NONE => String::new(),
                ends => format!(" (95 % interval {ends})"),
            };
            format!("With the noise of {place}, a step of {step} takes {least} longer on {on}{interval}.")
        });
        let short = points.iter().find(|point| point.slowdown.is_least);
        let short = short.map(|point| {
            // In whole seconds what there is could be as much as is needed.
            let time = |seconds| match seconds < 60.0 {
                true => time(seconds * 1e9),
                false => human(Duration::from_secs_f64(seconds)),
            };
            let (has, needed) = (time(seconds), time(point.slowdown.needed_ns / 1e9));
            let on = nodes(point);
            format!(
                "The run is too short for {on}: it measured for {has}, they need at least {needed}."
            )
        });
        Self {
            verdict: answer.into_iter().chain(short).collect(),
            runs: program.noise.len(),
            place,
            seconds,
            points,
        }
    }
}

fn nodes(point: &AtScale) -> String {
    counted(N, point.nodes, "node", "nodes")
}

/// Writes a figure and its interval.
fn written(
    figure: &Scaled,
    write: impl Fn(f64) -> String,
    range: impl Fn(f64, f64) -> String,
) -> [String; 2] {
    let least = if figure.is_least { "≥ " } else { "" };
    let ends = figure.interval.map(|both| range(both.low, both.high));
    let ends = ends.unwrap_or_else(|_| NONE.to_owned());
    [format!("{least}{}", write(figure.value)), ends]
}

fn slowdown(figure: &Scaled) -> [String; 2] {
    written(figure, percent, |low, high| percent_range(N, low, high))
}

fn percent(share: f64) -> String {
    N.percent(share)
}

fn time(ns: f64) -> String {
    N.ns(ns, None)
}

fn table(all: &[Series]) -> Table {
    let mut table = Table::new([
        "nodes",
        "a step takes\nlonger by",
        "95 % interval",
        "p99 delay of\na fan-out",
        "95 % interval",
    ]);
    for series in all {
        table.heading(&series.place);
        for point in &series.points {
            let times = |low, high| format!("{} – {}", time(low), time(high));
            let fan_out = written(&point.fan_out_p99_ns, time, times);
            let figures = slowdown(&point.slowdown).into_iter().chain(fan_out);
            table.row([N.count(point.nodes)].into_iter().chain(figures));
        }
    }
    table
}

/// Writes it for a terminal, the answers first.
fn text(all: &[Series], width: usize) -> Text {
    let mut page = Page::new(width);
    for series in all {
        for (place, sentence) in series.verdict.iter().enumerate() {
            let style = [Style::new().bold(), Style::new()][place.min(1)];
            page.paragraph(sentence, style, "");
        }
    }
    page.blank();
    page.table(&table(all));
    page.note(READ);
    page.finish()
}

/// Returns the page: the answers, a picture of each figure, and the table.
fn page(all: &[Series]) -> String {
    let step = "a step takes longer by";
    let request = "delay that 99 % of the requests do not exceed";
    let sections = [
        picture(all, "A bulk-synchronous step", (step, percent), |point| {
            &point.slowdown
        }),
        picture(all, "A request that fans out", (request, time), |point| {
            &point.fan_out_p99_ns
        }),
        Some(Section::new("figures", "Figures", table(all).render())),
    ];
    let sections = Vec::from_iter(sections.into_iter().flatten());
    let sentences = all.iter().flat_map(|series| series.verdict.iter().cloned());
    of_sections("tare scale", &Vec::from_iter(sentences), &sections)
}

fn picture(
    all: &[Series],
    name: &str,
    (title, write): (&str, fn(f64) -> String),
    figure: fn(&AtScale) -> &Scaled,
) -> Option<Section> {
    let lines = all.iter().map(|series| {
        let points = series.points.iter().map(|point| Point {
            name: nodes(point),
            at: (point.nodes as f64, figure(point).value),
            interval: figure(point)
                .interval
                .ok()
                .map(|both| [both.low, both.high]),
            doubt: figure(point).is_least.then(|| "a lower bound".to_owned()),
            ..Point::default()
        });
        (series.place.clone(), points.collect())
    });
    let across = Dimension::logarithmic("nodes", |nodes| N.tick(nodes), |nodes| N.tick(nodes));
    let upward = Dimension {
        scaling: Scaling::WithZero,
        ..Dimension::logarithmic(title, write, write)
    };
    let curve = Curve {
        title: "By the number of nodes",
        read: "Upright bars are 95 % intervals over the runs; rings are lower bounds.",
        ..Curve::new(Line::each(lines), across, upward)
    };
    let id = name.replace(' ', "-");
    Some(Section::new(&id, name, curve.render()?))
}

fn in_json(arguments: &ScaleArguments, all: &[Series]) -> Value {
    let figure = |figure: &Scaled| {
        let interval = figure.interval.ok();
        json!({
            "value": figure.value,
            "is_lower_bound": figure.is_least,
            "low": interval.map(|both| both.low),
            "high": interval.map(|both| both.high),
            "no_interval": figure.interval.err().map(|why| why.to_string()),
            "needed_seconds": figure.needed_ns / 1e9,
        })
    };
    let point = |point: &AtScale| {
        json!({
            "nodes": point.nodes,
            "slowdown": figure(&point.slowdown),
            "fan_out_p99_ns": figure(&point.fan_out_p99_ns),
        })
    };
    let series = |series: &Series| {
        json!({
            "place": series.place,
            "runs": series.runs,
            "seconds": series.seconds,
            "verdict": series.verdict,
            "points": Vec::from_iter(series.points.iter().map(point)),
        })
    };
    json!({
        "schema": 1,
        "step_ns": arguments.step,
        "correlated": arguments.correlated,
        "bad": arguments.bad.as_ref().map(|(share, run)| json!({ "share": share, "run": run })),
        "series": Vec::from_iter(all.iter().map(series)),
    })
}

#[cfg(test)]
mod tests {
    use tare_testkit::browser;
    use tare_testkit::figures::{figures_in, shown};

    use super::*;

    /// Runs of 10 s with a tick of 5 µs every 4 ms, of which one a second or less lasts 2 ms.
    fn runs() -> Vec<NoiseRun> {
        let run = |number: u32| {
            let every = 1e9 + 1e8 * f64::from(number);
            let gaps = (0..2_500).map(|tick| {
                let start = f64::from(tick) * 4e6 + 1e6;
                let is_long = (start / every).fract() < 4e6 / every;
                (start, if is_long { 2e6 } else { 5e3 })
            });
            NoiseRun {
                length_ns: 1e10 + 1e9 * f64::from(number),
                gaps: gaps.collect(),
            }
        };
        (0..4).map(run).collect()
    }

    #[test]
    fn the_answer_comes_first_and_lower_bounds_are_marked() {
        let noise = runs();
        let program = Program {
            step_ns: 1e6,
            correlated: 0.0,
            noise: &noise,
            bad: None,
        };
        let points = at_scale(&program, &[1, 100, 1_000, 1_000_000], Level::P95).unwrap();
        let all = [Series::new("process under dd".to_owned(), &program, points)];
        insta::assert_snapshot!(text(&all, 100).to_string());
        let page = page(&all);
        assert!(
            page.contains("a lower bound") && page.contains("<svg"),
            "{page}"
        );
        // No figure is another one than those of the points, or of the question.
        let points = all.iter().flat_map(|series| &series.points);
        let of_points = points.flat_map(|point| {
            let fan_out = &point.fan_out_p99_ns;
            let ends = fan_out
                .interval
                .iter()
                .flat_map(|both| [both.low, both.high]);
            let times = Vec::from_iter(ends.chain([fan_out.value]).map(time));
            [percent(point.slowdown.value)].into_iter().chain(times)
        });
        let known = of_points.chain(["1 ms", "95 %", "99 %"].map(str::to_owned));
        let known = figures_in(&Vec::from_iter(known).join("\n"));
        let (_, body) = page.split_once("<body>").unwrap();
        for told in [text(&all, 100).to_string(), shown(body)] {
            let unknown = figures_in(&told);
            let unknown = Vec::from_iter(unknown.difference(&known));
            assert!(unknown.is_empty(), "{unknown:?} in: {told}");
        }
        // Runs of less than a second are not said to last one.
        let run = || NoiseRun {
            length_ns: 1.5e8,
            gaps: vec![(1e6, 4e6), (8e7, 4e6)],
        };
        let short = [run(), run()];
        let program = Program {
            noise: &short,
            ..program
        };
        let points = at_scale(&program, &[100], Level::P95).unwrap();
        let told = Series::new("process".to_owned(), &program, points).verdict;
        let known = "it measured for 300 ms, they need at least ";
        assert!(told[1].contains(known), "{told:?}");
        let dark: &[&str] = &["--blink-settings=preferredColorScheme=0"];
        for (width, options) in [(1_280, &[][..]), (400, &[]), (1_280, dark), (400, dark)] {
            if let Some(faults) = browser::faults(&page, width, false, options) {
                assert!(faults.is_empty(), "{width}: {faults:#?}");
            }
        }
    }
}
