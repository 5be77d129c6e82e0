//! landolfi-2018: how late is a task woken under load, by the kernel's preemption model?
//!
//! The study measured each kernel once, on one machine. Here a claim is answered run by run: it is
//! reproduced if every run of every kernel shows it, not reproduced if no run of some kernel does,
//! and inconclusive if runs disagree. Kernels are compared with those of the same group only,
//! guests with guests.
//!
//! What an emulator takes for an instruction of a guest, and when it pauses, is not the kernel's
//! doing: where it gave the guest the machine's time the answer is inconclusive. Where it counted
//! instructions (`clock=instructions`) the latencies are a property of the kernel's code, and
//! claims are answered by them, and say so.

use tare_results::model::Schedule;
use tare_results::target::Clock;

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::claims::{Answered, Claim, Inconclusive, Published, answer};
use tare_figures::rows::Figure;
use tare_figures::words::{self, microseconds};
use tare_pages::kit::claim_table::{Compared, Drawing, PublishedRow, Quantity, Subject, compare};

use super::words::{N, Phase, cases, is_telling, model, name};

/// The study.
pub(super) const STUDY: Published = Published {
    name: "landolfi-2018",
    question: "How late is a task woken under load, by the kernel's preemption model?",
    claims: &[
        Claim::new(
            "The load DU is the worst for every kernel that is not real-time.",
            |run| greatest(run, "DU", "longest", Figure::Max),
        ),
        Claim::new(
            "PING has the highest mean under kernels that are not real-time.",
            |run| greatest(run, "PING", "mean", Figure::Mean),
        ),
        Claim::new(
            "Only the real-time kernel bounds the maximum.",
            only_real_time_bounds,
        ),
        Claim::new(
            "Full preemption beats voluntary preemption and none.",
            full_beats_others,
        ),
    ],
    tables: &[(
        "Wake-up latency by phase and kernel",
        include_str!("../../../../../studies/published/landolfi-2018.csv"),
    )],
    note: "The maximum is that of all runs here, the mean is that over the runs, the standard deviation their median; all of service \
           latencies, as the study's. Its machine was another one: what can be compared is the order of kernels and loads.",
    compare: |run, tables| compare(tables, |row| compared(run, row)),
};

/// Returns the phase of the study that a load is; `before` are those that came before.
fn of_study(load: &Schedule, before: &[(&str, Phase<'_>)]) -> Option<&'static str> {
    if load.is_idle() {
        let is_second = before.iter().any(|(name, _)| *name == "IDLE");
        return Some(if is_second { "IDLE2" } else { "IDLE" });
    }
    let load = load.as_str();
    let bare = match load.split_once(':') {
        Some((cpus, load)) if cpus.starts_with("cpus=") => load,
        _ => load,
    };
    Some(match bare {
        "ping" => "PING",
        "dd+hackbench" => "DD",
        "du" => "DU",
        "tar" => "IO",
        "nc" => "NET",
        _ => return None,
    })
}

/// A kernel under which wake-ups were measured, undisturbed by tracing.
#[derive(Clone, Debug)]
struct Kernel<'a> {
    case: Case<'a>,
    /// Its preemption model: `none`, `voluntary`, `full`, `lazy` or `rt`.
    model: &'a str,
}

/// The kernels of a run whose preemption model is known.
fn kernels(run: &Run) -> Vec<Kernel<'_>> {
    let plain = cases(run).into_iter().filter(|case| !case.plan.is_traced());
    let known = plain.filter_map(|case| {
        Some(Kernel {
            model: model(&case)?,
            case,
        })
    });
    known.collect()
}

impl Kernel<'_> {
    /// Returns its phases that the study has, by the study's names.
    fn phases(&self) -> Vec<(&'static str, Phase<'_>)> {
        let mut phases = Vec::new();
        for phase in Phase::all(self.case.plan) {
            phases.extend(of_study(phase.load, &phases).map(|name| (name, phase)));
        }
        phases
    }

    /// Returns a figure of each phase that the study has, run by run.
    fn runs(&self, figure: Figure) -> Vec<Vec<(&'static str, Option<f64>)>> {
        let cells = self.case.cells.iter().map(|cell| {
            let value = |phase: Phase<'_>| phase.value(&self.case, cell, "latency", figure);
            self.phases()
                .into_iter()
                .map(|(name, phase)| (name, value(phase)))
                .collect()
        });
        cells.collect()
    }
}

/// Longest, mean and standard deviation of a phase: of the longest that of all runs.
const QUANTITIES: &[Quantity] = &[
    Quantity {
        published: |row| row.field("max_us").to_owned(),
        drawn: Some(Drawing {
            picture: "Longest wake-up latency by load",
            across: "longest latency, µs",
            published: |row| row.number("max_us"),
            ..MEAN
        }),
        ..SD
    },
    Quantity {
        published: |row| row.field("mean_us").to_owned(),
        drawn: Some(MEAN),
        ..SD
    },
    SD,
];

const MEAN: Drawing = Drawing {
    picture: "Mean wake-up latency by load",
    across: "mean latency, µs",
    unit: "µs",
    published: |row| row.number("mean_us"),
    here: |_, ns| ns / 1e3,
};

const SD: Quantity = Quantity {
    published: |row| row.field("sd_us").to_owned(),
    write: |_, ns| microseconds(N, ns),
    drawn: None,
};

/// Takes the largest group of kernels that can be compared: of one group, by one clock, with
/// latencies that tell something. Says why there is none.
fn comparable(run: &Run) -> Result<Vec<Kernel<'_>>, Inconclusive> {
    let mut telling = kernels(run);
    if telling.is_empty() {
        return Err(
            "the run has no wake-ups under a kernel whose preemption model is known".into(),
        );
    }
    telling.retain(|kernel| is_telling(&kernel.case));
    let kind = |kernel: &Kernel<'_>| (kernel.case.plan.target.group, kernel.case.plan.target.clock);
    let groups = telling.iter().map(|kernel| {
        let same = telling.iter().filter(|other| kind(other) == kind(kernel));
        same.cloned().collect::<Vec<_>>()
    });
    // Of equal ones the first stays.
    groups.rev().max_by_key(Vec::len).ok_or_else(|| Inconclusive::emulated(
        "an emulator (QEMU's TCG) executed every kernel in the machine's time, so that the latencies, and the maxima above \
         all, are the emulator's; this takes KVM, the bare machine, or guests that count instructions (clock=instructions)"
            .to_owned()
    ))
}

/// The answer of one kernel to a claim: whether it holds in each of its runs, or pairs of runs, and
/// the figures.
type Shown = (Vec<bool>, String);

/// Puts together what several kernels show.
fn folded(each: &[Shown], kernels: &[Kernel<'_>]) -> Answered {
    let mut figures = each
        .iter()
        .map(|(_, figures)| figures.as_str())
        .collect::<Vec<_>>()
        .join("; ");
    if kernels
        .iter()
        .any(|kernel| kernel.case.plan.target.clock == Clock::Instructions)
    {
        figures.push_str(" (by counted instructions, not by a machine's time)");
    }
    let is_contradicted = each.iter().any(|(holds, _)| !holds.contains(&true));
    match is_contradicted || each.iter().all(|(holds, _)| !holds.contains(&false)) {
        true => answer(!is_contradicted, figures),
        false => Err(format!("{figures}; the runs disagree: measure more of them").into()),
    }
}

/// Asks each kernel without real-time preemption whether a phase has the greatest figure. Says why
/// none shows it.
fn greatest(run: &Run, wanted: &str, what: &str, figure: Figure) -> Answered {
    let kernels = comparable(run)?;
    let by_figure = |a: &(&str, f64), b: &(&str, f64)| a.1.total_cmp(&b.1);
    let shown = |kernel: &Kernel<'_>| -> Option<Shown> {
        let runs = kernel.runs(figure).into_iter().map(|run| {
            let all = run.into_iter().filter_map(|(name, ns)| Some((name, ns?)));
            let (own, others): (Vec<_>, Vec<_>) = all.partition(|(name, _)| *name == wanted);
            Some((*own.first()?, others.into_iter().max_by(by_figure)?))
        });
        // A run that lacks the phase can't be compared, and so can't its kernel.
        let (own, others): (Vec<_>, Vec<_>) = runs.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        let holds = own.iter().zip(&others).map(|(own, other)| own.1 > other.1);
        let most = |all: &[(&'static str, f64)]| all.iter().copied().max_by(by_figure);
        let under = |(load, ns): (&str, f64)| format!("{} µs under {load}", microseconds(N, ns));
        let (own, other) = (under(most(&own)?), under(most(&others)?));
        Some((
            holds.collect(),
            format!("{}: {what} {own}, {other}", name(&kernel.case)),
        ))
    };
    let asked = kernels.iter().filter(|kernel| kernel.model != "rt");
    let each: Vec<Shown> = asked.filter_map(shown).collect();
    if each.is_empty() {
        return Err(format!(
            "no kernel that is not real-time was measured under {wanted} and under another of the study's loads"
        )
        .into());
    }
    folded(&each, &kernels)
}

/// Asks whether a figure of one model, made of the longest latencies of a run's phases, is below
/// those of others. Says which model is missing.
fn below_others(
    run: &Run,
    model: &str,
    others: &[&str],
    what: &str,
    figure: fn(Vec<Option<f64>>) -> Option<f64>,
) -> Answered {
    let kernels = comparable(run)?;
    let of = |kernel: &Kernel<'_>| -> Vec<f64> {
        let runs = kernel.runs(Figure::Max).into_iter();
        let longest = runs.map(|run| run.into_iter().map(|(_, ns)| ns).collect());
        longest.filter_map(figure).collect()
    };
    let of_model = |wanted: &str| -> Vec<(&Kernel<'_>, Vec<f64>)> {
        let own = kernels.iter().filter(|kernel| kernel.model == wanted);
        own.map(|kernel| (kernel, of(kernel)))
            .filter(|(_, values)| !values.is_empty())
            .collect()
    };
    let all = || [model].into_iter().chain(others.iter().copied());
    let missing = all().filter(|wanted| of_model(wanted).is_empty());
    let missing: Vec<String> = missing.map(|model| format!("preemption {model}")).collect();
    if !missing.is_empty() {
        let missing = words::list(&missing);
        return Err(format!("the run has no kernel with {missing} to compare").into());
    }
    let worst = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let own: Vec<f64> = of_model(model)
        .into_iter()
        .flat_map(|(_, values)| values)
        .collect();
    let most = worst(&own);
    let mut each: Vec<Shown> = vec![(
        vec![true],
        format!("{what}: {model} {} µs", microseconds(N, most)),
    )];
    for (kernel, values) in others.iter().flat_map(|other| of_model(other)) {
        let pairs = own.iter().flat_map(|a| values.iter().map(move |b| a < b));
        let (us, times) = (
            microseconds(N, worst(&values)),
            N.short(worst(&values) / most.max(1.0)),
        );
        each.push((
            pairs.collect(),
            format!("{} {us} µs ({times} times)", name(&kernel.case)),
        ));
    }
    folded(&each, &kernels)
}

/// No measurement can show a bound: the answer is whether the real-time kernel's longest is below
/// every other's.
fn only_real_time_bounds(run: &Run) -> Answered {
    let longest = |run: Vec<Option<f64>>| run.into_iter().flatten().max_by(f64::total_cmp);
    let others = ["none", "voluntary", "full"];
    below_others(run, "rt", &others, "longest under any load", longest)
}

fn full_beats_others(run: &Run) -> Answered {
    let average = |run: Vec<Option<f64>>| {
        let phases = run.len() as f64;
        let sum: f64 = run.into_iter().sum::<Option<f64>>()?;
        (phases > 0.0).then_some(sum / phases)
    };
    let what = "longest, averaged over the phases";
    below_others(run, "full", &["none", "voluntary"], what, average)
}

/// Returns what a published row is compared with: the kernels of its preemption model, in its
/// phase.
fn compared<'a>(run: &'a Run, row: PublishedRow<'_>) -> Option<Compared<'a>> {
    let phase = row.field("phase");
    let model = match row.field("kernel") {
        "vanilla" => "none",
        other => other,
    };
    let kernels = kernels(run)
        .into_iter()
        .filter(|kernel| kernel.model == model);
    let subjects = kernels.map(|kernel| {
        let target = &kernel.case.plan.target;
        let marks = match (target.clock, kernel.case.is_emulated()) {
            (Clock::Instructions, _) => "counted instructions",
            (Clock::Host, true) => "emulated",
            (Clock::Host, false) => "",
        };
        let phases = kernel.phases();
        let own = phases.iter().find(|(known, _)| *known == phase);
        let figures = [Figure::Max, Figure::Mean, Figure::Sd];
        let rows = figures.map(|figure| own?.1.row(&kernel.case, "latency", figure));
        Subject {
            target: target.text.clone(),
            group: name(&kernel.case),
            name: phase.to_owned(),
            marks: marks.to_owned(),
            rows: rows.to_vec(),
        }
    });
    Some(Compared {
        what: format!("{phase}, {model}: max / mean / sd, µs"),
        quantities: QUANTITIES,
        subjects: subjects.collect(),
    })
}
