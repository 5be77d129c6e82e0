//! Several CPUs that spin at the same time.

use tare_pages::{page, terminal};
use tare_results::model::{Counter, Labels};
use tare_testkit::assert_contains;

use crate::synthetic::{Fold, HZ, Run, alarm, evenly, figure, measured, plain, spin, verdict};

/// Runs in which CPU 1 has some more gaps than CPU 0, and CPU 2 far more.
fn run(more: u64) -> Run {
    let mut run = Run::new(26);
    for block in 1..=4 {
        let each = [200 + block, 200 + block % 2 + more, 2_000 + 10 * block];
        let each = each.map(|gaps| evenly(2_600_000_000, gaps, 1_300));
        run.gaps_together(block as u32, "process", each.to_vec());
    }
    run
}

#[test]
fn the_cpus_that_lose_most_and_least_are_named_as_far_as_they_are_told_apart() {
    let text = verdict(&run(0).analyse()).remove(0);
    let begin =
        "Of 3 CPUs measured at once on process, the largest share of time was lost by CPU 2 with ";
    assert!(text.starts_with(begin), "{text}");
    // The intervals of the other two overlap.
    let (most, least) = text.split_once("the smallest by ").unwrap();
    assert!(!most.contains("overlaps"), "{text}");
    assert!(
        least.starts_with("CPU 1 with ")
            && least.contains("; its interval overlaps that of 1 other)"),
        "{text}"
    );
    let report = run(200).analyse();
    let text = verdict(&report).remove(0);
    assert!(
        text.contains("the smallest by CPU 0 with ") && !text.contains("told apart"),
        "{text}"
    );
    insta::assert_snapshot!(terminal::render(&report, 100, false));
}

#[test]
fn a_load_is_said_to_run_on_each_measured_cpu_that_it_may_use() {
    for (load, told) in [("dd", "CPUs 0-2, too,"), ("cpus=1:dd", "CPU 1, too,")] {
        let mut run = Run::new(26);
        run.load = load;
        let each = [200, 300, 400].map(|gaps| evenly(2_600_000_000, gaps, 1_300));
        run.gaps_together(1, "process", each.to_vec());
        assert_contains(alarm(&run.analyse(), "shared-cpu"), &[told]);
    }
}

/// Where its events can't be recorded, what the kernel counts on a CPU is of that CPU alone.
#[test]
fn counts_are_those_of_each_cpu() {
    let mut run = Run::new(26);
    for block in 1..=2 {
        let each = [10, 10].map(|gaps| evenly(2_600_000_000, gaps, 1_300));
        let cell = run.gaps_together(block, "docker", each.to_vec());
        let counts = [(0, "LOC", 100), (1, "LOC", 300), (1, "RES", 7)];
        measured(cell).counters = Vec::from(counts.map(|(cpu, name, count)| Counter {
            name: format!("interrupt {name}"),
            count,
            labels: Labels::default().with("cpu", cpu),
        }));
    }
    let text = plain(&terminal::render(&run.analyse(), 100, false));
    let counted = text.split("Counted on the measured CPU").nth(1).unwrap();
    assert_contains(counted, &["As many interrupts a second as gaps"]);
    let rows = [
        "CPU 0 · interrupt LOC 200 100",
        "CPU 1 · interrupt LOC 600 300",
        "CPU 1 · interrupt RES 14 7",
    ];
    assert_contains(counted, &rows);
}

/// Only counts above 0 are written: a run without one that others of its case have had none.
#[test]
fn a_counter_that_a_run_lacks_was_0_there() {
    let mut run = Run::new(26);
    for block in 1..=4 {
        let cell = run.gap(block, "process", evenly(2_600_000_000, 10, 1_300));
        let counts = [
            ("voluntary context switches", 0),
            ("ticks stolen by the hypervisor", u64::from(block) % 3),
        ];
        let written = counts
            .into_iter()
            .filter(|(name, count)| *count > 0 || name.ends_with("switches"));
        measured(cell).counters = Vec::from_iter(written.map(|(name, count)| Counter {
            name: name.to_owned(),
            count,
            ..Counter::default()
        }));
    }
    // Without any counts, nothing shows that they were read.
    let cell = run.gap(5, "process", evenly(2_600_000_000, 10, 1_300));
    measured(cell).counters = Vec::new();
    let analysis = run.analyse();
    let of = |figure_of| {
        figure(
            &analysis,
            &format!("interrupts.{figure_of}{{counter=ticks stolen by the hypervisor}}"),
        )
    };
    assert_eq!([of("total"), of("rate")], [Some(4.0), Some(1.0)]);
    let text = plain(&terminal::render(&analysis, 100, false));
    let counted = text.split("Counted on the measured CPU").nth(1).unwrap();
    assert_contains(
        counted,
        &[
            "From first to last stamp.",
            "stolen by the hypervisor 4/5 4 1",
        ],
    );
    assert!(!counted.contains("each was seen"), "{counted}");
}

/// The share of its time that each CPU loses stands where it lost it, also if it began later.
#[test]
fn cpus_are_drawn_over_time() {
    let mut run = Run::new(26);
    for block in 1..=6 {
        // One loses all of its time in gaps at the end of each run.
        let late = (0..100).map(|n| (1_600_000_000 + n * 2_000_000, 100_000));
        let each = [Vec::new(), late.collect()].map(|gaps: Vec<_>| {
            let in_gaps: u64 = gaps.iter().map(|gap| gap.1).sum();
            let reads = ((0.7 * HZ) as u64 - in_gaps) / 21 + gaps.len() as u64;
            spin(reads, 20, &gaps, Fold::above(1_300))
        });
        run.gaps_together(block, "process", each.to_vec());
    }
    let report = run.analyse();
    let text = plain(&terminal::render(&report, 100, false));
    let over_time = text
        .split("Time lost, CPU by CPU over time")
        .nth(1)
        .unwrap();
    assert_contains(over_time, &["CPU 0 0", "CPU 1 0.5"]);
    assert_contains(
        &plain(&page::render(&report)),
        &[
            "Time lost, CPU by CPU over time",
            "Work in each quantum of 250 µs",
            // A gap of 100,000 cycles is 38.5 µs.
            "<td>96.1 %</td><td>99.5 %</td><td>84.6 %</td>",
        ],
    );
}
