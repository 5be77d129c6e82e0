//! What a run of starts tells of calder-2020.

use tare_figures::claims::{Answer, Reproduction};
use tare_pages::page;

use crate::synthetic::Run;
use crate::synthetic::starts::{MS, Starts, done};

const YES: Answer = Answer::Reproduced;
const NO: Answer = Answer::NotReproduced;
const UNKNOWN: Answer = Answer::CannotBeTold;

/// The published mean latencies in ms, from an interval of 4 s on, and the number of intervals that
/// are kept up.
const PROCESS: (&str, bool, &[u64], usize) = ("process", false, &[1; 13], 13);
const UNIKERNEL: (&str, bool, &[u64], usize) = ("unikernel", true, &[320; 13], 13);
const DOCKER: (&str, bool, &[u64], usize) =
    ("docker", false, &[1_100, 1_100, 1_300, 1_350, 46_000], 4);
const KVM: (&str, bool, &[u64], usize) = (
    "linux,root=debian",
    false,
    &[4_090, 4_090, 4_090, 4_090, 4_090, 4_390, 9_000],
    6,
);
const TCG: (&str, bool, &[u64], usize) = (
    "linux,accel=tcg,root=debian",
    true,
    &[19_000, 20_000, 22_000, 118_000],
    3,
);

/// Adds a target: its latencies by interval, and how many of these it kept up.
fn add(run: &mut Run, (target, emulated, latencies, kept): (&str, bool, &[u64], usize)) {
    run.emulated = emulated;
    for (step, ms) in latencies.iter().enumerate() {
        let ns = 4_000_000_000_u64 >> step;
        let text = match step {
            0..=2 => format!("{}s", 4 >> step),
            step => format!("1/{}s", 1 << (step - 2)),
        };
        let starts = Starts {
            target,
            interval: (&text, Some(ns)),
            warmup: 0,
            counted: 5,
            saturated: (step >= kept).then_some("it lagged"),
            ..Starts::default()
        };
        // The study counts a container, and a unikernel, until its end.
        run.started(1, starts, |_, planned| done(planned, 0, ms * MS));
    }
}

fn told(targets: &[(&str, bool, &[u64], usize)]) -> Reproduction {
    let mut run = Run::new(1);
    run.reproduces = Some("calder-2020");
    for target in targets {
        add(&mut run, *target);
    }
    let analysis = run.analyse();
    let _ = page::render(&analysis);
    analysis.summary().reproduction.clone().unwrap()
}

fn answers(told: &Reproduction) -> Vec<Answer> {
    told.claims
        .iter()
        .map(|claim| claim.finding.answer)
        .collect()
}

#[test]
fn the_published_figures_reproduce_the_claims() {
    let told = told(&[PROCESS, UNIKERNEL, DOCKER, KVM, TCG]);
    // Docker's ladder ended where it saturated; how its throughput fell after that is not measured.
    assert_eq!(
        answers(&told),
        [YES, YES, UNKNOWN, YES, YES, YES],
        "{told:#?}"
    );
    assert!(
        told.claims[2].finding.why.contains("the ladder ended"),
        "{told:#?}"
    );
    let first = &told.comparisons[0];
    assert_eq!(
        (first.what.as_str(), first.published.as_str()),
        (
            "process, every 4 s: latency / throughput",
            "1.36 ms / 0.25/s"
        )
    );
    assert!(first.here.starts_with("1.00 ms / "), "{first:?}");
    assert_eq!(first.drawn.len(), 2);
    let last = told
        .comparisons
        .iter()
        .find(|one| one.what.contains("linux-tcg, every 1/2 s"))
        .unwrap();
    assert!(last.here.ends_with("(saturated, emulated)"), "{last:?}");
}

#[test]
fn a_unikernel_without_kvm_answers_for_the_study_s() {
    let accelerated = ("unikernel", false, &[20, 20, 900][..], 2);
    let emulated = ("unikernel,accel=tcg", true, UNIKERNEL.2, UNIKERNEL.3);
    let told = told(&[PROCESS, accelerated, emulated, DOCKER, KVM, TCG]);
    assert_eq!(
        answers(&told),
        [YES, YES, UNKNOWN, YES, YES, YES],
        "{told:#?}"
    );
}

#[test]
fn without_kvm_claims_about_it_cannot_be_told() {
    let told = told(&[PROCESS, UNIKERNEL, DOCKER, TCG]);
    assert_eq!(
        answers(&told),
        [UNKNOWN, YES, UNKNOWN, UNKNOWN, YES, UNKNOWN],
        "{told:#?}"
    );
    let needs: Vec<bool> = told
        .claims
        .iter()
        .map(|claim| claim.finding.needs_kvm)
        .collect();
    assert_eq!(needs, [true, false, false, true, false, true], "{told:#?}");
}

#[test]
fn other_figures_contradict_them() {
    let slow_process = ("process", false, &[5_000_u64; 13][..], 13);
    let unikernel = ("unikernel", true, &[320, 320, 900][..], 2);
    let docker = ("docker", false, &[300; 6][..], 6);
    let kvm = ("linux,root=debian", false, &[2_000; 9][..], 8);
    let tcg = ("linux,accel=tcg,root=debian", true, &[19_000][..], 0);
    let told = told(&[slow_process, unikernel, docker, kvm, tcg]);
    assert_eq!(answers(&told), [NO, NO, NO, NO, NO, NO], "{told:#?}");
}

#[test]
fn nothing_measured_tells_nothing() {
    let told = told(&[("crun", false, &[12; 3], 3)]);
    assert_eq!(answers(&told), [UNKNOWN; 6], "{told:#?}");
    assert!(told.comparisons.iter().all(|one| one.target.is_none()));
}
