//! The tutorials in docs/: text and files agree, and the experiment and the workload have all that is promised.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Bench, Ran};

const MARK: &str = "<!-- file: ";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_pages_show_the_files_as_they_are() {
    for name in ["adding-an-experiment", "adding-a-workload"] {
        shows_its_files(&repository().join(format!("docs/{name}.md")));
    }
}

#[track_caller]
fn shows_its_files(page: &Path) {
    let text = fs::read_to_string(page).unwrap();
    let mut parts = text.split(MARK);
    let mut wanted = parts.next().unwrap().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(" -->\n").unwrap();
        let content = fs::read_to_string(repository().join(name)).unwrap();
        // What is shown of a file ends at the next fence.
        let after = match rest.strip_prefix("\n```rust\n") {
            Some(shown) => shown.split_once("\n```\n").unwrap().1,
            None => rest,
        };
        wanted += &format!("{MARK}{name} -->\n\n```rust\n{content}```\n{after}");
    }
    if text != wanted && std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(page, &wanted).unwrap();
    } else {
        assert_eq!(text, wanted, "UPDATE_DOCS=1 regenerates it");
    }
}

#[test]
fn the_experiment_is_one_small_folder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/clocks");
    let files = fs::read_dir(folder).unwrap();
    let lines = files.map(|file| {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        text.lines().count()
    });
    let lines: usize = lines.sum();
    assert!(lines <= 250, "{lines} lines");
}

/// Builds an example of a package, and returns its program.
fn example(name: &str, workspace: &Path, arguments: &[&str], built: &str) -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--quiet", "--locked", "--example", name])
        .args(arguments)
        .current_dir(workspace)
        .stdin(Stdio::null());
    // What `make build` has built of a release is not linted.
    if arguments.contains(&"--release") {
        cargo.env_remove("RUSTC_WORKSPACE_WRAPPER");
    }
    let built_by = cargo.output().unwrap();
    assert!(built_by.status.success(), "{built_by:?}");
    workspace.join(built).join("examples").join(name)
}

struct Tutorial {
    bench: Bench,
    program: PathBuf,
    agent: PathBuf,
}

impl Tutorial {
    fn new(name: &str) -> Self {
        let measured = repository().join("measured");
        let release = "target/x86_64-unknown-linux-gnu/release";
        Self {
            bench: Bench::new(),
            program: example(name, &repository(), &["-p", "tare"], "target/debug"),
            agent: example(name, &measured, &["-p", "tare-agent", "--release"], release),
        }
    }

    fn run(&self, words: &[&str]) -> Ran {
        let mut command = self.bench.command_of(&self.program, words);
        Ran::of(command.env("TARE_AGENT", &self.agent).output().unwrap())
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.bench.work().join(name)).unwrap()
    }
}

#[test]
fn an_experiment_of_one_folder_has_everything() {
    let tutorial = Tutorial::new("clocks");
    let run = |words: &str| tutorial.run(&words.split(' ').collect::<Vec<_>>());

    // Arguments, checked, and help.
    run("--help").expect(0, &["Measure what reading each clock costs"]);
    run("clocks --help").expect(0, &["--clock <CLOCK>", "--reads <N>", "[default: 100000]"]);
    run("clocks --clock sundial").expect(2, &["one of tsc, monotonic, reference"]);
    run("clocks --reads 0").expect(2, &["reads must be from 1 to 10000000"]);

    // A dry run, a run, and more runs of it.
    run("clocks --clock tsc,monotonic --reads 5000 --runs 2 --dry-run --output run")
        .expect(0, &["process tsc", "clock=monotonic reads=5000", "4 cells"]);
    assert!(!tutorial.bench.work().join("run").exists());
    let table = [
        "Cost of reading a clock",
        "process · clock=tsc",
        "Readings that differ from the one before",
    ];
    run("clocks --clock tsc,monotonic --reads 5000 --runs 2 --output run").expect(0, &table);
    run("clocks --resume run --runs 1").expect(0, &table);

    // The page with the picture, and the files.
    let page = tutorial.read("run/report.html");
    for part in ["Clocks side by side", "What a read costs", "Every run"] {
        assert!(page.contains(part), "{part}");
    }
    let rows = tutorial.read("run/figures.csv");
    let of_tsc = rows.lines().filter(|row| row.contains("clock=tsc"));
    // Four figures of the measure and one value, of three runs and over them.
    assert_eq!(of_tsc.count(), 5 * 4);
    let summary = tutorial.read("run/summary.json");
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let figures = summary["figures"].as_array().unwrap();
    let medians = figures
        .iter()
        .filter(|row| row["measure"] == "read" && row["figure"] == "p50");
    assert_eq!(medians.count(), 2);
    assert!(tutorial.bench.work().join("run/figures.parquet").exists());

    // A gate that passes, one that fails, and one of nothing.
    let gate = |limit: &str| tutorial.run(&["report", "run", "--fail-if", limit]);
    gate("clocks/read.p50{clock=tsc} > 1s").expect(0, &["Gate passed: read.p50"]);
    gate("read{clock=monotonic} > 0ns").expect(3, &["Gate failed: read.p50"]);
    gate("read{clock=sundial} > 1s").expect(2, &["matches no figure"]);

    // A comparison.
    run("clocks --clock tsc --reads 5000 --runs 2 --output other").expect(0, &[]);
    run("compare run --to other").expect(0, &["read.p50", "clock=tsc"]);

    // A study with a claim.
    let study = "reproduces = \"clocks-tutorial\"\nruns = 1\n\n[[experiment]]\nkind = \"clocks\"\nreads = 5000\n";
    fs::write(tutorial.bench.work().join("study.toml"), study).unwrap();
    run("study explain study.toml")
        .expect(0, &["all (default) · Clock to read", "5000 · How often"]);
    let claim = [
        "Claims of clocks-tutorial",
        "Reading the monotonic clock costs more",
    ];
    run("run study.toml --output study").expect(0, &claim);
}

#[test]
fn a_workload_of_one_file_has_everything() {
    let tutorial = Tutorial::new("divide");
    let run = |words: &str| tutorial.run(&words.split(' ').collect::<Vec<_>>());

    run("noise --help").expect(0, &["(the divider)", "--divisions <N>", "Divide N times"]);
    run("noise --workload divide --divisions 0").expect(2, &["must be from 1 to 1000000"]);
    run("noise --workload gap --divisions 5").expect(2, &["for the workload divide"]);
    run("noise --workload divide --dry-run").expect(0, &["process divide 100"]);
    run("noise --workload divide --divisions 5,50 --repetitions 1000 --runs 2 --output run")
        .expect(
            0,
            &[
                "divide 5 · process",
                "divide 50 · process",
                "divide divides in registers",
            ],
        );
    run("noise --resume run --runs 1").expect(0, &["divide 50 · process"]);
    let page = tutorial.read("run/report.html");
    for part in [
        "divides one number by another",
        "64-bit divisions in one repetition",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let gate = "duration.p50{size=50} > 1s";
    let gated = tutorial.run(&["report", "run", "--fail-if", gate]);
    gated.expect(0, &["Gate passed"]);
    let study = "runs = 1\n\n[[experiment]]\nkind = \"noise\"\nworkload = [\"divide\"]\ndivisions = [5]\nrepetitions = 1000\n";
    fs::write(tutorial.bench.work().join("study.toml"), study).unwrap();
    run("study explain study.toml").expect(0, &["5 · Divide N times, for divide"]);
    run("run study.toml --output study").expect(0, &["divide 5 · process"]);
    run("compare run --to study").expect(0, &[]);
}
