//! calder-2020: how long do instances take to start, as processes, containers, Linux guests and unikernels, and which rate is
//! kept up?
//!
//! The study's kinds are told apart by what executes them: its unikernel and one of its two Linux guests ran in QEMU without KVM, so
//! an emulator's figures answer for these two, and for them alone. Its Linux guest boots a whole Debian; a kernel with nothing but
//! a static program is another kind, and is compared with nothing. Absolute times are those of the study's machine, with 72 logical
//! CPUs: what can be compared is the order of the kinds, and how each changes as the interval gets shorter.

use tare_figures::Run;
use tare_figures::claims::{
    Claim, Comparison, Drawn, Finding, Inconclusive, Published, PublishedTable, cannot,
    not_reproduced, reproduced,
};
use tare_figures::mark::Mark;
use tare_figures::rows::Figure;
use tare_figures::words;

use super::series::{self, Kept, N, Point, Series, rate_kept, time};

/// The study.
pub(super) const STUDY: Published = Published {
    name: "calder-2020",
    question: "How long do instances take to start, as processes, containers, Linux guests and unikernels, and which rate is kept up?",
    claims: &[
        claim(
            "Without contention a process starts in some ms, a unikernel in about 0.25 s, a container in just under 1 s, Linux in about 4 s with KVM and 16 s without.",
            order,
        ),
        claim(
            "The unikernel's latency does not rise under load down to the smallest interval.",
            unikernel_does_not_rise,
        ),
        claim(
            "Docker's latency rises sharply between intervals of 0.5 and 0.25 s, and its throughput falls to almost zero between 1/8 and 1/16 s.",
            docker_collapses,
        ),
        claim(
            "Linux with KVM holds until an interval of 1/8 s.",
            kvm_holds,
        ),
        claim(
            "Linux without KVM hangs at an interval of 0.5 s.",
            tcg_hangs,
        ),
        claim(
            "The unikernel without KVM carries a load 64 times heavier than Linux with KVM.",
            unikernel_carries_more,
        ),
    ],
    tables: &[(
        "Start latency and throughput by interval",
        include_str!("../../../../../studies/published/calder-2020.csv"),
    )],
    note: "Latencies are means, as the study has them: until the line of a process or Linux guest came, and until a container or \
           unikernel had ended. The study's machine had 72 logical CPUs, and its shell stretched intervals near 1 ms: what can be \
           compared is the order of the kinds, and at which interval each gives up.",
    compare,
};

const fn claim(text: &'static str, tell: fn(&Run) -> Finding) -> Claim {
    Claim {
        text,
        experiment: "start",
        measures: "how long instances take to start",
        tell: Some(tell),
    }
}

/// The kinds of the study, in the order of its latencies without contention.
const PROCESS: &str = "process";
const UNIKERNEL: &str = "unikernel";
const DOCKER: &str = "docker";
const LINUX: &str = "linux";
const KVM: &str = "linux-kvm";
const TCG: &str = "linux-tcg";
const KINDS: [&str; 5] = [PROCESS, UNIKERNEL, DOCKER, KVM, TCG];

/// A second, in ns.
const SECOND: f64 = 1e9;
/// By how much a latency may grow and still counts as not rising.
const LEVEL: f64 = 1.5;
/// By how much it grows where it rises sharply.
const SHARP: f64 = 3.0;
/// The share of the planned rate below which a throughput is almost zero.
const ALMOST_ZERO: f64 = 0.2;
/// The ratio of loads that the last claim is about.
const HEAVIER: f64 = 64.0;

/// Returns the kind of the study that a series is of, if it is of one.
pub(super) fn kind(series: &Series<'_>) -> Option<&'static str> {
    let plan = series.plan();
    if series.is_beside() || plan.load != "idle" {
        return None;
    }
    match plan.target.capabilities().study_kind {
        Some(LINUX) if series.is_emulated() => Some(TCG),
        Some(LINUX) => Some(KVM),
        kind => kind,
    }
}

/// Returns the measure that is the study's latency of a target.
pub(super) fn latency(series: &Series<'_>) -> &'static str {
    series.plan().target.capabilities().study_latency
}

/// The series of a run that are of the study's kinds.
struct Kinds<'a>(Vec<(&'static str, Series<'a>)>);

impl<'a> Kinds<'a> {
    fn of(run: &'a Run) -> Self {
        let all = series::all(run).into_iter();
        Self(all.filter_map(|one| Some((kind(&one)?, one))).collect())
    }

    /// Returns the first series of a kind, of a unikernel rather one without KVM, as the study's was. Says what is missing
    /// otherwise.
    fn get(&self, wanted: &str) -> Result<&Series<'a>, Inconclusive> {
        let of_kind = || self.0.iter().filter(|(kind, _)| *kind == wanted);
        let emulated = of_kind().find(|(_, series)| series.is_emulated());
        let found = emulated.or_else(|| of_kind().next());
        found
            .map(|(_, series)| series)
            .ok_or_else(|| missing(wanted))
    }

    /// Returns the unikernel without KVM.
    fn emulated_unikernel(&self) -> Result<&Series<'a>, Inconclusive> {
        let found = self.get(UNIKERNEL).ok();
        found.filter(|series| series.is_emulated()).ok_or_else(|| {
            "the run has no unikernel without KVM, as the study's was (target unikernel,accel=tcg)".into()
        })
    }
}

fn missing(kind: &str) -> Inconclusive {
    match kind {
        KVM => Inconclusive::emulated(
            "no whole Debian was started in KVM (target linux,root=debian where KVM works)"
                .to_owned(),
        ),
        TCG => {
            "no whole Debian was started without KVM (target linux,root=debian,accel=tcg)".into()
        }
        kind => format!("the run has no {kind}").into(),
    }
}

/// Returns the mean latency of a point by the study's definition.
fn mean(series: &Series<'_>, point: &Point<'_>) -> Option<f64> {
    point.value(latency(series), Figure::Mean)
}

/// Returns the point of an interval.
fn at<'s, 'a>(series: &'s Series<'a>, seconds: f64) -> Option<&'s Point<'a>> {
    let mut points = series.open();
    points.find(|point| is_at(point, seconds))
}

/// Says whether a point is of an interval, but for what rounding to ns takes.
fn is_at(point: &Point<'_>, seconds: f64) -> bool {
    let interval = point.interval_ns().map(|ns| ns as f64);
    interval.is_some_and(|ns| (ns - seconds * SECOND).abs() <= 1.0)
}

fn kept<'a>(series: &Series<'a>) -> Result<Kept<'a>, Inconclusive> {
    let none = || format!("{} was not started at intervals", series.name()).into();
    series.kept().ok_or_else(none)
}

/// Tells a claim, or why it can't be told.
fn told(finding: Result<Finding, Inconclusive>) -> Finding {
    finding.unwrap_or_else(cannot)
}

/// Answers a claim by whether it holds.
fn answer(holds: bool, why: String) -> Finding {
    match holds {
        true => reproduced(why),
        false => not_reproduced(why),
    }
}

/// Asks whether the kinds have the order of the study. One that is missing leaves it open, unless the others contradict it.
fn order(run: &Run) -> Finding {
    let kinds = Kinds::of(run);
    let known = KINDS.iter().filter_map(|kind| {
        let series = kinds.get(kind).ok()?;
        Some((*kind, mean(series, series.calm())?))
    });
    let known: Vec<(&str, f64)> = known.collect();
    let each: Vec<String> = known
        .iter()
        .map(|(kind, ns)| format!("{kind} {}", time(*ns)))
        .collect();
    let figures = format!("mean without contention: {}", words::list(&each));
    if known.windows(2).any(|two| two[0].1 >= two[1].1) {
        return not_reproduced(figures);
    }
    let lacking = KINDS
        .iter()
        .find(|kind| !known.iter().any(|(own, _)| own == *kind));
    match lacking {
        Some(kind) if known.len() > 1 => cannot(match missing(kind) {
            untold if *kind == KVM => untold.after(&format!("{figures}, in the study's order; ")),
            untold => untold.after(&format!("{figures}; ")),
        }),
        Some(kind) => cannot(missing(kind)),
        None => reproduced(format!("{figures}: the study's order, on another machine")),
    }
}

fn unikernel_does_not_rise(run: &Run) -> Finding {
    told((|| {
        let kinds = Kinds::of(run);
        let unikernel = kinds.get(UNIKERNEL)?;
        let kept = kept(unikernel)?;
        let points = unikernel
            .open()
            .filter_map(|point| Some((point, mean(unikernel, point)?)));
        let points: Vec<(&Point<'_>, f64)> = points.collect();
        let (first, last) = points
            .first()
            .zip(points.last())
            .ok_or("no unikernel became ready")?;
        let why = format!(
            "mean {} at {}, {} at {}; kept up to {}",
            time(first.1),
            first.0.interval(),
            time(last.1),
            last.0.interval(),
            rate_kept(&kept)
        );
        let rises = points.iter().any(|(_, ns)| *ns > first.1 * LEVEL);
        if rises || kept.end.is_some() {
            return Ok(not_reproduced(why));
        }
        match at(unikernel, 1.0 / 1024.0) {
            Some(_) => Ok(reproduced(why)),
            None => Err(format!(
                "{why}; the study's smallest interval, 1/1024 s, was not measured"
            )
            .into()),
        }
    })())
}

fn docker_collapses(run: &Run) -> Finding {
    told((|| {
        let kinds = Kinds::of(run);
        let docker = kinds.get(DOCKER)?;
        let of = |seconds: f64| mean(docker, at(docker, seconds)?);
        let kept = kept(docker)?;
        let (Some(before), Some(after)) = (of(0.5), of(0.25)) else {
            return Err(format!(
                "docker was not measured both at 1/2 s and at 1/4 s; it kept up to {}",
                rate_kept(&kept)
            )
            .into());
        };
        let why = format!("mean {} at 1/2 s, {} at 1/4 s", time(before), time(after));
        if after < before * SHARP {
            return Ok(not_reproduced(format!(
                "{why}; kept up to {}",
                rate_kept(&kept)
            )));
        }
        let done = |seconds: f64| at(docker, seconds)?.value("rate", Figure::Rate);
        match (done(0.125), done(0.0625)) {
            (Some(eighth), Some(sixteenth)) => Ok(answer(
                sixteenth < ALMOST_ZERO * 16.0 && sixteenth < eighth,
                format!("{why}; {} done at 1/8 s, {} at 1/16 s", N.rate(eighth), N.rate(sixteenth)),
            )),
            _ => Err(format!(
                "{why}: it rises, but the ladder ended before 1/16 s, where the throughput would tell"
            )
            .into()),
        }
    })())
}

fn kvm_holds(run: &Run) -> Finding {
    told((|| {
        let kinds = Kinds::of(run);
        let kept = kept(kinds.get(KVM)?)?;
        let why = format!("kept up to {}", rate_kept(&kept));
        match (kept.rate, kept.end) {
            (Some(rate), None) if rate < 16.0 => {
                Err(format!("{why}: shorter intervals were not measured").into())
            }
            (rate, _) => Ok(answer(
                rate.is_some_and(|rate| (7.9..8.1).contains(&rate)),
                why,
            )),
        }
    })())
}

fn tcg_hangs(run: &Run) -> Finding {
    told((|| {
        let kinds = Kinds::of(run);
        let kept = kept(kinds.get(TCG)?)?;
        let why = format!("kept up to {}", rate_kept(&kept));
        match (kept.rate, kept.end) {
            (Some(rate), None) if rate < 2.0 => {
                Err(format!("{why}: shorter intervals were not measured").into())
            }
            (rate, _) => Ok(answer(
                rate.is_some_and(|rate| (0.9..1.9).contains(&rate)),
                why,
            )),
        }
    })())
}

fn unikernel_carries_more(run: &Run) -> Finding {
    told((|| {
        let kinds = Kinds::of(run);
        let linux = kept(kinds.get(KVM)?)?;
        let unikernel = kept(kinds.emulated_unikernel()?)?;
        let (Some(own), Some(other)) = (unikernel.rate, linux.rate) else {
            return Err("one of both kept up no rate that was measured".into());
        };
        let why = format!(
            "the unikernel kept up to {}, Linux with KVM to {}: {} times",
            rate_kept(&unikernel),
            rate_kept(&linux),
            N.short(own / other)
        );
        match own / other >= HEAVIER {
            true if linux.at_least => Err(format!("{why}, and Linux could do more").into()),
            false if unikernel.at_least => {
                Err(format!("{why}, and the unikernel could do more").into())
            }
            holds => Ok(answer(holds, why)),
        }
    })())
}

/// Puts the published latency and throughput of each kind and interval beside those of the run.
fn compare(run: &Run, tables: &[PublishedTable]) -> Vec<Comparison> {
    let kinds = Kinds::of(run);
    let mut comparisons = Vec::new();
    for (table, row) in tables
        .iter()
        .flat_map(|table| table.rows.iter().map(move |row| (table, row)))
    {
        let number = |column| table.field(row, column).parse::<f64>().ok();
        let kind = table.field(row, "kind");
        let (Some(seconds), Some(latency_s), Some(rate)) = (
            number("interval_s"),
            number("latency_s"),
            number("throughput_per_s"),
        ) else {
            continue;
        };
        let published = (latency_s * SECOND, rate);
        let mut here = Vec::new();
        for (_, series) in kinds.0.iter().filter(|(own, _)| *own == kind) {
            here.extend(at(series, seconds).and_then(|point| beside(series, point, published)));
        }
        if here.is_empty() {
            here.push((None, "not measured in this run".to_owned(), Vec::new()));
        }
        comparisons.extend(here.into_iter().map(|(target, here, drawn)| Comparison {
            what: format!("{kind}, every {}: latency / throughput", interval(seconds)),
            published: format!("{} / {}", time(published.0), N.rate(rate)),
            target,
            here,
            drawn,
        }));
    }
    comparisons
}

/// Writes an interval as the study does: `1/64 s`.
fn interval(seconds: f64) -> String {
    match seconds {
        whole if whole >= 1.0 => format!("{whole} s"),
        part => format!("1/{} s", (1.0 / part).round()),
    }
}

/// Returns the target of a point, its figures, and how they are drawn beside published ones.
fn beside(
    series: &Series<'_>,
    point: &Point<'_>,
    published: (f64, f64),
) -> Option<(Option<String>, String, Vec<Drawn>)> {
    let own = mean(series, point)?;
    let rate = point.value("rate", Figure::Rate)?;
    let mark = match (point.saturated().is_some(), series.is_emulated()) {
        (true, true) => " (saturated, emulated)",
        (true, false) => " (saturated)",
        (false, true) => " (emulated)",
        (false, false) => "",
    };
    let drawn = |picture,
                 across,
                 row,
                 published: (f64, String),
                 draw: fn(f64) -> f64,
                 write: fn(f64) -> String| {
        Some(Drawn {
            picture,
            across,
            group: series.name(),
            name: format!("every {}", point.interval()),
            published: (draw(published.0), published.1),
            here: Mark::of(row, 0, draw, write)?,
        })
    };
    let latencies = drawn(
        "Mean latency by interval",
        "latency, ms",
        point.row(latency(series), Figure::Mean)?,
        (published.0, time(published.0)),
        |ns| ns / 1e6,
        time,
    );
    let rates = drawn(
        "Throughput by interval",
        "instances per second",
        point.row("rate", Figure::Rate)?,
        (published.1, N.rate(published.1)),
        |rate| rate,
        |rate| N.rate(rate),
    );
    let here = format!("{} / {}{mark}", time(own), N.rate(rate));
    let target = series.plan().target.text.clone();
    Some((
        Some(target),
        here,
        latencies.into_iter().chain(rates).collect(),
    ))
}
