//! The machine as it is claimed to be, and as it turns out to be.

use maud::{Markup, html};
use tare_figures::Run;
use tare_figures::rows::Figure;
use tare_host::machine::Cache;
use tare_host::{Fact, Machine};
use tare_pages::html::parts::{N as P, Table, facts};
use tare_stats::MemoryLevel;

use super::super::predictions;
use super::measures::Points;
use super::{N, known};

/// By how much a size may be beside the claimed one, as a factor: one step of the grid.
const STEP: f64 = 1.2;
/// Bytes of a small page.
const PAGE: u64 = 4_096;

/// Returns the target whose memory hierarchy is told: the first that no emulator executes, on this machine.
fn target(run: &Run) -> Option<&str> {
    let mut rows = known(run, "latency", Figure::Min);
    let own = rows.find(|(row, _)| !row.emulated && !row.group.capabilities().kernel.is_remote());
    own.map(|(row, _)| row.target.as_str())
}

/// Returns the least latencies of all runs: what a neighbour takes of a cache in one of them is not taken for its end.
pub(super) fn least<'a>(run: &'a Run, target: &str) -> Points<'a> {
    let rows = known(run, "latency", Figure::Min);
    let own = rows.filter(|(row, _)| row.target == target && row.load == "idle");
    let least = own.filter_map(|(row, _)| Some((&row.labels, row.over.as_ref().ok()?.lowest)));
    Points(least.collect())
}

/// Returns the latency of a load that no cache holds, on a target. A single level is no hierarchy, and the last level of a curve that ends
/// within the claimed caches is one of these.
pub(super) fn slowest(run: &Run, target: &str) -> Option<f64> {
    let points = least(run, target);
    let levels = points.levels();
    let claimed = caches(run).last().map_or(0, |cache| cache.size_bytes);
    let is_beyond = levels.len() > 1 && points.largest() > claimed as f64;
    levels
        .last()
        .filter(|_| is_beyond)
        .map(|level| level.latency)
}

/// Returns the caches of the measured CPU that hold data, from the first level on: those of others may be larger.
pub(super) fn caches(run: &Run) -> Vec<&Cache> {
    let machine = run.machine.iter();
    let mut caches: Vec<&Cache> = machine
        .flat_map(|it| &it.machine.topology.caches)
        .filter(|cache| !cache.kind.eq_ignore_ascii_case("instruction"))
        .collect();
    let is_own = |cache: &Cache| {
        let mut lists = cache.shared_by.iter();
        lists.any(|list| list.contains(run.plan.cpu))
    };
    caches.sort_by_key(|cache| (cache.level, !is_own(cache)));
    caches.dedup_by_key(|cache| cache.level);
    caches
}

/// Returns the level that was found for each cache: the one whose size is nearest, and every level but once. Where fewer were
/// found than there are caches, the last cache has the last level.
fn matched<'a>(
    caches: &[&'a Cache],
    found: &[MemoryLevel],
) -> Vec<(&'a Cache, Option<MemoryLevel>)> {
    let ends: Vec<MemoryLevel> = found
        .iter()
        .filter(|level| level.capacity.is_some())
        .copied()
        .collect();
    let mut next = 0;
    let mut matched = Vec::new();
    for (place, cache) in caches.iter().enumerate() {
        let is_last = place + 1 == caches.len();
        let left = ends.len().saturating_sub(next);
        let own = match (ends.get(next), ends.last()) {
            (_, Some(last)) if is_last && left > 0 => Some(*last),
            (Some(level), _) => {
                let far = level
                    .capacity
                    .map(|bytes| (bytes / cache.size_bytes as f64).ln().abs());
                let fits = far.is_some_and(|far| far <= 2.0 * STEP.ln())
                    || left > caches.len() - place - 1;
                fits.then_some(*level)
            }
            _ => None,
        };
        next += usize::from(own.is_some());
        matched.push((*cache, own));
    }
    matched
}

/// Returns what the machine claims next to what was found.
pub(super) fn table(run: &Run) -> Table {
    let mut table = Table::new(["", "claimed", "effective"]);
    table.rows.extend(claimed(run).into_iter().map(Vec::from));
    table
}

/// Lists what the machine claims next to what was found: name, claimed, effective.
pub(super) fn claimed(run: &Run) -> Vec<[String; 3]> {
    let (Some(target), Some(machine)) = (target(run), run.machine.as_ref()) else {
        return clock(run).into_iter().collect();
    };
    let machine = &machine.machine;
    let points = least(run, target);
    let levels = points.levels();
    let mut rows: Vec<[String; 3]> = clock(run).into_iter().collect();
    for (cache, level) in matched(&caches(run), &levels) {
        let effective = match level {
            Some(MemoryLevel {
                capacity: Some(bytes),
                latency,
            }) => format!("{}, {}", N.bytes(bytes as u64), N.ns(latency, None)),
            _ => "not told apart".to_owned(),
        };
        let claimed = N.bytes(cache.size_bytes);
        rows.push([
            format!("L{} {}", cache.level, cache.kind.to_lowercase()),
            claimed,
            effective,
        ]);
    }
    if let Some(ns) = slowest(run, target) {
        let claimed = match &machine.memory.total_bytes {
            Fact::Known(bytes) => N.bytes(*bytes),
            Fact::Unknown { unknown } => format!("unknown ({unknown})"),
        };
        rows.push(["memory".to_owned(), claimed, N.ns(ns, None)]);
    }
    if let Some(bytes) = points.line_size() {
        let claimed = caches(run).first().and_then(|cache| cache.line_bytes);
        let claimed = claimed.map_or_else(|| "not told".to_owned(), |bytes| N.bytes(bytes));
        rows.push(["cache line".to_owned(), claimed, N.bytes(bytes as u64)]);
    }
    let told = machine.topology.tlb_pages.known();
    let mut told = told.into_iter().flatten().copied();
    for (level, bytes) in (1..).zip(points.tlb_reach()) {
        let claimed = told.next().map(|pages| u64::from(pages) * PAGE);
        rows.push([
            format!("reach of TLB level {level}"),
            claimed.map_or_else(|| "not told".to_owned(), pages),
            pages(bytes as u64),
        ]);
    }
    rows.extend(file_cache(run, target, machine));
    let modules = machine
        .devices
        .memory_modules
        .known()
        .map(Vec::as_slice)
        .unwrap_or_default();
    for (id, name) in [
        ("bandwidth-read", "read bandwidth, one core"),
        ("bandwidth-read-all", "read bandwidth, all cores"),
    ] {
        let rows_of = known(run, "bandwidth", Figure::Max)
            .filter(|(row, _)| row.target == target && row.has("primitive", id));
        let best = rows_of.max_by_key(|(row, _)| row.labels.number("size"));
        if let Some((_, rate)) = best {
            let peak: Option<f64> = modules
                .iter()
                .map(|module| {
                    Some(
                        f64::from(module.mega_transfers?) * 1e6 * f64::from(module.width_bits?)
                            / 8.0,
                    )
                })
                .sum();
            let claimed = peak.filter(|peak| *peak > 0.0);
            // Two modules on one channel share its rate, and nothing tells which are.
            let claimed = claimed.map(|peak| format!("at most {}", rate_of(peak)));
            let claimed = claimed.unwrap_or_else(|| "not told".to_owned());
            rows.push([name.to_owned(), claimed, rate_of(rate)]);
        }
    }
    rows
}

/// Writes how far a TLB reaches, given in bytes.
fn pages(bytes: u64) -> String {
    format!(
        "{} ({} pages of 4 KiB)",
        N.bytes(bytes),
        N.count(bytes / PAGE)
    )
}

/// Returns how much the file cache holds: the largest file that is read again about as fast as the smallest ones.
fn file_cache(run: &Run, target: &str, machine: &Machine) -> Option<[String; 3]> {
    /// By how much a file that is in the cache may be slower than another one that is.
    const SLOWER: f64 = 4.0;
    let own = known(run, "bandwidth", Figure::Max).filter(|(row, _)| {
        row.target == target && row.has("primitive", "file-cache") && row.has("reading", "second")
    });
    let sizes = own.filter_map(|(row, rate)| Some((row.labels.number("size")?, rate)));
    let mut sizes: Vec<(u64, f64)> = sizes.collect();
    sizes.sort_by_key(|(size, _)| *size);
    let best = sizes.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let held = sizes.iter().take_while(|(_, rate)| *rate * SLOWER >= best);
    let (held, _) = held.last()?;
    let (largest, _) = sizes.last()?;
    let effective = match held == largest {
        true => format!("at least {}", N.bytes(*held)),
        false => N.bytes(*held),
    };
    let claimed = machine
        .memory
        .total_bytes
        .known()
        .map_or_else(String::new, |bytes| format!("up to {}", N.bytes(*bytes)));
    Some(["file cache".to_owned(), claimed, effective])
}

fn rate_of(rate: f64) -> String {
    tare_figures::rows::written(rate, "bytes/s")
}

/// Returns the frequency of the core's clock, as claimed and as it turned out.
fn clock(run: &Run) -> Option<[String; 3]> {
    let machine = run.machine.as_ref()?;
    let (_, hz) = known(run, "core-clock", Figure::MEDIAN).find(|(row, _)| !row.emulated)?;
    let claimed = predictions::khz(&machine.machine);
    let claimed = claimed.map_or_else(
        || "not told".to_owned(),
        |khz| format!("{} GHz", N.fixed(khz / 1e6, 2)),
    );
    Some([
        "core clock".to_owned(),
        claimed,
        format!("{} GHz", N.fixed(hz / 1e9, 2)),
    ])
}

/// Says in a sentence what the caches are worth: `Claimed 32 MiB of L3 cache, effective 8 MiB.`
pub(super) fn sentence(run: &Run) -> Option<String> {
    let target = target(run)?;
    let matched = matched(&caches(run), &least(run, target).levels());
    let each: Vec<String> = matched
        .iter()
        .filter_map(|(cache, level)| {
            let bytes = level.as_ref()?.capacity?;
            let claimed = cache.size_bytes as f64;
            let far = (bytes / claimed).ln().abs();
            (far > STEP.ln() * 1.05).then(|| {
                format!(
                    "claimed {} of L{} cache, effective {}",
                    N.bytes(cache.size_bytes),
                    cache.level,
                    N.bytes(bytes as u64)
                )
            })
        })
        .collect();
    let as_claimed = matched.iter().filter(|(_, level)| level.is_some()).count() - each.len();
    match (each.is_empty(), as_claimed) {
        (true, 0) => None,
        (true, all) => Some(format!("{all} cache levels are as large as claimed.")),
        (false, _) => Some(format!(
            "{}.",
            tare_figures::words::capital(&each.join("; "))
        )),
    }
}

/// Renders the description of the machine as the study has it, and what is effective of it.
pub(super) fn section(run: &Run) -> Markup {
    let table = table(run);
    let described = run
        .machine
        .as_ref()
        .map(|machine| described(&machine.machine));
    html! {
        @if !table.is_empty() { (table.render()) }
        @if let Some(rows) = described {
            h3 { "The machine as the study describes it" }
            (facts(&rows))
        }
    }
}

fn described(machine: &Machine) -> Vec<(&'static str, String)> {
    let joined = |all: Vec<String>| match all.is_empty() {
        true => "none shown".to_owned(),
        false => all.join("; "),
    };
    let caches = machine.topology.caches.iter().map(|cache| {
        let line = cache.line_bytes.map_or_else(String::new, |bytes| {
            format!(", lines of {}", P.bytes(bytes))
        });
        format!(
            "L{} {} {}{line}",
            cache.level,
            cache.kind,
            P.bytes(cache.size_bytes)
        )
    });
    let devices = &machine.devices;
    let modules = match &devices.memory_modules {
        Fact::Unknown { unknown } => format!("unknown ({unknown})"),
        Fact::Known(modules) => joined(
            modules
                .iter()
                .map(|module| {
                    let rate = module
                        .mega_transfers
                        .map_or_else(String::new, |rate| format!(" at {rate} MT/s"));
                    let width = module
                        .width_bits
                        .map_or_else(String::new, |bits| format!(", {bits} bits wide"));
                    format!("{} {}{rate}{width}", P.bytes(module.bytes), module.kind)
                })
                .collect(),
        ),
    };
    let disks = devices.disks.iter().map(|disk| {
        let kind = match disk.rotational {
            Fact::Known(true) => "turns",
            Fact::Known(false) => "does not turn",
            Fact::Unknown { .. } => "kind unknown",
        };
        let model = disk
            .model
            .known()
            .map_or_else(String::new, |model| format!(", {model}"));
        format!("{} {}, {kind}{model}", disk.name, P.bytes(disk.bytes))
    });
    let interfaces = devices.interfaces.iter().map(|interface| {
        let speed = match interface.megabits {
            Fact::Known(megabits) => format!("{megabits} Mbit/s"),
            Fact::Unknown { .. } => "speed unknown".to_owned(),
        };
        format!("{} {speed}, MTU {}", interface.name, interface.mtu)
    });
    let mhz = machine.processor.mhz.as_ref();
    let cycle = mhz.map(|mhz| {
        format!(
            "{} MHz, {} ns a cycle",
            P.fixed(*mhz, 0),
            P.fixed(1e3 / mhz, 3)
        )
    });
    vec![
        ("Processor", machine.processor.model_name.to_string()),
        ("Clock", cycle.to_string()),
        ("Caches", joined(caches.collect())),
        (
            "Memory",
            machine
                .memory
                .total_bytes
                .as_ref()
                .map(|bytes| P.bytes(*bytes))
                .to_string(),
        ),
        ("Memory modules", modules),
        ("Disks", joined(disks.collect())),
        ("Network", joined(interfaces.collect())),
        ("Operating system", machine.distribution.to_string()),
        ("Kernel", machine.kernel.release.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(level: u32, size_bytes: u64) -> Cache {
        Cache {
            level,
            kind: "Data".to_owned(),
            size_bytes,
            line_bytes: Some(64),
            shared_by: Vec::new(),
        }
    }

    #[test]
    fn levels_go_with_the_caches_of_their_size_and_the_last_with_the_last() {
        let all = [cache(1, 32 << 10), cache(2, 512 << 10), cache(3, 32 << 20)];
        let all: Vec<&Cache> = all.iter().collect();
        let found = |bytes: &[u64]| -> Vec<MemoryLevel> {
            let ends = bytes.iter().map(|bytes| Some(*bytes as f64)).chain([None]);
            let latency = 1.0;
            ends.map(|capacity| MemoryLevel { capacity, latency })
                .collect()
        };
        let matched = |bytes: &[u64]| -> Vec<Option<u64>> {
            let matched = matched(&all, &found(bytes)).into_iter();
            matched
                .map(|(_, level)| {
                    level
                        .and_then(|level| level.capacity)
                        .map(|bytes| bytes as u64)
                })
                .collect()
        };
        let (l1, l2, l3) = (32 << 10, 512 << 10, 8 << 20);
        assert_eq!(matched(&[l1, l2, l3]), [Some(l1), Some(l2), Some(l3)]);
        // The last level is what is left of the last cache, whatever lies between.
        assert_eq!(matched(&[l1, l3]), [Some(l1), None, Some(l3)]);
        assert_eq!(
            matched(&[l1, l2, 2 << 20, l3]),
            [Some(l1), Some(l2), Some(l3)]
        );
        assert_eq!(matched(&[]), [None, None, None]);
    }
}
