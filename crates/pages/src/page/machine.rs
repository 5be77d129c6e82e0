//! The machine, and what disturbs measuring on it.

use maud::{Markup, html};
use tare_host::{Fact, Finding, Machine, Severity};
use tare_results::MachineRecord;

use crate::html::parts::{N, facts, with_code};

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
                shown(&isolation.isolated, ToString::to_string),
                shown(&isolation.nohz_full, ToString::to_string),
                shown(&isolation.rcu_nocbs, ToString::to_string)
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

fn shown<T>(fact: &Fact<T>, text: impl Fn(&T) -> String) -> String {
    match fact {
        Fact::Known(value) => text(value),
        Fact::Unknown { unknown } => format!("unknown ({unknown})"),
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
