//! The claims of a study, checked against a run that reproduces it.

use tare_pages::{page, terminal};
use tare_results::model::Cell;
use tare_testkit::assert_contains;

use crate::synthetic::{
    self, Fold, NO, Run, UNKNOWN, YES, answers, assert_answers, measured, reproduction, timed,
};

/// How a system of a run behaves.
#[derive(Clone, Copy)]
pub struct System {
    target: &'static str,
    environment: &'static str,
    /// Whether it is a guest.
    is_guest: bool,
    /// Cycles above the mean of one repetition in a thousand.
    delay: u64,
    /// How often, in a thousand repetitions.
    often: usize,
}

pub const LINUX: System = System {
    target: "process",
    environment: "linux",
    is_guest: false,
    delay: 5_000,
    often: 2,
};
pub const UNIKERNEL: System = System {
    target: "unikernel",
    environment: "unikernel",
    is_guest: false,
    delay: 900,
    often: 2,
};
pub const QUIET: System = System {
    target: "unikernel,irq=off",
    environment: "unikernel",
    is_guest: false,
    delay: 0,
    often: 0,
};

/// Makes 10,000 repetitions of this many divisions or elements.
fn work(system: System, work: u64, often: usize, block: u64) -> synthetic::Folded {
    let mut durations: Vec<u64> = (0..10_000).map(|n| 100 + 10 * work + 2 * (n % 2)).collect();
    for n in 0..often * 10 {
        durations[n * (1_000 / often) + 5] += system.delay + block;
    }
    let fold = Fold {
        work,
        ..Fold::default()
    };
    timed(&durations, fold)
}

pub fn run(systems: &[System], emulated: bool, copy_as_often: usize) -> Run {
    let mut run = Run::new(2);
    run.emulated = emulated;
    run.reproduces = Some("kot-2019");
    for block in 1..=3 {
        for system in systems {
            for (limit, divisions) in [(10, 16), (22, 84), (34, 180), (46, 310)] {
                let folded = work(*system, divisions, system.often, u64::from(block));
                place(
                    run.done(block, system.target, "prime", Some(limit), folded),
                    *system,
                );
            }
            let folded = work(*system, 84, system.often * copy_as_often, u64::from(block));
            place(
                run.done(block, system.target, "copy", Some(100), folded),
                *system,
            );
        }
    }
    run
}

fn place(cell: &mut Cell, system: System) {
    let agent = &mut measured(cell).agent;
    agent.environment = system.environment.to_owned();
    agent.accelerator = system.is_guest.then(|| "KVM of QEMU 7.2".to_owned());
}

#[test]
fn a_run_as_the_study_s_reproduces_its_claims() {
    let same = reproduction(run(&[LINUX, UNIKERNEL, QUIET], false, 1));
    // Nothing spun on the timer, so nothing tells whether delays are regular.
    assert_answers(&same, &[YES, YES, UNKNOWN, YES, YES, YES, NO]);
    let threefold = reproduction(run(&[LINUX, UNIKERNEL, QUIET], false, 3));
    assert_eq!(answers(&threefold)[5..], [NO, YES], "{threefold:#?}");
}

#[test]
fn long_delays_of_a_unikernel_on_the_bare_machine_contradict_the_study() {
    let slow = System {
        delay: 9_000,
        ..UNIKERNEL
    };
    let told = reproduction(run(&[LINUX, slow, QUIET], false, 1));
    assert_eq!(answers(&told)[..2], [NO, NO], "{told:#?}");
    let noisy = System {
        delay: 9_000,
        often: 5,
        ..QUIET
    };
    let told = reproduction(run(&[LINUX, UNIKERNEL, noisy], false, 1));
    assert_eq!(answers(&told)[3], NO, "{told:#?}");
}

#[test]
fn those_of_a_guest_may_be_its_host_s() {
    let guest = System {
        delay: 9_000,
        is_guest: true,
        ..UNIKERNEL
    };
    let told = reproduction(run(&[LINUX, guest, QUIET], false, 1));
    assert_eq!(answers(&told)[..2], [UNKNOWN, UNKNOWN], "{told:#?}");
    assert_contains(&told.claims[0].finding.why, &["ran as a guest"]);
    // That a guest has none is told all the same.
    let quiet = System {
        is_guest: true,
        ..QUIET
    };
    let told = reproduction(run(&[LINUX, quiet], false, 1));
    assert_eq!(answers(&told)[3], YES, "{told:#?}");
}

#[test]
fn an_emulator_tells_nothing() {
    let told = reproduction(run(&[LINUX, UNIKERNEL, QUIET], true, 1));
    assert!(
        answers(&told).iter().all(|answer| *answer == UNKNOWN),
        "{told:#?}"
    );
    assert_contains(&told.claims[0].finding.why, &["TCG"]);
    assert!(
        told.comparisons
            .iter()
            .any(|c| c.here.contains("(emulated)"))
    );
}

#[test]
fn the_first_sentence_counts_the_claims() {
    // What an emulator's pauses do to its figures does not count as another reason.
    let slow = System {
        delay: 9_000,
        is_guest: true,
        ..UNIKERNEL
    };
    let emulated = "no claim reproduced, 6 inconclusive without KVM, 1 inconclusive.";
    for (run, counted) in [
        (
            run(&[LINUX, UNIKERNEL, QUIET], false, 1),
            "5 claims reproduced, 1 not, 1 inconclusive.",
        ),
        (run(&[LINUX, UNIKERNEL, QUIET], true, 1), emulated),
        (run(&[LINUX, slow, QUIET], true, 1), emulated),
        (
            run(&[LINUX], false, 1),
            "2 claims reproduced, 1 not, 4 inconclusive.",
        ),
    ] {
        let verdict = run.analyse().summary().verdict.clone();
        assert_contains(&verdict.details[0], &["prime, 4 sizes"]);
        assert_eq!(verdict.headline, format!("kot-2019: {counted}"));
    }
}

#[test]
fn what_is_missing_is_named() {
    let told = reproduction(run(&[LINUX], false, 1));
    for (claim, interrupts) in [(0, "with"), (3, "without")] {
        let missing =
            format!("the run has no prime or copy on the unikernel {interrupts} interrupts");
        assert_eq!(told.claims[claim].finding.why, missing);
    }
    let mut rows = told.comparisons.iter();
    assert!(rows.any(|row| row.here == "not measured in this run"));
}

#[test]
fn work_that_does_not_grow_in_a_line_is_told() {
    let mut run = Run::new(2);
    run.reproduces = Some("kot-2019");
    for (limit, divisions) in [(10_u64, 16_u64), (22, 84), (34, 180), (46, 310)] {
        let durations = vec![divisions * divisions * divisions; 1_000];
        let fold = Fold {
            work: divisions,
            ..Fold::default()
        };
        run.done(1, "process", "prime", Some(limit), timed(&durations, fold));
    }
    let told = reproduction(run);
    assert_eq!(told.claims[4].finding.answer, NO, "{told:#?}");
}

#[test]
fn published_figures_are_drawn_beside_ours_and_called_so() {
    let page = page::render(&run(&[LINUX, UNIKERNEL, QUIET], false, 1).analyse());
    for part in [
        "<h3>Mean duration: published and here</h3>",
        "<h3>Repetitions delayed by 2,000 to 6,000 cycles: published and here</h3>",
        // Where it is from: another machine.
        "of another machine (kot-2019: figures as the study",
        "published by kot-2019, on another machine",
        ">published 906.263 ± 0.006\u{a0}cycles</text>",
        ">published 0.07\u{a0}%</text>",
    ] {
        assert_contains(&page, &[part]);
    }
    // Without the systems of the study there is nothing to draw.
    let other = page::render(&run(&[], false, 1).analyse());
    assert!(!other.contains("published and here"));
}

#[test]
fn claims_stand_in_report_terminal_and_summary() {
    let analysis = run(&[LINUX, UNIKERNEL, QUIET], false, 1).analyse();
    let page = page::render(&analysis);
    assert_contains(&page, &["Against kot-2019", "inconclusive", "906.263"]);
    let text = terminal::render(&analysis, 100, false);
    // They come first.
    assert!(text.starts_with("Claims of kot-2019\n"), "{text}");
    let (claims, _) = text.split_once("\n\nDurations\n").unwrap();
    insta::assert_snapshot!(claims);
    let at = |part: &str| {
        page.find(part)
            .unwrap_or_else(|| panic!("{part} is missing"))
    };
    assert_contains(
        &page,
        &["<title>tare reproduce kot-2019 on CPU 1: kot-2019: "],
    );
    assert!(at("claim of the study") < at("<figure"));
    assert!(at("id=\"claims\"") < at("id=\"results\""));
    let json = serde_json::to_value(analysis.summary()).unwrap();
    assert_eq!(json["reproduction"]["claims"][0]["answer"], "reproduced");

    let mut other = run(&[LINUX], false, 1);
    other.reproduces = None;
    let analysis = other.analyse();
    assert!(analysis.summary().reproduction.is_none());
    assert!(!page::render(&analysis).contains("Against kot-2019"));
}
