//! The claims of calder-2020, checked against a run of starts.

use tare_figures::claims::Reproduction;
use tare_testkit::assert_contains;

use crate::synthetic::starts::{MS, Starts, done};
use crate::synthetic::{NO, Run, UNKNOWN, YES, assert_answers, reproduction};

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
            ..Starts::DEFAULT
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
    reproduction(run)
}

#[test]
fn the_published_figures_reproduce_the_claims() {
    let told = told(&[PROCESS, UNIKERNEL, DOCKER, KVM, TCG]);
    // Docker's ladder ended where it saturated; how its throughput fell after that is not measured.
    assert_answers(&told, &[YES, YES, UNKNOWN, YES, YES, YES]);
    assert_contains(&told.claims[2].finding.why, &["the ladder ended"]);
    let rows = told.comparisons.iter();
    let rows = rows.map(|one| format!("{} | {} | {}", one.what, one.published, one.here));
    insta::assert_snapshot!(rows.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_unikernel_without_kvm_answers_for_the_study_s() {
    let accelerated = ("unikernel", false, &[20, 20, 900][..], 2);
    let emulated = ("unikernel,accel=tcg", true, UNIKERNEL.2, UNIKERNEL.3);
    let told = told(&[PROCESS, accelerated, emulated, DOCKER, KVM, TCG]);
    assert_answers(&told, &[YES, YES, UNKNOWN, YES, YES, YES]);
}

#[test]
fn without_kvm_claims_about_it_cannot_be_told() {
    let told = told(&[PROCESS, UNIKERNEL, DOCKER, TCG]);
    assert_answers(&told, &[UNKNOWN, YES, UNKNOWN, UNKNOWN, YES, UNKNOWN]);
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
    assert_answers(&told, &[NO, NO, NO, NO, NO, NO]);
}

#[test]
fn nothing_measured_tells_nothing() {
    let told = told(&[("crun", false, &[12; 3], 3)]);
    assert_answers(&told, &[UNKNOWN; 6]);
    assert!(told.comparisons.iter().all(|one| one.target.is_none()));
}
