//! What the stamps and the loop cost, how fast the TSC ticks, and what lies between repetitions.

use maud::{Markup, html};
use tare_results::frequency;
use tare_results::model::{Calibration, Cell, Program, Record};
use tare_results::target::TargetSpec;
use tare_stats::{Kind, Level, over_runs};

use tare_figures::Run;
use tare_figures::group::grouped;
use tare_figures::interval::Time;
use tare_figures::words::NONE;

use crate::html::parts::{N, Table, facts};

type Cost = fn(&Calibration) -> f64;

/// The figures of a calibration with their names.
const COSTS: [(&str, Cost); 7] = [
    ("step of\nthe timer", |c| c.step_cycles as f64),
    ("bare rdtsc\namong many", |c| c.bare_read_cycles),
    ("empty region,\nfenced", |c| c.empty_region(false) as f64),
    ("repetition\nof it", |c| c.fenced_cost_cycles),
    ("empty region,\npublished", |c| c.empty_region(true) as f64),
    ("repetition\nof it", |c| c.published_cost_cycles),
    ("iteration of\nan empty loop", |c| c.loop_cycles),
];

/// Renders what the stamps and the loop cost, by target; `None` where no program reported it.
pub(super) fn calibration(run: &Run) -> Option<Markup> {
    let programs = run.cells.iter().filter_map(|cell| {
        let program = cell.outcome.record().and_then(Record::program);
        let program = program.filter(|program| program.is_reported())?;
        // Of a server, the client measures.
        let target = Some(&cell.plan.target).filter(|_| cell.plan.server.is_none());
        Some((target, (cell, program)))
    });
    let mut targets: Vec<Target<'_>> = grouped(programs);
    targets.first()?;
    targets.sort_by_key(|(target, _)| target.map(|target| (target.group, target)));
    let mut costs = Table::new(["median over the cells"]);
    costs.head.extend(COSTS.map(|(name, _)| name.to_owned()));
    for (target, cells) in &targets {
        let mut row = vec![marked(*target, cells)];
        row.extend(COSTS.map(|(_, of)| {
            let mut values: Vec<f64> = cells.iter().map(|(_, p)| of(&p.calibration)).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).map_or_else(
                || NONE.to_owned(),
                |cycles| {
                    let time = Time::new(*cycles, hz_of(cells));
                    let cycles = N.with_unit(&N.short(time.cycles), "cycles");
                    time.ns
                        .map_or(cycles.clone(), |ns| format!("{}\n{cycles}", N.ns(ns, None)))
                },
            )
        }));
        costs.rows.push(row);
    }
    Some(html! {
        p.read {
            "Measured before every cell, for start once before the first one of a target. The "
            "step is the least by which the timer advances: nothing shorter can be seen, and every "
            "duration is uncertain by as much. The empty region is what two stamps with nothing between them "
            "read as at least, 0 if that is less than a step; net figures are less by it. A repetition of it is the total time of stamps and loop."
        }
        (costs.render())
        h3 { "TSC frequency" }
        p.read {
            "Cycles become nanoseconds by this figure. It counts as confirmed only if a source agrees that "
            "got it in another way."
        }
        @let rows = frequencies(&targets);
        (facts(&rows.iter().map(|(name, text)| (name.as_str(), text.clone())).collect::<Vec<_>>()))
    })
}

/// Names a target, marked if an emulator executed it, or the client of servers.
fn marked(target: Option<&TargetSpec>, cells: &[(&Cell, &Program)]) -> String {
    let Some(target) = target else {
        return "the client".to_owned();
    };
    if cells.iter().any(|(_, program)| program.agent.emulated) {
        return format!("{target} (emulated)");
    }
    target.text.clone()
}

type Target<'a> = (Option<&'a TargetSpec>, Vec<(&'a Cell, &'a Program)>);

/// Makes the table of frequencies; targets with the same are one row.
fn frequencies(targets: &[Target<'_>]) -> Vec<(String, String)> {
    let told = targets
        .iter()
        .map(|(target, cells)| (told(cells), marked(*target, cells)));
    let rows = grouped(told).into_iter();
    rows.map(|(text, names)| (names.join(" · "), text))
        .collect()
}

fn hz_of(cells: &[(&Cell, &Program)]) -> Option<f64> {
    let (_, first) = cells.first()?;
    frequency::choose(&first.frequencies).map(|frequency| frequency.hz)
}

fn told(cells: &[(&Cell, &Program)]) -> String {
    let known: Vec<_> = cells
        .iter()
        .filter_map(|(_, program)| frequency::choose(&program.frequencies))
        .collect();
    let Some(first) = known.first() else {
        return "not known; durations are in cycles only".to_owned();
    };
    let each: Vec<f64> = known.iter().map(|tsc| tsc.hz).collect();
    let Ok(over) = over_runs(Kind::Order, &each, Level::P95) else {
        return NONE.to_owned();
    };
    // A frequency that is claimed, or was counted once for all, does not show how it varies.
    let varies = over.lowest < over.highest;
    let mut text = N.with_unit(&N.fixed(over.estimate / 1e6, 4), "MHz");
    let (has, all) = (known.len(), cells.len());
    if varies {
        text.push_str(&match has == all {
            true => format!(", the median of {all} cells"),
            false => format!(", the median of the {has} of {all} cells that know it"),
        });
    }
    let ppm = known.iter().filter_map(|tsc| tsc.uncertainty_ppm);
    if let Some(ppm) = ppm.reduce(f64::max) {
        let each = if varies { ", each ± at most" } else { " ±" };
        text.push_str(&format!("{each} {}", N.with_unit(&N.short(ppm), "ppm")));
    }
    if varies {
        let spread = (over.highest / over.lowest - 1.0) * 1e6;
        let ppm = N.with_unit(&N.short(spread), "ppm");
        text.push_str(&format!(", {ppm} from lowest to highest"));
    }
    format!("{text}; {}", first.note)
}
