//! What `noise` measures: time lost to interruptions, and how long short work takes.
//!
//! A figure that could not be seen in full is never given. It is not there where the threshold
//! hides some of it, in every run alike; where the list of a run was full it is refused, lest the
//! runs with the fewest gaps speak for all.

use tare_results::model::{Labels, SetHead, SetSamples};
use tare_stats::{
    Counts, DelayClasses, DelayTally, Delays, Gap, NoiseRun, Period, PowerSums, Recording,
    StatsError, Trace,
};

use tare_figures::rows::{
    Better, CONTEXT_SWITCHES, CellData, Figure, INTERRUPTS, Measure, Sample, Samples, counts,
};

/// The figures of a distribution of durations.
const DISTRIBUTION: &[Figure] = &[
    Figure::MEDIAN,
    Figure::Mean,
    Figure::Sd,
    Figure::Min,
    Figure::P99,
    Figure::P99_9,
    Figure::P99_99,
    Figure::Max,
];

/// The figures of the lengths of gaps.
const GAP: &[Figure] = &[
    Figure::Max,
    Figure::MEDIAN,
    Figure::P99,
    Figure::P99_9,
    Figure::P99_99,
];

const PERIOD: &str = "time between the ticks of the strongest clock among the first gaps";
const PERIODIC: &str = "share of these gaps that come at its ticks";

/// Limits above which the share of time in delays is given, in cycles above the mean: kot-2019's.
const SHARE_LIMITS: [u64; 2] = [400, 2_000];

/// The measures, the most important first.
pub(super) const MEASURES: &[Measure] = &[
    Measure::time("lost", "time lost to gaps", &[Figure::Share], |data| {
        spun(data, |spin, _| Ok(Some(spin.lost())))
    }),
    Measure::count("gaps", "gaps", &[Figure::Rate, Figure::Total], |data| {
        spun(data, |spin, _| Ok(Some(spin.gaps(data))))
    })
    // Who hardly has the CPU is hardly interrupted: fewer a second are no better.
    .better(Better::Neither),
    Measure::time("gap", "length of a gap", GAP, gap),
    Measure::count(
        "gap-class",
        "gaps of a class",
        &[Figure::Rate, Figure::Total],
        gap_classes,
    )
    .better(Better::Neither),
    Measure::time(
        "threshold",
        "least length of a gap",
        &[Figure::Max],
        |data| {
            spun(data, |spin, ns| {
                Ok(Some(mean(spin.head.threshold as f64, ns)))
            })
        },
    )
    .better(Better::Neither),
    Measure::time(
        "quiet",
        "iteration without a gap",
        &[Figure::Mean],
        |data| spun(data, |spin, ns| Ok(Some(mean(spin.quiet, ns)))),
    ),
    Measure::time(
        "iteration",
        "iteration, gaps included",
        &[Figure::Mean, Figure::Sd],
        iteration,
    ),
    Measure::time("period", PERIOD, &[Figure::MEDIAN], |data| {
        clock(data, |period, ns| mean(period.period_cycles, ns))
    })
    .better(Better::Neither),
    // Of the runs that have a period, as that is.
    Measure::count("periodic", PERIODIC, &[Figure::Share], |data| {
        clock(data, |period, _| {
            let part = period.on_grid as f64;
            Sample::Ratio(part, part / period.share)
        })
    })
    .better(Better::Neither),
    Measure::time(
        "duration",
        "duration of a repetition",
        DISTRIBUTION,
        |data| durations(data, |_| 0),
    ),
    Measure::time(
        "net",
        "duration less the least empty region",
        DISTRIBUTION,
        |data| durations(data, region),
    ),
    Measure::time(
        "step",
        "net mean duration of an elementary step",
        &[Figure::Mean],
        step,
    ),
    Measure::time(
        "dead",
        "time between two repetitions",
        &[Figure::Mean],
        dead,
    )
    .better(Better::Neither),
    Measure::time("delayed", "time in delays", &[Figure::Share], delayed),
    Measure::count(
        "delays",
        "repetitions delayed by a class",
        &[Figure::Share, Figure::Total],
        delays,
    ),
    Measure::time("delay", "mean delay of a class", &[Figure::Mean], |data| {
        classes(data, |tally| {
            (tally.count > 0).then_some(Sample::Ratio(tally.cycles, tally.count as f64))
        })
    })
    .unit("cycles")
    // A class has borders: more of the longer ones in it is not better or worse.
    .better(Better::Neither),
    INTERRUPTS,
    CONTEXT_SWITCHES,
    Measure::value("work", "elementary steps of a repetition").better(Better::Neither),
    Measure::value("result", "result of the work").better(Better::Neither),
];

/// The number of gaps in which a clock is sought, the first ones of the run. A clock that does not
/// show in these does not matter, and the search takes a microsecond or two for each.
pub(super) const PERIOD_GAPS: usize = 50_000;

/// A spin, and what its gaps took.
///
/// With n iterations, wall time W, and gaps of length g₁ … g_m, an iteration without a gap takes q
/// = (W − Σg) / (n − m), and Σ(g − q) is lost: every gap holds one iteration that would have
/// happened anyway. Classes use the delay of kot-2019 instead, g − W / n, so that they mean the
/// same for every workload; with 20 ns per iteration the two differ by what the timer can't
/// resolve.
pub(super) struct Spin<'a> {
    pub head: &'a SetHead,
    set: &'a SetSamples,
    /// Lengths of the listed gaps.
    pub listed: Counts,
    /// Sum of all gaps, listed or not.
    in_gaps: u64,
    /// Mean iteration without a gap, in cycles.
    quiet: f64,
}

impl<'a> Spin<'a> {
    /// Takes the spin of a cell; `None` if it did something else.
    pub fn of(data: &CellData<'a>) -> Result<Option<Self>, String> {
        let Some((head, set)) = data.sets("gap").next() else {
            return Ok(None);
        };
        let listed = counts(set)?;
        // Of the counts, since there may be a million events, and each measure takes the spin anew.
        let kept = u64::try_from(listed.sum()).unwrap_or(u64::MAX);
        let in_gaps = kept.saturating_add(head.unkept_sum);
        let quiet = match head.n.saturating_sub(head.seen) {
            0 => 0.0,
            reads => head.length().saturating_sub(in_gaps) as f64 / reads as f64,
        };
        Ok((head.n > 0 && head.length() > 0).then_some(Self {
            head,
            set,
            listed,
            in_gaps,
            quiet,
        }))
    }

    /// Returns whether gaps are missing in the list, which had no room for more.
    fn is_list_full(&self) -> bool {
        self.head.kept < self.head.seen
    }

    /// Returns whether its gaps are listed one by one, and not only counted.
    pub fn has_list(&self) -> bool {
        self.head.listed.is_none()
    }

    fn lost(&self) -> Sample {
        let lost = self.in_gaps as f64 - self.quiet * self.head.seen as f64;
        Sample::Ratio(lost.max(0.0), self.head.length() as f64)
    }

    fn gaps(&self, data: &CellData<'_>) -> Sample {
        Sample::Ratio(self.head.seen as f64, seconds(data, self.head))
    }

    /// Returns its mean iteration, in cycles, and the standard deviation unless the list was full.
    pub fn iteration(&self) -> Result<(f64, Option<f64>), String> {
        let told = |error: StatsError| error.to_string();
        let mean = self.head.length() as f64 / self.head.n as f64;
        let squares = self.head.squares_below.filter(|_| !self.is_list_full());
        let Some(squares) = squares else {
            return Ok((mean, None));
        };
        let quiet = self.head.n.checked_sub(self.head.seen);
        let quiet = quiet.zip(self.head.length().checked_sub(self.in_gaps));
        let (reads, cycles) = quiet.ok_or("it has more gaps than time or reads")?;
        let sums = PowerSums::new(reads, cycles.into(), squares.into()).map_err(told)?;
        let mut gaps = self.listed.iter();
        let sums = gaps.try_fold(sums, |sums, (length, count)| sums.with(length, count));
        let moments = sums.map_err(told)?.moments();
        Ok((mean, moments.map(|moments| moments.population_sd)))
    }

    /// Returns its gaps one by one, checked against each other.
    pub fn trace(&self, most: usize) -> Result<Trace, String> {
        let listed = self.set.events.iter().take(most);
        let gaps = listed.map(|gap| Gap {
            index: gap.index,
            start: gap.at,
            length: gap.value,
        });
        let spin = tare_stats::Spin {
            iterations: self.head.n,
            wall_cycles: self.head.length(),
            typical_cycles: self.quiet,
            unkept_cycles: self.head.unkept_sum,
        };
        Trace::new(spin, gaps.collect()).map_err(|error| error.to_string())
    }

    /// Returns when it lost how much, up to its last listed gap if the list was full.
    pub fn run(&self, ns: f64) -> Result<NoiseRun, String> {
        // Gaps that overlap are refused.
        self.trace(usize::MAX)?;
        let after = |at: u64| at.wrapping_sub(self.head.first) as f64 * ns;
        let gaps = self.set.events.iter().map(|gap| {
            let lost = (gap.value as f64 - self.quiet).max(0.0);
            (after(gap.at), lost * ns)
        });
        let last = self.set.events.last().filter(|_| self.is_list_full());
        let all = self.head.length() as f64 * ns;
        Ok(NoiseRun {
            length_ns: last.map_or(all, |gap| after(gap.at.wrapping_add(gap.value))),
            gaps: gaps.collect(),
        })
    }

    /// Says what it recorded: at or above its threshold, as far as the list had room.
    fn recording(&self) -> Recording {
        Recording {
            base_cycles: self.head.length() as f64 / self.head.n as f64,
            smallest_recorded_cycles: self.head.threshold,
            unkept: self.head.seen.saturating_sub(self.listed.total()),
            execution_cycles: u128::from(self.head.length()),
        }
    }
}

/// Returns when the spin of a cell lost how much; `None` if it did something else, or if nothing
/// tells the frequency of its TSC.
///
/// # Errors
///
/// The problem with its gaps, or that it has spins on several CPUs or counts without times.
pub fn run_of(data: &CellData<'_>) -> Result<Option<NoiseRun>, String> {
    let cpus = data.sets("gap").count();
    if cpus > 1 {
        return Err(format!(
            "it measured {cpus} CPUs at once, and nothing says which of them stands for a node: measure one"
        ));
    }
    let Some(spin) = Spin::of(data)? else {
        return Ok(None);
    };
    if !spin.has_list() {
        return Err(
            "it counted gaps by their lengths, as with --duration, and lists when only some of them came: measure runs of --repetitions"
                .to_owned(),
        );
    }
    data.ns(spin.head).map(|ns| spin.run(ns)).transpose()
}

/// Takes one sample of a spin; `of` gets the factor that turns its cycles into ns.
fn spun(
    data: &CellData<'_>,
    of: impl FnOnce(&Spin<'_>, Option<f64>) -> Result<Option<Sample>, String>,
) -> Samples {
    let sample = Spin::of(data)?.map(|spin| of(&spin, data.ns(spin.head)));
    let sample = sample.transpose()?;
    Ok(one(sample.flatten()))
}

fn one(sample: Option<Sample>) -> Vec<(Labels, Sample)> {
    let taken = sample.map(|sample| (Labels::default(), sample));
    taken.into_iter().collect()
}

fn mean(mean: f64, factor: Option<f64>) -> Sample {
    Sample::Mean {
        mean,
        sd: None,
        factor,
    }
}

/// Returns for how long a set was measured; 0 where nothing tells the frequency of its TSC.
fn seconds(data: &CellData<'_>, head: &SetHead) -> f64 {
    let ns = data.ns(head).unwrap_or_default();
    head.length() as f64 * ns / 1e9
}

fn gap(data: &CellData<'_>) -> Samples {
    spun(data, |spin, factor| {
        Ok(Some(match spin.is_list_full() {
            true => {
                let listed = spin.listed.max().unwrap_or(0);
                Sample::Greatest(listed.max(spin.head.unkept_max), factor)
            }
            false => Sample::Counts(spin.listed.clone(), factor),
        }))
    })
}

fn iteration(data: &CellData<'_>) -> Samples {
    spun(data, |spin, factor| {
        let (mean, sd) = spin.iteration()?;
        Ok(Some(Sample::Mean { mean, sd, factor }))
    })
}

/// Takes something of the strongest clock among the first gaps.
fn clock(data: &CellData<'_>, of: fn(&Period, Option<f64>) -> Sample) -> Samples {
    spun(data, |spin, ns| {
        if !spin.has_list() {
            return Ok(None);
        }
        let search = || Ok(spin.trace(PERIOD_GAPS)?.period());
        let period: &Result<Option<Period>, String> = data.shared(search);
        let period = period.as_ref().map_err(String::clone)?;
        Ok(period.as_ref().map(|period| of(period, ns)))
    })
}

fn durations(data: &CellData<'_>, overhead: fn(&CellData<'_>) -> u64) -> Samples {
    let Some((head, set)) = data.sets("duration").next() else {
        return Ok(Vec::new());
    };
    let net = match overhead(data) {
        0 => counts(set)?,
        region => counts(set)?.net(region),
    };
    Ok(one(Some(Sample::Counts(net, data.ns(head)))))
}

/// Returns the least duration of an empty region between the stamps that a cell uses.
fn region(data: &CellData<'_>) -> u64 {
    data.program().map_or(0, |program| {
        let timing = data.plan().labels.get("timing");
        let is_published = timing == Some("published");
        program.calibration.empty_region(is_published)
    })
}

fn step(data: &CellData<'_>) -> Samples {
    let Some((head, set)) = data.sets("duration").next() else {
        return Ok(Vec::new());
    };
    let net = counts(set)?.net(region(data)).mean();
    let work = data.record.value("work", &Labels::default());
    let each = net.zip(work.filter(|steps| *steps > 0.0));
    Ok(one(each.map(|(net, work)| mean(net / work, data.ns(head)))))
}

fn dead(data: &CellData<'_>) -> Samples {
    let Some((head, set)) = data.sets("duration").next() else {
        return Ok(Vec::new());
    };
    let counts = counts(set)?;
    let between = head.length() as f64 - counts.sum() as f64;
    let each = between.max(0.0) / counts.total().max(1) as f64;
    Ok(one(Some(mean(each, data.ns(head)))))
}

/// Calls `of` with the delays of a cell: of a timed workload all of them, of a spin those that were
/// recorded.
fn with_delays<T>(
    data: &CellData<'_>,
    of: impl FnOnce(&Delays<'_>) -> T,
) -> Result<Option<T>, String> {
    if let Some(spin) = Spin::of(data)? {
        let delays = Delays::of_recording(&spin.listed, spin.recording());
        return Ok(Some(of(&delays.map_err(|error| error.to_string())?)));
    }
    let Some((_, set)) = data.sets("duration").next() else {
        return Ok(None);
    };
    let counts = counts(set)?;
    Ok(Delays::of_run(&counts).map(|delays| of(&delays)))
}

fn delayed(data: &CellData<'_>) -> Samples {
    let shares = with_delays(data, |delays| {
        SHARE_LIMITS.map(|limit| (limit, delays.share_above(limit)))
    })?;
    let unlisted = unlisted(data)?;
    let seen = shares.into_iter().flatten().filter_map(|(limit, share)| {
        let labels = Labels::default().with("above", format!("{limit}cycles"));
        let sample = share.map(|of| Sample::Ratio(of.delays.cycles, of.execution_cycles as f64));
        Some((labels, sample.or(unlisted.clone())?))
    });
    Ok(seen.collect())
}

/// Returns the delays of each class that was seen in full, `None` for another.
pub(super) fn classified(data: &CellData<'_>) -> Result<Vec<(char, Option<DelayTally>)>, String> {
    let rows = with_delays(data, |delays| delays.classify(&DelayClasses::kot_2019()))?;
    let seen = rows.into_iter().flatten();
    Ok(seen.map(|row| (row.class.letter, row.delays)).collect())
}

/// Takes one sample of each class of delays that was seen in full.
fn classes(data: &CellData<'_>, of: impl Fn(&DelayTally) -> Option<Sample>) -> Samples {
    let unlisted = unlisted(data)?;
    let seen = classified(data)?.into_iter().filter_map(|(letter, tally)| {
        let labels = Labels::default().with("class", letter);
        let sample = match tally {
            Some(tally) => of(&tally),
            None => unlisted.clone(),
        };
        Some((labels, sample?))
    });
    Ok(seen.collect())
}

/// Returns what stands for any figure of single gaps where the list was full.
fn unlisted(data: &CellData<'_>) -> Result<Option<Sample>, String> {
    let spin = Spin::of(data)?.filter(Spin::is_list_full);
    Ok(spin.map(|_| Sample::Unlisted))
}

fn delays(data: &CellData<'_>) -> Samples {
    let Some((_, set)) = data.sets("duration").next() else {
        return Ok(Vec::new());
    };
    let all = counts(set)?.total();
    classes(data, |tally| Some(Sample::ratio(tally.count, all)))
}

fn gap_classes(data: &CellData<'_>) -> Samples {
    let Some((head, _)) = data.sets("gap").next() else {
        return Ok(Vec::new());
    };
    let seconds = seconds(data, head);
    classes(data, |tally| {
        Some(Sample::Ratio(tally.count as f64, seconds))
    })
}
