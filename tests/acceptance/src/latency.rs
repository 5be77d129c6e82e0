//! Wake-up latency compared with Debian's cyclictest, the cost of recording it, and its disk usage.
//!
//! Both programs measure the same CPU for ten seconds with `-m -p95 -i 100`, in turns, five pairs
//! without a load and five with hackbench; the medians over the pairs are compared. cyclictest
//! reports nanoseconds (`-N`): a whole microsecond is a fifth of an idle wake-up here. Its main
//! thread, which wakes every 10 ms, is kept off the measured CPU, like that of `tare`: a CPU that
//! has just been awake wakes faster.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tare_measured::wakeup::Plan;
use tare_results::RunFolder;
use tare_results::model::{Count, Labels};
use tare_stats::{Counts, Quantile};
use tare_targets::measured::MeasuredFile;

use crate::hog::{last_cpu, wait_for_quiet};
use crate::verdict::Verdicts;
use crate::{Measurement, Result, median, output, run as tare};

const PAIRS: usize = 5;
const SECONDS: u32 = 10;
const INTERVAL_US: u32 = 100;
/// The largest histogram of cyclictest: 1 ms in ns. Longer latencies are counted, and their maximum
/// is reported.
const HISTOGRAM_NS: u32 = 1_000_000;

/// The limit on the disk usage of a day.
const DAY_BYTES: f64 = 200e6;

/// Compares both, and checks the cost.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let cpu = last_cpu()?;
    let scratch = tempfile::tempdir()?;
    let (excess, range) = compare("idle", cpu, scratch.path(), verdicts)?;
    let what = "misses idle beyond cyclictest's, points";
    verdicts.at_most(what, 100.0 * excess, (100.0 * range).max(0.1));
    compare("hackbench", cpu, scratch.path(), verdicts)?;
    cost(cpu, scratch.path(), verdicts)
}

/// The figures of one program.
#[derive(Debug)]
struct Seen {
    min_us: f64,
    p1_us: f64,
    median_us: f64,
    p99_us: f64,
    max_us: f64,
    missed: f64,
}

impl Seen {
    /// Derives figures from counts per nanosecond.
    fn of(counts: impl IntoIterator<Item = (u64, u64)>) -> Result<Self> {
        let counts = Counts::from_pairs(counts)?;
        let us = |ns: Option<u64>| Ok::<_, &str>(ns.ok_or("nothing was measured")? as f64 / 1e3);
        let due = f64::from(SECONDS) * 1e6 / f64::from(INTERVAL_US);
        Ok(Self {
            min_us: us(counts.min())?,
            p1_us: us(counts.quantile(Quantile::P1))?,
            median_us: us(counts.median())?,
            p99_us: us(counts.quantile(Quantile::P99))?,
            max_us: us(counts.max())?,
            missed: (1.0 - counts.total() as f64 / due).max(0.0),
        })
    }
}

/// Compares under a load; returns the excess of the share of missed activations over cyclictest's,
/// and the range of cyclictest's own.
fn compare(load: &str, cpu: usize, scratch: &Path, verdicts: &mut Verdicts) -> Result<(f64, f64)> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        if load == "idle" {
            wait_for_quiet(cpu);
        }
        for turn in 0..2 {
            let _background = match load {
                "idle" => None,
                load => Some(Background::start(load, scratch)?),
            };
            if (pair + turn) % 2 == 0 {
                theirs.push(cyclictest(cpu)?);
            } else {
                ours.push(wakeup(&format!("{load}-{pair}"), cpu, scratch)?);
            }
        }
    }
    for (who, all) in [("cyclictest", &theirs), ("tare", &ours)] {
        let of = |get: fn(&Seen) -> f64| median(all.iter().map(get));
        println!(
            "       {load}, {who}: min {:.2} µs, p1 {:.2}, p50 {:.2}, p99 {:.2}, max {:.1}; missed {:.3} % (medians over {PAIRS})",
            of(|s| s.min_us),
            of(|s| s.p1_us),
            of(|s| s.median_us),
            of(|s| s.p99_us),
            of(|s| s.max_us),
            100.0 * of(|s| s.missed)
        );
    }
    let both =
        |get: fn(&Seen) -> f64| (median(ours.iter().map(get)), median(theirs.iter().map(get)));
    // Minima and misses depend on a few wake-ups in 100,000, and misses on a hypervisor: the two
    // programs can't differ less than one differs from itself.
    let range = |of: &[Seen], get: fn(&Seen) -> f64| {
        let all = || of.iter().map(get);
        all().fold(f64::MIN, f64::max) - all().fold(f64::MAX, f64::min)
    };
    let (our_min, their_min) = both(|s| s.min_us);
    let what = format!("{load}: minimum beyond cyclictest's, µs");
    let ranges = [&ours, &theirs].map(|of| range(of, |s| s.min_us));
    let most = ranges.into_iter().fold(2.0, f64::max);
    verdicts.within(&what, our_min - their_min, -most, most);
    let (our_low, their_low) = both(|s| s.p1_us);
    let what = format!("{load}: p1 / cyclictest's");
    verdicts.within(&what, our_low / their_low, 0.85, 1.15);
    let (our_median, their_median) = both(|s| s.median_us);
    let what = format!("{load}: p50 / cyclictest's");
    verdicts.within(&what, our_median / their_median, 0.85, 1.15);
    let (ours_missed, theirs_missed) = both(|s| s.missed);
    Ok((ours_missed - theirs_missed, range(&theirs, |s| s.missed)))
}

/// Runs Debian's cyclictest and reads its histogram.
fn cyclictest(cpu: usize) -> Result<Seen> {
    // The measured CPU is the last one, of at least two.
    let main = cpu - 1;
    let words = format!(
        "-m -q -N -t1 -p95 -i {INTERVAL_US} -a {cpu} --mainaffinity={main} -D {SECONDS} -h {HISTOGRAM_NS}"
    );
    let text = output(Command::new("cyclictest").args(words.split(' ')))
        .map_err(|error| format!("{error}; is rt-tests installed?"))?;
    let told = |name: &str| {
        let figure = text.lines().find_map(|line| line.strip_prefix(name));
        figure.and_then(|figure| figure.trim().parse().ok())
    };
    // As if all values beyond the histogram were as long as the longest.
    let beyond = told("# Max Latencies:").zip(told("# Histogram Overflows:"));
    let beyond = beyond.ok_or("cyclictest's histogram has no summary")?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let counts = lines.filter_map(|line| {
        let (ns, count) = line.split_once(char::is_whitespace)?;
        Some((ns.parse().ok()?, count.trim().parse().ok()?))
    });
    Seen::of(counts.chain([beyond]))
}

/// Runs `tare wakeup` in the same way.
fn wakeup(name: &str, cpu: usize, scratch: &Path) -> Result<Seen> {
    let folder = measured(name, cpu, SECONDS, scratch)?;
    let plan = folder.plan().cells.first().ok_or("the plan is empty")?;
    let samples = folder.samples(plan.id)?;
    let counts = samples.sets.iter().flat_map(|set| &set.counts);
    Seen::of(counts.map(|Count { value, count }| (*value, *count)))
}

fn measured(name: &str, cpu: usize, seconds: u32, scratch: &Path) -> Result<RunFolder> {
    let words = format!("wakeup -t 1 -a {cpu} -p 95 -i {INTERVAL_US} -D {seconds} --runs 1");
    tare(scratch, name, &words, &[])
}

/// Returns the only cell, measured by one thread.
fn only(folder: &RunFolder) -> Result<Measurement> {
    let plan = folder.plan().cells.first().ok_or("the plan is empty")?;
    Ok(Measurement::of(folder, plan.id).ok_or("the cell failed")?)
}

/// Checks the cost of recording a wake-up, and the disk usage of a day.
///
/// Counts per value grow with the number of values, not of wake-ups; lists and bins have a limit.
/// So a day is bounded by the size of one value, one event and one raw wake-up, and by the plan's
/// limits.
fn cost(cpu: usize, scratch: &Path, verdicts: &mut Verdicts) -> Result<()> {
    let short = measured("short", cpu, 10, scratch)?;
    let long = measured("long", cpu, 40, scratch)?;
    let Measurement { head, record, .. } = only(&long)?;
    let thread = Labels::of([("thread", "0")]);
    let recording_ns = record.value("recording time", &thread);
    let recording_ns = recording_ns.ok_or("the thread did not report the cost of recording")?;
    let share = 100.0 * recording_ns / (1e3 * f64::from(INTERVAL_US));
    verdicts.at_most("recording one wake-up, % of a period of 100 µs", share, 2.0);

    let (short, long) = (sizes(&short)?, sizes(&long)?);
    let of =
        |sizes: &BTreeMap<String, u64>, file: &str| sizes.get(file).copied().unwrap_or(0) as f64;
    for (file, bytes) in &long {
        let before = of(&short, file);
        println!("       {file}: {before} bytes after 10 s, {bytes} after 40 s");
    }
    let raw_bytes = of(&long, "raw.parquet") / head.raw.max(1) as f64;
    // Events are stored like raw wake-ups; on a quiet machine there are too few to derive their
    // size.
    let kept = (Plan::DEFAULT_RAW + Plan::DEFAULT_CAPACITY) as f64;
    let lists = raw_bytes * kept;
    // As if every further value were new: from 10 s to 40 s the tail has filled up in the same way.
    let counts = of(&long, "counts.parquet");
    let growth = (counts - of(&short, "counts.parquet")).max(0.0) / 30.0;
    let day = lists + counts + growth * 24.0 * 3_600.0 + of(&long, "envelope.parquet");
    let what = "a day at 100 µs, MB on the disk at most";
    verdicts.at_most(what, day / 1e6, DAY_BYTES / 1e6);
    Ok(())
}

/// Returns the size of each file of the first cell.
fn sizes(folder: &RunFolder) -> Result<BTreeMap<String, u64>> {
    let mut sizes = BTreeMap::new();
    for entry in fs::read_dir(folder.path().join("cells/0001"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        sizes.insert(name, entry.metadata()?.len());
    }
    Ok(sizes)
}

/// A load in the background, driven by the agent. It is ended when this is dropped.
struct Background {
    child: Child,
}

impl Background {
    fn start(load: &str, scratch: &Path) -> Result<Self> {
        let agent = MeasuredFile::agent();
        let dir = scratch.join("load");
        fs::create_dir_all(&dir)?;
        let child = Command::new(agent.path()?)
            .args(["load", load])
            .arg(format!("dir={}", dir.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let background = Self { child };
        // Until its processes are there.
        thread::sleep(Duration::from_secs(2));
        Ok(background)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.child.id())
            && let Some(pid) = rustix::process::Pid::from_raw(pid)
        {
            // It ends its tools in order.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}
