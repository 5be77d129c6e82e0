//! The machine as it is claimed to be, and as it turns out to be.

use std::collections::BTreeMap;

use tare_figures::Run;
use tare_figures::rows::{Figure, Row, written};
use tare_host::machine::Cache;

use super::super::{NAME, predictions};
use super::measures::Points;
use super::{N, known};

/// By how much a size may be beside the claimed one, as a factor: one step of the grid.
const STEP: f64 = 1.2;
/// Bytes of a small page.
const PAGE: u64 = 4_096;

/// Stands where no level of the curve goes with a cache.
pub(super) const UNSEEN: &str = "not distinguishable";

/// Returns the target whose memory hierarchy is shown: the first that no emulator executes, on this
/// machine and without a load.
fn target(run: &Run) -> Option<&str> {
    let mut rows = known(run, "latency", Figure::Best);
    let own = rows.find(|(row, _)| {
        let is_here = !row.emulated && !row.group.capabilities().kernel.is_remote();
        is_here && row.load.is_idle()
    });
    own.map(|(row, _)| row.target.as_str())
}

/// Returns the least latencies of all runs: what a neighbour takes of a cache in one of them is not
/// taken for its end.
pub(super) fn least<'a>(run: &'a Run, target: &str) -> Points<'a> {
    let rows = known(run, "latency", Figure::Best);
    let own = rows.filter(|(row, _)| row.target == target && row.load.is_idle());
    let least = own.filter_map(|(row, _)| Some((&row.labels, row.over.as_ref().ok()?.lowest)));
    Points(least.collect())
}

/// Returns the latency of a load that no cache holds, on a target: the least of all runs. A single
/// level is no hierarchy, and the last level of a curve that ends within the claimed caches is one of
/// these.
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

/// Returns the caches of the measured CPU that hold data, from the first level on: those of others
/// may be larger.
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

/// Returns the place of the level that was found for each cache, given by how much each level holds:
/// the one whose size is nearest, and every level but once. Where fewer were found than there are
/// caches, the last cache has the last level.
fn matched(caches: &[&Cache], ends: &[f64]) -> Vec<Option<usize>> {
    let mut next = 0;
    let mut matched = Vec::new();
    for (place, cache) in caches.iter().enumerate() {
        let is_last = place + 1 == caches.len();
        let left = ends.len().saturating_sub(next);
        let own = match ends.get(next) {
            Some(_) if is_last => Some(ends.len() - 1),
            Some(bytes) => {
                let far = (bytes / cache.size_bytes as f64).ln().abs();
                let fits = far <= 2.0 * STEP.ln() || left > caches.len() - place - 1;
                fits.then_some(next)
            }
            None => None,
        };
        next += usize::from(own.is_some());
        matched.push(own);
    }
    matched
}

/// A cache with what was found of it.
struct Found<'a> {
    cache: &'a Cache,
    /// Its size in bytes and its latency in ns, on the curve of all runs.
    level: Option<(f64, f64)>,
    /// Its sizes in bytes on the curve of each run that shows it.
    runs: Vec<f64>,
}

/// Returns the caches with what was found of them on a target.
fn found<'a>(run: &'a Run, target: &str) -> Vec<Found<'a>> {
    let caches = caches(run);
    let levels = least(run, target).levels();
    let levels = levels
        .iter()
        .filter_map(|level| Some((level.capacity?, level.latency)));
    let levels: Vec<(f64, f64)> = levels.collect();
    let ends: Vec<f64> = levels.iter().map(|(bytes, _)| *bytes).collect();
    let runs = ends_of_runs(run, target);
    let of_runs = runs.iter().map(|ends| (ends, matched(&caches, ends)));
    let of_runs: Vec<_> = of_runs.collect();
    let own = matched(&caches, &ends);
    let each = caches.into_iter().zip(own).enumerate();
    each.map(|(place, (cache, own))| Found {
        cache,
        level: own.map(|own| levels[own]),
        runs: of_runs
            .iter()
            .filter_map(|(ends, matched)| Some(ends[matched[place]?]))
            .collect(),
    })
    .collect()
}

/// Returns how much each level holds on the curve of each run, in bytes.
fn ends_of_runs(run: &Run, target: &str) -> Vec<Vec<f64>> {
    let rows = run.rows.of(NAME, "level-size");
    let rows = rows
        .filter(|row| row.figure == Figure::MEDIAN && row.target == target && row.load.is_idle());
    let mut runs: BTreeMap<u32, Vec<(u64, f64)>> = BTreeMap::new();
    for row in rows {
        let level = row.labels.number("level").unwrap_or_default();
        for each in &row.each {
            let own = runs.entry(each.cell).or_default();
            own.extend(each.figure.value().map(|bytes| (level, bytes)));
        }
    }
    let sorted = runs.into_values().map(|mut levels| {
        levels.sort_by_key(|(level, _)| *level);
        levels.into_iter().map(|(_, bytes)| bytes).collect()
    });
    sorted.collect()
}

impl Found<'_> {
    /// Writes between which sizes the runs are, if one of them shows another than all together:
    /// `4.76 MiB to 16 MiB run by run`.
    fn range(&self) -> Option<String> {
        let (bytes, _) = self.level?;
        let all = self.runs.iter().copied();
        let low = all.clone().fold(f64::INFINITY, f64::min);
        let high = all.fold(0.0, f64::max);
        let differ = low < bytes || high > bytes;
        let [low, high] = [low, high].map(|bytes| N.bytes(bytes as u64));
        (differ && !self.runs.is_empty()).then(|| format!("{low} to {high} run by run"))
    }
}

/// A line of the table: name, claimed, effective.
pub(super) type Claimed = [String; 3];

fn line(name: impl Into<String>, claimed: Option<String>, effective: String) -> Claimed {
    [
        name.into(),
        claimed.unwrap_or_else(|| "unknown".to_owned()),
        effective,
    ]
}

/// Returns the claims of the machine, each with its effective value.
pub(super) fn claimed(run: &Run) -> Vec<Claimed> {
    let mut lines = Vec::from_iter(clock(run));
    let (Some(target), Some(machine)) = (target(run), run.machine.as_ref()) else {
        return lines;
    };
    let machine = &machine.machine;
    let points = least(run, target);
    for found in found(run, target) {
        let cache = found.cache;
        let range = found.range();
        let range = range.map_or_else(String::new, |range| format!(" ({range})"));
        let effective = found
            .level
            .map(|(bytes, ns)| format!("{}, {}{range}", N.bytes(bytes as u64), N.ns(ns, None)));
        lines.push(line(
            format!("L{} {}", cache.level, cache.kind.to_lowercase()),
            Some(N.bytes(cache.size_bytes)),
            effective.unwrap_or_else(|| UNSEEN.to_owned()),
        ));
    }
    let memory = machine
        .memory
        .total_bytes
        .as_ref()
        .map(|bytes| N.bytes(*bytes));
    if let Some(ns) = slowest(run, target) {
        lines.push(line("memory", Some(memory.to_string()), N.ns(ns, None)));
    }
    if let Some(bytes) = points.line_size() {
        let claimed = caches(run).first().and_then(|cache| cache.line_bytes);
        let claimed = claimed.map(|bytes| N.bytes(bytes));
        lines.push(line("cache line", claimed, N.bytes(bytes as u64)));
    }
    let claimed = machine.topology.tlb_pages.known();
    let mut claimed = claimed
        .into_iter()
        .flatten()
        .map(|count| u64::from(*count) * PAGE);
    for (level, bytes) in (1..).zip(points.tlb_reach()) {
        let claimed = claimed.next().map(pages);
        lines.push(line(
            format!("TLB level {level}, 4 KiB pages"),
            claimed,
            pages(bytes as u64),
        ));
    }
    lines.extend(file_cache(run, target, memory.known()));
    let modules = machine.devices.memory_modules.known().into_iter().flatten();
    let peak = modules.map(|module| {
        let bits = f64::from(module.mega_transfers?) * 1e6 * f64::from(module.width_bits?);
        Some(bits / 8.0)
    });
    // Two modules on one channel share its rate, and nothing shows which are.
    let peak = peak.sum::<Option<f64>>().filter(|peak| *peak > 0.0);
    let peak = peak.map(|peak| format!("at most {}", written(peak, "bytes/s")));
    for (id, name) in [
        ("bandwidth-read", "read bandwidth, one core"),
        ("bandwidth-read-all", "read bandwidth, all cores"),
    ] {
        let rates = bandwidths(run, target, id).into_iter();
        let largest = rates.max_by_key(|(size, _)| *size);
        lines.extend(largest.map(|(_, rate)| line(name, peak.clone(), written(rate, "bytes/s"))));
    }
    lines
}

/// Returns the bandwidths of a primitive on a target, each with its size if it has one.
fn bandwidths(run: &Run, target: &str, id: &str) -> Vec<(Option<u64>, f64)> {
    let own = known(run, "bandwidth", Figure::Best).filter(|(row, _)| {
        let is_second = row
            .labels
            .get("reading")
            .is_none_or(|reading| reading == "second");
        row.target == target && row.load.is_idle() && row.has("primitive", id) && is_second
    });
    own.map(|(row, rate)| (row.labels.number("size"), rate))
        .collect()
}

/// Writes how far a TLB reaches, given in bytes.
fn pages(bytes: u64) -> String {
    format!("{} ({} pages)", N.bytes(bytes), N.count(bytes / PAGE))
}

/// Returns how much the file cache holds: the largest file that is read again about as fast as the
/// smallest ones.
fn file_cache(run: &Run, target: &str, memory: Option<&String>) -> Option<Claimed> {
    /// By how much a file that is in the cache may be slower than another one that is.
    const SLOWER: f64 = 4.0;
    let mut sizes = bandwidths(run, target, "file-cache");
    sizes.sort_by_key(|(size, _)| *size);
    let best = sizes.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let held = sizes.iter().take_while(|(_, rate)| *rate * SLOWER >= best);
    let (held, largest) = (held.last()?.0?, sizes.last()?.0?);
    let at_least = if held == largest { "at least " } else { "" };
    let claimed = memory.map_or_else(String::new, |bytes| format!("up to {bytes}"));
    Some(line(
        "file cache",
        Some(claimed),
        format!("{at_least}{}", N.bytes(held)),
    ))
}

/// Returns the row of the core's clock and its frequency: that of the target whose memory hierarchy is
/// shown, without a load, if there is one.
fn core_clock(run: &Run) -> Option<(&Row, f64)> {
    let own = target(run);
    let all = known(run, "core-clock", Figure::MEDIAN).filter(|(row, _)| !row.emulated);
    let is_other = |row: &Row| own.is_some_and(|own| row.target != own);
    all.min_by_key(|(row, _)| (is_other(row), !row.load.is_idle()))
}

/// Returns the frequency of the core's clock, as claimed and as it turned out.
fn clock(run: &Run) -> Option<Claimed> {
    let machine = run.machine.as_ref()?;
    let (row, hz) = core_clock(run)?;
    let ghz = |hz: f64| format!("{} GHz", N.fixed(hz / 1e9, 2));
    let claimed = predictions::khz(&machine.machine).map(|khz| ghz(khz * 1e3));
    let name = match is_of_table(run, row) {
        true => "core clock".to_owned(),
        false => format!("core clock, on {}{}", row.target, row.load.under()),
    };
    Some(line(name, claimed, ghz(hz)))
}

/// Returns whether a row is of what the table of claims is of.
fn is_of_table(run: &Run, row: &Row) -> bool {
    target(run) == Some(&row.target) && row.load.is_idle()
}

/// Returns what the table of claims is of; `None` without any.
pub(super) fn measured_on(run: &Run) -> Option<String> {
    let target = target(run)?;
    let pages = match least(run, target).pages() {
        "2M" => "huge pages",
        _ => "pages of 4 KiB",
    };
    let clock = match core_clock(run).filter(|(row, _)| is_of_table(run, row)) {
        Some(_) => " and the clock",
        None => "",
    };
    Some(format!(
        "On {target}, without a load. Caches and memory are read off the latencies in {pages}, the line and the TLB's reach off \
         curves of their own: of each point the least latency of all runs; figures.csv has what each run shows. A level's latency \
         is the median of the upper half of its sizes. Bandwidths{clock} are medians of the runs."
    ))
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
        let matched = |bytes: &[u64]| -> Vec<Option<u64>> {
            let ends: Vec<f64> = bytes.iter().map(|bytes| *bytes as f64).collect();
            let matched = matched(&all, &ends).into_iter();
            matched.map(|own| Some(bytes[own?])).collect()
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
