//! The machine, what disturbs measuring on it, and what the timer costs.

use maud::{Markup, html};
use tare_host::{Fact, Finding, Machine, Severity};
use tare_results::MachineRecord;
use tare_results::model::{Calibration, Cell, Measurement, Outcome};

use crate::analysis::{Analysis, CombinedFigures, Time};
use crate::words;

use super::parts::{N, Table, facts, none, with_code};

/// Renders the description of the machine.
pub(super) fn machine(record: &MachineRecord, cpu: u32) -> Markup {
    facts(&described(&record.machine, cpu))
}

fn described(machine: &Machine, cpu: u32) -> Vec<(&'static str, String)> {
    let processor = &machine.processor;
    let topology = &machine.topology;
    let siblings = topology.siblings(cpu);
    let smt = if siblings.is_empty() {
        format!(
            "CPU {cpu} shares its core with none; control {}",
            topology.smt_control
        )
    } else {
        format!(
            "CPU {cpu} shares its core with {siblings}; control {}",
            topology.smt_control
        )
    };
    let caches: Vec<String> = topology
        .caches
        .iter()
        .map(|cache| {
            format!(
                "L{} {} {}",
                cache.level,
                cache.kind,
                N.bytes(cache.size_bytes)
            )
        })
        .collect();
    let power = &machine.power;
    let governor = power.frequency_of(cpu).map_or_else(
        || match &power.frequency {
            Fact::Known(_) => "no frequency scaling shown for this CPU".to_owned(),
            Fact::Unknown { unknown } => format!("unknown ({unknown})"),
        },
        |group| format!("governor {}, driver {}", group.governor, group.driver),
    );
    let idle = power.deepest_idle_state(cpu).map_or_else(
        || format!("driver {}", power.idle_driver),
        |state| {
            let latency = N.ns(state.exit_latency_us as f64 * 1e3, None);
            format!(
                "deepest state allowed: {}, {latency} to leave it",
                state.name
            )
        },
    );
    let kernel = &machine.kernel;
    let preemption = &kernel.preemption;
    let isolation = &machine.isolation;
    let clock = &machine.clock;
    let virtualisation = &machine.virtualisation;
    let product = virtualisation
        .product
        .known()
        .filter(|product| !product.is_empty());
    let product = product.map_or_else(String::new, |product| format!(" ({product})"));
    let hypervisor = match &virtualisation.hypervisor {
        Fact::Known(Some(name)) => format!("guest of {name}{product}"),
        Fact::Known(None) => format!("none{product}"),
        Fact::Unknown { unknown } => format!("unknown ({unknown})"),
    };
    let sysctls = &machine.sysctls;
    let mut rows = vec![
        ("Processor", processor.model_name.to_string()),
        ("Microcode", processor.microcode.to_string()),
        ("CPUs online", topology.online.to_string()),
        ("SMT", smt),
        ("NUMA nodes", N.count(topology.numa_nodes.len() as u64)),
        (
            "Caches as claimed",
            if caches.is_empty() {
                "not shown".to_owned()
            } else {
                caches.join(", ")
            },
        ),
        (
            "Memory",
            shown(&machine.memory.total_bytes, |bytes| N.bytes(*bytes)),
        ),
        (
            "Transparent huge pages",
            machine.memory.transparent_hugepages.to_string(),
        ),
        ("Distribution", machine.distribution.to_string()),
        ("Kernel", kernel.release.to_string()),
        (
            "Preemption",
            format!(
                "{}{}; {}",
                preemption.model,
                if preemption.dynamic { ", dynamic" } else { "" },
                preemption.evidence
            ),
        ),
        (
            "Tick",
            shown(&kernel.tick_hz, |hz| N.with_unit(&hz.to_string(), "Hz")),
        ),
        (
            "Kernel parameters",
            shown(&kernel.parameters, |words| joined(words)),
        ),
        (
            "Debugging options",
            shown(&kernel.debug_options, |words| joined(words)),
        ),
        (
            "Isolation",
            format!(
                "isolcpus {}, nohz_full {}, rcu_nocbs {}",
                shown(&isolation.isolated, list),
                shown(&isolation.nohz_full, list),
                shown(&isolation.rcu_nocbs, list)
            ),
        ),
        ("Frequency scaling", governor),
        (
            "Turbo",
            shown(&power.turbo, |on| if *on { "on" } else { "off" }.to_owned()),
        ),
        ("Idle states", idle),
        (
            "Clock source",
            format!(
                "{}; invariant TSC: {}",
                clock.current,
                shown(&clock.invariant_tsc, yes)
            ),
        ),
        (
            "Real-time throttling",
            format!(
                "{} of {} µs",
                sysctls.sched_rt_runtime_us, sysctls.sched_rt_period_us
            ),
        ),
        (
            "Real-time and control groups",
            machine.process.rt_group.to_string(),
        ),
        ("Hypervisor", hypervisor),
        (
            "Container",
            if virtualisation.container.inside {
                "inside one"
            } else {
                "not in one"
            }
            .to_owned(),
        ),
        (
            "Load before the run",
            shown(&machine.load.average, |average| {
                format!("{:.2} over one minute", average.one_minute)
            }),
        ),
    ];
    if let Some(name) = &machine.hostname {
        rows.insert(0, ("Name", name.clone()));
    }
    rows
}

/// Renders what the doctor found, worst first; what is good is folded away.
pub(super) fn findings(findings: &[Finding]) -> Markup {
    let (good, other): (Vec<&Finding>, Vec<&Finding>) = findings
        .iter()
        .partition(|finding| finding.severity == Severity::Good);
    html! {
        @if other.is_empty() {
            p { "None of the things that could be checked stands in the way of measuring." }
        } @else {
            (finding_table(&other))
        }
        @if !good.is_empty() {
            details {
                summary { (good.len()) " checks found things as they should be" }
                (finding_table(&good))
            }
        }
    }
}

fn finding_table(findings: &[&Finding]) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table.findings {
                thead { tr {
                    th scope="col" { "what" } th scope="col" { "found" }
                    th scope="col" { "why it matters, and what to do" }
                } }
                tbody {
                    @for finding in findings {
                        tr {
                            th scope="row" {
                                (finding.title) br;
                                span class=(finding.severity.to_string()) { (finding.severity) }
                            }
                            td { (with_code(&finding.state)) }
                            td {
                                (with_code(&finding.why))
                                @if let Some(remedy) = &finding.remedy { br; b { "→ " } (with_code(remedy)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

type Cost = fn(&Calibration) -> f64;

/// Are the figures of a calibration with their names.
const COSTS: [(&str, Cost); 7] = [
    ("step of the timer", |c| c.step_cycles as f64),
    ("one bare rdtsc among many", |c| c.bare_read_cycles),
    ("empty region, fenced stamps", |c| {
        c.fenced_region_cycles as f64
    }),
    ("repetition of it", |c| c.fenced_cost_cycles),
    ("empty region, published stamps", |c| {
        c.published_region_cycles as f64
    }),
    ("repetition of it", |c| c.published_cost_cycles),
    ("iteration of an empty loop", |c| c.loop_cycles),
];

/// Renders what the stamps and the loop cost, by target.
pub(super) fn calibration(analysis: &Analysis) -> Markup {
    let mut targets: Vec<(&str, Vec<(&Cell, &Measurement)>)> = Vec::new();
    for cell in analysis.cells() {
        let Outcome::Done(measured) = &cell.outcome else {
            continue;
        };
        let entry = (cell, &**measured);
        match targets
            .iter_mut()
            .find(|(name, _)| *name == cell.plan.target)
        {
            Some((_, cells)) => cells.push(entry),
            None => targets.push((&cell.plan.target, vec![entry])),
        }
    }
    let mut costs = Table::new(["median over the cells"]);
    costs
        .head
        .extend(targets.iter().map(|(target, _)| (*target).to_owned()));
    for (name, of) in COSTS {
        let mut row = vec![name.to_owned()];
        row.extend(targets.iter().map(|(_, cells)| {
            let mut values: Vec<f64> = cells.iter().map(|(_, m)| of(&m.calibration)).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).map_or_else(none, |cycles| {
                let time = Time::new(*cycles, hz_of(analysis, cells));
                let cycles = N.with_unit(&N.short(time.cycles), "cycles");
                time.ns.map_or(cycles.clone(), |ns| {
                    format!("{cycles} ({})", N.ns(ns, None))
                })
            })
        }));
        costs.rows.push(row);
    }
    html! {
        p.read {
            "Measured on the same CPU just before every cell. The "
            "step is the least by which the timer advances: nothing shorter can be seen, and every "
            "duration is uncertain by as much. The empty region is what two stamps with nothing between them "
            "read as at least; net figures are less by it. A repetition of it is what stamps and loop take in all."
        }
        (costs.render())
        h3 { "TSC frequency" }
        p.read {
            "Cycles become nanoseconds by this figure. It counts as confirmed only if a source agrees that "
            "got it in another way."
        }
        (facts(&targets.iter().map(|(target, cells)| (*target, frequency(analysis, cells))).collect::<Vec<_>>()))
        @if let Some(table) = dead_time(analysis) {
            h3 { "Between repetitions" }
            p.read {
                "Mean time from the end of one repetition to the start of the next, in which nothing is seen: "
                "what delays the CPU there is in no figure."
            }
            (table.render())
        }
    }
}

fn hz_of(analysis: &Analysis, cells: &[(&Cell, &Measurement)]) -> Option<f64> {
    let id = cells.first()?.0.plan.id;
    let cell = analysis.summary().cells.iter().find(|cell| cell.id == id)?;
    cell.tsc.as_ref().map(|tsc| tsc.hz)
}

fn frequency(analysis: &Analysis, cells: &[(&Cell, &Measurement)]) -> String {
    let of = |id: u32| analysis.summary().cells.iter().find(|cell| cell.id == id);
    let known: Vec<_> = cells
        .iter()
        .filter_map(|(cell, _)| of(cell.plan.id)?.tsc.as_ref())
        .collect();
    let Some(first) = known.first() else {
        return "not known; durations are in cycles only".to_owned();
    };
    let low = known.iter().map(|tsc| tsc.hz).fold(f64::INFINITY, f64::min);
    let high = known.iter().map(|tsc| tsc.hz).fold(0.0, f64::max);
    let mut text = N.with_unit(&N.fixed(first.hz / 1e6, 4), "MHz");
    if let Some(ppm) = first.uncertainty_ppm {
        text.push_str(&format!(" ± {}", N.with_unit(&N.short(ppm), "ppm")));
    }
    let spread = (high / low - 1.0) * 1e6;
    if known.len() > 1 {
        let ppm = N.with_unit(&N.short(spread), "ppm");
        text.push_str(&format!(
            ", {ppm} from lowest to highest of {} cells",
            known.len()
        ));
    }
    format!("{text}; {}", first.note)
}

fn dead_time(analysis: &Analysis) -> Option<Table> {
    let mut table = Table::new(["cells", "dead time", "repetition of an empty region"]);
    for combination in &analysis.summary().combinations {
        let CombinedFigures::Timed(_) = &combination.figures else {
            continue;
        };
        let id = *combination.cells.first()?;
        let cell = analysis.summary().cells.iter().find(|cell| cell.id == id)?;
        let timed = cell.figures.timed()?;
        let record = analysis.cells().iter().find(|cell| cell.plan.id == id)?;
        let Outcome::Done(measured) = &record.outcome else {
            continue;
        };
        let costs = &measured.calibration;
        let empty = match combination.timing.as_str() {
            "published" => costs.published_cost_cycles,
            _ => costs.fenced_cost_cycles,
        };
        let both = |time: Time| words::both(N, time, None);
        table.row([
            combination.label.clone(),
            both(timed.dead_time),
            both(Time::new(empty, combination.tsc_hz)),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

fn shown<T>(fact: &Fact<T>, text: impl Fn(&T) -> String) -> String {
    match fact {
        Fact::Known(value) => text(value),
        Fact::Unknown { unknown } => format!("unknown ({unknown})"),
    }
}

fn list(cpus: &tare_host::CpuList) -> String {
    if cpus.is_empty() {
        "none".to_owned()
    } else {
        cpus.to_string()
    }
}

fn joined(words: &[String]) -> String {
    if words.is_empty() {
        "none".to_owned()
    } else {
        words.join(" ")
    }
}

fn yes(is: &bool) -> String {
    if *is { "yes" } else { "no" }.to_owned()
}
