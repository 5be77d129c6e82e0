//! kot-2019: OS noise under a unikernel, with interrupts and without, against Linux on bare metal.
//!
//! The study's unikernel ran on the bare machine. Here it may run in a guest, above another
//! Linux: then a long delay may be that Linux's, and its absence is told, but not its presence.

use tare_stats::STUDENT_RUNS;

use super::evidence::{Measured, System};
use super::{
    Claim, Comparison, Evidence, Finding, Published, PublishedTable, cannot, not_reproduced,
    reproduced,
};
use crate::analysis::{CombinedFigures, CombinedTimed};
use crate::format::Numbers;
use crate::words;

const N: Numbers = Numbers::PLAIN;

/// Is the limit in cycles above which a delay is long.
const LONG: u64 = 2_000;
/// Is the lower end of the shortest class of delays, in cycles.
const SHORT: u64 = 150;
/// Is how many delays in a million repetitions are "a handful".
const HANDFUL: f64 = 10.0;
/// Is how well a straight line must fit: the share of the variance that it explains.
const LINEAR: f64 = 0.99;
/// Is the least number of sizes that a line is fitted to.
const SIZES: usize = 4;

/// Is the study.
pub(super) const STUDY: Published = Published {
    name: "kot-2019",
    question: "How much does the duration of very short work vary, and how often and how long is it \
               delayed, under Linux, a unikernel, and a unikernel without interrupts?",
    claims: &[
        claim(
            "Delays above 2,000 cycles occur only under Linux.",
            only_linux,
        ),
        claim(
            "The unikernel's delays, with interrupts, are short: all below 2,000 cycles.",
            short,
        ),
        claim(
            "The unikernel's delays, with interrupts, are regular.",
            regular,
        ),
        claim(
            "Without interrupts there are practically none: at most a handful above 150 cycles in a \
             million (taken as 10).",
            practically_none,
        ),
        claim(
            "Cycles grow linearly with the number of divisions (taken as R² ≥ 0.99 of the median durations).",
            linear,
        ),
        claim(
            "Under Linux, delays above 2,000 cycles cost about the same share of time for CPU work and \
             for memory work (taken as within a factor of 2).",
            |evidence| ratio(evidence, 0.5, 2.0),
        ),
        claim(
            "Under Linux, delays above 2,000 cycles cost about three times the share for memory work \
             (taken as 2 to 4 times; the study says this, too).",
            |evidence| ratio(evidence, 2.0, 4.0),
        ),
    ],
    tables: &[(
        "Figures of the text",
        include_str!("../../../../studies/published/kot-2019.csv"),
    )],
    note: "Cycles are ticks of each machine's own TSC. The published ± is half of the interval at 90 % over single \
           samples; the one measured here is half of that over runs at 95 %.",
    compare,
};

const fn claim(text: &'static str, tell: fn(&Evidence<'_>) -> Finding) -> Claim {
    Claim {
        text,
        experiment: "noise",
        measures: "noise",
        tell: Some(tell),
    }
}

fn only_linux(evidence: &Evidence<'_>) -> Finding {
    let unikernels = [System::Unikernel, System::UnikernelWithoutInterrupts];
    let (linux, unikernel) = match (
        delays(evidence, &[System::Linux], LONG),
        delays(evidence, &unikernels, LONG),
    ) {
        (Ok(linux), Ok(unikernel)) => (linux, unikernel),
        (Err(why), _) | (_, Err(why)) => return cannot(why),
    };
    let figures = format!("under Linux {linux}, under the unikernel {unikernel}");
    match (linux.count, unikernel.count) {
        (0, 0) => not_reproduced(format!("there were none anywhere: {figures}")),
        (_, 0) => reproduced(figures),
        _ => unikernel.delayed(figures),
    }
}

fn short(evidence: &Evidence<'_>) -> Finding {
    let above = |limit| delays(evidence, &[System::Unikernel], limit);
    let (all, long) = match (above(SHORT), above(LONG)) {
        (Ok(all), Ok(long)) => (all, long),
        (Err(why), _) | (_, Err(why)) => return cannot(why),
    };
    let figures = format!("above 150 cycles {all}, above 2,000 cycles {long}");
    match (all.count, long.count) {
        (0, _) => not_reproduced(format!("there were no delays at all: {figures}")),
        (_, 0) => reproduced(figures),
        _ => long.delayed(figures),
    }
}

fn regular(evidence: &Evidence<'_>) -> Finding {
    let all = evidence.on(&[System::Unikernel]);
    let spins = all.iter().filter(|m| m.timed().is_none());
    let (emulated, native): (Vec<&Measured<'_>>, Vec<_>) =
        spins.partition(|m| m.combination.emulated);
    let Some(spin) = native.first() else {
        return cannot(if emulated.is_empty() {
            "the run has no gap on the unikernel with interrupts, which tells when it is delayed"
                .to_owned()
        } else {
            by_emulator(System::Unikernel)
        });
    };
    let CombinedFigures::Gap(gap) = &spin.combination.figures else {
        return cannot("the run has no gap on the unikernel with interrupts");
    };
    match gap.period {
        Some(period) => reproduced(format!(
            "{} of the gaps come every {} ({} of {} runs show it)",
            N.percent(period.figure.share_of_gaps),
            words::both(N, period.figure.period, None),
            period.runs,
            spin.combination.runs
        )),
        None => not_reproduced(format!(
            "no period that chance could not explain is in {} gaps",
            N.count(gap.gaps)
        )),
    }
}

fn practically_none(evidence: &Evidence<'_>) -> Finding {
    let seen = match delays(evidence, &[System::UnikernelWithoutInterrupts], SHORT) {
        Ok(seen) => seen,
        Err(why) => return cannot(why),
    };
    if seen.per_million() <= HANDFUL {
        reproduced(seen.to_string())
    } else {
        seen.delayed(seen.to_string())
    }
}

fn linear(evidence: &Evidence<'_>) -> Finding {
    const ALL: [System; 3] = [
        System::Linux,
        System::Unikernel,
        System::UnikernelWithoutInterrupts,
    ];
    let (mut told, mut fits, mut left_out) = (Vec::new(), true, Vec::new());
    for system in ALL {
        let all = evidence.on(&[system]);
        let mut targets: Vec<&str> = all.iter().map(|m| m.combination.target.as_str()).collect();
        targets.sort_unstable();
        targets.dedup();
        for target in targets {
            let sweep: Vec<&Measured<'_>> = all
                .iter()
                .filter(|m| m.combination.target == target && m.combination.workload == "prime")
                .collect();
            if sweep.iter().any(|m| m.combination.emulated) {
                left_out.push(format!("{target} (executed by an emulator)"));
                continue;
            }
            let points = points(&sweep);
            let Some(line) = (points.len() >= SIZES).then(|| fit(&points)).flatten() else {
                left_out.push(format!("{target} (fewer than {SIZES} sizes of prime)"));
                continue;
            };
            fits &= line.r_squared >= LINEAR;
            told.push(format!(
                "{target}: {} cycles a division, R² = {:.4} over {} sizes",
                N.short(line.slope),
                line.r_squared,
                points.len()
            ));
        }
    }
    let mut why = told.join("; ");
    if !left_out.is_empty() {
        let before = if told.is_empty() { "" } else { "; " };
        why.push_str(&format!("{before}not told of {}", words::list(&left_out)));
    }
    match (told.is_empty(), fits) {
        (true, _) if why.is_empty() => cannot("the run has no prime"),
        (true, _) => cannot(why),
        (false, true) => reproduced(why),
        (false, false) => not_reproduced(why),
    }
}

/// Compares the shares of time in long delays, of copy 100 over prime 22, with a range.
fn ratio(evidence: &Evidence<'_>, low: f64, high: f64) -> Finding {
    let linux = evidence.on(&[System::Linux]);
    let heaviest = |workload, size| {
        let all = linux.iter().filter(|m| m.is(workload, size));
        all.max_by_key(|m| m.weight())
    };
    let (Some(prime), Some(copy)) = (heaviest("prime", 22), heaviest("copy", 100)) else {
        return cannot("the run has not both prime 22 and copy 100 under Linux");
    };
    if prime.combination.emulated || copy.combination.emulated {
        return cannot(by_emulator(System::Linux));
    }
    let share = |measured: &Measured<'_>| {
        let shares = &measured.timed()?.shares;
        let share = shares.iter().find(|share| share.above_cycles == LONG)?;
        share.share
    };
    let (Some(prime), Some(copy)) = (share(prime), share(copy)) else {
        return cannot("a share of time is missing");
    };
    let figures = format!(
        "prime 22 loses {}, copy 100 {}",
        N.percent(prime.figure),
        N.percent(copy.figure)
    );
    let (Some(prime), Some(copy)) = (prime.interval, copy.interval) else {
        return cannot(format!(
            "{figures}; how sure that is takes at least {STUDENT_RUNS} runs"
        ));
    };
    if prime.low <= 0.0 || copy.low <= 0.0 {
        return cannot(format!(
            "{figures}; the runs differ too much to tell their ratio: measure more or longer ones"
        ));
    }
    let (least, most) = (copy.low / prime.high, copy.high / prime.low);
    let figures = format!(
        "{figures}: {} to {} times (by the ends of the intervals at 95 %)",
        N.short(least),
        N.short(most)
    );
    if least >= low && most <= high {
        reproduced(figures)
    } else if most < low || least > high {
        not_reproduced(figures)
    } else {
        cannot(format!("{figures}: the range holds both answers"))
    }
}

/// Is what was seen of delays above a limit.
struct Delays {
    count: u64,
    repetitions: u64,
    is_guest: bool,
}

impl Delays {
    fn per_million(&self) -> f64 {
        self.count as f64 / self.repetitions.max(1) as f64 * 1e6
    }

    /// Answers a claim that there are none, although there are.
    fn delayed(&self, figures: String) -> Finding {
        if self.is_guest {
            return cannot(format!(
                "{figures}; it ran as a guest, where a delay may be that of the machine's own Linux, \
                 while the study's ran on the bare machine"
            ));
        }
        not_reproduced(figures)
    }
}

impl std::fmt::Display for Delays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = N.count(self.repetitions);
        match self.count {
            0 => write!(f, "none in {of} repetitions"),
            count => write!(
                f,
                "{} in {of} repetitions ({} in a million)",
                N.count(count),
                N.short(self.per_million())
            ),
        }
    }
}

/// Counts the delays above a limit that bounds a class, over all timed work on systems of these
/// kinds that a processor executed by itself; says why not if there is none.
fn delays(evidence: &Evidence<'_>, systems: &[System], above: u64) -> Result<Delays, String> {
    let all = evidence.on(systems);
    let timed: Vec<(&Measured<'_>, &CombinedTimed)> = all
        .iter()
        .filter_map(|measured| Some((measured, measured.timed()?)))
        .collect();
    let named = systems[0];
    if timed.is_empty() {
        return Err(format!("the run has no prime or copy on {}", named.words()));
    }
    let mut delays = Delays {
        count: 0,
        repetitions: 0,
        is_guest: false,
    };
    for (measured, timed) in timed.iter().filter(|(m, _)| !m.combination.emulated) {
        let classes = timed.classes.iter().filter(|c| c.above_cycles >= above);
        let counts: Option<Vec<u64>> = classes.map(|class| class.count).collect();
        let counts = counts.ok_or("delays below the recording threshold were not seen")?;
        delays.count += counts.iter().sum::<u64>();
        delays.repetitions += timed.repetitions;
        delays.is_guest |= measured.is_guest;
    }
    if delays.repetitions == 0 {
        return Err(by_emulator(named));
    }
    Ok(delays)
}

fn by_emulator(system: System) -> String {
    format!(
        "{} was executed by an emulator (QEMU's TCG), whose own pauses look like delays; this takes \
         KVM or the bare machine",
        system.words()
    )
}

/// Returns divisions and median cycles of each size of a sweep, from the heaviest of each. A mean
/// would follow the few longest delays, which have nothing to do with the divisions.
fn points(sweep: &[&Measured<'_>]) -> Vec<(f64, f64)> {
    let mut sizes: Vec<u64> = sweep.iter().filter_map(|m| m.combination.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let points = sizes.iter().filter_map(|size| {
        let of_size = sweep.iter().filter(|m| m.combination.size == Some(*size));
        let timed = of_size.max_by_key(|m| m.weight())?.timed()?;
        Some((timed.work as f64, timed.raw.median.figure.cycles))
    });
    points.collect()
}

/// Is a straight line through points.
struct Line {
    slope: f64,
    r_squared: f64,
}

/// Fits a line by least squares; None if the points lie above each other or on a level.
fn fit(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len() as f64;
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|p| of(p.0 - mean_x, p.1 - mean_y)).sum()
    };
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    (xx > 0.0 && yy > 0.0).then(|| Line {
        slope: xy / xx,
        r_squared: xy * xy / (xx * yy),
    })
}

/// Puts the published means and shares beside those of the run.
fn compare(evidence: &Evidence<'_>, tables: &[PublishedTable]) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for table in tables {
        for row in &table.rows {
            let field = |column| table.field(row, column);
            let figure = match field("figure") {
                "mean" => mean as fn(&CombinedTimed) -> String,
                "delays-2000-6000" => class_c,
                _ => continue,
            };
            let (Some(system), Ok(size)) = (
                System::named(field("system")),
                field("limit_or_size").parse::<u64>(),
            ) else {
                continue;
            };
            let workload = field("workload");
            let what = match field("figure") {
                "mean" => "mean duration",
                _ => "repetitions delayed by 2,000 to 6,000 cycles",
            };
            let published = published(&field);
            let what = format!("{what} of {workload} {size}, {}", system.words());
            let all = evidence.on(&[system]);
            let mut targets: Vec<&Measured<'_>> =
                all.iter().filter(|m| m.is(workload, size)).collect();
            targets.sort_by_key(|m| (m.combination.target.clone(), std::cmp::Reverse(m.weight())));
            targets.dedup_by_key(|m| m.combination.target.clone());
            if targets.is_empty() {
                comparisons.push(Comparison {
                    what: what.clone(),
                    published: published.clone(),
                    target: None,
                    here: "not measured in this run".to_owned(),
                });
            }
            for measured in targets {
                let Some(timed) = measured.timed() else {
                    continue;
                };
                let emulated = if measured.combination.emulated {
                    " (emulated)"
                } else {
                    ""
                };
                comparisons.push(Comparison {
                    what: what.clone(),
                    published: published.clone(),
                    target: Some(measured.combination.target.clone()),
                    here: format!("{}{emulated}", figure(timed)),
                });
            }
        }
    }
    comparisons
}

fn published<'a>(field: &dyn Fn(&'static str) -> &'a str) -> String {
    let about = if field("about") == "yes" {
        "about "
    } else {
        ""
    };
    let interval = match field("ci90_half") {
        "" => String::new(),
        half => format!(" ± {half}"),
    };
    format!("{about}{}{interval} {}", field("value"), field("unit"))
}

fn mean(timed: &CombinedTimed) -> String {
    let mean = &timed.raw.mean;
    let figure = mean.interval.map_or_else(
        || N.rounded(mean.figure.cycles),
        |interval| N.plus_minus(interval.estimate, interval.half_width()),
    );
    format!("{figure} cycles")
}

fn class_c(timed: &CombinedTimed) -> String {
    let class = timed.classes.iter().find(|class| class.class == 'C');
    match class.and_then(|class| class.count) {
        Some(count) => N.percent(count as f64 / timed.repetitions.max(1) as f64),
        None => "not seen".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_fitted_and_a_curve_is_not_taken_for_one() {
        let line = fit(&[(1.0, 5.0), (2.0, 7.0), (3.0, 9.0), (4.0, 11.0)]).unwrap();
        assert!((line.slope - 2.0).abs() < 1e-12 && line.r_squared > 0.999_999);
        let cube = |x: f64| (x, x.powi(3));
        let curve: Vec<(f64, f64)> = (1..=10).map(|x| cube(f64::from(x))).collect();
        assert!(fit(&curve).unwrap().r_squared < LINEAR);
        assert!(fit(&[(1.0, 1.0), (1.0, 2.0)]).is_none());
    }
}
