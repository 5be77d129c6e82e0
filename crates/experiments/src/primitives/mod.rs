//! `primitives`, after cse221-2022: what the primitives of a processor and an operating system
//! should cost, and what they cost.
//!
//! A cell measures one area of primitives on one target. What each should cost is worked out
//! before, from the machine's description and the core's measured clock, and stands in the plan.

mod parameters;
mod predictions;
mod story;

use tare_host::machine::Topology;
use tare_host::{Machine, Source};
use tare_lab::ExperimentError;
use tare_lab::experiment::{Conditions, Experiment};
use tare_lab::parameter::{Parameter, Values};
use tare_lab::plan::at_most;
use tare_lab::units::bytes;
use tare_measured::primitives::linux::all;
use tare_measured::primitives::{Area, BARE, Plan, Primitive, memory};
use tare_results::model::{CellPlan, Expected, Labels};
use tare_results::target::{Kernel, TargetSpec};
use tare_results::work::Work;
use tare_wire::cpus::Cpus;

use parameters::{BUDGET, DIR, LARGEST, LIMIT, ONLY, PEER, REMOTE};
use predictions::Predictions;

/// The name of the experiment.
pub const NAME: &str = "primitives";
/// The label of what is measured.
const PRIMITIVE: &str = "primitive";
/// The label of what it belongs to.
const AREA: &str = "area";
/// The figures of primitives that have no costs: they are tags of theirs.
const BANDWIDTH: &str = "bandwidth";
const SHARE: &str = "share";

/// The experiment, as studies name it.
#[derive(Clone, Copy, Debug)]
pub struct Primitives;

impl Experiment for Primitives {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "what the primitives of an operating system cost, against what they should cost"
    }

    fn without_arguments(&self) -> &'static str {
        "Without arguments, every primitive is measured six times, in a process on the quietest CPU; if it has two sides, with the \
         other side on the same CPU and on another one."
    }

    fn parameters(&self) -> &'static [Parameter] {
        parameters::ALL
    }

    fn cpus(&self, values: &Values, _allowed: &Cpus) -> Option<Cpus> {
        parameters::cpu_set(values)
    }

    fn combinations(
        &self,
        conditions: &Conditions,
        values: &Values,
    ) -> Result<Vec<CellPlan>, ExperimentError> {
        combinations(conditions, values)
    }

    fn work(&self, words: &str) -> Option<Work> {
        let plan = Plan::parse(words.split_whitespace()).ok()?;
        let words = words.split_whitespace();
        let own = words.filter(|word| {
            !["workload=", "cpu="]
                .iter()
                .any(|key| word.starts_with(key))
        });
        let own: Vec<&str> = own.collect();
        Some(Work {
            cpus: plan.cpus,
            ..work(plan.area, &own.join(" "), plan.cache)
        })
    }

    fn listing(&self) -> Option<String> {
        Some(listing())
    }
}

/// Returns one cell for each target, load and area, not yet numbered.
fn combinations(
    conditions: &Conditions,
    values: &Values,
) -> Result<Vec<CellPlan>, ExperimentError> {
    let machine = Machine::collect(&Source::system());
    let own = parameters::own_predictions(values)?;
    let predictions = Predictions::read(own.as_deref(), &machine).map_err(contradiction)?;
    let wanted = parameters::wanted(values);
    let mut areas: Vec<Area> = wanted.iter().map(|primitive| primitive.area).collect();
    areas.dedup();
    let places = conditions.targets.len() as u64 * conditions.loads.len() as u64;
    at_most(places.saturating_mul(areas.len() as u64))?;
    let (measured, others) = cpus(conditions, values, &machine);
    let cache = largest_cache(&machine);
    let mut cells = Vec::new();
    for target in &conditions.targets {
        for load in &conditions.loads {
            let own = areas.iter().filter(|area| {
                let mut own = wanted.iter().filter(|primitive| primitive.area == **area);
                own.any(|primitive| is_there(target, primitive))
            });
            // The unikernel has no second process.
            let others = others.iter().filter(|_| target.kernel() != Kernel::None);
            let cpus: Cpus = std::iter::once(measured).chain(others.copied()).collect();
            for area in own.copied() {
                let mut words = words(area, values);
                let is_here = !target.kernel().is_remote() && area == Area::Memory;
                let cache = cache.filter(|_| is_here);
                if let Some(bytes) = cache {
                    words.push_str(&format!(" cache={bytes}"));
                }
                // A guest has other numbers for them, in the same order.
                let place = cpus.iter().position(|cpu| cpu == measured);
                if let Some(place) = place.filter(|place| place + 1 < cpus.iter().count()) {
                    words.push_str(&format!(" place={place}"));
                }
                let work = Work {
                    threads: cpus.count(),
                    cpus: Some(cpus),
                    ..work(area, &words, cache)
                };
                let cell = CellPlan {
                    labels: Labels::default().with(AREA, area.name()),
                    expected: expected(&predictions, target, area, &wanted),
                    ..CellPlan::new(NAME, target.clone(), area.name(), work)
                };
                let of_area = |primitive: &&&Primitive| primitive.area == area;
                let own = wanted.iter().filter(of_area).count();
                let share = own as f64 / all().filter(|one| one.area == area).count() as f64;
                let seconds = seconds(area, values) * share;
                let mut cell = conditions.under(load, cell, seconds);
                if conditions.cell_limit.is_none() {
                    // Each may hang until it is ended, and the others still have their time.
                    cell.limit_seconds += own as f64 * LIMIT.number(values) as f64 / 1e9;
                }
                cells.push(cell);
            }
        }
    }
    if cells.is_empty() {
        return Err(contradiction(
            "none of these primitives exists on the unikernel: choose others, or another target"
                .to_owned(),
        ));
    }
    Ok(cells)
}

/// Says whether a target has a primitive.
fn is_there(target: &TargetSpec, primitive: &Primitive) -> bool {
    let is_bare = primitive.needs.is_empty() || BARE.contains(&primitive.id);
    target.kernel() != Kernel::None || is_bare
}

/// Returns the measured CPU and those of the other side.
fn cpus(conditions: &Conditions, values: &Values, machine: &Machine) -> (u32, Vec<u32>) {
    if let Some(given) = parameters::given_cpus(values) {
        return given;
    }
    let measured = conditions.cpu;
    let allowed = machine.process.affinity.known();
    let others = allowed.into_iter().flat_map(|list| list.iter());
    let others = others.filter(|cpu| *cpu != measured);
    (measured, partners(measured, others, &machine.topology))
}

/// Chooses CPUs for the other side: one of the same package that shares no core with the measured
/// one, and one of another package, as far as there are such. CPU 0, which serves most interrupts,
/// comes last.
fn partners(measured: u32, others: impl Iterator<Item = u32>, topology: &Topology) -> Vec<u32> {
    let siblings = topology.siblings(measured);
    let (near, far): (Vec<u32>, Vec<u32>) =
        others.partition(|cpu| topology.in_one_package(measured, *cpu));
    let near = near.into_iter();
    let near = near.min_by_key(|cpu| (siblings.contains(*cpu), *cpu == 0));
    let far = far.into_iter().min_by_key(|cpu| *cpu == 0);
    near.into_iter().chain(far).collect()
}

/// Returns the bytes of the largest cache, as claimed, if it is larger than the usual arrays are
/// made for; at most what leaves most of the memory alone.
fn largest_cache(machine: &Machine) -> Option<u64> {
    let caches = machine.topology.caches.iter();
    let largest = caches.map(|cache| cache.size_bytes).max()?;
    let most = machine.memory.total_bytes.known()? / 64;
    let cache = Some(largest.min(most));
    (memory::most(cache) > memory::most(None) || memory::array(cache) > memory::array(None))
        .then_some(cache)?
}

/// Makes the work of an area.
fn work(area: Area, words: &str, cache: Option<u64>) -> Work {
    let buffer_bytes = match area {
        // Latencies in huge and in small pages: both are mapped until the primitive ends.
        Area::Memory => 2 * memory::most(cache),
        _ => 2 << 20,
    };
    Work {
        buffer_bytes: buffer_bytes as u64,
        reports_between: true,
        ..Work::new(NAME, words)
    }
}

/// Returns the words of an area next to its id and its CPUs.
fn words(area: Area, values: &Values) -> String {
    let mut words = format!("area={}", area.name());
    let only = values.texts(ONLY.name);
    if !only.is_empty() {
        words.push_str(&format!(" only={}", only.join(",")));
    }
    for (key, parameter) in [("dir", DIR), ("remote", REMOTE), ("peer", PEER)] {
        let given = values.text(parameter.name);
        if let Some(text) = given.filter(|text| *text != parameter.default) {
            words.push_str(&format!(" {key}={text}"));
        }
    }
    let largest = values.text(LARGEST.name);
    if let Some(largest) = largest
        .filter(|text| *text != LARGEST.default)
        .and_then(bytes)
    {
        words.push_str(&format!(" largest={largest}"));
    }
    words.push_str(&format!(
        " budget={}ns limit={}ns",
        BUDGET.number(values),
        LIMIT.number(values)
    ));
    words
}

/// Returns what is expected of the primitives of a cell: of this machine, so of no other.
fn expected(
    predictions: &Predictions,
    target: &TargetSpec,
    area: Area,
    wanted: &[&Primitive],
) -> Vec<Expected> {
    if target.kernel().is_remote() {
        return Vec::new();
    }
    let own = wanted.iter().filter(|primitive| primitive.area == area);
    // Without an operating system, only what the processor does is as it is with one.
    let own = own.filter(|primitive| target.kernel() != Kernel::None || primitive.needs.is_empty());
    let own = own.flat_map(|primitive| predictions.of(primitive.id, figure_of(primitive)));
    let mut own = Vec::from_iter(own);
    own.extend((!own.is_empty()).then(|| predictions.cycle()).flatten());
    own
}

/// Returns the measure of a primitive's figure.
fn figure_of(primitive: &Primitive) -> &'static str {
    let others = [BANDWIDTH, SHARE].into_iter();
    let mut own = others.filter(|tag| primitive.tags.contains(tag));
    own.next().unwrap_or("cost")
}

/// Estimates how long an area takes, in seconds, without what its target needs to start.
fn seconds(area: Area, values: &Values) -> f64 {
    let budget = BUDGET.number(values) as f64 / 1e9;
    // Series, each of about one budget, and what does not depend on it.
    let (series, fixed) = match area {
        Area::Processor => (30.0, 0.2),
        Area::Syscall => (45.0, 0.2),
        Area::Signal => (12.0, 0.2),
        Area::Process => (50.0, 1.0),
        Area::Switch => (60.0, 0.5),
        Area::Scheduling => (20.0, 1.5),
        Area::Memory => (140.0, 4.0),
        Area::Fault => (40.0, 2.0),
        Area::Ipc => (40.0, 0.5),
        Area::Network => (60.0, 0.5),
        Area::File => (60.0, 5.0),
    };
    series * budget + fixed
}

fn contradiction(why: String) -> ExperimentError {
    ExperimentError::Contradiction {
        experiment: NAME,
        why,
    }
}

/// Lists the primitives, each with what it is, how it is measured, and what it needs.
fn listing() -> String {
    let mut text = String::new();
    let mut area = None;
    for primitive in all() {
        if area != Some(primitive.area) {
            area = Some(primitive.area);
            text.push_str(&format!("{}\n", primitive.area.name()));
        }
        text.push_str(&format!("  {:<26}{}\n", primitive.id, primitive.title));
        text.push_str(&format!("      {}\n", primitive.method));
        let needs: Vec<String> = primitive.needs.iter().map(ToString::to_string).collect();
        let unit = match figure_of(primitive) {
            BANDWIDTH => "bytes/s",
            SHARE => "share of 1",
            _ => "ns",
        };
        let mut about = vec![unit.to_owned()];
        about.extend(
            (!primitive.tags.is_empty()).then(|| format!("tags: {}", primitive.tags.join(", "))),
        );
        let elsewhere = match BARE.contains(&primitive.id) {
            true => " (the unikernel has a counterpart)",
            false => "",
        };
        about.extend((!needs.is_empty()).then(|| format!("needs {}{elsewhere}", needs.join(", "))));
        text.push_str(&format!("      {}\n", about.join("; ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_side_is_on_another_core_then_in_another_package() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join("sys/devices/system/cpu").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        // Two packages of two cores of two CPUs; package 1 has the odd CPUs.
        write("online", "0-7");
        for cpu in 0..8 {
            let core = cpu % 4;
            let siblings = format!("{core},{}", core + 4);
            write(
                &format!("cpu{cpu}/topology/thread_siblings_list"),
                &siblings,
            );
            let package = (cpu % 2).to_string();
            write(&format!("cpu{cpu}/topology/physical_package_id"), &package);
        }
        let topology = Machine::collect(&Source::at(folder.path())).topology;
        let partners = |measured, others: &[u32]| {
            let others = others.iter().copied();
            partners(measured, others, &topology)
        };
        assert_eq!(partners(2, &[0, 1, 3, 4, 5, 6, 7]), [4, 1]);
        assert_eq!(partners(2, &[0, 6]), [0]);
        assert_eq!(partners(2, &[6]), [6]);
        assert_eq!(partners(3, &[0, 2]), [2]);
        assert!(partners(0, &[]).is_empty());
    }
}
