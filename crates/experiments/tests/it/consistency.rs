//! No sentence, table, picture, gate or comparison has a figure that no row has.

use std::collections::BTreeSet;

use tare_figures::compare::{ComparedRow, compare, sides_by, signed, told};
use tare_figures::format::Numbers;
use tare_figures::rows::{Row, written};
use tare_pages::{Report, page, terminal};

use crate::gates::judge;
use crate::starts::three;
use crate::synthetic::primitives::Primitives;
use crate::synthetic::wakeups::{self, Schedule};
use crate::synthetic::{Fold, Run, gaps_like, plain, spin};

const N: Numbers = Numbers::PLAIN;

/// The units after which a number is a figure. None of the times of these runs is as long as a
/// second: in seconds stands when something was.
const UNITS: [&str; 9] = ["ns", "µs", "ms", "%", "cycles", "KiB", "MiB", "GB/s", "/s"];

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

/// What pictures of the noise's runs say of their axes: how long each took at most, and 400 cycles.
const OF_THE_NOISE: [&str; 7] = [
    "893 µs", "913 µs", "1.66 ms", "1.68 ms", "2.43 ms", "2.45 ms", "154 ns",
];

/// Returns the figures in a text: numbers with a unit behind them.
fn figures_in(text: &str) -> BTreeSet<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_number = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word
                .chars()
                .all(|c| c.is_ascii_digit() || matches!(c, '.' | ','))
    };
    let pairs = words.windows(2).filter_map(|pair| {
        let (number, unit) = (pair[0].trim_start_matches(['(', '>', '±']), pair[1]);
        let unit = unit.trim_end_matches([')', '.', ',', ';', ':']);
        (is_number(number) && UNITS.contains(&unit)).then(|| format!("{number} {unit}"))
    });
    let rates = words.iter().filter_map(|word| {
        let word = word
            .trim_end_matches([')', '.', ',', ';', ':'])
            .trim_start_matches('(');
        let number = word.strip_suffix("/s")?;
        is_number(number).then(|| word.to_owned())
    });
    pairs.chain(rates).collect()
}

/// Returns in what ways the values of a row may be written.
fn of_row(row: &Row) -> Vec<String> {
    let mut values: Vec<f64> = row
        .each
        .iter()
        .filter_map(|each| each.figure.value())
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
    values.into_iter().flat_map(write).collect()
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

/// Takes away what lies between two marks, wherever they are.
fn without(text: &str, from: &str, to: &str) -> String {
    let mut pieces = text.split(from);
    let mut rest = pieces.next().unwrap_or_default().to_owned();
    rest.extend(pieces.filter_map(|piece| Some(piece.split_once(to)?.1)));
    rest
}

/// Returns what a page says of the run, without the samples that its pictures draw and the marks at
/// their axes.
fn said_of_the_run(page: &str) -> String {
    let (_, body) = page.split_once("<body>").expect("a page has a body");
    let is_of_the_run = |section: &&str| {
        let id = section.split('"').nth(1).unwrap_or_default();
        !NOT_OF_THE_RUN.contains(&id)
    };
    let shown: String = body.split("<section ").filter(is_of_the_run).collect();
    let shown = without(&shown, "<g class=\"axis\">", "</g>");
    let shown = without(&shown, "<title>", "</title>");
    let shown = without(&shown, "<summary>Figures</summary>", "</details>");
    let shown = without(&shown, "<summary>The worst wake-ups", "</details>");
    let mut text = String::new();
    for piece in shown.split('<') {
        let (tag, rest) = piece.split_once('>').unwrap_or(("", piece));
        // Words of a sentence may be marked; what else has tags are cells and labels.
        let is_in_a_sentence = matches!(tag.trim_start_matches('/'), "b" | "code" | "wbr");
        text.push_str(if is_in_a_sentence { "" } else { " " });
        text.push_str(rest);
    }
    // Thin spaces within a number are commas elsewhere.
    let chars: Vec<char> = text.chars().collect();
    let is_within = |at: usize| {
        let digit = |at: Option<&char>| at.is_some_and(char::is_ascii_digit);
        at > 0 && digit(chars.get(at - 1)) && digit(chars.get(at + 1))
    };
    let written = chars.iter().enumerate().map(|(at, c)| match c {
        '\u{202f}' | '\u{a0}' if is_within(at) => ',',
        c => *c,
    });
    plain(&written.collect::<String>().replace("&gt;", "> "))
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
    }
    for row in rows {
        let zero = match row.unit {
            "ns" => "0ns",
            "1" => "0%",
            "1/s" => "0/s",
            "bytes" => "0KiB",
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

/// Asserts that each figure of a comparison of targets is of its rows.
fn assert_compared(name: &str, report: &Report, otherwise: &[&str]) {
    let sides = sides_by("target", "run", report.run()).unwrap();
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
}

#[test]
fn every_figure_that_is_told_is_of_a_row() {
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
    let runs = [
        ("noise", noise.analyse(), &OF_THE_NOISE[..]),
        ("wakeup", woken.analyse(), &["100 µs", "12 %"][..]),
        // The lines of the target, the limit of an instance, the rates.
        (
            "start",
            three(3).analyse(),
            &["12 %", "1 ms", "16/s", "32/s", "64/s"][..],
        ),
        ("primitives", primitives.analyse(), &[][..]),
    ];
    for (name, report, otherwise) in &runs {
        assert_consistent(name, report, otherwise);
        assert_compared(name, report, otherwise);
    }
}
