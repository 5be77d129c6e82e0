//! What a person sees at the end of a run.

use tare_experiments::catalogue;
use tare_host::{Fact, Machine, Source};
use tare_pages::terminal;
use tare_results::model::{Achieved, Load, LoadPlace};
use tare_results::{CellState, MachineRecord};

use crate::synthetic::{self, Fold, HZ, Run, spin, timed};

const TICK: u64 = (HZ / 250.0) as u64;

/// Makes two seconds of spinning: a tick of 250 Hz, and a longer gap now and then.
fn ticking(block: u64) -> synthetic::Folded {
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
    spin(200_000_000, 25, &gaps, spinning())
}

fn spinning() -> Fold {
    Fold {
        threshold: 1_300,
        ..Fold::default()
    }
}

/// Makes 100,000 repetitions of four timer steps, some of them delayed.
fn repetitions(base: u64, block: u64, delayed: bool) -> synthetic::Folded {
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

fn text(run: Run) -> String {
    terminal::render(&run.analyse(), 100, false)
}

#[test]
fn one_target_with_gaps() {
    let mut run = Run::new(26);
    for block in 1..=5 {
        run.done(block, "process", "gap", None, ticking(u64::from(block)));
    }
    insta::assert_snapshot!(text(run));
}

#[test]
fn one_run_of_prime() {
    let mut run = Run::new(26);
    run.done(1, "process", "prime", Some(22), repetitions(1_040, 1, true));
    insta::assert_snapshot!(text(run));
}

#[test]
fn two_targets_and_two_workloads() {
    let mut run = Run::new(1);
    for block in 1..=3 {
        run.done(block, "process", "gap", None, ticking(u64::from(block)));
        run.done(
            block,
            "process",
            "prime",
            Some(22),
            repetitions(1_040, u64::from(block), true),
        );
        run.emulated = true;
        run.done(
            block,
            "unikernel",
            "gap",
            None,
            spin(200_000_000, 25, &[], spinning()),
        );
        run.done(
            block,
            "unikernel",
            "prime",
            Some(22),
            repetitions(4_040, 0, false),
        );
        run.emulated = false;
    }
    insta::assert_snapshot!(text(run));
}

#[test]
fn a_sweep() {
    let mut run = Run::new(1);
    for block in 1..=3 {
        for (limit, base) in [(10, 300), (22, 1_040), (46, 3_800)] {
            let with_delays = repetitions(base, u64::from(block), true);
            run.done(block, "process", "prime", Some(limit), with_delays);
            run.done(
                block,
                "linux,kernel=debian-rt",
                "prime",
                Some(limit),
                repetitions(base, 0, false),
            );
        }
    }
    insta::assert_snapshot!(text(run));
}

#[test]
fn nothing_but_failures() {
    let mut run = Run::new(1);
    run.failed(
        1,
        "process",
        "prime",
        "the agent ended with signal 11; report it with its output",
    );
    run.missing(2, "process", "prime");
    insta::assert_snapshot!(text(run));
}

#[test]
fn names_from_outside_are_read_and_not_obeyed() {
    let mut run = Run::new(26);
    run.load = "command:\u{202e}EVIL";
    let cell = run.done(1, "process", "gap", None, ticking(1));
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
    run.done(1, "process", "prime", Some(22), repetitions(1_040, 1, true));
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
        assert!(
            text.contains("\\u001b[2J") && text.contains("\\u202efiles"),
            "{text}"
        );
    }
}

#[test]
fn two_experiments_of_the_same_are_told_apart_and_counted_once() {
    let mut run = Run::new(1);
    for block in 1..=3 {
        for (repetitions, base) in [(100_000, 1_040), (200_000, 1_045)] {
            run.further = Some(("repetitions", repetitions));
            let folded = self::repetitions(base, u64::from(block), true);
            run.done(block, "process", "prime", Some(22), folded);
        }
        run.further = None;
        for (limit, base) in [(10, 300), (46, 3_800)] {
            let folded = self::repetitions(base, u64::from(block), true);
            run.done(block, "process", "prime", Some(limit), folded);
        }
    }
    let analysis = run.analyse();
    let verdict = &analysis.summary().verdict;
    assert!(
        verdict.headline.starts_with("prime, 3 sizes from 10 to 46"),
        "{verdict:?}"
    );
    let text = terminal::render(&analysis, 120, false);
    for repetitions in [100_000, 200_000] {
        let name = format!("\nprime 22, repetitions={repetitions} · process ");
        assert_eq!(text.matches(&name).count(), 2, "{text}");
    }
    assert!(!text.contains("\nprime 22 · process"), "{text}");
}

#[test]
fn what_a_machine_loses_is_put_beside_what_idle_machines_lost() {
    let told = |hypervisor: Option<&str>, reproduces, gaps: synthetic::Folded| {
        let mut run = Run::new(26);
        run.reproduces = reproduces;
        run.done(1, "process", "gap", None, gaps);
        let mut data = run.data();
        let nowhere = tempfile::tempdir().unwrap();
        let mut machine = Machine::collect(&Source::at(nowhere.path()));
        machine.virtualisation.hypervisor = Fact::Known(hypervisor.map(str::to_owned));
        data.machine = Some(MachineRecord::new(machine, Vec::new()));
        let analysis = synthetic::analyse(data);
        let mut details = analysis.summary().verdict.details.clone();
        details.retain(|detail| detail.starts_with("For comparison"));
        details.join(" ")
    };
    let guest = told(Some("KVM"), None, ticking(1));
    assert!(
        guest.contains("osnoise") && guest.contains("an idle guest"),
        "{guest}"
    );
    assert!(
        guest.ends_with("2.00 % here is of the same order: usual."),
        "{guest}"
    );
    let machine = told(None, None, ticking(1));
    assert!(machine.contains("sysjitter"), "{machine}");
    assert!(
        machine.ends_with("2.00 % here is 13.4 times the most of that, more than usual."),
        "{machine}"
    );
    let quiet = told(
        None,
        None,
        spin(200_000_000, 25, &[(1_000, 9_000)], spinning()),
    );
    assert!(quiet.ends_with("is less than that."), "{quiet}");
    assert_eq!(told(None, Some("kot-2019"), ticking(1)), "");
}

#[test]
fn no_word_is_broken_at_80_columns() {
    let mut run = Run::new(26);
    for block in 1..=3 {
        for target in [
            "process",
            "linux,kernel=debian-rt,preempt=full,cpus=2,isolate=1",
        ] {
            run.done(block, target, "gap", None, ticking(u64::from(block)));
            let folded = repetitions(1_040, u64::from(block), true);
            run.done(block, target, "prime", Some(22), folded);
        }
    }
    let analysis = run.analyse();
    let unlimited = terminal::render(&analysis, 10_000, false);
    for width in [80, 100, 120] {
        let text = terminal::render(&analysis, width, false);
        synthetic::has_whole_words(&text, &unlimited).unwrap();
        // The name has a line of its own, and the figures that matter are there.
        assert!(text.contains("\ngap · linux,kernel=debian-rt,preempt=full,cpus=2,isolate=1"));
        assert!(text.contains("lost") && text.contains("longest"), "{text}");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [60, 80, 100, 200] {
        let mut run = Run::new(26);
        run.done(1, "process", "gap", None, ticking(1));
        let long = "linux,kernel=debian-rt,preempt=full,isolcpus=1";
        run.done(1, long, "prime", Some(22), repetitions(1_040, 1, true));
        let text = terminal::render(&run.analyse(), width, false);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn colour_changes_nothing_but_colour() {
    let mut run = Run::new(26);
    run.done(1, "process", "gap", None, ticking(1));
    let analysis = run.analyse();
    let plain = terminal::render(&analysis, 100, false);
    let coloured = terminal::render(&analysis, 100, true);
    assert!(!plain.contains('\x1b'));
    assert!(coloured.contains('\x1b'));
    let mut without = String::new();
    for (place, part) in coloured.split('\x1b').enumerate() {
        let end = if place == 0 {
            0
        } else {
            part.find('m').unwrap() + 1
        };
        without.push_str(&part[end..]);
    }
    assert_eq!(without, plain);
}

#[test]
fn the_current_result_fits_in_a_line() {
    let mut run = Run::new(26);
    run.done(1, "process", "gap", None, ticking(1));
    run.done(1, "process", "prime", Some(22), repetitions(1_040, 1, true));
    run.failed(1, "docker", "prime", "the daemon does not run; start it");
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
