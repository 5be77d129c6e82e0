//! From what instances write to the cells of a run.

use std::time::Duration;

use tare_guard::{Guard, Interrupt};
use tare_host::{Machine, Source};
use tare_lab::{Event, Observer, Stage, Tally, execute};
use tare_results::model::{Arrivals, Cell, CellPlan, Outcome, Plan, Rung, SCHEMA};
use tare_results::target::TargetSpec;
use tare_results::work::Work;
use tare_results::{CellState, MachineRecord, RunFolder};
use tare_testkit::records::{Lists, Room, instance};
use tare_wire::PROTOCOL;
use tare_wire::line::Encoder;
use tare_wire::record::{Begins, Failure, Hello, Live, Notice, Record, Set};

use crate::scripted::{Script, Step, target};

const MS: u64 = 1_000_000;

/// A run with a plan for these cells, and what happened in it.
struct Run {
    cells: Vec<CellState>,
    tally: Tally,
    events: Vec<String>,
}

impl Run {
    fn reason(&self, cell: usize) -> &str {
        match &self.cells[cell] {
            CellState::Failed(cell) => cell.outcome.reason().unwrap(),
            state => panic!("{state:?}"),
        }
    }

    fn done(&self, cell: usize) -> &Cell {
        match &self.cells[cell] {
            CellState::Done(cell) => cell,
            state => panic!("{state:?}"),
        }
    }
}

/// Notes what happens, asks to finish at an event, and to stop at another.
struct Notes<'a> {
    events: Vec<String>,
    finish_at: &'a str,
    stop_at: &'a str,
    interrupt: &'a Interrupt,
}

impl Observer for Notes<'_> {
    fn on_event(&mut self, event: Event<'_>) {
        let text = match event {
            Event::CellBegan { number, of, .. } => format!("began {number}/{of}"),
            Event::Booting => "booting".to_owned(),
            Event::Ready { .. } => "ready".to_owned(),
            Event::Live(live) => format!("live {}", live.n),
            Event::Exceeded(_) => "exceeded".to_owned(),
            Event::Finishing(finish) => format!("finishing {finish:?}"),
            Event::Ended { cell, samples } => match cell.outcome {
                Outcome::Done { .. } => format!("done {}", samples.is_some()),
                Outcome::Failed { .. } => "failed".to_owned(),
                Outcome::LeftOut { .. } => "left out".to_owned(),
                Outcome::NotTried { .. } => "not tried".to_owned(),
            },
        };
        if text == self.finish_at {
            self.interrupt.request_finish();
        }
        if text == self.stop_at {
            self.interrupt.request_stop();
        }
        self.events.push(text);
    }

    fn tick(&mut self) -> Option<Duration> {
        None
    }
}

fn run(cells: Vec<CellPlan>) -> Run {
    run_until(cells, ["", ""])
}

/// Runs cells. Asks to finish when an event comes, and to stop when another one does.
fn run_until(cells: Vec<CellPlan>, [finish_at, stop_at]: [&str; 2]) -> Run {
    let numbered = (1..).zip(cells);
    let cells = numbered.map(|(id, cell)| CellPlan { id, ..cell });
    let plan = Plan {
        schema: SCHEMA,
        tare_version: "0.1.0".to_owned(),
        experiment: "scripted".to_owned(),
        created: "2026-03-01T12:00:00Z".parse().unwrap(),
        command: vec!["tare".to_owned()],
        seed: 42,
        cpu: 0,
        cpu_reason: String::new(),
        settings: Vec::new(),
        study: None,
        start_engine: false,
        cells: cells.collect(),
    };
    let scratch = tempfile::tempdir().unwrap();
    let nowhere = Source::at(scratch.path());
    let machine = MachineRecord::new(Machine::collect(&nowhere), Vec::new());
    let folder = RunFolder::create(&scratch.path().join("run"), &plan, &machine).unwrap();
    let guard = Guard::open(scratch.path()).unwrap();
    let interrupt = Interrupt::detached().unwrap();
    let mut notes = Notes {
        events: Vec::new(),
        finish_at,
        stop_at,
        interrupt: &interrupt,
    };
    let drive = |stage: &mut Stage<'_>| match stage.plan().arrivals {
        Some(_) => stage.arrivals(),
        None => stage.one(),
    };
    let check = |_: &Plan, cell: &Cell, _: &_| match cell.plan.label().contains("rejected") {
        true => Err("no thread was woken".to_owned()),
        false => Ok(()),
    };
    let tally = execute(&folder, drive, check, &guard, &interrupt, &mut notes).unwrap();
    let states = plan.cells.iter().map(|cell| folder.state(cell.id));
    Run {
        cells: states.collect(),
        tally,
        events: notes.events,
    }
}

fn cell(target: TargetSpec) -> CellPlan {
    CellPlan {
        block: 1,
        limit_seconds: 10.0,
        estimate_seconds: 0.1,
        ..CellPlan::new("scripted", target, "work", Work::new("work", ""))
    }
}

/// A cell whose measured code can be asked to end before its work is done.
fn ending_early(target: TargetSpec) -> CellPlan {
    let mut cell = cell(target);
    cell.work.ends_early = true;
    cell
}

/// A cell in which instances arrive every 20 ms, for 100 ms.
fn arriving(target: TargetSpec) -> CellPlan {
    CellPlan {
        arrivals: Some(Arrivals {
            interval_ns: Some(20 * MS),
            warmup_ns: 20 * MS,
            measure_ns: 100 * MS,
            most_live: 8,
            most_bytes: None,
            report: None,
            command: None,
        }),
        ..cell(target)
    }
}

/// Three samples.
fn samples() -> Lists {
    let set = Set {
        measure: "duration",
        first: 1_000,
        threshold: 3_000,
        bin: 8,
        ..Set::default()
    };
    let samples = [(0, 0, 100), (1, 120, 5_000), (2, 6_000, 100)];
    Lists::fold(set, &[], samples, Room::ENOUGH)
}

/// Plays records, with pauses of 1 ms after each of the first three.
fn play(sets: &[Lists], more: &[Record<'_>]) -> Vec<Step> {
    let pause = Step::Pause(Duration::from_millis(1));
    let lines = (0..).zip(instance(sets, more));
    lines
        .flat_map(|(number, line)| {
            let pause = (number < 3).then(|| pause.clone());
            [Step::Write(line)].into_iter().chain(pause)
        })
        .collect()
}

fn script(steps: Vec<Step>) -> Script {
    Script {
        steps,
        ..Script::default()
    }
}

fn text(text: &str) -> Step {
    Step::Write(text.as_bytes().to_vec())
}

#[test]
fn records_become_a_cell_and_events() {
    let live = Record::Live(Live {
        n: 7,
        ..Live::default()
    });
    let steps = play(&[samples()], &[live]);
    let ran = run(vec![cell(target("done", script(steps)))]);
    let done = ran.done(0);
    let record = done.outcome.record().unwrap();
    assert_eq!(record.sets[0].n, 3);
    assert_eq!(record.programs[0].agent.version, "1.2.3");
    assert_eq!(ran.events, ["began 1/1", "ready", "live 7", "done true"]);
    assert_eq!(ran.tally, Tally::default());
}

#[test]
fn a_failed_cell_has_its_reason_and_the_next_one_runs() {
    let gave_up = Record::Failure(Failure { text: "no timer" });
    let cells = [
        ("gave-up", script(play(&[], &[gave_up]))),
        (
            "status",
            Script {
                status: 3,
                ..script(vec![text("oops\n")])
            },
        ),
        (
            "engine",
            Script {
                reason: Some("out of memory"),
                ..script(play(&[samples()], &[]))
            },
        ),
        ("silent", script(vec![text("hello\n")])),
        ("rejected", script(play(&[samples()], &[]))),
        ("whole", script(play(&[samples()], &[]))),
    ];
    let ran = run(cells
        .map(|(name, script)| cell(target(name, script)))
        .to_vec());
    assert_eq!(ran.reason(0), "no timer");
    assert_eq!(ran.reason(1), "it ended with Some(3): oops");
    assert_eq!(ran.reason(2), "its engine says: out of memory");
    assert!(ran.reason(3).contains("hello"), "{}", ran.reason(3));
    assert_eq!(ran.reason(4), "no thread was woken");
    assert!(ran.done(5).outcome.record().is_some());
    assert_eq!((ran.tally.failed, ran.tally.left), (5, 0));
}

#[test]
fn an_instance_that_hangs_is_ended_at_the_limit() {
    let mut steps = play(&[], &[]);
    steps.truncate(2);
    steps.push(Step::UntilAsked);
    let hanging = CellPlan {
        limit_seconds: 0.1,
        ..cell(target("hanging", script(steps)))
    };
    let ran = run(vec![hanging]);
    let why = ran.reason(0);
    assert!(
        why.starts_with("timed out after 100 ms: the records broke off after number 0"),
        "{why}"
    );
    assert!(why.contains("--cell-limit"), "{why}");
}

#[test]
fn an_analysis_counts_against_the_limit() {
    let slow = Script {
        judging: Duration::from_millis(600),
        ..script(play(&[samples()], &[]))
    };
    let cells = [0.5, 10.0].map(|limit_seconds| CellPlan {
        limit_seconds,
        ..cell(target("slow to judge", slow.clone()))
    });
    let ran = run(cells.to_vec());
    let why = ran.reason(0);
    let expected = "timed out after 500 ms while analysing its records";
    assert!(why.starts_with(expected), "{why}");
    assert!(ran.done(1).outcome.record().is_some());
}

#[test]
fn an_instance_that_sends_more_than_its_plan_can_have_is_ended_and_the_next_one_runs() {
    let remark = Record::Notice(Notice { text: "cold" });
    let mut steps = play(&[], &[remark; 1_001]);
    steps.pop();
    steps.push(Step::UntilAsked);
    let flooding = cell(target("flooding", script(steps)));
    let whole = cell(target("after a flood", script(play(&[samples()], &[]))));
    let ran = run(vec![flooding, whole]);
    assert_eq!(
        ran.reason(0),
        "it sent more than its plan can have: 1000 remarks"
    );
    assert!(ran.done(1).outcome.record().is_some());
}

/// Plays a measurement that is cut short after something.
fn cut_short(after: Step) -> Script {
    let live = Record::Live(Live::default());
    let mut records = vec![Record::Begins(Begins { origin_ns: 1 }), live];
    records.extend(samples().records());
    records.push(Record::CutShort);
    let mut steps = play(&[], &records);
    let of_live = steps.len() - samples().records().len() - 2;
    steps.insert(of_live, after);
    script(steps)
}

#[test]
fn a_request_to_finish_ends_a_cell_that_reports_what_it_has() {
    let cells = ["asked", "after asked"].map(|name| target(name, cut_short(Step::UntilAsked)));
    let ran = run_until(cells.map(ending_early).to_vec(), ["live 0", ""]);
    let why = ran.done(0).outcome.cut_short().unwrap();
    assert!(why.starts_with("interrupted after "), "{why}");
    assert!(matches!(ran.cells[1], CellState::Missing));
    let events = [
        "began 1/2",
        "ready",
        "live 0",
        "finishing Early",
        "done true",
    ];
    assert_eq!(ran.events, events);
    assert_eq!((ran.tally.cut_short, ran.tally.left), (1, 1));
}

#[test]
fn a_second_request_ends_a_cell_that_does_not_end_when_it_is_asked() {
    let mut deaf = cut_short(Step::UntilAsked);
    deaf.steps.push(Step::UntilAsked);
    let ran = run_until(
        vec![ending_early(target("deaf", deaf))],
        ["live 0", "finishing Early"],
    );
    assert!(
        matches!(ran.cells[0], CellState::Missing),
        "{:?}",
        ran.cells
    );
    let events = ["began 1/1", "ready", "live 0", "finishing Early"];
    assert_eq!(ran.events, events);
}

#[test]
fn a_cell_that_somebody_else_ended_is_no_result() {
    let ended = cut_short(Step::Pause(Duration::ZERO));
    let ran = run(vec![ending_early(target("by another", ended))]);
    let why = ran.reason(0);
    assert!(
        why.starts_with("something other than tare asked it to end"),
        "{why}"
    );
}

#[test]
fn a_request_to_finish_waits_for_a_cell_that_reports_only_at_its_end() {
    let steps = play(&[samples()], &[]);
    let ran = run_until(vec![cell(target("waits", script(steps)))], ["ready", ""]);
    let events = ["began 1/1", "ready", "finishing ByItself", "done true"];
    assert_eq!(ran.events, events);
    assert_eq!(ran.tally, Tally::default());
}

#[test]
fn a_cell_that_has_measured_nothing_when_it_is_stopped_stays_missing() {
    let mut steps = play(&[], &[]);
    steps.truncate(4);
    steps.push(Step::Pause(Duration::from_secs(1)));
    let stopped = ending_early(target("stopped", script(steps)));
    let ran = run_until(vec![stopped], ["ready", ""]);
    assert!(matches!(ran.cells[0], CellState::Missing));
    assert_eq!(ran.events, ["began 1/1", "ready", "finishing AtOnce"]);
    assert_eq!((ran.tally.cut_short, ran.tally.left), (0, 1));
}

#[test]
fn arrivals_have_the_answers_that_one_instance_has() {
    let hello = Record::Hello(Hello {
        protocol: PROTOCOL + 1,
        version: "9.9.9",
        environment: "linux",
        plan: "",
    });
    let other = Encoder::default().encode(&hello).unwrap().to_vec();
    let gave_up = Record::Failure(Failure { text: "no timer" });
    let paniced = Script {
        reason: Some("kernel panic"),
        ..script(vec![text("hello\n")])
    };
    let protocol = format!(
        "the agent speaks protocol {} and this tare {PROTOCOL}",
        PROTOCOL + 1
    );
    for (name, script, why) in [
        (
            "other protocol",
            script(vec![Step::Write(other)]),
            protocol.as_str(),
        ),
        ("no timer", script(play(&[], &[gave_up])), "no timer"),
        ("panic", paniced, "its engine says: kernel panic"),
    ] {
        let target = target(name, script);
        let ran = run(vec![cell(target.clone()), arriving(target)]);
        assert!(ran.reason(0).starts_with(why), "{}", ran.reason(0));
        let all = ran.reason(1);
        assert!(all.starts_with("no instance did its work; of "), "{all}");
        assert!(all.contains(&format!(" × {}", ran.reason(0))), "{all}");
    }
}

#[test]
fn rungs_above_a_lowest_one_that_failed_are_not_tried() {
    let gave_up = Record::Failure(Failure { text: "no timer" });
    let never = target("never", script(play(&[], &[gave_up])));
    let rungs = (0..2).map(|step| CellPlan {
        rung: Some(Rung {
            ladder: "one".to_owned(),
            step,
        }),
        ..arriving(never.clone())
    });
    let ran = run(rungs.collect());
    assert!(ran.reason(0).starts_with("no instance did its work; of "));
    assert!(ran.reason(1).ends_with(" failed"));
    let events = ["began 1/2", "ready", "failed", "began 2/2", "not tried"];
    assert_eq!(ran.events, events);
    assert_eq!((ran.tally.failed, ran.tally.not_tried), (1, 1));
}

#[test]
fn rungs_after_a_saturated_one_are_left_out() {
    let slow = target("slow", script(play(&[], &[])));
    let rungs = (0..2).map(|step| {
        let mut cell = arriving(slow.clone());
        let rung = Rung {
            ladder: "one".to_owned(),
            step,
        };
        cell.rung = Some(rung);
        // Most come while one is alive, and are one too many.
        let arrivals = cell.arrivals.as_mut().unwrap();
        (arrivals.most_live, arrivals.interval_ns) = (1, Some(MS));
        cell
    });
    let ran = run(rungs.collect());
    assert!(matches!(ran.done(1).outcome, Outcome::LeftOut { .. }));
    let events = ["began 1/2", "ready", "done true", "began 2/2", "left out"];
    assert_eq!(ran.events, events);
    // A skipped cell did not fail, and was not interrupted by the user.
    assert_eq!(ran.tally, Tally::default());
}

#[test]
fn arrivals_are_measured_by_what_they_report() {
    let ran = run(vec![arriving(target("arrives", script(play(&[], &[]))))]);
    let record = ran.done(0).outcome.record().unwrap();
    let arrived = record.arrived.as_ref().unwrap();
    assert_eq!((arrived.failures.len(), &arrived.saturated), (0, &None));
    assert!(arrived.until_ns - arrived.from_ns >= 100 * MS);
}
