//! What a run of primitives tells.

use tare_experiments::catalogue;
use tare_host::machine::Cache;
use tare_pages::{Report, page, terminal};
use tare_results::{CellState, MachineRecord};
use tare_testkit::assert_contains;

use crate::synthetic::primitives::Primitives;
use crate::synthetic::{
    HZ, NO, Run, UNKNOWN, YES, alarm, analyse, assert_answers, ids, plain, reproduction, shown,
    unknown_machine, verdict,
};

/// Returns a figure of a row with these labels.
fn figure(analysis: &Report, measure: &str, figure: &str, labels: &str) -> f64 {
    let name = format!(
        "primitives/{measure}.{figure}{{{}}}",
        labels.replace(' ', ",")
    );
    let name = name.trim_end_matches("{}");
    let row = crate::synthetic::row(analysis, name);
    let row = row.unwrap_or_else(|| panic!("no {name}"));
    row.over.as_ref().unwrap().estimate
}

/// Returns the figure that stands for a measure.
fn figure_of(measure: &str) -> &'static str {
    match measure {
        "cost" | "level-latency" => "best",
        "in-a-row" => "mean",
        "ratio" | "level-size" | "line-size" | "tlb-reach" => "p50",
        _ => "value",
    }
}

/// The labels of passes over arrays within and beyond all caches.
const SMALL: &str = "primitive=bandwidth-read size=16384";
const LARGE: &str = "primitive=bandwidth-read size=67108864";

/// One ns in cycles.
const NS: f64 = HZ / 1e9;

fn analysed(cell: Primitives<'_>) -> Report {
    let mut run = Run::new(1);
    run.measured(1, cell);
    run.analyse()
}

/// Returns costs as values of a cell.
fn costs(labels: &[(String, f64)]) -> Vec<(&str, &str, f64)> {
    let costs = labels.iter();
    costs
        .map(|(labels, ns)| ("cost", labels.as_str(), *ns))
        .collect()
}

const SYSCALLS: Primitives<'_> = Primitives {
    target: "process",
    area: "syscall",
    values: &[
        ("cost", "primitive=getppid", 100.0),
        ("mean", "primitive=getppid", 110.0),
        ("cost", "primitive=getpid", 90.0),
        ("cost", "primitive=enosys", 0.0),
    ],
    sets: &[("time", "primitive=getppid", &[260, 286, 312])],
    expected: &[
        ("cost", "primitive=getppid", 50.0),
        ("cost", "primitive=getpid", 60.0),
    ],
    facts: &[
        ("absent", "primitive=open", "there is no folder"),
        ("failed", "primitive=stat", "it was killed by signal 9"),
    ],
};

#[test]
fn costs_are_told_beside_what_was_expected_of_them() {
    let analysis = analysed(SYSCALLS);
    let of = |measure: &str| figure(&analysis, measure, figure_of(measure), "primitive=getppid");
    let found = ["cost", "in-a-row", "expected", "ratio"].map(of);
    assert_eq!(found, [100.0, 110.0, 50.0, 2.0]);
    assert_eq!(
        figure(&analysis, "single", "max", "primitive=getppid"),
        120.0
    );
    insta::assert_snapshot!(terminal::render(&analysis, 100, false));
    let page = page::render(&analysis);
    assert_contains(&page, &["worked out before", "What was expected, and why"]);
}

#[test]
fn each_target_has_a_sentence_and_runs_far_apart_their_range() {
    let mut run = Run::new(1);
    for (block, cost) in [(1, 100.0), (2, 300.0)] {
        for (target, cost) in [("process", cost), ("crun", 90.0)] {
            let measured = Primitives {
                target,
                area: "syscall",
                values: &[("cost", "primitive=getppid", cost)],
                ..Primitives::default()
            };
            run.measured(block, measured);
        }
    }
    let said = verdict(&run.analyse());
    assert_eq!(
        said[..2],
        [
            "On process: a system call (getppid) 100 ns to 300 ns (runs far apart).",
            "On crun: a system call (getppid) 90.0 ns."
        ]
    );
    // Where none is of those that a sentence names, it is the first of the table.
    let said = verdict(&analysed(Primitives {
        target: "process",
        values: &[
            ("cost", "primitive=call-0", 1.1),
            ("cost", "primitive=rdtsc", 9.5),
        ],
        ..Primitives::default()
    }));
    assert_eq!(
        said[0],
        "On process: rdtsc 9.50 ns, the first of 2 costs and bandwidths."
    );
}

/// Returns what goes with the first bound that a number does not exceed, or what goes with none.
fn beside(number: u64, bounds: &[(u64, f64)], beyond: f64) -> f64 {
    let found = bounds.iter().find(|(bound, _)| number <= *bound);
    found.map_or(beyond, |(_, value)| *value)
}

/// The latencies of the caches, with their sizes in bytes.
const CACHES: [(u64, f64); 3] = [(32_768, 1.25), (524_288, 3.75), (8_388_608, 12.5)];

/// Returns a random cycle's latencies for caches of 32 KiB, 512 KiB and 8 MiB that replace the
/// oldest line, up to a power of two.
fn latencies(pages: &str, most: u32) -> Vec<(String, f64)> {
    let sizes = 40..=4 * most;
    let sizes = sizes.map(|quarter| (2_f64.powf(f64::from(quarter) / 4.0) as u64) & !63);
    let of = |size| beside(size, &CACHES, 125.0);
    let labels = |size| format!("primitive=latency pages={pages} size={size}");
    sizes.map(|size| (labels(size), of(size))).collect()
}

/// Analyses a run of curves of latencies alone.
fn analysed_curves(curves: &[(&str, u32)]) -> Report {
    let curves = curves.iter();
    let values: Vec<(String, f64)> = curves
        .flat_map(|(pages, most)| latencies(pages, *most))
        .collect();
    on_a_machine(&[values])
}

/// Makes runs of costs in memory, a block for each.
fn in_memory<'a>(runs: impl IntoIterator<Item = &'a [(String, f64)]>) -> Run {
    let mut run = Run::new(1);
    for (block, values) in (1..).zip(runs) {
        let cell = Primitives {
            target: "process",
            area: "memory",
            values: &costs(values),
            ..Primitives::default()
        };
        run.measured(block, cell);
    }
    run
}

/// Analyses them on a machine that claims 32 MiB of L3 cache.
fn on_a_machine(runs: &[Vec<(String, f64)>]) -> Report {
    on_the_machine(in_memory(runs.iter().map(Vec::as_slice)))
}

/// Analyses a run on that machine.
fn on_the_machine(run: Run) -> Report {
    let mut data = run.data();
    let mut machine = unknown_machine();
    machine.topology.caches = vec![Cache {
        level: 3,
        kind: "Unified".to_owned(),
        size_bytes: 32 << 20,
        line_bytes: None,
        shared_by: Vec::new(),
    }];
    data.machine = Some(MachineRecord::new(machine, Vec::new()));
    analyse(data)
}

#[test]
fn a_curve_that_ends_within_the_caches_tells_nothing_of_memory() {
    let memory = |analysis: &Report| {
        plain(&terminal::render(analysis, 100, false)).contains("a load from memory")
    };
    let sizes = |analysis: &Report| {
        let levels = ["level=1 levels=4", "level=2 levels=4", "level=3 levels=4"];
        levels.map(|level| figure(analysis, "level-size", "p50", level))
    };
    let all = [32_768.0, 524_288.0, 8_388_608.0];
    // The machine claims 32 MiB. A few huge pages do not hide as many small ones as there is memory
    // for.
    let few = analysed_curves(&[("2M", 21), ("4K", 28)]);
    assert_eq!((sizes(&few), memory(&few)), (all, true));
    let short = analysed_curves(&[("4K", 24)]);
    assert_eq!((sizes(&short), memory(&short)), (all, false));
}

#[test]
fn what_is_expected_without_placement_is_of_the_nearest_other_side() {
    let (slow, fast) = ((1e9 / 5.0 * NS) as u64, (1e9 / 20.0 * NS) as u64);
    let cell = Primitives {
        target: "process",
        area: "ipc",
        values: &[
            ("bytes", "primitive=pipe-bandwidth cpu=same", 1e9),
            ("bytes", "primitive=pipe-bandwidth cpu=other", 1e9),
            ("share", "primitive=fairness of=least", 0.2),
        ],
        sets: &[
            ("pass", "primitive=pipe-bandwidth cpu=same", &[slow]),
            ("pass", "primitive=pipe-bandwidth cpu=other", &[fast]),
            ("time", "primitive=time-slice", &[(4e6 * NS) as u64; 40]),
        ],
        expected: &[
            ("bandwidth", "primitive=pipe-bandwidth", 5e9),
            ("share", "primitive=fairness of=least", 0.25),
            ("cost", "primitive=time-slice", 2e6),
        ],
        ..Primitives::default()
    };
    let analysis = analysed(cell);
    let of = |labels: &str| figure(&analysis, "ratio", "p50", labels);
    let near = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 1e-3;
    assert!(near(of("primitive=pipe-bandwidth cpu=same"), 1.0));
    assert!(near(of("primitive=fairness of=least"), 0.8));
    assert!(near(of("primitive=time-slice"), 2.0));
}

#[test]
fn the_memory_hierarchy_is_read_off_the_curves() {
    let mut values: Vec<(String, f64)> = latencies("2M", 28);
    // 64 pages of the first TLB cost nothing more, 2,048 of the second a little, others much.
    for pages in (6..=30).map(|half| 2_f64.powf(f64::from(half) / 2.0) as u64) {
        let lines = pages * 64;
        let cache = beside(lines, &CACHES, 12.5);
        let extra = beside(pages, &[(64, 1.0), (2_048, 2.0)], 6.0);
        values.push((format!("primitive=tlb pages={pages}"), cache * extra));
    }
    for distance in [8, 16, 32, 64, 128, 256] {
        let ns = if distance < 64 { 60.0 } else { 120.0 };
        values.push((format!("primitive=line distance={distance}"), ns));
    }
    let mut values = costs(&values);
    let passes = |gb: f64| (65_536_000.0 / gb * NS) as u64;
    let (small, large) = (passes(40.0), passes(10.0));
    values.extend([SMALL, LARGE].map(|array| ("bytes", array, 65_536_000.0)));
    let cell = Primitives {
        target: "process",
        area: "memory",
        values: &values,
        sets: &[
            ("pass", SMALL, &[small, 2 * small]),
            ("pass", LARGE, &[large, 2 * large]),
        ],
        expected: &[("bandwidth", "primitive=bandwidth-read", 20e9)],
        ..Primitives::default()
    };
    let analysis = analysed(cell);
    let of = |measure: &str, labels: &str| figure(&analysis, measure, figure_of(measure), labels);
    assert_eq!(of("level-size", "level=1 levels=4"), 32_768.0);
    assert_eq!(of("level-size", "level=2 levels=4"), 524_288.0);
    assert_eq!(of("level-size", "level=3 levels=4"), 8_388_608.0);
    assert!((of("level-latency", "level=4 levels=4") - 125.0).abs() < 1e-6);
    assert_eq!(of("line-size", ""), 64.0);
    assert_eq!(of("tlb-reach", "level=1 levels=2"), 64.0 * 4_096.0);
    let best = figure(&analysis, "bandwidth", "best", LARGE);
    assert!((best / 10e9 - 1.0).abs() < 1e-3, "{best}");
    // Of an array that a cache holds nothing was expected.
    let ratio = of("ratio", "primitive=bandwidth-read");
    assert!((ratio - 0.5).abs() < 1e-3, "{ratio}");
    let page = page::render(&analysis);
    assert_contains(&page, &["Latency by working set", "The memory hierarchy"]);
}

#[test]
fn what_is_expected_of_memory_is_not_compared_with_an_array_in_a_cache() {
    let analysis = analysed(Primitives {
        target: "process",
        area: "memory",
        values: &[("bytes", SMALL, 65_536_000.0)],
        sets: &[("pass", SMALL, &[(65_536_000.0 / 40.0 * NS) as u64])],
        expected: &[("bandwidth", "primitive=bandwidth-read", 20e9)],
        ..Primitives::default()
    });
    let row = |name: &str| crate::synthetic::row(&analysis, name);
    assert!(row("primitives/bandwidth.best{primitive=bandwidth-read,size=16384}").is_some());
    assert!(row("primitives/ratio").is_none());
}

#[test]
fn levels_of_runs_that_saw_different_ones_are_not_put_together() {
    let mut run = Run::new(1);
    let all = latencies("2M", 28);
    let slow = all
        .iter()
        .map(|(labels, ns)| (labels.clone(), ns.max(CACHES[1].1)));
    for (block, curve) in [(1, all.clone()), (2, slow.collect())] {
        let cell = Primitives {
            target: "process",
            area: "memory",
            values: &costs(&curve),
            ..Primitives::default()
        };
        run.measured(block, cell);
    }
    let analysis = run.analyse();
    let size = |labels: &str| figure(&analysis, "level-size", "p50", labels);
    assert_eq!(size("level=1 levels=4"), 32_768.0);
    assert_eq!(size("level=1 levels=3"), 524_288.0);
    assert_eq!(size("level=3 levels=4"), 8_388_608.0);
}

#[test]
fn what_runs_show_of_a_cache_stands_beside_what_all_do() {
    let all = latencies("2M", 28);
    // In one of them others have half of the last cache.
    let less = all.iter().map(|(labels, ns)| {
        let size = labels.rsplit('=').next().unwrap().parse::<u64>().unwrap();
        let ns = if size > 4 << 20 { 125.0 } else { *ns };
        (labels.clone(), ns)
    });
    let analysis = on_a_machine(&[all.clone(), less.collect()]);
    let range = "4 MiB to 8 MiB run by run";
    let text = terminal::render(&analysis, 120, false);
    let (_, table) = text.split_once("Claimed and effective").unwrap();
    assert_contains(table, &[range, "in huge pages", "Bandwidths are medians"]);
    assert!(!table.contains("core clock"), "{table}");
    // A clock of another target is that of its line.
    let mut run = in_memory([all.as_slice()]);
    let crun = Primitives {
        target: "crun",
        area: "processor",
        values: &[("cost", "primitive=core-cycle", 0.5)],
        ..Primitives::default()
    };
    run.measured(1, crun);
    let text = terminal::render(&on_the_machine(run), 120, false);
    let (_, table) = text.split_once("Claimed and effective").unwrap();
    assert_contains(table, &["core clock, on crun", "Bandwidths are medians"]);
    let same = on_a_machine(&[all.clone(), all]);
    assert!(!terminal::render(&same, 120, false).contains("run by run"));
}

#[test]
fn what_needs_an_operating_system_is_named_where_there_is_none() {
    let mut run = Run::new(1);
    run.measured(1, SYSCALLS);
    let (same, other) = (
        "primitive=wake-to-run cpu=same",
        "primitive=wake-to-run cpu=other",
    );
    let woken = Primitives {
        target: "process",
        area: "scheduling",
        values: &[("cost", same, 2_000.0), ("cost", other, 9_000.0)],
        ..Primitives::default()
    };
    run.measured(1, woken);
    run.emulated = true;
    let bare = Primitives {
        target: "unikernel",
        values: &[("cost", "primitive=getpid", 40.0), ("cost", same, 1_000.0)],
        ..Primitives::default()
    };
    run.measured(
        1,
        Primitives {
            area: "syscall",
            ..bare
        },
    );
    let analysis = run.analyse();
    let text = terminal::render(&analysis, 100, false);
    let (_, absent) = text.split_once("Primitives not measured").unwrap();
    let other = "wake-to-run cpu=other on unikernel";
    assert_contains(absent, &["1 primitive on unikernel", other, "on one CPU"]);
    assert!(!absent.contains("getpid on"), "{absent}");
}

#[test]
fn expectations_stand_beside_costs() {
    let values = [
        ("cost", "primitive=getcpu", 1.353_3),
        ("cost", "primitive=stat", 300.0),
        ("cost", "primitive=tlb pages=64", 5.0),
    ];
    let cell = Primitives {
        target: "process",
        area: "syscall",
        values: &values,
        expected: &[
            ("cost", "primitive=getcpu", 2.706_9),
            ("cost", "primitive=stat", 100.0),
            ("cost", "primitive=tlb pages=64", 5.0),
        ],
        ..Primitives::default()
    };
    // A step of the clock is 10 ns.
    let mut run = Run::new((10.0 * NS) as u64);
    run.measured(1, cell);
    let analysis = run.analyse();
    let text = terminal::render(&analysis, 100, false);
    assert_contains(&text, &["1.35 ns", "2.71 ns"]);
}

#[test]
fn the_curve_is_of_the_least_latencies_as_the_table_of_levels_is() {
    let all = latencies("2M", 28);
    let slow = Vec::from_iter(all.iter().map(|(labels, ns)| (labels.clone(), 2.0 * ns)));
    let picture = |curves: &[&[(String, f64)]]| {
        let page = page::render(&in_memory(curves.iter().copied()).analyse());
        let (_, picture) = page.split_once("<h3>Latency by working set</h3>").unwrap();
        picture.split_once("</figure>").unwrap().0.to_owned()
    };
    let both = picture(&[&all, &slow]);
    assert_eq!(both, picture(&[&all]));
    assert_contains(&both, &["the least latency of all runs"]);
}

#[test]
fn what_was_measured_divided_by_what_was_expected_is_that_of_the_median_run() {
    let mut run = Run::new(1);
    for (block, cost) in [(1, 3_440.0), (2, 39.0), (3, 49.0)] {
        let cell = Primitives {
            target: "process",
            area: "file",
            values: &[("cost", "primitive=open", cost)],
            sets: &[("time", "primitive=open", &[104; 40])],
            expected: &[("cost", "primitive=open", 100.0)],
            ..Primitives::default()
        };
        run.measured(block, cell);
    }
    let analysis = run.analyse();
    let of = |measure| figure(&analysis, measure, figure_of(measure), "primitive=open");
    assert!((of("cost") - 49.0).abs() < 1e-6 && (of("ratio") - 0.49).abs() < 1e-6);
    // In one run all rounds were disturbed: a single one takes 40 ns.
    assert_contains(
        &terminal::render(&analysis, 100, false),
        &["open on process in cell 1 cost more than 1.5 times as much as a single one takes"],
    );
}

#[test]
fn what_cannot_be_is_flagged() {
    let passes = |gb: f64| (1e9 / gb * NS) as u64;
    let (slow, fast) = (passes(10.0), passes(20.0));
    let modes: Vec<u64> = (0..200)
        .map(|number| if number % 2 == 0 { 260 } else { 780 })
        .collect();
    let cell = Primitives {
        target: "process",
        area: "memory",
        values: &[
            ("bytes", SMALL, 1e9),
            ("bytes", LARGE, 1e9),
            ("clock", "primitive=latency at=begin", 0.3),
            ("clock", "primitive=latency at=end", 0.4),
        ],
        sets: &[
            ("pass", SMALL, &[slow]),
            ("pass", LARGE, &[fast]),
            ("time", "primitive=getpid size=65536", &modes),
        ],
        ..Primitives::default()
    };
    let analysis = analysed(cell);
    for id in ["bandwidth-implausible", "clock-unsteady"] {
        assert!(ids(&analysis).contains(&id), "{id}");
    }
    // What was dropped was not measured.
    let (text, page) = shown(&analysis);
    for text in [text, page] {
        let (_, absent) = text.split_once("Primitives not measured").unwrap();
        assert_contains(absent, &["dropped: it was faster than the caches"]);
    }
    let mut loaded = Run::new(1);
    (loaded.load, loaded.emulated) = ("dd", true);
    loaded.measured(1, cell);
    let loaded = loaded.analyse();
    let place = "on process (emulated) under dd in cell 1 is faster than the caches";
    assert_contains(alarm(&loaded, "bandwidth-implausible"), &[place]);
    // An emulator has no clock of a core.
    assert!(!ids(&loaded).contains(&"clock-unsteady"));
    let mut rows = analysis.rows().0.iter();
    assert!(rows.all(|row| row.measure.id != "bandwidth"));
    let details = &analysis.summary().verdict.details;
    let modes = "Time of a single one has two modes on process, memory, getpid, size=64KiB: about ";
    assert!(
        details.iter().any(|text| text.starts_with(modes)),
        "{details:?}"
    );
}

#[test]
fn memory_is_as_fast_as_the_fastest_of_the_caches() {
    let passes = |gb: f64| (1e9 / gb * NS) as u64;
    let middle = "primitive=bandwidth-read size=65536";
    let sets: [(&str, &str, &[u64]); 3] = [
        ("pass", SMALL, &[passes(10.0)]),
        ("pass", middle, &[passes(20.0)]),
        ("pass", LARGE, &[passes(19.0)]),
    ];
    let cell = Primitives {
        target: "process",
        area: "memory",
        values: &[
            ("bytes", SMALL, 1e9),
            ("bytes", middle, 1e9),
            ("bytes", LARGE, 1e9),
        ],
        sets: &sets,
        ..Primitives::default()
    };
    assert!(!ids(&analysed(cell)).contains(&"bandwidth-implausible"));
}

#[test]
fn claims_of_the_study_are_answered_from_rows() {
    let calls: Vec<(String, f64)> = (0..8)
        .map(|arguments| (format!("primitive=call-{arguments}"), 8.0))
        .collect();
    let others = [
        ("primitive=core-cycle", 1.0 / 3.1),
        ("primitive=thread-create", 10_000.0),
        ("primitive=fork-exit memory=small", 100_000.0),
        ("primitive=switch-thread cpu=same memory=0 ring=10", 2_000.0),
        (
            "primitive=switch-process cpu=same memory=0 ring=10",
            3_000.0,
        ),
    ];
    let mut values = costs(&calls);
    values.extend(others.map(|(labels, ns)| ("cost", labels, ns)));
    let of = |emulated| {
        let mut run = Run::new(1);
        run.emulated = emulated;
        run.reproduces = Some("cse221-2022");
        let cell = Primitives {
            target: "process",
            area: "processor",
            values: &values,
            ..Primitives::default()
        };
        run.measured(1, cell);
        reproduction(run)
    };
    assert_answers(&of(true), &[UNKNOWN; 4]);
    let told = of(false);
    assert_answers(&told, &[YES, YES, NO, UNKNOWN]);
    let study = catalogue().study("cse221-2022").unwrap();
    assert_eq!(told.claims.len(), study.claims.len());
    let here = |what: &str| {
        let mut rows = told.comparisons.iter();
        rows.find(|row| row.what == what).unwrap().here.as_str()
    };
    assert_contains(here("process-create"), &["100 µs"]);
    assert_eq!(here("latency-dram"), "not measured in this run");
}

#[test]
fn the_study_s_levels_are_those_of_the_tables_beside_what_the_machine_claims() {
    let curve = latencies("2M", 28);
    let mut run = in_memory([curve.as_slice()]);
    run.reproduces = Some("cse221-2022");
    let analysis = on_the_machine(run);
    let told = analysis.summary().reproduction.clone().unwrap();
    let hierarchy = &told.claims[3].finding.why;
    assert_contains(hierarchy, &["L3 unified 8 MiB, 12.5 ns (claimed 32 MiB)"]);
    let latencies = ["latency-l1", "latency-l2", "latency-l3", "latency-dram"];
    for (level, name) in (1..).zip(latencies) {
        let labels = format!("level={level} levels=4");
        let row = figure(
            &analysis,
            "level-latency",
            figure_of("level-latency"),
            &labels,
        );
        let row = tare_figures::rows::written(row, "ns");
        let mut rows = told.comparisons.iter();
        let here = &rows.find(|row| row.what == name).unwrap().here;
        assert!(here.starts_with(&row), "{name}: {here}, not {row}");
    }
}

#[test]
fn a_cell_with_stolen_time_alone_was_not_measured() {
    for values in [&[][..], &[("stolen", "", 1e6)]] {
        let report = analysed(Primitives {
            target: "process",
            area: "syscall",
            values,
            expected: &[("cost", "primitive=close", 160.0)],
            facts: &[("none", "primitive=close", "there is no folder")],
            ..Primitives::default()
        });
        let summary = report.summary();
        assert_eq!(summary.done, 0);
        // Nor has it figures, or intervals to miss.
        assert!(report.rows().0.is_empty() && summary.verdict.cautions.is_empty());
        assert_contains(
            &summary.not_measured[0].reason,
            &["it ended without a figure"],
        );
        // The cell's own file says that it is done.
        assert_eq!(summary.not_measured[0].state.name(), "without a figure");
    }
}

#[test]
fn a_cell_all_of_whose_primitives_failed_has_failed() {
    let cell = |facts| Primitives {
        target: "process",
        area: "syscall",
        facts,
        ..Primitives::default()
    };
    let check = |told| {
        let mut run = Run::new(1);
        run.measured(1, told);
        let data = run.data();
        let (CellState::Done(cell), samples) = &data.cells[0] else {
            panic!("it ran to its end");
        };
        catalogue().check(&data.plan, cell, samples)
    };
    assert_eq!(
        check(cell(&[("failed", "primitive=close", "no folder")])),
        Err("it ended without a figure; primitive=close: no folder".to_owned())
    );
    assert_eq!(
        check(cell(&[("none", "primitive=close", "no folder")])),
        Ok(())
    );
    assert_eq!(check(SYSCALLS), Ok(()));
}

#[test]
fn each_statement_names_the_place_that_it_is_of() {
    let mut run = Run::new(1);
    let values = [
        ("cost", "primitive=call-0", 2.0),
        ("cost", "primitive=getpid", 90.0),
        ("cost", "primitive=getppid", 100.0),
    ];
    for load in ["", "dd"] {
        run.load = load;
        let cell = Primitives {
            values: &values,
            ..SYSCALLS
        };
        run.measured(1, cell);
    }
    run.load = "";
    let crun = Primitives {
        target: "crun",
        ..SYSCALLS
    };
    run.measured(1, crun);
    let analysis = run.analyse();
    // A primitive counts once, in however many places it failed.
    let failed = alarm(&analysis, "primitives-failed");
    assert_contains(failed, &["1 primitive failed: stat on process: "]);
    let text = terminal::render(&analysis, 100, false);
    assert_contains(&text, &["process · syscall", "process under dd · syscall"]);
    assert_contains(&text, &["stat on process under dd"]);
    assert_contains(&page::render(&analysis), &["On process. A dot is"]);
    // Under a load alone nothing is found of the machine.
    let mut run = Run::new(1);
    run.load = "dd";
    let curve = latencies("2M", 28);
    let cell = Primitives {
        target: "process",
        area: "memory",
        values: &costs(&curve),
        ..Primitives::default()
    };
    run.measured(1, cell);
    let text = terminal::render(&on_the_machine(run), 100, false);
    assert!(!text.contains("Claimed and effective"), "{text}");
}
