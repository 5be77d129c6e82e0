//! Figures of wake-ups whose answer is known, in summary, terminal, CSV and live line.

use std::fs;

use crate::synthetic::wakeups::{Schedule, linux_like, told, trace};
use crate::synthetic::{Fold, Run, measured, record, timed};
use tare_host::{Machine, Source};
use tare_report::RunData;
use tare_report::wakeup::WakeupCombination;
use tare_report::{Analysis, analyse, html, live, terminal, write_all};
use tare_results::model::{
    Achieved, Counter, LeftTool, Load, LoadPlace, Trace, TraceEvent, TraceKind,
};
use tare_results::{CellState, MachineRecord, RunFolder};

const INTERVAL: u64 = 100_000;

/// Is a thread that is 5 µs late, but for a stall of 10 ms in the midst of the second phase.
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

fn only(analysis: &Analysis) -> &WakeupCombination {
    let [only] = analysis.summary().wakeups.as_slice() else {
        panic!("there is one combination");
    };
    only
}

/// Has loads of 1 s, of which `du` began 0.2 s late and `tar` was skipped, and wake-ups that are late only meanwhile.
fn held_up(run: &mut Run, block: u32, late_ns: &[u64]) {
    let schedule = Schedule {
        loads: &["idle", "dd", "du", "dd+ping", "tar"],
        late_ns,
        ..Schedule::default()
    };
    let between = |n| (20_000..22_000).contains(&n) || (40_000..47_000).contains(&n);
    let cell = run.woken(block, schedule, |_, _, n| match n {
        21_000 if late_ns[2] > 0 => 1_500_000,
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
    let analysis = run.data().analyse();
    let figures = only(&analysis);
    let of = |number: usize| &figures.phases[number];
    // A millisecond is not worth speaking of.
    assert_eq!((of(1).woken, of(1).between_woken), (10_000, 0));
    assert_eq!((of(2).woken, of(2).missed), (8_000, 0));
    assert_eq!((of(2).between_woken, of(2).between_missed), (1_986, 14));
    assert_eq!(of(2).service.unwrap().max.highest, 5_000.0);
    assert_eq!((of(4).woken, of(4).between_woken), (0, 10_000));
    assert!(of(4).service.is_none() && of(4).response.is_none());
    let why = "its load was skipped, because dd of the load before (dd+ping) took that long to end";
    assert_eq!(of(4).absent.as_deref(), Some(why));
    assert!(figures.average_max.is_none());
    let worst = &figures.worst[0];
    assert_eq!(
        (worst.latency_ns, worst.load.as_str()),
        (1_500_000, "end of dd")
    );

    let text = terminal::render(&analysis, 200, false);
    let page = html::render(&analysis)
        .replace(['\u{a0}', '\u{202f}'], " ")
        .replace("<wbr>", "");
    let csv = tare_report::wakeup::csv::file(&analysis.summary().wakeups).unwrap();
    for said in [
        "phase 2 (du) of cell 1 by 200 ms, because dd of the load before (dd) took that long to end",
        "986 wake-ups from before that are counted apart",
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
    let analysis = run.data().analyse();
    let tar = &only(&analysis).phases[4];
    assert_eq!(tar.absent, None);
    assert_eq!((tar.woken, tar.between_woken), (10_000, 10_000));
    assert_eq!(tar.service.unwrap().count, 10_000);
    assert!(only(&analysis).average_max.is_some());
}

#[test]
fn a_stall_counts_once_for_service_and_in_full_for_response() {
    let mut run = Run::new(1);
    stalled(&mut run, 1, &["idle", "dd"]);
    let analysis = run.data().analyse();
    let figures = only(&analysis);
    // 99 of 100 activations of 10 ms are missed by a wake-up that is 10 ms late.
    assert_eq!((figures.woken, figures.missed), (19_901, 99));
    assert_eq!(figures.phase_seconds, Some(1.0));
    let [idle, dd] = figures.each[0].phases.as_slice() else {
        panic!("there are two phases");
    };
    assert_eq!((idle.woken, idle.missed), (10_000, 0));
    assert_eq!(idle.service, idle.response);
    assert_eq!((dd.woken, dd.missed), (9_901, 99));
    let (service, response) = (dd.service.unwrap(), dd.response.unwrap());
    assert_eq!((service.max_ns, response.max_ns), (10_000_000, 10_000_000));
    assert_eq!(service.p99_9.samples_needed, Some(10_000));
    // The 9,990th of 10,000: nine of the stall's hundred are longer than 9.1 ms, and it is the tenth.
    assert_eq!(response.p99_9.ns, Some(9_000_000));
    assert_eq!(
        (service.p99.ns, response.p99.ns),
        (Some(6_000), Some(6_000))
    );
    // Waits of 10.0, 9.9, … 0.1 ms, and 9,900 of 5 µs in the mean.
    let mean = (505_000_000.0 + dd.service.unwrap().mean_ns * 9_901.0 - 10_000_000.0) / 10_000.0;
    assert!(
        (response.mean_ns - mean).abs() < 1e-6,
        "{}",
        response.mean_ns
    );
    assert_eq!(
        figures.each[0].average_max_ns,
        Some((6_000.0 + 10_000_000.0) / 2.0)
    );
    let worst = &figures.worst[0];
    assert_eq!(
        (worst.activation, worst.latency_ns, worst.missed),
        (Some(15_000), 10_000_000, 99)
    );
    assert_eq!(
        (worst.at_ns, worst.phase, worst.load.as_str()),
        (1_500_000_000, 1, "dd")
    );
    assert_eq!(figures.worst.len(), 10);
}

#[test]
fn the_study_s_standard_deviation_is_over_all_wake_ups_of_the_phase() {
    let mut run = Run::new(1);
    let schedule = Schedule {
        activations: 30,
        ..Schedule::default()
    };
    run.woken(1, schedule, |_, _, n| [1_000, 2_000, 6_000][n as usize % 3]);
    let analysis = run.data().analyse();
    let service = only(&analysis).phases[0].service.unwrap();
    assert_eq!(service.mean.figure, 3_000.0);
    let sd = (14e6_f64 / 3.0).sqrt();
    assert!((service.sd.figure - sd).abs() < 1e-9);
    assert_eq!(service.p99.samples_needed, Some(1_000));
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
    let analysis = run.data().analyse();
    let figures = only(&analysis);
    assert_eq!(figures.intervals_ns, [INTERVAL; 2]);
    assert_eq!(figures.phases[0].service.unwrap().count, 20_000);
    let mean = |thread: usize| {
        figures.threads[thread].phases[0]
            .service
            .unwrap()
            .mean
            .figure
    };
    assert_eq!((mean(0), mean(1)), (3_000.5, 5_000.5));
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
        let analysis = run.data().analyse();
        only(&analysis).clone()
    };
    let six = combined(6);
    let max = six.phases[0].response.unwrap().max;
    let interval = max.interval.unwrap();
    assert_eq!(
        (interval.low, interval.high, max.figure),
        (51_000.0, 56_000.0, 53_500.0)
    );
    assert!(six.intervals_refused.is_none());
    let three = combined(3);
    assert!(three.phases[0].response.unwrap().max.interval.is_none());
    assert!(three.phases[0].service.unwrap().mean.interval.is_some());
    assert!(three.intervals_refused.unwrap().contains("needs 6 runs"));
    assert!(
        combined(1)
            .intervals_refused
            .unwrap()
            .contains("no figure has an interval")
    );
}

/// Makes a run without and one with a trace, in which a thread's softirq held up one wake-up for 60 µs.
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
    let analysis = blamed("hackbench/117").analyse();
    let [plain, traced] = analysis.summary().wakeups.as_slice() else {
        panic!("they are not merged");
    };
    assert!(!plain.traced && traced.traced);
    assert_eq!(plain.longest_ns(), Some(4_000.0));
    let blame = traced.worst[0].blame.as_ref().unwrap();
    assert_eq!(blame.parts.total_ns(), 60_000);
    let text = terminal::render(&analysis, 120, false);
    assert!(
        text.contains("· traced") && text.contains(&blame.culprit_text),
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
    let analysis = run.data().analyse();
    let worst = &only(&analysis).worst[0];
    assert_eq!((worst.activation, worst.latency_ns), (None, 90_000));
    assert!((worst.at_ns..worst.at_ns + worst.within_ns).contains(&800_500_000));
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
    let analysis = run.data().analyse();
    let ids: Vec<&str> = analysis.alarms().iter().map(|alarm| alarm.id()).collect();
    assert_eq!(
        ids,
        [
            "emulated",
            "instruction-time",
            "recording-cost",
            "woken-from-idle"
        ]
    );
    let emulated = analysis.alarms()[0].to_string();
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
        let analysis = run.data().analyse();
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
    let analysis = run.data().analyse();
    let ids: Vec<&str> = analysis.alarms().iter().map(|alarm| alarm.id()).collect();
    assert_eq!(ids, ["tsc-frequency-contradicted"]);
    let mut combinations = analysis.summary().wakeups.iter();
    let combination = combinations.find(|c| c.target == "unikernel").unwrap();
    let counter = &combination.counters[0];
    assert_eq!((counter.count, counter.delays), (10_000, 1));
    assert_eq!(counter.per_second.unwrap().figure, 10_000.0);
    let page = html::render(&analysis);
    let (_, row) = page.split_once("<td>timer interrupts</td>").unwrap();
    let (row, _) = row.split_once("</tr>").unwrap();
    assert!(row.contains("1\u{a0}late wake-up"), "{row}");
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
    let analysis = run.data().analyse();
    let combination = only(&analysis);
    let woken: Vec<u64> = combination.phases.iter().map(|phase| phase.woken).collect();
    assert_eq!(woken, [10_000, 0]);
    let thread = &combination.each[0].threads[0];
    assert_eq!((thread.max_ns, thread.missed), (250_000, 6_666));
    assert_eq!(thread.woken, 10_000 + 3_334);
}

#[test]
fn a_cell_that_contradicts_itself_is_named_and_not_used() {
    let mut run = Run::new(1);
    let cell = run.woken(1, Schedule::default(), |_, _, _| 4_000);
    *told(cell, "missed") = 7.0;
    run.woken(2, Schedule::default(), |_, _, _| 4_000);
    let analysis = run.data().analyse();
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
    let analysis = run.data().analyse();
    let summary = analysis.summary();
    assert_eq!(
        (
            summary.done,
            summary.combinations.len(),
            summary.wakeups.len()
        ),
        (3, 1, 1)
    );
    assert_eq!(summary.combinations[0].cells, [1, 3]);
    assert!(summary.verdict.headline.starts_with("prime 22"));
    let details = summary.verdict.details.join(" ");
    assert!(details.contains("Woken at worst 10.0 ms late"), "{details}");
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
    let analysis = run.data().analyse();
    insta::assert_snapshot!(terminal::render(&analysis, 110, false));
    for width in [60, 80, 100, 120, 200] {
        for line in terminal::render(&analysis, width, false).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn the_worst_with_their_culprits_fit_on_a_terminal_as_well() {
    let analysis = blamed("hackbench/117 with a name of its own").analyse();
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
    let analysis = data.analyse();
    let alarms = analysis.alarms();
    let alarm = alarms.iter().find(|alarm| alarm.id() == "rt-throttled");
    let text = alarm.unwrap().to_string();
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
    let page = html::render(&data.analyse());
    let at = |part: &str| {
        page.find(part)
            .unwrap_or_else(|| panic!("{part} is missing"))
    };
    assert!(at("id=\"wakeups\"") < at("id=\"loads\""));
    assert!(at("who is to blame") < at("id=\"loads\""));
    assert!(at("class=\"prose\"") < at("hackbench/117"));
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
            CellState::Done(cell) => live(cell, samples),
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
    let analysis = analyse(&run).unwrap();
    assert_eq!(analysis.summary().wakeups, data.analyse().summary().wakeups);
    let written = write_all(&run, &analysis).unwrap();
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
