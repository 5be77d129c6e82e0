//! What a person sees at the end of a run.

use tare_experiments::catalogue;
use tare_pages::terminal;
use tare_results::CellState;
use tare_results::model::{Achieved, Load, LoadPlace};
use tare_testkit::assert_contains;

use crate::synthetic::wakeups::Schedule;
use crate::synthetic::{self, Fold, HZ, Run, spin, timed};
use crate::wakeups;

const TICK: u64 = (HZ / 250.0) as u64;

/// Makes two seconds of spinning: a tick of 250 Hz, and a longer gap now and then.
fn ticking(block: u32) -> synthetic::Folded {
    let block = u64::from(block);
    let tick = |n: u64| {
        (
            n * TICK + 1_000 * ((n * 7) % 5),
            5_000 + 13 * ((n * 37 + block) % 200),
        )
    };
    let other = |n: u64| {
        (
            n * 9_000_001 + 5_000_000,
            2_000 + 700 * ((n * 31 + block) % 600),
        )
    };
    let mut gaps: Vec<(u64, u64)> = (1..490).map(tick).chain((1..500).map(other)).collect();
    gaps.sort_unstable();
    let mut free_from = 0;
    gaps.retain(|&(start, length)| {
        let is_free = start >= free_from;
        free_from = if is_free {
            start + length + 100
        } else {
            free_from
        };
        is_free
    });
    spin(200_000_000, 25, &gaps, Fold::above(1_300))
}

/// Makes 100,000 repetitions of four timer steps, some of them delayed.
fn repetitions(base: u64, block: u32, delayed: bool) -> synthetic::Folded {
    let block = u64::from(block);
    let mut durations: Vec<u64> = (0..100_000)
        .map(|n| base + 26 * ((n * 7 + block) % 4))
        .collect();
    if delayed {
        for n in 0..60 {
            durations[n * 1_600 + 77] += 200 + 90 * (n as u64 * 11 % 60 + block).pow(2);
        }
    }
    timed(&durations, Fold::default())
}

/// Adds repetitions of `prime` up to this limit, some of them delayed.
fn prime(run: &mut Run, block: u32, target: &str, limit: u64, base: u64) {
    let folded = repetitions(base, block, true);
    run.done(block, target, "prime", Some(limit), folded);
}

fn text(run: Run) -> String {
    terminal::render(&run.analyse(), 100, false)
}

#[test]
fn one_target_with_gaps() {
    let mut run = Run::new(26);
    for block in 1..=5 {
        run.gap(block, "process", ticking(block));
    }
    insta::assert_snapshot!(text(run));
}

#[test]
fn one_run_of_prime() {
    let mut run = Run::new(26);
    prime(&mut run, 1, "process", 22, 1_040);
    insta::assert_snapshot!(text(run));
}

#[test]
fn two_targets_and_two_workloads() {
    let mut run = Run::new(1);
    for block in 1..=3 {
        run.gap(block, "process", ticking(block));
        prime(&mut run, block, "process", 22, 1_040);
        run.emulated = true;
        let quiet = spin(200_000_000, 25, &[], Fold::above(1_300));
        run.gap(block, "unikernel", quiet);
        let undelayed = repetitions(4_040, 0, false);
        run.done(block, "unikernel", "prime", Some(22), undelayed);
        run.emulated = false;
    }
    insta::assert_snapshot!(text(run));
}

#[test]
fn a_sweep() {
    let mut run = Run::new(1);
    for block in 1..=3 {
        for (limit, base) in [(10, 300), (22, 1_040), (46, 3_800)] {
            prime(&mut run, block, "process", limit, base);
            let undelayed = repetitions(base, 0, false);
            let guest = "linux,kernel=debian-rt";
            run.done(block, guest, "prime", Some(limit), undelayed);
        }
    }
    insta::assert_snapshot!(text(run));
}

#[test]
fn nothing_but_failures() {
    let mut run = Run::new(1);
    let reason = "the agent ended with signal 11; report it with its output";
    run.failed(1, "process", "prime", reason);
    run.missing(2, "process", "prime");
    insta::assert_snapshot!(text(run));
}

#[test]
fn names_from_outside_are_read_and_not_obeyed() {
    let mut run = Run::new(26);
    run.load = "command:\u{202e}EVIL";
    let cell = run.gap(1, "process", ticking(1));
    cell.notices = vec!["of a guest\u{1b}[2J\r\nEVIL".to_owned()];
    cell.load = Some(Load {
        place: LoadPlace::Beside,
        phases: Vec::new(),
        left: Vec::new(),
        achieved: vec![Achieved {
            what: "\u{202e}files\nEVIL".to_owned(),
            amount: 1,
            ns: 1_000_000,
        }],
        notices: Vec::new(),
    });
    prime(&mut run, 1, "process", 22, 1_040);
    run.failed(1, "docker", "prime", "\u{1b}[31mall is well\nEVIL\u{7f}");
    let analysis = run.analyse();
    for width in [60, 100, 10_000] {
        let text = terminal::render(&analysis, width, true);
        for sequence in text.split('\u{1b}').skip(1) {
            let style = sequence.split_once('m').map(|(style, _)| style);
            let is_style = |style: &str| {
                let mut chars = style.chars();
                chars.next() == Some('[') && chars.all(|c| c.is_ascii_digit() || c == ';')
            };
            assert!(style.is_some_and(is_style), "{sequence:?}");
        }
        let hidden = |c: char| c.is_control() && !matches!(c, '\n' | '\u{1b}') || c == '\u{202e}';
        assert!(!text.contains(hidden), "{text}");
        // Where no line is broken, none begins with what came after a line feed.
        assert!(width < 10_000 || !text.contains("\nEVIL"), "{text}");
        assert_contains(&text, &["\\u001b[2J", "\\u202efiles"]);
    }
}

#[test]
fn two_experiments_of_the_same_are_told_apart_and_counted_once() {
    let mut run = Run::new(1);
    for block in 1..=3 {
        for (repetitions, base) in [(100_000, 1_040), (200_000, 1_045)] {
            run.further = Some(("repetitions", repetitions));
            prime(&mut run, block, "process", 22, base);
        }
        run.further = None;
        for (limit, base) in [(10, 300), (46, 3_800)] {
            prime(&mut run, block, "process", limit, base);
        }
    }
    let analysis = run.analyse();
    let headline = &analysis.summary().verdict.headline;
    assert_contains(headline, &["prime, 3 sizes from 10 to 46"]);
    let text = terminal::render(&analysis, 120, false);
    for repetitions in [100_000, 200_000] {
        let name = format!("\nprime 22, repetitions={repetitions} · process ");
        assert_eq!(text.matches(&name).count(), 2, "{text}");
    }
    assert!(!text.contains("\nprime 22 · process"), "{text}");
}

#[test]
fn no_line_is_wider_than_the_terminal_and_no_word_broken() {
    let guest = "linux,kernel=debian-rt,preempt=full,cpus=2,isolate=1";
    let mut run = Run::new(26);
    for block in 1..=3 {
        for target in ["process", guest] {
            run.gap(block, target, ticking(block));
            prime(&mut run, block, target, 22, 1_040);
        }
    }
    let analysis = run.analyse();
    for width in [60, 80, 100, 120, 200] {
        synthetic::assert_fits(&analysis, width);
    }
    // The name has its own line, and the figures that matter are there.
    let text = terminal::render(&analysis, 80, false);
    let name = format!("\ngap · {guest}");
    assert_contains(&text, &[&name, "lost", "longest"]);
}

#[test]
fn colour_changes_nothing_but_colour() {
    let mut run = Run::new(26);
    run.gap(1, "process", ticking(1));
    let analysis = run.analyse();
    let plain = terminal::render(&analysis, 100, false);
    let coloured = terminal::render(&analysis, 100, true);
    assert!(!plain.contains('\x1b'));
    assert!(coloured.contains('\x1b'));
    let mut parts = coloured.split('\x1b');
    let mut without = parts.next().unwrap().to_owned();
    without.extend(parts.map(|part| part.split_once('m').unwrap().1));
    assert_eq!(without, plain);
}

#[test]
fn the_current_result_fits_in_a_line() {
    let mut run = Run::new(26);
    run.gap(1, "process", ticking(1));
    prime(&mut run, 1, "process", 22, 1_040);
    run.failed(1, "docker", "prime", "the daemon does not run; start it");
    run.woken(1, Schedule::default(), |_, _, n| 4_000 + n % 7);
    wakeups::stalled(&mut run, 1, &["idle", "dd"]);
    run.streamed(1, "process", &[10.0; 40]);
    let lines: Vec<String> = run
        .data()
        .cells
        .iter()
        .map(|(state, samples)| match state {
            CellState::Done(cell) | CellState::Failed(cell) => catalogue().live(cell, samples),
            other => panic!("{other:?}"),
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}
