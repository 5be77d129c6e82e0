//! Who took the time that a busy CPU lost.

use tare_pages::{page, terminal};
use tare_results::model::{
    Cell, Counter, Labels, OtherTask, OtherWork, Trace, TraceEvent, TraceKind, Value,
};
use tare_testkit::assert_contains;

use crate::synthetic::{Fold, Run, alarm, evenly, ids, measured, plain, record, timed, verdict};

fn event(at_ns: i64, what: TraceKind, stack: &[&str]) -> TraceEvent {
    TraceEvent {
        at_ns,
        what,
        from_user: false,
        sender: None,
        waited_ns: None,
        stack: stack.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// Delays of 10 µs each with the same events.
fn delays(samples: u64, events: Vec<TraceEvent>) -> Trace {
    let thread = "tare-agent/9".to_owned();
    let running = TraceKind::Running { thread, ours: true };
    Trace {
        set: 0,
        index: 3,
        value: 10_000 * samples,
        greatest: 12_000,
        samples,
        complete: true,
        events: [event(0, running, &[])].into_iter().chain(events).collect(),
        processes: [].into(),
    }
}

/// Adds what a recorded cell holds: the delays from 5 µs on, and how often the thread lost its CPU.
fn explain(cell: &mut Cell, traces: Vec<Trace>, switches: u64) {
    let record = record(cell);
    record.traces = traces;
    let values = [
        ("explained", 5_000.0),
        ("switches", 4.0),
        ("recording", 300_000.0),
        ("recorded", 2e9),
    ];
    record.values.extend(values.map(|(measure, value)| Value {
        measure: measure.to_owned(),
        labels: Labels::default(),
        unit: String::new(),
        value,
    }));
    measured(cell).counters.push(Counter {
        name: "involuntary context switches".to_owned(),
        count: switches,
        ..Counter::default()
    });
}

/// Makes cells with this work, and a third of the time seen with another process.
fn with_hog(run: &mut Run, block: u32) -> &mut Cell {
    let cell = run.gap(block, "process", evenly(2_600_000_000, 100, 1_300));
    cell.other_work = Some(OtherWork {
        watched_ns: 1_000_000_000,
        tasks: vec![OtherTask {
            cpu: 1,
            pid: 40,
            name: "hog".to_owned(),
            kernel: false,
            ns: 330_000_000,
        }],
        ..OtherWork::default()
    });
    cell
}

/// Makes two runs, in each of which the timer's interrupt took ninety delays, and ten are unexplained.
fn explained(switches: u64) -> Run {
    let mut run = Run::new(26);
    for block in 1..=2 {
        let cell = run.gap(block, "process", evenly(2_600_000_000, 100, 1_300));
        let (name, rcu) = (|| "local timer".to_owned(), || "RCU".to_owned());
        let tick = vec![
            event(0, TraceKind::InterruptEntry { name: name() }, &[]),
            event(
                90_000,
                TraceKind::TimerExpired { wakes: false },
                &["tick_nohz_handler"],
            ),
            event(810_000, TraceKind::InterruptExit { name: name() }, &[]),
            TraceEvent {
                waited_ns: Some(90 * 8_000),
                ..event(810_000, TraceKind::SoftirqEntry { name: rcu() }, &[])
            },
            event(900_000, TraceKind::SoftirqExit { name: rcu() }, &[]),
        ];
        let traces = vec![delays(90, tick), delays(10, Vec::new())];
        explain(cell, traces, switches);
        for (name, count) in [
            ("system management interrupts", 3),
            ("ticks stolen by the hypervisor", 2 - u64::from(block)),
        ] {
            measured(cell).counters.push(Counter {
                name: name.to_owned(),
                count,
                ..Counter::default()
            });
        }
    }
    run
}

#[test]
fn those_who_took_the_time_are_named_with_their_part() {
    let analysis = explained(4).analyse();
    assert_eq!(
        verdict(&analysis)[1],
        "gap, time in delays of 5.00 µs or more: interrupt local timer (tick_nohz_handler) 81.0 %, outside this kernel 10.0 % and softirq RCU 9.00 %."
    );
    let text = plain(&terminal::render(&analysis, 100, false));
    let rows = [
        "Who took the time",
        "A hypervisor says that it took up to 0.50 % of a case's time (steal, counted in steps of 10 ms).",
        "The processor counted 6 system management interrupts (SMIs).",
        "Recording the events took about 0.015 % of the time.",
        "delays per s of the time longest since raised",
        "interrupt local timer (tick_nohz_handler) 180 90/s 0.081 % 12.0 µs –",
        "outside this kernel 20 10/s 0.010 % 12.0 µs –",
        "softirq RCU 0 0/s 0.0090 % – 8.00 µs",
    ];
    assert_contains(&text, &rows);
    assert_contains(
        &page::render(&analysis),
        &["what they take while a handler runs"],
    );
    assert!(!ids(&analysis).contains(&"events-missed"));
    let json = analysis.stories().next().unwrap().json();
    let first = &json["takers"][0];
    assert_eq!(first["name"], "interrupt local timer (tick_nohz_handler)");
    assert_eq!(first["taker"]["functions"][0], "tick_nohz_handler");
    assert_eq!(first["delays"], 180);
}

/// Makes delays of the measured thread in which another one ran.
fn to_thread(name: &str, samples: u64) -> Trace {
    let names = ["tare-agent/9", name];
    let switch = |at_ns, from: usize, to: usize| {
        let what = TraceKind::Switch {
            from: names[from].to_owned(),
            from_priority: 120,
            to: names[to].to_owned(),
            to_priority: 120,
            ours: to == 0,
        };
        event(at_ns, what, &[])
    };
    let both = vec![switch(0, 0, 1), switch(10_000 * samples as i64, 1, 0)];
    delays(samples, both)
}

#[test]
fn what_no_event_explains_and_the_longest_delay_are_named_among_many() {
    let mut run = Run::new(26);
    let cell = run.gap(1, "process", evenly(2_600_000_000, 100, 1_300));
    let threads = (0..20).map(|number| {
        let samples = 30 - number;
        Trace {
            greatest: if number == 19 { 90_000 } else { 12_000 },
            ..to_thread(&format!("hog{number:02}/7"), samples)
        }
    });
    let overwritten = Trace {
        complete: false,
        events: Vec::new(),
        ..delays(2, Vec::new())
    };
    let others = [delays(1, Vec::new()), overwritten];
    explain(cell, threads.chain(others).collect(), 4);
    let text = plain(&terminal::render(&run.analyse(), 100, false));
    let rows = [
        "thread hog07, tid 7 23 23/s 0.023 % 12.0 µs",
        "thread hog19, tid 7 11 11/s 0.011 % 90.0 µs",
        "outside this kernel 1 1/s 0.0010 % 12.0 µs",
        "not recorded 2 2/s 0.0020 % 12.0 µs",
        "Not recorded is time whose events were overwritten",
        "11 others 187 187/s 0.19 % 12.0 µs",
    ];
    assert_contains(&text, &rows);
}

#[test]
fn time_in_delays_is_a_part_of_that_of_all_repetitions() {
    let mut run = Run::new(26);
    let mut durations = vec![2_600; 1_000];
    durations[500] = 28_600;
    let pause = Fold {
        pause: 2_600,
        ..Fold::default()
    };
    let cell = run.done(1, "process", "prime", Some(22), timed(&durations, pause));
    let delay = Trace {
        value: 11_000,
        ..delays(1, Vec::new())
    };
    explain(cell, vec![delay], 4);
    let cell = run.gap(1, "process", evenly(2_600_000_000, 100, 1_300));
    explain(cell, vec![delays(1, Vec::new())], 4);
    let analysis = run.analyse();
    // 10 of 1,010 µs, as in the table of delays; half of the time lies between repetitions.
    let text = plain(&terminal::render(&analysis, 100, false));
    let rows = [
        "gap · process outside this kernel",
        "prime 22 · process outside this kernel 1 498/s 0.99 %",
    ];
    assert_contains(&text, &rows);
    let gap = text.find(rows[0]);
    assert!(gap < text.find(rows[1]), "{text}");
}

#[test]
fn who_took_the_time_is_said_of_each_load_and_of_nobody_twice() {
    let mut run = Run::new(26);
    for block in 1..=2 {
        for load in ["", "ping"] {
            run.load = load;
            explain(with_hog(&mut run, block), vec![delays(10, Vec::new())], 4);
        }
    }
    let said = verdict(&run.analyse());
    assert!(
        said.iter().all(|text| !text.contains("alongside")),
        "{said:?}"
    );
    let all = "time in delays of 5.00 µs or more: outside this kernel 100 %.";
    assert_eq!(
        said[2..],
        [format!("gap, {all}"), format!("gap under ping, {all}")]
    );
}

#[test]
fn who_took_the_time_is_said_with_and_without_switches() {
    let mut run = Run::new(26);
    for block in 1..=2 {
        for isolate in [0, 1] {
            run.further = Some(("isolate", isolate));
            explain(with_hog(&mut run, block), vec![to_thread("hog/40", 10)], 4);
        }
    }
    let of = |isolate: u64| {
        format!("gap, isolate={isolate}, time in delays of 5.00 µs or more: thread hog 100 %.")
    };
    assert_eq!(verdict(&run.analyse())[1..], [of(0), of(1)]);
}

#[test]
fn other_work_is_named_before_the_tick_even_where_that_took_more() {
    let mut run = Run::new(26);
    for block in 1..=2 {
        let tick = || "local timer".to_owned();
        let traces = vec![
            delays(
                60,
                vec![
                    event(0, TraceKind::InterruptEntry { name: tick() }, &[]),
                    event(600_000, TraceKind::InterruptExit { name: tick() }, &[]),
                ],
            ),
            to_thread("hog/40", 40),
        ];
        explain(with_hog(&mut run, block), traces, 4);
    }
    assert_eq!(
        verdict(&run.analyse())[1],
        "gap, time in delays of 5.00 µs or more: thread hog 40.0 % and interrupt local timer 60.0 %."
    );
}

#[test]
fn where_most_events_were_lost_the_first_sentence_has_what_was_sampled() {
    let mut run = Run::new(26);
    for block in 1..=2 {
        let lost = Trace {
            complete: false,
            ..delays(70, Vec::new())
        };
        let traces = vec![lost, to_thread("python3/41", 30)];
        explain(with_hog(&mut run, block), traces, 4);
    }
    let said = verdict(&run.analyse());
    assert_contains(&said[0], &["alongside hog (33.0 % of the CPU's time)"]);
    assert_eq!(
        said[1],
        "gap, time in delays of 5.00 µs or more: not recorded 70.0 % and thread python3 30.0 %."
    );
}

#[test]
fn a_process_of_several_threads_has_one_row_with_their_names() {
    let mut run = Run::new(26);
    for block in 1..=2 {
        let threads = ["opt cgu.02/41", "esc\u{1b}[2J/42", "rustc/40", "python3/50"];
        let traces = threads.map(|thread| {
            let process = if thread.starts_with("python3") {
                "python3"
            } else {
                "rustc"
            };
            Trace {
                processes: [(thread.to_owned(), process.to_owned())].into(),
                ..to_thread(thread, 25)
            }
        });
        explain(with_hog(&mut run, block), traces.into(), 4);
    }
    let analysis = run.analyse();
    assert_eq!(
        verdict(&analysis)[1],
        "gap, time in delays of 5.00 µs or more: process rustc 75.0 % and process python3 25.0 %."
    );
    let text = plain(&terminal::render(&analysis, 120, false));
    let rows = [
        "process rustc (threads esc\\u001b[2J and opt cgu.02), 3 tids 150",
        "process python3, tid 50 50",
    ];
    assert_contains(&text, &rows);
    assert!(!page::render(&analysis).contains('\u{1b}'));
    let json = analysis.stories().next().unwrap().json();
    assert_eq!(json["takers"][0]["taker"]["kind"], "process");
    assert_eq!(json["takers"][0]["tids"], serde_json::json!([40, 41, 42]));
}

#[test]
fn a_target_without_events_is_named() {
    let mut run = explained(4);
    for block in 1..=2 {
        run.gap(block, "crun", evenly(2_600_000_000, 100, 1_300));
    }
    let analysis = run.analyse();
    let untraced = alarm(&analysis, "not-traced");
    assert_contains(untraced, &["--explain recorded nothing on crun: "]);
    assert!(!ids(&explained(4).analyse()).contains(&"not-traced"));
}

#[test]
fn events_that_are_missing_are_told() {
    let analysis = explained(40).analyse();
    assert_contains(
        alarm(&analysis, "events-missed"),
        &["8 of 80 for gap on process"],
    );
}
