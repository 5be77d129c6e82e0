//! How it was measured, what that cannot see, what was not measured, and where it all comes from.

use maud::{Markup, html};
use tare_results::model::{Plan, Record};

use crate::analysis::{Analysis, CombinedFigures, Placement, Severity, State, name_cells};
use crate::words;

use super::parts::{N, Table, facts, with_code};

/// Renders how the workloads of this run measure.
pub(super) fn method(analysis: &Analysis) -> Markup {
    let has = |name: &str| {
        analysis
            .summary()
            .combinations
            .iter()
            .any(|c| c.workload == name)
    };
    html! {
        @if has("gap") {
            p {
                b { "gap" } " reads the timer again and again on one pinned CPU and does nothing else. A difference "
                "of two reads that reaches the threshold is a gap: something took the CPU. All others are quiet "
                "iterations. Time lost is the sum over all gaps of length less a quiet iteration. Every gap is listed "
                "with its moment; nothing is sampled."
            }
        }
        @if has("prime") {
            p {
                b { "prime" } " counts the primes below a limit by trial division, in registers only, and times every "
                "repetition. No repetition touches memory, so what delays one is not a cache miss of its own."
            }
        }
        @if has("copy") {
            p {
                b { "copy" } " copies an array of 8-byte numbers, adds one to each element of the source, and "
                "times every repetition. It meets what prime does not: caches and memory."
            }
        }
        @let woken = &analysis.summary().wakeups;
        @if !woken.is_empty() {
            p {
                b { "wakeup" } " lets threads sleep until absolute times, one interval apart, and reads the clock as soon as each \
                 runs. The "
                b { "service" } " latency is that time less the planned one, as cyclictest defines it. After a late wake-up the next \
                 planned time is the first one that is still to come; activations before it were missed and have no wake-up. "
                b { "Response" } " latencies count them, too: a wake-up that is L late at an interval I missed activations that had \
                 waited L − I, L − 2·I, … by then. Nothing is estimated: both follow from the exact counts of every latency \
                 in ns. Phases are told apart by the planned time. Intervals take one value per run."
            }
        }
        @if !analysis.summary().combinations.is_empty() { p {
            "A delay is the duration of a repetition less the mean of its run, as in kot-2019; the share of time in "
            "delays is their sum over the sum of all cycles. A percentile is printed only if ten samples lie beyond it. "
            "Intervals marked as the study's take every sample as independent, which samples of one run are not: they "
            "are there to be compared with the study, and too narrow. The unit of replication is the run."
        } }
    }
}

/// Renders what the method cannot see.
pub(super) fn limits(analysis: &Analysis) -> Markup {
    let gap = analysis
        .summary()
        .combinations
        .iter()
        .find_map(|c| match &c.figures {
            CombinedFigures::Gap(gap) => Some((c, gap)),
            CombinedFigures::Timed(_) => None,
        });
    let timed = analysis
        .summary()
        .combinations
        .iter()
        .any(|c| matches!(c.figures, CombinedFigures::Timed(_)));
    html! {
        ul {
            @if let Some((combination, gap)) = gap {
                li {
                    "Gaps shorter than the threshold (" (words::both(N, gap.threshold, Some(combination.timer_step)))
                    ") are in no figure of gap; they make quiet iterations longer."
                }
                li {
                    "A CPU that is slowed but not taken away (a busy SMT sibling, a lower frequency, a full memory "
                    "bus) lengthens iterations a little and makes no gaps."
                }
            }
            @if timed {
                li {
                    "What happens between the end of one repetition and the start of the next is not seen; the "
                    "calibration says how long that is."
                }
            }
            @if !analysis.summary().combinations.is_empty() { li {
                "Who took the CPU is not observed: an interrupt, another task, the firmware (SMI) and a hypervisor "
                "look alike. That gaps come as often as a tick says no more than that."
            } }
            @if analysis.summary().wakeups.is_empty() { li {
                "One CPU was measured, awake and busy. Nothing here says how late a sleeping task is woken, or how "
                "other CPUs fare."
            } } @else {
                li {
                    "A latency ends when the thread reads the clock. What its work is slowed down by afterwards (cold caches, a low \
                     frequency) is not in it."
                }
                li {
                    "Clocks are those of the place: if a hypervisor stops a guest's clock together with the guest, nothing in \
                     the guest sees that time."
                }
                li {
                    "Who is to blame is told only where the kernel's events were recorded. Interrupts that were off are not seen by \
                     themselves, and what took a virtual CPU from below looks like a late interrupt."
                }
            }
            li {
                "The longest of a run is not the longest possible. Rare events need long runs: what comes once a "
                "minute is mostly missed in ten seconds."
            }
        }
    }
}

/// Renders what was not measured and why.
pub(super) fn not_measured(analysis: &Analysis) -> Markup {
    let summary = analysis.summary();
    let mut table = Table::new(["cell", "run", "state", "why, and what to do"]);
    for cell in &summary.not_measured {
        let state = match cell.state {
            State::Missing => "missing",
            State::Failed => "failed",
            State::LeftOut => "left out",
            State::Damaged => "damaged",
            State::Contradictory => "contradictory",
        };
        table.row([
            format!("{} · {}", cell.id, cell.label),
            cell.block.to_string(),
            state.to_owned(),
            cell.reason.clone(),
        ]);
    }
    html! {
        @if table.rows.is_empty() {
            p { "All " (N.count(summary.planned)) " cells of the plan were measured." }
        } @else {
            p {
                (N.count(summary.done)) " of " (N.count(summary.planned)) " cells of the plan were measured. The others:"
            }
            div.findings { (table.render()) }
        }
        @let notes = || analysis.alarms().iter().filter(|a| a.severity() == Severity::Note);
        @if !summary.notices.is_empty() || notes().next().is_some() {
            h3 { "What was remarked while measuring" }
            ul {
                @for note in notes() { li { (with_code(&note.to_string())) } }
                @for notice in &summary.notices {
                    li { (with_code(&notice.text)) span.note { " (" (name_cells(&notice.cells)) ")" } }
                }
            }
        }
        h3 { "What this method cannot see" }
        (limits(analysis))
    }
}

/// Renders where the run comes from.
pub(super) fn provenance(analysis: &Analysis) -> Markup {
    let plan = analysis.plan();
    let mut rows = vec![
        ("Command", plan.command.join(" ")),
        ("Planned", plan.created.to_string()),
        ("Measured", span(analysis)),
        ("tare", versions(plan, &analysis.summary().tare_version)),
        ("CPU", format!("{}: {}", plan.cpu, plan.cpu_reason)),
        ("Order", order(plan)),
    ];
    let settings: Vec<String> = plan
        .settings
        .iter()
        .map(|setting| format!("{} = {}", setting.path, setting.value))
        .collect();
    let settings = if settings.is_empty() {
        "none".to_owned()
    } else {
        settings.join(", ")
    };
    rows.push(("Kernel settings changed for the run", settings));
    for agent in agents(analysis) {
        rows.push(("Agent", agent));
    }
    facts(&rows)
}

fn versions(plan: &Plan, derived: &str) -> String {
    if plan.tare_version == derived {
        return format!("{derived} measured it and made this report");
    }
    format!(
        "{} measured it, {derived} made this report",
        plan.tare_version
    )
}

fn order(plan: &Plan) -> String {
    let blocks = plan
        .cells
        .iter()
        .map(|cell| cell.block)
        .max()
        .unwrap_or_default();
    let cells = N.count(plan.cells.len() as u64);
    let runs = words::counted(N, u64::from(blocks), "run", "runs");
    format!(
        "{cells} cells in {runs}; each run holds every combination once, in random order (seed {})",
        plan.seed
    )
}

fn span(analysis: &Analysis) -> String {
    let starts = || analysis.measured().map(|cell| cell.started_at);
    match (starts().min(), starts().max()) {
        (Some(first), Some(last)) if first != last => {
            format!("first cell {first}, last cell {last}")
        }
        (Some(first), _) => first.to_string(),
        _ => "nothing".to_owned(),
    }
}

/// Describes every agent and preparation once, with the cells that had it.
fn agents(analysis: &Analysis) -> Vec<String> {
    let mut described: Vec<(String, Vec<u32>)> = Vec::new();
    for cell in analysis.measured() {
        let Some(program) = cell.outcome.record().and_then(Record::program) else {
            continue;
        };
        let (agent, preparation) = (&program.agent, &program.preparation);
        let mut text = format!(
            "{} on {}{}, SHA-256 {}; buffers {}locked; /dev/cpu_dma_latency {}",
            agent.version,
            agent.environment,
            if agent.emulated { " (emulated)" } else { "" },
            agent.sha256,
            if preparation.locked { "" } else { "not " },
            if preparation.latency_held {
                "held at 0"
            } else {
                "not held"
            },
        );
        let placement = Placement::of(analysis.plan(), &cell.plan.target, program);
        text.push_str(&format!("; {}", placement.words()));
        if let Some(accelerator) = &agent.accelerator {
            text.push_str(&format!("; executed by {accelerator}"));
        }
        match described.iter_mut().find(|(known, _)| *known == text) {
            Some((_, cells)) => cells.push(cell.plan.id),
            None => described.push((text, vec![cell.plan.id])),
        }
    }
    described
        .into_iter()
        .map(|(text, cells)| format!("{text} ({})", name_cells(&cells)))
        .collect()
}
