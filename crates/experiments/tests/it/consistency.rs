//! No sentence has a figure that no row has, and no two places of a report contradict each other.

use std::collections::BTreeSet;

use tare_figures::format::Numbers;
use tare_figures::rows::{Row, written};
use tare_pages::Report;

use crate::starts::three;
use crate::synthetic::primitives::Primitives;
use crate::synthetic::wakeups::{self, Schedule};
use crate::synthetic::{Fold, Run, gaps_like, plain, shown, spin};

const N: Numbers = Numbers::PLAIN;

/// The units after which a number is a figure.
const UNITS: [&str; 10] = [
    "ns", "µs", "ms", "s", "%", "cycles", "KiB", "MiB", "GB/s", "/s",
];

/// Limits and shares of the method itself, which are no figures of a run.
const OF_THE_METHOD: [&str; 6] = [
    "95 %",
    "400 cycles",
    "2,000 cycles",
    "6,000 cycles",
    "0 %",
    "100 %",
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

/// Returns the text of a page.
fn without_tags(page: &str) -> String {
    let mut text = String::new();
    for piece in page.split('<') {
        text.push_str(piece.split_once('>').map_or(piece, |(_, text)| text));
    }
    plain(&text)
}

/// Asserts that each figure of the sentences is of a row, or derived from others as it says, and on
/// terminal and page as well.
fn assert_consistent(name: &str, report: &Report, derived: &[&str]) {
    let others = OF_THE_METHOD.iter().chain(derived);
    let rows = report.rows().0.iter().flat_map(of_row);
    let rows: BTreeSet<String> = rows.chain(others.map(|&text| text.to_owned())).collect();
    let verdict = &report.summary().verdict;
    let sentences = [&verdict.headline]
        .into_iter()
        .chain(&verdict.details)
        .chain(&verdict.certainty);
    let (terminal, page) = shown(report);
    let page = without_tags(&page);
    let mut unknown = Vec::new();
    for sentence in sentences {
        let sentence = plain(sentence);
        assert!(terminal.contains(&sentence), "{name}: {sentence}");
        let found = figures_in(&sentence);
        unknown.extend(
            found
                .difference(&rows)
                .map(|figure| format!("{figure} in: {sentence}")),
        );
        for figure in &found {
            assert!(
                page.contains(&figure.replace(',', " ")),
                "{name}: {figure} is not on the page: {sentence}"
            );
        }
    }
    assert!(unknown.is_empty(), "{name}: {unknown:#?}\n{rows:?}");
}

#[test]
fn every_figure_of_a_sentence_is_of_a_row_and_on_the_page() {
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
                    spin(50_000_000, 26, &gaps, Fold::above(1_300)),
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
                    expected: &[("cost", "primitive=getppid", 50.0)],
                    sets: &[],
                    facts: &[],
                },
            );
        }
    }
    assert_consistent("noise", &noise.analyse(), &[]);
    assert_consistent("wakeup", &woken.analyse(), &[]);
    // The largest part as a share of the whole, both of which are told; and what the target said.
    assert_consistent("start", &three(3).analyse(), &["50.0 %", "12 %"]);
    assert_consistent("primitives", &primitives.analyse(), &[]);
}
