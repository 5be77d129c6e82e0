//! What a run of starts tells.

use tare_experiments::catalogue;
use tare_figures::gates::Gate;
use tare_figures::rows::Figure;
use tare_host::{Fact, Finding, Severity};
use tare_pages::{Report, page, terminal};
use tare_results::MachineRecord;
use tare_results::model::{Instance, InstanceOutcome, Program};
use tare_testkit::assert_contains;
use tare_wire::cpus::Cpus;

use crate::compare::{between, is_worse};
use crate::gates::judge;
use crate::synthetic::starts::{BEGIN_NS, MS, Starts, done, lost};
use crate::synthetic::{
    Run, alarm, analyse, assert_fits, csv, figure, ids, measured, record, row, unknown_machine,
    verdict,
};

const ALONE: Starts<'_> = Starts {
    interval: ("alone", None),
    warmup: 10,
    counted: 50,
    ..Starts::DEFAULT
};

/// The intervals of a short ladder.
const LADDER: [(&str, u64); 3] = [
    ("1/16s", 62_500_000),
    ("1/32s", 31_250_000),
    ("1/64s", 15_625_000),
];

/// Adds the cells of a target: instances that take so many ms alone, and twice as long where it is
/// saturated, from a step on.
fn ladder(run: &mut Run, block: u32, target: &str, takes_ms: u64, saturated_from: usize) {
    let alone = Starts { target, ..ALONE };
    run.started(block, alone, |number, planned| {
        done(planned, 0, takes_ms * MS + number * 1_000)
    });
    for (step, (interval, ns)) in LADDER.into_iter().enumerate() {
        let saturated = (step >= saturated_from).then_some("12 % of the arrivals were rejected");
        let starts = Starts {
            target,
            interval: (interval, Some(ns)),
            counted: 100,
            saturated,
            ..Starts::DEFAULT
        };
        run.started(block, starts, |number, planned| match saturated {
            Some(_) if number % 8 == 7 => lost(planned, InstanceOutcome::Rejected),
            Some(_) => done(planned, 20_000, 2 * takes_ms * MS),
            None => done(planned, 20_000, takes_ms * MS),
        });
        if saturated.is_some() {
            break;
        }
    }
}

/// Makes a run of three targets, one of them a guest.
pub fn three(blocks: u32) -> Run {
    let mut run = Run::new(1);
    for block in 1..=blocks {
        ladder(&mut run, block, "process", 1, 9);
        ladder(&mut run, block, "crun", 11, 2);
        ladder(&mut run, block, "docker", 253, 0);
    }
    run
}

#[test]
fn every_measure_has_the_figure_that_anybody_would_compute() {
    let mut run = Run::new(1);
    let starts = Starts {
        counted: 100,
        values: &[("engine cpu", 320e6), ("machine cpu", 640e6)],
        ..Starts::DEFAULT
    };
    run.started(1, starts, |number, planned| match number {
        // Four of the warm-up count in nothing but the throughput.
        0..4 => done(planned, 0, 900 * MS),
        4..9 => lost(planned, InstanceOutcome::Failed),
        9..19 => lost(planned, InstanceOutcome::Rejected),
        19 => lost(planned, InstanceOutcome::Unfinished),
        20..24 => done(planned, 2 * MS, 10 * MS),
        _ => done(planned, 500_000, 10 * MS),
    });
    let analysis = run.analyse();
    let of = |name: &str| figure(&analysis, name);
    let close = |name: &str, wanted: f64| {
        let is = of(name).unwrap_or_else(|| panic!("{name}"));
        assert!((is - wanted).abs() < 1e-6 * wanted.max(1.0), "{name}: {is}");
    };
    // Of 84 that are done, 4 were started 2 ms late and 80 half a ms.
    close("ready.p50", 10.5e6);
    close("ready.max", 12e6);
    close("ready.min", 10.5e6);
    close("ready.mean", (4.0 * 12e6 + 80.0 * 10.5e6) / 84.0);
    assert_eq!(of("ready.p99"), None);
    close("exit.max", 13e6);
    close("start.max", 10e6);
    // Those that failed were started, too, and in time.
    close("lag.max", 2e6);
    close("lag.p50", 500_000.0);
    close("in-time.share", 86.0 / 90.0);
    close("part.max{part=launch}", 5e6);
    close("part.max{part=main}", 5e6);
    close("part.max{part=work+exit}", 1e6);
    // 100 intervals of 1/16 s; four instances of the warm-up and 84 others ended within them.
    close("rate.rate", 88.0 / 6.25);
    close("offered.rate", 16.0);
    close("failed.share", 0.05);
    close("rejected.total", 10.0);
    close("unfinished.share", 0.01);
    close("saturated.share", 0.0);
    close("cpu.mean", 500_000.0);
    close("cpu-part.mean{part=own}", 100_000.0);
    close("cpu-part.mean{part=around}", 400_000.0);
    close("daemon-cpu.mean", 320e6 / 88.0);
    close("machine-cpu.mean", 640e6 / 88.0);
    close("memory.max", 1_048_576.0);
    // The four of the warm-up, and the first that failed.
    close("live.max", 5.0);
}

#[test]
fn what_the_machine_did_beside_its_instances_is_told() {
    let cases = [
        (25, None),
        (900, None),
        (1_100, Some("27.1 %")),
        (9_000, Some("100 %")),
    ];
    for (busy_ms, told) in cases {
        let mut run = Run::new(1);
        // In two seconds of two CPUs; of 32 instances each had half a ms, and the clock of the
        // machine's time has steps of 10 ms.
        let machine_ns = f64::from(busy_ms) * 1e6;
        let starts = Starts {
            values: &[("engine cpu", 0.0), ("machine cpu", machine_ns)],
            ..Starts::DEFAULT
        };
        run.started(1, starts, |_, planned| done(planned, 0, MS));
        let mut data = run.data();
        let mut machine = unknown_machine();
        machine.topology.online = Fact::Known(Cpus::parse("0-1").unwrap());
        data.machine = Some(MachineRecord::new(machine, Vec::new()));
        let analysis = analyse(data);
        assert_eq!(ids(&analysis).contains(&"busy-beside"), told.is_some());
        let of_machine = figure(&analysis, "machine-cpu.mean");
        assert_eq!(of_machine, (busy_ms > 25).then_some(machine_ns / 32.0));
        if let Some(told) = told {
            let text = format!("up to {told} of the time of all CPUs in a run went to neither");
            assert_contains(alarm(&analysis, "busy-beside"), &["process at 16/s", &text]);
        }
    }
}

#[test]
fn no_part_of_the_cpu_time_is_greater_than_all_of_it() {
    let parts = |own_ns: u64| {
        let mut run = Run::new(1);
        run.started(1, ALONE, |number, planned| Instance {
            own_ns: if number == 30 { own_ns } else { 100_000 },
            ..done(planned, 0, MS)
        });
        row(&run.analyse(), "cpu-part").is_some()
    };
    // All of it is half a ms. Elapsed time is more, where other work had the CPU.
    assert!(parts(500_000) && !parts(1_820 * MS));
}

#[test]
fn a_border_that_one_instance_lacks_is_left_out_of_all() {
    let mut run = Run::new(1);
    run.started(1, ALONE, |number, planned| {
        let done = done(planned, 0, if number == 30 { 90 * MS } else { MS });
        let main_ns = if number == 30 { 0 } else { done.main_ns };
        Instance { main_ns, ..done }
    });
    let analysis = run.analyse();
    let of = |name: &str| figure(&analysis, name);
    assert_eq!(of("part.mean{part=launch}"), None);
    assert_eq!(of("part.mean{part=launch+main}"), of("start.mean"));
}

#[test]
fn a_rate_at_which_nothing_ended_within_the_window_is_not_shown_to_be_sustained() {
    let mut run = Run::new(1);
    for (takes_ms, target) in [(1, "process"), (60_000, "crun")] {
        let starts = Starts {
            target,
            ..Starts::DEFAULT
        };
        run.started(1, starts, |_, planned| done(planned, 0, takes_ms * MS));
    }
    let analysis = run.analyse();
    let headline = "Ready after a median of 1.00 ms at 16/s on process (at least 16/s sustained) and 60.0 s at 16/s on crun.";
    assert_eq!(verdict(&analysis)[0], headline);
    // A logarithmic axis has no place for 0.
    let page = page::render(&analysis);
    let lacking = "Not drawn, because the figure is 0 or unknown: crun.";
    assert_contains(&page, &[lacking]);
}

#[test]
fn a_mean_of_some_runs_says_of_how_many() {
    let mut run = Run::new(1);
    for (block, values) in [
        (1, &[("machine cpu", 640e6)][..]),
        (2, &[]),
        (3, &[("machine cpu", 640e6)]),
    ] {
        let starts = Starts {
            values,
            ..Starts::DEFAULT
        };
        run.started(block, starts, |_, planned| done(planned, 0, MS));
    }
    let text = terminal::render(&run.analyse(), 100, false);
    assert_contains(&text, &["from 2 of 3 runs"]);
}

#[test]
fn instances_one_by_one_have_no_figures_of_a_rate() {
    let mut run = Run::new(1);
    run.started(1, ALONE, |_, planned| done(planned, 0, MS));
    let analysis = run.analyse();
    for measure in ["offered", "saturated"] {
        assert!(row(&analysis, measure).is_none(), "{measure}");
    }
    assert_eq!(figure(&analysis, "rate.rate"), Some(10.0));
    assert_eq!(
        verdict(&analysis)[0],
        "Ready after a median of 1.00 ms on process."
    );
}

#[test]
fn starts_one_after_the_other_are_told_beside_the_lowest_rate_that_has_the_figure() {
    // Five instances have no median.
    let rates = [("1s", 1_000, 5, 4), ("1/4s", 250, 20, 3)];
    let said = |rates: &[(&str, u64, u64, u64)]| {
        let mut run = Run::new(1);
        run.started(1, ALONE, |_, planned| done(planned, 0, MS));
        for (interval, ns, counted, takes) in rates {
            let starts = Starts {
                interval: (interval, Some(ns * MS)),
                counted: *counted,
                ..Starts::DEFAULT
            };
            run.started(1, starts, |_, planned| done(planned, 0, takes * MS));
        }
        verdict(&run.analyse())[0].clone()
    };
    assert_eq!(
        said(&rates),
        "Ready after a median of 1.00 ms one after the other and 3.00 ms at 4/s on process (at least 4/s sustained)."
    );
    assert_eq!(
        said(&rates[..1]),
        "Ready after a mean of 1.00 ms one after the other and 4.00 ms at 1/s on process (at least 1/s sustained)."
    );
    // Where one target has both times, each has.
    let mut run = three(1);
    for (interval, takes) in [(ALONE, 2), (Starts::DEFAULT, 2)] {
        let starts = Starts {
            target: "podman",
            ..interval
        };
        run.started(1, starts, |_, planned| done(planned, 0, takes * MS));
    }
    let both = "2.00 ms one after the other and 2.00 ms at 16/s on podman";
    assert_contains(&verdict(&run.analyse())[0], &[both]);
}

#[test]
fn of_many_ladders_that_ended_it_is_said_how_many_more_there_are() {
    let mut run = Run::new(1);
    let targets = ["process", "crun", "runc", "podman", "docker", "linux"];
    for (takes_ms, target) in (1..).zip(targets) {
        ladder(&mut run, 1, target, takes_ms, 1);
    }
    let analysis = run.analyse();
    let said = verdict(&analysis).join(" ");
    assert_contains(&said, &["6 in all.", "Where it ended: ", "; 2 more."]);
}

#[test]
fn how_late_instances_were_started_one_by_one_is_told() {
    let mut run = Run::new(1);
    run.started(1, ALONE, |number, planned| match number % 2 {
        0 => done(planned, 2 * MS, MS),
        _ => done(planned, 0, MS),
    });
    let analysis = run.analyse();
    assert_eq!(figure(&analysis, "lag.max"), Some(2e6));
    assert_eq!(figure(&analysis, "in-time.share"), Some(0.5));
    let text = terminal::render(&analysis, 100, false);
    let (_, table) = text.split_once("Throughput").unwrap();
    assert_contains(table, &["2.00 ms", "50.0 %"]);
}

#[test]
fn a_figure_has_one_name_whatever_executed_it() {
    let mut run = Run::new(1);
    for block in 1..=6 {
        run.emulated = false;
        run.started(block, ALONE, |number, planned| {
            let takes_ms = if number % 50 < 24 { 30 } else { 5 };
            done(planned, 0, takes_ms * MS + number * 1_000)
        });
        run.emulated = true;
        let starts = Starts {
            target: "unikernel",
            ..ALONE
        };
        run.started(block, starts, |_, planned| done(planned, 0, 90 * MS));
    }
    let analysis = run.analyse();
    // The table marks its median as between them.
    let said = verdict(&analysis).join(" ");
    let between = "the median of each run is in the fast one, near its edge";
    assert_contains(&said, &["(two modes) on process.", between]);
    let page = page::render(&analysis);
    let (_, picture) = page
        .split_once("<h3>Time until an instance is ready")
        .unwrap();
    let (picture, _) = picture.split_once("</figure>").unwrap();
    assert_contains(picture, &["ms*</text>", "may be in either of them"]);
}

#[test]
fn a_page_says_nothing_of_what_was_not_done() {
    let mut run = Run::new(1);
    let cell = run.started(1, Starts::DEFAULT, |_, planned| done(planned, 0, MS));
    // A command of the user's reports nothing of itself.
    *measured(cell) = Program::default();
    let analysis = run.analyse();
    assert!(!ids(&analysis).contains(&"not-locked"));
    let page = page::render(&analysis);
    for wrong in ["Calibration", "in cycles only", "not locked", "<th>Agent"] {
        assert!(!page.contains(wrong), "{wrong}");
    }
    let mut run = Run::new(1);
    run.not_started(1, Starts::DEFAULT);
    let mut data = run.data();
    let finding = |id: &str, state: &str| Finding {
        id: id.to_owned().into(),
        title: "Title".to_owned().into(),
        state: state.to_owned(),
        severity: Severity::Note,
        why: String::new(),
        remedy: None,
    };
    let findings = vec![
        finding("cpu", "CPU 1 was taken"),
        finding("tick", "it ticks"),
    ];
    data.machine = Some(MachineRecord::new(unknown_machine(), findings));
    let page = page::render(&analyse(data));
    // No CPU was chosen.
    assert!(!page.contains("Starting instances"));
    assert!(!page.contains("CPU 1 was taken"));
    assert_contains(&page, &["it ticks", "are an example"]);
    let page = page::render(&three(1).analyse());
    let order = "in random order, but each ladder from its first step to its last";
    assert_contains(&page, &[order]);
}

#[test]
fn emulated_targets_are_never_in_one_sentence_with_others() {
    let mut run = Run::new(1);
    ladder(&mut run, 1, "process", 1, 9);
    run.emulated = true;
    ladder(&mut run, 1, "unikernel", 90, 1);
    // Three have no median.
    let few = Starts {
        counted: 3,
        target: "linux",
        ..ALONE
    };
    run.started(1, few, |_, planned| done(planned, 0, 4_000 * MS));
    let analysis = run.analyse();
    assert_eq!(
        verdict(&analysis),
        [
            "Ready after a median of 1.03 ms one after the other and 1.02 ms at 16/s on process (at least 64/s sustained).",
            "Peak memory of an instance is a mean of 1 MiB on process, started one after the other."
        ]
    );
    // The picture below has the figure of the sentence.
    let page = page::render(&analysis);
    assert_contains(&page, &["is ready, one after the other (p50)</h3>"]);
}

#[test]
fn a_rate_at_which_arrivals_were_late_is_none_that_was_kept_up() {
    let analysed = |is_saturated: bool| {
        let mut run = Run::new(1);
        for (step, (interval, ns)) in LADDER.into_iter().enumerate() {
            let starts = Starts {
                interval: (interval, Some(ns)),
                not_open_loop: (step == 2).then_some("7 % of the starts were more than 1 ms late"),
                saturated: (step == 2 && is_saturated)
                    .then_some("12 % of the arrivals were rejected"),
                ..Starts::DEFAULT
            };
            run.started(1, starts, |_, planned| done(planned, 0, MS));
        }
        run.analyse()
    };
    let analysis = analysed(false);
    let headline = "Ready after a median of 1.00 ms at 16/s on process (at least 32/s sustained).";
    assert_eq!(verdict(&analysis)[0], headline);
    let alarm = alarm(&analysis, "not-open-loop");
    assert_contains(alarm, &["process at 64/s", "7 %"]);
    let text = terminal::render(&analysis, 100, false);
    assert_contains(&text, &["64/s, not open-loop"]);
    let both = terminal::render(&analysed(true), 100, false);
    assert_contains(&both, &["64/s, saturated, not open-loop"]);
}

#[test]
fn only_the_runs_that_were_saturated_are_marked() {
    let mut run = Run::new(1);
    for block in 1..=4 {
        let starts = Starts {
            saturated: (block == 2).then_some("12 % of the arrivals were rejected"),
            ..Starts::DEFAULT
        };
        run.started(block, starts, |_, planned| done(planned, 0, MS));
    }
    let analysis = run.analyse();
    let text = terminal::render(&analysis, 100, false);
    assert_contains(&text, &["16/s, saturated in 1 of 4 runs"]);
    let page = page::render(&analysis);
    let (_, runs) = page.split_once("Every run</h2>").unwrap();
    let (_, table) = runs.split_once("<table").unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    let lines = Vec::from_iter(table.split("<tr").filter(|line| line.contains("16/s")));
    let marked = lines.iter().map(|line| line.contains("16/s, saturated<"));
    assert_eq!(
        marked.collect::<Vec<_>>(),
        [false, true, false, false],
        "{table}"
    );
    // It is a share of the runs, whose interval ends at all of them.
    let over = row(&analysis, "saturated.share").unwrap().over.as_ref();
    let interval = over.unwrap().interval.as_ref().unwrap();
    assert_eq!(interval.estimate, 0.25);
    assert!(interval.low > 0.0 && interval.high < 1.0, "{interval:?}");
}

#[test]
fn the_default_work_is_named_beside_another_one() {
    let mut run = Run::new(1);
    for (work, takes_ms) in [(None, 1), (Some("prime:1000"), 9)] {
        let starts = Starts { work, ..ALONE };
        run.started(1, starts, |_, planned| done(planned, 0, takes_ms * MS));
    }
    let analysis = run.analyse();
    let both = ["process, work=hello", "process, work=prime:1000"];
    assert_contains(&verdict(&analysis)[0], &both);
    assert_contains(&terminal::render(&analysis, 100, false), &both);
    let page = page::render(&analysis);
    let (_, picture) = page.split_once("<figure").unwrap();
    let (picture, _) = picture.split_once("</figure>").unwrap();
    assert_contains(picture, &both);
}

#[test]
fn failures_are_told_with_their_reason_and_number() {
    let mut run = Run::new(1);
    for block in 1..=2 {
        run.started(block, Starts::DEFAULT, |number, planned| match number % 9 {
            0 => lost(planned, InstanceOutcome::Failed),
            _ => done(planned, 0, MS),
        });
    }
    let failed = "6 instances of process at 16/s failed, and 2 in the warm-up: 8 × exit status 7.";
    assert_contains(alarm(&run.analyse(), "instances-failed"), &[failed]);
}

#[test]
fn few_instances_have_a_mean() {
    let of = |has_modes: bool| {
        let mut run = Run::new(1);
        let few = Starts {
            counted: 3,
            target: "linux",
            ..ALONE
        };
        run.started(1, few, |_, planned| done(planned, 0, 4_000 * MS));
        let many = Starts {
            counted: 100,
            ..Starts::DEFAULT
        };
        if has_modes {
            run.started(1, many, |number, planned| {
                let takes_ms = if number % 50 < 24 { 30 } else { 5 };
                done(planned, 0, takes_ms * MS + number * 1_000)
            });
        }
        run.analyse()
    };
    let headline = "Ready after a mean of 4.00 s on linux.";
    let said = verdict(&of(false));
    assert_eq!(said[0], headline);
    let memory = "Peak memory of an instance is a mean of 1 MiB (QEMU's) on linux.";
    assert_eq!(said[1], memory);
    // Between two modes it is named with them, and marked in the picture, as in the table.
    let analysis = of(true);
    let modes = "(two modes, mean 17.1 ms) at 16/s on process";
    assert_contains(&verdict(&analysis)[0], &[modes, "4.00 s (mean) on linux"]);
    let page = page::render(&analysis);
    assert_contains(&page, &["process at 16/s: 17.1 ms*"]);
}

#[test]
fn a_run_where_nothing_became_ready_says_so() {
    let mut run = Run::new(1);
    run.started(1, Starts::DEFAULT, |_, planned| {
        lost(planned, InstanceOutcome::Unfinished)
    });
    let analysis = run.analyse();
    assert_eq!(verdict(&analysis)[0], "No instance became ready (process).");
    assert!(ids(&analysis).contains(&"none-ready"));
    let _ = page::render(&analysis);
}

#[test]
fn a_damaged_folder_is_no_reason_to_stop() {
    let numbers = [0, 1, BEGIN_NS, u64::MAX / 2, u64::MAX];
    let mut random = fastrand::Rng::with_seed(5);
    let mut any = || numbers[random.usize(..numbers.len())];
    let mut run = Run::new(1);
    for block in 1..=20 {
        let damaged: Vec<Instance> = (0..40)
            .map(|_| Instance {
                planned_ns: any(),
                started_ns: any(),
                ready_ns: any(),
                exited_ns: any(),
                fate: (any() % 5) as u32,
                reset_ns: any(),
                kernel_ns: any(),
                main_ns: any(),
                user_ns: any(),
                system_ns: any(),
                own_ns: any(),
                peak_bytes: any(),
                ..Instance::default()
            })
            .collect();
        let target = if block % 2 == 0 { "process" } else { "linux" };
        let starts = Starts {
            target,
            ..Starts::DEFAULT
        };
        let cell = run.started(block, starts, |number, _| damaged[number as usize]);
        let record = record(cell);
        let arrived = record.arrived.as_mut().unwrap();
        (arrived.from_ns, arrived.until_ns) = (any(), any());
        arrived.failures.clear();
    }
    let analysis = run.analyse();
    let _ = (
        page::render(&analysis),
        terminal::render(&analysis, 80, false),
    );
    assert_eq!(analysis.summary().planned, 20);
}

#[test]
fn an_instance_that_was_ready_before_its_start_makes_its_cell_useless() {
    let mut run = Run::new(1);
    run.started(1, Starts::DEFAULT, |_, planned| Instance {
        ready_ns: 1,
        ..done(planned, 0, MS)
    });
    let analysis = run.analyse();
    let reason = &analysis.summary().not_measured[0].reason;
    assert_contains(reason, &["ready before it was started"]);
}

#[test]
fn gates() {
    let analysis = three(2).analyse();
    for (gate, failed) in [
        ("ready.p50{target=process,interval=alone} > 2ms", false),
        ("start/ready{target=docker,interval=alone} > 200ms", true),
        ("rate{target=process,interval=1/64s} < 60/s", false),
        ("rate{target=crun,interval=64/s} < 60/s", true),
        ("rate{target=process,interval=15625us} < 60/s", false),
        ("rejected{target=process} > 1%", false),
        ("rejected > 1%", true),
        ("saturated{target=docker} > 0%", true),
        ("memory.max > 2MiB", false),
        ("memory.max > 1000B", true),
        ("part.max{part=main,target=docker} > 1s", false),
    ] {
        let judged = judge(&analysis, gate).unwrap();
        assert_eq!(judged.failed, failed, "{gate}");
    }
    let gate: Gate = "ready{interval=1/16s} > 1s".parse().unwrap();
    assert_eq!(gate.check(&analysis.run().plan, catalogue()), Ok(()));
}

#[test]
fn less_of_what_should_be_more_is_worse() {
    let invocations = |takes_us: u64| -> Vec<Report> {
        let each = (0..6).map(|number| {
            let mut run = Run::new(1);
            for block in 1..=3 {
                let starts = Starts {
                    counted: 100,
                    ..Starts::DEFAULT
                };
                run.started(block, starts, |at, planned| {
                    // The slower ones are rejected more often, too.
                    match at % 10 {
                        9 if takes_us > 1_000 && at % (20 + number) < 10 => {
                            lost(planned, InstanceOutcome::Rejected)
                        }
                        _ => done(planned, 0, takes_us * 1_000 + (at + number) % 7),
                    }
                });
            }
            run.analyse()
        });
        each.collect()
    };
    let (base, new) = (invocations(1_000), invocations(1_300));
    let compared = between(&base, &new).unwrap();
    let row = |measure: &str, figure: &str| {
        let mut rows = compared.rows.iter();
        let found = rows.find(|row| row.measure == measure && row.figure == figure);
        found.unwrap()
    };
    assert!(row("ready", "p50").is_worse);
    assert_contains(
        &terminal::compare_markdown(&compared),
        &["the runs of both sides measured for the same time."],
    );
    let rate = row("rate", "rate");
    assert!(rate.shift < Some(0.0) && rate.is_worse, "{rate:?}");
    assert!(!is_worse(&between(&new, &base).unwrap()));
    for row in &compared.rows {
        assert!(row.measure != "live" && row.measure != "offered");
    }
}

#[test]
fn times_and_rates_of_a_saturated_target_are_marked_and_not_judged() {
    let invocations = |takes: u64| -> Vec<Report> {
        let each = (0..6).map(|number| {
            let mut run = Run::new(1);
            for target in ["process", "crun"] {
                // Not in the first invocation.
                let starts = Starts {
                    target,
                    saturated: (takes > MS && number > 0)
                        .then_some("12 % of the arrivals were rejected"),
                    ..Starts::DEFAULT
                };
                run.started(1, starts, |at, planned| done(planned, 0, takes + at));
            }
            run.analyse()
        });
        each.collect()
    };
    let compared = between(&invocations(MS), &invocations(2 * MS)).unwrap();
    for row in compared.rows.iter().filter(|row| row.base.is_some()) {
        let is_of_pace = matches!(row.unit.as_str(), "ns" | "1/s");
        assert_eq!(row.doubt(), is_of_pace.then_some("saturated"));
        assert!(!is_of_pace || row.shift.is_none(), "{row:?}");
    }
    // That it was is a finding.
    let saturated = compared.rows.iter().find(|row| row.measure == "saturated");
    assert!(saturated.unwrap().is_worse);
    let text = terminal::compare(&compared, 120).to_string();
    assert_contains(&text, &["saturated, so that it is not of that rate"]);
    // Refused ones are not counted as compared.
    let alike = compared.compared().filter(|row| !row.differs).count();
    let alike =
        format!("{alike} figures not shown to differ are in --json only, with their intervals.");
    assert_contains(&text, &[&alike]);
}

#[test]
fn files_and_pages() {
    let analysis = three(1).analyse();
    let page = page::render(&analysis);
    for text in ["Throughput", "What an instance costs", "12\u{a0}%"] {
        assert_contains(&page, &[text]);
    }
    insta::assert_snapshot!(csv(&analysis));
    assert_fits(&analysis, 80);
}

#[test]
fn memory_is_drawn_in_the_unit_of_its_figures() {
    let page = page::render(&three(1).analyse());
    let (_, picture) = page
        .split_once("<h3>Peak memory of an instance, one after the other (mean)</h3>")
        .unwrap();
    let (picture, _) = picture.split_once("</figure>").unwrap();
    assert_contains(picture, &["MiB</text>", ">peak memory</text>"]);
    assert!(!picture.contains(" 000</text>"), "{picture}");
}

#[test]
fn a_single_rate_has_a_line_to_compare_it_with() {
    let mut run = Run::new(1);
    let starts = Starts {
        interval: ("1/16s", Some(62_500_000)),
        counted: 100,
        ..Starts::DEFAULT
    };
    run.started(1, starts, |_, planned| done(planned, 0, MS));
    let page = page::render(&run.analyse());
    let (_, picture) = page.split_once("<h3>Throughput against offered").unwrap();
    let (_, line) = picture.split_once("class=\"limit\" d=\"").unwrap();
    let (line, _) = line.split_once('"').unwrap();
    assert!(!line.ends_with("l0 0") && line.len() > 8, "{line}");
}

#[test]
fn what_a_terminal_shows() {
    let mut run = three(1);
    run.emulated = true;
    let starts = Starts {
        target: "linux,root=debian",
        counted: 4,
        ..ALONE
    };
    run.started(1, starts, |_, planned| Instance {
        reset_ns: planned + 90 * MS,
        kernel_ns: planned + 400 * MS,
        main_ns: planned + 15_000 * MS,
        ..done(planned, 0, 16_000 * MS)
    });
    insta::assert_snapshot!(terminal::render(&run.analyse(), 80, false));
}

#[test]
fn of_a_run_without_a_second_mode_those_beyond_the_border_count() {
    // Of 50 starts so many take 30 ms: in the last run, too few to be a mode.
    let mut run = Run::new(1);
    for (block, slow) in [(1, 20), (2, 20), (3, 3)] {
        run.started(block, ALONE, |number, planned| {
            let takes_ms = if number % 50 < slow { 30 } else { 5 };
            done(planned, 0, takes_ms * MS + number * 1_000)
        });
    }
    let analysis = run.analyse();
    let rows = analysis.run().rows.0.iter();
    let mut slow = rows.filter(|row| row.measure.id == "ready" && row.figure == Figure::Slow);
    let slow = slow.next().unwrap();
    let share = slow.estimate().unwrap();
    assert!((share - 43.0 / 150.0).abs() < 1e-9, "{share}");
    // In no run the median is in the slow one.
    let told = verdict(&analysis).join(" ");
    assert_contains(&told, &["the median of each run is in the fast one"]);
}

#[test]
fn the_share_of_the_slow_mode_weighs_every_run_the_same() {
    // As of starts one after the other: in the same time, a run with few slow ones has ten times as
    // many.
    let mut run = Run::new(1);
    for (block, counted, slow) in [(1, 1_000, 0), (2, 100, 60), (3, 100, 60)] {
        let starts = Starts { counted, ..ALONE };
        run.started(block, starts, |number, planned| {
            let takes_ms = if number % 100 < slow { 30 } else { 5 };
            done(planned, 0, takes_ms * MS + number * 1_000)
        });
    }
    let analysis = run.analyse();
    let slow = row(&analysis, "ready.slow").unwrap();
    let over = slow.over.as_ref().unwrap();
    assert!((over.estimate - 0.4).abs() < 1e-9, "{over:?}");
    let interval = over.interval.as_ref().unwrap();
    assert_eq!(interval.method.name(), "student logit");
    assert_contains(
        &verdict(&analysis).join(" "),
        &["the slow one has 40.0 % of a run's samples"],
    );
    let page = page::render(&analysis);
    assert_contains(&page, &["All samples of the runs", "weighs more"]);
}

#[test]
fn a_median_is_between_modes_only_where_both_sides_have_the_same_two() {
    let [base, same, other, near] =
        [(5, 30, 24), (5, 30, 26), (100, 900, 24), (12, 90, 24)].map(|(fast, slow, of_50)| {
            let mut run = Run::new(1);
            for block in 1..=6 {
                run.started(block, ALONE, |number, planned| {
                    let takes_ms = if number % 50 < of_50 { slow } else { fast };
                    done(planned, 0, takes_ms * MS + number * 1_000)
                });
            }
            run.analyse()
        });
    let base = [base];
    let refused = |new| {
        let comparison = between(&base, &[new]).unwrap();
        let refused = ["p50", "slow"].map(|figure| {
            let mut rows = comparison.rows.iter();
            let row = rows.find(|row| row.measure == "ready" && row.figure == figure);
            row.unwrap().refused.clone()
        });
        // The verdict and the table agree on the median.
        let said = comparison.verdict.join(" ");
        let is_said = said.contains("A median between them says nothing");
        assert_eq!(is_said, refused[0].is_some(), "{said}");
        refused
    };
    let [median, slow] = refused(same);
    assert_contains(&median.unwrap(), &["it may be in either of two modes"]);
    assert_eq!(slow, None);
    // A median that no mode of the other side reaches shifts, whichever it is in; what is slow differs.
    let [median, slow] = refused(other);
    assert_eq!(median, None);
    assert_contains(&slow.unwrap(), &["its modes are not the same two: about"]);
    let [median, _] = refused(near);
    assert_contains(&median.unwrap(), &["it may be in either of two modes"]);
}

#[test]
fn modes_are_those_of_all_runs_together() {
    let mut run = Run::new(1);
    // The first run has another second mode than the others.
    for (block, slow) in [(1, 12), (2, 400), (3, 400), (4, 400)] {
        run.started(block, ALONE, |number, planned| {
            let takes_ms = if number % 4 == 0 { slow } else { 5 };
            done(planned, 0, takes_ms * MS + number * 1_000)
        });
    }
    let analysis = run.analyse();
    let row = row(&analysis, "ready.slow").unwrap();
    let each: Vec<f64> = row
        .each
        .iter()
        .filter_map(|run| run.figure.value())
        .collect();
    assert_eq!(each, [0.0, 0.24, 0.24, 0.24]);
    assert!((row.modes.unwrap().high / 4e8 - 1.0).abs() < 0.01);
}

#[test]
fn a_median_is_said_to_be_in_the_mode_in_which_those_of_the_runs_are() {
    // The slow instances among 50 of each run.
    for (slow, said, is_marked) in [
        (
            [9, 23, 12],
            "the median of each run is in the fast one.",
            false,
        ),
        (
            [24; 3],
            "the median of each run is in the fast one, near its edge;",
            true,
        ),
        ([25; 3], "the median may be in either.", true),
        (
            [26; 3],
            "the median of each run is in the slow one, near its edge;",
            true,
        ),
        (
            [12, 40, 9],
            "in the fast one in some runs, and in the slow one in others.",
            true,
        ),
        (
            [41, 27, 38],
            "the median of each run is in the slow one.",
            false,
        ),
    ] {
        let mut run = Run::new(1);
        for (block, slow) in (1..).zip(slow) {
            run.started(block, ALONE, |number, planned| {
                let takes_ms = if number % 50 < slow { 30 } else { 5 };
                done(planned, 0, takes_ms * MS + number * 1_000)
            });
        }
        let analysis = run.analyse();
        assert_contains(&verdict(&analysis).join(" "), &[said]);
        let median = row(&analysis, "ready.p50").unwrap();
        assert_eq!(median.is_marked(), is_marked, "{slow:?}");
    }
}

#[test]
fn runs_that_are_in_one_of_two_modes_each_have_no_share() {
    let mut run = Run::new(1);
    // The first run has its own two modes, next to those of the second.
    for (block, takes_ms) in [(1, [5, 9]), (2, [400, 401])] {
        run.started(block, ALONE, |number, planned| {
            let takes_ms = takes_ms[usize::from(number % 2 == 0)];
            done(planned, 0, takes_ms * MS + number * 1_000)
        });
    }
    let analysis = run.analyse();
    assert!(row(&analysis, "ready.slow").is_none());
}

#[test]
fn cold_and_warm_starts_are_two_modes() {
    let mut all = Vec::new();
    for (side, slow) in [("a", 24), ("b", 26)] {
        let mut run = Run::new(1);
        for block in 1..=6 {
            run.started(block, ALONE, |number, planned| {
                let takes_ms = if number % 50 < slow { 30 } else { 5 };
                done(planned, 0, takes_ms * MS + number * 1_000)
            });
        }
        let analysis = run.analyse();
        let modes = &verdict(&analysis).join(" ");
        // One that may be in either of two modes has no range.
        assert!(!modes.contains("Time until ready"), "{modes}");
        assert!(
            modes.starts_with("Ready after about 5.04 ms and 30.0 ms (two modes) on process."),
            "{modes}"
        );
        let share = if side == "a" { "48.0 %" } else { "52.0 %" };
        assert_contains(
            modes,
            &["has two modes on process, alone: about 5.04 ms and 30.0 ms"],
        );
        assert_contains(
            modes,
            &[&format!("the slow one has {share} of a run's samples")],
        );
        all.push(analysis);
    }
    let new = all.pop().unwrap();
    let comparison = between(&all, &[new]).unwrap();
    let median = comparison.rows.iter();
    let mut median = median.filter(|row| row.measure == "ready" && row.figure == "p50");
    let median = median.next().unwrap();
    assert!(median.shift.is_none() && !median.differs, "{median:?}");
    assert_contains(
        &comparison.verdict.join(" "),
        &[
            "about 5.04 ms and 30.0 ms; of BASE 48.0 % (median) in the slow one, of NEW 52.0 % (median) in \
             the slow one",
        ],
    );
    // The time from the start call is the same time where each is started alone.
    let copies = comparison
        .rows
        .iter()
        .filter(|row| row.same_as.as_deref() == Some("ready"));
    assert!(copies.count() > 0);
}
