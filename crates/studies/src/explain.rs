//! A study in plain words: what will be measured where, how often, in which order, for how long.

use std::collections::BTreeSet;

use tare_experiments::without_interval;
use tare_lab::ExperimentError;
use tare_lab::estimate::{estimated, in_all};
use tare_lab::parameter::Parameter;
use tare_lab::plan::Starts;
use tare_lab::units::{counted, human};
use tare_results::model::Schedule;

use crate::study::{Part, Study, Variant};

/// Writes a study in plain words, every default that applies included. If the measured CPU is busy,
/// durations are estimated from below.
///
/// # Errors
///
/// Returns [`ExperimentError`] if an experiment does not take its values, which reading the study
/// would have told.
pub fn explain(study: &Study, is_busy: bool) -> Result<String, ExperimentError> {
    let mut lines = vec![match &study.title {
        Some(title) => format!("{}: {title}", study.name),
        None => study.name.clone(),
    }];
    if study.variant == Variant::Quick {
        lines.push("shorter variant (--quick)".to_owned());
    }
    let (mut cells, mut seconds, mut once) = (0, 0.0, 0);
    for (number, part) in (1..).zip(&study.parts) {
        let size = Size::of(study, part)?;
        cells += size.cells;
        seconds += size.seconds;
        once += size.once;
        lines.push(String::new());
        explain_part(&mut lines, number, part, &size);
    }
    lines.push(String::new());
    explain_order(&mut lines, study, once > 0);
    lines.push(String::new());
    explain_machine(&mut lines, study);
    lines.push(String::new());
    lines.push(format!(
        "{}; guests take longer under an emulator.",
        in_all(cells, seconds, is_busy),
    ));
    if let Some(published) = &study.reproduces {
        lines.push(format!(
            "The report shows the tables of {published}, and for each of its claims whether it is \
             reproduced."
        ));
    }
    Ok(lines.join("\n"))
}

/// Says how large a part is.
struct Size {
    combinations: u64,
    left_out: u64,
    /// Combinations that do not run as often as was asked for, but once.
    once: u64,
    cells: u64,
    seconds: f64,
    /// Figures that have no interval.
    lacking: BTreeSet<String>,
}

impl Size {
    fn of(study: &Study, part: &Part) -> Result<Self, ExperimentError> {
        // Which CPU is measured has no bearing on it.
        let all = part.combinations(0, Starts::Guessed)?.len() as u64;
        let planned = study.cells_of(part, 0, Starts::Guessed)?;
        let combinations = planned.len() as u64;
        let runs = |cell| part.experiment.runs_of(cell, part.runs);
        Ok(Self {
            combinations,
            left_out: all - combinations,
            once: planned.iter().filter(|cell| runs(cell) < part.runs).count() as u64,
            cells: planned.iter().map(|cell| u64::from(runs(cell))).sum(),
            seconds: planned
                .iter()
                .map(|cell| cell.estimate_seconds * f64::from(runs(cell)))
                .sum(),
            lacking: planned
                .iter()
                .filter_map(|cell| without_interval(cell, runs(cell)))
                .collect(),
        })
    }
}

fn explain_part(lines: &mut Vec<String>, number: u32, part: &Part, size: &Size) {
    let experiment = part.experiment;
    let shared = |name: &'static str, value: String| {
        let value = match part.given.contains(&name) {
            true => value,
            false => format!("{value} (default)"),
        };
        line(name, &value)
    };
    lines.push(format!(
        "Experiment {number}: {}, {}",
        experiment.name(),
        experiment.summary()
    ));
    let targets: Vec<String> = part.targets.iter().map(ToString::to_string).collect();
    lines.push(shared("targets", targets.join("; ")));
    lines.push(shared(
        "loads",
        part.loads
            .iter()
            .map(Schedule::as_str)
            .collect::<Vec<_>>()
            .join("; "),
    ));
    let all = experiment.parameters().iter();
    let all = all.filter(|parameter| parameter.command_only.is_none());
    for parameter in all.filter(|parameter| (parameter.applies)(parameter, &part.values)) {
        lines.push(line(parameter.name, &given_or_default(part, parameter)));
    }
    let limit = part
        .cell_limit
        .map_or_else(|| "by the cell's estimate (default)".to_owned(), human);
    lines.push(line("cell-limit", &limit));
    lines.push(shared("runs", part.runs.to_string()));
    let left_out = match size.left_out {
        0 => String::new(),
        left_out => format!(" ({left_out} left out)"),
    };
    let once = match size.once {
        0 => String::new(),
        once => format!(" ({once} of them once)"),
    };
    lines.push(format!(
        "  {}{left_out} × {}{once} = {}, {}",
        counted(size.combinations, "combination", "combinations"),
        counted(part.runs, "run", "runs"),
        counted(size.cells, "cell", "cells"),
        estimated(size.seconds),
    ));
    lines.extend(size.lacking.iter().map(|text| format!("  {text}")));
}

fn explain_order(lines: &mut Vec<String>, study: &Study, has_once: bool) {
    let runs = || study.parts.iter().map(|part| part.runs);
    let blocks = runs().max().unwrap_or_default();
    lines.push("Order".to_owned());
    lines.push(format!(
        "  {}, interleaved: each holds every combination once, in its own random order.",
        counted(blocks, "block", "blocks")
    ));
    if has_once || runs().any(|runs| runs != blocks) {
        lines.push("  What runs less often takes part in some blocks, evenly spread.".to_owned());
    }
    let random = "random, and printed (default)";
    lines.push(line("seed", &or(study.seed, random)));
}

fn explain_machine(lines: &mut Vec<String>, study: &Study) {
    lines.push("Machine".to_owned());
    let chosen = "an isolated one, else the quietest other than CPU 0 (default)";
    lines.push(line("cpu", &or(study.cpu, chosen)));
    let settings: Vec<String> = study
        .settings
        .iter()
        .map(|setting| format!("{} = {}", setting.path, setting.value))
        .collect();
    let settings = match &settings[..] {
        [] => "none are changed (default)".to_owned(),
        settings => settings.join(", "),
    };
    lines.push(line("settings", &settings));
    let engine = match study.start_engine {
        true => "a private Docker engine runs while its containers are measured",
        false => "none is started (default)",
    };
    lines.push(line("start-engine", engine));
}

fn given_or_default(part: &Part, parameter: &Parameter) -> String {
    let values = &part.values;
    if !values.has(parameter.name) {
        return format!("{} (default) · {}", parameter.default, parameter.meaning);
    }
    let given = values.of(parameter.name).iter();
    let value: Vec<String> = given.map(|value| parameter.show(value)).collect();
    let value = value.join(", ");
    format!("{value} · {}", parameter.meaning)
}

fn line(name: &str, value: &str) -> String {
    format!("  {name:<12} {value}")
}

fn or(number: Option<impl ToString>, default: &str) -> String {
    number.map_or_else(|| default.to_owned(), |number| number.to_string())
}
