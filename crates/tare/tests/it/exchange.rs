//! `tare export` and `tare import`: what other tools read and write.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, Bench};
use crate::imports::{Form, SOME, Thread, up_to};

fn sample(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    tests.join("exchange/tests/samples").join(name)
}

/// Imports a sample as the run `name`.
fn import(bench: &Bench, tool: &str, sample_name: &str, name: &str) {
    let file = sample(sample_name);
    let words = format!(
        "import {tool} {} --interval 1000 --output {name}",
        file.display()
    );
    bench.run(&words).expect(
        0,
        &[
            "imported",
            "`tare report ",
            "7 µs there stand for 7 to 8 µs",
        ],
    );
}

#[test]
fn what_cyclictest_wrote_is_imported_reported_and_exported_again() {
    let bench = Bench::new();
    import(&bench, "cyclictest", "cyclictest-quiet.txt", "run");
    let theirs = fs::read_to_string(sample("cyclictest-quiet.txt")).unwrap();
    let ran = bench.run("export run --format cyclictest --histogram 60");
    // Which cycles were beyond the histogram is not kept.
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| *line != "# Histogram");
        let lines = lines.filter(|line| !line.starts_with("# Thread "));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(lines(&ran.expect(0, &[]).out), lines(&theirs));
    bench.run("report run").expect(0, &[]);
    bench
        .run("import cyclictest missing")
        .expect(1, &["missing can't be read"]);
}

#[test]
fn each_format_is_written_to_standard_output_a_file_or_a_folder() {
    let bench = Bench::new();
    import(&bench, "rtla", "rtla-timerlat.txt", "run");
    for (words, text) in [
        ("hgrm --cell 1", "Percentile TotalCount 1/(1-Percentile)"),
        (
            "csv --cell 2",
            "thread,phase,between,latency_ns,count\n0,0,0,0,8214\n",
        ),
        ("csv --target rtla-timerlat-irq", "0,0,0,1000,1700\n"),
        ("csv --cell 2 --response", "0,0,0,0,8214\n"),
        (
            "events --cell 1",
            "phase,load,start_ns,started_ns,stopping_ns,stopped_ns\n0,idle,0,,,\n",
        ),
        (
            "raw --cell 1",
            "thread,activation,planned_ns,phase,between,latency_ns\n",
        ),
        ("cyclictest-json --cell 3", "\"num_threads\": 2"),
    ] {
        let ran = bench.run(&format!("export run --format {words}"));
        ran.expect(0, &[]);
        assert!(ran.out.contains(text), "{ran:?}");
    }
    let several = "there are 3 cells with wake-ups: choose one with --cell";
    bench.run("export run --format hgrm").expect(2, &[several]);
    bench
        .run("export run --format hgrm --cell 9")
        .expect(2, &["no such cell"]);
    bench
        .run("export run --format raw --cell 1 --response")
        .expect(2, &["--response"]);
    bench
        .run("export run --format hgrm --output folder")
        .expect(0, &["were not counted one by one"]);
    bench
        .run("export run --format hgrm --cell 1 --output file")
        .expect(0, &[]);
    let files = common::files(&bench.work());
    let made: Vec<&str> = files
        .iter()
        .map(String::as_str)
        .filter(|name| !name.starts_with("run/"))
        .collect();
    assert_eq!(
        made,
        [
            "file",
            "folder/cell-0001.hgrm",
            "folder/cell-0002.hgrm",
            "folder/cell-0003.hgrm"
        ]
    );
}

#[test]
fn what_is_no_output_is_refused_with_the_line() {
    let bench = Bench::new();
    let quiet = fs::read_to_string(sample("cyclictest-quiet.txt")).unwrap();
    fs::write(bench.work().join("cut"), &quiet[..quiet.len() / 2]).unwrap();
    fs::write(bench.work().join("bad"), quiet.replacen("000003 ", "x ", 1)).unwrap();
    bench
        .run("import cyclictest cut")
        .expect(1, &["cut: ", "broke off"]);
    bench
        .run("import cyclictest bad")
        .expect(1, &["bad: line ", "'x' is not a whole number"]);
    bench
        .run("import oslat bad")
        .expect(1, &["it is not what oslat prints"]);
    bench
        .run("import rtla bad")
        .expect(1, &["it is not what `rtla timerlat"]);
    fs::write(bench.work().join("packed"), b"\x1f\x8b\x08\0").unwrap();
    fs::write(bench.work().join("wide"), b"\xff\xfe#\0\n\0").unwrap();
    bench
        .run("import cyclictest packed")
        .expect(1, &["decompress it first (gunzip)"]);
    bench
        .run("import cyclictest wide")
        .expect(1, &["convert it first (iconv"]);
    bench
        .run("import nonsense bad")
        .expect(2, &["invalid value"]);
    let file = sample("cyclictest-quiet.txt");
    bench
        .run(&format!("import cyclictest {}", file.display()))
        .expect(2, &["add --interval"]);
    bench
        .run("export nowhere --format csv")
        .expect(1, &["nowhere"]);
    assert_eq!(
        common::files(&bench.work()),
        ["bad", "cut", "packed", "wide"]
    );
}

#[test]
fn a_figure_beyond_the_end_is_bounded_and_a_gate_on_it_fails() {
    let bench = Bench::new();
    let text = Form::Cyclictest.write(SOME, up_to(3));
    fs::write(bench.work().join("file"), text).unwrap();
    bench
        .run("import cyclictest file --interval 1000 --output run")
        .expect(0, &[]);
    // Of the 10,000 latencies of thread 0 the last 22 are beyond the end, and p99.9 is the 9,990th.
    let gate = |gate: &str| format!("report run -q --fail-if {gate}");
    bench.run(&gate("latency.p99.9{thread=0}>2us")).expect(
        3,
        &["latency.p99.9 of cyclictest, thread 0 is at least 3.00 µs, above 2.00 µs"],
    );
    bench.run(&gate("latency.p99.9{thread=0}>5us")).expect(
        3,
        &[
            "whether latency.p99.9 of cyclictest, thread 0 is above 5.00 µs is inconclusive",
            "it is at least 3.00 µs, and ",
        ],
    );
    bench
        .run(&gate("latency.p99.9{thread=1}>5us"))
        .expect(0, &["Gate passed"]);
    let report = bench.run("report run").expect(0, &[]).out.clone();
    assert!(report.contains("≥ 3.000"), "{report}");
    // Nothing is known of where it ran.
    let page = fs::read_to_string(bench.work().join("run/report.html")).unwrap();
    assert!(
        page.contains("<title>tare wakeup: Latest wake-up: "),
        "{page:.300}"
    );
    let rows = fs::read_to_string(bench.work().join("run/figures.csv")).unwrap();
    let row = rows
        .lines()
        .find(|row| row.contains("thread=0,latency,ns,p99.9,"))
        .unwrap();
    assert!(row.contains("latency,ns,p99.9,,3000,"), "{row}");
}

#[test]
fn nothing_is_claimed_that_latencies_beyond_the_end_leave_open() {
    let bench = Bench::new();
    let import = |name: &str, thread: Thread<'_>, interval: u64| {
        let text = Form::Cyclictest.write(&[thread], up_to(30));
        fs::write(bench.work().join("file"), text).unwrap();
        let words = format!("import cyclictest file --interval {interval} --output {name}");
        bench.run(&words).expect(0, &[]);
    };
    let gate = |run: &str, gate: &str| bench.run(&format!("report {run} -q --fail-if {gate}"));
    // The mean of all was cut off: it is from 2 to 3 µs.
    import("cut", &[(2, 99_000), (3, 700), (30, 99), (400, 1)], 1_000);
    gate("cut", "latency.mean>1.9us").expect(3, &["is at least 2.04 µs, above 1.90 µs"]);
    gate("cut", "latency.mean>2.45us").expect(3, &["is inconclusive: it is at least 2.04 µs"]);
    let table = bench.run("report cut").expect(0, &[]).out.clone();
    assert!(table.contains("≥ 2.0") && !table.contains("35."), "{table}");
    // Exports give no mean, and the page no place to latencies that none was measured at.
    let export = |format: &str| {
        bench
            .run(&format!("export cut --format {format}"))
            .out
            .clone()
    };
    let [hgrm, json] = ["hgrm", "cyclictest-json"].map(export);
    assert!(hgrm.contains("#[Mean    =          NaN"), "{hgrm}");
    assert!(!json.contains("\"avg\""), "{json}");
    let page = fs::read_to_string(bench.work().join("cut/report.html")).unwrap();
    let page = page.replace('\u{a0}', " ");
    assert!(
        page.contains(">1 to 100<") && page.contains("but not drawn"),
        "{page}"
    );
    assert!(!page.contains("their sum, range"), "{page}");
    // Of one alone, it is known.
    import("one", &[(2, 99_000), (3, 700), (400, 1)], 1_000);
    gate("one", "latency.mean>2.45us").expect(0, &["Gate passed"]);
    // Where the others are decides how many activations they missed, and so which response is the
    // 99.9th of a hundred: in full, 1.55 ms.
    import("responses", &[(20, 1_000), (221, 18_399), (5_548, 1)], 50);
    gate("responses", "response.p99>2ms").expect(3, &["is inconclusive: it is at least "]);
    gate("responses", "response.max>5547us").expect(3, &["response.max", "is 5.55 ms"]);
    let report = bench.run("report responses --json");
    let report: serde_json::Value = serde_json::from_str(&report.out).unwrap();
    for row in report["figures"].as_array().unwrap() {
        let of = |key: &str| row[key].as_str().unwrap_or_default();
        if of("measure") == "response" && ["min", "mean", "sd"].contains(&of("figure")) {
            assert!(row["value"].is_null(), "{row}");
        }
    }
    assert!(report["cpu"].is_null());
}

#[test]
fn of_an_imported_run_only_what_its_file_states_is_on_the_page() {
    let bench = Bench::new();
    let text = Form::Cyclictest.write(SOME, up_to(3));
    fs::write(bench.work().join("file"), text).unwrap();
    bench
        .run("import cyclictest file --interval 1000 --output run")
        .expect(0, &[]);
    // Pages are rendered anew for a gate's limit, wherever that lies.
    for limit in ["0us", "1e-400us", "1e12s"] {
        let far = format!("report run -q --fail-if latency>{limit}");
        let code = if limit.starts_with("1e12") { 0 } else { 3 };
        bench.run(&far).expect(code, &["Gate "]);
    }
    let report = bench.run("report run").expect(0, &[]).out.clone();
    let page = fs::read_to_string(bench.work().join("run/report.html")).unwrap();
    for absent in [
        "not locked",
        "RLIMIT_MEMLOCK",
        "Measured on the same CPU just before every cell",
        "/proc/cpuinfo",
        "CPU 0",
        "measured it",
        "random order",
        "Kernel settings",
        "every latency in ns",
    ] {
        assert!(!page.contains(absent), "{absent} on the page");
        assert!(!report.contains(absent), "{absent} in the report");
    }
    // Its own label with another value is not a label of other runs.
    bench
        .run("report run -q --fail-if latency{thread=7}>8us")
        .expect(2, &["thread 0"]);
    // Where nothing is due at an interval, none is named, and nothing can be missed.
    let unwoken = Form::ALL.into_iter().filter(|form| !form.is_periodic());
    for (number, form) in unwoken.enumerate() {
        fs::write(bench.work().join("file"), form.write(SOME, up_to(10))).unwrap();
        let import = format!("import {} file --output {number}", form.tool());
        bench.run(&import).expect(0, &[]);
        let report = bench.run(&format!("report {number}"));
        let report = report.expect(0, &[]).out.clone();
        let page = bench.work().join(format!("{number}/report.html"));
        let page = fs::read_to_string(page).unwrap().replace('\u{a0}', " ");
        for absent in ["every 10", "resp.", "missed"] {
            assert!(!report.contains(absent), "{absent} in {report}");
            assert!(
                !page.contains(&format!(">{absent}")),
                "{absent} on the page"
            );
        }
    }
}

#[test]
fn one_latency_alone_beyond_the_end_is_the_greatest() {
    let bench = Bench::new();
    let text = "# Histogram\n000000 000000\n000001 000011\n# Total: 000000011\n# Min Latencies: 00001\n\
                # Avg Latencies: 00750\n# Max Latencies: 09000\n# Histogram Overflows: 00001\n";
    for (name, text) in [
        ("run", text.to_owned()),
        (
            "more",
            text.replace("000011", "000012").replace("750", "693"),
        ),
    ] {
        fs::write(bench.work().join("file"), text).unwrap();
        let words = format!("import cyclictest file --interval 1000 --output {name}");
        bench
            .run(&words)
            .expect(0, &["each is the greatest of its thread"]);
    }
    // Eleven of 1 µs, and those of 1 to 9 ms that were due until the last one ran.
    let known = [
        ("latency", "min", 1e3),
        ("latency", "mean", 9_011e3 / 12.0),
        ("response", "min", 1e3),
        ("response", "p50", 1e3),
        ("response", "mean", 45_011e3 / 20.0),
        ("response", "max", 9e6),
    ];
    let report = bench.run("report run --json");
    let report: serde_json::Value = serde_json::from_str(&report.out).unwrap();
    let compared = bench.run("compare run --to more --json");
    let compared: serde_json::Value = serde_json::from_str(&compared.out).unwrap();
    for (measure, figure, ns) in known {
        let find = |rows: &serde_json::Value, key: &str| {
            let mut rows = rows.as_array().unwrap().iter();
            let row = rows.find(|row| row["measure"] == measure && row["figure"] == figure);
            row.and_then(|row| row[key].as_f64())
        };
        let mut all = vec![find(&report["figures"], "value")];
        // Minima are in no comparison.
        if figure != "min" {
            all.push(find(&compared["comparisons"][0]["rows"], "base"));
        }
        for found in all {
            let is_same = found.is_some_and(|found| (found - ns).abs() < 1.0);
            assert!(is_same, "{measure}.{figure}: {found:?}");
        }
        let gate = |limit: f64| format!("report run -q --fail-if {measure}.{figure}>{limit}ns");
        bench.run(&gate(ns + 1.0)).expect(0, &["Gate passed"]);
        bench.run(&gate(ns - 1.0)).expect(3, &["Gate failed"]);
    }
    let table = bench.run("report run").expect(0, &[]).out.clone();
    assert!(
        !table.contains('>') && !table.contains("at least"),
        "{table}"
    );
    let csv = bench.run("export run --format csv --response");
    let rows: Vec<&str> = csv.expect(0, &[]).out.lines().skip(1).collect();
    assert_eq!((rows[0], rows.len()), ("0,0,0,1000,11", 10), "{rows:?}");
}

#[test]
fn a_run_that_stopped_at_its_threshold_is_of_the_time_until_then() {
    let bench = Bench::new();
    let text = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:04\n\
                Index   IRQ-000   Thr-000\n0 3900 0\n1 98 3700\n2 0 298\nover: 1 1\ncount: 3999 3999\nmin: 0 1\navg: 0 1\n\
                max: 41 57\n";
    let stop = "rtla timerlat hit stop tracing\n";
    let whole = text.replace("1 98", "1 97").replace(": 3999 ", ": 3998 ");
    for (name, text) in [("whole", whole), ("run", text.to_owned() + stop)] {
        fs::write(bench.work().join("file"), text).unwrap();
        let words = format!("import rtla file --interval 1000 --output {name}");
        bench.run(&words).expect(0, &[]);
    }
    let report = bench.run("report run");
    let headline = "Latest wake-ups until the tool stopped at its threshold: 41.0 µs on";
    report.expect(0, &[headline]);
    let page = fs::read_to_string(bench.work().join("run/report.html")).unwrap();
    let page = page.replace(['\u{a0}', '\u{202f}'], " ");
    let read = "Of the wake-ups that happened until the tool stopped at its threshold";
    assert!(page.contains(headline) && page.contains(read), "{page}");
    let shown = report.out.replace('\n', " ");
    assert!(shown.contains(read), "{shown}");
    for absent in ["Longest of a run", "one by one", "7,998", "7 998"] {
        assert!(!shown.contains(absent), "{absent} in {shown}");
        assert!(!page.contains(absent), "{absent} on the page");
    }
    let whole = bench.run("report whole").expect(0, &[]).out.clone();
    assert!(!whole.contains("stopped"), "{whole}");
    let compared = bench.run("compare whole --to run");
    compared.expect(0, &["stopped at its threshold", "not stated"]);
}

#[test]
fn files_of_one_tool_are_compared_by_what_they_state() {
    let bench = Bench::new();
    let import = |name: &str, text: &str| {
        fs::write(bench.work().join("file"), text).unwrap();
        bench
            .run(&format!("import cyclictest file --output {name}"))
            .expect(0, &[]);
    };
    let json = |interval: u64, release: &str, day: u64, us: u64| {
        let weekday = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][day as usize % 7];
        format!(
            "{{\"cmdline\": \"cyclictest -i {interval} -h 50 -q\", \"start_time\": \"{weekday}, {day:02} Jun 2026 \
             10:00:00 +0000\", \"sysinfo\": {{\"release\": \"{release}\"}}, \"num_threads\": 1, \"thread\": {{\"0\": \
             {{\"histogram\": {{\"4\": {}, \"5\": {us}}}, \"cycles\": 100000, \"min\": 4, \"max\": 5, \"avg\": 4.50, \
             \"cpu\": 0}}}}}}",
            100_000 - us
        )
    };
    let mut sides = [String::new(), String::new()];
    for day in 1..=4 {
        for (side, us) in [("a", 49_000), ("b", 51_000)] {
            let name = format!("{side}{day}");
            let release = if side == "a" { "6.1" } else { "7.9" };
            import(
                &name,
                &json(1_000, release, 2 * day + u64::from(side == "b"), us),
            );
            sides[usize::from(side == "b")] += &format!(" {name}");
        }
    }
    let [base, new] = &sides;
    let compared = bench.run(&format!("compare{base} --to{new}"));
    compared.expect(
        0,
        &["release", "6.1", "7.9", "a shift by one step of the clock"],
    );
    // They were measured in turn, whenever they were imported, and one µs is a step of their clock.
    for absent in [
        "was measured before all of",
        "latency.p50 of cyclictest: 5.00 µs",
    ] {
        assert!(!compared.out.contains(absent), "{}", compared.out);
    }
    bench
        .run(&format!(
            "compare{base} --to{new} -q --fail-if latency.p50>+5%"
        ))
        .expect(0, &["'latency.p50>+5%' passed"]);
    let days_apart = bench.run("compare a1 a2 b1 b2 --to a3 a4 b3 b4");
    days_apart.expect(0, &["All of BASE was measured before all of NEW"]);
    let oslat = sample("oslat.txt");
    let oslat = format!("import oslat {} --output other", oslat.display());
    bench.run(&oslat).expect(0, &[]);
    bench.run("compare a1 a2 --to other").expect(
        2,
        &["cyclictest and oslat can't be compared: they measure different things"],
    );
    // A copy is no second measurement.
    let copied = Command::new("cp")
        .args(["-r", "a1", "copy"])
        .current_dir(bench.work())
        .status();
    assert!(copied.unwrap().success());
    bench
        .run("compare a1 copy --to b1 b2")
        .expect(2, &["copy is a copy of a1: give each run once"]);
}

#[test]
fn a_file_may_begin_within_a_line_and_leave_zeros_out() {
    let bench = Bench::new();
    for (name, tool, text, words, greatest) in [
        (
            "action",
            "rtla",
            "\u{feff}spike on cpu 0;# RTLA timerlat histogram\r\n# Duration:   0 00:00:01\r\nIndex   Thr-000   Usr-000\r\n\
             21 1 0\r\nover: 0 0\r\ncount: 1 0\r\nmin: 21 -\r\navg: 21 -\r\nmax: 21 -\r\n\
             rtla timerlat hit stop tracing\r\n Saving trace to timerlat_trace.txt\r\n",
            "stopped at the first latency above its own threshold",
            "Latest wake-up until the tool stopped at its threshold: 21.0 µs",
        ),
        (
            "front",
            "cyclictest",
            "\u{1b}[2A\u{1b}[0J# Histogram\n000011 000005\n000013 000020\n# SMIs: 00003\n# Total: 000000025\n\
             # Min Latencies: 00011\n# Avg Latencies: 00012\n# Max Latencies: 00013\n# Histogram Overflows: 00000\n",
            "system management interrupts (SMIs) that it counted, by thread: 3",
            "Latest wake-up: 13.0 µs",
        ),
    ] {
        fs::write(bench.work().join("file"), text).unwrap();
        let import = format!("import {tool} file --interval 1000 --output {name}");
        bench.run(&import).expect(0, &[words]);
        bench.run(&format!("report {name}")).expect(0, &[greatest]);
    }
}

/// Makes cyclictest's histogram of 100,000 latencies with humps at 5 and 105 µs, so many of them in
/// the first.
fn two_humps(fast: u64) -> String {
    let humps = [(5, fast), (105, 100_000 - fast)].into_iter();
    let rows = humps.flat_map(|(middle, count)| {
        [(middle - 1, 5), (middle, 90), (middle + 1, 5)].map(|(us, part)| (us, count * part / 100))
    });
    Form::Cyclictest.write(&[&Vec::from_iter(rows)], up_to(110))
}

#[test]
fn two_humps_are_compared_by_the_share_of_the_slow_one() {
    let bench = Bench::new();
    for (name, fast) in [("a", 50_500), ("b", 49_500), ("c", 20_000)] {
        fs::write(bench.work().join(format!("{name}.txt")), two_humps(fast)).unwrap();
        bench
            .run(&format!(
                "import cyclictest {name}.txt --interval 1000 --output {name}"
            ))
            .expect(0, &[]);
    }
    let report = bench.run("report a").expect(0, &[]).out.clone();
    assert!(report.contains("54.50*"), "the mean is marked: {report}");
    assert!(report.contains(" 6.000*"), "the median is marked: {report}");
    assert!(
        report.contains(
            "has two modes on cyclictest: about 5.00 µs and 105 µs; the slow one has 49.5 %"
        ),
        "{report}"
    );
    let others = bench.run("report c").expect(0, &[]).out.clone();
    assert!(
        others.contains("106.0  85.00*") && !others.contains("105.0*"),
        "{others}"
    );

    let compared = bench
        .run("compare a --to b --markdown")
        .expect(0, &[])
        .out
        .clone();
    assert!(!compared.contains("1,633 %"), "{compared}");
    assert!(
        compared
            .contains("about 5.00 µs and 105 µs; of BASE 49.5 % in the slow one, of NEW 50.5 %"),
        "{compared}"
    );
    let text = bench
        .run("compare a --to b")
        .expect(0, &[])
        .out
        .replace('\n', " ");
    assert!(!text.contains("105 µs; and about"), "{text}");
    bench
        .run("compare a --to b --allow-single --fail-if latency.p50>+5%")
        .expect(
            3,
            &["it may be in either of two modes, about 5.00 µs and 105 µs"],
        );

    // A limit between the modes is passed or failed by chance; one beyond both is not.
    let gate = |run: &str, gate: &str| bench.run(&format!("report {run} -q --fail-if {gate}"));
    gate("a", "latency.p50>50us").expect(3, &["is inconclusive: it may be in either of two modes"]);
    gate("a", "latency.p50>200us").expect(0, &["Gate passed"]);
    gate("a", "latency.p50>2us").expect(3, &["latency.p50 of cyclictest is 6.00 µs, above"]);
    gate("c", "latency.p50>50us").expect(3, &["latency.p50 of cyclictest is 105 µs, above"]);
    gate("a", "latency.slow>50%").expect(0, &["latency.slow of cyclictest is 49.5 %"]);
    gate("b", "latency.slow>50%").expect(3, &["latency.slow of cyclictest is 50.5 %, above"]);
    import(&bench, "cyclictest", "cyclictest-quiet.txt", "quiet");
    gate("quiet", "latency.slow>50%").expect(0, &["has only one mode"]);
}

#[test]
fn more_threads_than_an_instance_may_report_values_are_imported() {
    const THREADS: usize = 2_048;
    let bench = Bench::new();
    let line = |name: &str, figure: u32| {
        let figures = format!(" {figure}").repeat(THREADS);
        format!("{name}{figures}\n")
    };
    let columns: String = (0..THREADS).map(|cpu| format!(" Thr-{cpu:03}")).collect();
    let text = [
        "# RTLA timerlat histogram\n# Duration:   0 00:00:10\n".to_owned(),
        format!("Index{columns}\n"),
        line("3", 10),
        line("4", 20),
        line("over:", 0),
        line("count:", 30),
        line("min:", 3),
        line("avg:", 3),
        line("max:", 4),
    ];
    fs::write(bench.work().join("rtla.txt"), text.concat()).unwrap();
    let words = "import rtla rtla.txt --interval 1000 --output run";
    bench.run(words).expect(0, &["imported 1 cell"]);
    bench.run("report run").expect(0, &["2048 threads"]);
}

#[test]
fn a_pipe_is_imported_like_a_file() {
    let bench = Bench::new();
    let output = sample("cyclictest-quiet.txt");
    for (name, from) in [("stdin", "/dev/stdin"), ("dash", "-"), ("fd", "/dev/fd/0")] {
        let words = [
            "-c",
            "cat \"$1\" | \"$0\" import cyclictest \"$2\" --interval 1000 --output \"$3\"",
            env!("CARGO_BIN_EXE_tare"),
            output.to_str().unwrap(),
            from,
            name,
        ];
        let ran = bench.command_of(Path::new("sh"), &words).output().unwrap();
        common::Ran::of(ran).expect(0, &["imported 1 cell"]);
    }
}
