//! Limits on the figures of a run.

use tare_experiments::catalogue;
use tare_figures::gates::{Gate, GateError, Judgement};
use tare_pages::Report;
use tare_testkit::assert_contains;

use crate::synthetic::primitives::Primitives;
use crate::synthetic::wakeups::Schedule;
use crate::synthetic::{Fold, HZ, Run, spin};

pub fn judge(analysis: &Report, text: &str) -> Result<Judgement, GateError> {
    text.parse::<Gate>().unwrap().judge(analysis, catalogue())
}

#[test]
fn a_maximum_is_the_highest_of_the_runs() {
    let mut run = Run::new(1);
    for block in 1..=6 {
        let worst = if block == 4 { 10_000_000 } else { 5_000 };
        run.woken(block, Schedule::default(), |_, _, n| match n {
            500 => worst,
            _ => 4_000,
        });
    }
    let analysis = run.analyse();
    let judged = judge(&analysis, "latency > 1ms").unwrap();
    assert!(judged.failed);
    assert_eq!(
        judged.sentence,
        "Gate failed: latency.max of process is 10.0 ms (highest of 6 runs), above 1.00 ms."
    );
    let judged = judge(&analysis, "latency.max > 11ms").unwrap();
    assert!(!judged.failed && judged.sentence.contains("(highest of 6 runs), not above"));
    // Another figure is that over all runs.
    assert!(!judge(&analysis, "latency.p99 > 1ms").unwrap().failed);
}

#[test]
fn a_limit_without_a_unit_is_for_figures_without_one() {
    let mut run = Run::new(1);
    let gaps = [(1_000, 50_000), (200_000, 80_000)];
    run.gap(1, "process", spin(10_000, 30, &gaps, Fold::default()));
    let analysis = run.analyse();
    for (gate, remedy) in [
        ("lost > 2", "write a percentage"),
        ("gaps > 3", "write /s"),
        ("gap > 3", "write ns"),
        ("gaps.total > 3%", "write no unit"),
    ] {
        let error = judge(&analysis, gate).unwrap_err();
        assert!(matches!(error, GateError::Unit { .. }), "{gate}: {error}");
        assert_contains(&error.to_string(), &[remedy]);
    }
    assert!(judge(&analysis, "gaps.total > 1").unwrap().failed);
}

#[test]
fn a_matching_cell_that_was_left_out_fails() {
    let mut run = Run::new(1);
    run.prime(1, "process", &[1_000; 50]);
    run.left_out(1, "crun", "prime", "the rate before was too much");
    let analysis = run.analyse();
    for gate in ["duration > 1s", "noise/duration.max{target=crun} > 1s"] {
        let judged = judge(&analysis, gate).unwrap();
        assert!(judged.failed, "{gate}");
        let told =
            "is inconclusive: cell 2, crun prime 22, was left out: the rate before was too much.";
        assert_contains(&judged.sentence, &[told]);
    }
    // A measured value beyond the limit is reported first.
    let judged = judge(&analysis, "duration > 1ns").unwrap();
    assert_contains(&judged.sentence, &["of process"]);
    let judged = judge(&analysis, "duration{target=process} > 1s").unwrap();
    assert!(!judged.failed, "{judged:?}");
    for gate in [
        "duration{target=docker} > 1s",
        "duration.p42{target=crun} > 1s",
        "wakeup/duration{target=crun} > 1s",
    ] {
        let error = judge(&analysis, gate).unwrap_err();
        assert!(
            matches!(error, GateError::Nothing { .. }),
            "{gate}: {error}"
        );
    }
}

#[test]
fn what_the_plan_tells_of_labels_is_checked_before_measuring() {
    let mut run = Run::new(1);
    run.missing(1, "process", "prime");
    run.gap(1, "process", spin(10_000, 30, &[], Fold::default()));
    run.woken(1, Schedule::under(&["idle", "dd"]), |_, _, _| 4_000);
    let plan = run.data().plan;
    let check = |text: &str| text.parse::<Gate>().unwrap().check(&plan, catalogue());
    for gate in [
        "lost{workload=gap} > 1%",
        "duration{workload=prime,size=22} > 1ms",
        "latency{phase=1,load=dd} > 1ms",
        // What labels samples add is known afterwards.
        "delays{class=E} > 1%",
    ] {
        assert_eq!(check(gate), Ok(()), "{gate}");
    }
    for (gate, there) in [
        (
            "latency{thread=7} > 1ms",
            "only runs with several threads have the label 'thread'",
        ),
        (
            "lost{workload=gpa} > 1%",
            "lost is measured of process with workload=gap, process with workload=prime",
        ),
        ("duration{size=23} > 1ms", "process with size=22"),
        (
            "duration{workload=gap,size=22} > 1ms",
            "process with workload=gap",
        ),
        ("latency{phase=2} > 1ms", "latency is measured of process"),
    ] {
        let error = check(gate).unwrap_err().to_string();
        assert_contains(&error, &[there]);
    }
}

#[test]
fn a_percentile_of_which_a_plan_is_sure_is_judged_though_activations_were_missed() {
    const INTERVAL_NS: u64 = 100_000;
    // Of each phase half is over when its load begins.
    let made = |loads, activations: u64| {
        let late_ns = [activations / 2 * INTERVAL_NS; 2];
        let schedule = Schedule {
            activations,
            late_ns: if loads == ["idle"] { &[] } else { &late_ns },
            ..Schedule::under(loads)
        };
        let mut run = Run::new(1);
        run.woken(1, schedule, |_, _, n| match n % activations {
            n if n == activations - 500 => 100 * INTERVAL_NS,
            _ => 4_000,
        });
        run
    };
    for (loads, measure, too_few, enough) in [
        (&["idle"][..], "latency", 10_000, 10_102),
        (&["idle"], "response", 9_999, 10_000),
        (&["idle", "dd"], "latency", 20_000, 20_204),
        (&["idle", "dd"], "response", 19_998, 20_000),
    ] {
        let text = format!("{measure}.p99.9 > 1s");
        let check = |run: Run| {
            let gate = text.parse::<Gate>().unwrap();
            gate.check(&run.data().plan, catalogue())
        };
        let error = check(made(loads, too_few));
        assert!(matches!(error, Err(GateError::TooFew { .. })), "{text}");
        assert_eq!(check(made(loads, enough)), Ok(()));
        let judged = judge(&made(loads, enough).analyse(), &text).unwrap();
        assert!(!judged.failed, "{loads:?}: {judged:?}");
    }
}

#[test]
fn a_judgement_names_how_its_figure_is_put_together() {
    let mut run = Run::new(1);
    for (block, gaps, gb) in [(1, 1, 20.0), (2, 2, 10.0), (3, 6, 12.0)] {
        let gaps = Vec::from_iter((0..gaps).map(|n| (1_000 + n * 100_000, 50_000)));
        run.gap(block, "process", spin(100_000, 30, &gaps, Fold::default()));
        run.prime(block, "process", &[1_000 * u64::from(block); 50]);
        let labels = "primitive=bandwidth-read size=16384";
        run.measured(
            block,
            Primitives {
                target: "process",
                area: "memory",
                values: &[("bytes", labels, 1e9)],
                sets: &[("pass", labels, &[(1e9 / gb * HZ / 1e9) as u64])],
                ..Primitives::default()
            },
        );
    }
    let analysis = run.analyse();
    for (gate, failed, told) in [
        (
            "bandwidth < 11GB/s",
            false,
            "12 GB/s (median of 3 runs), not below 11 GB/s",
        ),
        (
            "bandwidth.best < 13GB/s",
            true,
            "12 GB/s (median of 3 runs), below 13 GB/s",
        ),
        ("gaps.total > 8", true, "9 (sum of 3 runs), above 8"),
        ("gaps.total > 9", false, "9 (sum of 3 runs), not above 9"),
        (
            "duration.min > 300ns",
            true,
            "385 ns (lowest of 3 runs), above 300 ns",
        ),
        (
            "duration.max > 1us",
            true,
            "1.15 µs (highest of 3 runs), above 1.00 µs",
        ),
    ] {
        let judged = judge(&analysis, gate).unwrap();
        assert_eq!(judged.failed, failed, "{gate}: {judged:?}");
        assert_contains(&judged.sentence, &[told]);
    }
}

#[test]
fn a_quantile_between_two_modes_decides_nothing_between_them() {
    let mut run = Run::new(1);
    for block in 1..=6 {
        // In half of the runs the slow mode has none of the samples that count for p99.
        let slow = if block % 2 == 0 { 4 } else { 0 };
        run.woken(block, Schedule::default(), |_, _, n| match n % 10 < slow {
            true => 90_000 + n % 50,
            false => 4_000 + n % 50,
        });
    }
    let analysis = run.analyse();
    let judged = |gate: &str| judge(&analysis, gate).unwrap();
    for gate in ["latency.p99 > 20us", "latency.p99 < 20us"] {
        let judged = judged(gate);
        assert!(judged.failed, "{judged:?}");
        let told = "is inconclusive: it may be in either of two modes, about 4.02 µs and 90.0 µs";
        assert_contains(&judged.sentence, &["Gate not passed", told]);
    }
    assert!(!judged("latency.p99 > 1ms").failed);
    assert!(judged("latency.p99 > 1us").failed);
}
