//! Figures of wake-ups whose answer is known, in summary, terminal, CSV and live line.

use std::fs;

use crate::synthetic::wakeups::{Schedule, linux_like, told, trace};
use crate::synthetic::{Fold, Run, measured, record, timed};
use serde_json::Value;
use tare_experiments::catalogue;
use tare_figures::cases::Case;
use tare_figures::rows::derive::Refused;
use tare_figures::rows::{Figure, Row, RunFigure};
use tare_host::{Machine, Source};
use tare_pages::{Report, RunData, analyse, page, terminal, write_all};
use tare_results::model::{
    Achieved, Counter, Labels, LeftTool, Load, LoadPlace, Trace, TraceEvent, TraceKind,
};
use tare_results::{CellState, MachineRecord, RunFolder};

/// A thread that is 5 µs late, but for a stall of 10 ms in the midst of the second phase.
fn stalled(run: &mut Run, block: u32, loads: &[&str]) {
    let schedule = Schedule {
        loads,
        ..Schedule::default()
    };
    run.woken(block, schedule, |_, _, activation| match activation {
        15_000 => 10_000_000,
        n => 4_000 + 1_000 * (n % 3),
    });
}

/// The wake-ups of a run of one target under one load, or one schedule of loads.
fn only(analysis: &Report) -> Case<'_> {
    let mut cases = Case::all(analysis.run(), "wakeup");
    assert_eq!(cases.len(), 1);
    cases.remove(0)
}

/// A row of a phase, or of a case without phases.
fn row<'a>(case: &Case<'a>, phase: &str, measure: &str, figure: Figure) -> Option<&'a Row> {
    match phase {
        "" => case.row(measure, figure, &[]),
        phase => case.row(measure, figure, &[("phase", phase)]),
    }
}

/// The sum over the runs.
fn sum(case: &Case<'_>, phase: &str, measure: &str) -> f64 {
    let row = row(case, phase, measure, Figure::Total);
    let each = row.into_iter().flat_map(|row| &row.each);
    each.filter_map(|each| each.figure.value()).sum()
}

/// The figure over the runs.
fn over(case: &Case<'_>, phase: &str, measure: &str, figure: Figure) -> Option<f64> {
    Some(
        row(case, phase, measure, figure)?
            .over
            .as_ref()
            .ok()?
            .estimate,
    )
}

/// How many samples a quantile needs in each run, if it was refused.
fn needed(case: &Case<'_>, phase: &str, measure: &str, figure: Figure) -> Option<u64> {
    match row(case, phase, measure, figure)?.over {
        Err(Refused::Samples { needed, .. }) => Some(needed),
        _ => None,
    }
}

fn worst(analysis: &Report) -> &[Value] {
    analysis.summary().stories["wakeup"]["worst"]
        .as_array()
        .unwrap()
}

fn ids(analysis: &Report) -> Vec<&'static str> {
    analysis
        .summary()
        .alarms
        .iter()
        .map(|alarm| alarm.id)
        .collect()
}

fn csv(analysis: &Report) -> String {
    let mut files = analysis
        .stories()
        .flat_map(|story| story.csv(analysis.run()));
    files.next().expect("there is a file").1
}

/// Has loads of 1 s, of which `du` began 0.2 s late and `tar` was skipped, and wake-ups that are
/// late only meanwhile, but for one in the rest of the slot in which `du` began.
fn held_up(run: &mut Run, block: u32, late_ns: &[u64]) {
    let schedule = Schedule {
        loads: &["idle", "dd", "du", "dd+ping", "tar"],
        late_ns,
        ..Schedule::default()
    };
    let between = |n| (20_000..22_000).contains(&n) || (40_000..47_000).contains(&n);
    let cell = run.woken(block, schedule, |_, _, n| match n {
        21_000 if late_ns[2] > 0 => 1_500_000,
        22_400 if late_ns[2] > 0 => 1_100_000,
        n if between(n) && late_ns[2] > 0 => 70_000,
        _ => 5_000,
    });
    if late_ns[2] > 0 {
        cell.load.as_mut().unwrap().left.push(LeftTool {
            tool: "dd".to_owned(),
            pid: 123,
            phase: 1,
            until: 3,
            ended: true,
        });
    }
}

#[test]
fn what_falls_between_phases_is_in_no_phase_and_told() {
    const LATE: [u64; 5] = [0, 1_000_000, 200_000_000, 0, 700_000_000];
    let mut run = Run::new(1);
    held_up(&mut run, 1, &LATE);
    let analysis = run.data().analyse(catalogue()).unwrap();
    let case = only(&analysis);
    let counted = |phase| {
        let measures = ["wake-ups", "missed", "between", "missed between", "absent"];
        measures.map(|measure| sum(&case, phase, measure))
    };
    // A millisecond is not worth speaking of.
    assert_eq!(counted("1"), [10_000.0, 0.0, 0.0, 0.0, 0.0]);
    // Slots go up to 250 ms of the phase of 1 s.
    assert_eq!(counted("2"), [7_500.0, 0.0, 2_476.0, 24.0, 0.0]);
    assert_eq!(over(&case, "2", "latency", Figure::Max), Some(5_000.0));
    assert_eq!(counted("4"), [0.0, 0.0, 10_000.0, 0.0, 1.0]);
    for measure in ["latency", "response"] {
        assert!(row(&case, "4", measure, Figure::Max).is_none());
    }
    assert!(row(&case, "", "average maximum", Figure::Value).is_none());
    // No figure of `du` holds the second, although `du` had begun.
    for (worst, latency_ns) in worst(&analysis).iter().zip([1_500_000, 1_100_000]) {
        assert_eq!(worst["latency_ns"], latency_ns);
        assert_eq!(worst["phase"], 2);
        assert_eq!(worst["load"], "end of dd");
    }

    let text = terminal::render(&analysis, 200, false);
    let page = page::render(&analysis)
        .replace(['\u{a0}', '\u{202f}'], " ")
        .replace("<wbr>", "");
    let csv = csv(&analysis);
    let why = "its load was skipped, because dd of the load before (dd+ping) took that long to end";
    for said in [
        "phase 2 (du) of cell 1 by 200 ms, because dd of the load before (dd) took that long to end",
        "476 wake-ups from before that are counted apart",
        "phase 4 (tar) of cell 1 by 700 ms, because dd of the load before (dd+ping)",
        "dd (process 123) of phase 1 in cell 1 ran on beside phases 2 to 3 and ended before the cell did",
        "tar, absent",
    ] {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(said), "{said}: {text}");
        assert!(page.contains(said), "{said}");
    }
    let row = csv.lines().nth(5).unwrap();
    assert!(row.contains(",tar,,,"), "{row}");
    assert!(row.ends_with(&format!(",0,0,10000,0,\"{why}\"")), "{row}");
}

#[test]
fn a_phase_that_one_run_lacks_has_the_figures_of_the_others() {
    let mut run = Run::new(2);
    held_up(&mut run, 1, &[0, 0, 200_000_000, 0, 700_000_000]);
    held_up(&mut run, 2, &[0; 5]);
    let analysis = run.data().analyse(catalogue()).unwrap();
    let case = only(&analysis);
    assert_eq!(sum(&case, "4", "wake-ups"), 10_000.0);
    assert_eq!(sum(&case, "4", "between"), 10_000.0);
    let latency = row(&case, "4", "latency", Figure::Max).unwrap();
    assert_eq!(latency.each.len(), 1);
    assert!(row(&case, "", "average maximum", Figure::Value).is_some());
    let text = terminal::render(&analysis, 120, false);
    assert!(!text.contains("tar, absent"), "{text}");
    let of_tar = text.lines().find(|line| line.starts_with("tar "));
    assert!(of_tar.unwrap().contains(" 1/2 "), "{text}");
}

#[test]
fn a_stall_counts_once_for_service_and_in_full_for_response() {
    let mut run = Run::new(1);
    stalled(&mut run, 1, &["idle", "dd"]);
    let analysis = run.data().analyse(catalogue()).unwrap();
    let case = only(&analysis);
    // 99 of 100 activations of 10 ms are missed by a wake-up that is 10 ms late.
    let skipped = case.row("skipped", Figure::Share, &[]).unwrap();
    let RunFigure::Value { sums, .. } = skipped.each[0].figure else {
        panic!("it is known");
    };
    assert_eq!(sums, Some((99.0, 20_000.0)));
    let counted = |phase| ["wake-ups", "missed"].map(|measure| sum(&case, phase, measure));
    assert_eq!(counted("0"), [10_000.0, 0.0]);
    assert_eq!(counted("1"), [9_901.0, 99.0]);
    for figure in [Figure::Max, Figure::Mean, Figure::P99, Figure::Sd] {
        let of = |measure| over(&case, "0", measure, figure);
        assert_eq!(of("latency"), of("response"));
    }
    let of = |measure, figure| over(&case, "1", measure, figure);
    assert_eq!(of("latency", Figure::Max), Some(10_000_000.0));
    assert_eq!(of("response", Figure::Max), Some(10_000_000.0));
    assert_eq!(needed(&case, "1", "latency", Figure::P99_9), Some(10_000));
    // The 9,990th of 10,000: nine of the stall's hundred are longer than 9.1 ms, and it is the
    // tenth.
    assert_eq!(of("response", Figure::P99_9), Some(9_000_000.0));
    assert_eq!(of("latency", Figure::P99), Some(6_000.0));
    assert_eq!(of("response", Figure::P99), Some(6_000.0));
    // Waits of 10.0, 9.9, … 0.1 ms, and 9,900 of 5 µs in the mean.
    let service = of("latency", Figure::Mean).unwrap();
    let mean = (505_000_000.0 + service * 9_901.0 - 10_000_000.0) / 10_000.0;
    let response = of("response", Figure::Mean).unwrap();
    assert!((response - mean).abs() < 1e-6, "{response}");
    let average = over(&case, "", "average maximum", Figure::Value);
    assert_eq!(average, Some((6_000.0 + 10_000_000.0) / 2.0));
    let all = worst(&analysis);
    let worst = &all[0];
    let keys = ["activation", "latency_ns", "missed", "at_ns", "phase"];
    let figures = keys.map(|key| worst[key].as_u64().unwrap());
    assert_eq!(figures, [15_000, 10_000_000, 99, 1_500_000_000, 1]);
    assert_eq!((&worst["load"], all.len()), (&Value::from("dd"), 10));
}

#[test]
fn the_study_s_standard_deviation_is_over_all_wake_ups_of_the_phase() {
    let mut run = Run::new(1);
    let schedule = Schedule {
        activations: 30,
        ..Schedule::default()
    };
    run.woken(1, schedule, |_, _, n| [1_000, 2_000, 6_000][n as usize % 3]);
    let analysis = run.data().analyse(catalogue()).unwrap();
    let case = only(&analysis);
    assert_eq!(over(&case, "", "latency", Figure::Mean), Some(3_000.0));
    let sd = over(&case, "", "latency", Figure::Sd).unwrap();
    assert!((sd - (14e6_f64 / 3.0).sqrt()).abs() < 1e-9);
    assert_eq!(needed(&case, "", "latency", Figure::P99), Some(1_000));
}

#[test]
fn threads_are_told_apart_and_together() {
    let mut run = Run::new(1);
    let schedule = Schedule {
        threads: 2,
        ..Schedule::default()
    };
    run.woken(1, schedule, |thread, _, n| {
        3_000 + 2_000 * u64::from(thread) + n % 2
    });
    let analysis = run.data().analyse(catalogue()).unwrap();
    let case = only(&analysis);
    assert_eq!(sum(&case, "", "wake-ups"), 20_000.0);
    let mean = |thread| {
        case.over("latency", Figure::Mean, &[("thread", thread)])
            .unwrap()
    };
    assert_eq!(mean("0").estimate, 3_000.5);
    assert_eq!(mean("1").estimate, 5_000.5);
    let text = terminal::render(&analysis, 100, false);
    assert!(
        text.contains("2 threads, SCHED_FIFO 95 every 100 µs"),
        "{text}"
    );
    assert!(text.contains("· T1 CPU 2"), "{text}");
}

#[test]
fn intervals_take_runs_and_are_refused_without_enough() {
    let combined = |runs: u32| {
        let mut run = Run::new(1);
        for block in 1..=runs {
            run.woken(block, Schedule::default(), |_, _, n| match n {
                5_000 => 50_000 + 1_000 * u64::from(block),
                _ => 4_000 + u64::from(block),
            });
        }
        run.data().analyse(catalogue()).unwrap()
    };
    let six = combined(6);
    let max = only(&six).over("response", Figure::Max, &[]).unwrap();
    let interval = max.interval.as_ref().unwrap();
    assert_eq!(
        (interval.low, interval.high, max.estimate),
        (51_000.0, 56_000.0, 53_500.0)
    );
    let sure = |analysis: &Report| analysis.summary().verdict.certainty.join(" ");
    let text = sure(&six);
    assert!(
        text.contains("51.0 µs to 56.0 µs (95 % CI, 6 runs)"),
        "{text}"
    );
    let page = page::render(&six);
    assert!(page.contains("intervals over runs") && page.contains("51.00 to\n56.00"));
    let three = combined(3);
    let over = |figure| only(&three).over("latency", figure, &[]).unwrap();
    assert!(over(Figure::Max).interval.is_err() && over(Figure::Mean).interval.is_ok());
    assert!(
        sure(&three).contains("an interval needs 6"),
        "{}",
        sure(&three)
    );
    let one = combined(1);
    assert!(sure(&one).contains("in a single run"), "{}", sure(&one));
    assert!(!page::render(&one).contains("intervals over runs"));
}

/// Makes a run without and one with a trace, in which a thread's softirq held up one wake-up for 60
/// µs.
fn blamed(thread: &str) -> RunData {
    let mut run = Run::new(1);
    run.woken(1, Schedule::default(), |_, _, _| 4_000);
    let traced = Schedule {
        traced: true,
        ..Schedule::default()
    };
    let cell = run.woken(1, traced, |_, _, n| if n == 777 { 60_000 } else { 9_000 });
    let event = |at_ns, what| TraceEvent {
        at_ns,
        what,
        from_user: false,
        stack: Vec::new(),
    };
    let softirq = || "NET_RX".to_owned();
    trace(
        cell,
        Trace {
            set: 0,
            index: 777,
            value: 60_000,
            complete: true,
            events: vec![
                event(
                    -500,
                    TraceKind::Running {
                        thread: thread.to_owned(),
                        ours: false,
                    },
                ),
                event(-500, TraceKind::SoftirqEntry { name: softirq() }),
                event(59_000, TraceKind::SoftirqExit { name: softirq() }),
            ],
        },
    );
    run.data()
}

#[test]
fn what_was_traced_stands_apart_with_who_is_to_blame() {
    let analysis = blamed("hackbench/117").analyse(catalogue()).unwrap();
    let cases = Case::all(analysis.run(), "wakeup");
    let longest = |traced| {
        let case = cases.iter().find(|case| case.plan.is_traced() == traced);
        over(case.unwrap(), "", "latency", Figure::Max)
    };
    assert_eq!(
        (longest(false), longest(true)),
        (Some(4_000.0), Some(60_000.0))
    );
    let all = worst(&analysis).iter();
    let traced = all
        .max_by_key(|worst| worst["latency_ns"].as_u64())
        .unwrap();
    let parts = traced["blame"]["parts"].as_object().unwrap();
    let parts: u64 = parts.values().filter_map(Value::as_u64).sum();
    assert_eq!((parts, &traced["traced"]), (60_000, &Value::Bool(true)));
    let text = terminal::render(&analysis, 120, false);
    let culprit = traced["blame"]["culprit_text"].as_str().unwrap();
    assert!(
        text.contains("· traced") && text.contains(culprit),
        "{text}"
    );
    // The verdict is of what ran undisturbed.
    let headline = &analysis.summary().verdict.headline;
    assert!(headline.contains("4.00 µs"), "{headline}");
}

#[test]
fn a_bin_tells_of_a_maximum_that_no_list_has() {
    let mut run = Run::new(1);
    let schedule = Schedule {
        raw: 100,
        ..Schedule::default()
    };
    // Below the interval, so not listed; late, so not among the first.
    run.woken(
        1,
        schedule,
        |_, _, n| if n == 8_005 { 90_000 } else { 4_000 },
    );
    let analysis = run.data().analyse(catalogue()).unwrap();
    let worst = &worst(&analysis)[0];
    assert_eq!(worst["activation"], Value::Null);
    let of = |key: &str| worst[key].as_u64().unwrap();
    assert_eq!(of("latency_ns"), 90_000);
    assert!((of("at_ns")..of("at_ns") + of("within_ns")).contains(&800_500_000));
}

#[test]
fn what_bears_on_the_figures_is_said() {
    let mut run = Run::new(1);
    run.emulated = true;
    let targets = ["linux", "linux,kernel=debian-rt,clock=instructions"];
    for target in targets {
        let schedule = Schedule {
            target,
            ..Schedule::default()
        };
        let cell = run.woken(1, schedule, |_, _, _| 4_000);
        measured(cell).preparation.latency_held = false;
        *told(cell, "recording time") = 3_000.0;
    }
    let analysis = run.data().analyse(catalogue()).unwrap();
    assert_eq!(
        ids(&analysis),
        [
            "emulated",
            "instruction-time",
            "recording-cost",
            "woken-from-idle"
        ]
    );
    let emulated = &analysis.summary().alarms[0].text;
    assert!(!emulated.contains("clock=instructions"), "{emulated}");
    assert!(terminal::render(&analysis, 100, false).contains("(instructions)"));
}

#[test]
fn an_option_that_stands_in_a_value_counts_no_instructions() {
    for (target, counted) in [
        ("linux,clock=instructions", true),
        ("linux,cmdline=quiet,,clock=instructions", false),
    ] {
        let mut run = Run::new(1);
        let schedule = Schedule {
            target,
            ..Schedule::default()
        };
        run.woken(1, schedule, |_, _, _| 4_000);
        let analysis = run.data().analyse(catalogue()).unwrap();
        let shown = terminal::render(&analysis, 100, false);
        assert_eq!(shown.contains("(instructions)"), counted, "{target}");
    }
}

#[test]
fn clocks_and_counters_are_looked_at_as_those_of_noise_are() {
    let mut run = Run::new(1);
    let unikernel = Schedule {
        target: "unikernel",
        ..Schedule::default()
    };
    let cell = run.woken(1, unikernel, |_, _, n| if n == 5 { 100_000 } else { 4_000 });
    let program = measured(cell);
    program.counters = vec![Counter {
        name: "timer interrupts".to_owned(),
        count: 10_000,
    }];
    program.frequencies[1].hz *= 1.5;
    // Its latencies are in ns, whoever tells the TSC's frequency.
    let cell = run.woken(1, Schedule::default(), |_, _, _| 4_000);
    measured(cell).frequencies.clear();
    let analysis = run.data().analyse(catalogue()).unwrap();
    assert_eq!(ids(&analysis), ["tsc-frequency-contradicted"]);
    let cases = Case::all(analysis.run(), "wakeup");
    let mut cases = cases.iter();
    let case = cases.find(|case| case.plan.target == "unikernel").unwrap();
    let of = |figure| case.over("interrupts", figure, &[("counter", "timer interrupts")]);
    assert_eq!(of(Figure::Total).unwrap().estimate, 10_000.0);
    assert_eq!(of(Figure::Rate).unwrap().estimate, 10_000.0);
    let page = page::render(&analysis);
    let (_, row) = page
        .split_once("unikernel · timer interrupts</th>")
        .unwrap();
    let (row, _) = row.split_once("</tr>").unwrap();
    assert!(row.contains("<td>10\u{202f}000</td>"), "{row}");
}

#[test]
fn what_was_woken_before_a_load_had_begun_is_in_no_phase() {
    let mut run = Run::new(1);
    let schedule = Schedule {
        loads: &["idle", "dd"],
        ..Schedule::default()
    };
    let cell = run.woken(1, schedule, |_, phase, _| [4_000, 250_000][phase]);
    // As if dd had never begun in its phase.
    let head = &mut record(cell).sets[1];
    head.labels = head.labels.clone().with("between", "yes");
    let analysis = run.data().analyse(catalogue()).unwrap();
    let case = only(&analysis);
    let woken = ["0", "1"].map(|phase| sum(&case, phase, "wake-ups"));
    assert_eq!(woken, [10_000.0, 0.0]);
    assert_eq!(worst(&analysis)[0]["latency_ns"], 250_000);
    let skipped = case.row("skipped", Figure::Share, &[]).unwrap();
    let RunFigure::Value { sums, .. } = skipped.each[0].figure else {
        panic!("it is known");
    };
    assert_eq!(sums, Some((6_666.0, 10_000.0 + 3_334.0 + 6_666.0)));
}

#[test]
fn a_cell_that_contradicts_itself_is_named_and_not_used() {
    let mut run = Run::new(1);
    let cell = run.woken(1, Schedule::default(), |_, _, _| 4_000);
    *told(cell, "missed") = 7.0;
    run.woken(2, Schedule::default(), |_, _, _| 4_000);
    let analysis = run.data().analyse(catalogue()).unwrap();
    assert_eq!(analysis.summary().done, 1);
    let reason = &analysis.summary().not_measured[0].reason;
    assert!(reason.contains("missed 7 activations"), "{reason}");
}

#[test]
fn noise_and_wake_ups_of_one_run_leave_each_other_alone() {
    let mut run = Run::new(1);
    let durations = vec![1_000; 10_000];
    run.done(
        1,
        "process",
        "prime",
        Some(22),
        timed(&durations, Fold::default()),
    );
    stalled(&mut run, 1, &["idle", "dd"]);
    run.done(
        2,
        "process",
        "prime",
        Some(22),
        timed(&durations, Fold::default()),
    );
    let analysis = run.data().analyse(catalogue()).unwrap();
    let summary = analysis.summary();
    let cells = |experiment| -> Vec<u32> {
        let cases = Case::all(analysis.run(), experiment);
        let cells = cases.iter().flat_map(|case| &case.cells);
        cells.map(|cell| cell.plan.id).collect()
    };
    assert_eq!(summary.done, 3);
    assert_eq!((cells("noise"), cells("wakeup")), (vec![1, 3], vec![2]));
    let text = terminal::render(&analysis, 200, false);
    assert!(
        text.contains("Latest wake-up: 10.0 ms on process"),
        "{text}"
    );
    // The picture of the second experiment has its place, too.
    assert!(page::render(&analysis).contains("Wake-up latency over time"));
}

#[test]
fn two_experiments_of_the_same_are_told_apart_and_counted_once() {
    let mut run = Run::new(1);
    for loads in [1, 2] {
        run.further = Some(("loads", loads));
        stalled(&mut run, 1, &["idle", "dd"][..loads as usize]);
    }
    let analysis = run.data().analyse(catalogue()).unwrap();
    let verdict = &analysis.summary().verdict;
    assert_eq!(
        verdict.headline,
        "Latest wake-ups: 6.00 µs on process, loads=1 and 10.0 ms on process, loads=2 under dd."
    );
    // None was missed in the one, which does not bear on the share of the other.
    let missed = "Missed activations: 0 of 10,000 (0 %) on process, loads=1 and ";
    assert!(
        verdict.details.iter().any(|d| d.starts_with(missed)),
        "{verdict:?}"
    );
    let text = terminal::render(&analysis, 120, false);
    for name in [", loads=1", ", loads=2"] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn an_emulated_target_stands_beside_a_real_one_in_no_headline() {
    let mut run = Run::new(1);
    for target in ["process", "unikernel", "docker"] {
        run.emulated = target == "unikernel";
        let schedule = Schedule {
            target,
            ..Schedule::default()
        };
        run.woken(1, schedule, |_, _, _| 5_000);
    }
    let analysis = run.data().analyse(catalogue()).unwrap();
    let verdict = &analysis.summary().verdict;
    assert!(verdict.headline.contains("docker"), "{verdict:?}");
    let sentences = verdict.details.iter().chain(&verdict.certainty);
    for sentence in sentences.chain([&verdict.headline]) {
        assert!(!sentence.contains("unikernel"), "{sentence}");
    }
}

#[test]
fn tables_on_a_terminal() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut run = Run::new(1);
    for (target, model, stalls) in [
        ("process", "voluntary", 2e-4),
        ("linux,kernel=debian-rt,mem=1G", "rt", 0.0),
    ] {
        for block in 1..=2 {
            let schedule = Schedule {
                target,
                loads: &["idle", "ping", "idle", "dd+hackbench"],
                model: Some(model),
                ..Schedule::default()
            };
            run.woken(block, schedule, |_, phase, _| {
                let stalls = if phase == 3 { stalls } else { 0.0 };
                linux_like(3_000.0, 2_000.0, stalls, &mut random)
            });
        }
    }
    let analysis = run.data().analyse(catalogue()).unwrap();
    insta::assert_snapshot!(terminal::render(&analysis, 110, false));
    for width in [60, 80, 100, 120, 200] {
        let text = terminal::render(&analysis, width, false);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        // No word of the table is broken on a usual terminal.
        let table = text.lines().find(|line| line.starts_with("dd+hackbench"));
        let words = ["dd+hackbench ", " 1,007 ", " 58.83 ", " 0.075 %"];
        let is_whole = |line: &str| words.iter().all(|word| line.contains(word));
        assert!(width < 80 || table.is_some_and(is_whole), "{width}: {text}");
    }
}

#[test]
fn the_worst_with_their_culprits_fit_on_a_terminal_as_well() {
    let analysis = blamed("hackbench/117 with a name of its own")
        .analyse(catalogue())
        .unwrap();
    let text = terminal::render(&analysis, 100, false);
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    // On a line of its own it need not be broken.
    let below = text
        .lines()
        .find(|line| line.contains("with a name of its own"));
    assert!(below.is_some_and(|line| line.starts_with("    ")), "{text}");
    let wide = terminal::render(&analysis, 160, false);
    assert!(wide.contains("L3") && wide.contains("culprit"), "{wide}");
}

#[test]
fn the_verdict_names_the_culprit_of_the_worst_traced_wake_up() {
    let said = |data: RunData| {
        let analysis = data.analyse(catalogue()).unwrap();
        let mut details = analysis.summary().verdict.details.clone();
        details.retain(|detail| detail.starts_with("The worst traced wake-up"));
        details.join(" ")
    };
    assert_eq!(
        said(blamed("hackbench/117")),
        "The worst traced wake-up came 60.0 µs late on process: softirq NET_RX in hackbench/117 explains 59.0 µs of it (98 %)."
    );
    // Where no kernel event explains it, stolen time may.
    let unexplained = |stolen: Option<f64>| {
        let mut data = blamed("hackbench/117");
        let (CellState::Done(cell), _) = &mut data.cells[1] else {
            panic!("it was measured");
        };
        let record = record(cell);
        record.traces[0].events.clear();
        record
            .values
            .extend(stolen.map(|ns| tare_results::model::Value {
                measure: "stolen".to_owned(),
                labels: Labels::default(),
                unit: "ns".to_owned(),
                value: ns,
            }));
        said(data)
    };
    let nothing = "The worst traced wake-up came 60.0 µs late on process: no kernel event explains it (not recorded)";
    assert_eq!(unexplained(None), format!("{nothing}."));
    assert_eq!(
        unexplained(Some(4e7)),
        format!(
            "{nothing}. The hypervisor took 40.0 ms from the measured CPU during that run (stolen time): it may be the reason."
        )
    );
    // Explained is explained, whatever was stolen elsewhere.
    assert!(!said(blamed("hackbench/117")).contains("stolen"));
}

#[test]
fn throttling_is_told_when_it_was_seen() {
    let mut data = blamed("hog/77");
    let (CellState::Done(cell), _) = &mut data.cells[1] else {
        panic!("it was measured");
    };
    let event = |at_ns, what| TraceEvent {
        at_ns,
        what,
        from_user: false,
        stack: Vec::new(),
    };
    let (hog, tar) = (("hog/77", 0), ("tar/55", 120));
    let us = ("tare-agent/100", 4);
    let switch = |at_ns, (from, from_priority): (&str, i32), (to, to_priority): (&str, i32)| {
        let what = TraceKind::Switch {
            from: from.to_owned(),
            from_priority,
            to: to.to_owned(),
            to_priority,
            ours: to == us.0,
        };
        event(at_ns, what)
    };
    let hogs = TraceKind::Running {
        thread: hog.0.to_owned(),
        ours: false,
    };
    let expired = TraceKind::InterruptEntry {
        name: "local timer".to_owned(),
    };
    let waking = TraceKind::Waking {
        thread: us.0.to_owned(),
        ours: true,
        priority: us.1,
    };
    let left = TraceKind::InterruptExit {
        name: "local timer".to_owned(),
    };
    record(cell).traces[0].events = vec![
        event(-500, hogs),
        event(500, expired),
        event(900, waking),
        event(1_500, left),
        switch(5_000, hog, tar),
        switch(55_000, tar, us),
    ];
    let analysis = data.analyse(catalogue()).unwrap();
    let mut alarms = analysis.summary().alarms.iter();
    let alarm = alarms.find(|alarm| alarm.id == "rt-throttled");
    let text = &alarm.unwrap().text;
    assert!(
        text.contains("1 of the worst") && text.contains("sched_rt_runtime_us=-1"),
        "{text}"
    );
}

#[test]
fn the_page_shows_wake_ups_before_what_the_loads_did() {
    let mut data = blamed("hackbench/117");
    let (CellState::Done(cell), _) = &mut data.cells[0] else {
        panic!("it was measured");
    };
    let achieved = Achieved {
        what: "messages".to_owned(),
        amount: 5,
        ns: 1_000_000_000,
    };
    cell.load = Some(Load {
        place: LoadPlace::Beside,
        achieved: vec![achieved],
        notices: Vec::new(),
        phases: Vec::new(),
        left: Vec::new(),
    });
    let page = page::render(&data.analyse(catalogue()).unwrap());
    let at = |part: &str| {
        page.find(part)
            .unwrap_or_else(|| panic!("{part} is missing"))
    };
    assert!(at("id=\"wakeups\"") < at("id=\"loads\""));
    assert!(at("who is to blame") < at("id=\"loads\""));
    let (_, table) = page.split_once("class=\"prose\"").unwrap();
    assert!(table.contains("hackbench/117"));
}

#[test]
fn the_current_result_fits_in_a_line() {
    let mut run = Run::new(1);
    run.woken(1, Schedule::default(), |_, _, n| 4_000 + n % 7);
    stalled(&mut run, 1, &["idle", "dd"]);
    let cells = run.data().cells;
    let lines: Vec<String> = cells
        .iter()
        .map(|(state, samples)| match state {
            CellState::Done(cell) => catalogue().live(cell, samples),
            other => panic!("{other:?}"),
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_run_folder_gets_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut run = Run::new(1);
    stalled(&mut run, 1, &["idle", "dd"]);
    let data = run.data();
    let machine = Machine::collect(&Source::at(folder.path()));
    let run =
        RunFolder::create(&path, &data.plan, &MachineRecord::new(machine, Vec::new())).unwrap();
    for (state, samples) in &data.cells {
        if let CellState::Done(cell) = state {
            run.write_cell(cell, Some(samples)).unwrap();
        }
    }
    let analysis = analyse(&run, catalogue()).unwrap();
    let in_memory = data.analyse(catalogue()).unwrap();
    assert_eq!(analysis.rows(), in_memory.rows());
    assert_eq!(worst(&analysis), worst(&in_memory));
    let written = write_all(&run, None, &analysis).unwrap();
    let names: Vec<_> = written
        .csv
        .iter()
        .filter_map(|path| path.file_name())
        .collect();
    assert_eq!(names, ["wakeup-phases.csv"]);
    let text = fs::read_to_string(&written.csv[0]).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{text}");
    let field = |row: usize, name: &str| {
        let place = rows[0].iter().position(|column| *column == name).unwrap();
        rows[row][place]
    };
    assert_eq!(
        (field(2, "phase_load"), field(2, "max_us")),
        ("dd", "10000.000")
    );
    assert_eq!(
        (field(2, "p99_9_us"), field(2, "response_p99_9_us")),
        ("", "9000.000")
    );
    assert_eq!((field(1, "sd_us"), field(2, "missed")), ("0.817", "99"));
}
