//! What a run of wake-ups tells of landolfi-2018.

use crate::synthetic::Run;
use crate::synthetic::wakeups::Schedule;
use tare_experiments::catalogue;
use tare_figures::claims::{Answer, Reproduction};
use tare_pages::page;

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
    let analysis = run(kernels, emulated, suffix, shorter).analyse();
    let told = analysis.summary().reproduction.clone();
    told.expect("it reproduces a study")
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

fn answers(told: &Reproduction) -> Vec<Answer> {
    told.claims
        .iter()
        .map(|claim| claim.finding.answer)
        .collect()
}

const YES: Answer = Answer::Reproduced;
const NO: Answer = Answer::NotReproduced;
const UNKNOWN: Answer = Answer::CannotBeTold;

#[test]
fn the_published_figures_reproduce_the_claims() {
    let told = told(&STUDY, false, "", 0);
    assert_eq!(answers(&told), [YES; 4], "{told:#?}");
    let du = told
        .comparisons
        .iter()
        .find(|c| c.what.starts_with("DU, none"));
    let du = du.unwrap();
    assert_eq!(du.published, "6334 / 2.501 / 15.298");
    assert!(du.here.starts_with("6,334 / "), "{du:?}");
    assert_eq!(told.comparisons.len(), 28);
}

#[test]
fn headline_and_title_name_the_study_and_count_its_claims() {
    let analysis = run(&STUDY, false, "", 0).analyse();
    let headline = "landolfi-2018: 4 claims reproduced.";
    assert_eq!(analysis.summary().verdict.headline, headline);
    let page = page::render(&analysis);
    let title = format!("<title>tare reproduce landolfi-2018 on CPU 1: {headline}</title>");
    assert!(page.contains(&title));
    let text = tare_pages::terminal::render(&analysis, 100, false);
    assert!(text.starts_with("Claims of landolfi-2018\n"), "{text}");
}

#[test]
fn published_figures_are_drawn_beside_ours() {
    let page = page::render(&run(&STUDY[..2], false, "", 0).analyse());
    for title in [
        "Longest wake-up latency by load",
        "Mean wake-up latency by load",
    ] {
        let (_, picture) = page
            .split_once(&format!("<h3>{title}: published and here</h3>"))
            .unwrap();
        let (picture, _) = picture.split_once("</figure>").unwrap();
        assert!(picture.contains("another machine (wake-up latency in microseconds"));
        // A diamond for each load under the two kernels that were measured, and none of the others.
        assert_eq!(
            picture.matches("<path class=\"published\"").count(),
            14 + 1,
            "{picture}"
        );
        assert!(picture.contains("preempt=none") && !picture.contains("debian-rt"));
    }
    assert!(page.contains(">published 6334\u{a0}µs</text>"));
}

#[test]
fn other_figures_contradict_them() {
    // dd is the worst, full preemption is no better, and the real-time kernel stalls.
    let mut other = STUDY;
    other[0].2[3] = 9_000_000;
    other[2].2 = NONE;
    other[3].2[6] = 8_000_000;
    let told = told(&other, false, "", 0);
    assert_eq!(answers(&told), [NO, YES, NO, NO], "{told:#?}");
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
    let analysis = run.data().analyse(catalogue()).unwrap();
    let told = analysis.summary().reproduction.clone().unwrap();
    assert_eq!(told.claims[0].finding.answer, UNKNOWN, "{told:#?}");
    assert!(told.claims[0].finding.why.contains("disagree"), "{told:#?}");
    // One kernel is nothing to compare with.
    assert_eq!(answers(&told)[2..], [UNKNOWN, UNKNOWN]);
    assert!(
        told.claims[2].finding.why.contains("preemption rt"),
        "{told:#?}"
    );
}

#[test]
fn an_emulator_tells_nothing_unless_it_counts_instructions() {
    let told = told(&STUDY, true, "", 0);
    assert_eq!(answers(&told), [UNKNOWN; 4], "{told:#?}");
    assert!(told.claims[0].finding.why.contains("TCG"), "{told:#?}");
    assert!(told.comparisons[0].here.contains("(emulated)"));
    let counted = self::told(&STUDY, true, ",clock=instructions", 0);
    assert_eq!(answers(&counted), [YES; 4], "{counted:#?}");
    assert!(
        counted.claims[0]
            .finding
            .why
            .contains("counted instructions"),
        "{counted:#?}"
    );
}

#[test]
fn small_differences_between_runs_change_no_answer() {
    let told = told(&STUDY, false, "", 500);
    assert_eq!(answers(&told), [YES; 4], "{told:#?}");
}
