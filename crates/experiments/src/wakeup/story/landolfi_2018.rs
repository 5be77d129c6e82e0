//! landolfi-2018: how late is a task woken under load, by the kernel's preemption model?
//!
//! The study measured each kernel once, on one machine. Here a claim is answered run by run: it is reproduced if
//! every run of every kernel shows it, not reproduced if no run of some kernel does, and cannot be told if
//! runs disagree. Kernels are compared with those of the same group only, guests with guests.
//!
//! What an emulator takes for an instruction of a guest, and when it pauses, is not the kernel's doing: where
//! it gave the guest the machine's time nothing is told. Where it counted instructions (`clock=instructions`)
//! the latencies are a property of the kernel's code, and claims are answered by them, and say so.

use tare_results::target::Clock;

use super::evidence::Kernel;
use super::{
    Claim, Comparison, Evidence, Finding, Published, PublishedTable, cannot, not_reproduced,
    reproduced,
};
use crate::format::Numbers;
use crate::wakeup::words::us;
use crate::wakeup::{PhaseRun, WakeupCombination, WakeupRun};
use crate::words;

const N: Numbers = Numbers::PLAIN;

/// Is the study.
pub(super) const STUDY: Published = Published {
    name: "landolfi-2018",
    question: "How late is a task woken under load, by the kernel's preemption model?",
    claims: &[
        claim(
            "The load DU is the worst for every kernel that is not real-time.",
            du_is_worst,
        ),
        claim(
            "PING has the highest mean under kernels that are not real-time.",
            ping_has_highest_mean,
        ),
        claim(
            "Only the real-time kernel bounds the maximum.",
            only_real_time_bounds,
        ),
        claim(
            "Full preemption beats voluntary preemption and none.",
            full_beats_others,
        ),
    ],
    tables: &[(
        "Wake-up latency by phase and kernel",
        include_str!("../../../../studies/published/landolfi-2018.csv"),
    )],
    note: "The maximum is that of all runs here, the mean is that over the runs, the standard deviation their median; all of service \
           latencies, as the study's. Its machine was another one: what can be compared is the order of kernels and loads.",
    compare,
};

const fn claim(text: &'static str, tell: fn(&Evidence<'_>) -> Finding) -> Claim {
    Claim {
        text,
        experiment: "wakeup",
        measures: "wake-up latency",
        tell: Some(tell),
    }
}

/// Is a phase of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Ping,
    SecondIdle,
    Dd,
    Du,
    Io,
    Net,
}

impl Phase {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Idle, "IDLE"),
        (Self::Ping, "PING"),
        (Self::SecondIdle, "IDLE2"),
        (Self::Dd, "DD"),
        (Self::Du, "DU"),
        (Self::Io, "IO"),
        (Self::Net, "NET"),
    ];

    /// Tells which phase of the study a load is, if it is one; `before` says whether an idle phase came before.
    fn of(load: &str, before: bool) -> Option<Self> {
        let bare = match load.split_once(':') {
            Some((cpus, load)) if cpus.starts_with("cpus=") => load,
            _ => load,
        };
        Some(match bare {
            "idle" if before => Self::SecondIdle,
            "idle" => Self::Idle,
            "ping" => Self::Ping,
            "dd+hackbench" => Self::Dd,
            "du" => Self::Du,
            "tar" => Self::Io,
            "nc" => Self::Net,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(phase, _)| *phase == self)
            .map_or("", |(_, name)| *name)
    }
}

/// Returns the phases of the study that a run of a combination has.
fn phases(run: &WakeupRun) -> Vec<(Phase, &PhaseRun)> {
    let mut idle_before = false;
    let mut found = Vec::new();
    for phase in &run.phases {
        if let Some(of_study) = Phase::of(&phase.load, idle_before) {
            idle_before |= of_study == Phase::Idle;
            found.push((of_study, phase));
        }
    }
    found
}

/// Is what one kernel says of a claim, over its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Yes,
    No,
    /// Its runs disagree.
    Both,
}

impl Says {
    fn of(runs: impl Iterator<Item = bool>) -> Option<Self> {
        runs.map(|yes| if yes { Self::Yes } else { Self::No })
            .reduce(|a, b| if a == b { a } else { Self::Both })
    }
}

/// Puts together what several kernels say.
fn told(each: &[(Says, String)], kernels: &Kernels<'_>) -> Finding {
    let figures: Vec<&str> = each.iter().map(|(_, figures)| figures.as_str()).collect();
    let figures = format!("{}{}", figures.join("; "), kernels.note());
    if each.iter().any(|(says, _)| *says == Says::No) {
        not_reproduced(figures)
    } else if each.iter().all(|(says, _)| *says == Says::Yes) {
        reproduced(figures)
    } else {
        cannot(format!(
            "{figures}; the runs disagree: measure more of them"
        ))
    }
}

/// Holds kernels that can be compared: of one group, by one clock.
struct Kernels<'a> {
    all: Vec<Kernel<'a>>,
}

impl<'a> Kernels<'a> {
    /// Takes the largest group of kernels whose latencies tell something; says why there is none.
    fn of(evidence: &Evidence<'a>) -> Result<Self, String> {
        let kernels = evidence.kernels();
        if kernels.is_empty() {
            return Err(
                "the run has no wake-ups under a kernel whose preemption model is known".to_owned(),
            );
        }
        let telling: Vec<Kernel<'_>> = kernels
            .into_iter()
            .filter(|kernel| kernel.combination.is_telling())
            .collect();
        let groups = telling.iter().map(|kernel| {
            let same = |other: &&Kernel<'a>| {
                other.combination.group == kernel.combination.group
                    && other.combination.clock == kernel.combination.clock
            };
            telling.iter().filter(same).cloned().collect::<Vec<_>>()
        });
        // Of equal ones the first stays.
        let largest = groups.rev().max_by_key(Vec::len);
        largest.map(|all| Self { all }).ok_or_else(|| {
            "an emulator (QEMU's TCG) executed every kernel in the machine's time, so that the latencies, and the maxima \
             above all, are the emulator's; this takes KVM, the bare machine, or guests that count instructions \
             (clock=instructions)"
                .to_owned()
        })
    }

    fn of_model(&self, model: &str) -> Vec<&Kernel<'a>> {
        self.all
            .iter()
            .filter(|kernel| kernel.model == model)
            .collect()
    }

    fn without_real_time(&self) -> Vec<&Kernel<'a>> {
        self.all
            .iter()
            .filter(|kernel| kernel.model != "rt")
            .collect()
    }

    /// Says what is special about the figures.
    fn note(&self) -> String {
        let counted = self
            .all
            .iter()
            .any(|kernel| kernel.combination.clock == Clock::Instructions);
        match counted {
            true => " (by counted instructions, not by a machine's time)".to_owned(),
            false => String::new(),
        }
    }
}

/// Asks each kernel without real-time preemption whether a phase has the greatest figure.
fn greatest(
    evidence: &Evidence<'_>,
    wanted: Phase,
    what: &str,
    figure: fn(&PhaseRun) -> Option<f64>,
) -> Finding {
    let kernels = match Kernels::of(evidence) {
        Ok(kernels) => kernels,
        Err(why) => return cannot(why),
    };
    let mut each = Vec::new();
    for kernel in kernels.without_real_time() {
        let runs: Vec<Vec<(Phase, f64)>> = kernel
            .combination
            .each
            .iter()
            .map(|run| {
                let phases = phases(run).into_iter();
                phases
                    .filter_map(|(phase, of)| Some((phase, figure(of)?)))
                    .collect()
            })
            .collect();
        let of_phase =
            |run: &[(Phase, f64)]| run.iter().find(|(p, _)| *p == wanted).map(|(_, f)| *f);
        let of_others = |run: &[(Phase, f64)]| {
            let others = run.iter().filter(|(p, _)| *p != wanted);
            others.copied().max_by(|a, b| a.1.total_cmp(&b.1))
        };
        let comparable: Option<Vec<(f64, (Phase, f64))>> = runs
            .iter()
            .map(|run| Some((of_phase(run)?, of_others(run)?)))
            .collect();
        let Some(comparable) = comparable.filter(|runs| !runs.is_empty()) else {
            continue;
        };
        let says = Says::of(comparable.iter().map(|(own, (_, other))| own > other));
        let own = comparable.iter().map(|(own, _)| *own).fold(0.0, f64::max);
        let other = comparable
            .iter()
            .map(|(_, other)| *other)
            .max_by(|a, b| a.1.total_cmp(&b.1));
        if let (Some(says), Some((phase, other))) = (says, other) {
            each.push((
                says,
                format!(
                    "{}: {what} {} µs under {}, {} µs under {}",
                    kernel.name,
                    us(N, own),
                    wanted.name(),
                    us(N, other),
                    phase.name()
                ),
            ));
        }
    }
    if each.is_empty() {
        return cannot(format!(
            "no kernel that is not real-time was measured under {} and under another of the study's loads",
            wanted.name()
        ));
    }
    told(&each, &kernels)
}

fn du_is_worst(evidence: &Evidence<'_>) -> Finding {
    greatest(evidence, Phase::Du, "longest", |phase| {
        Some(phase.service?.max_ns as f64)
    })
}

fn ping_has_highest_mean(evidence: &Evidence<'_>) -> Finding {
    greatest(evidence, Phase::Ping, "mean", |phase| {
        Some(phase.service?.mean_ns)
    })
}

/// Returns the longest latency of each run under the study's loads.
fn longest(combination: &WakeupCombination) -> Vec<f64> {
    let runs = combination.each.iter();
    runs.filter_map(|run| {
        let phases = phases(run).into_iter();
        let longest = phases.filter_map(|(_, phase)| Some(phase.service?.max_ns as f64));
        longest.max_by(f64::total_cmp)
    })
    .collect()
}

/// Returns the average over the study's phases of the longest latency, of each run.
fn average_longest(combination: &WakeupCombination) -> Vec<f64> {
    let runs = combination.each.iter();
    runs.filter_map(|run| {
        let longest: Option<Vec<f64>> = phases(run)
            .into_iter()
            .map(|(_, phase)| Some(phase.service?.max_ns as f64))
            .collect();
        let longest = longest.filter(|longest| !longest.is_empty())?;
        Some(longest.iter().sum::<f64>() / longest.len() as f64)
    })
    .collect()
}

/// Asks whether one model's figure is below another's: in all runs of both, in none, or in some.
fn below(less: &[f64], more: &[f64]) -> Option<Says> {
    Says::of(less.iter().flat_map(|a| more.iter().map(move |b| a < b)))
}

fn below_others(
    evidence: &Evidence<'_>,
    model: &str,
    others: &[&str],
    what: &str,
    figure: fn(&WakeupCombination) -> Vec<f64>,
) -> Finding {
    let kernels = match Kernels::of(evidence) {
        Ok(kernels) => kernels,
        Err(why) => return cannot(why),
    };
    let own: Vec<f64> = kernels
        .of_model(model)
        .iter()
        .flat_map(|kernel| figure(kernel.combination))
        .collect();
    let worst = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let mut each = Vec::new();
    let mut missing = Vec::new();
    for other in others {
        let of_model = kernels.of_model(other);
        for kernel in &of_model {
            let values = figure(kernel.combination);
            if let Some(says) = below(&own, &values) {
                let more = worst(&values);
                let times = more / worst(&own).max(1.0);
                let text = format!(
                    "{} {} µs ({} times)",
                    kernel.name,
                    us(N, more),
                    N.short(times)
                );
                each.push((says, text));
            }
        }
        if of_model.is_empty() {
            missing.push(format!("preemption {other}"));
        }
    }
    if own.is_empty() {
        missing.insert(0, format!("preemption {model}"));
    }
    if !missing.is_empty() {
        return cannot(format!(
            "the run has no kernel with {} to compare",
            words::list(&missing)
        ));
    }
    each.insert(
        0,
        (
            Says::Yes,
            format!("{what}: {model} {} µs", us(N, worst(&own))),
        ),
    );
    told(&each, &kernels)
}

/// No measurement can show a bound: what is told is whether the real-time kernel's longest is below every other's.
fn only_real_time_bounds(evidence: &Evidence<'_>) -> Finding {
    let others = ["none", "voluntary", "full"];
    below_others(evidence, "rt", &others, "longest under any load", longest)
}

fn full_beats_others(evidence: &Evidence<'_>) -> Finding {
    let others = ["none", "voluntary"];
    let what = "longest, averaged over the phases";
    below_others(evidence, "full", &others, what, average_longest)
}

/// Puts the published maximum, mean and standard deviation beside those of the run.
fn compare(evidence: &Evidence<'_>, tables: &[PublishedTable]) -> Vec<Comparison> {
    let kernels = evidence.kernels();
    let mut comparisons = Vec::new();
    for table in tables {
        for row in &table.rows {
            let field = |column| table.field(row, column);
            let model = match field("kernel") {
                "vanilla" => "none",
                other => other,
            };
            let published = format!(
                "{} / {} / {}",
                field("max_us"),
                field("mean_us"),
                field("sd_us")
            );
            let what = format!("{}, {model}: max / mean / sd, µs", field("phase"));
            let comparison = |target: Option<String>, here: String| Comparison {
                what: what.clone(),
                published: published.clone(),
                target,
                here,
            };
            let mut found = false;
            for kernel in kernels.iter().filter(|kernel| kernel.model == model) {
                let combination = kernel.combination;
                let Some(here) = here(combination, field("phase")) else {
                    continue;
                };
                found = true;
                let mark = match (combination.clock, combination.emulated) {
                    (Clock::Instructions, _) => " (counted instructions)",
                    (Clock::Host, true) => " (emulated)",
                    (Clock::Host, false) => "",
                };
                comparisons.push(comparison(
                    Some(combination.target.clone()),
                    format!("{here}{mark}"),
                ));
            }
            if !found {
                comparisons.push(comparison(None, "not measured in this run".to_owned()));
            }
        }
    }
    comparisons
}

/// Writes maximum, mean and standard deviation of a phase of the study: the longest of all runs, the medians of
/// the others.
fn here(combination: &WakeupCombination, phase: &str) -> Option<String> {
    let first = combination.each.first()?;
    let (_, of_study) = phases(first).into_iter().find(|(p, _)| p.name() == phase)?;
    let phase = combination
        .phases
        .iter()
        .find(|p| p.number == of_study.number)?;
    let service = phase.service?;
    Some(format!(
        "{} / {} / {}",
        us(N, service.longest_ns()),
        us(N, service.mean.figure),
        us(N, service.sd.figure)
    ))
}
