//! Sides of a comparison against each other.

use jiff::Timestamp;
use tare_figures::compare::{
    CompareError, CompareUnit, ComparedRow, Comparison, ShiftGate, ShiftJudgement, compare, side,
    sides_by,
};
use tare_figures::gates::GateError;
use tare_pages::{Report, RunData, terminal};
use tare_results::CellState;
use tare_results::model::{Achieved, Fact, Labels, Load, LoadPlace, SettingPlan};
use tare_testkit::assert_contains;

use crate::synthetic::wakeups::Schedule;
use crate::synthetic::{Fold, Run, analyse, evenly, measured, plain, spin, timed, verdict};

/// Makes runs whose median is about `median` ns; the worst of each differs from block to block.
fn run(target: &str, runs: u32, median: u64, seed: u64) -> Report {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut run = Run::new(1);
    run.emulated = target == "unikernel";
    for block in 1..=runs {
        let schedule = Schedule {
            target,
            ..Schedule::under(&["idle", "dd"])
        };
        let offset = random.u64(..100);
        let worst = 150_000 + random.u64(..400_000);
        run.woken(block, schedule, |_, phase, n| match (phase, n) {
            (1, 12_000) => worst,
            (phase, n) => median + offset + 500 * phase as u64 + n % 200,
        });
    }
    run.analyse()
}

/// Compares runs, each of which is one invocation.
pub fn between(base: &[Report], new: &[Report]) -> Result<Comparison, CompareError> {
    let of = |name: &str, runs: &[Report]| {
        let runs = (1..).zip(runs);
        side(
            name,
            runs.map(|(number, run)| (format!("{name}-{number}"), run.run())),
        )
    };
    compare(&of("BASE", base), &of("NEW", new))
}

/// Makes invocations of three runs each.
fn invocations(number: u64, median: u64, seed: u64) -> Vec<Report> {
    (0..number)
        .map(|n| run("process", 3, median, seed * 100 + n))
        .collect()
}

fn row<'a>(comparison: &'a Comparison, load: &str, measure: &str, figure: &str) -> &'a ComparedRow {
    let mut rows = comparison.rows.iter();
    rows.find(|row| row.new_load.as_str() == load && row.measure == measure && row.figure == figure)
        .unwrap()
}

/// Asserts that the sides do not differ in any figure.
#[track_caller]
fn assert_alike(comparison: &Comparison) {
    let differ = comparison.rows.iter().any(|row| row.differs);
    assert!(!differ, "{comparison:#?}");
}

/// Judges a shift against a limit.
fn judge(text: &str, comparison: &Comparison) -> Result<ShiftJudgement, GateError> {
    text.parse::<ShiftGate>().unwrap().judge(comparison, false)
}

/// Says whether NEW is worse in some figure.
pub fn is_worse(comparison: &Comparison) -> bool {
    comparison.rows.iter().any(|row| row.is_worse)
}

#[test]
fn a_shift_between_systems_is_found_with_its_size_and_nothing_else() {
    let (base, new) = (invocations(6, 4_000, 1), invocations(6, 4_400, 2));
    let compared = between(&base, &new).unwrap();
    assert_eq!(compared.unit, CompareUnit::Invocations);
    assert_eq!(compared.repetitions, [6, 6]);
    for load in ["idle", "dd"] {
        let median = row(&compared, load, "response", "p50");
        assert!(median.differs && median.is_worse, "{median:?}");
        let (low, high) = (median.low.unwrap(), median.high.unwrap());
        assert!((low..high).contains(&400.0), "{median:?}");
        let max = row(&compared, load, "response", "max");
        assert_eq!(max.differs, load == "idle", "{max:?}");
        assert!(!row(&compared, load, "missed", "share").differs);
    }
    assert!(is_worse(&compared) && compared.can_tell);
    assert!(
        compared.differences.is_empty(),
        "{:?}",
        compared.differences
    );
    assert!(compared.verdict[0].starts_with("NEW is worse than BASE"));
    // The other way round it is an improvement.
    let other = between(&new, &base).unwrap();
    assert!(!is_worse(&other));
    assert!(row(&other, "idle", "response", "p50").differs);
}

#[test]
fn alike_sides_do_not_differ() {
    let compared = between(&invocations(6, 4_000, 3), &invocations(6, 4_000, 4)).unwrap();
    assert_alike(&compared);
    assert_contains(&compared.verdict[0], &["doesn't prove"]);
}

#[test]
fn too_few_invocations_tell_nothing_and_how_many_would() {
    let compared = between(&invocations(2, 4_000, 5), &invocations(2, 9_000, 6)).unwrap();
    assert!(!compared.can_tell && !is_worse(&compared));
    let median = row(&compared, "idle", "response", "p50");
    assert!(median.low.is_none() && !median.differs);
    assert!(median.shift.is_none() && median.relative.is_none());
    assert_eq!(compared.tests, 0);
    let text = terminal::compare(&compared, 100).render(false);
    assert_contains(&text, &["Figures of BASE and NEW, not judged"]);
    assert!(!text.contains("shift"), "{text}");
    assert_eq!(
        compared.verdict[0],
        "The comparison is inconclusive: it needs 4 invocations of each, not 2 and 2."
    );
}

#[test]
fn a_single_pair_is_two_runs_and_fails_no_gate_unless_that_is_allowed() {
    let (base, new) = (run("process", 8, 4_000, 1), run("process", 8, 4_400, 2));
    let compared = between(&[base], &[new]).unwrap();
    assert_eq!(compared.unit, CompareUnit::TwoRuns);
    assert!(row(&compared, "idle", "response", "p50").differs);
    let verdict = compared.verdict.join(" ");
    assert_contains(&verdict, &["These two runs differ", "give 4 invocations"]);
    let gate: ShiftGate = "wakeup/response.p50 > +5%".parse().unwrap();
    let judged = gate.judge(&compared, false).unwrap();
    assert!(!judged.failed);
    assert_contains(&judged.sentence, &["--allow-single"]);
    assert!(gate.judge(&compared, true).unwrap().failed);
}

#[test]
fn an_emulated_side_is_neither_better_nor_worse_than_a_native_one() {
    let emulated = |n: u64| run("unikernel", 3, 90_000, 700 + n);
    let emulated: Vec<Report> = (0..6).map(emulated).collect();
    let compared = between(&invocations(6, 4_000, 1), &emulated).unwrap();
    let median = row(&compared, "idle", "response", "p50");
    assert!(median.differs && !is_worse(&compared));
    let advice = "which side is better is not judged, however many runs there are. Measure both where KVM works";
    assert_contains(
        &compared.verdict[0],
        &["say nothing of one another", advice],
    );
    // They are compared, and differ.
    let all = format!("{} figures were compared", compared.compared().count());
    assert_contains(
        &terminal::compare_markdown(&compared),
        &[&all, "| differs |"],
    );
    // More runs would tell no more.
    let few = between(&invocations(2, 4_000, 1), &[run("unikernel", 2, 90_000, 9)]).unwrap();
    for text in [
        terminal::compare(&few, 110).to_string(),
        terminal::compare_markdown(&few),
    ] {
        assert_contains(&text, &["not judged"]);
        assert!(!text.contains("needs 4"), "{text}");
    }
    let judged = judge("response.p50 > +5%", &compared).unwrap();
    assert!(judged.failed);
    // Of both loads.
    let why = "an emulator executed one side, and a processor the other";
    assert_eq!(judged.sentence.matches(why).count(), 2, "{judged:?}");
    assert_contains(&judged.sentence, &["Gate not passed", "under dd"]);
}

#[test]
fn gates_let_pass_what_is_within_their_limit_and_nothing_that_cannot_be_told() {
    let compared = between(&invocations(6, 4_000, 1), &invocations(6, 4_400, 2)).unwrap();
    for (gate, failed) in [
        ("response.p50 > +5%", true),
        ("response.p50 > +20%", false),
        ("response.p50{load=dd} > +200ns", true),
        ("missed > +1points", false),
    ] {
        assert_eq!(judge(gate, &compared).unwrap().failed, failed, "{gate}");
    }
    // What is compared with the limit is the shift, not the difference of the medians.
    for (limit, shift) in [("+5%", "+9.56 %"), ("+200ns", "+398 ns")] {
        let gate = format!("response.p50{{load=idle}} > {limit}");
        assert_eq!(
            judge(&gate, &compared).unwrap().sentence,
            format!(
                "Gate failed: wakeup/response.p50 of process, phase 0 shifted by {shift} (medians 4.16 µs and 4.55 µs), \
                 beyond '{gate}'."
            )
        );
    }
    let nothing = judge("noise/lost > +5%", &compared).unwrap_err();
    assert_contains(&nothing.to_string(), &["matches no figure"]);
    assert!(judge("response.p50 > +5points", &compared).is_err());
    // Without a figure it is the measure's first, and groups are known.
    let judged = judge("response{load=idle,group=process} > +5%", &compared).unwrap();
    assert_contains(&judged.sentence, &["wakeup/response.max"]);
    assert!(judge("response{group=guest} > +5%", &compared).is_err());
    let few = between(&invocations(2, 4_000, 1), &invocations(2, 9_000, 2)).unwrap();
    let judged = judge("response.p50 > +5%", &few).unwrap();
    assert!(judged.failed);
    assert_contains(&judged.sentence, &["needs 4 of each"]);
}

#[test]
fn another_kernel_is_named() {
    let a = run("linux,kernel=debian", 4, 4_000, 7);
    let b = run("linux,kernel=debian-rt", 4, 4_000, 8);
    let compared = between(&[a], &[b]).unwrap();
    let named = &compared.differences[0];
    assert_eq!(
        named.new, "linux,kernel=debian-rt",
        "{:?}",
        compared.differences
    );
    let text = terminal::compare(&compared, 110).to_string();
    assert_contains(&text, &["linux,kernel=debian and linux,kernel=debian-rt"]);
}

/// Makes a run of one invocation, and changes it before its figures are derived.
fn changed(seed: u64, change: impl FnOnce(&mut RunData)) -> Report {
    let mut run = Run::new(1);
    run.woken(1, Schedule::under(&["idle"]), |_, _, n| {
        4_000 + (n + seed) % 200
    });
    let mut data = run.data();
    change(&mut data);
    analyse(data)
}

#[test]
fn changed_settings_and_command_lines_are_named_above_the_figures() {
    let run = |seed: u64, value: &str, words: &str| {
        changed(seed, |run| {
            run.plan.settings.push(SettingPlan {
                path: "/proc/sys/kernel/sched_rt_runtime_us".to_owned(),
                value: value.to_owned(),
            });
            let CellState::Done(cell) = &mut run.cells[0].0 else {
                panic!("it is done");
            };
            cell.plan.work.words.push_str(&format!(" requests={value}"));
            let program = measured(cell);
            program.agent.sha256 = value.repeat(16);
            program.facts.push(Fact {
                name: "kernel command line".to_owned(),
                labels: Labels::default(),
                value: words.to_owned(),
            });
        })
    };
    let base = run(1, "950000", "quiet isolcpus=1 -- duration=2s");
    let new = run(2, "-1", "quiet");
    let compared = between(&[base], &[new]).unwrap();
    for text in [
        terminal::compare(&compared, 110).to_string(),
        terminal::compare_markdown(&compared),
    ] {
        let place = |what: &str| {
            text.find(what)
                .unwrap_or_else(|| panic!("no {what} in {text}"))
        };
        let above = [
            "sched_rt_runtime_us",
            "950000",
            "isolcpus=1",
            "950000950000",
            "parameters",
            "requests=950000",
            "requests=-1",
        ];
        let above = above.map(place);
        assert!(
            above.into_iter().max() < Some(place("Figures are medians")),
            "{text}"
        );
        for same in ["quiet", "duration"] {
            assert!(!text.contains(same), "{text}");
        }
    }
}

#[test]
fn a_target_that_only_one_side_has_is_named_once() {
    let run = |targets: &[&str], seed: u64| {
        let mut run = Run::new(1);
        for target in targets {
            run.woken(1, Schedule::of(target), |_, _, n| 4_000 + (n + seed) % 200);
        }
        run.analyse()
    };
    let base = run(&["process", "crun", "runc"], 1);
    let compared = between(&[base], &[run(&["process", "runc"], 2)]).unwrap();
    let unmatched = compared.unmatched.iter();
    let only: Vec<(u32, &str)> = unmatched.map(|only| (only.side, &*only.what)).collect();
    assert_eq!(only, [(1, "figures of crun")]);
}

#[test]
fn sides_that_were_not_measured_in_turn_are_told() {
    let side = |hours: [i64; 4]| {
        let at = |hour: i64| {
            let created = Timestamp::from_second(hour * 3_600).unwrap();
            changed(hour.unsigned_abs(), |run| run.plan.created = created)
        };
        Vec::from_iter(hours.map(at))
    };
    let in_turn = between(&side([1, 3, 5, 7]), &side([2, 4, 6, 8])).unwrap();
    assert!(!in_turn.verdict.join(" ").contains("was measured before"));
    let not = between(&side([5, 6, 7, 8]), &side([1, 2, 3, 4])).unwrap();
    let hint = "All of NEW was measured before all of BASE";
    assert_contains(&not.verdict.join(" "), &[hint, "Measure both in turn."]);
}

#[test]
fn a_second_mode_that_one_side_lacks_is_named_and_long_names_leave_room_for_figures() {
    let name = "linux,kernel=debian-cloud-6.12";
    let two = |n: u64| {
        if n.is_multiple_of(3) {
            90_000
        } else {
            4_000 + n % 50
        }
    };
    let made = |seed: u64, is_split: bool| {
        let mut run = Run::new(1);
        for block in 1..=4 {
            let schedule = Schedule {
                target: name,
                ..Schedule::default()
            };
            run.woken(block, schedule, |_, _, n| match is_split {
                true => two(n),
                false => 4_000 + (n + seed) % 50,
            });
        }
        run.analyse()
    };
    let (base, new) = (made(1, false), made(2, true));
    let sides = [("linux,kernel=debian-cloud-6.1", &base), (name, &new)];
    let [base, new] = sides.map(|(name, run)| side(name, [("r".to_owned(), run.run())]));
    let compared = compare(&base, &new).unwrap();
    let lacking: Vec<&str> = compared
        .unmatched
        .iter()
        .map(|lacking| lacking.what.as_str())
        .collect();
    assert_eq!(
        lacking,
        ["latency.slow and response.slow of linux,kernel=debian-cloud-6.12"]
    );
    let text = terminal::compare(&compared, 100).to_string();
    let named = "NEW, linux,kernel=debian-cloud-6.12: r (1 invocation)";
    assert_contains(&text, &[named, "BASE      NEW"]);
}

#[test]
fn loads_are_compared_within_a_run() {
    let analysis = run("process", 8, 4_000, 1);
    let sides = sides_by("load", "run", analysis.run()).unwrap();
    let (base, new) = &sides[0];
    let compared = compare(base, new).unwrap();
    assert_eq!(compared.unit, CompareUnit::Conditions);
    assert_eq!(compared.names, ["idle", "dd"]);
    let median = row(&compared, "dd", "response", "p50");
    assert!(median.base_load.is_idle());
    assert!(median.is_worse && (median.shift.unwrap() - 500.0).abs() < 100.0);
    let one = sides_by("target", "run", analysis.run()).unwrap_err();
    assert_contains(&one.to_string(), &["only one target"]);
}

/// A load that wrote this many megabytes in a second.
fn wrote(place: LoadPlace, megabytes: u64) -> Load {
    Load {
        place,
        achieved: vec![Achieved {
            what: "bytes written".to_owned(),
            amount: megabytes * 1_000_000,
            ns: 1_000_000_000,
        }],
        notices: Vec::new(),
        phases: Vec::new(),
        left: Vec::new(),
    }
}

#[test]
fn targets_within_a_run_are_compared_with_what_each_ran_under() {
    let mut run = Run::new(1);
    run.load = "dd";
    let sides = [
        (
            "linux,kernel=a",
            "kernel-6.1",
            "nohz=on",
            LoadPlace::Inside,
            100,
        ),
        (
            "linux,kernel=b",
            "kernel-6.12",
            "nohz=off",
            LoadPlace::Beside,
            400,
        ),
    ];
    for block in 1..=4 {
        for (target, kernel, word, place, megabytes) in sides {
            let cell = run.prime(block, target, &[500 + u64::from(block); 100]);
            let program = measured(cell);
            program.agent.kernel = Some(kernel.to_owned());
            program.facts.push(Fact {
                name: "kernel command line".to_owned(),
                labels: Labels::default(),
                value: format!("quiet {word}"),
            });
            cell.load = Some(wrote(place, megabytes + u64::from(block)));
        }
    }
    let report = run.analyse();
    let sides = sides_by("target", "run", report.run()).unwrap();
    let [(base, new)] = sides.as_slice() else {
        panic!("{sides:?}");
    };
    let compared = compare(base, new).unwrap();
    assert_eq!(compared.unit, CompareUnit::Conditions);
    let differences = compared.differences.iter();
    let differences = differences.map(|of| [&of.what, &of.base, &of.new].map(String::as_str));
    assert_eq!(
        Vec::from_iter(differences),
        [
            ["targets", "linux,kernel=a", "linux,kernel=b"],
            ["kernels of targets", "kernel-6.1", "kernel-6.12"],
            ["words of kernel command lines", "nohz=on", "nohz=off"],
            ["place of dd", "inside", "next to it"],
            [
                "bytes written of dd",
                "101 MB/s to 104 MB/s",
                "401 MB/s to 404 MB/s"
            ],
        ]
    );
}

/// Makes six runs of two targets under a load, with the share of time that each loses and what the
/// load wrote; crun's load wrote less in each.
fn under_dd() -> Run {
    let lost: [[u64; 6]; 2] = [[52, 35, 61, 26, 32, 51], [19, 21, 37, 18, 23, 16]];
    let wrote_by = [
        [3_940, 2_010, 2_600, 2_700, 2_400, 2_300],
        [2_230, 1_740, 2_000, 1_800, 2_200, 1_760],
    ];
    let mut run = Run::new(1);
    run.load = "dd";
    for block in 0..6 {
        for (target, name) in ["process", "crun"].into_iter().enumerate() {
            let gaps = evenly(26_000_000, lost[target][block] * 13, 1_300);
            let cell = run.gap(block as u32 + 1, name, gaps);
            cell.load = Some(wrote(LoadPlace::Beside, wrote_by[target][block]));
        }
    }
    run
}

#[test]
fn a_report_says_of_two_targets_what_their_comparison_does() {
    let report = under_dd().analyse();
    let sides = sides_by("target", "run", report.run()).unwrap();
    let compared = compare(&sides[0].0, &sides[0].1).unwrap();
    let lost = row(&compared, "dd", "lost", "share");
    // The intervals of both shares overlap, which says nothing.
    assert!(lost.differs && !lost.is_worse, "{lost:?}");
    let said = verdict(&report);
    let found = format!(
        "crun against process, share of time lost: better for gap under dd (median difference {}, adjusted p {}) ({} figures judged together",
        lost.shift_in_words(),
        lost.chance(),
        compared.tests
    );
    let mut own = said.iter().filter(|said| said.starts_with("crun against"));
    assert_contains(own.next().expect("it is compared"), &[&found]);
    assert_eq!(own.next(), None);
}

#[test]
fn a_load_that_did_more_in_each_run_on_one_side_is_told_in_words() {
    let report = under_dd().analyse();
    let sides = sides_by("target", "run", report.run()).unwrap();
    let compared = compare(&sides[0].0, &sides[0].1).unwrap();
    let more = "On process, dd did more than on crun in each run: 1.3 times the bytes written, by the median of the ratios.";
    assert_contains(&compared.verdict.join(" "), &[more]);
    assert_contains(&verdict(&report).join(" "), &[more]);
    // The ranges of both overlap.
    let mut differences = compared.differences.iter();
    let written = differences.find(|of| of.what == "bytes written of dd");
    assert_eq!(
        written.map(|of| [of.base.as_str(), of.new.as_str()]),
        Some(["2.01 GB/s to 3.94 GB/s", "1.74 GB/s to 2.23 GB/s"])
    );
}

#[test]
fn notices_that_one_side_has_are_among_what_differs_and_both_sides_are_shown() {
    let mut run = Run::new(1);
    for block in 1..=4 {
        for target in ["process", "runc"] {
            let cell = run.prime(block, target, &[500 + u64::from(block); 100]);
            cell.notices = vec![format!("the timer was read {block} times: as always")];
            if target == "runc" {
                let own = "threads measure on every CPU that the watching thread may use (CPU 1): its reports come late";
                cell.notices.push(own.to_owned());
            }
        }
    }
    let report = run.analyse();
    let sides = sides_by("target", "run", report.run()).unwrap();
    let compared = compare(&sides[0].0, &sides[0].1).unwrap();
    let notices = compared.differences.iter().filter(|of| of.what == "notice");
    let notices = notices.map(|of| [of.base.as_str(), of.new.as_str()]);
    assert_eq!(
        Vec::from_iter(notices),
        [[
            "–",
            "threads measure on every CPU that the watching thread may use"
        ]]
    );
    let text = terminal::compare(&compared, 60).to_string();
    assert_contains(&text, &["runc", "every CPU"]);
    assert!(!text.contains("on a wider terminal"), "{text}");
}

#[test]
fn maxima_of_sides_that_measured_for_different_times_say_so_on_each_medium() {
    let runs = |reads: u64, longest: u64, seed: u64| -> Vec<Report> {
        let each = (0..6).map(|number| {
            let mut run = Run::new(1);
            let long = longest + 100 * ((7 * number + seed) % 11);
            run.gap(
                1,
                "process",
                spin(reads, 20, &[(1_000, long)], Fold::above(1_300)),
            );
            run.analyse()
        });
        each.collect()
    };
    let compared = between(&runs(100_000, 9_000, 1), &runs(200_000, 50_000, 2)).unwrap();
    assert!(row(&compared, "idle", "gap", "max").differs);
    assert_contains(&compared.verdict[0], &["most (maxima aside) in "]);
    let note = "runs of NEW measured 2.02 times as long as those of BASE, which bears on that.";
    let text = terminal::compare(&compared, 200).to_string();
    let markdown = terminal::compare_markdown(&compared);
    assert_contains(&plain(&text), &[note]);
    assert_contains(&markdown, &[note]);
    // Both give the reason for a refusal.
    let refused = "p50 needs 20 samples in each run, a run has 1";
    assert_contains(&plain(&text), &[refused]);
    assert_contains(&markdown, &[refused]);
}

#[test]
fn loads_within_a_run_are_compared_with_what_each_did() {
    let mut run = Run::new(1);
    for block in 1..=4 {
        run.load = "";
        run.prime(block, "process", &[500 + u64::from(block); 100]);
        run.load = "dd";
        let cell = run.prime(block, "process", &[600 + u64::from(block); 100]);
        cell.load = Some(wrote(LoadPlace::Beside, 100));
    }
    let report = run.analyse();
    let sides = sides_by("load", "run", report.run()).unwrap();
    let compared = compare(&sides[0].0, &sides[0].1).unwrap();
    assert_eq!(compared.names, ["idle", "dd"]);
    let differences = compared.differences.iter();
    let differences = differences.map(|of| [&of.what, &of.base, &of.new].map(String::as_str));
    assert_eq!(
        Vec::from_iter(differences),
        [
            ["place of the load", "–", "next to it"],
            ["bytes written of the load", "–", "100 MB/s"],
        ]
    );
}

#[test]
fn a_shift_against_the_sign_of_the_medians_is_unclear() {
    let side = |medians: [u64; 5]| {
        let made = medians.map(|median| {
            let mut run = Run::new(1);
            run.woken(1, Schedule::under(&["idle"]), |_, _, n| {
                4_000 + 100 * median + n % 20
            });
            run.analyse()
        });
        Vec::from(made)
    };
    let compared = between(&side([2, 5, 23, 27, 28]), &side([5, 14, 14, 38, 39])).unwrap();
    // A percentage is of the shift that stands before it.
    for row in compared.judged() {
        let relative = row.shift.zip(row.base).map(|(shift, base)| shift / base);
        assert_eq!(row.relative, relative.filter(|share| share.is_finite()));
    }
    let median = row(&compared, "idle", "response", "p50");
    assert!(
        median.shift > Some(0.0) && median.new < median.base,
        "{median:?}"
    );
    assert!(median.is_unclear() && !median.differs, "{median:?}");
    for text in [
        terminal::compare(&compared, 110).to_string(),
        terminal::compare_markdown(&compared),
    ] {
        let of = |line: &&str| line.contains("latency.p50") && !line.contains("same as");
        let line = text.lines().find(of).unwrap();
        assert_contains(line, &["unclear"]);
        assert!(!line.contains("+900 ns"), "{line}");
    }
}

/// Makes a run whose loads come one after the other, each with its median in each of its phases.
fn in_phases(runs: u32, loads: &[&str], medians: &[u64]) -> Report {
    let mut run = Run::new(1);
    for block in 1..=runs {
        run.woken(block, Schedule::under(loads), |_, phase, n| {
            medians[phase] + u64::from(block) + n % 20
        });
    }
    run.analyse()
}

#[test]
fn a_load_of_several_phases_is_one_repetition_in_each_run() {
    let loads = ["idle", "dd", "idle"];
    let analysis = in_phases(4, &loads, &[4_000, 4_500, 6_000]);
    let sides = sides_by("load", "run", analysis.run()).unwrap();
    let [(base, new)] = sides.as_slice() else {
        panic!("{sides:?}");
    };
    let compared = compare(base, new).unwrap();
    assert_eq!(compared.repetitions, [4, 4]);
    assert!(compared.unmatched.is_empty(), "{:?}", compared.unmatched);
    let median = row(&compared, "dd", "response", "p50");
    // Between both phases, of which neither is left out.
    assert!((median.base.unwrap() - 5_000.0).abs() < 50.0, "{median:?}");
    assert!(!median.is_worse && median.differs, "{median:?}");
}

#[test]
fn a_gate_is_judged_in_each_comparison_that_has_its_figure() {
    let analysis = in_phases(4, &["idle", "dd", "du"], &[4_000, 5_000, 4_000]);
    let sides = sides_by("load", "run", analysis.run()).unwrap();
    let compared = sides.iter().map(|(base, new)| compare(base, new).unwrap());
    let compared: Vec<Comparison> = compared.collect();
    assert_eq!(compared.len(), 2);
    let judge = |text: &str| {
        let gate: ShiftGate = text.parse().unwrap();
        let judged = gate.judge_all(&compared, false);
        judged.map(|all| all.iter().map(|one| one.failed).collect::<Vec<_>>())
    };
    assert_eq!(judge("response.p50{load=dd} > +5%"), Ok(vec![true]));
    assert_eq!(judge("response.p50{load=du} > +5%"), Ok(vec![false]));
    assert_eq!(judge("response.p50 > +5%"), Ok(vec![true, false]));
    // Settings that both sides share are named once.
    assert_eq!(judge("response.p50 > +50%"), Ok(vec![false]));
    let nothing = judge("response.p50{load=cp} > +5%").unwrap_err();
    assert_contains(&nothing.to_string(), &["matches no figure"]);
    let unit = judge("response.p50{load=du} > +5points").unwrap_err();
    assert_contains(&unit.to_string(), &["a different unit"]);
}

#[test]
fn runs_of_one_invocation_count_once_in_whatever_order_they_are() {
    let redone = |offset: u64| {
        let mut run = Run::new(1);
        for block in 1..=6 {
            let durations: Vec<u64> = (0..1_000).map(|n| 1_000 + offset + n % 7).collect();
            let cell = run.prime(block, "process", &durations);
            // What failed at first was redone by a later invocation.
            if block % 2 == 0 {
                cell.invocation = "2026-03-02T12:00:00Z".parse().unwrap();
            }
        }
        run.analyse()
    };
    let compared = between(&[redone(0)], &[redone(500)]).unwrap();
    assert_eq!(compared.unit, CompareUnit::Invocations);
    assert_eq!((compared.repetitions, compared.can_tell), ([2, 2], false));
    assert_alike(&compared);
}

#[test]
fn a_relative_limit_is_of_the_base_also_where_a_value_is_0() {
    // So many activations of 10,000 are missed in each invocation.
    let missing = |each: [u64; 6]| -> Vec<Report> {
        let run = |missed: u64| {
            let mut run = Run::new(1);
            run.woken(1, Schedule::default(), |_, _, n| {
                match n % 10 == 0 && n < 10 * missed {
                    true => 150_000,
                    false => 4_000,
                }
            });
            run.analyse()
        };
        each.map(run).into()
    };
    let base = missing([0, 200, 201, 202, 203, 204]);
    let compared = between(&base, &missing([220, 221, 222, 223, 224, 225])).unwrap();
    let share = row(&compared, "idle", "missed", "share");
    assert!(share.is_worse, "{share:?}");
    assert!(judge("missed > +5%", &compared).unwrap().failed);
    assert!(!judge("missed > +20%", &compared).unwrap().failed);
    // From nothing to something is more than any share.
    let compared = between(&missing([0; 6]), &missing([100; 6])).unwrap();
    let judged = judge("missed > +100000%", &compared).unwrap();
    assert!(judged.failed);
    let shift = "shifted by +1.00 pp (medians 0 % and 1.00 %)";
    assert_contains(&judged.sentence, &[shift]);
}

#[test]
fn counted_instructions_leave_nothing_to_chance() {
    let target = "linux,kernel=debian,clock=instructions";
    let counted = |median: u64| {
        let mut run = Run::new(1);
        run.woken(1, Schedule::of(target), |_, _, n| median + n % 20);
        run.analyse()
    };
    let compared = between(&[counted(4_000)], &[counted(4_001)]).unwrap();
    assert!(is_worse(&compared) && compared.can_tell);
    assert!(row(&compared, "idle", "response", "p50").exact);
    // One invocation of each is enough, for the conclusion and for a gate.
    assert_eq!(compared.unit, CompareUnit::TwoRuns);
    let verdict = compared.verdict.join(" ");
    assert!(verdict.starts_with("NEW is worse than BASE"), "{verdict}");
    assert!(!verdict.contains("two runs"), "{verdict}");
    let gate = "response.p50 > +0ns";
    assert!(judge(gate, &compared).unwrap().failed);
    let text = terminal::compare(&compared, 110).to_string();
    let markdown = terminal::compare_markdown(&compared);
    assert_contains(
        &markdown,
        &[" figures were compared (tare compare)", "| exact |"],
    );
    assert_contains(&text, &["exact"]);
    // No interval is there, so there is no column of them.
    assert!(!text.contains("95 % interval"), "{text}");
    assert!(!markdown.contains("95 % interval"), "{markdown}");
    let same = between(&[counted(4_000)], &[counted(4_000)]).unwrap();
    assert!(!is_worse(&same) && same.can_tell);
    let judged = judge(gate, &same).unwrap();
    assert!(!judged.failed);
    assert_contains(&judged.sentence, &["passed"]);
    assert_contains(&same.verdict[0], &["is the same"]);
}

#[test]
fn runs_with_nothing_in_common_are_refused() {
    let woken = run("process", 1, 4_000, 9);
    let mut noise = Run::new(1);
    noise.prime(1, "process", &[100; 1_000]);
    let error = between(std::slice::from_ref(&woken), &[noise.analyse()]).unwrap_err();
    assert!(matches!(error, CompareError::Experiments { .. }), "{error}");
    let nothing = Run::new(1).analyse();
    let error = between(&[woken], &[nothing]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "NEW-1 has no figures: measure it, or continue it with `--resume`"
    );
}

#[test]
fn a_comparison_on_a_terminal_and_in_a_pull_request() {
    let compared = between(&invocations(6, 4_000, 1), &invocations(6, 4_400, 2)).unwrap();
    let text = terminal::compare(&compared, 110).to_string();
    for line in text.lines() {
        assert!(line.chars().count() <= 110, "{line}");
    }
    insta::assert_snapshot!("a_comparison_on_a_terminal", text);
    let markdown = terminal::compare_markdown(&compared);
    insta::assert_snapshot!("a_comparison_in_a_pull_request", markdown);
}

#[test]
fn figures_of_which_one_side_has_fewer_repetitions_are_compared_too() {
    let two = |offset: u64, failed: bool, blocks: u32| {
        let mut run = Run::new(1);
        for block in 1..=blocks {
            for target in ["process", "crun"] {
                if failed && block == 3 && target == "crun" {
                    run.failed(block, target, "prime", "the agent was killed");
                    continue;
                }
                let durations: Vec<u64> = (0..1_000)
                    .map(|n| 1_000 + offset + u64::from(block) + n % 7)
                    .collect();
                run.prime(block, target, &durations);
            }
        }
        run.analyse()
    };
    let compared = between(&[two(0, false, 8)], &[two(500, true, 8)]).unwrap();
    let medians: Vec<&ComparedRow> = (compared.rows.iter())
        .filter(|row| (row.measure.as_str(), row.figure.as_str()) == ("duration", "p50"))
        .collect();
    assert_eq!(medians.len(), 2);
    // Two tables of their own: 2 of C(16, 8), and 2 of C(15, 7) or half of that, each twice.
    for median in medians {
        assert!(median.is_worse, "{median:?}");
        assert!(
            median.adjusted_p_value.unwrap() <= 4.0 / 6_435.0 + 1e-9,
            "{median:?}"
        );
    }
    // One table more asks for one repetition more.
    assert_eq!((compared.needed, compared.can_tell), (5, true));
    // All name the same number.
    let few = between(&[two(0, false, 3)], &[two(500, true, 3)]).unwrap();
    assert_eq!(
        few.verdict[0],
        "The comparison is inconclusive: it needs 5 runs of each, not 3 and 2 to 3."
    );
    let markdown = terminal::compare_markdown(&few);
    assert_contains(&markdown, &["No figure could be judged"]);
    for other in ["needs 4", "not shown to differ"] {
        assert!(!markdown.contains(other), "{markdown}");
    }
    for row in &few.rows {
        let why = row.refused.as_deref().unwrap_or_default();
        assert!(!why.contains("needs 4"), "{why}");
    }
}

#[test]
fn what_only_the_estimates_of_the_clock_differ_by_is_no_difference() {
    let made = |faster: f64| {
        let mut run = Run::new(1);
        for block in 1..=6 {
            let durations = Vec::from_iter((0..2_000).map(|n| 2_600_000 + 26 * (n % 7)));
            let cell = run.prime(block, "process", &durations);
            for frequency in &mut measured(cell).frequencies {
                frequency.hz *= faster;
            }
        }
        run.analyse()
    };
    let mean = |compared: &Comparison| row(compared, "idle", "duration", "mean").clone();
    let compared = between(&[made(1.0)], &[made(1.0 + 5e-7)]).unwrap();
    assert_alike(&compared);
    let row = mean(&compared);
    assert!(row.adjusted_p_value.unwrap() < 0.05, "{row:?}");
    assert_contains(
        &row.refused.unwrap(),
        &["the uncertainty of the frequencies"],
    );
    // More than both may be off.
    let compared = between(&[made(1.0)], &[made(1.001)]).unwrap();
    assert!(mean(&compared).differs, "{compared:?}");
}

#[test]
fn a_gate_lists_what_is_beyond_and_what_is_unknown() {
    let made = |idle: u64, slow: u64| {
        let mut run = Run::new(1);
        for block in 1..=6 {
            let schedule = Schedule::under(&["idle", "dd"]);
            run.woken(block, schedule, |_, phase, n| match phase {
                0 => idle + n % 50,
                _ if n % 10 < slow => 90_000 + n % 50,
                _ => 4_000 + n % 50,
            });
        }
        run.analyse()
    };
    let compared = between(&[made(4_000, 4)], &[made(8_000, 6)]).unwrap();
    let judge = |gate: &str| {
        let gate: ShiftGate = gate.parse().unwrap();
        gate.judge(&compared, true).unwrap()
    };
    let both = judge("latency.p50 > +5%");
    assert!(both.failed);
    let unknown =
        "Gate not passed: whether wakeup/latency.p50 of process under dd, phase 1 is beyond";
    assert_contains(
        &both.sentence,
        &["Gate failed: wakeup/latency.p50 of process", unknown],
    );
    assert!(judge("latency.p50{load=dd} > +5%").failed);
    assert!(!judge("latency.p50{load=idle} > +500%").failed);
}

#[test]
fn sides_without_a_common_condition_are_named_by_their_conditions() {
    let [base, new] = [10, 22].map(|size| {
        let mut run = Run::new(1);
        let batch = timed(&[4_000; 40], Fold::default());
        run.done(1, "process", "prime", Some(size), batch);
        run.analyse()
    });
    let error = between(&[base], &[new]).unwrap_err().to_string();
    let sides = "the first has process, prime 10; the second has process, prime 22. ";
    assert_contains(&error, &[sides]);
}

#[test]
fn a_figure_that_is_refused_is_marked_in_a_table_of_figures() {
    let [base, new] = [24, 26].map(|slow| {
        let mut run = Run::new(1);
        for block in 1..=2 {
            run.woken(block, Schedule::of("process"), |_, _, n| {
                match n % 50 < slow {
                    true => 60_000,
                    false => 5_000,
                }
            });
        }
        run.analyse()
    });
    let markdown = terminal::compare_markdown(&between(&[base], &[new]).unwrap());
    let marked = markdown
        .lines()
        .filter(|line| line.ends_with("| refused |"));
    let marked = Vec::from_iter(marked.filter_map(|line| line.split('|').nth(1)));
    assert_eq!(marked, [" latency.p50 "]);
}

#[test]
fn what_is_refused_for_one_reason_is_told_once_and_by_runs() {
    let mut run = Run::new(1);
    for block in 1..=4 {
        for (target, repetitions) in [("process", 100), ("crun", 200)] {
            for size in [10, 22] {
                let durations = vec![500 + u64::from(block); repetitions + size];
                let folded = timed(&durations, Fold::default());
                run.done(block, target, "prime", Some(size as u64), folded);
            }
            // Half of the runs have a gap.
            let gaps = if block > 2 { 1 } else { 0 };
            run.gap(block, target, evenly(2_600_000, gaps, 1_300));
        }
    }
    let report = run.analyse();
    let sides = sides_by("target", "run", report.run()).unwrap();
    let compared = compare(&sides[0].0, &sides[0].1).unwrap();
    let markdown = terminal::compare_markdown(&compared);
    let p99 = markdown.lines().filter(|line| line.contains("p99 needs"));
    assert_eq!(
        Vec::from_iter(p99),
        [
            "- Refused: duration.p99 of process and crun, prime 10; net.p99 of process and crun, prime 10; duration.p99 of process and crun, \
             prime 22; net.p99 of process and crun, prime 22: p99 needs 1,000 samples in each run, and runs of each of these have fewer: measure longer, not more often."
        ]
    );
    let half = markdown
        .lines()
        .filter(|line| line.ends_with(": 2 of 4 runs have it."));
    assert_eq!(half.count(), 1, "{markdown}");
}
