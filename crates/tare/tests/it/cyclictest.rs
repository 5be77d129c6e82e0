//! `tare cyclictest` in place of cyclictest: the same options, and output that the same scripts
//! read.
//!
//! Nothing here depends on how long a latency is. Threads are ordinary ones, so that no right is
//! needed.

use std::fs::{self, File};
use std::process::Command;

use crate::common::{self, Bench, Ran, skip, wait_for};
use rustix::process::Signal;
use serde_json::Value;

/// Runs Debian's cyclictest, if it is here and may run.
fn real(words: &str) -> Option<String> {
    let output = Command::new("cyclictest")
        .args(words.split_whitespace())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        _ => {
            skip("cyclictest", "it does not run here");
            None
        }
    }
}

/// Puts one sign in place of each number with the blanks before it.
fn shape(text: &str) -> Vec<String> {
    let shape = |line: &str| {
        let mut shape = String::new();
        for c in line.chars() {
            if !c.is_ascii_digit() {
                shape.push(c);
            } else if !shape.ends_with('9') {
                shape.truncate(shape.trim_end_matches(' ').len());
                shape.push('9');
            }
        }
        shape
    };
    text.lines().map(shape).collect()
}

/// Leaves out the line that stands there only where the kernel lets one hold /dev/cpu_dma_latency.
fn without_held(text: &str) -> String {
    text.replace("# /dev/cpu_dma_latency set to 0us\n", "")
}

fn quiet(ran: &Ran) -> String {
    ran.expect(0, &["# tare: response latency", "Missed:"]);
    without_held(&ran.out)
}

#[test]
fn the_summary_has_the_shape_of_cyclictest_s() {
    let words = "-q -t 2 -l 20 -i 2000";
    let ours = quiet(&Bench::new().run(&format!("cyclictest {words}")));
    let lines: Vec<&str> = ours.lines().collect();
    assert!(
        lines[0].starts_with("T: 0 (") && lines[0].contains(" P: 0 I:2000 C:     20 Min:"),
        "{ours}"
    );
    assert!(
        lines[1].starts_with("T: 1 (") && lines[1].contains(" P: 0 I:2500 C:     20 Min:"),
        "{ours}"
    );
    if let Some(theirs) = real(words) {
        assert_eq!(shape(&ours), shape(&without_held(&theirs)));
    }
}

#[test]
fn the_histogram_has_the_shape_of_cyclictest_s() {
    // Each of these is longer than the histogram, so that its foot is the same.
    let run = |words| quiet(&Bench::new().run(&format!("cyclictest {words}")));
    let two = run("-q -H 1 -t 2 -l 20 -i 2000");
    insta::assert_snapshot!(shape(&two).join("\n"));
    // With more threads, cyclictest ends when the first one has its cycles, and others may have
    // none.
    let words = "-q -h 1 -l 20 -i 2000";
    if let Some(theirs) = real(words) {
        assert_eq!(shape(&run(words)), shape(&without_held(&theirs)));
    }
}

/// Collects the paths of all keys.
fn keys(value: &Value, path: &str, all: &mut Vec<String>) {
    let Value::Object(object) = value else {
        return;
    };
    for (key, value) in object {
        let path = format!("{path}/{key}");
        // Its keys are latencies.
        if key != "histogram" {
            keys(value, &path, all);
        }
        all.push(path);
    }
}

#[test]
fn a_consumer_of_cyclictest_s_json_reads_ours() {
    let bench = Bench::new();
    let words = "-q -h 1000000 -l 20 -i 2000";
    bench
        .run(&format!("cyclictest {words} -t 2 --json=ours.json"))
        .expect(0, &[]);
    let text = fs::read_to_string(bench.work().join("ours.json")).unwrap();
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let consume = |json: &Value| {
        let threads = json["num_threads"].as_u64().unwrap();
        for number in 0..threads {
            let thread = &json["thread"][number.to_string()];
            let number = |key: &str| thread[key].as_f64().unwrap();
            let histogram = thread["histogram"].as_object().unwrap();
            let counted: u64 = histogram
                .values()
                .map(|count| count.as_u64().unwrap())
                .sum();
            // A latency of more than a second is beyond it.
            assert!(
                counted as f64 <= number("cycles") && number("cycles") == 20.0,
                "{thread}"
            );
            assert!(
                number("min") <= number("avg") && number("avg") <= number("max"),
                "{thread}"
            );
        }
        threads
    };
    assert_eq!(consume(&read(&text)), 2);
    assert!(
        text.contains("\"missed\": ") && text.contains("\"response_ns\": {"),
        "{text}"
    );
    let theirs = bench.work().join("theirs.json");
    if real(&format!("{words} --json={}", theirs.display())).is_some() {
        let theirs = read(&fs::read_to_string(theirs).unwrap());
        assert_eq!(consume(&theirs), 1);
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        keys(&theirs, "", &mut expected);
        keys(&read(&text), "", &mut found);
        found.retain(|key| expected.contains(key));
        assert_eq!(found, expected);
    }
    // Alone on standard output.
    let ran = bench.run("cyclictest -l 5 -i 2000 --json");
    assert!(
        read(&ran.expect(0, &[]).out)["thread"]["0"]["cycles"] == 5,
        "{ran:?}"
    );
}

#[test]
fn a_histogram_is_written_to_a_file_and_nothing_else_is_printed() {
    let bench = Bench::new();
    let ran = bench.run("cyclictest -q -h 5 --histfile=there -l 5 -i 2000");
    assert_eq!(quiet(&ran), "");
    let text = fs::read_to_string(bench.work().join("there")).unwrap();
    assert!(text.starts_with("# Histogram\n000000 0000"), "{text}");
    bench
        .run("cyclictest -q -h 5 --histfile=no/there -l 5 -i 2000")
        .expect(1, &["no/there can't be written"]);
}

#[test]
fn values_and_spikes_are_listed_at_the_end() {
    let bench = Bench::new();
    let ran = bench.run("cyclictest -v -l 4 -i 2000 -t 1");
    let text = quiet(&ran);
    let lines = ["Max CPUs =9", "Online CPUs =9", "Thread9 Interval:9"];
    let all: Vec<&str> = lines.into_iter().chain(["9:9:9"; 4]).collect();
    assert_eq!(shape(&text), all, "{text}");
    assert!(text.contains("Thread 0 Interval: 2000\n"), "{text}");
    if let Some(theirs) = real("-v -l 4 -i 2000 -t 1") {
        assert_eq!(shape(&without_held(&theirs)), all, "{theirs}");
    }
    let ran = bench.run("cyclictest -v -o 2 -l 4 -i 2000");
    let values = quiet(&ran)
        .lines()
        .filter(|line| line.matches(':').count() == 2)
        .count();
    assert_eq!(values, 2);
    bench
        .run("cyclictest -v")
        .expect(2, &["end earlier with -l or -D"]);
    let ran = bench.run("cyclictest -q --spike=0 --spike-nodes=3 -l 4 -i 2000");
    ran.expect(0, &["T: 0 Spike: ", "spikes = 3\n"]);
}

#[test]
fn a_latency_above_the_limit_ends_it() {
    // Every latency is above 1 ns.
    let ran = Bench::new().run("cyclictest -q -N -b 1 -i 2000 -D 60");
    let text = quiet(&ran);
    let end: Vec<String> = shape(&text).split_off(1);
    assert_eq!(
        end,
        ["# Thread Ids:9", "# Break thread:9", "# Break value:9"],
        "{text}"
    );
    let ran = Bench::new().run("cyclictest -q -b 60000000 -i 2000 -l 3");
    assert!(!quiet(&ran).contains("Break"), "{ran:?}");
}

#[test]
fn a_figure_above_its_limit_ends_with_code_3_and_a_sentence() {
    let bench = Bench::new();
    let run = |words| bench.run(&format!("cyclictest -q -l 20 -i 2000 {words}"));
    let ran = run("--fail-if latency>1ns --fail-if=missed>99%");
    ran.expect(3, &["T: 0 ("]);
    for said in [
        "Gate failed: latency.max of process, interval=2ms, policy=other is ",
        "Gate passed: missed.share of process, interval=2ms, policy=other is ",
    ] {
        assert!(ran.out.contains(said), "{ran:?}");
    }
    let needed =
        "p99.9 needs 10,000 samples in each run, and the plan of process wakeup is sure of 20 only";
    run("--fail-if latency.p99.9>100s").expect(2, &[needed]);
    let several = "only runs with several threads have the label 'thread'";
    run("--fail-if latency{thread=7}>1s").expect(2, &[several]);
    // Which threads measured is known at the end only.
    run("-t 2 --fail-if latency{thread=7}>1s --json=there")
        .expect(2, &["matches no figure", "Missed:"]);
    let json = common::json(&bench.work().join("there"));
    assert_eq!(json["return_code"], 2);
    let ran = run("--fail-if latency>1ns --json");
    ran.expect(3, &[]);
    assert!(ran.err.contains("Gate failed: latency.max"), "{ran:?}");
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["return_code"], 3);
    let ran = run("--fail-if lost>1%");
    ran.expect(2, &["matches no figure of this run: it has wakeup/latency"]);
    assert_eq!(ran.out, "", "{ran:?}");
}

#[test]
fn options_are_read_as_getopt_reads_them() {
    let bench = Bench::new();
    for words in [
        // Without a limit.
        &["-q", "-b", "0", "-l", "3"][..],
        // Of an option that is given twice the last one counts.
        &["-q", "-q", "-t", "7", "-t", "1", "-l", "9", "-l", "3"],
        // A long name may be cut off.
        &["--qui", "--thread=1", "--loop", "3"],
        // Blanks around a number.
        &["-q", "-l 3", "-i 2000 "],
        // No end but that of the loops.
        &["-q", "-D", "0", "-l", "3"],
        &["-q", "-l", "3", "--policy=OTHER"],
        // Options for the default behaviour are accepted.
        &["-q", "-l", "3", "-A", "0", "-c", "0", "--latency=0", "-n"],
    ] {
        let ran = Ran::of(bench.command("cyclictest").args(words).output().unwrap());
        let text = shape(&quiet(&ran)).join("\n").replace(' ', "");
        assert_eq!(text, "T:9(9)P:9I:9C:9Min:9Act:9Avg:9Max:9", "{words:?}");
    }
    let cpus = rustix::thread::sched_getaffinity(None).unwrap().count();
    let ran = bench.run("cyclictest -q -S -t 1 -a 0 -l 3");
    ran.expect(0, &["-t is ignored: -S", "-a is ignored: -S"]);
    assert_eq!(without_held(&ran.out).lines().count(), cpus as usize);
    let ran = bench.run("cyclictest -q -h 2000000 --histfile=out -l 3");
    ran.expect(0, &["-h 2000000 is reduced to 1000000"]);
}

#[test]
fn priorities_are_those_of_cyclictest() {
    let bench = Bench::new();
    for (words, priorities) in [
        ("-t 3 -a 0 -p 50", ["P:50", "P:50", "P:50"]),
        ("-t 3 -a 0 -p 50 --priospread", ["P:50", "P:49", "P:48"]),
        ("-t 3 -a 0 --priospread", ["P: 4", "P: 3", "P: 2"]),
    ] {
        let words = format!("{words} -l 3 -i 2000");
        let ran = bench.run(&format!("cyclictest {words}"));
        if ran.code == Some(1) {
            return skip("SCHED_FIFO", ran.err.trim());
        }
        // Before the threads have begun and after their end.
        for line in ran.out.lines().filter(|line| line.contains("T: ")) {
            let place = line
                .split("T: ")
                .nth(1)
                .and_then(|rest| rest[..1].parse::<usize>().ok());
            assert!(line.contains(priorities[place.unwrap()]), "{line}");
        }
        if let Some(theirs) = real(&format!("-q {words}")) {
            let theirs = without_held(&theirs);
            for (line, priority) in theirs.lines().zip(priorities) {
                assert!(line.contains(priority), "{line}");
            }
        }
    }
}

#[test]
fn status_lines_are_redrawn_and_ctrl_c_ends_with_the_summary() {
    for signal in [Signal::INT, Signal::TERM] {
        let bench = Bench::new();
        let path = bench.work().join("out");
        let mut tare = bench
            .command("cyclictest -t 2 -i 2000 -b 60000000")
            .stdout(File::create(&path).unwrap())
            .spawn()
            .unwrap();
        let text = wait_for("a second drawing", || {
            let text = fs::read_to_string(&path).unwrap();
            text.contains("\u{1b}[4Apolicy: ").then_some(text)
        });
        let first = without_held(&text);
        assert!(
            first.starts_with("policy: other/other: loadavg: "),
            "{first}"
        );
        assert!(
            first.contains("T: 1 (    0) P: 0 I:2500 C:      0 Min:1000000 Act:    0"),
            "{first}"
        );
        common::send(tare.id(), signal);
        let status = tare.wait().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(status.code(), Some(0), "{text}");
        assert!(text.contains("# Thread Ids: "), "{text}");
        assert!(common::agents_of(tare.id()).is_empty());
    }
}

#[test]
fn what_would_measure_something_else_is_refused() {
    let bench = Bench::new();
    for (words, why) in [
        (
            "-r",
            "--relative is not supported by tare cyclictest: tare sleeps until absolute times",
        ),
        ("-s", "--system"),
        ("-x", "--posix_timers"),
        ("-c 1", "--clock"),
        ("--latency=20", "--latency"),
        ("--laptop", "always holds /dev/cpu_dma_latency at 0"),
        ("--secaligned", "--secaligned"),
        ("-A 100", "--aligned"),
        ("--policy=batch -l 1", "--policy=batch"),
        ("--policy=fast -l 1", "choose other, fifo, rr or deadline"),
        ("-p 100 -l 1", "priority must be from 1 to 99"),
        ("-h 0 -l 1", "at least one value"),
        ("-i 0 -l 1", "interval must be"),
        ("-D 1y", "expected seconds"),
        ("-a x -l 1", "-a x: expected CPUs"),
        ("--histfile=x -l 1", "--histfile needs -h"),
        ("-l x", "invalid value"),
        ("--nonsense", "unexpected argument"),
    ] {
        bench
            .run(&format!("cyclictest -q {words}"))
            .expect(2, &[why]);
    }
    // So short that setting the timer takes longer.
    bench.run("cyclictest -q -i 1 -l 10").expect(
        1,
        &["nothing was measured: an interval of 1.0 µs can't be held here"],
    );
    assert_eq!(common::files(&bench.work()), Vec::<String>::new());
}

#[test]
fn three_options_in_one_word_are_answered_with_what_to_write() {
    let bench = Bench::new();
    bench
        .run("cyclictest -smp -p 80")
        .expect(2, &["is -s -m -p: write -S -m -p 80"]);
}
