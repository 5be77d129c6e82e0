//! `tare export` and `tare import`: what other tools read and write.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{self, Bench};

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
        &["imported", "`tare report ", "stands for one from 7 to 8 µs"],
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
        .expect(0, &["known by their sum"]);
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
        .expect(1, &["bad: line ", "'x' is no whole number"]);
    bench
        .run("import oslat bad")
        .expect(1, &["it is not what oslat prints"]);
    bench
        .run("import rtla bad")
        .expect(1, &["it is not what `rtla timerlat"]);
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
    assert_eq!(common::files(&bench.work()), ["bad", "cut"]);
}
