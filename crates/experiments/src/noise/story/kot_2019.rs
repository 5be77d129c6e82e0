//! kot-2019: OS noise under a unikernel, with interrupts and without, against Linux on bare metal.
//!
//! The study's unikernel ran on the bare machine. Here it may run in a guest, above another
//! Linux: then a long delay may be that Linux's, and its absence is told, but not its presence.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::claims::{
    Answered, Claim, Comparison, Drawn, Inconclusive, Published, PublishedTable, answer,
};
use tare_figures::format::Numbers;
use tare_figures::mark::Mark;
use tare_figures::rows::{Figure, RunFigure};
use tare_pages::html::parts;
use tare_results::target::TargetSpec;
use tare_stats::STUDENT_RUNS;

use super::NAME;
use super::verdict::Clock;

const N: Numbers = Numbers::PLAIN;

/// The classes of delays above 2,000 cycles, and all of them, which begin at 150.
const LONG: &[&str] = &["C", "D"];
const ALL: &[&str] = &["A", "B", "C", "D"];
/// How many delays in a million repetitions are "a handful".
const HANDFUL: f64 = 10.0;
/// How well a straight line must fit: the share of the variance that it explains.
const LINEAR: f64 = 0.99;
/// The least number of sizes that a line is fitted to.
const SIZES: usize = 4;

/// The study.
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
            |run| ratio(run, 0.5, 2.0),
        ),
        claim(
            "Under Linux, delays above 2,000 cycles cost about three times the share for memory work \
             (taken as 2 to 4 times; the study says this, too).",
            |run| ratio(run, 2.0, 4.0),
        ),
    ],
    tables: &[(
        "Figures of the text",
        include_str!("../../../../../studies/published/kot-2019.csv"),
    )],
    note: "Cycles are ticks of each machine's own TSC. The published ± is half of the interval at 90 % over single \
           samples; the one measured here is half of that over runs at 95 %.",
    compare,
};

const fn claim(text: &'static str, tell: fn(&Run) -> Answered) -> Claim {
    Claim {
        text,
        experiment: "noise",
        measures: "noise",
        tell: Some(tell),
    }
}

/// The systems by their names in the study's table.
const LINUX: &str = "linux";
const UNIKERNEL: &str = "unikernel";
const WITHOUT: &str = "unikernel-irq-off";

/// Names a system in a sentence.
fn words_of(system: &str) -> &'static str {
    match system {
        LINUX => "Linux",
        UNIKERNEL => "the unikernel with interrupts",
        _ => "the unikernel without interrupts",
    }
}

fn system(case: &Case<'_>) -> Option<&'static str> {
    let without = case.plan.target.option("irq") == Some("off");
    match case.program()?.agent.environment.as_str() {
        "linux" => Some(LINUX),
        "unikernel" if without => Some(WITHOUT),
        "unikernel" => Some(UNIKERNEL),
        _ => None,
    }
}

/// Returns what ran undisturbed on systems of these kinds, the heaviest first of what is of one kind: timed as published,
/// then by the number of repetitions.
fn on<'a>(run: &'a Run, systems: &[&str]) -> Vec<Case<'a>> {
    let mut cases = Case::all(run, NAME);
    cases.retain(|case| {
        case.plan.load == "idle" && system(case).is_some_and(|kind| systems.contains(&kind))
    });
    cases.sort_by_key(|case| {
        let heads = case.records().filter_map(|record| record.sets.first());
        let repetitions: u64 = heads.map(|head| head.n).sum();
        let is_published = case.plan.labels.get("timing") == Some("published");
        Reverse((is_published, repetitions))
    });
    cases
}

/// Returns whether a case is of a workload of this size.
fn is(case: &Case<'_>, workload: &str, size: u64) -> bool {
    case.plan.work.id == workload && case.plan.labels.number("size") == Some(size)
}

/// What was seen of delays of some classes.
struct Delays {
    count: f64,
    repetitions: f64,
    is_guest: bool,
}

impl Delays {
    fn per_million(&self) -> f64 {
        self.count / self.repetitions * 1e6
    }

    /// Answers a claim that there are none, although there are.
    fn delayed(&self, figures: String) -> Answered {
        match self.is_guest {
            true => Err(format!(
                "{figures}; it ran as a guest, where a delay may be that of the machine's own Linux, while the study's ran on \
                 the bare machine"
            )
            .into()),
            false => answer(false, figures),
        }
    }
}

impl fmt::Display for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = N.count(self.repetitions as u64);
        if self.count == 0.0 {
            return write!(f, "none in {of} repetitions");
        }
        let (count, rate) = (N.count(self.count as u64), N.short(self.per_million()));
        write!(f, "{count} in {of} repetitions ({rate} in a million)")
    }
}

/// Counts the delays of some classes, over all timed work on systems of these kinds that a processor executed by itself;
/// says why not if there is none.
fn delays(run: &Run, systems: &[&str], classes: &[&str]) -> Result<Delays, Inconclusive> {
    let mut cases = on(run, systems);
    cases.retain(|case| case.plan.work.id != "gap");
    if cases.is_empty() {
        let system = words_of(systems[0]);
        return Err(format!("the run has no prime or copy on {system}").into());
    }
    cases.retain(|case| !case.is_emulated());
    if cases.is_empty() {
        return Err(by_emulator(systems[0]));
    }
    let mut delays = Delays {
        count: 0.0,
        repetitions: 0.0,
        is_guest: false,
    };
    for case in &cases {
        let mut repetitions = 0.0;
        for class in classes {
            let row = case.row("delays", Figure::Share, &[("class", class)]);
            let runs = row.into_iter().flat_map(|row| &row.each);
            let sums = runs.filter_map(|run| match run.figure {
                RunFigure::Value { sums, .. } => sums,
                RunFigure::TooFew { .. } | RunFigure::Unlisted => None,
            });
            let (count, all) = sums.fold((0.0, 0.0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
            delays.count += count;
            repetitions = all;
        }
        delays.repetitions += repetitions;
        let program = case.program();
        delays.is_guest |= program.is_some_and(|program| program.agent.accelerator.is_some());
    }
    Ok(delays)
}

fn by_emulator(system: &str) -> Inconclusive {
    Inconclusive::emulated(format!(
        "{} was executed by an emulator (QEMU's TCG), whose own pauses look like delays; this takes KVM or the bare machine",
        words_of(system)
    ))
}

fn only_linux(run: &Run) -> Answered {
    let linux = delays(run, &[LINUX], LONG)?;
    let unikernel = delays(run, &[UNIKERNEL, WITHOUT], LONG)?;
    let figures = format!("under Linux {linux}, under the unikernel {unikernel}");
    match (linux.count > 0.0, unikernel.count > 0.0) {
        (false, false) => answer(false, format!("there were none anywhere: {figures}")),
        (true, false) => answer(true, figures),
        (_, true) => unikernel.delayed(figures),
    }
}

fn short(run: &Run) -> Answered {
    let all = delays(run, &[UNIKERNEL], ALL)?;
    let long = delays(run, &[UNIKERNEL], LONG)?;
    let figures = format!("above 150 cycles {all}, above 2,000 cycles {long}");
    match (all.count > 0.0, long.count > 0.0) {
        (false, _) => answer(false, format!("there were no delays at all: {figures}")),
        (true, false) => answer(true, figures),
        (true, true) => long.delayed(figures),
    }
}

fn regular(run: &Run) -> Answered {
    let mut spins = on(run, &[UNIKERNEL]);
    spins.retain(|case| case.plan.work.id == "gap");
    let spin = spins.iter().find(|case| !case.is_emulated());
    let spin = spin.ok_or_else(|| match spins.is_empty() {
        true => {
            "the run has no gap on the unikernel with interrupts, which tells when it is delayed"
                .into()
        }
        false => by_emulator(UNIKERNEL),
    })?;
    match Clock::of(spin) {
        Some(clock) => answer(
            true,
            format!(
                "{} of the gaps come every {} ({} of {} runs show it)",
                N.percent(clock.share),
                clock.every,
                clock.runs,
                spin.cells.len()
            ),
        ),
        None => answer(
            false,
            "no period that chance could not explain is in the gaps",
        ),
    }
}

fn practically_none(run: &Run) -> Answered {
    let seen = delays(run, &[WITHOUT], ALL)?;
    let figures = seen.to_string();
    match seen.per_million() <= HANDFUL {
        true => answer(true, figures),
        false => seen.delayed(figures),
    }
}

fn linear(run: &Run) -> Answered {
    let mut primes = on(run, &[LINUX, UNIKERNEL, WITHOUT]);
    primes.retain(|case| case.plan.work.id == "prime");
    let mut targets: Vec<&TargetSpec> = primes.iter().map(|case| &case.plan.target).collect();
    targets.sort_by_key(|target| (target.group, &target.text));
    targets.dedup();
    let (mut told, mut fits) = (Vec::new(), Vec::new());
    for target in targets {
        let sweep = || primes.iter().filter(|case| case.plan.target == *target);
        let points = points(sweep());
        let line = fit(&points).filter(|_| points.len() >= SIZES);
        told.push(match line {
            _ if sweep().any(Case::is_emulated) => {
                format!("not told of {target} (executed by an emulator)")
            }
            None => format!("not told of {target} (fewer than {SIZES} sizes of prime)"),
            Some(Line { slope, r_squared }) => {
                fits.push(r_squared >= LINEAR);
                let (slope, sizes) = (N.short(slope), points.len());
                format!(
                    "{target}: {slope} cycles a division, R² = {r_squared:.4} over {sizes} sizes"
                )
            }
        });
    }
    let why = told.join("; ");
    match (fits.is_empty(), fits.contains(&false)) {
        (true, _) if why.is_empty() => Err("the run has no prime".into()),
        (true, _) if primes.iter().any(Case::is_emulated) => Err(Inconclusive::emulated(why)),
        (true, _) => Err(why.into()),
        (false, false) => answer(true, why),
        (false, true) => answer(false, why),
    }
}

/// Compares the shares of time in long delays, of copy 100 over prime 22, with a range.
fn ratio(run: &Run, low: f64, high: f64) -> Answered {
    let linux = on(run, &[LINUX]);
    let of = |workload: &str, size| linux.iter().find(|case| is(case, workload, size));
    let both = of("prime", 22).zip(of("copy", 100));
    let (prime, copy) = both.ok_or("the run has not both prime 22 and copy 100 under Linux")?;
    if prime.is_emulated() || copy.is_emulated() {
        return Err(by_emulator(LINUX));
    }
    let share = |case: &Case<'_>| {
        let share = case.over("delayed", Figure::Share, &[("above", "2000cycles")]);
        share.copied().ok_or("a share of time is missing")
    };
    let (prime, copy) = (share(prime)?, share(copy)?);
    let (one, other) = (N.percent(prime.estimate), N.percent(copy.estimate));
    let figures = format!("prime 22 loses {one}, copy 100 {other}");
    let (Ok(prime), Ok(copy)) = (prime.interval, copy.interval) else {
        return Err(format!("{figures}; an interval takes at least {STUDENT_RUNS} runs").into());
    };
    if prime.low <= 0.0 || copy.low <= 0.0 {
        return Err(format!(
            "{figures}; the runs differ too much to tell their ratio: measure more or longer ones"
        )
        .into());
    }
    let (least, most) = (copy.low / prime.high, copy.high / prime.low);
    let (from, to) = (N.short(least), N.short(most));
    let figures = format!("{figures}: {from} to {to} times (by the ends of the intervals at 95 %)");
    match (least >= low && most <= high, most < low || least > high) {
        (true, _) => answer(true, figures),
        (_, true) => answer(false, figures),
        _ => Err(format!("{figures}: the range holds both answers").into()),
    }
}

/// Returns divisions and median cycles of each size of a sweep, from the heaviest of each. A mean would follow the few
/// longest delays, which have nothing to do with the divisions.
fn points<'a>(sweep: impl Iterator<Item = &'a Case<'a>>) -> Vec<(f64, f64)> {
    let mut points: BTreeMap<Option<u64>, (f64, f64)> = BTreeMap::new();
    for case in sweep {
        let point = || {
            let work = case.over("work", Figure::Value, &[])?;
            let median = case.row("duration", Figure::MEDIAN, &[])?;
            let typical = median.over.as_ref().ok()?.estimate;
            Some((work.estimate, median.time(typical).cycles))
        };
        if let Some(point) = point() {
            points
                .entry(case.plan.labels.number("size"))
                .or_insert(point);
        }
    }
    points.into_values().collect()
}

/// A straight line through points.
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
fn compare(run: &Run, tables: &[PublishedTable]) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    let rows = tables
        .iter()
        .flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    for (table, row) in rows {
        let field = |column| table.field(row, column);
        let (what, figure, mark): (_, fn(&Case<'_>) -> Option<String>, _) = match field("figure") {
            "mean" => ("mean duration", mean, MEAN),
            "delays-2000-6000" => (
                "repetitions delayed by 2,000 to 6,000 cycles",
                class_c,
                CLASS_C,
            ),
            _ => continue,
        };
        let (system, workload) = (field("system"), field("workload"));
        let Ok(size) = field("limit_or_size").parse::<u64>() else {
            continue;
        };
        let comparison = |target, here, drawn: Option<Drawn>| Comparison {
            what: format!("{what} of {workload} {size}, {}", words_of(system)),
            published: published(&field),
            target,
            here,
            drawn: drawn.into_iter().collect(),
        };
        let drawn = |case: &Case<'_>| {
            let (picture, across, mark) = mark;
            let value = field("value").parse().ok()?;
            Some(Drawn {
                picture,
                across,
                group: String::new(),
                name: format!("{workload} {size}, {}", words_of(system)),
                published: (value, published(&field)),
                here: mark(case)?,
            })
        };
        let mut cases = on(run, &[system]);
        cases.retain(|case| is(case, workload, size));
        // Of several of one target the heaviest stays.
        cases.sort_by_key(|case| &case.plan.target.text);
        cases.dedup_by_key(|case| &case.plan.target);
        if cases.is_empty() {
            comparisons.push(comparison(
                None,
                "not measured in this run".to_owned(),
                None,
            ));
        }
        comparisons.extend(cases.iter().map(|case| {
            let emulated = if case.is_emulated() {
                " (emulated)"
            } else {
                ""
            };
            let here = figure(case).unwrap_or_else(|| "not seen".to_owned());
            let target = Some(case.plan.target.text.clone());
            comparison(target, here + emulated, drawn(case))
        }));
    }
    comparisons
}

/// A picture of published figures: its title, its axis, and the mark of a case in it.
type Picture = (&'static str, &'static str, fn(&Case<'_>) -> Option<Mark>);

const MEAN: Picture = ("Mean duration", "mean duration, cycles", |case| {
    let row = case.row("duration", Figure::Mean, &[])?;
    let cycles = |ns: f64| row.time(ns).cycles;
    let write = |ns| parts::N.with_unit(&parts::N.rounded(cycles(ns)), "cycles");
    Mark::of(row, 0, cycles, write)
});

const CLASS_C: Picture = (
    "Repetitions delayed by 2,000 to 6,000 cycles",
    "% of the repetitions",
    |case| {
        let row = case.row("delays", Figure::Share, &[("class", "C")])?;
        Mark::of(
            row,
            0,
            |share| share * 100.0,
            |share| parts::N.percent(share),
        )
    },
);

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

fn mean(case: &Case<'_>) -> Option<String> {
    let row = case.row("duration", Figure::Mean, &[])?;
    let over = row.over.as_ref().ok()?;
    let mean = row.time(over.estimate).cycles;
    let figure = over.interval.map_or_else(
        |_| N.rounded(mean),
        |interval| N.plus_minus(mean, row.time(interval.high - interval.low).cycles / 2.0),
    );
    Some(format!("{figure} cycles"))
}

fn class_c(case: &Case<'_>) -> Option<String> {
    let share = case.over("delays", Figure::Share, &[("class", "C")])?;
    Some(N.percent(share.estimate))
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
