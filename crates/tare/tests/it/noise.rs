//! `tare noise` from the command line to the report.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tare_testkit::assert_contains;

use crate::common::{self, Bench, OtherUser, Ran, Started, files, skip};

const TINY: &str = "--repetitions 2000 --runs 2 --cpu 0";

#[test]
fn a_run_leaves_plan_machine_cells_tables_and_report() {
    let bench = Bench::new();
    let ran = bench.run(&format!("noise {TINY} --output run"));
    let rules = [
        "gap lists what takes at least 500 ns",
        "prime lists what exceeds the run's mean by 400 cycles",
    ];
    ran.expect(0, &["report.html", "copy"]).expect(0, &rules);
    let names = files(&bench.work().join("run"));
    for name in ["plan.json", "machine.json", "summary.json", "report.html"] {
        assert!(names.contains(&name.to_owned()), "{name} in {names:?}");
    }
    for cell in 1..=6 {
        for file in [
            "cell.json",
            "instances.parquet",
            "counts.parquet",
            "events.parquet",
            "envelope.parquet",
            "raw.parquet",
        ] {
            let name = format!("cells/{cell:04}/{file}");
            assert!(names.contains(&name), "{name} in {names:?}");
        }
    }
    assert_eq!(files(&bench.scratch()), Vec::<String>::new());
}

#[test]
fn json_goes_to_standard_output_alone() {
    let bench = Bench::new();
    let ran = bench.run(&format!("noise {TINY} --workload prime --json"));
    ran.expect(0, &[]);
    let summary: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert!(summary["schema"].is_u64(), "{summary}");
    assert!(summary["verdict"].is_string() || summary["verdict"].is_object());
}

#[test]
fn quiet_prints_the_verdict_and_a_complete_run_says_so() {
    let bench = Bench::new();
    let words = "noise --workload gap --repetitions 20000 --runs 1 --cpu 0 --output run";
    let ran = bench.run(&format!("{words} -q"));
    ran.expect(0, &["CPU 0 "]);
    for word in ["Interruptions", "report.html", "[1/1]", "into run"] {
        let said = ran.out.contains(word) || ran.err.contains(word);
        assert!(!said, "{word}: {ran:?}");
    }
    let again = bench.run("report run --quiet");
    again.expect(0, &[]);
    assert_eq!(again.out, ran.out);
    bench
        .run("report run -q --json")
        .expect(2, &["cannot be used with"]);

    let resumed = bench.run("noise --resume run");
    resumed.expect(
        0,
        &[
            "run is complete: there is nothing to measure; --runs N adds runs",
            "Interruptions",
        ],
    );
    assert!(!resumed.err.contains("0 cells"), "{resumed:?}");
}

#[test]
fn a_name_from_outside_is_read_and_not_obeyed() {
    let bench = Bench::new();
    let mut command = bench.command("report");
    let ran = common::Ran::of(
        command
            .arg("\u{1b}[2Jrun\nerror: all is well\u{9b}m")
            .output()
            .unwrap(),
    );
    ran.expect(1, &["\\u001b[2Jrun\\nerror: all is well\\u009bm"]);
    assert!(
        !ran.err.contains('\u{1b}') && !ran.err.contains("\nerror"),
        "{ran:?}"
    );
}

#[test]
fn the_report_is_made_again_from_the_run_alone() {
    let bench = Bench::new();
    let first = bench.run(&format!("noise {TINY} --output tare-runs/a"));
    first.expect(0, &[]);
    let report = bench.work().join("tare-runs/a/report.html");
    fs::remove_file(&report).unwrap();
    let again = bench.run("report");
    again.expect(0, &["report.html"]);
    assert!(report.exists());
    assert_eq!(first.out, again.out);
}

#[test]
fn a_setting_is_changed_for_the_run_and_put_back() {
    if !common::is_root() {
        return common::skip("a kernel setting", "changing it requires root");
    }
    // Another setting than in the test of `kill -9`, which runs at the same time.
    let path = "/proc/sys/vm/dirty_expire_centisecs";
    let before = fs::read_to_string(path).unwrap();
    let bench = Bench::new();
    let words =
        "noise --workload gap --repetitions 50000000 --runs 1 --set vm.dirty_expire_centisecs=3077";
    let started = bench.start(words);
    started.agent();
    assert_eq!(fs::read_to_string(path).unwrap().trim(), "3077");
    started.end().expect(0, &[]);
    assert_eq!(fs::read_to_string(path).unwrap(), before);
}

#[test]
fn isolation_is_measured_and_put_back_and_what_another_program_writes_is_reported() {
    if !common::is_root() {
        return common::skip("isolation", "changing kernel settings requires root");
    }
    let cpu = 0;
    let (_alone, switches, mut files) = common::switches(cpu);
    let written = "/proc/sys/vm/page_lock_unfairness";
    files.push(written.to_owned());
    let read = || Vec::from_iter(files.iter().map(|path| fs::read_to_string(path).unwrap()));
    let before = read();
    let original = before.last().unwrap().clone();
    let is_over = AtomicBool::new(false);
    let bench = Bench::new();
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs::write(written, &original).unwrap();
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let ran = bench.run(&format!(
            "noise --workload gap --repetitions 20000000 --runs 3 --cpu {cpu} --output run \
             --isolate {},vm.page_lock_unfairness=77,vm.no_such_setting=1",
            switches.join(",")
        ));
        is_over.store(true, Ordering::Relaxed);
        ran
    });
    ran.expect(0, &["What the switches change"]);
    // Lines are broken to the width of the terminal.
    let said = format!("{} {}", ran.out, ran.err);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_contains(
        &said,
        &[
            "gap on CPU 0, isolated: ",
            "of the time lost instead of",
            &format!(
                "{} of {} switches changed",
                switches.len() + 1,
                switches.len() + 2
            ),
            "Not changed in cells",
            "cannot find /proc/sys/vm/no_such_setting",
            "Did not stay as planned in cells",
            "to /proc/sys/vm/page_lock_unfairness during the measurement",
        ],
    );
    assert_eq!(read(), before);
    // Every block has a cell with the switches, and one without.
    let plan = common::json(&bench.work().join("run/plan.json"));
    let cells = plan["cells"].as_array().unwrap();
    let with = cells
        .iter()
        .filter(|cell| cell["labels"]["isolate"] == "yes");
    assert_eq!((with.count(), cells.len()), (3, 6));
}

#[test]
fn each_refusal_of_an_interrupt_to_move_is_explained() {
    const FILE: &str = "smp_affinity_list";
    let entries = fs::read_dir("/proc/irq").into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path());
    let mut folders: Vec<_> = folders.filter(|path| path.is_dir()).collect();
    if !common::is_root() || folders.len() < 3 {
        return skip("interrupts that refuse", "it requires root and interrupts");
    }
    // The kernel refuses even the CPUs that an interrupt has.
    let is_managed = |folder: &PathBuf| {
        let file = folder.join(FILE);
        let found = fs::read_to_string(&file).unwrap_or_default();
        fs::write(file, found).is_err()
    };
    let managed = folders.iter().position(is_managed);
    let managed = managed.map(|place| folders.remove(place));
    let (full, read_only) = (folders[0].display(), folders[1].display());
    let third = managed
        .as_ref()
        .map_or("/proc/irq/none".into(), |path| path.display().to_string());
    let script = format!(
        "mount -t tmpfs -o size=4k tmpfs {full} && mount -t tmpfs tmpfs {read_only} || exit 77
         : > {full}/{FILE}; cat /dev/zero > {full}/fill
         echo 0 > {read_only}/{FILE}; mount -o remount,ro {read_only}
         exec \"$0\" noise --workload gap --repetitions 1000000 --runs 1 --cpu 0 \
         --isolate {full}/{FILE}=1,{read_only}/{FILE}=1,{third}/{FILE}=1"
    );
    let bench = Bench::new();
    let tare = env!("CARGO_BIN_EXE_tare");
    let words = ["--mount", "sh", "-c", &script, tare];
    let mut command = bench.command_of(Path::new("unshare"), &words);
    let ran = Ran::of(command.output().unwrap());
    if ran.code == Some(77) || ran.err.contains("unshare: ") {
        return skip("interrupts that refuse", &ran.err);
    }
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    // Lines are broken to the width of the terminal.
    let said = format!("{} {}", ran.out, ran.err);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let reasons = [
        "(no switch could be changed)",
        "no interrupt vector is left on the other CPUs",
        "it is mounted read-only",
        match managed {
            Some(_) => "its driver manages this interrupt",
            None => "does not have it",
        },
    ];
    assert_contains(&said, &reasons);
}

#[test]
fn a_cpuset_of_version_1_is_made_for_a_cell_and_removed_also_after_kill_9() {
    const CPUSETS: &str = "/sys/fs/cgroup/cpuset";
    let read = |path: &Path| {
        fs::read_to_string(path)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    if !common::is_root() || read(&Path::new(CPUSETS).join("cpuset.cpus")).is_empty() {
        return skip(
            "cpusets of version 1",
            "they require root and their hierarchy",
        );
    }
    // A part of the hierarchy, so that the threads of other tests stay where they are.
    let top = Group(format!("{CPUSETS}/test-{}", std::process::id()).into());
    fs::create_dir(&top.0).unwrap();
    for file in ["cpuset.cpus", "cpuset.mems"] {
        fs::write(top.0.join(file), read(&Path::new(CPUSETS).join(file))).unwrap();
    }
    let bench = Bench::new();
    let (group, mount) = (top.0.display(), bench.work().join("cpusets"));
    fs::create_dir(&mount).unwrap();
    let mount = mount.display();
    let script = format!(
        "mount --bind {group} {mount} && umount --lazy {CPUSETS} && mount --bind {mount} {CPUSETS} \
         && umount {mount} && echo $$ > {CPUSETS}/cgroup.procs || exit 77
         exec \"$0\" \"$@\""
    );
    let tare = |words: &str| {
        let before = ["--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_tare")];
        let words = Vec::from_iter(before.into_iter().chain(words.split(' ')));
        bench.command_of(Path::new("unshare"), &words)
    };
    let below = || {
        let entries = fs::read_dir(&top.0).unwrap().flatten();
        let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
        Vec::from_iter(folders.map(|entry| entry.path()))
    };
    let is_balanced = || read(&top.0.join("cpuset.sched_load_balance")) == "1";
    let ran = Ran::of(tare("clean").output().unwrap());
    if ran.code == Some(77) || ran.err.contains("unshare: ") {
        return skip("cpusets of version 1", &ran.err);
    }
    let measured = |run: &str| {
        let words =
            "noise --workload gap --repetitions 100000000 --runs 1 --cpu 0 --isolate cpuset";
        let started = Started::of(&mut tare(&format!("{words} --output {run}")));
        let own = common::wait_for("a process in a cpuset", || {
            let has_process = |group: &PathBuf| !read(&group.join("tasks")).is_empty();
            let mut own = below().into_iter();
            own.find(|group| read(&group.join("cpuset.cpus")) == "0" && has_process(group))
        });
        assert_eq!(read(&own.join("cpuset.sched_load_balance")), "0");
        assert!(!is_balanced());
        started
    };
    let ran = measured("whole").end();
    ran.expect(0, &["isolated: "]);
    assert!(!ran.err.contains("Not changed"), "{}", ran.err);
    assert!(below().is_empty() && is_balanced());

    let started = measured("killed");
    started.signal(Signal::KILL);
    drop(started);
    assert!(!below().is_empty() && !is_balanced());
    Ran::of(tare("clean").output().unwrap()).expect(0, &[]);
    assert!(below().is_empty() && is_balanced());
}

/// A control group, which is removed with this.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        // Of a process that has just ended, the kernel lets go a little later.
        let ends = Instant::now() + Duration::from_secs(5);
        while fs::remove_dir(&self.0).is_err() && Instant::now() < ends {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn isolation_is_refused_where_no_setting_can_be_changed() {
    let Some(user) = OtherUser::new() else {
        return skip("another user", "becoming one requires root and setpriv");
    };
    let why = [
        "--isolate or --screen can't be used here",
        "run tare as root",
    ];
    user.run("noise --isolate").expect(5, &why);
    let why = ["/proc/sys/nothing", "name a switch"];
    user.run("noise --isolate nothing=1").expect(5, &why);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let bench = Bench::new();
    let mut started = bench.command("doctor --all");
    let mut child = started.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_first_picture_is_a_study_of_what_is_usable_here() {
    let bench = Bench::new();
    let ran = bench.run("quick --dry-run --cpu 0");
    ran.expect(0, &["process prime 22", "process gap", "block 6"]);
    let has_unikernel = ran.out.contains("unikernel,irq=off gap");
    let is_told = ran.err.contains("without unikernel,irq=off");
    assert!(has_unikernel != is_told, "{ran:#?}");
    bench
        .run("study explain quick")
        .expect(0, &["process; unikernel,irq=off"]);
}

#[test]
fn quick_says_in_plain_words_what_it_measured() {
    let bench = Bench::new();
    // Without QEMU it takes seconds; with it, emulated figures would stand in no sentence.
    let programs = bench.work().with_file_name("programs");
    fs::create_dir(&programs).unwrap();
    let mut command = bench.command("quick --output run");
    let ran = Ran::of(command.env("PATH", &programs).output().unwrap());
    ran.expect(
        0,
        &[
            "without unikernel,irq=off: ",
            "gap only reads the clock: whatever takes the CPU away shows as a gap",
            "prime computes in registers only; copy works on memory",
        ],
    );
}

#[test]
fn one_node_at_scale_takes_what_the_run_lost() {
    let bench = Bench::new();
    let words = "--workload gap --repetitions 20000000 --cpu 0 --runs 3 --output";
    bench.run(&format!("noise {words} run")).expect(0, &[]);
    let summary = common::json(&bench.work().join("run/summary.json"));
    let figures = summary["figures"].as_array().unwrap();
    let lost = figures.iter().find(|row| row["measure"] == "lost").unwrap();
    let lost = lost["value"].as_f64().unwrap();

    let ran = bench.run("scale run --nodes 1,1000000 --step 100us --json");
    ran.expect(0, &[]);
    let scaled: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let points = &scaled["series"][0]["points"];
    let slowdown = |node: usize| points[node]["slowdown"]["value"].as_f64().unwrap();
    let ratio = slowdown(0) / (lost / (1.0 - lost));
    assert!((0.98..1.02).contains(&ratio), "{lost} {points}");
    assert!(slowdown(1) >= slowdown(0), "{points}");
    assert_eq!(points[1]["slowdown"]["is_lower_bound"], true);
    assert!(bench.work().join("run/scale.html").exists());

    let ran = bench.run("scale run --nodes 1000 --bad 1%=run --correlated 20% --output page");
    ran.expect(0, &["a step of 1 ms takes", "page: page/scale.html"]);
    let ran = bench.run("scale run --step 1h");
    ran.expect(1, &["needs at least 10 steps in each run, there are 0"]);
    let words = "--workload prime --repetitions 1000 --cpu 0 --runs 1 --output";
    bench.run(&format!("noise {words} prime")).expect(0, &[]);
    bench
        .run("scale prime")
        .expect(2, &["no run of the workload gap"]);
}

#[test]
fn a_long_run_ends_by_the_first_gate_that_fails_or_by_a_gap_that_is_waited_for() {
    let bench = Bench::new();
    let long = "noise --duration 30s --every 500ms --explain 0 --cpu 0";
    bench
        .run(&format!("{long} --runs 2"))
        .expect(2, &["--duration <TIME>", "--runs"]);
    bench
        .run(&format!(
            "{long} --fail-if gap.max>1s --fail-if gap.max>1ns --output run"
        ))
        .expect(
            3,
            &[
                "This ends the run.",
                "ended early: 59 cells are missing",
                "Gate passed",
                "Gate failed",
            ],
        );
    bench.run("scale run").expect(
        2,
        &["error: cell 1 of ", "lists when only some of them came"],
    );
    let mut command = bench.command(long);
    let on = [
        "--on",
        "gap > 1ns",
        "shell:echo $TARE_GAP_NS > gap",
        "--on-end",
        "shell:echo done > end",
    ];
    let ran = Ran::of(command.args(on).output().unwrap());
    ran.expect(
        3,
        &[
            "an action of --on ends the run",
            "Limit exceeded: gap of ",
            "59 cells are missing",
        ],
    );
    let read = |name| fs::read_to_string(bench.work().join(name)).unwrap();
    assert!(read("gap").trim().parse::<u64>().unwrap() > 0);
    assert_eq!(read("end"), "done\n");
    // With `continue`, all cells run, and each is small.
    let mut command = bench.command("noise --duration 1s --every 500ms --cpu 0 --output all");
    let on = ["--on", "gap > 1ns", "continue", "--list", "1ns"];
    let ran = Ran::of(command.args(on).output().unwrap());
    ran.expect(3, &["[2/2]", "Limit exceeded"]);
}

#[test]
fn ctrl_c_ends_a_cell_of_a_long_run_at_once_and_reports_it() {
    let bench = Bench::new();
    let started = bench.start("noise --duration 1h --cpu 0 --output run");
    started.agent();
    // It gets ready, and spins for some time.
    thread::sleep(Duration::from_secs(5));
    let begun = Instant::now();
    started.signal(Signal::INT);
    started.end().expect(
        4,
        &[
            "what it has measured so far is reported",
            "one cell was cut short",
            " lost",
        ],
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
}
