//! Figures of wake-ups whose answer is known, in summary, terminal, CSV and live line.

use serde_json::Value;
use tare_figures::cases::Case;
use tare_figures::gates::Gate;
use tare_figures::rows::derive::Refused;
use tare_figures::rows::{Figure, Row, RunFigure};
use tare_pages::{Report, RunData, analyse, page, terminal, write_all};
use tare_results::CellState;
use tare_results::model::{self, Counter, LeftTool, Trace, TraceKind};
use tare_testkit::assert_contains;

use crate::folder::write;
use crate::gates::judge;
use crate::synthetic::wakeups::{Schedule, event, linux_like, told};
use crate::synthetic::{self, Run, alarm, csv, ids, measured, record, verdict};

/// A thread that is 5 µs late, but for a stall of 10 ms in the midst of the second phase.
pub fn stalled(run: &mut Run, block: u32, loads: &[&str]) {
    run.woken(block, Schedule::under(loads), |_, _, n| match n {
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
    let over = row(case, phase, measure, figure)?.over.as_ref();
    Some(over.ok()?.estimate)
}

/// How many samples a quantile needs in each run, if it was refused.
fn needed(case: &Case<'_>, phase: &str, measure: &str, figure: Figure) -> Option<u64> {
    match row(case, phase, measure, figure)?.over {
        Err(Refused::Samples { needed, .. }) => Some(needed),
        _ => None,
    }
}

/// The numerator and the denominator of the share of skipped activations in the first run.
fn skipped(case: &Case<'_>) -> Option<(f64, f64)> {
    match case.row("skipped", Figure::Share, &[])?.each[0].figure {
        RunFigure::Value { sums, .. } => sums,
        _ => None,
    }
}

fn worst(analysis: &Report) -> &[Value] {
    let worst = &analysis.summary().stories["wakeup"]["worst"];
    worst.as_array().unwrap()
}

/// Has loads of 1 s, of which `du` began 0.2 s late and `tar` was skipped, and wake-ups that are
/// late only between phases, but for one in the rest of the slot in which `du` began.
fn held_up(run: &mut Run, block: u32, late_ns: &[u64]) {
    let schedule = Schedule {
        late_ns,
        ..Schedule::under(&["idle", "dd", "du", "dd+ping", "tar"])
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
    let analysis = run.analyse();
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
        assert_eq!(
            (&worst["phase"], &worst["load"]),
            (&2.into(), &"end of dd".into())
        );
    }
    let text = terminal::render(&analysis, 200, false);
    insta::assert_snapshot!(format!("{text}\n\n{}", csv(&analysis)));
}

#[test]
fn a_phase_that_one_run_lacks_has_the_figures_of_the_others() {
    let mut run = Run::new(2);
    held_up(&mut run, 1, &[0, 0, 200_000_000, 0, 700_000_000]);
    held_up(&mut run, 2, &[0; 5]);
    let analysis = run.analyse();
    let case = only(&analysis);
    assert_eq!(sum(&case, "4", "wake-ups"), 10_000.0);
    assert_eq!(sum(&case, "4", "between"), 10_000.0);
    let latency = row(&case, "4", "latency", Figure::Max).unwrap();
    assert_eq!(latency.each.len(), 1);
    assert!(row(&case, "", "average maximum", Figure::Value).is_some());
    let text = terminal::render(&analysis, 120, false);
    assert!(!text.contains("tar, absent"), "{text}");
    let of_tar = text.lines().find(|line| line.starts_with("tar "));
    assert_contains(of_tar.unwrap(), &[" 1/2 "]);
}

#[test]
fn a_stall_counts_once_for_service_and_in_full_for_response() {
    let mut run = Run::new(1);
    stalled(&mut run, 1, &["idle", "dd"]);
    let analysis = run.analyse();
    let case = only(&analysis);
    // 99 of 100 activations of 10 ms are missed by a wake-up that is 10 ms late.
    assert_eq!(skipped(&case), Some((99.0, 20_000.0)));
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
    // Waits of 10.0, 9.9, … 0.1 ms, and 9,900 of 5 µs on average.
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
    let analysis = run.analyse();
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
        activations: 9_000,
        ..Schedule::default()
    };
    let woken = |thread: u32, _, n| 3_000 + 2_000 * u64::from(thread) + n % 2;
    let cell = run.woken(1, schedule, woken);
    // As without --smp, the second one is woken less often.
    for head in &mut record(cell).sets {
        head.period += 500_000 * head.labels.number("thread").unwrap_or(0);
    }
    let analysis = run.analyse();
    let limit = "The dashed line is the shortest interval of the threads.";
    assert_contains(&page::render(&analysis), &[limit]);
    let case = only(&analysis);
    assert_eq!(sum(&case, "", "wake-ups"), 18_000.0);
    for (thread, mean) in [("0", 3_000.5), ("1", 5_000.5)] {
        let over = case.over("latency", Figure::Mean, &[("thread", thread)]);
        assert_eq!(over.unwrap().estimate, mean);
    }
    let text = terminal::render(&analysis, 100, false);
    assert_contains(
        &text,
        &[
            "2 threads, SCHED_FIFO 95 every 100 µs to 600 µs",
            "· T1 CPU 2",
            // The threads together have one.
            "p99.9 needs 10,000",
        ],
    );
}

#[test]
fn a_quantile_between_two_runs_that_are_far_apart_is_marked() {
    let text = |tails: [u64; 2]| {
        let mut run = Run::new(1);
        for (block, tail) in (1..).zip(tails) {
            run.woken(block, Schedule::default(), |_, _, n| match n % 50 {
                0 => tail,
                _ => 4_000 + n % 40,
            });
        }
        terminal::render(&run.analyse(), 120, false)
    };
    assert_contains(
        &text([8_000, 80_000]),
        &["44.00*", "between the two runs in the middle"],
    );
    let alike = text([8_000, 9_000]);
    assert!(alike.contains("8.500 ") && !alike.contains('*'), "{alike}");
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
        run.analyse()
    };
    let [six, three, one] = [6, 3, 1].map(combined);
    let [median, max] = [Figure::MEDIAN, Figure::Max].map(|figure| {
        let case = only(&six);
        *case.over("response", figure, &[]).unwrap()
    });
    let interval = median.interval.unwrap();
    let found = (interval.low, interval.high, median.estimate);
    assert_eq!(found, (4_001.0, 4_006.0, 4_003.5));
    // The longest of all runs is what tables, files and gates call the maximum.
    assert_eq!((max.estimate, max.interval.is_err()), (56_000.0, true));
    let flat = &six.summary().figures;
    let mut flat = flat
        .iter()
        .filter(|row| row.measure == "latency" && row.figure == "max");
    assert_eq!(flat.next().unwrap().value, Some(56_000.0));
    let over = |figure| only(&three).over("latency", figure, &[]).unwrap();
    assert!(over(Figure::Max).interval.is_err() && over(Figure::Mean).interval.is_ok());
    assert_contains(
        &page::render(&six),
        &["intervals over runs", "4.001 to\n4.006"],
    );
    assert!(!page::render(&one).contains("intervals over runs"));
}

fn running(thread: &str) -> TraceKind {
    TraceKind::Running {
        thread: thread.to_owned(),
        ours: false,
    }
}

/// Makes two runs, and in one of them also a trace, in which a thread's softirq held up one wake-up for 60
/// µs.
fn blamed(thread: &str) -> RunData {
    let mut run = Run::new(1);
    run.woken(1, Schedule::default(), |_, _, _| 4_000);
    let traced = Schedule {
        traced: true,
        ..Schedule::default()
    };
    let cell = run.woken(1, traced, |_, _, n| if n == 777 { 60_000 } else { 9_000 });
    let name = || "NET_RX".to_owned();
    record(cell).traces.push(Trace {
        set: 0,
        index: 777,
        value: 60_000,
        greatest: 60_000,
        samples: 1,
        complete: true,
        processes: [].into(),
        events: vec![
            event(-500, running(thread)),
            event(-500, TraceKind::SoftirqEntry { name: name() }),
            event(59_000, TraceKind::SoftirqExit { name: name() }),
        ],
    });
    run.woken(2, Schedule::default(), |_, _, _| 4_000);
    run.data()
}

/// Returns what was recorded in the traced run.
fn traced(data: &mut RunData) -> &mut model::Record {
    match &mut data.cells[1].0 {
        CellState::Done(cell) => record(cell),
        other => panic!("it was not measured: {other:?}"),
    }
}

#[test]
fn what_was_traced_stands_apart_with_who_is_to_blame() {
    let analysis = synthetic::analyse(blamed("hackbench/117 with a long name"));
    let cases = Case::all(analysis.run(), "wakeup");
    for (is_traced, longest) in [(false, 4_000.0), (true, 60_000.0)] {
        let mut cases = cases.iter();
        let case = cases.find(|case| case.plan.is_traced() == is_traced);
        assert_eq!(
            over(case.unwrap(), "", "latency", Figure::Max),
            Some(longest)
        );
    }
    let all = worst(&analysis).iter();
    let traced = all.max_by_key(|worst| worst["latency_ns"].as_u64());
    let traced = traced.unwrap();
    let parts = traced["blame"]["parts"].as_object().unwrap();
    let parts: u64 = parts.values().filter_map(Value::as_u64).sum();
    assert_eq!((parts, &traced["traced"]), (60_000, &Value::Bool(true)));
    // The verdict is of what ran undisturbed, and names the culprit of the other.
    insta::assert_snapshot!(terminal::render(&analysis, 100, false));
    // The culprit has a column where there is room, and is on the page, too.
    let wide = terminal::render(&analysis, 160, false);
    assert_contains(&wide, &["L3", "culprit"]);
    let page = page::render(&analysis);
    let (_, table) = page.split_once("class=\"prose\"").unwrap();
    assert_contains(table, &["hackbench/117"]);
    // Of the ten worst in the traced run one was recorded, and only one run holds it.
    assert!(!table.contains("9.00\u{a0}µs"));
    let order = "each run holds a combination at most once";
    assert_contains(&page, &[order, "</code> records if fewer"]);
}

#[test]
fn a_target_whose_kernel_is_not_traced_is_named() {
    let mut data = blamed("hog/77");
    let (cell, mut plan) = (data.cells[0].clone(), data.plan.cells[0].clone());
    (plan.id, plan.target) = (4, synthetic::spec("unikernel"));
    data.plan.cells.push(plan);
    data.cells.push(cell);
    let mut analysed = synthetic::analyse(data);
    let untraced = alarm(&analysed, "not-traced").to_owned();
    assert_contains(&untraced, &["recorded nothing on unikernel"]);
    analysed = synthetic::analyse(blamed("hog/77"));
    assert!(!ids(&analysed).contains(&"not-traced"));
}

#[test]
fn a_bin_tells_of_a_maximum_that_no_list_has() {
    let mut run = Run::new(1);
    let schedule = Schedule {
        raw: 100,
        ..Schedule::default()
    };
    // Below the interval, so not listed; late, so not among the first.
    run.woken(1, schedule, |_, _, n| match n {
        8_005 => 90_000,
        _ => 4_000,
    });
    let analysis = run.analyse();
    let worst = &worst(&analysis)[0];
    assert_eq!(worst["activation"], Value::Null);
    let of = |key: &str| worst[key].as_u64().unwrap();
    assert_eq!(of("latency_ns"), 90_000);
    assert!((of("at_ns")..of("at_ns") + of("within_ns")).contains(&800_500_000));
}

#[test]
fn the_cost_of_recording_is_the_mean_of_the_runs() {
    let mut run = Run::new(1);
    for (block, ns) in [(1, 1_000.0), (2, 2_000.0), (3, 6_000.0)] {
        let cell = run.woken(block, Schedule::default(), |_, _, _| 4_000);
        *told(cell, "recording time") = ns;
    }
    let analysis = run.analyse();
    let judged = judge(&analysis, "recording.value{target=process} > 1us").unwrap();
    assert_contains(&judged.sentence, &["is 3.00 µs (mean of 3 runs)"]);
}

#[test]
fn what_bears_on_the_figures_is_said() {
    let mut run = Run::new(1);
    run.emulated = true;
    for target in ["linux", "linux,kernel=debian-rt,clock=instructions"] {
        let cell = run.woken(1, Schedule::of(target), |_, _, _| 4_000);
        measured(cell).preparation.latency_held = false;
        *told(cell, "recording time") = 3_000.0;
    }
    // Here it stands in a value.
    let quoted = Schedule::of("linux,cmdline=quiet,,clock=instructions");
    run.woken(1, quoted, |_, _, _| 4_000);
    let analysis = run.analyse();
    assert_eq!(
        ids(&analysis),
        [
            "emulated",
            "instruction-time",
            "recording-cost",
            "woken-from-idle"
        ]
    );
    insta::assert_snapshot!(terminal::render(&analysis, 100, false));
}

#[test]
fn clocks_and_counters_are_looked_at_as_those_of_noise_are() {
    let mut run = Run::new(1);
    let unikernel = Schedule::of("unikernel");
    let cell = run.woken(1, unikernel, |_, _, n| if n == 5 { 100_000 } else { 4_000 });
    let program = measured(cell);
    program.counters = vec![Counter {
        name: "timer interrupts".to_owned(),
        count: 10_000,
        ..Counter::default()
    }];
    program.frequencies[1].hz *= 1.5;
    // Its latencies are in ns, whatever the source of the TSC's frequency.
    let cell = run.woken(1, Schedule::default(), |_, _, _| 4_000);
    measured(cell).frequencies.clear();
    let analysis = run.analyse();
    assert_eq!(ids(&analysis), ["tsc-frequency-contradicted"]);
    let cases = Case::all(analysis.run(), "wakeup");
    let mut cases = cases.iter();
    let case = cases.find(|case| case.plan.target == "unikernel").unwrap();
    for figure in [Figure::Total, Figure::Rate] {
        let over = case.over("interrupts", figure, &[("counter", "timer interrupts")]);
        assert_eq!(over.unwrap().estimate, 10_000.0);
    }
    let (_, page) = synthetic::shown(&analysis);
    assert_contains(&page, &["unikernel · timer interrupts</th><td>10 000</td>"]);
}

#[test]
fn what_was_woken_before_a_load_had_begun_is_in_no_phase() {
    let mut run = Run::new(1);
    let schedule = Schedule::under(&["idle", "dd"]);
    let cell = run.woken(1, schedule, |_, phase, _| [4_000, 250_000][phase]);
    // As if dd had never begun in its phase.
    let head = &mut record(cell).sets[1];
    head.labels = head.labels.clone().with("between", "yes");
    let analysis = run.analyse();
    let case = only(&analysis);
    let woken = ["0", "1"].map(|phase| sum(&case, phase, "wake-ups"));
    assert_eq!(woken, [10_000.0, 0.0]);
    assert_eq!(worst(&analysis)[0]["latency_ns"], 250_000);
    let due = 10_000.0 + 3_334.0 + 6_666.0;
    assert_eq!(skipped(&case), Some((6_666.0, due)));
}

#[test]
fn a_cell_that_contradicts_itself_is_named_and_not_used() {
    let mut run = Run::new(1);
    let cell = run.woken(1, Schedule::default(), |_, _, _| 4_000);
    *told(cell, "missed") = 7.0;
    run.woken(2, Schedule::default(), |_, _, _| 4_000);
    let analysis = run.analyse();
    assert_eq!(analysis.summary().done, 1);
    let reason = &analysis.summary().not_measured[0].reason;
    assert_contains(reason, &["missed 7 activations"]);
}

#[test]
fn noise_and_wake_ups_of_one_run_leave_each_other_alone() {
    let mut run = Run::new(1);
    run.prime(1, "process", &[1_000; 10_000]);
    stalled(&mut run, 1, &["idle", "dd"]);
    run.prime(2, "process", &[1_000; 10_000]);
    let analysis = run.analyse();
    let cells = |experiment| -> Vec<u32> {
        let cases = Case::all(analysis.run(), experiment);
        let cells = cases.iter().flat_map(|case| &case.cells);
        cells.map(|cell| cell.plan.id).collect()
    };
    assert_eq!(analysis.summary().done, 3);
    assert_eq!((cells("noise"), cells("wakeup")), (vec![1, 3], vec![2]));
    let (text, page) = synthetic::shown(&analysis);
    assert_contains(
        &text,
        &["Latest wake-ups under dd: 10.0 ms on process; without a load: 6.00 µs on process."],
    );
    // The picture of the second experiment has its place, too.
    assert_contains(&page, &["Wake-up latency over time"]);
}

#[test]
fn two_experiments_of_the_same_are_told_apart_and_counted_once() {
    let mut run = Run::new(1);
    for loads in [1, 2] {
        run.further = Some(("loads", loads));
        stalled(&mut run, 1, &["idle", "dd"][..loads as usize]);
    }
    let analysis = run.analyse();
    let verdict = &analysis.summary().verdict;
    assert_eq!(
        verdict.headline,
        "Latest wake-ups under dd: 10.0 ms on process, loads=2; without a load: 6.00 µs on process, loads=1 and 6.00 µs on process, \
         loads=2."
    );
}

#[test]
fn a_label_of_all_targets_is_said_once() {
    let mut run = Run::new(1);
    run.further = Some(("loads", 3));
    for (target, late_ns) in [("process", 5_000), ("docker", 6_000)] {
        run.woken(1, Schedule::of(target), |_, _, _| late_ns);
    }
    assert_eq!(
        run.analyse().summary().verdict.headline,
        "Latest wake-ups (loads=3): 5.00 µs on process and 6.00 µs on docker."
    );
}

#[test]
fn an_emulated_target_stands_beside_a_real_one_in_no_headline() {
    let mut run = Run::new(1);
    for target in ["process", "unikernel", "docker"] {
        run.emulated = target == "unikernel";
        // The emulated one has two modes.
        let is_emulated = run.emulated;
        run.woken(1, Schedule::of(target), |_, _, n| match is_emulated {
            true if n % 2 == 0 => 60_000,
            _ => 5_000,
        });
    }
    let verdict = run.analyse().summary().verdict.clone();
    assert_contains(&verdict.headline, &["docker"]);
    let mut sentences = [vec![verdict.headline], verdict.details]
        .concat()
        .into_iter();
    assert!(sentences.all(|sentence| !sentence.contains("unikernel")));
}

#[test]
fn modes_that_only_some_runs_are_known_to_have_are_said_of_those() {
    let mut run = Run::new(1);
    for block in 1..=2 {
        let cell = run.woken(block, Schedule::of("process"), |_, _, n| match block {
            2 if n % 5 < 3 => 60_000,
            _ => 5_000,
        });
        let head = &mut record(cell).sets[0];
        // Those of the first run may all be short.
        if block == 1 {
            head.n += 5_000;
            (head.uncounted, head.uncounted_min, head.uncounted_max) = (5_000, 5_000, 60_000);
        }
    }
    let modes = "Wake-up latency has two modes on process, in 1 of 2 runs: about 5.00 µs and 60.0 µs; the slow one has 60.0 % of a run's \
                 samples.";
    assert_contains(&verdict(&run.analyse()).join(" "), &[modes]);
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
                loads: &["idle", "ping", "idle", "dd+hackbench"],
                model: Some(model),
                ..Schedule::of(target)
            };
            run.woken(block, schedule, |_, phase, _| {
                let stalls = if phase == 3 { stalls } else { 0.0 };
                linux_like(3_000.0, 2_000.0, stalls, &mut random)
            });
        }
    }
    let analysis = run.analyse();
    insta::assert_snapshot!(terminal::render(&analysis, 110, false));
    for width in [60, 80, 100, 120, 200] {
        synthetic::assert_fits(&analysis, width);
        // No word of the table is broken on a usual terminal.
        let text = terminal::render(&analysis, width, false);
        let table = text.lines().find(|line| line.starts_with("dd+hackbench"));
        let words = ["dd+hackbench ", " 1,007 ", " 58.83* ", " 0.075 %"];
        let is_whole = |line: &str| words.iter().all(|word| line.contains(word));
        assert!(width < 80 || table.is_some_and(is_whole), "{width}: {text}");
    }
}

#[test]
fn throttling_is_told_when_it_was_seen() {
    let mut data = blamed("hog/77");
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
    let waking = TraceKind::Waking {
        thread: us.0.to_owned(),
        ours: true,
        priority: us.1,
    };
    let name = || "local timer".to_owned();
    traced(&mut data).traces[0].events = vec![
        event(-500, running("hog/77")),
        event(500, TraceKind::InterruptEntry { name: name() }),
        event(900, waking),
        event(1_500, TraceKind::InterruptExit { name: name() }),
        switch(5_000, ("hog/77", 0), ("tar/55", 120)),
        switch(55_000, ("tar/55", 120), us),
    ];
    let analysis = synthetic::analyse(data);
    let text = alarm(&analysis, "rt-throttled");
    assert_contains(text, &["1 of the worst", "sched_rt_runtime_us=-1"]);
}

#[test]
fn a_run_folder_gets_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::new(1);
    stalled(&mut run, 1, &["idle", "dd"]);
    let data = run.data();
    let run = write(&folder.path().join("run"), &data);
    let analysis = analyse(&run, tare_experiments::catalogue()).unwrap();
    let in_memory = synthetic::analyse(data);
    assert_eq!(analysis.rows(), in_memory.rows());
    assert_eq!(worst(&analysis), worst(&in_memory));
    let written = write_all(&run, None, &analysis).unwrap();
    assert_eq!(written.csv, [run.path().join("wakeup-phases.csv")]);
    insta::assert_snapshot!(std::fs::read_to_string(&written.csv[0]).unwrap());
}

#[test]
fn what_there_was_no_room_to_count_bounds_the_figures() {
    let mut run = Run::new(1);
    stalled(&mut run, 1, &["idle"]);
    let mut data = run.data();
    let (CellState::Done(cell), samples) = &mut data.cells[0] else {
        panic!("it is done");
    };
    // Of 10,000 wake-ups the 3,333 of 6 µs found no room; all that is known of them is their range.
    let (head, set) = (&mut record(cell).sets[0], &mut samples.sets[0]);
    let row = set.counts.iter().find(|row| row.value == 6_000).copied();
    let row = row.unwrap();
    assert!(row.count > 3_000, "{row:?}");
    set.counts.retain(|other| other.value != row.value);
    head.uncounted = row.count;
    head.uncounted_sum = row.value * row.count;
    (head.uncounted_min, head.uncounted_max) = (5_500, 7_000);
    let analysis = synthetic::analyse(data);
    let case = only(&analysis);
    let of = |figure| case.row("latency", figure, &[]).unwrap();
    for (figure, known) in [
        (Figure::MEDIAN, Some(5_000.0)),
        (Figure::Min, Some(4_000.0)),
        (Figure::Mean, Some(head_mean(&analysis))),
        (Figure::P99, None),
        (Figure::Sd, None),
    ] {
        assert_eq!(of(figure).estimate(), known, "{figure}");
    }
    assert_eq!(of(Figure::P99).at_least(), Some(5_500.0));
    assert_contains(&terminal::render(&analysis, 120, false), &["≥ 5.500"]);
    assert_contains(
        alarm(&analysis, "wakeups-uncounted"),
        &["were not counted one by one"],
    );
}

#[test]
fn what_is_known_of_wakeups_without_room_is_in_the_figures() {
    // The responses to some within the interval, and to a longer one alone, follow from their sum.
    for longest in [4_019, 350_000] {
        let mut run = Run::new(1);
        run.woken(1, Schedule::default(), |_, _, n| match n {
            5_000 => longest,
            n => 4_000 + n % 20,
        });
        let mut data = run.data();
        let whole = synthetic::analyse(data.clone());
        let (CellState::Done(cell), samples) = &mut data.cells[0] else {
            panic!("it is done");
        };
        let (head, set) = (&mut record(cell).sets[0], &mut samples.sets[0]);
        let row = set.counts.pop().unwrap();
        assert_eq!(row.value, longest);
        (head.uncounted, head.uncounted_sum) = (row.count, longest * row.count);
        (head.uncounted_min, head.uncounted_max) = (4_011, longest);
        let bounded = synthetic::analyse(data);
        let (whole, bounded) = (only(&whole), only(&bounded));
        for figure in [Figure::Min, Figure::MEDIAN, Figure::Mean, Figure::Max] {
            for measure in ["latency", "response"] {
                let of = |case: &Case<'_>| case.row(measure, figure, &[]).unwrap().estimate();
                let (known, found) = (of(&whole).unwrap(), of(&bounded));
                assert!(
                    found.is_some_and(|found| (found - known).abs() < 1e-6),
                    "{measure}.{figure}: {found:?} instead of {known}"
                );
            }
        }
    }
}

/// The mean of all wake-ups of the first cell, as its heads tell.
fn head_mean(analysis: &Report) -> f64 {
    let record = analysis.run().cells[0].outcome.record().unwrap();
    record.sets[0].sum as f64 / record.sets[0].n as f64
}

#[test]
fn the_distribution_comes_first_with_all_loads_and_the_gate_s_limit() {
    let mut run = Run::new(1);
    run.woken(1, Schedule::under(&["idle", "dd"]), |_, phase, n| {
        4_000 + 1_000 * phase as u64 + n % 200
    });
    let gate: Gate = "latency.p99 > 50us".parse().unwrap();
    let report = run.analyse().with_gates(&[gate]);
    let page = page::render(&report);
    let place = |what: &str| page.find(what).unwrap_or_else(|| panic!("no {what}"));
    let [distribution, limit, over_time] = [
        "How often, and how late",
        "latency.p99 &gt; 50us",
        "Wake-up latency over time",
    ]
    .map(place);
    assert!(distribution < limit && limit < over_time);
    let legend = &page[distribution..limit];
    assert_contains(legend, &["process without a load", "process under dd"]);
}
