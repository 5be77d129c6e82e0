//! What else ran on the measured CPU, and how often it took it.

use tare_host::{Finding, Severity};
use tare_pages::terminal;
use tare_results::MachineRecord;
use tare_results::model::{Cell, Counter, Labels, OtherTask, OtherWork, Value};
use tare_testkit::assert_contains;

use crate::synthetic::wakeups::Schedule;
use crate::synthetic::{
    self, HZ, Run, alarm, analyse, evenly, ids, measured, record, row, shown, unknown_machine,
};

/// Makes a second of spinning, interrupted 1,000 times a second.
fn spinning() -> synthetic::Folded {
    evenly(HZ as u64, 1_000, 1_300)
}

/// Gives a process this much of the watched second.
fn beside(cell: &mut Cell, (pid, name, ms): (u32, &str, u64)) {
    let other = cell.other_work.get_or_insert_with(|| OtherWork {
        watched_ns: 1_000_000_000,
        ..OtherWork::default()
    });
    other.tasks.push(OtherTask {
        cpu: 1,
        pid,
        name: name.to_owned(),
        kernel: ["kworker", "ksoftirqd"]
            .iter()
            .any(|of| name.starts_with(of)),
        ns: ms * 1_000_000,
    });
}

#[test]
fn other_work_on_the_measured_cpu_is_named_with_its_process() {
    let mut run = Run::new(1);
    for block in 1..=2 {
        let cell = run.gap(block, "process", spinning());
        for (pid, name, ms) in [(41, "cc1", 4), (40, "hog", 420 * (block as u64 - 1))] {
            beside(cell, (pid, name, ms));
        }
        beside(cell, (7, "kworker/1:2", 0));
    }
    let analysis = run.analyse();
    assert_eq!(ids(&analysis), ["other-work"]);
    let text = alarm(&analysis, "other-work");
    assert_contains(
        text,
        &[
            "hog (process 40) used CPU 1 for about 420 ms, 21.0 % of the time of 2 cells (42.0 % in cell 2); cc1 (process 41) \
             used CPU 1 for about 8.00 ms, 0.40 % of the time of 2 cells. Tasks that lived for less than a second may be missing. The figures include \
             the part",
        ],
    );
    assert_eq!(analysis.summary().verdict.cautions[0], text);
    assert_contains(&shown(&analysis).0, &[text]);
}

#[test]
fn what_ran_on_another_cpu_is_no_share_of_the_measured_one() {
    let mut run = Run::new(1);
    let cell = run.gap(1, "process", spinning());
    for (cpu, ms) in [(0, 990), (1, 27)] {
        beside(cell, (40, "dns", ms));
        cell.other_work
            .as_mut()
            .unwrap()
            .tasks
            .last_mut()
            .unwrap()
            .cpu = cpu;
    }
    assert_contains(
        alarm(&run.analyse(), "other-work"),
        &[
            "dns (process 40) used CPU 0 for about 990 ms, 99.0 % of the time of cell 1 and CPU 1 for about 27.0 ms, 2.70 % of the \
             time of cell 1.",
        ],
    );
}

#[test]
fn what_had_less_than_a_hundredth_of_the_cpu_is_a_note() {
    let mut run = Run::new(1);
    let cell = run.gap(1, "process", spinning());
    beside(cell, (41, "cc1", 4));
    let analysis = run.analyse();
    assert_eq!(ids(&analysis), ["other-work"]);
    let mut cautions = analysis.summary().verdict.cautions.iter();
    assert!(cautions.all(|caution| !caution.contains("cc1")));

    let mut run = Run::new(1);
    let cell = run.gap(1, "process", spinning());
    beside(cell, (41, "cc1", 0));
    assert!(ids(&run.analyse()).is_empty());
}

#[test]
fn what_had_much_of_the_cpu_stands_in_the_first_sentence() {
    let mut run = Run::new(1);
    for block in 1..=2 {
        let cell = run.gap(block, "process", spinning());
        // Two processes of one name are one culprit.
        for (pid, name, ms) in [
            (40, "hog", 500),
            (41, "hog", 100),
            (42, "cc1", 20),
            (43, "sh", 4),
        ] {
            beside(cell, (pid, name, ms));
        }
    }
    let analysis = run.analyse();
    let verdict = &analysis.summary().verdict;
    let beside = "interruptions per second alongside hog (60.0 % of the CPU's time) and cc1 (2.00 % of the CPU's time); the longest";
    assert_contains(&verdict.headline, &["CPU 1 lost", beside]);
    // The notice says the same of them.
    assert_contains(
        &verdict.cautions[0],
        &["hog (2 processes) used CPU 1 for about 1.20 s, 60.0 % of the time of 2 cells"],
    );
}

#[test]
fn what_had_much_of_the_cpu_stands_beside_the_latest_wake_up() {
    let mut run = Run::new(1);
    let cell = run.woken(1, Schedule::default(), |_, _, n| 4_000 + n % 100);
    beside(cell, (40, "hog", 600));
    assert_eq!(
        run.analyse().summary().verdict.headline,
        "Latest wake-up: 4.10 µs on process alongside hog (60.0 % of the CPU's time)."
    );
}

#[test]
fn the_latest_wake_up_is_named_with_the_work_of_its_own_cell() {
    let mut run = Run::new(1);
    let cell = run.woken(1, Schedule::default(), |_, _, n| 4_000 + n % 100);
    beside(cell, (7, "tiny", 1));
    record(cell).values.push(Value {
        measure: "stolen".to_owned(),
        labels: Labels::default(),
        unit: "ns".to_owned(),
        value: 50e6,
    });
    let cell = run.woken(2, Schedule::default(), |_, _, n| 4_000 + n % 90);
    beside(cell, (40, "hog", 600));
    assert_eq!(
        run.analyse().summary().verdict.headline,
        "Latest wake-up: 4.10 µs on process alongside stolen time (at most 5.00 % of the CPU's time) in cell 1."
    );
}

#[test]
fn what_was_stolen_is_named_by_its_share_and_each_target_has_its_own() {
    let mut run = Run::new(1);
    for target in ["process", "crun"] {
        let cell = run.woken(1, Schedule::of(target), |_, _, n| 4_000 + n % 100);
        for (pid, name, ms) in [(40, "cc1", 300), (41, "rustc", 60)] {
            beside(cell, (pid, name, ms));
        }
        record(cell).values.push(Value {
            measure: "stolen".to_owned(),
            labels: Labels::default(),
            unit: "ns".to_owned(),
            value: 50e6,
        });
        let cell = run.gap(1, target, spinning());
        beside(cell, (40, "cc1", 300));
    }
    let verdict = run.analyse().summary().verdict.clone();
    let said = [vec![verdict.headline], verdict.details].concat().join(" ");
    let cc1 = "alongside cc1 (30.0 % of the CPU's time)";
    // Whoever is stopped by that, whatever the priority.
    let stolen = "alongside stolen time (at most 5.00 % of the CPU's time)";
    let more = "cc1 (30.0 % of the CPU's time) and 1 more name)";
    assert_contains(
        &said,
        &[
            &format!("4.10 µs on process ({stolen}, {more} and 4.10 µs on crun ({stolen}, {more}."),
            &format!("µs; {cc1}) and "),
        ],
    );
}

#[test]
fn nothing_of_the_machine_bears_on_counted_instructions() {
    let mut run = Run::new(1);
    run.emulated = true;
    let target = "linux,clock=instructions";
    let cell = run.woken(1, Schedule::of(target), |_, _, n| 4_000 + n % 100);
    // An instance that is started may run on any CPU, and is timed from here.
    cell.plan.work.cpus = "1".parse().ok();
    beside(cell, (40, "hog", 600));
    record(cell).values.push(Value {
        measure: "stolen".to_owned(),
        labels: Labels::default(),
        unit: "ns".to_owned(),
        value: 50e6,
    });
    let mut data = run.data();
    data.plan.cells[0].work.cpus = "1".parse().ok();
    let analysis = analyse(data);
    assert_eq!(ids(&analysis), ["instruction-time"]);
    let headline = &analysis.summary().verdict.headline;
    assert_eq!(
        *headline,
        format!("Latest wake-up: 4.10 µs on {target} (instructions).")
    );
}

#[test]
fn what_ran_mostly_while_nothing_was_measured_says_nothing_of_it() {
    let mut run = Run::new(1);
    // 20 ms, 400 ms, and all of the watched second.
    for (block, cycles) in [(1, HZ / 50.0), (2, HZ / 2.5), (3, HZ)] {
        let cell = run.gap(block, "process", evenly(cycles as u64, 10, 1_300));
        beside(cell, (40, "hog", 600));
        record(cell).values.push(Value {
            measure: "stolen".to_owned(),
            labels: Labels::default(),
            unit: "ns".to_owned(),
            value: 500e6,
        });
    }
    let analysis = run.analyse();
    let headline = analysis.summary().verdict.headline.clone();
    assert_contains(&headline, &["CPU 1 lost"]);
    // It is not hidden.
    let around = [
        "too short a part",
        "hog (process 40) used CPU 1 for about 1.20 s",
    ];
    assert_contains(alarm(&analysis, "other-work-around"), &around);
    // No more was stolen than was measured, so that the second cell's share is not known. Each share
    // is of the cells that tell something of it.
    let alongside = " alongside stolen time (at most 64.3 % of the CPU's time in 2 of 3 cells) and hog (60.0 % of the CPU's time \
                  in 1 of 3 cells);";
    assert_contains(&headline, &[alongside]);
    let stolen = "at most 64.3 % of the time measured in 2 of 3 cells";
    assert_contains(alarm(&analysis, "stolen-time"), &[stolen]);
}

#[test]
fn time_stolen_in_the_run_replaces_what_was_stolen_before_it() {
    let mut run = Run::new(1);
    for (block, ns) in [(1, 0.0), (2, 40e6)] {
        let cell = run.gap(block, "process", spinning());
        beside(cell, (7, "tiny", 1));
        record(cell).values.push(Value {
            measure: "stolen".to_owned(),
            labels: Labels::default(),
            unit: "ns".to_owned(),
            value: ns,
        });
    }
    let mut data = run.data();
    let steal = Finding {
        id: "steal".into(),
        title: "Stolen time".into(),
        severity: Severity::Warning,
        state: "20 % of CPU 1 now".to_owned(),
        why: String::new(),
        remedy: None,
    };
    data.machine = Some(MachineRecord::new(unknown_machine(), vec![steal]));
    let verdict = analyse(data).summary().verdict.clone();
    let cautions = verdict.cautions.join(" ");
    assert_contains(
        &cautions,
        &["of all measured time, at most ", "in cell 2 (stolen time)."],
    );
    assert!(!cautions.contains("now"), "{cautions}");
}

#[test]
fn other_work_of_timed_work_stands_behind_its_figures() {
    let mut run = Run::new(1);
    for target in ["process", "crun"] {
        let cell = run.prime(1, target, &[HZ as u64 / 1_000; 1_000]);
        beside(cell, (40, "hog", 600));
    }
    let headline = run.analyse().summary().verdict.headline.clone();
    let behind = "400 cycles alongside hog (60.0 % of the CPU's time); on crun 2,600,000 cycles";
    assert_contains(&headline, &[behind]);
}

#[test]
fn threads_of_one_process_are_one_culprit() {
    let mut run = Run::new(1);
    for (block, name) in [(1, "rustc (thread lto 1)"), (2, "rustc (thread lto 2)")] {
        let cell = run.gap(block, "process", spinning());
        beside(cell, (40, name, 15));
        beside(cell, (41, "java (thread GC) (thread a)", 30));
    }
    let analysis = run.analyse();
    let told = [
        "java (thread GC) (thread a) (process 41) used CPU 1 for about 60.0 ms, 3.00 % of the time of 2 cells",
        "rustc (several threads) (process 40) used CPU 1 for about 30.0 ms, 1.50 % of the time of 2 cells.",
    ];
    assert_contains(alarm(&analysis, "other-work"), &told);
}

#[test]
fn whatever_a_task_calls_itself_it_is_named_once_with_its_own_share() {
    const PROGRAM: &str = "(a program, no thread of the kernel) ";
    for (name, is_kernel, named, visible) in [
        ("a) R 1 1 (b", false, "a) R 1 1 (b ", "a) R 1 1 (b "),
        ("new\nline", false, "new\\nline ", "new\\nline "),
        (
            "esc\u{1b}[2J\u{202e}<b>",
            false,
            "esc\\u001b[2J\\u202e<b> ",
            "esc\\u001b[2J\\u202e",
        ),
        ("    ", false, "'    ' ", "' ' "),
        (
            "\u{fffd} latin",
            false,
            "\u{fffd} latin ",
            "\u{fffd} latin ",
        ),
        ("=1+cmd|' /C'!A", false, "=1+cmd|' /C'!A (", ""),
        ("swapper/1", false, "swapper/1 ", PROGRAM),
        ("ksoftirqd/1", false, "ksoftirqd/1 ", PROGRAM),
        ("kworker/u8:1-mine", false, "kworker/u8:1-mine ", PROGRAM),
        (
            "python3 (thread ksoftirqd/1)",
            false,
            "python3 (thread ksoftirqd/1) ",
            "python3 (thread ksoftirqd/1) ",
        ),
        ("ksoftirqd/0", true, "ksoftirqd/0 ", "ksoftirqd/0 (10.0 %"),
        (
            "kworker/u8:1-events",
            true,
            "kworker/u8:1 (several threads) ",
            "",
        ),
    ] {
        let mut run = Run::new(1);
        let cell = run.gap(1, "process", spinning());
        // Threads of the kernel with the same names are others.
        for (pid, name, ms) in [
            (40, name, 100),
            (7, "ksoftirqd/1", 50),
            (8, "kworker/u8:1", 30),
        ] {
            beside(cell, (pid, name, ms));
        }
        cell.other_work.as_mut().unwrap().tasks[0].kernel = is_kernel;
        let analysis = run.analyse();
        let own = alarm(&analysis, "other-work");
        let own = own.split(": ").nth(1).unwrap().split("; ").next().unwrap();
        assert!(own.starts_with(named), "{own}");
        let (share, headline) = match name {
            // One name, one share.
            "kworker/u8:1-events" => ("13.0 %", "kworker/u8:1 (several threads) (13.0 %"),
            _ => ("10.0 %", " (10.0 % of the CPU's time)"),
        };
        assert_contains(own, &[&format!(", {share} of the time")]);
        assert_contains(&analysis.summary().verdict.headline, &[headline]);
        let (terminal, page) = shown(&analysis);
        let in_html = visible.replace('<', "&lt;").replace('>', "&gt;");
        assert_contains(&terminal, &[visible]);
        assert_contains(&page, &["Other work on the measured CPUs", &in_html]);
        for text in [terminal, page] {
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{name:?}");
        }
    }
}

#[test]
fn another_run_on_the_same_cpu_is_named() {
    let mut run = Run::new(1);
    let cell = run.gap(1, "process", spinning());
    beside(cell, (41, "tare-agent", 0));
    let other = cell.other_work.as_mut().unwrap();
    other.runs = vec!["/runs/b (process 99)".to_owned()];
    // Too long for what was measured in it to say something of tasks.
    other.watched_ns = 3_600_000_000_000;
    let analysis = run.analyse();
    assert_eq!(ids(&analysis), ["cpu-shared"]);
    let text = alarm(&analysis, "cpu-shared");
    assert_contains(text, &["in cell 1: /runs/b (process 99)."]);
}

#[test]
fn a_load_s_context_switches_are_told() {
    let mut run = Run::new(1);
    for (load, switches) in [("", 0), ("dd", 312)] {
        run.load = load;
        for block in 1..=3 {
            let cell = run.gap(block, "process", spinning());
            let counter = |kind: &str, count| Counter {
                name: format!("{kind} context switches"),
                count,
                ..Counter::default()
            };
            let count = switches + u64::from(block) % 2;
            measured(cell).counters = vec![counter("involuntary", count), counter("voluntary", 0)];
        }
    }
    let analysis = run.analyse();
    let rate = row(&analysis, "context-switches.rate{kind=involuntary,load=dd}").unwrap();
    assert!((rate.over.as_ref().unwrap().estimate - 312.7).abs() < 0.5);
    // What never happened has no line.
    insta::assert_snapshot!(terminal::render(&analysis, 120, false));
}

#[test]
fn what_else_ran_in_a_guest_is_named_as_on_the_host() {
    let mut run = Run::new(1);
    let cell = run.gap(1, "linux", spinning());
    beside(cell, (41, "qemu", 0));
    beside(cell, (15, "ksoftirqd/0", 30));
    cell.guest_work = cell.other_work.clone();
    cell.other_work.as_mut().unwrap().tasks.clear();
    let analysis = run.analyse();
    let text = alarm(&analysis, "other-work-in-guest");
    assert_contains(
        text,
        &[
            "Inside of the guest",
            "ksoftirqd/0 (process 15) used CPU 1 for about 30.0 ms, 3.00 % of the time of cell 1.",
        ],
    );
    assert_contains(
        &analysis.summary().verdict.headline,
        &["alongside ksoftirqd/0 (3.00 % of the CPU's time)"],
    );
}
