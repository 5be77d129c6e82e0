//! A SCHED_FIFO thread of known CPU usage is detected.
//!
//! The hog wakes every 50 ms and computes for 1 ms: 2 % of the CPU. A burst is long compared with
//! the two context switches around it, which lengthen the gap but are not the hog's time. It
//! records its bursts by the TSC, and reads its CPU time from the kernel, while
//! `tare noise --workload gap` measures the same CPU. The gaps that contain the hog's time stamps
//! must sum to its CPU time, and the share of time lost must be 2 points higher than without it.
//! Both are medians over five pairs that alternate without and with the hog, with attribution and
//! without. Attribution must add little to the share of time lost without the hog.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::{ClockId, CpuSet, clock_nanosleep_absolute};
use rustix::time::{Timespec, clock_gettime};
use tare_host::{BUSY_SHARE, Sample, Source};
use tare_results::RunFolder;
use tare_results::model::Event;
use tare_workloads::timing::bare_rdtsc;

use crate::verdict::Verdicts;
use crate::{Measurement, Owned, Result, figure, median, pin, run as tare};

const PAIRS: usize = 5;
const PERIOD_NS: u64 = 50_000_000;
const BURST_NS: u64 = 1_000_000;
/// The lifetime of the hog: longer than `tare noise` runs, and it ends by itself.
const SECONDS: u64 = 8;
/// The number of timer reads: about two seconds.
const READS: &str = "200000000";

/// With and without the names of those who took the time: the option's value, and the words.
const MODES: [(&str, &str); 2] = [("5us", "explained"), ("0", "not explained")];
/// The limit on what explaining adds to the share of lost time, in points.
const MOST_ADDED: f64 = 0.2;

/// Measures five pairs of each mode, in alternation.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let mut pairs = MODES.map(|_| Pairs::default());
    for number in 0..PAIRS {
        for (mode, pairs) in MODES.iter().zip(&mut pairs) {
            pairs.measure(scratch.path(), number, *mode)?;
        }
    }
    for ((_, how), pairs) in MODES.iter().zip(&pairs) {
        let what = format!("{how}: gaps that hold the hog's time stamps / its CPU time");
        verdicts.within(&what, median(pairs.ratios.iter().copied()), 0.95, 1.05);
        let what = format!("{how}: rise of the share of lost time, points");
        verdicts.within(&what, median(pairs.rises.iter().copied()), 1.5, 2.5);
    }
    let [explained, not] = &pairs;
    let added = explained.without.iter().zip(&not.without);
    let what = "what explaining adds to the share of lost time, points";
    verdicts.at_most(
        what,
        median(added.map(|(with, not)| with - not)),
        MOST_ADDED,
    );
    Ok(())
}

/// The figures of the pairs of a mode, one of each for each.
#[derive(Default)]
struct Pairs {
    /// Gaps that hold the hog's time stamps, over its CPU time.
    ratios: Vec<f64>,
    /// Share of lost time without the hog, and by how much it rises with it, in percent.
    without: Vec<f64>,
    rises: Vec<f64>,
}

impl Pairs {
    /// Measures without and with the hog.
    fn measure(&mut self, scratch: &Path, pair: usize, (explain, how): (&str, &str)) -> Result<()> {
        let cpu = last_cpu()?;
        wait_for_quiet(cpu);
        let measure = |name: &str| -> Result<(RunFolder, f64)> {
            let name = format!("{name}-{pair}-{explain}");
            let words = format!(
                "noise --workload gap --repetitions {READS} --runs 1 --cpu {cpu} --explain {explain}"
            );
            let folder = tare(scratch, &name, &words, &[])?;
            let lost = figure(&folder, "noise", ("lost", "share"), &[])?;
            Ok((folder, 100.0 * lost))
        };
        let (_, without) = measure("without")?;
        let hog = Hog::start(cpu)?;
        let (folder, with) = measure("with")?;
        let bursts = hog.end()?;

        let cell = folder.plan().cells.first().ok_or("the plan is empty")?.id;
        let measured = Measurement::of(&folder, cell).ok_or("the cell failed")?;
        let sets = folder.samples(cell)?.sets;
        let gaps: Vec<&Event> = sets.iter().flat_map(|set| &set.events).collect();
        let head = &measured.head;
        let inside: Vec<&Burst> = bursts
            .iter()
            .filter(|burst| {
                let end = burst.end.wrapping_sub(head.first);
                burst.start >= head.first && end < head.length()
            })
            .collect();
        let holds =
            |gap: &Event, burst: &Burst| burst.start < gap.at + gap.value && gap.at < burst.end;
        let held = gaps
            .iter()
            .filter(|gap| inside.iter().any(|burst| holds(gap, burst)));
        let gap_cycles: u64 = held.map(|gap| gap.value).sum();
        let missed = inside
            .iter()
            .filter(|burst| !gaps.iter().any(|gap| holds(gap, burst)));
        let hz = measured.program.frequencies[0].hz;
        let cpu_cycles: f64 = inside.iter().map(|b| b.cpu_ns as f64 * hz / 1e9).sum();
        let ratio = gap_cycles as f64 / cpu_cycles;
        println!(
            "       {how}, pair {}: {} bursts, {} without a gap; gaps / CPU time {ratio:.4}; lost \
             {without:.3} % without, {with:.3} % with",
            pair + 1,
            inside.len(),
            missed.count(),
        );
        self.ratios.push(ratio);
        self.without.push(without);
        self.rises.push(with - without);
        Ok(())
    }
}

/// Waits until the CPU has been idle for a while, at most two minutes: other work on it would be
/// attributed to the hog.
pub(crate) fn wait_for_quiet(cpu: usize) {
    const QUIET_SAMPLES: usize = 5;
    let deadline = Instant::now() + Duration::from_secs(120);
    let source = Source::system();
    let mut quiet = 0;
    while quiet < QUIET_SAMPLES && Instant::now() < deadline {
        let busy = Sample::take(&source).busy(cpu as u32).unwrap_or(0.0);
        quiet = if busy < BUSY_SHARE { quiet + 1 } else { 0 };
    }
    if quiet < QUIET_SAMPLES {
        println!("       CPU {cpu} is busy with other work: the figures will suffer");
    }
}

pub(crate) fn last_cpu() -> Result<usize> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .collect();
    match cpus[..] {
        [] | [_] => Err("the hog needs two CPUs: one to take, one for tare".into()),
        [.., last] => Ok(last),
    }
}

/// One burst of the hog.
#[derive(Debug)]
struct Burst {
    /// Its start by the TSC.
    start: u64,
    /// Its end by the TSC.
    end: u64,
    /// CPU time of the thread since the previous burst.
    cpu_ns: u64,
}

/// The running hog. It ends by itself, or when this is dropped.
struct Hog {
    child: Owned,
    lines: io::Lines<BufReader<ChildStdout>>,
}

impl Hog {
    /// Starts it and waits for its first burst.
    fn start(cpu: usize) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["hog-thread", &cpu.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or("the hog has no output")?;
        let mut hog = Self {
            child: Owned(child),
            lines: BufReader::new(output).lines(),
        };
        match hog.lines.next() {
            Some(Ok(line)) if line == "ready" => Ok(hog),
            _ => Err("the hog did not start; it says why above".into()),
        }
    }

    /// Waits for its end and returns its bursts.
    fn end(mut self) -> Result<Vec<Burst>> {
        let mut bursts = Vec::new();
        for line in self.lines.by_ref() {
            let line = line?;
            let mut numbers = line.split(' ').map(str::parse::<u64>);
            let mut next = || numbers.next().ok_or("a line of the hog is short");
            let (start, end, cpu_ns) = (next()??, next()??, next()??);
            bursts.push(Burst { start, end, cpu_ns });
        }
        self.child.0.wait()?;
        Ok(bursts)
    }
}

/// The hog itself, in a separate process.
pub fn thread(cpu: &str) -> Result<()> {
    pin(cpu.parse()?)?;
    let priority = libc::sched_param { sched_priority: 50 };
    // SAFETY: a live value, for this thread.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) } != 0 {
        let error = io::Error::last_os_error();
        return Err(format!(
            "SCHED_FIFO is refused ({error}): run as root; in a cgroup with CONFIG_RT_GROUP_SCHED \
             give it a budget (cpu.rt_runtime_us)"
        )
        .into());
    }
    println!("ready");
    io::stdout().flush()?;

    let turns = SECONDS * 1_000_000_000 / PERIOD_NS;
    let mut bursts = Vec::with_capacity(turns as usize);
    let mut wake = now_ns(ClockId::Monotonic);
    let mut used = now_ns(ClockId::ThreadCPUTime);
    for _ in 0..turns {
        wake += PERIOD_NS;
        // A signal that ends the sleep early only shifts one burst.
        let _ = clock_nanosleep_absolute(
            ClockId::Monotonic,
            &Timespec {
                tv_sec: (wake / 1_000_000_000) as i64,
                tv_nsec: (wake % 1_000_000_000) as i64,
            },
        );
        let start = bare_rdtsc();
        let begun = now_ns(ClockId::Monotonic);
        while now_ns(ClockId::Monotonic) - begun < BURST_NS {}
        let end = bare_rdtsc();
        let now = now_ns(ClockId::ThreadCPUTime);
        bursts.push((start, end, now - used));
        used = now;
    }
    // The last burst ends before anything is written: writing uses the CPU, too.
    std::thread::sleep(Duration::from_millis(1));
    let mut out = io::stdout().lock();
    for (start, end, cpu_ns) in bursts {
        writeln!(out, "{start} {end} {cpu_ns}")?;
    }
    Ok(())
}

fn now_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
