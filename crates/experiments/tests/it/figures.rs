//! Runs with known answers: what rows, sentences and CSV files say of them.

use proptest::prelude::*;
use tare_figures::format::Numbers;
use tare_figures::notices::Severity;
use tare_figures::rows::Row;
use tare_figures::rows::flat::FlatRow;
use tare_pages::{Report, RunData, page, terminal};
use tare_results::CellState;
use tare_testkit::assert_contains;

use crate::synthetic::{
    self, Fold, HZ, Run, analyse, csv, evenly, figure, measured, row, shown, spin, timed, verdict,
};

/// Makes 1,000 durations with one delay of each class: mean 1,024.3 cycles.
fn one_of_each_class() -> Vec<u64> {
    let mut durations = vec![1_000; 1_000];
    durations[100] = 1_300;
    durations[350] = 2_000;
    durations[600] = 5_000;
    durations[850] = 20_000;
    durations
}

fn near(given: Option<f64>, expected: f64) {
    let given = given.unwrap();
    let scale = expected.abs().max(1e-300);
    assert!(
        ((given - expected) / scale).abs() < 1e-9,
        "{given} instead of {expected}"
    );
}

fn refused(row: Option<&Row>) -> String {
    row.unwrap().over.as_ref().unwrap_err().to_string()
}

fn files(analysis: &Report) -> Vec<(String, String)> {
    let mut stories = analysis.stories();
    stories.next().unwrap().csv(analysis.run())
}

fn prime(durations: &[u64]) -> Report {
    let mut run = Run::new(1);
    run.prime(1, "process", durations);
    run.analyse()
}

/// Makes a run for each of these durations.
fn in_runs(each: &[u64]) -> Report {
    let mut run = Run::new(1);
    for (block, cycles) in (1..).zip(each) {
        run.prime(block, "process", &[*cycles; 50]);
    }
    run.analyse()
}

#[test]
fn a_timed_cell_with_one_delay_of_each_class() {
    let analysis = prime(&one_of_each_class());
    let of = |name: &str| figure(&analysis, name);
    near(of("duration.mean"), 1_024.3);
    near(
        row(&analysis, "duration.mean").map(|row| row.over.as_ref().unwrap().estimate),
        1_024.3 / HZ * 1e9,
    );
    let squares: f64 = one_of_each_class()
        .iter()
        .map(|&d| (d as f64 - 1_024.3).powi(2))
        .sum();
    near(of("duration.sd"), (squares / 1_000.0).sqrt());
    for (name, cycles) in [
        ("duration.min", 1_000.0),
        ("duration.p50", 1_000.0),
        ("duration.p99", 1_000.0),
        ("duration.max", 20_000.0),
        // 52 cycles of the fenced region, 60 between repetitions, 84 steps.
        ("net.mean", 1_024.3 - 52.0),
        ("net.max", 19_948.0),
        ("dead.mean", 60.0 * 999.0 / 1_000.0),
        ("step.mean", (1_024.3 - 52.0) / 84.0),
        (
            "delayed.share{above=400cycles}",
            (975.7 + 3_975.7 + 18_975.7) / 1_024_300.0,
        ),
        (
            "delayed.share{above=2000cycles}",
            (3_975.7 + 18_975.7) / 1_024_300.0,
        ),
    ] {
        near(of(name), cycles);
    }
    // Ten of a thousand lie beyond p99, one beyond p99.9.
    assert_eq!(
        refused(row(&analysis, "duration.p99.9")),
        "p99.9 needs 10,000 samples in each run, a run has 1,000: measure longer, not more often"
    );
    for (class, size) in [("A", 275.7), ("B", 975.7), ("C", 3_975.7), ("D", 18_975.7)] {
        near(of(&format!("delays.total{{class={class}}}")), 1.0);
        near(of(&format!("delays.share{{class={class}}}")), 1e-3);
        near(of(&format!("delay.mean{{class={class}}}")), size);
    }
}

#[test]
fn the_csv_row_is_the_study_s() {
    let mut run = Run::new(1);
    run.prime(1, "process", &one_of_each_class());
    let copied = timed(&[500; 100], Fold::default());
    run.done(1, "process", "copy", Some(100), copied);
    run.prime(2, "process", &[1_000; 100]);
    // Equal durations have no spread and no delays, and delays that are not there have no size.
    let files = files(&run.analyse());
    let files = files.iter().map(|(name, csv)| format!("{name}\n{csv}"));
    insta::assert_snapshot!(files.collect::<Vec<_>>().join("\n"));
}

/// Makes a spin of 22,000,000 cycles with 100 gaps of 10,021 in even distances.
fn regular_gaps(fold: Fold) -> synthetic::Folded {
    let gaps: Vec<(u64, u64)> = (0..100).map(|n| (150_000 + n * 200_000, 10_021)).collect();
    spin(1_000_000, 20, &gaps, fold)
}

fn gap(folded: synthetic::Folded) -> Report {
    let mut run = Run::new(1);
    run.gap(1, "process", folded);
    run.analyse()
}

#[test]
fn a_spin_with_regular_gaps() {
    let analysis = gap(regular_gaps(Fold::above(1_300)));
    let squares = 499_950.0 * (4.0 + 0.0) + 100.0 * (10_021.0 - 22.0_f64).powi(2);
    for (name, expected) in [
        ("quiet.mean", 21.0),
        ("iteration.mean", 22.0),
        ("iteration.sd", (squares / 1e6).sqrt()),
        ("threshold.max", 1_300.0),
        // Each gap took 10,021 less the 21 that the iteration would have lasted.
        ("lost.share", 1.0 / 22.0),
        ("gaps.total", 100.0),
        ("gaps.rate", 100.0 / (22e6 / HZ)),
        ("gap.max", 10_021.0),
        ("gap.p50", 10_021.0),
        ("periodic.share", 1.0),
    ] {
        near(figure(&analysis, name), expected);
    }
    assert!((figure(&analysis, "period").unwrap() - 200_000.0).abs() < 1.0);
    assert!(refused(row(&analysis, "gap.p99")).contains("needs 1,000 samples"));
}

#[test]
fn the_share_in_delays_is_the_sum_of_parts_over_the_sum_of_wholes() {
    // Only one of three runs has a delay; the others weigh as much as it does.
    let mut run = Run::new(1);
    let quiet = [1_000; 1_000];
    let mut delayed = quiet;
    delayed[500] = 13_000;
    for (block, durations) in (1..).zip([quiet, delayed, quiet]) {
        run.prime(block, "process", &durations);
    }
    let analysis = run.analyse();
    let mean = 1_012_000.0 / 1_000.0;
    let row = row(&analysis, "delayed.share{above=2000cycles}").unwrap();
    let over = row.over.as_ref().unwrap();
    near(Some(over.estimate), (13_000.0 - mean) / 3_012_000.0);
    assert!(
        over.interval.as_ref().unwrap().low < over.estimate / 3.0,
        "{over:?}"
    );
}

#[test]
fn one_run_and_runs_that_agree_say_nothing_of_how_much_others_may_differ() {
    for runs in 1..=3 {
        let mut run = Run::new(26);
        for block in 1..=runs {
            run.gap(block, "process", evenly(2_600_000_000, 100, 1_300));
        }
        let analysis = run.analyse();
        assert!(row(&analysis, "lost.share").unwrap().estimate() > Some(0.0));
        for row in &analysis.rows().0 {
            let has_interval = row.over.as_ref().is_ok_and(|over| over.interval.is_ok());
            assert!(!has_interval, "{runs} runs: {row:?}");
        }
        for text in [
            terminal::render(&analysis, 120, false),
            verdict(&analysis).join(" "),
        ] {
            assert!(
                !text.contains("CI") && !text.contains('±'),
                "{runs} runs: {text}"
            );
        }
    }
}

#[test]
fn the_mean_of_a_class_is_that_of_all_delays_of_all_runs() {
    // Ten long delays in one run, and one short one in the other.
    let mut run = Run::new(1);
    for (block, number, size) in [(1, 10, 13_000), (2, 1, 9_000)] {
        let mut durations = [1_000; 1_000];
        durations[100..100 + number].fill(size);
        run.prime(block, "process", &durations);
    }
    let analysis = run.analyse();
    let class = |measure: &str| row(&analysis, &format!("{measure}{{class=D}}")).unwrap();
    let delays: f64 = class("delays.total")
        .each
        .iter()
        .filter_map(|it| it.figure.value())
        .sum();
    assert_eq!(delays, 11.0);
    let means = [(10.0, 13_000.0 - 1_120.0), (1.0, 9_000.0 - 1_008.0)];
    let mean = means.iter().map(|(n, mean)| n * mean).sum::<f64>() / 11.0;
    near(class("delay.mean").estimate(), mean);
}

#[test]
fn classes_below_the_threshold_are_not_counted_as_none() {
    let analysis = gap(regular_gaps(Fold::above(1_300)));
    let counts = ["A", "B", "C", "D"]
        .map(|class| figure(&analysis, &format!("gap-class.total{{class={class}}}")));
    assert_eq!(counts, [None, None, Some(0.0), Some(100.0)]);
    let limits =
        ["400", "2000"].map(|limit| figure(&analysis, &format!("delayed{{above={limit}cycles}}")));
    assert!(limits[0].is_none() && limits[1].is_some(), "{limits:?}");
    let csv = csv(&analysis);
    assert_contains(&csv, &["\n,1000000,22,", ",,,,,0,,100,9999\n"]);
}

#[test]
fn a_full_list_is_said_and_what_depends_on_it_is_withheld() {
    // The longest gap is not among those listed.
    let mut gaps: Vec<(u64, u64)> = (0..100).map(|n| (150_000 + n * 200_000, 10_021)).collect();
    gaps[90].1 = 20_021;
    let fold = Fold {
        capacity: 40,
        ..Fold::above(1_300)
    };
    let analysis = gap(spin(1_000_000, 20, &gaps, fold));
    near(figure(&analysis, "gaps.total"), 100.0);
    near(figure(&analysis, "lost.share"), 1_010_000.0 / 22_010_000.0);
    near(figure(&analysis, "gap.max"), 20_021.0);
    for withheld in [
        "gap.p50",
        "iteration.sd",
        "gap-class.total{class=D}",
        "delay.mean{class=D}",
        "delayed.share{above=2000cycles}",
    ] {
        let why = refused(row(&analysis, withheld));
        assert_contains(&why, &["beyond the end of a list"]);
    }
    assert!(csv(&analysis).ends_with(",,,,,,,,\n"));
    let summary = analysis.summary();
    assert_eq!(summary.alarms[0].id, "list-full");
    assert_contains(&summary.alarms[0].text, &["40 of 100"]);
    let mut cautions = summary.verdict.cautions.iter();
    assert!(cautions.any(|caution| caution.contains("40 of 100")));
}

#[test]
fn runs_whose_list_had_room_do_not_speak_for_those_whose_list_was_full() {
    let mut run = Run::new(1);
    for (block, capacity) in [(1, 100), (2, 40)] {
        let fold = Fold {
            capacity,
            ..Fold::above(1_300)
        };
        run.gap(block, "process", regular_gaps(fold));
    }
    let analysis = run.analyse();
    near(figure(&analysis, "gap.max"), 10_021.0);
    for withheld in ["gap.p50", "iteration.sd", "gap-class.rate{class=D}"] {
        let row = row(&analysis, withheld).unwrap();
        let values: Vec<bool> = (row.each.iter())
            .map(|each| each.figure.value().is_some())
            .collect();
        assert_eq!(
            (values.as_slice(), row.over.is_ok()),
            (&[true, false][..], false)
        );
    }
}

#[test]
fn nothing_is_lost_without_gaps_and_nearly_everything_to_a_huge_one() {
    let none = gap(spin(1_000, 26, &[], Fold::above(1_300)));
    assert_eq!(figure(&none, "lost.share"), Some(0.0));
    assert_eq!(figure(&none, "gaps.total"), Some(0.0));
    let huge = 1 << 42;
    // The counter wraps within the gap.
    let fold = Fold {
        first_tsc: u64::MAX - 20_000,
        ..Fold::above(1_300)
    };
    let analysis = gap(spin(1_001, 25, &[(10_400, huge)], fold));
    let (quiet, wall) = (26.0, huge as f64 + 26_000.0);
    near(figure(&analysis, "quiet.mean"), quiet);
    near(
        figure(&analysis, "lost.share"),
        (huge as f64 - quiet) / wall,
    );
    near(figure(&analysis, "gap.max"), huge as f64);
}

#[test]
fn no_interval_of_a_time_reaches_0_wherever_it_is_shown() {
    let analysis = in_runs(&[1_000, 1_000, 5_000]);
    let mean = row(&analysis, "duration.mean").unwrap();
    let interval = mean.over.as_ref().unwrap().interval.unwrap();
    // Plain, it would be 2,333 ± 5,737: "from 0 ns" would say nothing.
    assert!(interval.low > 0.0 && interval.low < mean.over.as_ref().unwrap().estimate);
    let of_mean = |row: &&FlatRow| row.measure == "duration" && row.figure == "mean";
    let flat = analysis.summary().figures.iter().find(of_mean).unwrap();
    assert_eq!(
        (flat.low, flat.high),
        (Some(interval.low), Some(interval.high))
    );
    let [low, high] =
        [interval.low, interval.high].map(|end| Numbers::PLAIN.rounded(end * HZ / 1e9));
    let text = terminal::render(&analysis, 120, false);
    assert_contains(&text, &[&format!("{low} to {high}")]);
}

#[test]
fn runs_are_the_unit_of_replication() {
    let analysis = in_runs(&[1_000, 1_010, 1_040]);
    let mean = row(&analysis, "duration.mean").unwrap();
    let cells: Vec<u32> = mean.each.iter().map(|run| run.cell).collect();
    assert_eq!(cells, [1, 2, 3]);
    let over = mean.over.as_ref().unwrap();
    let cycles = |ns: f64| Some(ns * HZ / 1e9);
    near(cycles(over.estimate), 3_050.0 / 3.0);
    near(cycles(over.lowest), 1_000.0);
    near(cycles(over.highest), 1_040.0);
    let interval = over.interval.unwrap();
    // Student's t at 97.5 % with 2 degrees of freedom is 4.302653; s is 20.816660.
    near(
        cycles((interval.high - interval.low) / 2.0),
        4.302_652_729_696_144 * 20.816_659_994_661_33 / 3_f64.sqrt(),
    );
    let text = terminal::render(&analysis, 100, false);
    assert_contains(&text, &["965 to 1,068"]);
}

#[test]
fn an_even_number_of_runs_has_its_median_in_the_middle() {
    near(figure(&in_runs(&[1_000, 1_010]), "duration.p50"), 1_005.0);
}

/// One run of `gap` with a stall of 2^30 cycles, and others without.
fn one_stalled_of(runs: u32) -> Report {
    let mut run = Run::new(1);
    for block in 1..=runs {
        let mut gaps: Vec<(u64, u64)> = (0..100).map(|n| (150_000 + n * 200_000, 10_021)).collect();
        if block == 2 {
            gaps.push((21_500_000, 1 << 30));
        }
        let folded = spin(1_000_000, 20, &gaps, Fold::above(1_300));
        run.gap(block, "process", folded);
    }
    run.analyse()
}

#[test]
fn one_stalled_run_takes_no_share_out_of_its_bounds() {
    for runs in [2, 3, 6] {
        let analysis = one_stalled_of(runs);
        let stalled = (1_u64 << 30) as f64;
        let lost = f64::from(runs) * 1e6 + stalled - 21.0;
        let wall = f64::from(runs) * 22e6 + stalled - 21.0;
        // What is lost of all time, as the pooled pictures show it.
        let share = figure(&analysis, "lost.share").unwrap();
        assert!((share - lost / wall).abs() < 1e-6, "{share}");
        for name in ["lost", "delayed{above=2000cycles}"] {
            let over = row(&analysis, name).unwrap().over.as_ref().unwrap();
            assert_eq!(over.interval.is_ok(), runs >= 3);
            let Ok(interval) = over.interval else {
                continue;
            };
            let inside = 0.0 < interval.low && interval.low < over.estimate;
            assert!(
                inside && over.estimate < interval.high && interval.high < 1.0,
                "{over:?}"
            );
        }
        let text = terminal::render(&analysis, 110, false);
        let page = page::render(&analysis);
        assert!(!text.contains('−'), "{text}");
        assert!(!page.contains('−'), "{runs} runs");
    }
}

/// Finds what a text calls a percentage and isn't from 0 to 100.
fn beyond_bounds(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('%') {
        let before = &text[..at];
        // A length in a style sheet stands before its sign without a blank.
        let Some(before) = before.strip_suffix(char::is_whitespace) else {
            continue;
        };
        let number =
            before.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','));
        let negative = number.ends_with(['-', '−']);
        let digits = before[number.len()..].replace(',', "");
        if digits
            .parse::<f64>()
            .is_ok_and(|percent| negative || percent > 100.0)
        {
            found.push(format!("{} %", &before[number.len()..]));
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_share_of_gap_leaves_its_bounds(
        runs in proptest::collection::vec((0_u64..200, 1_300_u64..1 << 24), 2..=3),
        stalled in 0_usize..3,
        stall in 1_u32..40,
        offset: u64,
    ) {
        let mut run = Run::new(1);
        for (number, (gaps, length)) in runs.iter().enumerate() {
            let step = length + 100_000;
            let mut gaps: Vec<(u64, u64)> = (0..*gaps).map(|n| (150_000 + n * step, *length)).collect();
            if number == stalled % runs.len() {
                let end = gaps.last().map_or(0, |(at, length)| at + length);
                gaps.push((end + 21_000, (1 << stall) + offset % (1 << stall)));
            }
            let folded = spin(1_000_000, 20, &gaps, Fold::above(1_300));
            run.gap(number as u32 + 1, "process", folded);
        }
        let analysis = run.analyse();
        let none = Vec::<String>::new();
        prop_assert_eq!(beyond_bounds(&terminal::render(&analysis, 110, false)), none.clone());
        prop_assert_eq!(beyond_bounds(&page::render(&analysis)), none);
        let mut shares = 0;
        for row in analysis.summary().figures.iter().filter(|row| row.unit == "1") {
            shares += usize::from(row.value.is_some());
            for end in [row.value, row.low, row.high].into_iter().flatten() {
                prop_assert!((0.0..=1.0).contains(&end), "{row:?}");
            }
        }
        prop_assert!(shares > 0);
    }
}

#[test]
fn percentages_beyond_their_bounds_are_found() {
    let text = "−98 % to 170 %, 5 %; width:120%; 100.0 %";
    assert_eq!(beyond_bounds(text), ["98 %", "170 %"]);
}

#[test]
fn different_work_for_one_size_is_an_error() {
    let mut run = Run::new(1);
    let broken = Fold {
        result: 9,
        ..Fold::default()
    };
    run.prime(1, "process", &[1_000; 50]);
    for size in [22, 26] {
        let folded = timed(&[900; 50], broken);
        run.done(1, "unikernel", "prime", Some(size), folded);
    }
    let analysis = run.analyse();
    let alarm = &analysis.summary().alarms[0];
    assert_eq!(alarm.severity, Severity::Error);
    assert_eq!(alarm.id, "work-differs");
    let differ = "The cells of prime 22 did not do the same work (process: result 8, 84 steps; unikernel: result 9, 84 steps).";
    assert_contains(&alarm.text, &[differ]);
}

#[test]
fn cells_without_figures_are_named_and_the_others_kept() {
    let mut run = Run::new(1);
    run.prime(1, "process", &[1_000; 50]);
    run.failed(1, "docker", "prime", "the daemon does not run; start it");
    run.missing(2, "process", "prime");
    run.left_out(2, "docker", "prime", "the rate before was too much");
    run.not_tried(2, "docker", "copy", "docker alone failed");
    // A list that is out of order contradicts itself.
    let mut gaps = regular_gaps(Fold::above(1_300));
    gaps.samples.events.reverse();
    run.gap(2, "process", gaps);
    let analysis = run.analyse();
    let summary = analysis.summary();
    assert_eq!((summary.planned, summary.done), (6, 1));
    let cells = summary.not_measured.iter();
    let cells = cells.map(|cell| format!("{} {:?}: {}", cell.id, cell.state, cell.reason));
    let cells = cells.collect::<Vec<_>>().join("\n");
    let page = page::render(&analysis);
    assert_contains(&page, &["<td>not tried</td>"]);
    let text = terminal::render(&analysis, 120, false);
    insta::assert_snapshot!(format!("{cells}\n\n{text}"));
}

#[test]
fn without_a_frequency_there_are_cycles_and_no_time() {
    let mut run = Run::new(1);
    let cell = run.gap(1, "process", regular_gaps(Fold::above(1_300)));
    measured(cell).frequencies.clear();
    let analysis = run.analyse();
    assert_eq!(row(&analysis, "gap.max").unwrap().unit, "cycles");
    assert_eq!(figure(&analysis, "gaps.rate"), None);
    assert_eq!(analysis.summary().alarms[0].id, "tsc-frequency-unknown");
    let verdict = &analysis.summary().verdict;
    let said = "to 100 interruptions; the longest took 10,021 cycles.";
    assert!(verdict.headline.ends_with(said), "{}", verdict.headline);
}

#[test]
fn where_most_runs_have_a_time_the_cycles_of_one_are_no_figure_of_all() {
    let mut run = Run::new(1);
    for block in 1..=6 {
        let cell = run.gap(block, "process", regular_gaps(Fold::above(1_300)));
        if block == 4 {
            measured(cell).frequencies.clear();
        }
    }
    let analysis = run.analyse();
    let longest = analysis.run().rows.0.iter();
    let longest = Vec::from_iter(longest.filter(|row| row.name().starts_with("gap.max")));
    assert_eq!(
        (longest.len(), longest[0].unit, longest[0].each.len()),
        (1, "ns", 5)
    );
    let alarm = &analysis.summary().alarms[0];
    assert_eq!(alarm.id, "tsc-frequency-unknown");
    assert_contains(
        &alarm.text,
        &["in cell 4", "left out where other runs have ns"],
    );
}

#[test]
fn a_spin_without_gaps_lost_nothing() {
    let analysis = gap(spin(1_000_000, 20, &[], Fold::above(1_300)));
    near(figure(&analysis, "gaps.total"), 0.0);
    near(figure(&analysis, "lost.share"), 0.0);
    near(figure(&analysis, "iteration.sd"), 1.0);
    for none in ["gap.max", "gap.p50", "period"] {
        assert!(row(&analysis, none).is_none(), "{none}");
    }
    let headline = &analysis.summary().verdict.headline;
    assert_eq!(
        headline,
        "CPU 1 was not interrupted for 500 ns or longer in 8.08 ms of spinning."
    );
}

#[test]
fn published_timing_is_less_its_own_region() {
    let mut run = Run::new(1);
    run.prime(1, "process", &[20, 30, 40]);
    let RunData {
        mut plan,
        machine,
        mut cells,
    } = run.data();
    let labels = plan.cells[0].labels.clone();
    plan.cells[0].labels = labels.with("timing", "published");
    if let CellState::Done(cell) = &mut cells[0].0 {
        cell.plan = plan.cells[0].clone();
    }
    let analysis = analyse(RunData {
        plan,
        machine,
        cells,
    });
    // The region has 26 cycles: 20 is shorter and becomes 0.
    near(figure(&analysis, "net.min"), 0.0);
    near(figure(&analysis, "net.max"), 14.0);
    assert_eq!(files(&analysis)[0].0, "noise-process-prime-published.csv");
}

#[test]
fn emulated_figures_are_marked_and_not_compared() {
    let mut run = Run::new(1);
    for block in 1..=3 {
        run.emulated = false;
        run.gap(block, "process", regular_gaps(Fold::above(1_300)));
        run.emulated = true;
        let folded = spin(1_000_000, 20, &[], Fold::above(1_300));
        run.gap(block, "unikernel", folded);
    }
    let analysis = run.analyse();
    let verdict = &analysis.summary().verdict;
    // They stand in tables, and in no sentence beside those of a machine.
    let text = terminal::render(&analysis, 120, false);
    assert_contains(&text, &["gap · unikernel (emulated)"]);
    for sentence in verdict.details.iter().chain([&verdict.headline]) {
        let is_told = sentence.contains("(emulated)") || sentence.contains("Compared");
        assert!(!is_told, "{sentence}");
    }
    assert_eq!(analysis.summary().alarms[0].id, "emulated");
}

proptest! {
    /// Compares with what anybody would compute from the raw durations.
    #[test]
    fn figures_agree_with_the_raw_durations(
        durations in proptest::collection::vec(1_u64..30_000, 1..300),
        pause in 0_u64..200,
    ) {
        let fold = Fold { pause, ..Fold::default() };
        let mut run = Run::new(1);
        run.done(1, "process", "prime", Some(22), timed(&durations, fold));
        let analysis = run.analyse();
        let of = |name: &str| figure(&analysis, name).unwrap();
        let n = durations.len() as f64;
        let sum: u64 = durations.iter().sum();
        let mean = sum as f64 / n;
        prop_assert!((of("duration.mean") - mean).abs() < 1e-9 * mean);
        let (max, min) = (durations.iter().max().unwrap(), durations.iter().min().unwrap());
        prop_assert!((of("duration.max") - *max as f64).abs() < 1e-6);
        prop_assert!((of("duration.min") - *min as f64).abs() < 1e-6);
        let bounds = [("A", 150, 400), ("B", 400, 2_000), ("C", 2_000, 6_000), ("D", 6_000, 1 << 40)];
        for (class, above, up_to) in bounds {
            // In whole numbers, so that no rounding decides: d·n − Σd against bound·n.
            let beyond = |d: u64, bound: u64| d * durations.len() as u64 > sum + bound * durations.len() as u64;
            let inside = |d: &&u64| beyond(**d, above) && !beyond(**d, up_to);
            let counted = durations.iter().filter(inside).count();
            prop_assert_eq!(of(&format!("delays.total{{class={class}}}")), counted as f64);
        }
        let late: f64 = durations.iter().map(|&d| d as f64 - mean).filter(|d| *d > 400.0).sum();
        let delayed = of("delayed{above=400cycles}");
        prop_assert!((delayed - late / sum as f64).abs() < 1e-9);
        let dead = pause as f64 * (n - 1.0) / n;
        prop_assert!((of("dead.mean") - dead).abs() < 1e-6);
    }
}

#[test]
fn the_share_at_a_clock_s_ticks_is_of_the_runs_that_show_the_clock() {
    let mut run = Run::new(1);
    for block in [1, 2] {
        run.gap(block, "process", regular_gaps(Fold::above(1_300)));
    }
    let few = spin(1_000_000, 20, &[(150_000, 10_021)], Fold::above(1_300));
    run.gap(3, "process", few);
    let analysis = run.analyse();
    near(figure(&analysis, "periodic.share"), 1.0);
    let [period, periodic] = ["period", "periodic"].map(|name| row(&analysis, name).unwrap());
    assert_eq!([period.each.len(), periodic.each.len()], [2, 2]);
}

#[test]
fn a_rate_is_the_same_in_the_table_and_in_the_picture() {
    let mut run = Run::new(1);
    for (block, hz) in [(1, HZ), (2, 1.5 * HZ)] {
        let cell = run.gap(block, "process", evenly(HZ as u64, 400, 1_300));
        for frequency in &mut measured(cell).frequencies {
            frequency.hz = hz;
        }
    }
    let analysis = run.analyse();
    // 800 in 1 2/3 s.
    assert!((figure(&analysis, "gaps.rate").unwrap() - 480.0).abs() < 0.1);
    let (_, page) = shown(&analysis);
    assert_contains(&page, &["480/s"]);
}

#[test]
fn a_period_of_few_runs_says_of_how_many() {
    let mut run = Run::new(1);
    run.gap(1, "process", regular_gaps(Fold::above(1_300)));
    for block in 2..=4 {
        run.gap(block, "process", evenly(HZ as u64 / 10, 5, 1_300));
    }
    let (_, page) = shown(&run.analyse());
    assert_contains(&page, &["from 1 of 4 runs"]);
    assert!(!page.contains("these runs"));
}

#[test]
fn a_frequency_that_a_cell_lacks_or_has_in_common_is_counted() {
    let mut run = Run::new(1);
    let hz = [Some(0.0), Some(0.0), None, Some(200.0), Some(100.0)];
    for (block, ppm) in (1..).zip(hz) {
        let cell = run.gap(block, "process", evenly(HZ as u64 / 10, 5, 1_300));
        let frequencies = &mut measured(cell).frequencies;
        frequencies.truncate(usize::from(ppm.is_some()));
        for frequency in frequencies {
            frequency.hz = HZ * (1.0 + ppm.unwrap_or_default() * 1e-6);
        }
    }
    let (_, page) = shown(&run.analyse());
    let told = "the median of the 4 of 5 cells that know it, 200 ppm from lowest to highest";
    assert_contains(&page, &[told]);
}

#[test]
fn an_empty_region_that_is_shorter_than_a_step_is_none() {
    let mut run = Run::new(26);
    let cell = run.prime(1, "unikernel", &[520; 1_000]);
    measured(cell).calibration.fenced_region_cycles = 1;
    let analysis = run.analyse();
    let [duration, net] = ["duration.mean", "net.mean"].map(|name| figure(&analysis, name));
    assert_eq!(duration, net);
    let (_, page) = shown(&analysis);
    assert_contains(&page, &["<td>0 ns 0 cycles</td>"]);
}
