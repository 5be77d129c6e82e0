//! `tare import`: whatever a file holds, its figures are those of all that is made of it, or it is
//! refused.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::common::Bench;

/// The latencies of one thread: whole µs with their counts, rising.
pub type Thread<'a> = &'a [(u64, u64)];

/// The rows of a histogram.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Where they end, in µs.
    pub limit: u64,
    /// How wide each is, in µs.
    pub width: usize,
    /// The tool's own threshold at which it stopped, in µs.
    pub stop: Option<u64>,
}

/// Rows of 1 µs, as tools write them.
pub const fn up_to(limit: u64) -> Layout {
    Layout {
        limit,
        width: 1,
        stop: None,
    }
}

/// The forms in which tools write histograms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Cyclictest,
    /// With a column that sums up the others, as `-H` adds it.
    CyclictestSum,
    CyclictestJson,
    Oslat,
    OslatJson,
    Timerlat,
    Osnoise,
}

use Form::*;

impl Form {
    pub const ALL: [Self; 7] = [
        Cyclictest,
        CyclictestSum,
        CyclictestJson,
        Oslat,
        OslatJson,
        Timerlat,
        Osnoise,
    ];

    /// Returns the tool whose form it is, as `tare import` names it.
    pub fn tool(self) -> &'static str {
        match self {
            Cyclictest | CyclictestSum | CyclictestJson => "cyclictest",
            Oslat | OslatJson => "oslat",
            Timerlat | Osnoise => "rtla",
        }
    }

    /// Returns whether its samples are due at an interval.
    pub fn is_periodic(self) -> bool {
        !matches!(self, Oslat | OslatJson | Osnoise)
    }

    /// Writes a file with rows of this layout.
    pub fn write(self, threads: &[Thread<'_>], layout: Layout) -> String {
        let Layout { limit, width, stop } = layout;
        let each = |of: &dyn Fn(Thread<'_>) -> String| -> Vec<String> {
            threads.iter().map(|thread| of(thread)).collect()
        };
        let counts = |us: u64| each(&|thread| count(thread, us).to_string());
        let totals = each(&|thread| total(thread).to_string());
        let counted = each(&|thread| (total(thread) - over(thread, limit)).to_string());
        let overs = each(&|thread| over(thread, limit).to_string());
        let least = each(&|thread| thread[0].0.to_string());
        let greatest = each(&|thread| greatest(thread).to_string());
        let whole = each(&|thread| (mean(thread) as u64).to_string());
        let mean = each(&|thread| format!("{:.3}", mean(thread)));
        // oslat's rows begin with the first µs.
        let rows = (0..limit)
            .step_by(width)
            .filter(|us| *us > 0 || self != Oslat);
        let numbers = (0..threads.len()).map(|number| number.to_string());
        let numbers: Vec<String> = numbers.collect();
        let line = |name: &str, figures: &[String], end: &str| {
            format!("{name} {}{end}\n", figures.join(" "))
        };
        match self {
            Cyclictest | CyclictestSum => {
                let with_sum = |figures: &[String], sum: fn(u64, u64) -> u64| {
                    let all = figures.iter().map(|figure| figure.parse().unwrap());
                    let all = all.reduce(sum).map(|sum: u64| sum.to_string());
                    let own = all.filter(|_| self == CyclictestSum && threads.len() > 1);
                    [figures, own.as_slice()].concat()
                };
                let add = |a, b| a + b;
                let mut text = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n".to_owned();
                for us in rows {
                    let counts = with_sum(&counts(us), add);
                    let _ = writeln!(text, "{us:06} {}", counts.join("\t"));
                }
                text += &line("# Total:", &with_sum(&counted, add), "");
                text += &line("# Min Latencies:", &least, "");
                text += &line("# Avg Latencies:", &whole, "");
                text += &line("# Max Latencies:", &with_sum(&greatest, u64::max), "");
                text += &line("# Histogram Overflows:", &with_sum(&overs, add), "");
                text += "# Histogram Overflow at cycle number:\n";
                for number in numbers {
                    let _ = writeln!(text, "# Thread {number}:");
                }
                if stop.is_some() {
                    text += "\n# Break thread: 4711\n# Break value: 9000\n";
                }
                text
            }
            CyclictestJson | OslatJson => {
                let command = match (self, stop) {
                    (CyclictestJson, Some(us)) => format!("-i 1000 -h {limit} -q -b {us}"),
                    (CyclictestJson, None) => format!("-i 1000 -h {limit} -q"),
                    _ => format!("-D 10 -b {limit}"),
                };
                let threads = threads.iter().enumerate().map(|(number, thread)| {
                    let last = Some((limit, over(thread, limit)));
                    let last = last.filter(|(_, over)| self == OslatJson && *over > 0);
                    let rows = thread.iter().copied().filter(|(us, _)| *us < limit);
                    let rows = rows.chain(last).map(|(us, n)| format!("\"{us}\": {n}"));
                    format!(
                        "\"{number}\": {{\"histogram\": {{{}}}, \"cycles\": {}, \"min\": {}, \"max\": {}, \"avg\": {}, \
                         \"cpu\": {number}, \"duration\": 10.0}}",
                        Vec::from_iter(rows).join(", "),
                        totals[number],
                        least[number],
                        greatest[number],
                        mean[number]
                    )
                });
                format!(
                    "{{\"cmdline\": \"{} {command}\", \"num_threads\": {}, \"thread\": {{{}}}}}",
                    self.tool(),
                    threads.len(),
                    Vec::from_iter(threads).join(", ")
                )
            }
            Oslat => {
                let mut text = line("        Core:\t", &numbers, "");
                for us in rows {
                    text += &line(&format!("    {us:03} (us):\t"), &counts(us), "");
                }
                let last = format!("    {limit:03} (us):\t");
                text += &line(&last, &overs, " (including overflows)");
                text += &line("     Minimum:\t", &least, " (us)");
                text += &line("     Average:\t", &mean, " (us)");
                text += &line("     Maximum:\t", &greatest, " (us)");
                text + &line("    Duration:\t", &["10.000".to_owned()], " (sec)")
            }
            Timerlat | Osnoise => {
                let (name, heading) = match self {
                    Timerlat => ("timerlat", "Thr"),
                    _ => ("osnoise", "CPU"),
                };
                let cpus = numbers.iter().map(|cpu| format!("{heading}-00{cpu}"));
                let mut text = format!(
                    "# RTLA {name} histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:10\n"
                );
                text += &line("Index", &Vec::from_iter(cpus), "");
                for us in rows {
                    text += &line(&us.to_string(), &counts(us), "");
                }
                let means = if self == Timerlat { whole } else { mean };
                for (name, figures) in [
                    ("over:", overs),
                    ("count:", totals),
                    ("min:", least),
                    ("avg:", means),
                    ("max:", greatest),
                ] {
                    text += &line(name, &figures, "");
                }
                if stop.is_some() {
                    let _ = writeln!(text, "rtla {name} hit stop tracing");
                }
                text
            }
        }
    }
}

fn count(thread: Thread<'_>, us: u64) -> u64 {
    let row = thread.iter().find(|(own, _)| *own == us);
    row.map_or(0, |(_, count)| *count)
}

fn total(thread: Thread<'_>) -> u64 {
    thread.iter().map(|(_, count)| count).sum()
}

/// Returns how many latencies are beyond the end of the histogram.
fn over(thread: Thread<'_>, limit: u64) -> u64 {
    total(thread)
        - thread
            .iter()
            .filter(|(us, _)| *us < limit)
            .map(|(_, n)| n)
            .sum::<u64>()
}

fn greatest(thread: Thread<'_>) -> u64 {
    thread.iter().map(|(us, _)| *us).max().unwrap()
}

fn mean(thread: Thread<'_>) -> f64 {
    thread.iter().map(|(us, n)| us * n).sum::<u64>() as f64 / total(thread) as f64
}

/// Where the histograms below end, in µs.
const END: u64 = 10;

/// The greatest latency of the runs below, in µs.
const GREATEST: u64 = 9_000;

/// Latencies beyond the end of the histogram, and those of a thread without.
pub const SOME: &[Thread<'_>] = &[
    &[(1, 9_000), (2, 978), (40, 19), (9_000, 3)],
    &[(1, 9_990), (2, 10)],
];

/// A run whose latencies lie partly beyond the end of its histograms.
struct Run {
    threads: &'static [Thread<'static>],
    /// Whether it stopped at its own threshold.
    is_stopped: bool,
}

/// Overflows of some threads, of each thread a different number, one alone, all; and a run that
/// stopped at its own threshold.
const RUNS: &[Run] = &[
    Run {
        threads: SOME,
        is_stopped: false,
    },
    Run {
        threads: &[
            &[(1, 90), (2, 10), (500, 1), (9_000, 1)],
            &[(1, 80), (2, 20), (50, 2), (700, 1)],
        ],
        is_stopped: false,
    },
    Run {
        threads: &[&[(1, 11), (9_000, 1)]],
        is_stopped: false,
    },
    Run {
        threads: &[&[(10, 1), (13, 1)], &[(12, 5), (9_000, 3)]],
        is_stopped: false,
    },
    Run {
        threads: &[&[(1, 90), (2, 10), (9_000, 1)], &[(1, 101)]],
        is_stopped: true,
    },
];

#[test]
fn the_greatest_latency_of_a_file_is_that_of_all_that_is_made_of_it() {
    for form in Form::ALL {
        for (number, run) in RUNS.iter().enumerate() {
            // oslat prints no histogram then.
            if !(run.is_stopped && form.tool() == "oslat") {
                is_that_of_all(form, run, &format!("{form:?}, run {number}"));
            }
        }
    }
}

fn is_that_of_all(form: Form, run: &Run, which: &str) {
    let Run {
        threads,
        is_stopped,
    } = *run;
    let bench = Bench::new();
    let layout = Layout {
        stop: is_stopped.then_some(100),
        ..up_to(END)
    };
    let import = |name: &str, text: &str| {
        fs::write(bench.work().join("file"), text).unwrap();
        let tool = form.tool();
        bench.run(&format!(
            "import {tool} file --interval 1000 --output {name}"
        ))
    };
    let text = form.write(threads, layout);
    // One alone beyond the end is the greatest of its thread.
    let known = |thread: Thread<'static>| over(thread, END) <= 1;
    let notice = match threads.iter().all(|thread| known(thread)) {
        true => "each is the greatest of its thread",
        false => "beyond the end of the histogram",
    };
    import("run", &text).expect(0, &[notice]);

    // The verdict, on the terminal and on the page.
    let what = match (form.is_periodic(), is_stopped) {
        (true, false) => "Latest wake-up",
        (true, true) => "Latest wake-up until the tool stopped at its threshold",
        (false, false) => "Longest",
        (false, true) => "Longest until the tool stopped at its threshold",
    };
    let headline = format!("{what}: 9.00 ms on ");
    let report = bench.run("report run");
    report.expect(0, &[&headline]);
    let page = fs::read_to_string(bench.work().join("run/report.html")).unwrap();
    let page = page.replace(['\u{a0}', '\u{202f}'], " ");
    assert!(page.contains(&headline), "{which}");
    // The table: the first figure of the load.
    let line = report.out.lines().find(|line| line.starts_with("idle  "));
    let cell = line.and_then(|line| line.split_whitespace().nth(1));
    assert_eq!(cell, Some("9,000"), "{which}: {}", report.out);
    // Nothing is claimed that the file does not state: no place, no time.
    let absent = ["cpu_dma_latency", "host CPU", "after about", "over time"];
    for absent in absent {
        assert!(
            !report.out.contains(absent),
            "{which}: {absent} in {}",
            report.out
        );
    }
    for absent in ["over time", "since the first activation"] {
        assert!(!page.contains(absent), "{which}: {absent} on the page");
    }

    // Gates.
    let gate = |limit: u64| format!("report run -q --fail-if latency>{limit}us");
    bench
        .run(&gate(GREATEST - 1))
        .expect(3, &["Gate failed: latency.max"]);
    bench
        .run(&gate(GREATEST))
        .expect(0, &["Gate passed: latency.max"]);

    // The same file again is no second measurement; one with another sample is.
    import("copy", &text).expect(0, &[]);
    bench
        .run("compare run --to copy")
        .expect(2, &["copy is a copy of run"]);
    let mut first = threads[0].to_vec();
    first.last_mut().unwrap().1 += 1;
    let more = [&[first.as_slice()], &threads[1..]].concat();
    import("more", &form.write(&more, layout)).expect(0, &[]);
    let compared = bench.run("compare run --to more --json");
    let compared: Value = serde_json::from_str(&compared.out).unwrap();
    let rows = compared["comparisons"][0]["rows"].as_array().unwrap();
    let row = rows
        .iter()
        .find(|row| row["measure"] == "latency" && row["figure"] == "max");
    let both = row.map(|row| (row["base"].as_f64(), row["new"].as_f64()));
    let ns = Some(GREATEST as f64 * 1e3);
    assert_eq!(both, Some((ns, ns)), "{which}");

    // Rows: a quantile is one of the latencies that were counted, or has no value.
    let rows: Value = serde_json::from_str(&bench.run("report run --json").out).unwrap();
    let rows = rows["figures"].as_array().unwrap();
    assert!(
        rows.iter().all(|row| row["measure"] != "skipped"),
        "{which}"
    );
    let latencies = || rows.iter().filter(|row| row["measure"] == "latency");
    let counted = |thread: Thread<'static>| {
        let rows = thread.iter().copied();
        rows.filter(move |(us, _)| *us < END || known(thread))
    };
    let values: BTreeSet<u64> = threads
        .iter()
        .flat_map(|thread| counted(thread))
        .map(|(us, _)| us)
        .collect();
    for row in latencies().filter(|row| row["figure"].as_str().is_some_and(|f| f.starts_with('p')))
    {
        let value = row["value"].as_f64().map(|ns| (ns / 1e3) as u64);
        assert!(
            value.is_none_or(|us| values.contains(&us)),
            "{which}: {row}"
        );
    }
    let greatest = latencies().filter(|row| row["figure"] == "max");
    let greatest = greatest.filter_map(|row| row["value"].as_f64());
    assert_eq!(greatest.reduce(f64::max), ns, "{which}");

    // Exports: no row of a latency that the file does not count.
    let export = |words: &str| {
        bench
            .run(&format!("export run --format {words}"))
            .expect(0, &[])
            .out
            .clone()
    };
    let csv = export("csv");
    let expected = (0_usize..).zip(threads).flat_map(|(number, thread)| {
        counted(thread).map(move |(us, n)| format!("{number},0,0,{},{n}", us * 1_000))
    });
    let rows = csv.lines().skip(1).map(str::to_owned);
    assert_eq!(Vec::from_iter(rows), Vec::from_iter(expected), "{which}");
    let hgrm = export("hgrm");
    let rows = hgrm.lines().filter(|line| !line.starts_with('#'));
    let listed = rows.filter_map(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    let listed: BTreeSet<u64> = listed.map(|us| us as u64).collect();
    let mut possible = values.clone();
    possible.insert(GREATEST);
    assert!(listed.is_subset(&possible), "{which}: {hgrm}");
    let last = format!("#[Max     = {GREATEST:8}.000");
    assert!(
        hgrm.contains(&last) && listed.contains(&GREATEST),
        "{which}: {hgrm}"
    );
    let back = export("cyclictest --histogram 10");
    let all = Vec::from_iter(threads.iter().map(|thread| over(thread, END)));
    let written = |figures: Vec<u64>, digits: usize| {
        let figures = figures.iter().map(|figure| format!("{figure:0digits$}"));
        Vec::from_iter(figures).join(" ")
    };
    let maxima = threads
        .iter()
        .map(|thread| self::greatest(thread))
        .collect();
    for line in [
        format!("# Max Latencies: {}\n", written(maxima, 5)),
        format!("# Histogram Overflows: {}\n", written(all, 5)),
    ] {
        assert!(back.contains(&line), "{which}: no {line} in {back}");
    }
}

#[test]
fn a_file_that_lacks_something_is_refused_with_what_is_missing() {
    let wide: &[Thread<'_>] = &[&[(10, 500), (20, 30), (30, 4), (9_000, 2)]];
    let bench = Bench::new();
    for form in Form::ALL {
        let refused = |text: &str, words: &str| {
            fs::write(bench.work().join("file"), text).unwrap();
            let tool = form.tool();
            let import = format!("import {tool} file --interval 1000 --output run");
            bench.run(&import).expect(1, &["file: ", words]);
        };
        let whole = form.write(SOME, up_to(END));
        let lines = whole.lines().take(6).map(|line| format!("{line}\n"));
        match form {
            CyclictestJson | OslatJson => refused(&whole[..whole.len() / 2], "not JSON"),
            _ => refused(&Vec::from_iter(lines).concat(), "the output broke off"),
        }
        // The row of 2 µs, in which one thread has its greatest.
        let row = match form {
            Cyclictest | CyclictestSum => "000002 ",
            CyclictestJson | OslatJson => "\"2\": ",
            Oslat => "    002 (us):",
            Timerlat | Osnoise => "2 ",
        };
        let trimmed: String = match form {
            CyclictestJson | OslatJson => {
                whole.replace(", \"2\": 978", "").replace(", \"2\": 10", "")
            }
            _ => whole
                .lines()
                .filter(|line| !line.starts_with(row))
                .map(|line| format!("{line}\n"))
                .collect(),
        };
        assert_ne!(trimmed, whole);
        refused(
            &trimmed,
            match form {
                Cyclictest | CyclictestSum => {
                    "of the 9978 samples that '# Total:' states for thread 0, 978 are in no row: lines are missing"
                }
                CyclictestJson => {
                    "10 latencies of thread 1 are beyond the histogram, which ends at 10 µs"
                }
                Oslat | OslatJson => "column 1 counts is 1 µs, but the file names 2 µs",
                Timerlat => {
                    "of the 10000 samples that 'count:' states for Thr-000, 978 are in no row"
                }
                Osnoise => {
                    "of the 10000 samples that 'count:' states for CPU-000, 978 are in no row"
                }
            },
        );
        let wide = form.write(
            wide,
            Layout {
                width: 10,
                ..up_to(100)
            },
        );
        match form.tool() {
            "oslat" => refused(&wide, "multiples of 10 µs, as with -W 10000"),
            "rtla" => refused(&wide, "multiples of 10 µs, as with -b 10"),
            // It has rows of 1 µs only.
            _ => {}
        }
    }
    // Where oslat stops at its threshold, it prints no histogram; nor does `rtla timerlat top`.
    for (tool, text, words) in [
        (
            "oslat",
            "Test starts...\noslat: Trace threshold (5 us) triggered on cpu 0 with 9 us!\n",
            "-T",
        ),
        (
            "rtla",
            "                                     Timer Latency\n",
            "`rtla timerlat hist`",
        ),
        (
            "cyclictest",
            "T: 0 (  10) P:80 I:1000 C:    100 Min:   2000 Act:    2345 Avg:    2400 Max:    9000\n# Histogram\n\
             000000 000000\n# Total: 000000000\n# Min Latencies: 02000\n# Avg Latencies: 02400\n# Max Latencies: 09000\n\
             # Histogram Overflows: 00100\n",
            "its values are ns (-N)",
        ),
    ] {
        fs::write(bench.work().join("file"), text).unwrap();
        let import = format!("import {tool} file --interval 1000 --output run");
        bench.run(&import).expect(1, &[words]);
    }
}

#[test]
fn a_file_may_have_other_line_ends_a_byte_order_mark_and_no_rows_of_zeros() {
    for form in Form::ALL {
        let text = form.write(SOME, up_to(END));
        let is_zero = |line: &str| {
            let mut words = line.split_whitespace();
            // Without the last row, less is known of where those beyond it begin.
            let us = words.next().and_then(|word| word.parse::<u64>().ok());
            let is_row = us.is_some_and(|us| us + 1 < END);
            is_row && words.all(|word| word == "0" || word == "(us):")
        };
        let lines = text.lines().filter(|line| !is_zero(line));
        let sparse: String = lines.map(|line| format!("{line}\n")).collect();
        assert!(form.tool() != "cyclictest" || form == CyclictestJson || sparse != text);
        let bench = Bench::new();
        let figures = |name: &str, text: &str| {
            fs::write(bench.work().join("file"), text).unwrap();
            let tool = form.tool();
            let import = format!("import {tool} file --interval 1000 --output {name}");
            bench.run(&import).expect(0, &[]);
            let report = bench.run(&format!("report {name} --json")).out;
            let mut report: Value = serde_json::from_str(&report).unwrap();
            for row in report["figures"].as_array_mut().unwrap() {
                row["created"].take();
            }
            report["figures"].take()
        };
        let expected = figures("plain", &text);
        let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        assert!(figures("windows", &windows) == expected, "{form:?}");
        assert!(figures("sparse", &sparse) == expected, "{form:?}");
    }
}
