//! Runs with known answers: what the summary and the CSV files say of them.

use crate::synthetic::{self, Fold, HZ, Run, measured, spin, timed};
use proptest::prelude::*;
use tare_report::analysis::{
    Alarm, CombinedFigures, GapFigures, Observed, Over, Severity, State, Time, TimedFigures,
};
use tare_report::{Analysis, RunData, csv, html, terminal};
use tare_results::CellState;

/// Makes 1,000 durations with one delay of each class: mean 1,024.3 cycles.
fn one_of_each_class() -> Vec<u64> {
    let mut durations = vec![1_000; 1_000];
    durations[100] = 1_300;
    durations[350] = 2_000;
    durations[600] = 5_000;
    durations[850] = 20_000;
    durations
}

fn timed_of(analysis: &Analysis, cell: usize) -> &TimedFigures {
    analysis.summary().cells[cell].figures.timed().unwrap()
}

fn gap_of(analysis: &Analysis, cell: usize) -> &GapFigures {
    analysis.summary().cells[cell].figures.gap().unwrap()
}

fn near(given: f64, expected: f64) {
    let scale = expected.abs().max(1e-300);
    assert!(
        ((given - expected) / scale).abs() < 1e-9,
        "{given} instead of {expected}"
    );
}

#[test]
fn a_timed_cell_with_one_delay_of_each_class() {
    let mut run = Run::new(1);
    run.done(
        1,
        "process",
        "prime",
        Some(22),
        timed(&one_of_each_class(), Fold::default()),
    );
    let analysis = run.data().analyse();
    let figures = timed_of(&analysis, 0);

    near(figures.raw.mean.cycles, 1_024.3);
    near(figures.raw.mean.ns.unwrap(), 1_024.3 / HZ * 1e9);
    let squares: f64 = one_of_each_class()
        .iter()
        .map(|&d| (d as f64 - 1_024.3).powi(2))
        .sum();
    let sd = (squares / 1_000.0).sqrt();
    near(figures.raw.sd.cycles, sd);
    let study = figures.study_interval.unwrap();
    near(
        study.half_width(),
        1.644_853_626_951_472_6 * sd / 1_000_f64.sqrt(),
    );
    assert_eq!(
        (study.level, study.over, study.repetitions),
        (0.9, Over::Samples, 1_000)
    );

    assert_eq!(figures.raw.min.cycles, 1_000.0);
    assert_eq!(figures.raw.median.cycles, 1_000.0);
    assert_eq!(figures.raw.p99.value, Some(Time::new(1_000.0, Some(HZ))));
    assert_eq!(figures.raw.max.cycles, 20_000.0);
    // Ten of a thousand lie beyond p99, one beyond p99.9.
    assert_eq!(figures.raw.p99_9.value, None);
    assert_eq!(figures.raw.p99_9.samples_needed, Some(10_000));

    let classes: Vec<_> = figures
        .classes
        .iter()
        .map(|c| (c.class, c.count.unwrap()))
        .collect();
    assert_eq!(classes, [('A', 1), ('B', 1), ('C', 1), ('D', 1)]);
    for (class, size) in figures
        .classes
        .iter()
        .zip([275.7, 975.7, 3_975.7, 18_975.7])
    {
        near(class.mean.unwrap().cycles, size);
        assert_eq!(class.observed, Observed::Fully);
    }
    let shares: Vec<f64> = figures
        .shares
        .iter()
        .map(|share| share.share.unwrap())
        .collect();
    near(shares[0], (975.7 + 3_975.7 + 18_975.7) / 1_024_300.0);
    near(shares[1], (3_975.7 + 18_975.7) / 1_024_300.0);

    // 52 cycles of the fenced region, 60 between repetitions.
    assert_eq!(figures.region.cycles, 52.0);
    near(figures.net.mean.cycles, 1_024.3 - 52.0);
    assert_eq!(figures.net.max.cycles, 19_948.0);
    near(figures.dead_time.cycles, 60.0 * 999.0 / 1_000.0);
}

#[test]
fn the_csv_row_is_the_study_s() {
    let mut run = Run::new(1);
    run.done(
        1,
        "process",
        "prime",
        Some(22),
        timed(&one_of_each_class(), Fold::default()),
    );
    run.done(
        1,
        "process",
        "copy",
        Some(100),
        timed(&[500; 100], Fold::default()),
    );
    run.done(
        2,
        "process",
        "prime",
        Some(22),
        timed(&[1_000; 100], Fold::default()),
    );
    let files = csv::files(&run.data().analyse());
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["noise-process-prime.csv", "noise-process-copy.csv"]);
    let lines: Vec<&str> = files[0].1.lines().collect();
    assert_eq!(
        lines[0],
        "limit-or-size,repetitions,mean,sd,countA,sizeA,countB,sizeB,countC,sizeC,countD,sizeD"
    );
    let fields: Vec<&str> = lines[1].split(',').collect();
    assert_eq!(fields.len(), 12);
    assert_eq!(fields[..3], ["22", "1000", "1024.3"]);
    for (field, expected) in [
        (4, 1.0),
        (5, 275.7),
        (7, 975.7),
        (9, 3_975.7),
        (11, 18_975.7),
    ] {
        near(fields[field].parse().unwrap(), expected);
    }
    // Equal durations have no spread and no delays, and delays that are not there have no size.
    assert_eq!(lines[2], "22,100,1000,0,0,,0,,0,,0,");
    assert_eq!(files[1].1.lines().nth(1), Some("100,100,500,0,0,,0,,0,,0,"));
}

/// Makes a spin of 22,000,000 cycles with 100 gaps of 10,021 in even distances.
fn regular_gaps(fold: Fold) -> synthetic::Folded {
    let gaps: Vec<(u64, u64)> = (0..100).map(|n| (150_000 + n * 200_000, 10_021)).collect();
    spin(1_000_000, 20, &gaps, fold)
}

fn from(threshold: u64) -> Fold {
    Fold {
        threshold,
        ..Fold::default()
    }
}

#[test]
fn a_spin_with_regular_gaps() {
    let mut run = Run::new(1);
    run.done(1, "process", "gap", None, regular_gaps(from(1_300)));
    let analysis = run.data().analyse();
    let gap = gap_of(&analysis, 0);

    assert_eq!(gap.wall.cycles, 22_000_000.0);
    assert_eq!(gap.gaps, 100);
    assert_eq!(gap.quiet.cycles, 21.0);
    assert_eq!(gap.mean.cycles, 22.0);
    // Each gap took 10,021 less the 21 that the iteration would have lasted.
    assert_eq!(gap.lost.cycles, 1_000_000.0);
    near(gap.share_lost, 1.0 / 22.0);
    near(gap.gaps_per_second.unwrap(), 100.0 / (22e6 / HZ));
    assert_eq!(gap.longest.unwrap().cycles, 10_021.0);
    assert_eq!(gap.median.unwrap().cycles, 10_021.0);
    assert_eq!(gap.p99.samples_needed, Some(1_000));
    let squares = 499_950.0 * (4.0 + 0.0) + 100.0 * (10_021.0 - 22.0_f64).powi(2);
    near(gap.sd.unwrap().cycles, (squares / 1e6).sqrt());

    let period = gap.period.unwrap();
    assert!((period.period.cycles - 200_000.0).abs() < 1.0);
    assert_eq!((period.share_of_gaps, period.share_of_ticks), (1.0, 1.0));
    let interval = gap.share_block_interval.unwrap();
    assert_eq!((interval.over, interval.repetitions), (Over::Blocks, 20));
    assert!(interval.low < gap.share_lost && gap.share_lost < interval.high);
}

#[test]
fn classes_below_the_threshold_are_not_counted_as_none() {
    let mut run = Run::new(1);
    run.done(1, "process", "gap", None, regular_gaps(from(1_300)));
    let analysis = run.data().analyse();
    let classes: Vec<_> = gap_of(&analysis, 0)
        .classes
        .iter()
        .map(|class| (class.count, class.observed))
        .collect();
    assert_eq!(
        classes,
        [
            (None, Observed::NotAtAll),
            (Some(0), Observed::Partly),
            (Some(0), Observed::Fully),
            (Some(100), Observed::Fully),
        ]
    );
    let row = csv::files(&analysis)[0]
        .1
        .lines()
        .nth(1)
        .unwrap()
        .to_owned();
    let fields: Vec<&str> = row.split(',').collect();
    assert_eq!(fields[..3], ["", "1000000", "22"]);
    assert_eq!(fields[4..], ["", "", "", "", "0", "", "100", "9999"]);
}

#[test]
fn a_full_list_is_said_and_what_depends_on_it_is_withheld() {
    let fold = Fold {
        capacity: 40,
        ..from(1_300)
    };
    let mut run = Run::new(1);
    run.done(1, "process", "gap", None, regular_gaps(fold));
    let analysis = run.data().analyse();
    let gap = gap_of(&analysis, 0);
    assert_eq!((gap.gaps, gap.delays.kept), (100, 40));
    assert_eq!(gap.lost.cycles, 1_000_000.0);
    assert_eq!(gap.longest.unwrap().cycles, 10_021.0);
    assert_eq!((gap.sd, gap.share_block_interval), (None, None));
    let last = gap.classes.last().unwrap();
    assert_eq!((last.count, last.observed), (Some(40), Observed::Partly));
    assert!(csv::files(&analysis)[0].1.ends_with(",,,,,,,,\n"));
    let alarm = &analysis.alarms()[0];
    assert_eq!(alarm.id(), "list-full");
    assert!(alarm.to_string().contains("40 of 100"), "{alarm}");
    assert!(
        analysis
            .summary()
            .verdict
            .cautions
            .iter()
            .any(|c| c.contains("40 of 100"))
    );
}

#[test]
fn runs_are_the_unit_of_replication() {
    let mut run = Run::new(1);
    for (block, cycles) in [(1, 1_000), (2, 1_010), (3, 1_040)] {
        run.done(
            block,
            "process",
            "prime",
            Some(22),
            timed(&[cycles; 50], Fold::default()),
        );
    }
    let analysis = run.data().analyse();
    let summary = analysis.summary();
    assert_eq!(summary.combinations.len(), 1);
    let combination = &summary.combinations[0];
    assert_eq!(
        (combination.runs, combination.cells.as_slice()),
        (3, &[1, 2, 3][..])
    );
    let CombinedFigures::Timed(timed) = &combination.figures else {
        panic!("prime is timed");
    };
    let mean = timed.raw.mean;
    near(mean.figure.cycles, 3_050.0 / 3.0);
    assert_eq!(
        (mean.lowest.cycles, mean.highest.cycles),
        (1_000.0, 1_040.0)
    );
    let interval = mean.interval.unwrap();
    near(interval.estimate, 3_050.0 / 3.0);
    // Student's t at 97.5 % with 2 degrees of freedom is 4.302653; s is 20.816660.
    near(
        interval.half_width(),
        4.302_652_729_696_144 * 20.816_659_994_661_33 / 3_f64.sqrt(),
    );
    assert_eq!((interval.over, interval.repetitions), (Over::Runs, 3));
    assert_eq!(timed.repetitions, 150);
}

#[test]
fn an_even_number_of_runs_has_its_median_in_the_middle() {
    let mut run = Run::new(1);
    for (block, cycles) in [(1, 1_000), (2, 1_010)] {
        run.done(
            block,
            "process",
            "prime",
            Some(22),
            timed(&[cycles; 50], Fold::default()),
        );
    }
    let analysis = run.data().analyse();
    let CombinedFigures::Timed(timed) = &analysis.summary().combinations[0].figures else {
        panic!("prime is timed");
    };
    assert_eq!(timed.raw.median.figure.cycles, 1_005.0);
}

/// One run of `gap` with a stall of 2^30 cycles, and others without.
fn one_stalled_of(runs: u32) -> Analysis {
    let mut run = Run::new(1);
    for block in 1..=runs {
        let mut gaps: Vec<(u64, u64)> = (0..100).map(|n| (150_000 + n * 200_000, 10_021)).collect();
        if block == 2 {
            gaps.push((21_500_000, 1 << 30));
        }
        let folded = spin(1_000_000, 20, &gaps, from(1_300));
        run.done(block, "process", "gap", None, folded);
    }
    run.data().analyse()
}

#[test]
fn one_stalled_run_takes_no_share_out_of_its_bounds() {
    for runs in [2, 3, 6] {
        let analysis = one_stalled_of(runs);
        let CombinedFigures::Gap(gap) = &analysis.summary().combinations[0].figures else {
            panic!("gap is gap");
        };
        // What is lost of all time, as the pooled pictures show it.
        let lost: f64 = (0..runs as usize)
            .map(|cell| gap_of(&analysis, cell).lost.cycles)
            .sum();
        near(gap.share_lost.figure, lost / gap.wall.cycles);
        let shares = gap.shares.iter().filter_map(|share| share.share);
        for share in shares.chain([gap.share_lost]) {
            assert_eq!(share.interval.is_some(), runs >= 3);
            let Some(interval) = share.interval else {
                continue;
            };
            assert!(
                0.0 < interval.low && interval.low < share.figure,
                "{share:?}"
            );
            assert!(
                share.figure < interval.high && interval.high < 1.0,
                "{share:?}"
            );
        }
        let text = terminal::render(&analysis, 110, false);
        let page = html::render(&analysis);
        assert!(!text.contains('−'), "{text}");
        assert!(!page.contains('−'), "{runs} runs");
        if runs == 2 {
            assert!(text.contains("in 2 runs; an interval needs 3"), "{text}");
        }
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

/// Finds the intervals of shares in JSON that leave 0 to 1.
fn shares_beyond_bounds(value: &serde_json::Value, is_share: bool, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            let is_share = is_share || fields.get("unit").is_some_and(|unit| unit == "1");
            for key in ["low", "high", "figure", "value", "lowest", "highest"] {
                let number = fields.get(key).and_then(serde_json::Value::as_f64);
                if is_share && number.is_some_and(|number| !(0.0..=1.0).contains(&number)) {
                    found.push(format!("{key} in {value}"));
                }
            }
            for (key, field) in fields {
                shares_beyond_bounds(field, key.contains("share"), found);
            }
        }
        serde_json::Value::Array(all) => {
            for one in all {
                shares_beyond_bounds(one, is_share, found);
            }
        }
        _ => {}
    }
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
            let folded = spin(1_000_000, 20, &gaps, from(1_300));
            run.done(number as u32 + 1, "process", "gap", None, folded);
        }
        let analysis = run.data().analyse();
        let none = Vec::<String>::new();
        prop_assert_eq!(beyond_bounds(&terminal::render(&analysis, 110, false)), none.clone());
        prop_assert_eq!(beyond_bounds(&html::render(&analysis)), none.clone());
        let summary = serde_json::to_value(analysis.summary()).unwrap();
        let mut found = Vec::new();
        shares_beyond_bounds(&summary, false, &mut found);
        prop_assert_eq!(found, none);
        let shares = summary["figures"].as_array().unwrap().iter();
        let shares = shares.filter(|row| row["unit"] == "1" && row["value"].is_f64());
        prop_assert!(shares.count() > 0);
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
    run.done(
        1,
        "process",
        "prime",
        Some(22),
        timed(&[1_000; 50], Fold::default()),
    );
    run.done(1, "unikernel", "prime", Some(22), timed(&[900; 50], broken));
    run.done(1, "unikernel", "prime", Some(26), timed(&[900; 50], broken));
    let analysis = run.data().analyse();
    let Some(Alarm::WorkDiffers { what, done }) = analysis.alarms().first() else {
        panic!("{:?}", analysis.alarms());
    };
    assert_eq!(what, "prime 22");
    assert_eq!(done.len(), 2);
    assert_eq!(analysis.alarms()[0].severity(), Severity::Error);
}

#[test]
fn cells_without_figures_are_named_and_the_others_kept() {
    let mut run = Run::new(1);
    run.done(
        1,
        "process",
        "prime",
        Some(22),
        timed(&[1_000; 50], Fold::default()),
    );
    run.failed(1, "docker", "prime", "the daemon does not run; start it");
    run.missing(2, "process", "prime");
    run.left_out(2, "docker", "prime", "the rate before was too much");
    // A list that is out of order contradicts itself.
    let mut gaps = regular_gaps(from(1_300));
    gaps.samples.events.reverse();
    run.done(2, "process", "gap", None, gaps);
    let analysis = run.data().analyse();
    let summary = analysis.summary();
    assert_eq!((summary.planned, summary.done), (5, 1));
    let states: Vec<_> = summary
        .not_measured
        .iter()
        .map(|cell| (cell.id, cell.state))
        .collect();
    assert_eq!(
        states,
        [
            (2, State::Failed),
            (3, State::Missing),
            (4, State::LeftOut),
            (5, State::Contradictory)
        ]
    );
    let said = |text: &str| summary.verdict.cautions.iter().any(|c| c.starts_with(text));
    assert!(
        said("3 of 5 cells have no figures"),
        "{:?}",
        summary.verdict.cautions
    );
    let text = tare_report::terminal::render(&analysis, 120, false);
    assert!(
        text.contains("left out: the rate before was too much"),
        "{text}"
    );
    assert!(summary.not_measured[0].reason.contains("start it"));
    assert!(
        summary.not_measured[3]
            .reason
            .contains("measure the cell again")
    );
}

#[test]
fn without_a_frequency_there_are_cycles_and_no_time() {
    let mut run = Run::new(1);
    let cell = run.done(1, "process", "gap", None, regular_gaps(from(1_300)));
    measured(cell).frequencies.clear();
    let analysis = run.data().analyse();
    let gap = gap_of(&analysis, 0);
    assert_eq!((gap.longest.unwrap().ns, gap.gaps_per_second), (None, None));
    assert_eq!(analysis.alarms()[0].id(), "tsc-frequency-unknown");
    let headline = &analysis.summary().verdict.headline;
    assert!(headline.contains("10,021 cycles"), "{headline}");
}

#[test]
fn a_spin_without_gaps_lost_nothing() {
    let mut run = Run::new(1);
    run.done(
        1,
        "process",
        "gap",
        None,
        spin(1_000_000, 20, &[], from(1_300)),
    );
    let analysis = run.data().analyse();
    let gap = gap_of(&analysis, 0);
    assert_eq!((gap.gaps, gap.share_lost, gap.longest), (0, 0.0, None));
    assert_eq!((gap.median, gap.period), (None, None));
    assert_eq!(gap.sd.unwrap().cycles, 1.0);
    let headline = &analysis.summary().verdict.headline;
    assert!(
        headline.starts_with("CPU 1 was not interrupted for 500 ns or longer"),
        "{headline}"
    );
}

#[test]
fn published_timing_is_less_its_own_region() {
    let mut run = Run::new(1);
    run.done(
        1,
        "process",
        "prime",
        Some(22),
        timed(&[20, 30, 40], Fold::default()),
    );
    let RunData {
        mut plan,
        machine,
        mut cells,
    } = run.data();
    plan.cells[0].timing = "published".to_owned();
    if let CellState::Done(cell) = &mut cells[0].0 {
        cell.plan = plan.cells[0].clone();
    }
    let data = RunData {
        plan,
        machine,
        cells,
    };
    let analysis = data.analyse();
    let figures = timed_of(&analysis, 0);
    assert_eq!(figures.region.cycles, 26.0);
    // 20 is shorter than the region and becomes 0.
    assert_eq!(
        (figures.net.min.cycles, figures.net.max.cycles),
        (0.0, 14.0)
    );
    assert_eq!(
        csv::files(&analysis)[0].0,
        "noise-process-prime-published.csv"
    );
}

#[test]
fn emulated_figures_are_marked_and_not_compared() {
    let mut run = Run::new(1);
    for block in 1..=3 {
        run.emulated = false;
        run.done(block, "process", "gap", None, regular_gaps(from(1_300)));
        run.emulated = true;
        run.done(
            block,
            "unikernel",
            "gap",
            None,
            spin(1_000_000, 20, &[], from(1_300)),
        );
    }
    let analysis = run.data().analyse();
    let verdict = &analysis.summary().verdict;
    assert!(
        verdict.headline.contains("unikernel (emulated)"),
        "{}",
        verdict.headline
    );
    assert!(
        !verdict
            .details
            .iter()
            .any(|detail| detail.contains("Compared"))
    );
    assert_eq!(analysis.alarms()[0].id(), "emulated");
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
        let analysis = run.data().analyse();
        let figures = timed_of(&analysis, 0);
        let n = durations.len() as f64;
        let sum: u64 = durations.iter().sum();
        let mean = sum as f64 / n;
        prop_assert!((figures.raw.mean.cycles - mean).abs() < 1e-9 * mean);
        prop_assert_eq!(figures.raw.max.cycles, *durations.iter().max().unwrap() as f64);
        prop_assert_eq!(figures.raw.min.cycles, *durations.iter().min().unwrap() as f64);
        for class in &figures.classes {
            // In whole numbers, so that no rounding decides: d·n − Σd against bound·n.
            let beyond = |d: u64, bound: u64| d * durations.len() as u64 > sum + bound * durations.len() as u64;
            let inside = |d: &&u64| {
                beyond(**d, class.above_cycles) && class.up_to_cycles.is_none_or(|to| !beyond(**d, to))
            };
            prop_assert_eq!(class.count, Some(durations.iter().filter(inside).count() as u64));
        }
        let late: f64 = durations.iter().map(|&d| d as f64 - mean).filter(|d| *d > 400.0).sum();
        prop_assert!((figures.shares[0].share.unwrap() - late / sum as f64).abs() < 1e-9);
        let dead = pause as f64 * (n - 1.0) / n;
        prop_assert!((figures.dead_time.cycles - dead).abs() < 1e-6);
        // The list holds exactly the delays above its threshold, all of which the picture has.
        let picture = &analysis.pictures()[0].runs[0];
        prop_assert_eq!(picture.listed, figures.shares[0].count.unwrap());
        prop_assert_eq!(picture.longest(), durations.iter().max().copied());
    }
}
