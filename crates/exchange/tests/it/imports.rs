//! Results of other tools become a run folder whose figures are theirs.

use std::process::Command;

use crate::common::{
    JSON, LIVE, OSLAT, OSLAT_JSON, OSNOISE, QUIET, TIMERLAT, imported, latencies, threads,
    without_cycles,
};
use jiff::Timestamp;
use proptest::prelude::*;
use tare_cyclictest::format::{Histogram, Unit, histogram};
use tare_exchange::ExchangeError;
use tare_exchange::import::{Mean, TOOLS, read, run};
use tare_results::{CellState, RunFolder};
use tare_testkit::skip;
use tare_wire::scheduling::Policy;

fn style(size: u64, all: bool) -> Histogram {
    let unit = Unit::Micros;
    Histogram { size, unit, all }
}

#[test]
fn cyclictest_s_histogram_comes_out_as_it_went_in() {
    for (text, size, all) in [(QUIET, 60, false), (LIVE, 40, true)] {
        let foreign = read("cyclictest", text).unwrap();
        let made = histogram(&latencies(&imported(&foreign), 0), &style(size, all));
        assert_eq!(without_cycles(&made), without_cycles(text));
    }
}

#[test]
fn status_lines_tell_interval_priority_and_id() {
    let foreign = read("cyclictest", LIVE).unwrap();
    let threads = &foreign.series[0].threads;
    let told: Vec<_> = threads
        .iter()
        .map(|t| (t.interval_us, t.priority))
        .collect();
    assert_eq!(told, [(Some(1_000), Some(80)); 2]);
    assert!(threads.iter().all(|thread| thread.tid > 0));
}

#[test]
fn json_tells_what_the_text_does_and_the_interval() {
    let foreign = read("cyclictest", JSON).unwrap();
    let run = imported(&foreign);
    let threads = threads(&run, 0);
    assert_eq!(foreign.tool, "cyclictest 2.40");
    assert!(foreign.started.is_some());
    let value: serde_json::Value = serde_json::from_str(JSON).unwrap();
    for (number, thread) in (0..).zip(threads) {
        let theirs = &value["thread"][number.to_string()];
        assert_eq!(theirs["cycles"], thread.woken);
        assert_eq!(theirs["max"], thread.max_ns / 1_000);
        assert_eq!(thread.interval_ns, 500_000);
        assert_eq!(thread.cpu, Some(number));
    }
}

#[test]
fn what_cyclictest_leaves_out_follows_from_its_latencies() {
    let text = "# Histogram\n000000 000090\n000001 000000\n# Total: 000000090\n# Min Latencies: 00000\n\
                # Avg Latencies: 00250\n# Max Latencies: 02500\n# Histogram Overflows: 00010\n";
    let foreign = read("cyclictest", text).unwrap();
    let made = imported(&foreign);
    let thread = &threads(&made, 0)[0];
    assert_eq!(
        (thread.woken, thread.uncounted, thread.missed),
        // The longest took 2.5 intervals; of the others beyond the end nothing more is known.
        (100, 10, 2)
    );
    // Mean 250 to 251 of 100: the ten beyond take all of it.
    assert_eq!(
        (thread.uncounted_ns, thread.max_ns),
        (25_000_000, 2_500_000)
    );
    let text = text.replace("000001 000000", "000001 000000\n000002 000000");
    assert!(read("cyclictest", &text).is_ok());
    let now = Timestamp::UNIX_EPOCH;
    let error = run(&foreign, None, Vec::new(), now).unwrap_err();
    assert!(matches!(error, ExchangeError::NoInterval), "{error}");
}

#[test]
fn oslat_s_turns_are_latencies_of_which_none_can_be_missed() {
    let (text, json) = (
        read("oslat", OSLAT).unwrap(),
        read("oslat", OSLAT_JSON).unwrap(),
    );
    assert_eq!(text.tool, "oslat 2.40");
    let (text, json) = (imported(&text), imported(&json));
    assert_eq!(text.cells[0].0.plan.target, "oslat");
    for (a, b) in threads(&text, 0).iter().zip(&threads(&json, 0)) {
        assert_eq!(
            (a.woken, a.max_ns, a.uncounted),
            (b.woken, b.max_ns, b.uncounted)
        );
        assert_eq!((a.missed, a.cpu), (0, b.cpu));
    }
    let first = &threads(&text, 0)[0];
    // 132 turns of 16 µs or more, of which the longest was longer.
    assert_eq!((first.uncounted, first.max_ns), (132, 20_044_000));
}

#[test]
fn each_kind_of_timerlat_s_columns_is_a_cell() {
    let made = imported(&read("rtla", TIMERLAT).unwrap());
    let names: Vec<_> = made
        .cells
        .iter()
        .map(|(cell, _)| cell.plan.target.text.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "rtla-timerlat-thread",
            "rtla-timerlat-irq",
            "rtla-timerlat-user"
        ]
    );
    let thread = &threads(&made, 0)[1];
    assert_eq!(
        (thread.cpu, thread.woken, thread.max_ns),
        (Some(1), 10_000, 31_000)
    );
    let made = imported(&read("rtla", OSNOISE).unwrap());
    let noise = &threads(&made, 0)[1];
    assert_eq!((noise.woken, noise.uncounted, noise.missed), (3_322, 2, 0));
}

#[test]
fn a_run_folder_is_written_and_read_back() {
    for (tool, text) in [
        ("cyclictest", QUIET),
        ("cyclictest", LIVE),
        ("cyclictest", JSON),
        ("oslat", OSLAT),
        ("oslat", OSLAT_JSON),
        ("rtla", TIMERLAT),
        ("rtla", OSNOISE),
    ] {
        let made = imported(&read(tool, text).unwrap());
        let place = tempfile::tempdir().unwrap();
        made.write(&place.path().join("run")).unwrap();
        let folder = RunFolder::open(&place.path().join("run")).unwrap();
        for (cell, samples) in &made.cells {
            let read = folder.state(cell.plan.id);
            assert_eq!(read, CellState::Done(Box::new(cell.clone())));
            assert_eq!(&folder.samples(cell.plan.id).unwrap(), samples);
        }
    }
}

#[test]
fn the_installed_tools_are_read() {
    let ran = |program: &str, words: &str| {
        let output = Command::new(program)
            .args(words.split_whitespace())
            .output();
        let output = output.ok().filter(|output| output.status.success());
        output.map(|output| String::from_utf8(output.stdout).unwrap())
    };
    let words = "-q -H 200 -l 50 -t 2 -i 1000";
    match ran("cyclictest", words) {
        Some(text) => {
            let foreign = read("cyclictest", &text).unwrap();
            let made = histogram(&latencies(&imported(&foreign), 0), &style(200, true));
            assert_eq!(without_cycles(&made), without_cycles(&text));
        }
        None => skip("cyclictest", "it does not run here"),
    }
    match ran("oslat", "-D 1 -c 0 -b 32") {
        Some(text) => {
            let made = imported(&read("oslat", &text).unwrap());
            assert!(threads(&made, 0)[0].woken > 0);
        }
        None => skip("oslat", "it does not run here"),
    }
}

#[test]
fn other_text_is_refused_with_what_to_do() {
    for (tool, text, words) in [
        (
            "cyclictest",
            "T: 0 (  1) P: 0 I:1000 C: 3 Min: 1 Act: 1 Avg: 1 Max: 1\n",
            "-h US",
        ),
        ("cyclictest", "{\"thread\": {}}", "holds no thread"),
        ("cyclictest", "{", "line 1: not JSON"),
        ("cyclictest", "{\"a\": 1}", "no 'thread'"),
        ("oslat", "", "'Core:'"),
        (
            "oslat",
            "Core: 0\n 001 (us): x\n",
            "line 2: 'x' is not a whole number",
        ),
        (
            "oslat",
            "Core: 0 1\n 001 (us): 5\n",
            "has 1 figures for 2 columns",
        ),
        ("rtla", "", "# RTLA timerlat histogram"),
        ("rtla", "# RTLA timerlat histogram\n", "no line 'Index"),
        (
            "rtla",
            "# RTLA timerlat histogram\nIndex Foo-1\n",
            "line 2: 'Foo-1' is not a column",
        ),
        (
            "rtla",
            "# RTLA timerlat histogram\n# Time unit is nanoseconds (ns)\n",
            "without --nano",
        ),
    ] {
        let error = read(tool, text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    for (tool, text, end, missing) in [
        ("oslat", OSLAT, "     Maximum:", "'Maximum:' is missing"),
        ("rtla", TIMERLAT, "over:", "'over:' is missing"),
        ("rtla", OSNOISE, "over:", "'over:' is missing"),
    ] {
        let broken = text.split(end).next().unwrap();
        let error = read(tool, broken).unwrap_err().to_string();
        assert!(error.contains(missing), "{error}");
    }
    // What stopped the trace stands below, without a sign before it.
    let stopped = format!(
        "{}rtla timerlat hit stop tracing\n",
        TIMERLAT.split("ALL:").next().unwrap()
    );
    let mut stopped = read("rtla", &stopped).unwrap();
    let shown = stopped.stopped.take();
    assert_eq!(shown.as_deref(), Some("rtla timerlat hit stop tracing"));
    assert_eq!(stopped, read("rtla", TIMERLAT).unwrap());
    let broken = TIMERLAT.replace("count:    10000", "count:    10001");
    let error = read("rtla", &broken).unwrap_err().to_string();
    assert!(
        error.contains("of the 10001 samples that 'count:' states for IRQ-000, 1 are in no row"),
        "{error}"
    );
}

#[test]
fn a_file_that_contradicts_itself_is_refused_with_both_figures() {
    for (tool, text, from, to, words) in [
        (
            "cyclictest",
            QUIET,
            "# Min Latencies: 00006",
            "# Min Latencies: 00001",
            "counts is 6 µs, but the file names 1 µs",
        ),
        (
            "cyclictest",
            JSON,
            "\"num_threads\": 2",
            "\"num_threads\": 3",
            "'num_threads' is 3, but there are 2 threads",
        ),
        (
            "cyclictest",
            JSON,
            "\"5\": 1,",
            "\"5\": 1, \"05\": 7,",
            "thread 0 counts latencies of 5 µs twice",
        ),
        (
            "oslat",
            JSON,
            "",
            "",
            "written by cyclictest, as its command line says",
        ),
        (
            "oslat",
            OSLAT,
            "Core:\t 0 1",
            "Core:\t 1 1",
            "a CPU is given twice",
        ),
        (
            "oslat",
            OSLAT,
            "     Minimum:",
            "     Minimum:\t 7 7\n     Minimum:",
            "there is a line 'Minimum' above, too",
        ),
        (
            "rtla",
            TIMERLAT,
            "Thr-000",
            "IRQ-000",
            "the column 'IRQ-000' is given twice",
        ),
        (
            "rtla",
            OSNOISE,
            "max:          5",
            "max:          7",
            "counts is 5 µs, but the file names 7 µs",
        ),
        (
            "rtla",
            OSNOISE,
            "over:",
            "over: 1 1\nover:",
            "there is a line 'over:' above",
        ),
        (
            "rtla",
            OSNOISE,
            "max:          5       870\n",
            "max:          5       870\n# RTLA osnoise histogram\n",
            "another output begins",
        ),
        (
            "cyclictest",
            QUIET,
            "# Histogram Overflows:",
            "# Histogram Overflows: 00000 00000\n# Histogram\n#",
            "another output begins",
        ),
        (
            "oslat",
            OSLAT,
            "    Duration:",
            "        Core:\t 0 1\n    Duration:",
            "another output begins",
        ),
        (
            "oslat",
            OSLAT,
            "132 238 (including overflows)",
            "132 238",
            "rows are missing",
        ),
        (
            "oslat",
            OSLAT,
            "132 238 (including overflows)",
            "0 238 (including overflows)",
            "counts is 15 µs, but the file names 20044 µs",
        ),
        (
            "rtla",
            OSNOISE,
            "max:          5       870",
            "max:          5         4",
            "are beyond the histogram, which ends at 6 µs, but the file names 4 µs",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let error = read(tool, &text.replacen(from, to, 1));
        let error = error.expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
    }
    let made = |tool, text: &str, interval| {
        let foreign = read(tool, text).unwrap();
        run(&foreign, interval, Vec::new(), Timestamp::UNIX_EPOCH)
    };
    let refused = |tool, text: &str, interval| {
        let error = made(tool, text, Some(interval));
        error.unwrap_err().to_string()
    };
    let means = OSLAT.replace("1.135", "1135");
    let error = refused("oslat", &means, 1_000);
    assert!(error.contains("but it names 1135"), "{error}");
    let error = refused("cyclictest", JSON, 1_000);
    assert!(
        error.contains("due every 500 µs, not every 1000"),
        "{error}"
    );
    assert!(made("cyclictest", JSON, Some(500)).is_ok());
    let error = refused("rtla", TIMERLAT, 10_000);
    assert!(
        error.contains("take 100 s, but it says that it measured for 10 s"),
        "{error}"
    );
}

#[test]
fn json_of_another_shape_is_refused_and_its_place_named_once() {
    let (start, end) = (
        JSON.find("\"0\": {").unwrap(),
        JSON.find("\"1\": {").unwrap(),
    );
    let listed = format!("{}\"0\": [1, 2], {}", &JSON[..start], &JSON[end..]);
    let error = read("cyclictest", &listed).unwrap_err().to_string();
    assert_eq!(
        error,
        "thread 0: invalid type: sequence, expected an object of members"
    );
    for (from, to, message) in [
        (
            "\"num_threads\": 2",
            "\"num_threads\": 2.5",
            "the file has 2.5 as 'num_threads', no whole number",
        ),
        (
            "\"num_threads\": 2",
            "\"num_threads\": 2, \"num_threads:\": 3",
            "the file has 'num_threads' twice",
        ),
        (
            "\"resolution_in_ns\": 0",
            "\"resolution_in_ns\": \"1\"",
            "the file has \"1\" as 'resolution_in_ns', no whole number",
        ),
        (
            "\"resolution_in_ns\": 0",
            "\"resolution_in_ns\": -1",
            "the file has -1 as 'resolution_in_ns', no whole number",
        ),
        (
            "\"5\": 1,",
            "\"5\": null,",
            "thread 0: invalid type: null, expected u64",
        ),
    ] {
        assert!(JSON.contains(from), "{from}");
        let error = read("cyclictest", &JSON.replacen(from, to, 1));
        assert_eq!(error.unwrap_err().to_string(), message);
    }
    let error = read("cyclictest", "{\n\"thread\": nothing}").unwrap_err();
    assert_eq!(error.to_string(), "line 2: not JSON: expected ident");
}

/// Makes cyclictest's text of one thread.
fn text(rows: &[(u64, u64)], (total, min, mean, max, over): (u64, u64, u64, u64, u64)) -> String {
    let rows = rows.iter();
    let rows: String = rows.map(|(us, n)| format!("{us:06} {n:06}\n")).collect();
    format!(
        "# Histogram\n{rows}# Total: {total:09}\n# Min Latencies: {min:05}\n# Avg Latencies: {mean:05}\n# Max Latencies: \
         {max:05}\n# Histogram Overflows: {over:05}\n# Histogram Overflow at cycle number:\n# Thread 0:\n"
    )
}

#[test]
fn what_the_figures_of_a_file_rule_out_is_refused() {
    let made = |tool: &str, text: &str| {
        let foreign = read(tool, text).map_err(|error| error.to_string())?;
        let made = run(&foreign, Some(1_000), Vec::new(), Timestamp::UNIX_EPOCH);
        made.map(drop).map_err(|error| error.to_string())
    };
    let whole = text(&[(0, 0), (1, 10)], (10, 1, 819, 9_000, 1));
    assert_eq!(made("cyclictest", &whole), Ok(()));
    // One of those beyond the end is the greatest: no mean of 5 has 9,000 in it.
    let error = made("cyclictest", &whole.replace("00819", "00005")).unwrap_err();
    assert!(
        error.contains("from 819.1 to 819.1 µs, but it names 5"),
        "{error}"
    );
    let without = whole.replace("# Max Latencies: 09000\n", "");
    let error = made("cyclictest", &without).unwrap_err();
    assert!(
        error.contains("line that states the greatest is missing"),
        "{error}"
    );
    // Interval and priority of another output are not this one's.
    let second = format!(
        "{whole}T: 0 ( 999) P:10 I:5000 C:      3 Min:      1 Act:    1 Avg:    1 Max:       1\n"
    );
    let error = made("cyclictest", &second).unwrap_err();
    assert!(error.contains("another output begins"), "{error}");
    let columns = whole.replace("000001 000010", "000001 000010\t000005");
    let columns = columns.replace("000000 000000", "000000 000000\t000000");
    assert!(made("cyclictest", &columns).is_err());
    let rtla = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:10\nIndex   IRQ-000   \
                Thr-000\n0          9000         0\n1            50      9000\nover:         5        55\n";
    let error = made("rtla", rtla).unwrap_err();
    assert!(error.contains("measure without --no-summary"), "{error}");
}

#[test]
fn what_tools_really_print_is_read() {
    // osnoise writes means with their fraction; what rtla lost, it says at the end.
    let osnoise = OSNOISE;
    let stated = osnoise
        .lines()
        .find(|line| line.starts_with("avg:"))
        .unwrap();
    let fraction: Vec<String> = stated[4..]
        .split_whitespace()
        .map(|mean| match mean {
            "-" => mean.to_owned(),
            mean => format!("{mean}.25"),
        })
        .collect();
    let fraction = format!("avg: {}", fraction.join(" "));
    let lost = "1042 (10.38%) events missed, results might not be accurate\n";
    let foreign = read("rtla", &(osnoise.replace(stated, &fraction) + lost)).unwrap();
    let mean = foreign.series[0].threads[0].mean.unwrap();
    assert!(
        matches!(mean, Mean::Rounded(mean) if mean.fract() == 0.25),
        "{mean:?}"
    );
    assert!(
        foreign
            .notices
            .iter()
            .any(|text| text.contains("1042 (10.38%) events missed"))
    );
    // All of a thread beyond a histogram whose size the command line has.
    let json = r#"{"file_version": 1, "cmdline": "cyclictest --policy=rr -p 80 -i 200 -H 3 -q --json=f", "resolution_in_ns": 0,
        "num_threads": 1, "thread": {"0": {"histogram": {}, "cycles": 10, "min": 7, "max": 12, "avg": 9.00, "cpu": 0}}}"#;
    let foreign = read("cyclictest", json).unwrap();
    let thread = &foreign.series[0].threads[0];
    assert_eq!((thread.over, thread.limit, thread.max), (10, 3, Some(12)));
    assert_eq!(thread.policy.as_deref(), Some("rr"));
    let made = run(&foreign, None, Vec::new(), Timestamp::UNIX_EPOCH).unwrap();
    let work = &made.cells[0].0.plan.work;
    assert_eq!(work.rights.real_time.unwrap().policy, Policy::RoundRobin);
}

#[test]
fn what_is_left_of_a_file_that_was_cut_is_refused_or_says_the_same() {
    for (tool, text) in [
        ("cyclictest", QUIET),
        ("cyclictest", LIVE),
        ("cyclictest", JSON),
        (
            "cyclictest",
            "# Histogram\n000001 000090\n# Total: 000000090\n# Min Latencies: 00001\n# Avg Latencies: 00901\n\
             # Max Latencies: 09000\n# Histogram Overflows: 00010\n",
        ),
        ("oslat", OSLAT),
        ("oslat", OSLAT_JSON),
        ("rtla", TIMERLAT),
        ("rtla", OSNOISE),
    ] {
        let whole = read(tool, text).unwrap().series;
        for (end, _) in text.char_indices() {
            let Ok(cut) = read(tool, &text[..end]) else {
                continue;
            };
            assert_eq!(cut.series.len(), whole.len());
            for (cut, whole) in cut.series.iter().zip(&whole) {
                assert_eq!(cut.threads.len(), whole.threads.len());
                for (cut, whole) in cut.threads.iter().zip(&whole.threads) {
                    assert_eq!((&cut.counts, cut.over), (&whole.counts, whole.over));
                    // rtla writes no summary with --no-summary.
                    let is_same = cut.max.is_none() || cut.max == whole.max;
                    assert!(is_same, "{tool}, {end} bytes: {:?}", cut.max);
                }
            }
        }
    }
}

/// Reads a text as the output of every tool, and makes a run of what is believed.
fn try_all(text: &str) {
    for tool in TOOLS {
        let Ok(foreign) = read(tool, text) else {
            continue;
        };
        let now = Timestamp::UNIX_EPOCH;
        if let Ok(made) = run(&foreign, Some(100), Vec::new(), now) {
            for cell in 0..made.cells.len() {
                let _ = histogram(&latencies(&made, cell), &style(10, true));
            }
        }
    }
}

/// Damages one of the samples: words are replaced, lines left out or doubled, the end cut off.
fn damaged() -> impl Strategy<Value = String> {
    let samples = [QUIET, LIVE, JSON, OSLAT, OSLAT_JSON, TIMERLAT, OSNOISE];
    let word = prop_oneof![
        "[0-9]{1,25}",
        Just("-1".to_owned()),
        Just("1e300".to_owned()),
        Just("null".to_owned()),
        "\\PC{0,6}",
    ];
    let edits = prop::collection::vec((any::<prop::sample::Index>(), word, 0_u8..4), 1..6);
    (0..samples.len(), edits).prop_map(move |(sample, edits)| {
        let mut lines: Vec<String> = samples[sample].lines().map(str::to_owned).collect();
        for (at, word, kind) in edits {
            if lines.is_empty() {
                break;
            }
            let line = at.index(lines.len());
            match kind {
                0 => drop(lines.remove(line)),
                1 => lines.insert(line, lines[line].clone()),
                2 if line > 0 => lines.truncate(line),
                _ => {
                    let words: Vec<&str> = lines[line].split(' ').collect();
                    let which = at.index(words.len());
                    let mut words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
                    words[which] = word;
                    lines[line] = words.join(" ");
                }
            }
        }
        lines.join("\n")
    })
}

proptest! {
    #[test]
    fn damaged_output_ends_without_panic(text in damaged()) {
        try_all(&text);
    }

    #[test]
    fn any_text_ends_without_panic(text in "(\\PC|\n){0,200}") {
        try_all(&text);
    }
}

#[test]
fn what_no_tool_writes_is_refused_before_it_fills_the_memory() {
    let counts: String = (0..=1 << 21).map(|us| format!("\"{us}\":1,")).collect();
    let counts = counts.trim_end_matches(',');
    let rows: String = (0..=1 << 21).map(|us| format!("{us} 1\n")).collect();
    let facts: String = (0..65).map(|n| format!("\"{n}\":1,")).collect();
    let threads: String = (0..1 << 11).map(|n| format!("\"{n}\":{{}},")).collect();
    let columns = " 1".repeat((1 << 11) + 2);
    let cpus: String = (0..=1 << 11).map(|n| format!(" {n}")).collect();
    let headings: String = (0..=1 << 11).map(|n| format!(" Thr-{n}")).collect();
    let long = "x".repeat((1 << 16) + 1);
    for (text, words) in [
        (
            format!("{{\"thread\":{{\"0\":{{\"histogram\":{{{counts}}}}}}}}}"),
            "more than 2097152 values of a histogram",
        ),
        (
            format!("# Histogram\n{rows}"),
            "line 2097154: more than 2097152 values of histograms",
        ),
        (
            format!("{{\"thread\":{{}},\"sysinfo\":{{{facts}\"x\":1}}}}"),
            "'sysinfo': more than 64 members",
        ),
        (
            format!("{{\"thread\":{{{threads}\"99999\":{{}}}}}}"),
            "'thread': more than 2048 threads",
        ),
        (
            format!("{{\"thread\":{{}},\"cmdline\":\"{long}\"}}"),
            "more than 65536 bytes",
        ),
        (
            "{\"thread\":{\"x\":{}}}".to_owned(),
            "'thread': 'x' is not a whole number",
        ),
        (
            format!("# Histogram\n0{columns}\n"),
            "line 2: more than 2048 histograms",
        ),
    ] {
        let error = read("cyclictest", &text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    // Of several threads together, too.
    let n = (1 << 20) + 1;
    let counts: String = (1..n).map(|us| format!("\"{us}\":1,")).collect();
    let thread = format!(
        "{{\"min\":0,\"max\":{},\"cycles\":{n},\"histogram\":{{{counts}\"0\":1}}}}",
        n - 1
    );
    let threads = format!("{{\"thread\":{{\"0\":{thread},\"1\":{thread}}}}}");
    for (tool, text) in [("cyclictest", threads.clone()), ("oslat", threads)] {
        let error = read(tool, &text).unwrap_err().to_string();
        assert_eq!(error, "more than 2097152 values of histograms");
    }
    for (tool, text) in [
        ("oslat", format!("Core:{cpus}\n")),
        (
            "rtla",
            format!("# RTLA timerlat histogram\nIndex{headings}\n"),
        ),
    ] {
        let error = read(tool, &text).unwrap_err().to_string();
        assert!(error.ends_with("more than 2048 histograms"), "{error}");
    }
    // Texts of the machine end in notices, tables and files.
    let text = JSON.replace("\"2.40\"", "\"2\\n\\r\\u001b\u{202e}\u{2028}\"");
    let shown = "cyclictest 2\\n\\u000d\\u001b\\u202e\\u2028";
    assert_eq!(read("cyclictest", &text).unwrap().tool, shown);
    // Unused members are skipped, however deep.
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let text = JSON.replacen('{', &format!("{{\"other\":{deep},"), 1);
    let whole = read("cyclictest", JSON).unwrap();
    assert_eq!(read("cyclictest", &text).unwrap(), whole);
}
