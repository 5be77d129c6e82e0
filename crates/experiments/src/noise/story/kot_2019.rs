//! kot-2019: OS noise under a unikernel, with interrupts and without, against Linux on bare metal.
//!
//! The study's unikernel ran on the bare machine. Here it may run as a guest above another Linux:
//! then that no delay was seen is an answer, but a long delay is none, since it may be that
//! Linux's.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::claims::{
    Answered, Claim, Comparison, Inconclusive, Published, answer, ratio as ratio_of, within,
};
use tare_figures::format::Numbers;
use tare_figures::group::grouped;
use tare_figures::rows::{Figure, Row};
use tare_pages::kit::claim_table::{
    Compared, Drawing, NOT_MEASURED, PublishedRow, Quantity, Subject, compare, rows,
};
use tare_results::model::CellPlan;
use tare_stats::OverRuns;

use super::super::only_reads_clock;
use super::NAME;
use super::split::added;

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
        Claim::new(
            "Delays above 2,000 cycles occur only under Linux.",
            only_linux,
        ),
        Claim::new(
            "The unikernel's delays, with interrupts, are short: all below 2,000 cycles.",
            short,
        ),
        Claim::new(
            "The unikernel's delays, with interrupts, are regular.",
            regular,
        ),
        Claim::new(
            "Without interrupts there are practically none: at most a handful above 150 cycles in a \
             million (taken as 10).",
            practically_none,
        ),
        Claim::new(
            "Cycles grow linearly with the number of divisions (taken as R² ≥ 0.99 of the median durations).",
            linear,
        ),
        Claim::new(
            "Under Linux, delays above 2,000 cycles cost about the same share of time for CPU work and \
             for memory work (taken as within a factor of 2).",
            |run| ratio(run, 0.5, 2.0),
        ),
        Claim::new(
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
    compare: |run, tables| {
        let derived = rows(tables).filter_map(|row| derived(run, row));
        let mut all = compare(tables, |row| compared(run, row));
        all.extend(derived);
        all
    },
};

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

/// Returns the cases without a load on systems of these kinds whose work is wanted, the heaviest
/// first: timed as published, then by the number of repetitions.
fn on<'a>(run: &'a Run, systems: &[&str], is_wanted: impl Fn(&CellPlan) -> bool) -> Vec<Case<'a>> {
    let mut cases = Case::all(run, NAME);
    cases.retain(|case| {
        let is_of = |kind| systems.contains(&kind);
        case.plan.load.is_idle() && is_wanted(case.plan) && system(case).is_some_and(is_of)
    });
    // The study's Linux is that of the machine: guests stand for it where nothing else does.
    let is_machines = |case: &Case<'_>| case.plan.target.kernel().is_host();
    if cases.iter().any(is_machines) {
        cases.retain(|case| is_machines(case) || system(case) != Some(LINUX));
    }
    cases.sort_by_key(|case| {
        let heads = case.records().filter_map(|record| record.sets.first());
        let is_published = case.plan.labels.get("timing") == Some("published");
        Reverse((is_published, heads.map(|head| head.n).sum::<u64>()))
    });
    cases
}

/// Returns whether a plan is of a workload of this size.
fn is(plan: &CellPlan, workload: &str, size: u64) -> bool {
    plan.work.id == workload && plan.labels.number("size") == Some(size)
}

/// Delays of some classes.
#[derive(Default)]
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

/// Counts the delays of some classes, over all timed work on systems of these kinds that a
/// processor executed; the reason why not if there is none.
fn delays(run: &Run, systems: &[&str], classes: &[&str]) -> Result<Delays, Inconclusive> {
    let mut cases = on(run, systems, |plan| !only_reads_clock(&plan.work.id));
    if cases.is_empty() {
        let system = words_of(systems[0]);
        return Err(format!("the run has no prime or copy on {system}").into());
    }
    cases.retain(|case| !case.is_emulated());
    if cases.is_empty() {
        return Err(by_emulator(systems[0]));
    }
    let mut delays = Delays::default();
    for case in &cases {
        let mut repetitions = 0.0_f64;
        for class in classes {
            let row = case.row("delays", Figure::Share, &[("class", class)]);
            let (count, all) = row.map_or((0.0, 0.0), Row::sums);
            delays.count += count;
            repetitions = repetitions.max(all);
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
    let spins = on(run, &[UNIKERNEL], |plan| only_reads_clock(&plan.work.id));
    let spin = spins.iter().find(|case| !case.is_emulated());
    let spin = spin.ok_or_else(|| match spins.is_empty() {
        true => {
            "the run lacks gap on the unikernel with interrupts, which shows when it is delayed"
                .into()
        }
        false => by_emulator(UNIKERNEL),
    })?;
    let Some(clock) = Clock::of(spin) else {
        return answer(
            false,
            "no period that chance could not explain is in the gaps",
        );
    };
    let (share, every) = (N.percent(clock.share), &clock.every);
    let (runs, all) = (clock.runs, spin.cells.len());
    answer(
        true,
        format!("{share} of the gaps come every {every} ({runs} of {all} runs show it)"),
    )
}

fn practically_none(run: &Run) -> Answered {
    let seen = delays(run, &[WITHOUT], ALL)?;
    match seen.per_million() <= HANDFUL {
        true => answer(true, seen.to_string()),
        false => seen.delayed(seen.to_string()),
    }
}

fn linear(run: &Run) -> Answered {
    let primes = on(run, &[LINUX, UNIKERNEL, WITHOUT], |plan| {
        plan.work.id == "prime"
    });
    let target = |case: &Case<'_>| (case.plan.target.group, case.plan.target.text.clone());
    let mut sweeps = grouped(primes.iter().map(|case| (target(case), case)));
    sweeps.sort_by(|a, b| a.0.cmp(&b.0));
    let mut fits = Vec::new();
    let told = sweeps.iter().map(|((_, target), sweep)| {
        let points = points(sweep);
        match fit(&points).filter(|_| points.len() >= SIZES) {
            _ if sweep.iter().any(|case| case.is_emulated()) => {
                format!("inconclusive on {target} (executed by an emulator)")
            }
            None => format!("inconclusive on {target} (fewer than {SIZES} sizes of prime)"),
            Some((slope, r_squared)) => {
                fits.push(r_squared >= LINEAR);
                let (slope, sizes) = (N.short(slope), points.len());
                format!(
                    "{target}: {slope} cycles a division, R² = {r_squared:.4} over {sizes} sizes"
                )
            }
        }
    });
    let why = told.collect::<Vec<_>>().join("; ");
    match fits.is_empty() {
        true if why.is_empty() => Err("the run has no prime".into()),
        true if primes.iter().any(Case::is_emulated) => Err(Inconclusive::emulated(why)),
        true => Err(why.into()),
        false => answer(!fits.contains(&false), why),
    }
}

/// Returns the shares of time in long delays of prime 22 and copy 100 under Linux.
fn shares(run: &Run) -> Result<[OverRuns; 2], Inconclusive> {
    let of = |workload, size| on(run, &[LINUX], |plan| is(plan, workload, size)).into_iter();
    let both = of("prime", 22).zip(of("copy", 100)).next();
    let (prime, copy) = both.ok_or("the run has not both prime 22 and copy 100 under Linux")?;
    if prime.is_emulated() || copy.is_emulated() {
        return Err(by_emulator(LINUX));
    }
    let share = |case: &Case<'_>| {
        let share = case.over("delayed", Figure::Share, &[("above", "2000cycles")]);
        share.copied().ok_or("a share of time is missing")
    };
    Ok([share(&prime)?, share(&copy)?])
}

/// Compares the shares of time in long delays, of copy 100 over prime 22, with a range.
fn ratio(run: &Run, low: f64, high: f64) -> Answered {
    let [prime, copy] = shares(run)?;
    let (one, other) = (N.percent(prime.estimate), N.percent(copy.estimate));
    let figures = format!("prime 22 loses {one}, copy 100 {other}");
    let ends = ratio_of(&copy, &prime).map_err(|why| format!("{figures}; {why}"))?;
    let [from, to] = ends.map(|times| N.short(times));
    let figures = format!("{figures}: {from} to {to} times (by the ends of the intervals at 95 %)");
    within(ends, [low, high], figures)
}

/// Returns divisions and median cycles of each size of a sweep, from the heaviest of each. A mean
/// would follow the few longest delays, which have nothing to do with the divisions.
fn points(sweep: &[&Case<'_>]) -> Vec<(f64, f64)> {
    let points = sweep.iter().filter_map(|case| {
        let median = case.row("duration", Figure::MEDIAN, &[])?;
        let cycles = median.time(median.estimate()?).cycles;
        let divisions = case.value("work", Figure::Value)?;
        Some((case.plan.labels.number("size"), (divisions, cycles)))
    });
    let sizes: BTreeMap<_, _> = grouped(points).into_iter().collect();
    sizes.into_values().map(|heaviest| heaviest[0]).collect()
}

/// Fits a straight line through points by least squares: its slope, and the share of the variance
/// that it explains. `None` if the points lie above each other or on a level.
fn fit(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|p| of(p.0 - mean_x, p.1 - mean_y)).sum()
    };
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    (xx > 0.0 && yy > 0.0).then(|| (xy / xx, xy * xy / (xx * yy)))
}

/// The published mean, in cycles.
const MEAN: Quantity = Quantity {
    published,
    write: mean,
    drawn: Some(Drawing {
        picture: "Mean duration",
        across: "mean duration, cycles",
        unit: "",
        published: |row| row.number("value"),
        here: |row, ns| row.time(ns).cycles,
    }),
};

/// The published share of repetitions with a delay of class C, in %.
const CLASS_C: Quantity = Quantity {
    published,
    write: |_, share| N.percent(share),
    drawn: Some(Drawing {
        picture: "Repetitions delayed by 2,000 to 6,000 cycles",
        across: "% of the repetitions",
        unit: "",
        published: |row| row.number("value"),
        here: |_, share| share * 100.0,
    }),
};

/// Returns what a published row is compared with: the heaviest case of each target of its system.
fn compared<'a>(run: &'a Run, row: PublishedRow<'_>) -> Option<Compared<'a>> {
    let (what, quantities, (measure, figure, labels)): (_, &[_], (_, _, &[_])) =
        match row.field("figure") {
            "mean" => ("mean duration", &[MEAN], ("duration", Figure::Mean, &[])),
            "delays-2000-6000" => (
                "repetitions delayed by 2,000 to 6,000 cycles",
                &[CLASS_C],
                ("delays", Figure::Share, &[("class", "C")]),
            ),
            _ => return None,
        };
    let (system, workload) = (row.field("system"), row.field("workload"));
    let size = row.field("limit_or_size").parse().ok()?;
    let name = format!("{workload} {size}, {}", words_of(system));
    let mut cases = on(run, &[system], |plan| is(plan, workload, size));
    cases.sort_by_key(|case| &case.plan.target.text);
    cases.dedup_by_key(|case| &case.plan.target);
    let subject = |case: &Case<'a>| Subject {
        target: case.plan.target.text.clone(),
        group: String::new(),
        name: name.clone(),
        marks: String::from(if case.is_emulated() { "emulated" } else { "" }),
        rows: vec![case.row(measure, figure, labels)],
    };
    Some(Compared {
        what: format!("{what} of {name}"),
        quantities,
        subjects: cases.iter().map(subject).collect(),
    })
}

/// Compares a published figure that is made of two of the run: how much longer a mean is with
/// interrupts, or the ratio of two shares of time.
fn derived(run: &Run, row: PublishedRow<'_>) -> Option<Comparison> {
    let (workload, size) = (row.field("workload"), row.field("limit_or_size"));
    let (what, found) = match row.field("figure") {
        "added-by-interrupts" => {
            let size = size.parse().ok()?;
            let heaviest = |system| {
                let cases = on(run, &[system], |plan| is(plan, workload, size));
                cases.into_iter().next()
            };
            let both = heaviest(UNIKERNEL).zip(heaviest(WITHOUT));
            let found = both.and_then(|(with, without)| {
                let (ns, interval) = added(&with, &without)?;
                let interval = interval.map(|both| [both.low, both.high]);
                let row = with.row("duration", Figure::Mean, &[])?;
                let added = in_cycles(row, ns, interval);
                let is_emulated = with.is_emulated() || without.is_emulated();
                let mark = if is_emulated { " (emulated)" } else { "" };
                Some((with.plan.target.text.clone(), format!("{added}{mark}")))
            });
            (
                format!("mean added by interrupts to {workload} {size}, the unikernel"),
                found,
            )
        }
        "large-delays-copy-to-prime" => {
            let found = shares(run).ok().filter(|[prime, _]| prime.estimate > 0.0);
            let case = on(run, &[LINUX], |plan| is(plan, "prime", 22))
                .into_iter()
                .next();
            let found = case.zip(found).map(|(case, [prime, copy])| {
                let ratio = N.rounded(copy.estimate / prime.estimate);
                (case.plan.target.text.clone(), format!("{ratio} ratio"))
            });
            let what = "time in delays above 2,000 cycles, copy 100 over prime 22, Linux";
            (what.to_owned(), found)
        }
        _ => return None,
    };
    let (target, here) = found.unzip();
    Some(Comparison {
        what,
        published: published(row),
        target,
        here: here.unwrap_or_else(|| NOT_MEASURED.to_owned()),
        drawn: Vec::new(),
    })
}

/// Writes a published figure: `about 1100 cycles`, `906.263 ± 0.006 cycles`.
fn published(row: PublishedRow<'_>) -> String {
    let about = if row.field("about") == "yes" {
        "about "
    } else {
        ""
    };
    let interval = match row.field("ci90_half") {
        "" => String::new(),
        half => format!(" ± {half}"),
    };
    let (value, unit) = (row.field("value"), row.field("unit"));
    format!("{about}{value}{interval} {unit}")
}

/// Writes a mean in cycles; that over all runs with its interval.
fn mean(row: &Row, ns: f64) -> String {
    let over = row.over.as_ref().ok().filter(|over| over.estimate == ns);
    let interval = over.and_then(|over| over.interval.as_ref().ok());
    in_cycles(row, ns, interval.map(|both| [both.low, both.high]))
}

/// Writes a time of a row in cycles, with the ends of its interval.
fn in_cycles(row: &Row, ns: f64, interval: Option<[f64; 2]>) -> String {
    let cycles = |ns: f64| row.time(ns).cycles;
    let Some([low, high]) = interval else {
        return format!("{} cycles", N.rounded(cycles(ns)));
    };
    let [mean, low, high] = [ns, low, high].map(|ns| N.within(cycles(ns), cycles(high - low)));
    format!("{mean} ({low} to {high}) cycles")
}

/// A clock among the gaps that at least half of the runs show, and no run another one.
struct Clock {
    /// Time from tick to tick, with its unit.
    every: String,
    /// Share of the gaps looked at that come at its ticks, of the runs that show it.
    share: f64,
    /// How many runs show it.
    runs: usize,
}

impl Clock {
    /// Takes the clock of a case that only reads the clock.
    fn of(case: &Case<'_>) -> Option<Self> {
        let row = case.row("period", Figure::MEDIAN, &[])?;
        let over = row.over.as_ref().ok()?;
        let is_same = |value: f64| (value / over.estimate - 1.0).abs() <= 0.01;
        let mut found = row.each.iter().filter_map(|run| run.figure.value());
        if row.each.len() * 2 < case.cells.len() || !found.all(is_same) {
            return None;
        }
        let share = case.over("periodic", Figure::Share, &[])?;
        Some(Self {
            every: row.in_time(N, over.estimate),
            share: share.estimate,
            runs: row.each.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_fitted_and_a_curve_is_not_taken_for_one() {
        let line = fit(&[(1.0, 5.0), (2.0, 7.0), (3.0, 9.0), (4.0, 11.0)]).unwrap();
        assert!((line.0 - 2.0).abs() < 1e-12 && line.1 > 0.999_999);
        let cube = |x: f64| (x, x.powi(3));
        let curve: Vec<(f64, f64)> = (1..=10).map(|x| cube(f64::from(x))).collect();
        assert!(fit(&curve).unwrap().1 < LINEAR);
        assert!(fit(&[(1.0, 1.0), (1.0, 2.0)]).is_none());
    }
}
