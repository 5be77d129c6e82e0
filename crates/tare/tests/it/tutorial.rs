//! The tutorials in docs/: pages and files agree, and each command works with the experiment, the
//! workload and the target that the tutorials add.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tare_testkit::skip;

use crate::common::{self, Bench, Ran, files, is_root};
use crate::unikernel::is_usable;

const MARK: &str = "<!-- file: ";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_pages_show_the_files_as_they_are() {
    for name in [
        "adding-an-experiment",
        "adding-a-target",
        "adding-a-workload",
    ] {
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
        let fence = match name.ends_with(".rs") {
            true => "```rust\n",
            false => "```toml\n",
        };
        // What is shown of a file ends at the next fence.
        let after = match rest.strip_prefix(&format!("\n{fence}")) {
            Some(shown) => shown.split_once("\n```\n").unwrap().1,
            None => rest,
        };
        wanted += &format!("{MARK}{name} -->\n\n{fence}{content}```\n{after}");
    }
    if text != wanted && std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(page, &wanted).unwrap();
    } else {
        assert_eq!(text, wanted, "UPDATE_DOCS=1 regenerates it");
    }
}

/// The line in each table of tare that a page shows with its own entry.
#[test]
fn the_pages_show_the_tables_as_they_are() {
    for (page, table, line, entry) in [
        (
            "adding-an-experiment",
            "measured/experiments/src/table.rs",
            "    [noise::on(), start::on(), stream::on()",
            ", clocks::on()]",
        ),
        (
            "adding-an-experiment",
            "crates/experiments/src/lib.rs",
            "pub const TABLE: Table = &[&Noise, &Wakeup, &Start, &Primitives, &Service, &Stream",
            ", &Clocks];",
        ),
        (
            "adding-a-target",
            "crates/targets/src/spec.rs",
            "pub const KINDS: &[Kind] = &[",
            "\n    oci::OCI,",
        ),
        (
            "adding-a-workload",
            "measured/workloads/src/noise.rs",
            "pub const WORKLOADS: &[Workload] = &[gap::WORKLOAD, prime::WORKLOAD, copy::WORKLOAD",
            ", divide::WORKLOAD];",
        ),
    ] {
        let read = |path: &str| fs::read_to_string(repository().join(path)).unwrap();
        let text = read(table);
        let Some((_, rest)) = text.split_once(line) else {
            panic!("{table} has no {line}");
        };
        // The page shows all entries of the line.
        assert!(rest.starts_with([']', '\n']), "{table}: {line}");
        assert!(
            read(&format!("docs/{page}.md")).contains(&format!("{line}{entry}")),
            "{page}"
        );
    }
}

/// Every `file.rs` and every `folder/` named in these pages exists, here or further down.
#[test]
fn files_named_by_the_pages_about_the_code_exist() {
    let measured = fs::read_dir(repository().join("measured")).unwrap();
    let folders = measured.map(|entry| entry.unwrap().path());
    let folders = folders.filter(|folder| folder.is_dir() && !folder.ends_with("target"));
    let folders = folders.chain(["crates", "docs", "tests"].map(|name| repository().join(name)));
    let all: Vec<String> = folders
        .flat_map(|folder| {
            let relative = folder.strip_prefix(repository()).unwrap().to_owned();
            let names = files(&folder).into_iter();
            names.map(move |name| format!("/{}", relative.join(name).display()))
        })
        .collect();
    // Files and folders that the reader of a tutorial would make.
    let new = ["oci.rs", "divide.rs", "src/clocks/"];
    for page in [
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/adding-a-target.md",
        "docs/adding-a-workload.md",
        "docs/adding-an-experiment.md",
        "docs/life-of-a-cell.md",
        "docs/life-of-an-image.md",
        "docs/loads.md",
        "docs/primitives.md",
        "docs/studies.md",
    ] {
        let text = fs::read_to_string(repository().join(page)).unwrap();
        for path in text.split('`').skip(1).step_by(2) {
            let is_plain = !path.contains([' ', '<', '*', '$']);
            let is_file = path.ends_with(".rs");
            let is_folder = path.starts_with("crates/") || path.starts_with("measured/");
            if !is_plain || !is_file && !is_folder || new.iter().any(|new| path.ends_with(new)) {
                continue;
            }
            let wanted = format!("/{path}");
            let is_here = |file: &String| match is_file {
                true => file.ends_with(&wanted),
                false => file.contains(&wanted),
            };
            let is_there = repository().join(path).exists() || all.iter().any(is_here);
            assert!(is_there, "{page}: {path}");
        }
    }
}

#[test]
fn what_the_pages_add_is_small() {
    for (most, paths) in [
        (
            380,
            &[
                "crates/tare/examples/clocks",
                "measured/experiments/examples/clocks",
            ][..],
        ),
        (350, &["crates/tare/examples/oci.rs"]),
        (110, &["measured/workloads/examples/divide"]),
    ] {
        let lines = paths.iter().map(|path| lines(&repository().join(path)));
        let lines: usize = lines.sum();
        assert!(lines <= most, "{paths:?}: {lines} lines");
    }
}

/// Counts the lines of a file, or of all files in a folder.
fn lines(path: &Path) -> usize {
    match fs::read_dir(path) {
        Ok(folder) => folder.map(|entry| lines(&entry.unwrap().path())).sum(),
        Err(_) => fs::read_to_string(path).unwrap().lines().count(),
    }
}

/// Builds a program of a package, and returns its path.
fn build(what: [&str; 2], workspace: &Path, arguments: &[&str], built: &str) -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--quiet", "--locked"])
        .args(what)
        .args(arguments)
        .current_dir(workspace)
        .stdin(Stdio::null());
    // What `make build` has built of a release is not linted.
    if arguments.contains(&"--release") {
        cargo.env_remove("RUSTC_WORKSPACE_WRAPPER");
    }
    let built_by = cargo.output().unwrap();
    assert!(built_by.status.success(), "{built_by:?}");
    workspace.join(built).join(what[1])
}

struct Tutorial {
    bench: Bench,
    program: PathBuf,
    /// Variables that name its own agent and images.
    own: Vec<(&'static str, PathBuf)>,
}

impl Tutorial {
    /// Builds the tare of a page.
    fn new(name: &str) -> Self {
        let (what, arguments) = (["--example", name], ["-p", "tare"]);
        Self {
            bench: Bench::new(),
            program: build(what, &repository(), &arguments, "target/debug/examples"),
            own: Vec::new(),
        }
    }

    /// Builds the tare of a page, and agent and image with its measured code.
    fn measured(name: &str) -> Self {
        const RELEASE: &str = "target/x86_64-unknown-linux-gnu/release";
        let (measured, examples) = (repository().join("measured"), format!("{RELEASE}/examples"));
        let arguments = ["-p", "tare-agent", "--release"];
        let agent = build(["--example", name], &measured, &arguments, &examples);
        let arguments = ["-p", "tare-images", "--release"];
        let image = build(["--bin", "tutorials"], &measured, &arguments, RELEASE);
        let mut tutorial = Self::new(name);
        let images = tutorial.bench.work().join("images");
        fs::create_dir(&images).unwrap();
        fs::copy(image, images.join("bench")).unwrap();
        tutorial.own = vec![("TARE_AGENT", agent), ("TARE_IMAGES", images)];
        tutorial
    }

    /// Runs it with words that are separated by spaces.
    fn run(&self, words: &str) -> Ran {
        self.run_words(&words.split(' ').collect::<Vec<_>>())
    }

    fn run_words(&self, words: &[&str]) -> Ran {
        let mut command = self.bench.command_of(&self.program, words);
        Ran::of(command.envs(self.own.iter().cloned()).output().unwrap())
    }

    /// Checks a run by a gate.
    fn gate(&self, limit: &str) -> Ran {
        self.run_words(&["report", "run", "--fail-if", limit])
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.bench.work().join(name)).unwrap()
    }

    fn write_study(&self, text: &str) {
        fs::write(self.bench.work().join("study.toml"), text).unwrap();
    }
}

#[test]
fn an_experiment_of_two_folders_has_everything() {
    let tutorial = Tutorial::measured("clocks");
    let run = |words: &str| tutorial.run(words);

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
        "process, clock=tsc",
        "Readings that differ from the one before",
    ];
    run("clocks --clock tsc,monotonic --reads 5000 --runs 2 --output run").expect(0, &table);
    run("clocks --resume run --runs 1").expect(0, &table);

    // The page with the picture, and the files.
    let page = tutorial.read("run/report.html");
    for part in ["Slowest reads", "The slowest read", "Every run"] {
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
    let gate = |limit: &str| tutorial.gate(limit);
    gate("clocks/read.p50{clock=tsc} > 1s").expect(0, &["Gate passed: read.p50"]);
    gate("read{clock=monotonic} > 0ns").expect(3, &["Gate failed: read.p50"]);
    gate("read{clock=sundial} > 1s").expect(2, &["matches no figure"]);

    // A comparison.
    run("clocks --clock tsc --reads 5000 --runs 2 --output other").expect(0, &[]);
    run("compare run --to other").expect(0, &["read.p50", "clock=tsc"]);

    // The page's study with its claim, on both targets.
    let study = repository().join("crates/tare/examples/clocks/study.toml");
    tutorial.write_study(&fs::read_to_string(study).unwrap());
    run("study explain study.toml")
        .expect(0, &["all (default) · Clock to read", "5000 · How often"]);
    if !is_usable(&tutorial.bench) {
        return;
    }
    let claim = [
        "Claims of clocks-tutorial",
        "Reading the monotonic clock costs more",
        "unikernel",
    ];
    run("run study.toml --output study").expect(0, &claim);
    // What a platform lacks is the reason of its failed cell.
    run("clocks --target unikernel --clock monotonic --runs 1")
        .expect(1, &["this platform has no such clock"]);
}

#[test]
fn a_workload_of_one_file_has_everything() {
    let tutorial = Tutorial::measured("divide");
    let run = |words: &str| tutorial.run(words);

    run("noise --help").expect(0, &["(the divider)", "--divisions <N>", "Divide N times"]);
    run("noise --workload divide --divisions 0").expect(2, &["must be from 1 to 1000000"]);
    run("noise --workload gap --divisions 5").expect(
        2,
        &["'divisions' has no effect with the other values: Divide N times, for divide"],
    );
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
    tutorial
        .gate("duration.p50{size=50} > 1s")
        .expect(0, &["Gate passed"]);
    tutorial.write_study(
        "runs = 1\n\n[[experiment]]\nkind = \"noise\"\nworkload = [\"divide\"]\ndivisions = [5]\nrepetitions = 1000\n",
    );
    run("study explain study.toml").expect(0, &["5 · Divide N times, for divide"]);
    run("run study.toml --output study").expect(0, &["divide 5 · process"]);
    run("compare run --to study").expect(0, &[]);
    if is_usable(&tutorial.bench) {
        run("noise --workload divide --divisions 5 --repetitions 1000 --runs 1 --target unikernel")
            .expect(0, &["divide 5 · unikernel"]);
    }
}

#[test]
fn a_target_of_one_file_has_everything() {
    const RUNC: &str = "/usr/sbin/runc";
    let tutorial = Tutorial::new("oci");
    let run = |words: &str| tutorial.run(words);

    // The list, and what is refused before anything starts.
    run("targets").expect(
        0,
        &["any OCI runtime", "written: oci,runtime=FILE[,mem=SIZE]"],
    );
    run("targets --json").expect(0, &["limit of the container's memory"]);
    run("noise --target oci").expect(2, &["needs 'runtime'"]);
    run("noise --target oci,runtime=/x,mem=1M").expect(2, &["want a size in MiB or GiB from 8M"]);
    run("noise --target oci,runtime=/nowhere/x").expect(5, &["there is no file /nowhere/x"]);
    run("start --target oci,runtime=/x --work command:ls").expect(2, &["can't start a command"]);
    if !is_root() || !Path::new(RUNC).is_file() {
        return skip("runc", "it is not installed, or this is not root");
    }
    let _alone = common::alone();
    let on_both = format!("--target process --target oci,mem=1024M,runtime={RUNC}");

    // Each experiment; the canonical form of the target; no option has its default.
    let name = format!("oci,runtime={RUNC},mem=1G");
    let noise = format!("noise --workload prime --limit 22 --repetitions 1000 --runs 2 {on_both}");
    run(&format!("{noise} --dry-run")).expect(0, &[&name]);
    run(&format!("{noise} --output run")).expect(0, &[&name, "CPUs, 1G of memory, no network"]);
    run("noise --resume run --runs 1").expect(0, &[&name]);
    run(&format!(
        "wakeup -i 1000 -l 50 --policy other --runs 1 --load command:true {on_both}"
    ))
    .expect(0, &[&name]);
    run(&format!(
        "primitives --only getppid --budget 1ms --runs 1 {on_both}"
    ))
    .expect(0, &[&name]);
    let start = "start --interval alone,1/4s --warmup 0s --measure 1s --runs 1 --output starts";
    run(&format!("{start} {on_both}")).expect(0, &[&name]);

    // Page, gates and comparison.
    run("report run").expect(0, &[&name]);
    assert!(tutorial.read("run/report.html").contains("Containers"));
    let limit = format!("duration.p50{{target={}}} > 1s", name.replace(',', ",,"));
    tutorial.gate(&limit).expect(0, &["Gate passed"]);
    run("compare run --by target").expect(0, &[&name]);

    // A study.
    tutorial.write_study(&format!(
        "targets = [\"{name}\"]\nruns = 1\n\n[[experiment]]\nkind = \"noise\"\nworkload = [\"prime\"]\nlimit = [22]\nrepetitions = 1000\n"
    ));
    run("study explain study.toml").expect(0, &[&name]);
    run("run study.toml --output study").expect(0, &[&name]);
    run("compare run --to study").expect(0, &[&name]);

    // A script plays a runtime that fails.
    let broken = tutorial.bench.work().join("broken");
    fs::write(&broken, "#!/bin/sh\necho no such bundle >&2\nexit 3\n").unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let on_broken = format!("--runs 1 --target oci,runtime={}", broken.display());
    let why = "it ended with status 3; it said: no such bundle";
    run(&format!("noise --workload prime {on_broken}")).expect(1, &[why]);
    let start = "start --interval 1/4s --warmup 0s --measure 1s";
    run(&format!("{start} {on_broken}")).expect(1, &[why]);

    // Nothing is left.
    assert_eq!(files(&tutorial.bench.scratch()), Vec::<String>::new());
}
