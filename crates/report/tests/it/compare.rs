//! Two runs of wake-ups against each other.

use crate::synthetic::Run;
use crate::synthetic::wakeups::Schedule;
use tare_report::wakeup::compare::{CompareError, Comparison, Figure, compare};
use tare_report::{Analysis, terminal};

/// Makes runs whose median is about `median` ns; the worst of each differs from block to block.
fn run(target: &str, runs: u32, median: u64, seed: u64) -> Analysis {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut run = Run::new(1);
    for block in 1..=runs {
        let schedule = Schedule {
            target,
            loads: &["idle", "dd"],
            ..Schedule::default()
        };
        let offset = random.u64(..100);
        let worst = 150_000 + random.u64(..400_000);
        run.woken(block, schedule, |_, phase, n| match (phase, n) {
            (1, 12_000) => worst,
            (phase, n) => median + offset + 500 * phase as u64 + n % 200,
        });
    }
    run.data().analyse()
}

fn row(
    comparison: &Comparison,
    phase: u32,
    figure: Figure,
) -> &tare_report::wakeup::compare::ShiftRow {
    let mut rows = comparison.rows.iter();
    rows.find(|row| row.phase == phase && row.figure == figure)
        .unwrap()
}

#[test]
fn a_shift_is_found_with_its_size_and_nothing_else() {
    let (a, b) = (run("process", 8, 4_000, 1), run("process", 8, 4_400, 2));
    let compared = compare(&a, &b).unwrap();
    for phase in [0, 1] {
        let median = row(&compared, phase, Figure::Median);
        assert!(median.differs && median.is_worse, "{median:?}");
        let interval = median.interval.unwrap();
        assert!(
            (interval.low..interval.high).contains(&400.0),
            "{interval:?}"
        );
        let max = row(&compared, phase, Figure::Max);
        assert_eq!(max.differs, phase == 0, "{max:?}");
        assert!(!row(&compared, phase, Figure::MissedShare).differs);
    }
    assert!(compared.has_regression() && compared.can_tell);
    assert!(
        compared.differences.is_empty(),
        "{:?}",
        compared.differences
    );
    // The other way round it is an improvement.
    let other = compare(&b, &a).unwrap();
    assert!(!other.has_regression());
    assert!(row(&other, 0, Figure::Median).differs);
}

#[test]
fn alike_runs_do_not_differ() {
    let (a, b) = (run("process", 8, 4_000, 3), run("process", 8, 4_000, 4));
    let compared = compare(&a, &b).unwrap();
    assert!(
        compared.rows.iter().all(|row| !row.differs),
        "{compared:#?}"
    );
    assert!(
        compared.verdict[0].contains("does not prove"),
        "{:?}",
        compared.verdict
    );
    // A quantile that a run does not carry is refused with what it needs.
    let itself = compare(&a, &a).unwrap();
    assert!(
        itself
            .rows
            .iter()
            .all(|row| row.shift.is_none_or(|shift| shift == 0.0))
    );
}

#[test]
fn too_few_runs_tell_nothing_and_how_many_would() {
    let (a, b) = (run("process", 2, 4_000, 5), run("process", 2, 9_000, 6));
    let compared = compare(&a, &b).unwrap();
    assert!(!compared.can_tell && !compared.has_regression());
    let median = row(&compared, 0, Figure::Median);
    assert!(median.interval.is_none() && !median.differs);
    assert_eq!(
        median.refused.as_deref(),
        Some("an interval at 95 % needs 4 runs of each")
    );
    assert!(median.shift.unwrap() > 4_800.0);
    assert!(
        compared.verdict[0].contains("from 6 runs of each"),
        "{:?}",
        compared.verdict
    );
}

#[test]
fn another_kernel_is_named() {
    let a = run("linux,kernel=debian", 4, 4_000, 7);
    let b = run("linux,kernel=debian-rt", 4, 4_000, 8);
    let compared = compare(&a, &b).unwrap();
    let named = &compared.differences[0];
    assert_eq!(
        named.second, "linux,kernel=debian-rt",
        "{:?}",
        compared.differences
    );
    let text = terminal::compare(&compared, 110, false);
    assert!(
        text.contains("A: linux,kernel=debian; B: linux,kernel=debian-rt"),
        "{text}"
    );
}

#[test]
fn counted_instructions_leave_nothing_to_chance() {
    let target = "linux,kernel=debian,clock=instructions";
    let counted = |median: u64| {
        let mut run = Run::new(1);
        let schedule = Schedule {
            target,
            ..Schedule::default()
        };
        run.woken(1, schedule, |_, _, n| median + n % 20);
        run.data().analyse()
    };
    let compared = compare(&counted(4_000), &counted(4_001)).unwrap();
    assert!(compared.has_regression() && compared.can_tell);
    assert!(row(&compared, 0, Figure::Median).exact);
    let same = compare(&counted(4_000), &counted(4_000)).unwrap();
    assert!(!same.has_regression() && same.can_tell);
    assert!(
        same.verdict[0].contains("is the same"),
        "{:?}",
        same.verdict
    );
}

#[test]
fn runs_with_nothing_in_common_are_refused() {
    let a = run("process", 1, 4_000, 9);
    let mut other = Run::new(1);
    other.woken(
        1,
        Schedule {
            interval_ns: 1_000_000,
            ..Schedule::default()
        },
        |_, _, _| 4_000,
    );
    let error = compare(&a, &other.data().analyse()).unwrap_err();
    assert!(
        matches!(error, CompareError::NothingInCommon { .. }),
        "{error}"
    );
    let nothing = Run::new(1).data().analyse();
    let error = compare(&a, &nothing).unwrap_err();
    assert!(error.to_string().contains("the second run"), "{error}");
}

#[test]
fn a_comparison_on_a_terminal() {
    let (a, b) = (run("process", 8, 4_000, 1), run("process", 8, 4_400, 2));
    let text = terminal::compare(&compare(&a, &b).unwrap(), 110, false);
    for line in text.lines() {
        assert!(line.chars().count() <= 110, "{line}");
    }
    insta::assert_snapshot!(text);
}
