//! The machine, and what disturbs measuring on it.

use maud::{Markup, html};
use tare_host::machine::{Disk, Interface, MemoryModule};
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
    let (siblings, control) = (siblings.to_string(), &topology.smt_control);
    let smt = format!("CPU {cpu} shares its core with {siblings}; control {control}");
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
    let caches = match caches.is_empty() {
        true => "not shown".to_owned(),
        false => caches.join(", "),
    };
    let dynamic = if preemption.dynamic { ", dynamic" } else { "" };
    let (model, evidence) = (&preemption.model, &preemption.evidence);
    let [isolated, nohz_full, rcu_nocbs] = [
        &isolation.isolated,
        &isolation.nohz_full,
        &isolation.rcu_nocbs,
    ]
    .map(|of| shown(of, ToString::to_string));
    let invariant = shown(&clock.invariant_tsc, |is| yes(*is, ["yes", "no"]));
    let (runtime, period) = (&sysctls.sched_rt_runtime_us, &sysctls.sched_rt_period_us);
    let is_inside = virtualisation.container.inside;
    let load = shown(&machine.load.average, |average| {
        format!("{:.2} over one minute", average.one_minute)
    });
    let mut rows = Vec::new();
    let mut add = |name, value: String| rows.push((name, value));
    add("Processor", processor.model_name.to_string());
    add("Microcode", processor.microcode.to_string());
    add("CPUs online", topology.online.to_string());
    add("SMT", smt);
    add("NUMA nodes", N.count(topology.numa_nodes.len() as u64));
    add("Caches as claimed", caches);
    add(
        "Memory",
        shown(&machine.memory.total_bytes, |bytes| N.bytes(*bytes)),
    );
    add(
        "Memory modules",
        shown(&machine.devices.memory_modules, |all| modules(all)),
    );
    add("Disks", each(machine.devices.disks.iter().map(disk)));
    add(
        "Network",
        each(machine.devices.interfaces.iter().map(interface)),
    );
    add(
        "Transparent huge pages",
        machine.memory.transparent_hugepages.to_string(),
    );
    add("Distribution", machine.distribution.to_string());
    add("Kernel", kernel.release.to_string());
    add("Preemption", format!("{model}{dynamic}; {evidence}"));
    add(
        "Tick",
        shown(&kernel.tick_hz, |hz| N.with_unit(&hz.to_string(), "Hz")),
    );
    add(
        "Kernel parameters",
        shown(&kernel.parameters, |words| joined(words)),
    );
    add(
        "Debugging options",
        shown(&kernel.debug_options, |words| joined(words)),
    );
    let isolation = format!("isolcpus {isolated}, nohz_full {nohz_full}, rcu_nocbs {rcu_nocbs}");
    add("Isolation", isolation);
    add("Frequency scaling", governor);
    add("Turbo", shown(&power.turbo, |on| yes(*on, ["on", "off"])));
    add("Idle states", idle);
    add(
        "Clock source",
        format!("{}; invariant TSC: {invariant}", clock.current),
    );
    add("Real-time throttling", format!("{runtime} of {period} µs"));
    add(
        "Real-time and control groups",
        machine.process.rt_group.to_string(),
    );
    add("Hypervisor", hypervisor);
    add("Container", yes(is_inside, ["inside one", "not in one"]));
    add("Load before the run", load);
    rows
}

fn each(all: impl Iterator<Item = String>) -> String {
    match all.collect::<Vec<_>>().join("; ") {
        none if none.is_empty() => "none shown".to_owned(),
        all => all,
    }
}

fn modules(all: &[MemoryModule]) -> String {
    each(all.iter().map(|module| {
        let rate = module.mega_transfers.map(|rate| format!(" at {rate} MT/s"));
        let width = module.width_bits.map(|bits| format!(", {bits} bits wide"));
        let further = rate.into_iter().chain(width).collect::<String>();
        format!("{} {}{further}", N.bytes(module.bytes), module.kind)
    }))
}

fn disk(disk: &Disk) -> String {
    let kind = match disk.rotational {
        Fact::Known(true) => "rotating",
        Fact::Known(false) => "solid-state",
        Fact::Unknown { .. } => "kind unknown",
    };
    let model = disk.model.known().map(|model| format!(", {model}"));
    format!(
        "{} {}, {kind}{}",
        disk.name,
        N.bytes(disk.bytes),
        model.unwrap_or_default()
    )
}

fn interface(interface: &Interface) -> String {
    let speed = match interface.megabits {
        Fact::Known(megabits) => format!("{megabits} Mbit/s"),
        Fact::Unknown { .. } => "speed unknown".to_owned(),
    };
    format!("{} {speed}, MTU {}", interface.name, interface.mtu)
}

/// Renders what the doctor found, worst first; what is good is folded away. Where no CPU is measured,
/// none was chosen, and others may be like the one that was looked at.
pub(super) fn findings(findings: &[Finding], measured_cpu: Option<u32>) -> Markup {
    let (good, other): (Vec<&Finding>, Vec<&Finding>) = findings
        .iter()
        .filter(|finding| measured_cpu.is_some() || finding.id != "cpu")
        .partition(|finding| finding.severity == Severity::Good);
    html! {
        @if measured_cpu.is_none() {
            p { "Nothing was pinned to a CPU: findings about one CPU are an example." }
        }
        @if other.is_empty() {
            p { "None of the checks that were possible found an obstacle to measuring." }
        } @else {
            (finding_table(&other))
        }
        @if !good.is_empty() {
            details {
                summary { "Before the run, " (good.len()) " checks found things as they should be" }
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

fn yes(is: bool, [yes, no]: [&str; 2]) -> String {
    if is { yes } else { no }.to_owned()
}
