//! Bad input gets an error that names the remedy and the documented exit code; what was measured
//! before is kept.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, Bench, files, send};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

#[test]
fn words_that_an_error_quotes_begin_no_line_of_it() {
    const WORD: &str = "x\nerror: all is well\u{1b}[2J";
    let bench = Bench::new();
    for words in [
        &[WORD][..],
        &["report", WORD],
        &["run", WORD],
        &["import", "cyclictest", WORD],
        &["compare", WORD, "--to", WORD],
        &["noise", "--target", WORD],
        &["noise", "--runs", WORD],
        &["noise", &format!("--{WORD}")],
        &["noise", &format!("--load={WORD}")],
    ] {
        let ran = common::Ran::of(bench.command("").args(words).output().unwrap());
        assert!(!matches!(ran.code, Some(0) | None), "{words:?}: {ran:?}");
        assert!(!ran.err.contains('\u{1b}'), "{words:?}: {ran:?}");
        let mut quotes = ran.err.lines().filter(|line| line.contains("all is well"));
        let is_quoted = quotes.all(|line| line.contains("x\\nerror: all is well\\u001b[2J"));
        assert!(is_quoted, "{words:?}: {ran:?}");
    }
}

#[test]
fn arguments_that_make_no_sense_are_usage_errors() {
    let bench = Bench::new();
    for (words, said) in [
        (
            "noise --target dokcer",
            "there is no target 'dokcer'; known: process",
        ),
        ("noise --target process,x=1", "no option 'x'"),
        ("noise --target process --target process", "given twice"),
        ("noise --limit 0", "limit must be from 3 to 65536, not 0"),
        (
            "noise --limit 65537",
            "limit must be from 3 to 65536, not 65537",
        ),
        ("noise --limit -1", "unexpected argument '-1'"),
        ("noise --limit 99999999999", "--limit"),
        ("noise --size 0", "size must be from 1 to 16777216, not 0"),
        ("noise --repetitions 0", "repetitions must be from 1"),
        ("noise --runs 0", "nothing to run"),
        (
            "noise --workload gap --limit 22",
            "'limit' has no effect with the other values",
        ),
        ("noise --workload gap --window 5", "'window' has no effect"),
        ("noise --list 5us", "'list' has no effect"),
        ("service --duration 5s", "'duration' has no effect"),
        ("service --compute 1s", "'compute' has no effect"),
        ("wakeup -d 5 --policy other", "'distance' has no effect"),
        ("noise --workload sieve", "invalid value 'sieve'"),
        ("noise --threshold 5parsecs", "cycles, ns, us or ms"),
        (
            "noise --workload gap --threshold 99999999",
            "threshold must be from 1 to 1048576",
        ),
        ("noise --cpu 9999", "9999"),
        (
            "start --cpu 0",
            "start does not take --cpu: its instances run on any CPU",
        ),
        (
            "start --share-cpu",
            "start does not take --share-cpu: it measures on no CPU",
        ),
        (
            "start --load dd --load-cpus others",
            "no measured one for 'others' to leave out",
        ),
        (
            "service --max --duration 700",
            "service: --max takes a --duration of 600 s at most",
        ),
        ("noise --cell-limit 5", "unit"),
        ("noise --set nonsense", "NAME=VALUE"),
        ("noise --resume run --seed 3", "cannot be used with"),
        ("noise --resume run --limit 3", "cannot be used with"),
        ("noise --limit 22,14,22", "--limit: 22 is given twice"),
        ("frobnicate", "unrecognized subcommand"),
        ("", "Usage"),
    ] {
        bench.run(words).expect(2, &[said]);
    }
    assert_eq!(files(&bench.work()), Vec::<String>::new());
}

#[test]
fn cpus_that_there_are_not_and_settings_given_twice_fail_before_anything_runs() {
    let bench = Bench::new();
    for (words, said) in [
        (
            "wakeup --policy other --mainaffinity 1020",
            "--mainaffinity 1020 names CPU 1020, which is offline or does not exist on this machine (available: 0",
        ),
        (
            "noise --load cpus=0,1020:dd",
            "the load 'cpus=0,1020:dd' names CPU 1020, which is offline or does not exist on this machine",
        ),
        (
            "noise --load dd --load-cpus 1021-1022",
            "names CPU 1021-1022",
        ),
        (
            "noise --target linux,cpus=2 --load cpus=1:dd --load cpus=5:dd",
            "names CPU 5, which is offline or does not exist in the guest 'linux,cpus=2' (available: 0-1)",
        ),
        (
            "noise --set vm.stat_interval=7 --set /proc/sys/vm/stat_interval=9",
            "the setting /proc/sys/vm/stat_interval is given twice",
        ),
    ] {
        for dry_run in ["", "--dry-run"] {
            let ran = bench.run(&format!("{words} --output run {dry_run}"));
            ran.expect(2, &[said]);
        }
    }
    assert_eq!(files(&bench.work()), Vec::<String>::new());
}

#[test]
fn a_setting_that_can_not_be_changed_leaves_no_run_folder() {
    let bench = Bench::new();
    bench
        .run("noise --set vm.no_such_setting=1 --output run")
        .expect(1, &["no_such_setting"]);
    bench
        .run("noise --set vm.no_such_setting=1")
        .expect(1, &["no_such_setting"]);
    let left = fs::read_dir(bench.work()).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn scratch_folders_that_can_not_be_made_are_told_once_and_leave_nothing() {
    let bench = Bench::new();
    let mut command = bench.command("compare --self --pairs 1");
    let ran = common::Ran::of(command.env("TMPDIR", "/etc/passwd").output().unwrap());
    ran.expect(1, &["/etc/passwd", "set TMPDIR to a folder"]);
    assert_eq!(ran.err.matches("/etc/passwd").count(), 1, "{ran:?}");
    if rustix::process::geteuid().is_root() {
        // The path of a private engine's socket would be too long: known before measuring.
        let long = bench.work().join("a".repeat(110));
        fs::create_dir(&long).unwrap();
        for dry in ["", "--dry-run"] {
            let words = format!("noise --target docker --start-engine {dry}");
            let mut command = bench.command(&words);
            let ran = common::Ran::of(command.env("TMPDIR", &long).output().unwrap());
            ran.expect(5, &["set TMPDIR to a shorter path"]);
        }
    }
    let ran = bench.run("doctor");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let mut journals = files(&bench.state().join("journal"));
    journals.retain(|name| !name.ends_with(".lock"));
    assert_eq!(journals, Vec::<String>::new());
}

#[test]
fn a_missing_agent_is_an_unavailable_target() {
    let bench = Bench::new();
    let run = |words| {
        let output = bench
            .command(words)
            .env("TARE_AGENT", "/nowhere/tare-agent")
            .output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        (output.status.code(), said)
    };
    let (code, said) = run("noise");
    assert_eq!(code, Some(5), "{said}");
    assert!(
        said.contains("/nowhere/tare-agent") && said.contains("make build"),
        "{said}"
    );
    let (code, said) = run("targets");
    assert_eq!(code, Some(0));
    assert!(
        said.contains("not usable") && said.contains("make build"),
        "{said}"
    );
}

#[test]
fn an_agent_that_is_no_program_is_a_failed_cell() {
    let bench = Bench::new();
    let fake = bench.work().join("fake");
    fs::write(&fake, "#!/bin/sh\necho hello\nexit 0\n").unwrap();
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    let output = bench
        .command("noise --workload prime --runs 1 --output run")
        .env("TARE_AGENT", &fake)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("received no record; last output: hello"),
        "{said}"
    );
}

#[test]
fn output_that_can_not_be_written_is_told_before_measuring() {
    let bench = Bench::new();
    fs::write(bench.work().join("file"), "").unwrap();
    bench
        .run("noise --runs 1 --output file")
        .expect(1, &["file"]);
    bench
        .run("noise --runs 1 --output file/run")
        .expect(1, &["file/run"]);
    fs::create_dir(bench.work().join("full")).unwrap();
    fs::write(bench.work().join("full/precious"), "1").unwrap();
    bench
        .run("noise --runs 1 --output full")
        .expect(1, &["full"]);
    assert_eq!(files(&bench.work().join("full")), ["precious"]);
}

#[test]
fn a_full_disk_ends_the_run_with_what_was_measured_kept() {
    if !common::is_root() {
        return common::skip("a full disk", "mounting one requires root");
    }
    let bench = Bench::new();
    // In a separate mount namespace, so that nothing is left mounted. The disk holds the plan
    // and some cells, but not all.
    let script = "mount -t tmpfs -o size=400k tmpfs disk && \
        \"$0\" noise --workload copy --threshold 1 --repetitions 60000 --runs 40 --output disk/run; \
        code=$?; ls disk/run/cells | wc -l; \
        \"$0\" report disk/run >/dev/null 2>&1; echo report $?; exit $code";
    fs::create_dir(bench.work().join("disk")).unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_tare")])
        .current_dir(bench.work())
        .env("TARE_STATE_DIR", bench.state())
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    if err.contains("unshare: ") || err.contains("mount: ") {
        return common::skip("a full disk", &err);
    }
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(err.contains("full") || err.contains("space"), "{err}");
    assert!(err.contains("--resume"), "{err}");
    assert!(!err.contains("panicked"), "{err}");
    assert!(out.contains("report 1"), "{out}{err}");
}

#[test]
fn a_folder_that_is_no_run_is_refused() {
    let bench = Bench::new();
    bench.run("report").expect(1, &["tare noise"]);
    bench.run("report nowhere").expect(1, &["nowhere"]);
    fs::create_dir(bench.work().join("empty")).unwrap();
    bench.run("report empty").expect(1, &["empty"]);
    bench.run("noise --resume empty").expect(1, &["empty"]);
    fs::write(bench.work().join("empty/plan.json"), "{\"schema\": ").unwrap();
    bench.run("report empty").expect(1, &["plan.json"]);
}

#[test]
fn a_workload_that_crashes_is_one_failed_cell() {
    let bench = Bench::new();
    let started = bench.start("noise --workload gap --repetitions 50000000 --runs 2 --output run");
    send(started.agent(), Signal::ABORT);
    started
        .end()
        .expect(1, &["signal 6", "1 of 2 cells failed", "--resume"]);
    bench.run("noise --resume run").expect(0, &[]);
}

#[test]
fn a_workload_that_hangs_is_ended_after_its_limit() {
    let bench = Bench::new();
    let started = bench
        .start("noise --workload gap --repetitions 20000000 --runs 2 --cell-limit 5s --output run");
    send(started.agent(), Signal::STOP);
    started
        .end()
        .expect(1, &["timed out after 5 s: ", "1 of 2 cells failed"]);
}

fn sample() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    crates.join("exchange/tests/samples/cyclictest-live.txt")
}

/// Makes a run without measuring.
fn imported(bench: &Bench) -> PathBuf {
    let words = format!("import cyclictest {} --output run", sample().display());
    bench.run(&words).expect(0, &["imported"]);
    bench.work().join("run")
}

#[test]
fn the_report_of_a_damaged_run_is_shown_and_fails() {
    let bench = Bench::new();
    let words = "noise --workload prime --limit 10 --repetitions 2000 --cpu 0 --runs 2";
    bench.run(&format!("{words} --output run")).expect(0, &[]);
    bench.run("report run").expect(0, &[]);
    let damage = |cell: u32| {
        let file = bench.work().join(format!("run/cells/000{cell}/cell.json"));
        fs::write(file, "{}").unwrap();
    };
    bench.run(&format!("{words} --output other")).expect(0, &[]);
    damage(1);
    let compared = bench.run("compare run --to other");
    compared.expect(1, &["run: cell 1", "its content has changed"]);
    let one = bench.run("report run");
    one.expect(
        1,
        &[
            "1 of 2 cells have no figures",
            "its content has changed since it was written",
        ],
    );
    damage(2);
    bench
        .run("report run -q")
        .expect(1, &["Nothing was measured"]);
}

#[test]
fn what_is_no_ordinary_file_is_refused_before_it_is_opened() {
    let bench = Bench::new();
    let fifo = bench.work().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    for target in [
        "noise --target ssh,host=127.0.0.1,identity=fifo",
        "noise --target unikernel,image=fifo",
        "noise --target unikernel,image=/dev/zero",
        "start --target guest,image=fifo,ready=x,success=1 --interval alone",
        "primitives --predictions fifo --only getpid",
        "primitives --predictions /dev/zero --only getpid",
    ] {
        let ran = bench.run(target);
        assert!([2, 5].contains(&ran.code.unwrap()), "{ran:?}");
    }
    let endless = bench.run("import oslat /dev/zero");
    endless.expect(1, &["it has more than 64 MiB"]);
}

/// Starts a line, hides what is before it, and turns what follows.
const HOSTILE: &str = r"x\nerror: fine\r\u001b[31m\u202e\u2028";

#[test]
fn texts_of_a_study_add_no_line_to_an_error() {
    let bench = Bench::new();
    for (key, value) in [
        ("name", HOSTILE.to_owned()),
        ("title", HOSTILE.to_owned()),
        ("order", HOSTILE.to_owned()),
        (HOSTILE, "x".to_owned()),
    ] {
        let study = format!(
            "\"{key}\" = \"{value}\"\n[[experiment]]\nkind = \"noise\"\ntargets = [\"{HOSTILE}\"]\n"
        );
        fs::write(bench.work().join("hostile.toml"), study).unwrap();
        let ran = bench.run("study check hostile.toml");
        ran.expect(2, &["hostile.toml:1:1", "without control characters"]);
        let is_shown = |line: &str| !line.trim_start().starts_with("error: fine");
        assert!(ran.err.lines().all(is_shown), "{ran:?}");
        let obeyed = ['\r', '\u{1b}', '\u{202e}', '\u{2028}'];
        assert!(!ran.err.contains(obeyed), "{ran:?}");
    }
}

#[test]
fn names_of_a_run_folder_are_one_line_in_tables_and_files() {
    let bench = Bench::new();
    for run in ["base", "new"] {
        let sample = Path::new("../exchange/tests/samples/cyclictest-quiet.txt");
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join(sample);
        let sample = sample.display();
        let words = format!("import cyclictest {sample} --interval 1000 --output {run}");
        bench.run(&words).expect(0, &[]);
        let folder = bench.work().join(run);
        let own = HOSTILE.replace('x', run);
        for file in ["plan.json", "cells/0001/cell.json"] {
            let text = fs::read_to_string(folder.join(file)).unwrap();
            let text = text.replace("\"text\": \"cyclictest\"", &format!("\"text\": \"{own}\""));
            fs::write(folder.join(file), text).unwrap();
        }
        // Whoever makes such a folder makes its checksums, too.
        let sums = r#"for sums in $(find . -name SHA256SUMS); do (
            cd "${sums%SHA256SUMS}"; files=$(sed 's/^[^ ]* *//' SHA256SUMS); sha256sum $files >sums; mv sums SHA256SUMS
        ); done"#;
        let mut sum = Command::new("sh");
        let done = sum.args(["-c", sums]).current_dir(&folder);
        assert!(done.status().unwrap().success());
    }
    let report = bench.run("report base");
    report.expect(0, &["report: "]);
    let markdown = bench.run("compare base --to new --markdown");
    let read = |file| fs::read_to_string(bench.work().join("base").join(file)).unwrap();
    for text in [
        report.out + &report.err,
        markdown.out + &markdown.err,
        read("figures.csv"),
        read("wakeup-phases.csv"),
    ] {
        assert!(text.contains("error: fine"), "{text}");
        assert!(
            !text.lines().any(|line| line.starts_with("error: fine")),
            "{text}"
        );
        let obeyed = ['\r', '\u{1b}', '\u{202e}', '\u{2028}'];
        assert!(!text.contains(obeyed), "{text}");
    }
}

/// Runs `tare` with 256 MiB of memory.
fn run_in_little_memory(bench: &Bench, words: &str) -> common::Ran {
    let script = format!("ulimit -v 262144; exec \"$0\" {words}");
    let words = ["-c", &script, env!("CARGO_BIN_EXE_tare")];
    common::Ran::of(bench.command_of(Path::new("sh"), &words).output().unwrap())
}

#[test]
fn an_import_takes_little_more_memory_than_its_file() {
    let bench = Bench::new();
    let text = format!("{{\"x\":[{}0],\"thread\":{{}}}}", "[],".repeat(6 << 20));
    fs::write(bench.work().join("large.json"), text).unwrap();
    let ran = run_in_little_memory(&bench, "import oslat large.json");
    ran.expect(1, &["holds no thread"]);
}

#[test]
fn no_cell_takes_much_more_memory_than_its_file() {
    const LONGEST: usize = 32 << 20;
    let refused = "elements of a list";
    let numbered: String = (0..2_000_000).map(|n| format!("\"{n:x}\":\"\",")).collect();
    let many = |one: &str| one.repeat((LONGEST - (64 << 10)) / one.len());
    for (before, more, code, why) in [
        // A member that nobody knows.
        (
            "\"outcome\": {",
            format!("\"x\": [{}0],", many("[0],")),
            0,
            "",
        ),
        ("\"notices\": [", many("\"\","), 1, refused),
        (
            "\"facts\": [",
            many(r#"{"name":"","value":"","labels":{"":""}},"#),
            1,
            refused,
        ),
        (
            "\"options\": [",
            many(r#"{"key":"","value":""},"#) + r#"{"key":"","value":""}"#,
            1,
            refused,
        ),
        ("\"labels\": {", numbered, 1, "more than 100 labels"),
    ] {
        let bench = Bench::new();
        let cell = imported(&bench).join("cells/0001");
        let file = cell.join("cell.json");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(before), "{before}: {text}");
        fs::write(&file, text.replacen(before, &format!("{before}{more}"), 1)).unwrap();
        tare_testkit::repair_sums(&cell);
        run_in_little_memory(&bench, "report run").expect(code, &[why]);
    }
}

#[test]
fn a_damaged_cell_is_not_exported() {
    let bench = Bench::new();
    let words = "wakeup --interval 1ms --duration 100ms --cpu 0 --runs 2 --output run";
    bench.run(words).expect(0, &[]);
    fs::write(bench.work().join("run/cells/0001/cell.json"), "{}").unwrap();
    let exported = bench.run("export run --format hgrm");
    exported.expect(1, &["cell 1 (process", "is damaged and not exported"]);
    assert!(
        exported.out.contains("#[Max"),
        "the other one: {exported:?}"
    );
}

#[test]
fn a_run_of_another_experiment_is_not_continued() {
    let bench = Bench::new();
    imported(&bench);
    let said = "run can't be continued by that: it is a run of wakeup; `tare wakeup --resume run` continues it";
    bench.run("noise --resume run").expect(2, &[said]);
}

#[test]
fn a_report_that_can_not_be_written_is_shown_and_fails() {
    let bench = Bench::new();
    let run = imported(&bench);
    fs::create_dir(run.join("report.html")).unwrap();
    let ran = bench.run("report run");
    ran.expect(
        1,
        &[
            "report.html cannot be written",
            "tare report run --output DIR",
        ],
    );
    assert!(ran.out.contains("Wake-up"), "{}", ran.out);
    bench.run("report run --json").expect(1, &["report.html"]);
    bench
        .run("report run --output elsewhere")
        .expect(0, &["elsewhere/report.html"]);
    let all = files(&bench.work().join("elsewhere"));
    assert!(all.contains(&"summary.json".to_owned()), "{all:?}");
    bench
        .run("report run --output elsewhere")
        .expect(1, &["elsewhere is not empty"]);
}

#[test]
fn the_run_of_another_user_is_shown_and_its_report_written_elsewhere() {
    if !common::is_root() {
        return common::skip("the run of another user", "making one requires root");
    }
    let bench = Bench::new();
    let run = imported(&bench);
    chown(&run, Some(NOBODY), None).unwrap();
    let before = files(&bench.work());
    let ran = bench.run("report run");
    ran.expect(
        1,
        &["belongs to user 65534", "tare report run --output DIR"],
    );
    assert!(ran.out.contains("Wake-up"), "{}", ran.out);
    bench.run("wakeup --resume run").expect(
        2,
        &["belongs to user 65534", "a copy of your own, with --trust"],
    );
    assert_eq!(files(&bench.work()), before);
    bench
        .run("report run --output elsewhere")
        .expect(0, &["elsewhere/report.html"]);
}

#[test]
fn what_sudo_writes_is_the_user_s() {
    if !common::is_root() {
        return common::skip("sudo", "acting as sudo does requires root");
    }
    let bench = Bench::new();
    let run = imported(&bench);
    let home = bench.work().join("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    for words in [
        "export run --format csv --output home/histogram",
        "report run --output home/deep/report",
    ] {
        let mut command = bench.command(words);
        let ran = command.env("SUDO_UID", NOBODY.to_string()).output();
        assert!(ran.unwrap().status.success());
    }
    for name in [
        "histogram",
        "deep",
        "deep/report",
        "deep/report/report.html",
    ] {
        let made = fs::metadata(home.join(name)).unwrap();
        assert_eq!((made.uid(), made.gid()), (NOBODY, NOBODY), "{name}");
    }
    // Root's own stays root's.
    let own = fs::metadata(run.join("report.html"));
    assert!(own.is_err() || own.unwrap().uid() == 0);
}

#[test]
fn what_sudo_imports_is_the_user_s_with_all_that_is_in_it() {
    if !common::is_root() {
        return common::skip("sudo", "acting as sudo does requires root");
    }
    let bench = Bench::new();
    chown(bench.work(), Some(NOBODY), Some(NOBODY)).unwrap();
    let words = format!("import cyclictest {} --output run", sample().display());
    let mut command = bench.command(&words);
    let ran = command.env("SUDO_UID", NOBODY.to_string()).output();
    assert!(ran.unwrap().status.success());
    let run = bench.work().join("run");
    let names = files(&run);
    assert!(
        names.contains(&"cells/0001/cell.json".to_owned()),
        "{names:?}"
    );
    let folders = ["", "cells", "cells/0001"].map(str::to_owned);
    for name in names.iter().chain(&folders) {
        let made = fs::symlink_metadata(run.join(name)).unwrap();
        assert_eq!((made.uid(), made.gid()), (NOBODY, NOBODY), "{name}");
    }
}

#[test]
fn a_device_is_not_replaced_by_what_is_written() {
    let bench = Bench::new();
    imported(&bench);
    let null = bench.work().join("null");
    let kind = FileType::CharacterDevice;
    let device = rustix::fs::makedev(1, 3);
    if mknodat(CWD, &null, kind, Mode::from_raw_mode(0o666), device).is_err() {
        return common::skip("a device", "making one requires root");
    }
    for (words, said) in [
        ("export run --format csv --output null", "is there already"),
        (
            "export run --format csv --output null --force",
            "is not a regular file",
        ),
        ("export run --format raw --output null --force", "null"),
        ("report run --output null", "null"),
        ("wakeup --duration 100ms --runs 1 --output null", "null"),
    ] {
        bench.run(words).expect(1, &[said]);
        let there = fs::symlink_metadata(&null).unwrap();
        assert_eq!(there.rdev(), device, "{words}");
    }
}

#[test]
fn a_limit_of_file_sizes_is_an_error_of_writing() {
    let bench = Bench::new();
    imported(&bench);
    let output = bench
        .command_of(
            Path::new("sh"),
            &[
                "-c",
                "ulimit -f 8; exec \"$0\" report run",
                env!("CARGO_BIN_EXE_tare"),
            ],
        )
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("ulimit -f") && said.contains("--output DIR"),
        "{said}"
    );
}

#[test]
fn what_is_measured_gets_its_signals_as_always() {
    let bench = Bench::new();
    let started = bench.start("noise --workload gap --repetitions 200000000 --runs 1 --output run");
    let agent = started.agent();
    let status = fs::read_to_string(format!("/proc/{agent}/status")).unwrap();
    send(agent, Signal::ABORT);
    for kind in ["SigIgn:", "SigCgt:"] {
        let line = status.lines().find_map(|line| line.strip_prefix(kind));
        let mask = u64::from_str_radix(line.unwrap().trim(), 16).unwrap();
        let number = Signal::XFSZ.as_raw();
        assert_eq!(mask >> (number - 1) & 1, 0, "{kind} {mask:x}");
    }
    started.end().expect(1, &["signal 6"]);
}

/// The user who owns nothing.
const NOBODY: u32 = 65_534;
