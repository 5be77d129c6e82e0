//! No sentence, table, picture, file, gate or comparison has a figure that no row has.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use tare_figures::compare::{ComparedRow, compare, sides_by, signed, told};
use tare_figures::format::Numbers;
use tare_figures::rows::flat::{self, Origin};
use tare_figures::rows::{Row, written};
use tare_pages::{Report, page, terminal};
use tare_results::model::{Labels, Value};
use tare_testkit::figures::{differences_in, figures_in, shown, without};

use crate::gates::judge;
use crate::starts::three;
use crate::synthetic::primitives::Primitives;
use crate::synthetic::services::Asked;
use crate::synthetic::wakeups::{self, Schedule};
use crate::synthetic::{Fold, HZ, Run, gaps_like, plain, record, spin};

const N: Numbers = Numbers::PLAIN;

/// Limits and shares of the method itself, which are no figures of a run.
const OF_THE_METHOD: [&str; 7] = [
    "95 %",
    // The quantum of time in which work is counted.
    "250 µs",
    "400 cycles",
    "2,000 cycles",
    "6,000 cycles",
    "0 %",
    "100 %",
];

/// The columns of files that the plan fills, and those of a target's program.
const PLANNED: [&str; 6] = [
    "limit-or-size",
    "repetitions",
    "run",
    "phase",
    "interval_s",
    "planned",
];

/// What pictures of the noise's runs say of their axes: how long each took at most, and 400 cycles.
const OF_THE_NOISE: [&str; 7] = [
    "893 µs", "913 µs", "1.66 ms", "1.68 ms", "2.43 ms", "2.45 ms", "154 ns",
];

/// Returns the values of a row: of each run, over all, and of its modes.
fn values_of(row: &Row) -> Vec<f64> {
    let mut values: Vec<f64> = row
        .each
        .iter()
        .filter_map(|each| each.figure.value().or(each.figure.at_least()))
        .collect();
    values.extend(row.at_least());
    if let Ok(over) = &row.over {
        values.extend([over.estimate, over.lowest, over.highest]);
        if let Ok(interval) = &over.interval {
            values.extend([interval.low, interval.high]);
        }
    }
    if let Some(modes) = row.modes {
        values.extend([modes.low, modes.high]);
    }
    values
}

/// Returns in what ways the values of a row may be written.
fn of_row(row: &Row) -> Vec<String> {
    let write = |value: f64| {
        let mut all = vec![plain(&written(value, row.unit))];
        match row.unit {
            "ns" => {
                all.push(plain(&N.ns(value, row.resolution_ns)));
                if row.tsc_hz.is_some() {
                    let cycles = row.time(value).cycles;
                    all.extend(
                        [N.short(cycles), N.rounded(cycles)].map(|text| format!("{text} cycles")),
                    );
                }
            }
            "1/s" => all.push(format!("{}/s", N.short(value))),
            _ => {}
        }
        all
    };
    values_of(row).into_iter().flat_map(write).collect()
}

/// The sections of a page on the machine and the method.
const NOT_OF_THE_RUN: [&str; 6] = [
    "calibration",
    "places",
    "findings",
    "machine",
    "method",
    "provenance",
];

/// Returns what a page says of the run, without its lists of single interruptions.
fn said_of_the_run(page: &str) -> String {
    let (_, body) = page.split_once("<body>").expect("a page has a body");
    let is_of_the_run = |section: &&str| {
        let id = section.split('"').nth(1).unwrap_or_default();
        !NOT_OF_THE_RUN.contains(&id)
    };
    let sections: String = body.split("<section ").filter(is_of_the_run).collect();
    let sections = without(&sections, "<summary>Figures</summary>", "</details>");
    shown(&without(
        &sections,
        "<summary>The worst wake-ups",
        "</details>",
    ))
}

/// Asserts that each figure of a text is one of those that are known.
fn assert_known(name: &str, text: &str, known: &BTreeSet<String>) {
    let unknown: Vec<String> = figures_in(text).difference(known).cloned().collect();
    assert!(unknown.is_empty(), "{name}: {unknown:#?} in: {text}");
}

/// Asserts that each figure of a report is of a row, or known otherwise: those of sentences, tables
/// and pictures, on terminal and page, and those that gates name. Each figure of a sentence is on
/// the page a second time.
fn assert_consistent(name: &str, report: &Report, otherwise: &[&str]) {
    let others = OF_THE_METHOD.iter().chain(otherwise);
    let rows = &report.rows().0;
    let summary = report.summary();
    assert_eq!(summary.done, summary.planned, "{name}");
    let known: BTreeSet<String> = rows
        .iter()
        .flat_map(of_row)
        .chain(others.map(|&text| text.to_owned()))
        .collect();
    let terminal = plain(&terminal::render(report, 120, false));
    assert_known(&format!("{name}, terminal"), &terminal, &known);
    // The meaning of a mark stands where there is one.
    for width in [40, 80, 120] {
        let text = plain(&terminal::render(report, width, false));
        let mut words = text.split_whitespace();
        let is_marked = words.any(|word| word.len() > 1 && word.ends_with('*'));
        let is_told = text.contains("* A figure");
        assert_eq!(is_marked, is_told, "{name}, {width}: {text}");
    }
    let page = page::render(report);
    let pictures = page.split("<figure").skip(1);
    let titles = pictures.filter_map(|picture| picture.split_once("<h3>")?.1.split_once("</h3>"));
    let mut titles = Vec::from_iter(titles.map(|(title, _)| title));
    titles.sort_unstable();
    let twice = titles.windows(2).find(|two| two[0] == two[1]);
    assert!(twice.is_none() && !titles.is_empty(), "{name}: {twice:?}");
    let page = said_of_the_run(&page);
    assert_known(&format!("{name}, page"), &page, &known);
    let verdict = &summary.verdict;
    let sentences = [&verdict.headline].into_iter().chain(&verdict.details);
    for sentence in sentences {
        let sentence = plain(sentence);
        assert!(terminal.contains(&sentence), "{name}: {sentence}");
        for figure in figures_in(&sentence) {
            assert!(page.contains(&figure), "{name}: {figure} of {sentence}");
        }
        assert_of_its_target(name, &sentence, rows, otherwise);
    }
    assert_files(name, report);
    for row in rows {
        let zero = match row.unit {
            "ns" => "0ns",
            "1" => "0%",
            "1/s" => "0/s",
            "bytes" => "0KiB",
            "bytes/s" => "0MB/s",
            "cycles" => "0cycles",
            _ => "0",
        };
        let figure = row.figure.to_string();
        let gate = format!("{}/{}.{figure} > {zero}", row.experiment, row.measure.id);
        let judged = judge(report, &gate).unwrap_or_else(|error| panic!("{gate}: {error}"));
        let told = judged.sentence.split(" above ").next().unwrap_or_default();
        assert_known(&gate, &plain(told), &known);
    }
}

/// Asserts that a figure that a sentence gives `on` a target, or in brackets behind it, is one of
/// that target.
fn assert_of_its_target(name: &str, sentence: &str, rows: &[Row], otherwise: &[&str]) {
    let targets: BTreeSet<&str> = rows.iter().map(|row| row.target.as_str()).collect();
    let mut before = String::new();
    for piece in sentence.split_inclusive(" on ") {
        let target = targets.iter().filter(|target| piece.starts_with(**target));
        let Some(target) = target.max_by_key(|target| target.len()) else {
            before.push_str(piece);
            continue;
        };
        let rest = &piece[target.len()..];
        let is_aside = rest.starts_with(" (");
        let (aside, rest) = rest
            .split_once(')')
            .filter(|_| is_aside)
            .unwrap_or(("", rest));
        let own = rows.iter().filter(|row| row.target == **target);
        let others = OF_THE_METHOD.iter().chain(otherwise);
        let others = others.map(|&text| text.to_owned());
        let known = own.flat_map(of_row).chain(others).collect();
        assert_known(&format!("{name}, on {target}"), &(before + aside), &known);
        before = rest.to_owned();
    }
}

/// Asserts that the files for programs have no other figures than the rows: those in one shape, those
/// with the columns of a study, and what an experiment adds.
fn assert_files(name: &str, report: &Report) {
    let rows = report.rows();
    let each = rows.0.iter().flat_map(values_of);
    // In files, times are in ns, µs, s, or cycles.
    let known = each.flat_map(|value| [1.0, 1e-3, 1e-9, HZ / 1e9].map(|factor| value * factor));
    let mut known = Vec::from_iter(known);
    known.sort_by(f64::total_cmp);
    // Some columns have three digits behind the point.
    let is_known = |number: f64| {
        let from = known.partition_point(|one| *one < number - number.abs() / 500.0);
        known
            .get(from)
            .is_some_and(|one| *one <= number + number.abs() / 500.0)
    };
    let mut numbers = Vec::new();
    let all = rows.flat(&Origin::of(&report.run().plan));
    let is_of_row = |column: &str| matches!(column, "value" | "low" | "high");
    numbers.extend(columns(&flat::csv(&all), "figures.csv", is_of_row));
    for (file, text) in report.stories().flat_map(|story| story.csv(report.run())) {
        numbers.extend(columns(&text, &file, |column| !PLANNED.contains(&column)));
    }
    let summary = serde_json::to_value(report.summary()).unwrap();
    let figures = summary["figures"].as_array().unwrap();
    assert_eq!(figures.len(), rows.0.len(), "{name}");
    for key in ["value", "low", "high"] {
        let own = figures.iter().filter_map(|figure| figure[key].as_f64());
        numbers.extend(own.map(|number| (format!("summary.json, {key}"), number)));
    }
    numbers_in(&summary["stories"], "", &mut numbers);
    // Single activations are no figures.
    numbers.retain(|(of, _)| !of.contains("/worst/"));
    numbers.retain(|(_, number)| *number != 0.0 && !is_known(*number));
    assert!(numbers.is_empty(), "{name}: {numbers:?}");
}

/// Returns the numbers in some columns of a CSV file, each with where it is.
fn columns(text: &str, file: &str, is_figure: impl Fn(&str) -> bool) -> Vec<(String, f64)> {
    // Commas within quotes separate nothing.
    let fields = |line: &str| {
        let mut is_quoted = false;
        let separated = line.split(move |c: char| {
            is_quoted ^= c == '"';
            c == ',' && !is_quoted
        });
        separated.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut lines = text.lines();
    let head = fields(lines.next().unwrap_or_default());
    let of_line = |line: &str| {
        let each = head.iter().zip(fields(line));
        let own = each.filter_map(|(column, field)| {
            let number = field.parse().ok().filter(|_| is_figure(column))?;
            Some((format!("{file}, {column}"), number))
        });
        Vec::from_iter(own)
    };
    lines.flat_map(of_line).collect()
}

/// Adds the numbers of a JSON value, each with the way to it.
fn numbers_in(json: &Json, at: &str, numbers: &mut Vec<(String, f64)>) {
    match json {
        Json::Number(number) => {
            numbers.extend(number.as_f64().map(|number| (at.to_owned(), number)))
        }
        Json::Array(all) => all.iter().for_each(|one| numbers_in(one, at, numbers)),
        Json::Object(all) => all
            .iter()
            .for_each(|(key, one)| numbers_in(one, &format!("{at}/{key}"), numbers)),
        _ => {}
    }
}

/// Asserts that each figure of a comparison of targets is of its rows, and each difference that the
/// verdict gives.
fn assert_compared(name: &str, report: &Report, otherwise: &[&str]) {
    let sides = sides_by("target", "run", report.run()).unwrap();
    let mut differences = BTreeSet::new();
    for (base, new) in &sides {
        let comparison = compare(base, new).unwrap();
        let of_row = |row: &ComparedRow| {
            let unit = row.unit.as_str();
            let values = [row.base, row.new].into_iter().flatten();
            let values = values.map(|value| told(Some(value), unit));
            let shifts = [row.shift, row.low, row.high].into_iter().flatten();
            let shifts = shifts.map(|shift| signed(shift, unit));
            let relative = row.relative.map(|relative| signed(relative, "%"));
            let all = values.chain(shifts).chain(relative);
            all.map(|text| plain(text.trim_start_matches(['+', '−', '<', ' '])))
                .collect::<Vec<_>>()
        };
        for row in &comparison.rows {
            let shifts = [row.shift, row.low, row.high].into_iter().flatten();
            let shifts = shifts.map(|shift| signed(shift, &row.unit));
            let relative = row.relative.map(|relative| signed(relative, "%"));
            differences.extend(shifts.chain(relative).map(|text| plain(&text)));
        }
        let others = OF_THE_METHOD.iter().chain(otherwise);
        let known: BTreeSet<String> = comparison
            .rows
            .iter()
            .flat_map(of_row)
            .chain(others.map(|&text| text.to_owned()))
            .collect();
        let text = plain(&terminal::compare(&comparison, 120).to_string());
        assert_known(&format!("{name}, compared"), &text, &known);
        let markdown = plain(&terminal::compare_markdown(&comparison));
        assert_known(&format!("{name}, as Markdown"), &markdown, &known);
    }
    for sentence in &report.summary().verdict.details {
        let unknown = differences_in(&plain(sentence));
        let unknown: Vec<_> = unknown.difference(&differences).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?} in: {sentence}");
    }
}

/// A run of an experiment, and its figures that are no row's.
pub type Walked = (&'static str, Report, &'static [&'static str]);

/// Makes a run of each experiment, of three targets.
pub fn runs() -> Vec<Walked> {
    let targets = ["process", "crun", "linux,kernel=debian-cloud"];
    let mut random = fastrand::Rng::with_seed(9);
    let mut noise = Run::new(1);
    let mut woken = Run::new(1);
    for block in 1..=4 {
        for (place, target) in (1..).zip(targets) {
            for load in ["", "dd"] {
                noise.load = load;
                let gaps = gaps_like(1.0, 50.0 * place as f64, &mut random);
                noise.gap(
                    block,
                    target,
                    spin(100_000_000, 26, &gaps, Fold::above(1_300)),
                );
                let durations: Vec<u64> = (0..2_000)
                    .map(|_| 1_000 * place + random.u64(..200 + 50 * u64::from(!load.is_empty())))
                    .collect();
                noise.prime(block, target, &durations);
            }
            let schedule = Schedule {
                target,
                ..Schedule::under(&["idle", "dd"])
            };
            woken.woken(block, schedule, |_, phase, _| {
                let base = (2_000 * place + 500 * phase as u64) as f64;
                wakeups::linux_like(base, 400.0, 0.0001, &mut random)
            });
        }
    }
    let mut primitives = Run::new(1);
    for block in 1..=4 {
        for (place, target) in (1..).zip(targets) {
            let cost = 100.0 * f64::from(place) + f64::from(block);
            primitives.measured(
                block,
                Primitives {
                    target,
                    area: "syscall",
                    values: &[
                        ("cost", "primitive=getppid", cost),
                        ("mean", "primitive=getppid", cost * 1.1),
                        ("cost", "primitive=getpid", cost * 0.9),
                    ],
                    expected: &[
                        ("cost", "primitive=getppid", 50.0),
                        ("cost", "primitive=getpid", 50.0),
                    ],
                    sets: &[],
                    facts: &[],
                },
            );
        }
    }
    vec![
        ("noise", noise.analyse(), &OF_THE_NOISE[..]),
        ("wakeup", woken.analyse(), &["100 µs", "12 %"][..]),
        // The lines of the target, the limit of an instance, the rates.
        (
            "start",
            three(3).analyse(),
            &["12 %", "1 ms", "16/s", "32/s", "64/s"][..],
        ),
        ("primitives", primitives.analyse(), &[][..]),
        ("service", served(&targets), &["500/s", "1,000/s"][..]),
        ("stream", streamed(&targets), &[][..]),
    ]
}

/// Makes a run of services at two rates.
fn served(targets: &[&'static str]) -> Report {
    let mut run = Run::new(1);
    for block in 1..=6 {
        for (place, target) in (1..).zip(targets) {
            for (labels, words, more) in [
                (&[("rate", "500")], "interval=2000000ns", 0.0),
                (&[("rate", "1000")], "interval=1000000ns", 3.0),
            ] {
                let factor = f64::from(place) + more + f64::from(block) / 100.0;
                let asked = Asked {
                    labels,
                    words,
                    cpu_ns: 20e3 * factor,
                    answered: 1_000.0 - f64::from(place),
                    window_ns: 1e9 * (1.0 + f64::from(block) / 1_000.0),
                    took_ns: Some((1e5 * factor) as u64),
                    ..Asked::default()
                };
                let values = [
                    ("cpu", "place=outside", "ns", 5e6 * factor),
                    ("wake-ups", "place=inside", "", 1_500.0 * factor),
                    ("wake-ups", "place=outside", "", 2_500.0),
                    ("client_cpu", "", "ns", 3e8 * factor / 10.0),
                    ("behind", "", "", f64::from(block)),
                    ("ready", "until=line", "ns", 12e6 * factor),
                    ("ready", "until=answer", "ns", 13e6 * factor),
                    ("memory", "place=inside", "bytes", 3e6 * factor),
                    ("image", "", "bytes", 1e6 * f64::from(place)),
                ];
                let values = values.map(|(measure, labels, unit, value)| Value {
                    measure: measure.to_owned(),
                    labels: labels
                        .split_once('=')
                        .into_iter()
                        .fold(Labels::default(), |all, (key, value)| all.with(key, value)),
                    unit: unit.to_owned(),
                    value,
                });
                record(run.asked(block, target, asked))
                    .values
                    .extend(values);
            }
        }
    }
    run.analyse()
}

/// Makes a run of bandwidths under two loads.
fn streamed(targets: &[&'static str]) -> Report {
    let mut run = Run::new(1);
    for block in 1..=6 {
        for (place, target) in (1..).zip(targets) {
            for (load, less) in [("", 1.0), ("dd", 1.3)] {
                run.load = load;
                let around = (12.0 - f64::from(place) + f64::from(block) / 50.0) / less;
                let rates = (0..40).map(|pass| around + f64::from(pass % 5) / 100.0);
                run.streamed(block, target, &Vec::from_iter(rates));
            }
        }
    }
    run.analyse()
}

#[test]
fn every_figure_that_is_told_is_of_a_row() {
    for (name, report, otherwise) in &runs() {
        assert_consistent(name, report, otherwise);
        assert_compared(name, report, otherwise);
    }
}
