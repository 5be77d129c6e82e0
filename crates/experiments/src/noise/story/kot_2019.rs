//! kot-2019: OS noise under a unikernel, with interrupts and without, against Linux on bare metal.
//!
//! The study's unikernel ran on the bare machine. Here it may run in a guest, above another
//! Linux: then a long delay may be that Linux's, and its absence is told, but not its presence.

use std::cmp::Reverse;

use tare_report::analysis::Run;
use tare_report::cases::Case;
use tare_report::claims::{
    Claim, Comparison, Finding, Published, PublishedTable, cannot, not_reproduced, reproduced,
};
use tare_report::format::Numbers;
use tare_report::rows::Figure;
use tare_report::words;
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

/// A kind of system, as the study compares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum System {
    Linux,
    Unikernel,
    UnikernelWithoutInterrupts,
}

impl System {
    /// Names it in a sentence.
    fn words(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Unikernel => "the unikernel with interrupts",
            Self::UnikernelWithoutInterrupts => "the unikernel without interrupts",
        }
    }

    /// Finds the kind by its name in the study's table.
    fn named(name: &str) -> Option<Self> {
        match name {
            "linux" => Some(Self::Linux),
            "unikernel" => Some(Self::Unikernel),
            "unikernel-irq-off" => Some(Self::UnikernelWithoutInterrupts),
            _ => None,
        }
    }

    fn of(case: &Case<'_>) -> Option<Self> {
        let without = case.plan.target.option("irq") == Some("off");
        match case.program()?.agent.environment.as_str() {
            "linux" => Some(Self::Linux),
            "unikernel" if without => Some(Self::UnikernelWithoutInterrupts),
            "unikernel" => Some(Self::Unikernel),
            _ => None,
        }
    }
}

/// Returns what ran undisturbed on systems of these kinds.
fn on<'a>(run: &'a Run, systems: &[System]) -> Vec<Case<'a>> {
    let mut cases = Case::all(run, NAME);
    cases.retain(|case| {
        case.plan.load == "idle" && System::of(case).is_some_and(|kind| systems.contains(&kind))
    });
    cases
}

fn is_gap(case: &Case<'_>) -> bool {
    case.plan.workload == "gap"
}

/// Returns how much stands behind the figures of a case, to choose between several of one kind: timed as published first,
/// then by the number of repetitions.
fn weight(case: &Case<'_>) -> (bool, u64) {
    (case.plan.timing == "published", repetitions(case))
}

fn repetitions(case: &Case<'_>) -> u64 {
    let heads = case.records().filter_map(|record| record.sets.first());
    heads.map(|head| head.n).sum()
}

/// Adds up a number of all runs; `None` if a run does not have it.
fn total(case: &Case<'_>, measure: &str, labels: &[(&str, &str)]) -> Option<u64> {
    let row = case.row(measure, Figure::Total, labels)?;
    let each = row.each.iter().map(|run| run.carried.value());
    let all: Vec<f64> = each.collect::<Option<_>>()?;
    (all.len() == case.cells.len()).then(|| all.iter().sum::<f64>() as u64)
}

const fn claim(text: &'static str, tell: fn(&Run) -> Finding) -> Claim {
    Claim {
        text,
        experiment: "noise",
        measures: "noise",
        tell: Some(tell),
    }
}

fn only_linux(run: &Run) -> Finding {
    let unikernels = [System::Unikernel, System::UnikernelWithoutInterrupts];
    let (linux, unikernel) = match (
        delays(run, &[System::Linux], LONG),
        delays(run, &unikernels, LONG),
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

fn short(run: &Run) -> Finding {
    let of = |classes| delays(run, &[System::Unikernel], classes);
    let (all, long) = match (of(ALL), of(LONG)) {
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

fn regular(run: &Run) -> Finding {
    let all = on(run, &[System::Unikernel]);
    let (emulated, native): (Vec<&Case<'_>>, Vec<_>) = all
        .iter()
        .filter(|case| is_gap(case))
        .partition(|case| case.is_emulated());
    let Some(spin) = native.first() else {
        return cannot(if emulated.is_empty() {
            "the run has no gap on the unikernel with interrupts, which tells when it is delayed"
                .to_owned()
        } else {
            by_emulator(System::Unikernel)
        });
    };
    match Clock::of(spin) {
        Some(clock) => reproduced(format!(
            "{} of the gaps come every {} ({} of {} runs show it)",
            N.percent(clock.share),
            clock.every,
            clock.runs,
            spin.cells.len()
        )),
        None => not_reproduced(format!(
            "no period that chance could not explain is in {} gaps",
            N.count(total(spin, "gaps", &[]).unwrap_or_default())
        )),
    }
}

fn practically_none(run: &Run) -> Finding {
    let seen = match delays(run, &[System::UnikernelWithoutInterrupts], ALL) {
        Ok(seen) => seen,
        Err(why) => return cannot(why),
    };
    if seen.per_million() <= HANDFUL {
        reproduced(seen.to_string())
    } else {
        seen.delayed(seen.to_string())
    }
}

fn linear(run: &Run) -> Finding {
    let systems = [
        System::Linux,
        System::Unikernel,
        System::UnikernelWithoutInterrupts,
    ];
    let all = on(run, &systems);
    let (mut told, mut fits, mut left_out) = (Vec::new(), true, Vec::new());
    for system in systems {
        let of_system = all.iter().filter(|case| System::of(case) == Some(system));
        let mut targets: Vec<&str> = of_system
            .map(|case| case.plan.target.text.as_str())
            .collect();
        targets.sort_unstable();
        targets.dedup();
        for target in targets {
            let is_of =
                |case: &&Case<'_>| case.plan.target.text == target && case.plan.workload == "prime";
            let sweep: Vec<&Case<'_>> = all.iter().filter(is_of).collect();
            if sweep.iter().any(|case| case.is_emulated()) {
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
fn ratio(run: &Run, low: f64, high: f64) -> Finding {
    let linux = on(run, &[System::Linux]);
    let heaviest = |workload: &str, size| {
        let all = linux.iter().filter(|case| is(case, workload, size));
        all.max_by_key(|case| weight(case))
    };
    let (Some(prime), Some(copy)) = (heaviest("prime", 22), heaviest("copy", 100)) else {
        return cannot("the run has not both prime 22 and copy 100 under Linux");
    };
    if prime.is_emulated() || copy.is_emulated() {
        return cannot(by_emulator(System::Linux));
    }
    let above = [("above", "2000cycles")];
    let share = |case: &Case<'_>| case.over("delayed", Figure::Share, &above).copied();
    let (Some(prime), Some(copy)) = (share(prime), share(copy)) else {
        return cannot("a share of time is missing");
    };
    let figures = format!(
        "prime 22 loses {}, copy 100 {}",
        N.percent(prime.estimate),
        N.percent(copy.estimate)
    );
    let (Ok(prime), Ok(copy)) = (prime.interval, copy.interval) else {
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

/// What was seen of delays of some classes.
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

/// Counts the delays of some classes, over all timed work on systems of these kinds that a processor executed by itself;
/// says why not if there is none.
fn delays(run: &Run, systems: &[System], classes: &[&str]) -> Result<Delays, String> {
    let mut cases = on(run, systems);
    cases.retain(|case| !is_gap(case));
    let named = systems[0];
    if cases.is_empty() {
        return Err(format!("the run has no prime or copy on {}", named.words()));
    }
    let mut delays = Delays {
        count: 0,
        repetitions: 0,
        is_guest: false,
    };
    for case in cases.iter().filter(|case| !case.is_emulated()) {
        for class in classes {
            let count = total(case, "delays", &[("class", class)]);
            delays.count += count.ok_or("delays below the recording threshold were not seen")?;
        }
        delays.repetitions += repetitions(case);
        let program = case.program();
        delays.is_guest |= program.is_some_and(|program| program.agent.accelerator.is_some());
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

/// Returns divisions and median cycles of each size of a sweep, from the heaviest of each. A mean would follow the few
/// longest delays, which have nothing to do with the divisions.
fn points(sweep: &[&Case<'_>]) -> Vec<(f64, f64)> {
    let mut sizes: Vec<u64> = sweep.iter().filter_map(|case| case.plan.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let points = sizes.iter().filter_map(|size| {
        let of_size = sweep.iter().filter(|case| case.plan.size == Some(*size));
        let case = of_size.max_by_key(|case| weight(case))?;
        let work = case.over("work", Figure::Value, &[])?;
        let median = case.row("duration", Figure::MEDIAN, &[])?;
        let typical = median.over.as_ref().ok()?.estimate;
        Some((work.estimate, median.time(typical).cycles))
    });
    points.collect()
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

/// Returns whether a case is of a workload of this size.
fn is(case: &Case<'_>, workload: &str, size: u64) -> bool {
    case.plan.workload == workload && case.plan.size == Some(size)
}

/// Puts the published means and shares beside those of the run.
fn compare(run: &Run, tables: &[PublishedTable]) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for (table, row) in tables
        .iter()
        .flat_map(|table| table.rows.iter().map(move |row| (table, row)))
    {
        let field = |column| table.field(row, column);
        let (what, figure): (_, fn(&Case<'_>) -> String) = match field("figure") {
            "mean" => ("mean duration", mean),
            "delays-2000-6000" => ("repetitions delayed by 2,000 to 6,000 cycles", class_c),
            _ => continue,
        };
        let size = field("limit_or_size").parse::<u64>();
        let (Some(system), Ok(size)) = (System::named(field("system")), size) else {
            continue;
        };
        let workload = field("workload");
        let comparison = |target, here| Comparison {
            what: format!("{what} of {workload} {size}, {}", system.words()),
            published: published(&field),
            target,
            here,
        };
        let mut cases = on(run, &[system]);
        cases.retain(|case| is(case, workload, size));
        cases.sort_by_key(|case| (case.plan.target.text.clone(), Reverse(weight(case))));
        cases.dedup_by_key(|case| &case.plan.target);
        if cases.is_empty() {
            comparisons.push(comparison(None, "not measured in this run".to_owned()));
        }
        comparisons.extend(cases.iter().map(|case| {
            let emulated = if case.is_emulated() {
                " (emulated)"
            } else {
                ""
            };
            let here = format!("{}{emulated}", figure(case));
            comparison(Some(case.plan.target.text.clone()), here)
        }));
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

fn mean(case: &Case<'_>) -> String {
    let row = case.row("duration", Figure::Mean, &[]);
    let Some((row, over)) = row.and_then(|row| Some((row, row.over.as_ref().ok()?))) else {
        return "not seen".to_owned();
    };
    let mean = row.time(over.estimate).cycles;
    let figure = over.interval.map_or_else(
        |_| N.rounded(mean),
        |interval| N.plus_minus(mean, row.time(interval.high - interval.low).cycles / 2.0),
    );
    format!("{figure} cycles")
}

fn class_c(case: &Case<'_>) -> String {
    let share = case.over("delays", Figure::Share, &[("class", "C")]);
    share.map_or_else(|| "not seen".to_owned(), |share| N.percent(share.estimate))
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
