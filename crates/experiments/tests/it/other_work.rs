//! What else ran on the measured CPU, and how often it took it.

use tare_pages::{page, terminal};
use tare_results::model::{Cell, Counter, OtherTask, OtherWork};

use crate::synthetic::{self, Fold, HZ, Run, measured, plain, row, spin};

/// Makes a second of spinning, interrupted 1,000 times a second.
fn spinning() -> synthetic::Folded {
    let every = HZ as u64 / 1_000;
    let gaps: Vec<(u64, u64)> = (1..1_000).map(|n| (n * every, 20_021)).collect();
    let fold = Fold {
        threshold: 1_300,
        ..Fold::default()
    };
    spin((HZ as u64 - 999 * 20_000) / 21, 20, &gaps, fold)
}

/// Lets a process have so much of the watched second.
fn beside(cell: &mut Cell, (pid, name, ms): (u32, &str, u64)) {
    let other = cell.other_work.get_or_insert_with(|| OtherWork {
        watched_ns: 1_000_000_000,
        ..OtherWork::default()
    });
    other.tasks.push(OtherTask {
        cpu: 1,
        pid,
        name: name.to_owned(),
        kernel: name.starts_with("kworker"),
        ns: ms * 1_000_000,
    });
}

fn alarms(analysis: &tare_pages::Report) -> Vec<(&'static str, &str)> {
    let alarms = analysis.summary().alarms.iter();
    alarms
        .map(|alarm| (alarm.id, alarm.text.as_str()))
        .collect()
}

#[test]
fn other_work_on_the_measured_cpu_is_named_with_its_process() {
    let mut run = Run::new(1);
    for block in 1..=2 {
        let cell = run.done(block, "process", "gap", None, spinning());
        for (pid, name, ms) in [(41, "cc1", 4), (40, "hog", 420 * (block as u64 - 1))] {
            beside(cell, (pid, name, ms));
        }
        beside(cell, (7, "kworker/1:2", 0));
    }
    let analysis = run.analyse();
    let [(id, text)] = alarms(&analysis)[..] else {
        panic!("{:?}", alarms(&analysis));
    };
    assert_eq!(id, "other-work");
    assert!(
        text.contains(
            "hog (process 40) used CPU 1 for about 420 ms of 1.00 s in cell 2; cc1 (process 41) used CPU 1 for about 8.00 ms \
             of 2.00 s in cells 1, 2. The figures include this time."
        ),
        "{text}"
    );
    assert_eq!(analysis.summary().verdict.cautions[0], text);
    let shown = plain(&terminal::render(&analysis, 120, false));
    assert!(shown.contains(text), "{shown}");
}

#[test]
fn what_had_less_than_a_hundredth_of_the_cpu_is_a_note() {
    let mut run = Run::new(1);
    let cell = run.done(1, "process", "gap", None, spinning());
    beside(cell, (41, "cc1", 4));
    let analysis = run.analyse();
    assert_eq!(alarms(&analysis)[0].0, "other-work");
    assert!(analysis.summary().verdict.cautions.is_empty());

    let mut run = Run::new(1);
    let cell = run.done(1, "process", "gap", None, spinning());
    beside(cell, (41, "cc1", 0));
    assert_eq!(alarms(&run.analyse()), []);
}

#[test]
fn another_run_on_the_same_cpu_is_named() {
    let mut run = Run::new(1);
    let cell = run.done(1, "process", "gap", None, spinning());
    beside(cell, (41, "tare-agent", 0));
    let other = cell.other_work.as_mut().unwrap();
    other.runs = vec!["/runs/b (process 99)".to_owned()];
    let analysis = run.analyse();
    let [(id, text)] = alarms(&analysis)[..] else {
        panic!("{:?}", alarms(&analysis));
    };
    assert_eq!(id, "cpu-shared");
    assert!(text.contains("in cell 1: /runs/b (process 99)."), "{text}");
}

#[test]
fn a_load_s_context_switches_are_told() {
    let mut run = Run::new(1);
    for (load, switches) in [("", 0), ("dd", 312)] {
        run.load = load;
        for block in 1..=3 {
            let cell = run.done(block, "process", "gap", None, spinning());
            let counter = |kind: &str, count| Counter {
                name: format!("{kind} context switches"),
                count,
            };
            let count = switches + u64::from(block) % 2;
            measured(cell).counters = vec![counter("involuntary", count), counter("voluntary", 0)];
        }
    }
    let analysis = run.analyse();
    let rate = row(&analysis, "context-switches.rate{kind=involuntary,load=dd}").unwrap();
    assert!((rate.over.as_ref().unwrap().estimate - 312.7).abs() < 0.5);
    let shown = plain(&terminal::render(&analysis, 120, false));
    let verdict =
        "Involuntary context switches of the measured thread: 313/s (gap under dd on process).";
    assert!(
        analysis
            .summary()
            .verdict
            .details
            .iter()
            .any(|text| text == verdict),
        "{:?}",
        analysis.summary().verdict
    );
    assert!(
        shown.contains("gap under dd · process · involuntary"),
        "{shown}"
    );
    assert!(
        !shown.contains("· voluntary"),
        "what never happened is no line"
    );
    assert!(page::render(&analysis).contains("Context switches of the measured thread"));
}
