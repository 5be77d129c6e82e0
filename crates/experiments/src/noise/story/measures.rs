//! What `noise` measures: time lost to interruptions, and how long short work takes.

use tare_results::model::{Labels, SetHead, SetSamples};
use tare_stats::{Counts, DelayClasses, DelayTally, Delays, Observed, Recording, StatsError};

use tare_report::rows::{Better, CellData, Figure, Measure, Sample, Samples, counts};

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

/// Limits above which the share of time in delays is given, in cycles above the mean: kot-2019's.
const SHARE_LIMITS: [u64; 2] = [400, 2_000];

/// The measures, the most important first.
pub(super) const MEASURES: &[Measure] = &[
    Measure {
        id: "lost",
        title: "time lost to gaps",
        unit: "ns",
        better: Better::Less,
        figures: &[Figure::Share],
        from: lost,
    },
    Measure {
        id: "gaps",
        title: "gaps",
        unit: "",
        better: Better::Less,
        figures: &[Figure::Rate, Figure::Total],
        from: gaps,
    },
    Measure {
        id: "gap",
        title: "length of a gap",
        unit: "ns",
        better: Better::Less,
        figures: &[
            Figure::Max,
            Figure::MEDIAN,
            Figure::P99,
            Figure::P99_9,
            Figure::P99_99,
        ],
        from: gap,
    },
    Measure {
        id: "quiet",
        title: "iteration without a gap",
        unit: "ns",
        better: Better::Less,
        figures: &[Figure::Mean],
        from: quiet,
    },
    Measure {
        id: "duration",
        title: "duration of a repetition",
        unit: "ns",
        better: Better::Less,
        figures: DISTRIBUTION,
        from: |data| durations(data, |_| 0),
    },
    Measure {
        id: "net",
        title: "duration less the least empty region",
        unit: "ns",
        better: Better::Less,
        figures: DISTRIBUTION,
        from: |data| durations(data, region),
    },
    Measure {
        id: "delayed",
        title: "time in delays",
        unit: "ns",
        better: Better::Less,
        figures: &[Figure::Share],
        from: delayed,
    },
    Measure {
        id: "delays",
        title: "delays of a class",
        unit: "",
        better: Better::Less,
        figures: &[Figure::Total],
        from: |data| classes(data, |tally| Some(tally.count as f64)),
    },
    Measure {
        id: "delay",
        title: "mean delay of a class",
        unit: "cycles",
        better: Better::Less,
        figures: &[Figure::Mean],
        from: |data| classes(data, DelayTally::mean_cycles),
    },
    Measure {
        id: "interrupts",
        title: "interrupts counted beneath",
        unit: "",
        better: Better::Neither,
        figures: &[Figure::Rate, Figure::Total],
        from: counters,
    },
    Measure {
        id: "work",
        title: "elementary steps of a repetition",
        unit: "",
        better: Better::Neither,
        figures: &[Figure::Value],
        from: |data| Ok(value(data, "work")),
    },
    Measure {
        id: "result",
        title: "what the work yielded",
        unit: "",
        better: Better::Neither,
        figures: &[Figure::Value],
        from: |data| Ok(value(data, "result")),
    },
];

/// A spin, and what its gaps took.
struct Spin<'a> {
    head: &'a SetHead,
    set: &'a SetSamples,
    /// Sum of all gaps, listed or not.
    in_gaps: u64,
    /// Mean iteration without a gap, in cycles.
    quiet: f64,
}

impl Spin<'_> {
    fn wall(&self) -> u64 {
        self.head.last.wrapping_sub(self.head.first)
    }
}

/// Returns the spin of a cell: with n iterations, wall time W and m gaps that sum up to G, an iteration without a gap
/// takes (W − G) / (n − m).
fn spin<'a>(data: &CellData<'a>) -> Option<Spin<'a>> {
    let (head, set) = data.sets("gap").next()?;
    let listed: u64 = set.events.iter().map(|gap| gap.value).sum();
    let in_gaps = listed.saturating_add(head.unkept_sum);
    let wall = head.last.wrapping_sub(head.first);
    let reads = head.n.saturating_sub(head.seen);
    let quiet = match reads {
        0 => 0.0,
        reads => wall.saturating_sub(in_gaps) as f64 / reads as f64,
    };
    (head.n > 0 && wall > 0).then_some(Spin {
        head,
        set,
        in_gaps,
        quiet,
    })
}

fn one(sample: Option<Sample>) -> Vec<(Labels, Sample)> {
    let taken = sample.map(|sample| (Labels::default(), sample));
    taken.into_iter().collect()
}

fn lost(data: &CellData<'_>) -> Samples {
    let lost = spin(data).map(|spin| {
        let lost = spin.in_gaps as f64 - spin.quiet * spin.head.seen as f64;
        Sample::Ratio(lost.max(0.0), spin.wall() as f64)
    });
    Ok(one(lost))
}

fn gaps(data: &CellData<'_>) -> Samples {
    let rate = spin(data).and_then(|spin| {
        let seconds = spin.wall() as f64 * data.ns(spin.head)? / 1e9;
        Some(Sample::Ratio(spin.head.seen as f64, seconds))
    });
    Ok(one(rate))
}

fn gap(data: &CellData<'_>) -> Samples {
    let Some(spin) = spin(data) else {
        return Ok(Vec::new());
    };
    let listed = counts(spin.set)?;
    Ok(one(Some(Sample::Counts(listed, data.ns(spin.head)))))
}

fn quiet(data: &CellData<'_>) -> Samples {
    let quiet = spin(data).and_then(|spin| Some(Sample::Number(spin.quiet * data.ns(spin.head)?)));
    Ok(one(quiet))
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
        let calibration = &program.calibration;
        match data.plan().labels.get("timing") {
            Some("published") => calibration.published_region_cycles,
            _ => calibration.fenced_region_cycles,
        }
    })
}

/// Calls `of` with the delays of a cell: of a timed workload all of them, of a spin those that were recorded.
fn with_delays<T>(
    data: &CellData<'_>,
    of: impl FnOnce(&Delays<'_>) -> T,
) -> Result<Option<T>, String> {
    let told = |error: StatsError| error.to_string();
    if let Some(spin) = spin(data) {
        let counts = counts(spin.set)?;
        let recording = recording(&spin, &counts);
        let delays = Delays::of_recording(&counts, recording).map_err(told)?;
        return Ok(Some(of(&delays)));
    }
    let Some((_, set)) = data.sets("duration").next() else {
        return Ok(None);
    };
    let counts = counts(set)?;
    Ok(Delays::of_run(&counts).map(|delays| of(&delays)))
}

/// Says what a spin recorded: at or above its threshold, as far as the list had room.
fn recording(spin: &Spin<'_>, listed: &Counts) -> Recording {
    Recording {
        base_cycles: spin.wall() as f64 / spin.head.n as f64,
        smallest_recorded_cycles: spin.head.threshold,
        unkept: spin.head.seen.saturating_sub(listed.total()),
        execution_cycles: u128::from(spin.wall()),
    }
}

fn delayed(data: &CellData<'_>) -> Samples {
    let shares = with_delays(data, |delays| {
        SHARE_LIMITS.map(|limit| (limit, delays.share_above(limit)))
    })?;
    let seen = shares
        .into_iter()
        .flatten()
        .filter_map(|(limit, share)| match share {
            Observed::Fully(share) => {
                let labels = Labels::default().with("above", format!("{limit}cycles"));
                // The whole is what makes the part this share.
                let whole = share.delays.cycles / share.share;
                let sample = match share.delays.count {
                    0 => Sample::Ratio(0.0, 1.0),
                    _ => Sample::Ratio(share.delays.cycles, whole),
                };
                Some((labels, sample))
            }
            Observed::Partly(..) | Observed::NotAtAll(_) => None,
        });
    Ok(seen.collect())
}

/// Takes one number of each class of delays that was seen in full.
fn classes(data: &CellData<'_>, of: fn(&DelayTally) -> Option<f64>) -> Samples {
    let table = with_delays(data, |delays| delays.classify(&DelayClasses::kot_2019()))?;
    let rows = table.iter().flat_map(|table| &table.rows);
    let seen = rows.filter_map(|row| match &row.delays {
        Observed::Fully(tally) => {
            let labels = Labels::default().with("class", row.class.letter);
            Some((labels, Sample::Number(of(tally)?)))
        }
        Observed::Partly(..) | Observed::NotAtAll(_) => None,
    });
    Ok(seen.collect())
}

/// Takes what was counted beneath the measured code, from first to last stamp.
fn counters(data: &CellData<'_>) -> Samples {
    let Some((program, head)) = data.program().zip(data.record.sets.first()) else {
        return Ok(Vec::new());
    };
    let wall = head.last.wrapping_sub(head.first) as f64;
    let Some(seconds) = data.ns(head).map(|ns| wall * ns / 1e9) else {
        return Ok(Vec::new());
    };
    let counters = program.counters.iter().map(|counter| {
        let labels = Labels::default().with("counter", &counter.name);
        (labels, Sample::Ratio(counter.count as f64, seconds))
    });
    Ok(counters.collect())
}

fn value(data: &CellData<'_>, measure: &str) -> Vec<(Labels, Sample)> {
    let value = data.record.value(measure, &Labels::default());
    one(value.map(Sample::Number))
}
