//! Primitives compared with the figures of other programs, and detected caches compared with those
//! that the processor reports.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use tare_experiments::catalogue;
use tare_figures::claims::Comparison;
use tare_host::{Machine, Source};
use tare_measured::primitives::memory;
use tare_pages::analyse;
use tare_pages::terminal;

use crate::verdict::Verdicts;
use crate::{Result, figure, hog, median, output, run as tare};

/// The number of turns. Bursts of neighbours' work last longer than a turn, and affect one side or
/// both: the ratios of many short turns are more reliable than those of a few long ones.
const TURNS: usize = 30;

/// A figure of tare and its counterpart.
struct Peer {
    name: &'static str,
    /// The experiment and its options, the figure, and labels.
    command: &'static str,
    figure: (&'static str, &'static str),
    labels: &'static [(&'static str, &'static str)],
    /// The permitted difference.
    most: f64,
    /// Returns the same figure of the other program, in ns or bytes per second.
    other: fn(&Path, usize, &str) -> Result<f64>,
}

/// The placeholder in commands and labels for the size in bytes of an array that exceeds the caches.
const ARRAY: &str = "BYTES";

const PEERS: [Peer; 5] = [
    Peer {
        name: "perf bench syscall basic",
        command: "primitives --only getppid --budget 100ms",
        figure: ("in-a-row", "mean"),
        labels: &[],
        most: 0.05,
        other: |_, cpu, _| perf(cpu, &["syscall", "basic", "-l", "500000"], 5e5),
    },
    Peer {
        name: "perf bench sched pipe",
        command: "primitives --only pipe-round-trip --budget 100ms",
        figure: ("in-a-row", "mean"),
        labels: &[("cpu", "same")],
        most: 0.05,
        other: |_, cpu, _| perf(cpu, &["sched", "pipe", "-l", "20000"], 2e4),
    },
    Peer {
        name: "a triad in C, best",
        command: "primitives --only bandwidth-triad --budget 100ms",
        figure: ("bandwidth", "max"),
        labels: &[("size", ARRAY)],
        most: 0.03,
        other: |scratch, cpu, array| {
            number(in_c(
                scratch,
                (cpu, array),
                "triad",
                include_str!("peers/triad.c"),
            )?)
        },
    },
    Peer {
        name: "a ring of two in C, least",
        command: "primitives --only switch-process --budget 250ms",
        figure: ("cost", "min"),
        labels: &[("cpu", "same"), ("memory", "0"), ("ring", "2")],
        most: 0.05,
        other: |scratch, cpu, array| {
            number(in_c(
                scratch,
                (cpu, array),
                "ring",
                include_str!("peers/ring.c"),
            )?)
        },
    },
    Peer {
        name: "a random chase through 64 MiB in C, least",
        command: "primitives --only latency --budget 20ms",
        figure: ("latency", "min"),
        labels: &[("pages", "2M"), ("size", "67108864")],
        most: 0.05,
        other: |scratch, cpu, array| {
            number(in_c(
                scratch,
                (cpu, array),
                "chase",
                include_str!("peers/chase.c"),
            )?)
        },
    },
];

/// Measures both sides in alternation.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let cpu = hog::last_cpu()?;
    let array = memory::array(largest_cache()).to_string();
    for peer in PEERS {
        let is_array = |value| if value == ARRAY { &*array } else { value };
        let labels: Vec<_> = peer
            .labels
            .iter()
            .map(|(key, value)| (*key, is_array(*value)))
            .collect();
        let own = |turn: usize| {
            let command = peer.command.replace(ARRAY, &array);
            let words = format!("{command} --cpu {cpu} --runs 1");
            let name = format!("{} {turn}", peer.name).replace(' ', "-");
            let folder = tare(scratch.path(), &name, &words, &[])?;
            let experiment = command.split(' ').next().unwrap_or_default();
            figure(&folder, experiment, peer.figure, &labels)
        };
        let [mut ours, mut others, mut ratios] = [const { Vec::new() }; 3];
        for turn in 0..TURNS {
            // Each begins every other turn.
            if turn % 2 == 0 {
                ours.push(own(turn)?);
            }
            others.push((peer.other)(scratch.path(), cpu, &array)?);
            if turn % 2 == 1 {
                ours.push(own(turn)?);
            }
            ratios.push(ours[turn] / others[turn]);
        }
        ratios.sort_by(f64::total_cmp);
        let (ours, others) = (median(ours), median(others));
        println!(
            "       {}: {ours:.1} by tare, {others:.1} by it; half of the ratios from {:.3} to {:.3}",
            peer.name,
            ratios[TURNS / 4],
            ratios[TURNS - TURNS / 4 - 1]
        );
        let what = format!("difference from {}", peer.name);
        verdicts.at_most(&what, (median(ratios) - 1.0).abs(), peer.most);
    }
    caches(scratch.path(), verdicts)?;
    study(scratch.path(), verdicts)
}

/// Repeats the study, with all six runs.
fn study(scratch: &Path, verdicts: &mut Verdicts) -> Result<()> {
    let begin = Instant::now();
    let folder = tare(scratch, "study", "reproduce cse221-2022", &[])?;
    let seconds = begin.elapsed().as_secs_f64();
    verdicts.at_most("seconds of cse221-2022", seconds, 180.0);
    let analysis = analyse(&folder, catalogue())?;
    let study = analysis.summary().reproduction.as_ref();
    let rows = &study.ok_or("the study has no comparison")?.comparisons;
    // Some figures have a target; all others have a reason instead.
    let reasons = ["no figure: ", "no such level"];
    let is_empty = |row: &&Comparison| {
        row.target.is_none() && !reasons.iter().any(|reason| row.here.starts_with(reason))
    };
    let empty = rows.iter().filter(is_empty).count();
    verdicts.at_least("rows of the study's table", rows.len() as f64, 24.0);
    verdicts.at_most("of them without figure or reason", empty as f64, 0.0);
    Ok(())
}

/// Detects the caches of this machine, and compares the first two with those that the processor
/// reports.
fn caches(scratch: &Path, verdicts: &mut Verdicts) -> Result<()> {
    /// A step of the grid: a quarter of an octave.
    const STEP: f64 = 1.2;
    let folder = tare(scratch, "caches", "primitives --only latency --runs 3", &[])?;
    for (level, index) in [("1", "index0"), ("2", "index2")] {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/{index}/size");
        let claimed = std::fs::read_to_string(&path)?;
        let kib: f64 = claimed.trim().trim_end_matches('K').parse()?;
        let found = figure(
            &folder,
            "primitives",
            ("level-size", "p50"),
            &[("level", level)],
        )?;
        let steps = (found / (kib * 1024.0)).ln().abs() / f64::ln(STEP);
        println!(
            "       L{level}: claimed {kib} KiB, found {} KiB",
            found / 1024.0
        );
        verdicts.at_most(
            &format!("steps from the claimed size of L{level}"),
            steps,
            1.0,
        );
    }
    // The size of the last one depends on the neighbours, but must be reported.
    let analysis = analyse(&folder, catalogue())?;
    let text = terminal::render(&analysis, 100, false);
    let last = text
        .lines()
        .map(str::trim)
        .rfind(|line| line.starts_with('L') && line.contains("unified"));
    let last = last.ok_or("no cache was reported with its effective size")?;
    println!("       {last}");
    let is_told = !last.contains("not told apart");
    verdicts.at_least(
        "last levels with an effective size",
        f64::from(is_told),
        1.0,
    );
    Ok(())
}

/// Returns the mean of perf's loop on one CPU, in ns.
fn perf(cpu: usize, words: &[&str], times: f64) -> Result<f64> {
    let cpu = cpu.to_string();
    let mut command = Command::new("taskset");
    command
        .args(["-c", &cpu, "perf", "bench", "--format=simple"])
        .args(words);
    let seconds: f64 = output(&mut command)?.trim().parse()?;
    Ok(seconds / times * 1e9)
}

/// Returns the reported size of the largest cache, limited to a part of the memory, as used by
/// `tare primitives`.
pub fn largest_cache() -> Option<u64> {
    let kib = |index| -> Option<u64> {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        let claimed = std::fs::read_to_string(path).ok()?;
        claimed.trim().strip_suffix('K')?.parse().ok()
    };
    let memory = Machine::collect(&Source::system()).memory;
    let most = memory.total_bytes.known()? / 64;
    let largest = (0..8).filter_map(kib).max()?;
    Some((largest << 10).min(most))
}

/// Reads a number.
fn number(text: String) -> Result<f64> {
    Ok(text.trim().parse()?)
}

/// Returns the output of a C program with the size of an array as first argument, on one CPU. Its
/// loops stay loops: the library's copies would bypass the caches.
pub fn in_c(scratch: &Path, (cpu, words): (usize, &str), name: &str, text: &str) -> Result<String> {
    let program: PathBuf = scratch.join(name);
    if !program.exists() {
        let source = scratch.join(format!("{name}.c"));
        std::fs::write(&source, text)?;
        output(
            Command::new("cc")
                .args(["-O3", "-fno-tree-loop-distribute-patterns", "-o"])
                .args([&program, &source]),
        )?;
    }
    let mut command = Command::new("taskset");
    command
        .args(["-c", &cpu.to_string()])
        .args([&program, Path::new(words)]);
    output(&mut command)
}
