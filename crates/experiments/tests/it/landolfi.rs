//! The claims of landolfi-2018, checked against a run of wake-ups.

use crate::synthetic::wakeups::Schedule;
use crate::synthetic::{NO, Run, UNKNOWN, YES, answers, assert_answers, reproduction};
use tare_figures::claims::Reproduction;
use tare_pages::{page, terminal};
use tare_testkit::assert_contains;

const LOADS: [&str; 7] = ["idle", "ping", "idle", "dd+hackbench", "du", "tar", "nc"];

/// The longest latencies of the phases, in ns, as published.
const NONE: [u64; 7] = [
    28_000, 105_000, 462_000, 563_000, 6_334_000, 575_000, 1_509_000,
];
const VOLUNTARY: [u64; 7] = [22_000, 140_000, 97_000, 966_000, 1_268_000, 842_000, 59_000];
const FULL: [u64; 7] = [18_000, 38_000, 14_000, 141_000, 1_126_000, 308_000, 28_000];
const RT: [u64; 7] = [10_000, 7_000, 5_000, 11_000, 15_000, 17_000, 14_000];

/// The number of activations in a phase: so many that the longest hardly moves the mean.
const PHASE: u64 = 30_000;

pub type Kernel = (&'static str, &'static str, [u64; 7]);

pub const STUDY: [Kernel; 4] = [
    ("linux,kernel=debian,preempt=none", "none", NONE),
    (
        "linux,kernel=debian,preempt=voluntary",
        "voluntary",
        VOLUNTARY,
    ),
    ("linux,kernel=debian,preempt=full", "full", FULL),
    ("linux,kernel=debian-rt", "rt", RT),
];

fn told(kernels: &[Kernel], emulated: bool, suffix: &str, shorter: u64) -> Reproduction {
    reproduction(run(kernels, emulated, suffix, shorter))
}

/// Makes a run of two blocks under these kernels.
pub fn run(kernels: &[Kernel], emulated: bool, suffix: &str, shorter: u64) -> Run {
    let mut run = Run::new(1);
    run.reproduces = Some("landolfi-2018");
    run.emulated = emulated;
    for block in 1..=2 {
        for (target, model, longest) in kernels {
            let target = format!("{target}{suffix}");
            let schedule = Schedule {
                target: &target,
                loads: &LOADS,
                activations: PHASE,
                model: Some(model),
                ..Schedule::default()
            };
            run.woken(block, schedule, |_, phase, n| {
                let base = if phase == 1 && *model != "rt" {
                    6_500
                } else {
                    2_000
                };
                match n % PHASE {
                    1_000 => longest[phase] - shorter * u64::from(block - 1),
                    _ => base,
                }
            });
        }
    }
    run
}

#[test]
fn the_published_figures_reproduce_the_claims() {
    let analysis = run(&STUDY, false, "", 0).analyse();
    let headline = "landolfi-2018: 4 claims reproduced.";
    assert_eq!(analysis.summary().verdict.headline, headline);
    let title = format!("<title>tare reproduce landolfi-2018 on CPU 1: {headline}</title>");
    assert_contains(&page::render(&analysis), &[&title]);
    let text = terminal::render(&analysis, 100, false);
    assert!(text.starts_with("Claims of landolfi-2018\n"), "{text}");
    let told = analysis.summary().reproduction.as_ref().unwrap();
    assert_eq!(told.comparisons.len(), 28);
    let mut rows = told.comparisons.iter();
    let du = rows.find(|row| row.what.starts_with("DU, none")).unwrap();
    assert_eq!(du.published, "6334 / 2.501 / 15.298");
    assert!(du.here.starts_with("6,334 / "), "{du:?}");
}

#[test]
fn published_figures_are_drawn_beside_ours() {
    let page = page::render(&run(&STUDY[..2], false, "", 0).analyse());
    for title in ["Longest", "Mean"] {
        let title = format!("<h3>{title} wake-up latency by load: published and here</h3>");
        let (_, picture) = page.split_once(&title).unwrap();
        let (picture, _) = picture.split_once("</figure>").unwrap();
        assert_contains(
            picture,
            &["another machine (wake-up latency in microseconds"],
        );
        // A diamond for each load under the two kernels that were measured, and none of the others;
        // for wide and for narrow screens.
        let diamonds = picture.matches("<path class=\"published\"").count();
        assert_eq!(diamonds, 2 * 14 + 1, "{picture}");
        assert!(picture.contains("preempt=none") && !picture.contains("debian-rt"));
    }
    assert_contains(&page, &[">published 6334\u{a0}µs</text>"]);
}

#[test]
fn other_figures_contradict_them() {
    // dd is the worst, full preemption is no better, and the real-time kernel stalls.
    let mut other = STUDY;
    other[0].2[3] = 9_000_000;
    other[2].2 = NONE;
    other[3].2[6] = 8_000_000;
    let told = told(&other, false, "", 0);
    assert_answers(&told, &[NO, YES, NO, NO]);
}

#[test]
fn runs_that_disagree_tell_nothing() {
    let mut other = STUDY;
    // In the second run du is shorter than nc.
    other[0].2[4] = 1_509_001;
    other[0].2[6] = 1_509_000;
    let mut run = Run::new(1);
    run.reproduces = Some("landolfi-2018");
    for block in 1..=2_u32 {
        let (target, model, longest) = other[0];
        let schedule = Schedule {
            target,
            loads: &LOADS,
            activations: PHASE,
            model: Some(model),
            ..Schedule::default()
        };
        run.woken(block, schedule, |_, phase, n| match (n % PHASE, phase) {
            (1_000, 4) if block == 2 => 100_001,
            (1_000, phase) => longest[phase],
            _ => 2_000,
        });
    }
    let told = reproduction(run);
    assert_eq!(told.claims[0].finding.answer, UNKNOWN, "{told:#?}");
    assert_contains(&told.claims[0].finding.why, &["disagree"]);
    // One kernel is nothing to compare with.
    assert_eq!(answers(&told)[2..], [UNKNOWN, UNKNOWN]);
    assert_contains(&told.claims[2].finding.why, &["preemption rt"]);
}

#[test]
fn an_emulator_tells_nothing_unless_it_counts_instructions() {
    let told = told(&STUDY, true, "", 0);
    assert_answers(&told, &[UNKNOWN; 4]);
    assert_contains(&told.claims[0].finding.why, &["TCG"]);
    assert_contains(&told.comparisons[0].here, &["(emulated)"]);
    let counted = self::told(&STUDY, true, ",clock=instructions", 0);
    assert_answers(&counted, &[YES; 4]);
    assert_contains(&counted.claims[0].finding.why, &["counted instructions"]);
}

#[test]
fn small_differences_between_runs_change_no_answer() {
    let told = told(&STUDY, false, "", 500);
    assert_answers(&told, &[YES; 4]);
}
