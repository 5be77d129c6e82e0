//! The loss of a machine next to published losses of idle machines.
//!
//! Published figures of this kind are few, and each is of one machine: so the sentence says whose
//! they are. Both detectors spin on the clock, as a workload does that only reads it.

use tare_figures::Run;
use tare_figures::analysis::had_other_work;
use tare_figures::format::Numbers;
use tare_figures::rows::Figure;

use super::super::panels::Panel;

const N: Numbers = Numbers::PLAIN;

/// The time below which nothing is compared.
const LEAST_SECONDS: f64 = 0.5;

/// What idle machines lost that somebody has published: the least and the greatest share of a CPU.
struct Reference {
    least: f64,
    most: f64,
    /// The length from which gaps count there.
    from_ns: f64,
    words: &'static str,
}

/// The example in the manual of Solarflare's sysjitter: 10 s, gaps from 200 ns on, 1,001 to 1,014
/// of them a second.
const MACHINE: Reference = Reference {
    least: 0.001_43,
    most: 0.001_50,
    from_ns: 200.0,
    words: "an idle server without a hypervisor lost 0.143 to 0.150 % of each of its 4 CPUs to a tick of 1,000 Hz (the \
            example in sysjitter's manual)",
};

/// The example in Documentation/trace/osnoise-tracer.rst of Linux: 1 s, gaps from 5 µs on.
const GUEST: Reference = Reference {
    least: 0.000_109,
    most: 0.007_816,
    from_ns: 5_000.0,
    words: "an idle guest lost 0.011 to 0.78 % of each of its 8 CPUs to gaps of at least 5 µs (the example in the \
            documentation of Linux's osnoise tracer)",
};

/// Compares the loss of this machine when idle with published ones; `None` if it was not measured,
/// if the machine is of neither kind, or if the run repeats a study.
pub(super) fn sentence(panels: &[Panel<'_>], run: &Run) -> Option<String> {
    if run
        .plan
        .study
        .as_ref()
        .is_some_and(|study| study.reproduces.is_some())
    {
        return None;
    }
    let panel = panels
        .iter()
        .find(|panel| panel.only_reads_clock() && panel.plan().load.is_idle())?;
    let mut members = panel.native();
    let member = members.find(|member| member.group().capabilities().is_direct)?;
    // A CPU that others use is not idle.
    if member.case.cells.iter().any(|cell| had_other_work(cell)) {
        return None;
    }
    let (_, share) = member.share()?;
    let hz = member.case.hz()?;
    // A short run is inconclusive: the figures above are of seconds.
    if member.seconds()? < LEAST_SECONDS {
        return None;
    }
    let virtualisation = &run.machine.as_ref()?.machine.virtualisation;
    let reference = match virtualisation.hypervisor.known()? {
        Some(_) => GUEST,
        None => MACHINE,
    };
    // Of the time lost, the part in gaps of the length from which they count there.
    let (_, threshold) = member.known("threshold", Figure::Max, &[])?;
    let from_ns = reference.from_ns.max(threshold.highest);
    let lengths = member.pictures.counts.iter();
    let lengths = lengths.map(|(length, count)| (length as f64, length as f64 * count as f64));
    let (long, all) = lengths.fold((0.0, 0.0), |(long, all), (length, sum)| {
        let counts = length / hz * 1e9 >= reference.from_ns;
        (long + if counts { sum } else { 0.0 }, all + sum)
    });
    let share = share.estimate * if all > 0.0 { long / all } else { 1.0 };
    let judged = match share {
        less if less < reference.least => "less than the least of that".to_owned(),
        more if more > reference.most => {
            format!("{} times the most of that", N.short(more / reference.most))
        }
        _ => "within that range".to_owned(),
    };
    Some(format!(
        "For comparison, {}: {} here, to gaps of at least {}, is {judged}.",
        reference.words,
        N.percent(share),
        N.ns(from_ns, None)
    ))
}
