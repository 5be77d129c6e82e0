//! The cost of memory: latency by working set, stride, page and line; bandwidth.
//!
//! A random cycle grows: each line is linked after a random earlier one, so a curve of seventy
//! working sets links each line once, not once for each larger size (11 instead of 19 s).
//!
//! The size of a line is measured within the second level of the caches. In memory, prefetchers
//! fetch its neighbours as well, and the result is 128 or 256 bytes.

use tare_workloads::chase::{LOADS, Order, link, tare_chase};
use tare_workloads::stream::{
    tare_stream_copy, tare_stream_read, tare_stream_triad, tare_stream_write,
};
use tare_workloads::timing::bare_rdtsc;

use super::bench::{Bench, Of, Why};
use super::{Area, Context, Pages, Primitive};

/// The bytes of a cache line, as assumed by the random chase.
const LINE: usize = 64;
/// The least working set, in bytes.
const LEAST: usize = 1 << 10;
/// The default for the greatest working set, in bytes: larger than the caches of most machines.
const MOST: usize = 256 << 20;
/// The upper limit of working sets, in bytes.
const UTMOST: usize = 8 << 30;
/// Steps of the grid of working sets per octave.
pub const STEPS: u32 = 4;
/// The greatest number of working sets.
const MOST_SIZES: usize = 96;
/// The part of a budget (1/n) for each point of a curve or map.
const SHARE: u64 = 8;
/// The limit of the warm-up of a chase, in budgets.
const WARM: u64 = 3;
/// The number of blocks into which the time of a point is divided; the fastest counts. A block is
/// long, so that it is no lucky part of the cycle.
const BLOCKS: u64 = 8;
/// The array of cse221-2022's bandwidth, in bytes.
pub const ARRAY: usize = 64 << 20;

/// Returns the greatest working set, in bytes: four times the largest cache.
pub fn most(cache: Option<u64>) -> usize {
    beyond(cache, 4).clamp(MOST, UTMOST)
}

/// Returns the size of an array that exceeds the caches, in bytes: twice the largest cache.
pub fn array(cache: Option<u64>) -> usize {
    beyond(cache, 2).clamp(ARRAY, UTMOST / 4)
}

fn beyond(cache: Option<u64>, times: usize) -> usize {
    let bytes = usize::try_from(cache.unwrap_or(0)).unwrap_or(UTMOST);
    bytes.min(UTMOST).saturating_mul(times).next_power_of_two()
}

const MEMORY: Primitive = Primitive {
    area: Area::Memory,
    ..Primitive::NEW
};

/// The primitives.
pub const TABLE: &[Primitive] = &[
    MEMORY.named("latency", "memory latency by working set")
        .method("loads that wait for each other, in one random cycle through all lines")
        .tags(&["published", "curve"])
        .by(|bench, around| {
            // Either may be unavailable without the other.
            let huge = curve(bench, around, Pages::Huge);
            curve(bench, around, Pages::Small).or(huge)
        }),
    MEMORY.named("latency-stride", "memory latency by working set and stride")
        .method("loads that wait for each other, one stride apart, over and over from the first to the last")
        .tags(&["published", "map"])
        .by(map),
    MEMORY.named("line", "two loads by their distance")
        .method("pairs of loads in a random order, the second at a fixed distance from the first: within a line it hits")
        .tags(&["map"])
        .by(line),
    MEMORY.named("tlb", "memory latency by number of pages")
        .method("loads that wait for each other, one line of each page of 4 KiB in a random order")
        .tags(&["curve"])
        .by(pages),
    MEMORY.named("bandwidth-read", "read bandwidth of one core")
        .method("sums of an array in 16 bytes at a time, unrolled 16 times; the label size is the size of each array")
        .tags(&["published", "bandwidth"])
        .by(|bench, around| {
            // SAFETY: the array has as many elements.
            streams(bench, around, 1, |[a, ..], n| unsafe {
                tare_stream_read(a, n)
            })
        }),
    MEMORY.named("bandwidth-write", "write bandwidth of one core")
        .method("stores of 16 bytes at a time, unrolled 16 times; the fetched lines are not counted")
        .tags(&["published", "bandwidth"])
        .by(|bench, around| {
            // SAFETY: the array has as many elements.
            streams(bench, around, 1, |[a, ..], n| unsafe {
                tare_stream_write(a, n, 1)
            })
        }),
    MEMORY.named("bandwidth-copy", "copy bandwidth of one core")
        .method("STREAM's Copy: bytes read and bytes written both count")
        .tags(&["bandwidth", "stream"])
        .by(|bench, around| {
            // SAFETY: the arrays have as many elements.
            streams(bench, around, 2, |[a, b, _], n| unsafe {
                tare_stream_copy(b.cast(), a.cast(), n)
            })
        }),
    MEMORY.named("bandwidth-triad", "triad bandwidth of one core")
        .method("STREAM's Triad: bytes read and bytes written both count")
        .tags(&["bandwidth", "stream"])
        .by(|bench, around| {
            // SAFETY: the arrays have as many elements.
            streams(bench, around, 3, |[a, b, c], n| unsafe {
                tare_stream_triad(a.cast(), b.cast(), c.cast(), n, 3.0)
            })
        }),
];

/// Returns the working sets of a grid in bytes, rising: `steps` in each octave, in whole lines.
pub fn grid(least: usize, most: usize, steps: u32) -> impl Iterator<Item = usize> {
    // 2^(1/4) to the power of 0 to 3, as fractions of 1,024.
    const QUARTERS: [usize; 4] = [1_024, 1_218, 1_448, 1_722];
    let all = (least.ilog2()..=most.ilog2()).flat_map(move |octave| {
        let quarters = QUARTERS.iter().step_by((4 / steps) as usize);
        quarters.map(move |quarter| ((1_usize << octave) * quarter / 1_024) & !(LINE - 1))
    });
    all.filter(move |size| (least..=most).contains(size))
}

/// Maps as much memory as is available, up to `most`. Too few huge pages are an error: their curve
/// would end within the caches.
fn room<'a>(around: &Context<'a>, most: usize, pages: Pages) -> Result<&'a mut [usize], Why> {
    let least = match pages {
        Pages::Small => 1 << 20,
        Pages::Huge => 16 << 20,
    };
    let mut bytes = most;
    loop {
        match (around.room)(bytes, pages) {
            Err(_) if bytes > least => bytes /= 2,
            taken => return taken,
        }
    }
}

/// Maps huge pages, or else small ones, or else whatever is available.
fn large<'a>(around: &Context<'a>, most: usize) -> Result<&'a mut [usize], Why> {
    (around.room)(most, Pages::Huge)
        .or_else(|_| room(around, most, Pages::Small))
        .or_else(|_| room(around, most, Pages::Huge))
}

/// Measures the time of a load in a linked cycle, and stores it.
fn chase(bench: &mut Bench<'_>, labels: core::fmt::Arguments<'_>, first: usize, warm: u64) {
    let ticks = load(bench, first, warm);
    bench.value(Of::Cost, labels, ticks);
}

/// Returns the ticks of a load in a linked cycle.
fn load(bench: &mut Bench<'_>, first: usize, warm: u64) -> f64 {
    let mut at = first;
    let begin = bare_rdtsc();
    let mut gone = 0;
    while gone < warm && bare_rdtsc().wrapping_sub(begin) < WARM * bench.budget() {
        // SAFETY: `at` is in a cycle of valid pointers.
        unsafe { tare_chase(&raw mut at, 64) };
        gone += 64 * LOADS;
    }
    let chased = bench.measured(SHARE, BLOCKS, LOADS, |passes| {
        // SAFETY: as above.
        unsafe { tare_chase(&raw mut at, passes) }
    });
    // The block is long enough that its stamps do not matter; a difference of two minima could be
    // less than any load took.
    chased.least
}

fn curve(bench: &mut Bench<'_>, around: &Context<'_>, pages: Pages) -> Result<(), Why> {
    /// The curve is measured twice, so that a short disturbance does not look like a level.
    const TIMES: usize = 2;
    let memory = room(around, most(around.plan.cache), pages)?;
    let most = size_of_val(memory);
    let mut least = [f64::INFINITY; MOST_SIZES];
    for _ in 0..TIMES {
        let mut linked = 0;
        for (size, least) in grid(LEAST, most, STEPS).zip(&mut least) {
            let memory = &mut memory[..size / size_of::<usize>()];
            let first = link(memory, LINE, Order::Random, linked);
            linked = size / LINE;
            *least = least.min(load(bench, first, (size / LINE) as u64));
        }
    }
    for (size, least) in grid(LEAST, most, STEPS).zip(least) {
        bench.value(Of::Cost, format_args!("pages={pages} size={size}"), least);
    }
    Ok(())
}

fn map(bench: &mut Bench<'_>, around: &Context<'_>) -> Result<(), Why> {
    /// The greatest working set of the map: beyond it, columns no longer differ.
    const WIDEST: usize = 32 << 20;
    let memory = large(around, WIDEST)?;
    for size in grid(LEAST, size_of_val(memory), 1) {
        for stride in (3..=12).map(|power| 1_usize << power) {
            if stride <= size / 2 {
                let memory = &mut memory[..size / size_of::<usize>()];
                let first = link(memory, stride, Order::Rising, 0);
                let labels = format_args!("size={size} stride={stride}");
                chase(bench, labels, first, 2 * (size / stride) as u64);
            }
        }
    }
    Ok(())
}

fn line(bench: &mut Bench<'_>, around: &Context<'_>) -> Result<(), Why> {
    /// The lines of the working set: too many for the first level of the caches, and few enough for
    /// the second level and for 64 entries of a TLB. In higher levels, prefetchers fetch
    /// neighbouring lines, too.
    const LINES: usize = 3_072;
    const WORD: usize = size_of::<usize>();
    /// The number of measurements per distance. The lower quartile counts: a prefetcher
    /// occasionally predicts the fastest one.
    const TIMES: usize = 8;
    let memory = large(around, ARRAY)?;
    let (pairs, order) = memory.split_at_mut(LINES * LINE / WORD);
    let base = pairs.as_ptr().addr();
    for distance in (3..=9).map(|power| 1_usize << power) {
        let (apart, number) = match distance / LINE {
            0 => (1, LINES),
            lines => (lines, LINES / 2),
        };
        // The lines of a pair are neighbours, so that the working set is the same.
        let word = |pair: usize| match number {
            LINES => pair * LINE / WORD,
            _ => (pair / apart * 2 * apart + pair % apart) * LINE / WORD,
        };
        let order = &mut order[..number];
        let start = link(order, WORD, Order::Random, 0);
        for (pair, next) in order.iter().enumerate() {
            let (own, next) = (word(pair), word((next - start) / WORD));
            pairs[own] = base + own * WORD + distance;
            pairs[own + distance / WORD] = base + next * WORD;
        }
        let mut times = [0.0; TIMES];
        times.fill_with(|| load(bench, base, 2 * LINES as u64));
        times.sort_unstable_by(f64::total_cmp);
        let labels = format_args!("distance={distance}");
        bench.value(Of::Cost, labels, times[TIMES / 4]);
    }
    Ok(())
}

fn pages(bench: &mut Bench<'_>, around: &Context<'_>) -> Result<(), Why> {
    const PAGE: usize = 4_096;
    /// The greatest number of pages.
    const WIDEST: usize = 1 << 15;
    let memory = room(around, WIDEST * (PAGE + LINE), Pages::Small)?;
    let widest = size_of_val(memory) / (PAGE + LINE);
    for pages in grid(8 * LINE, widest * LINE, 2).map(|size| size / LINE) {
        // One line further in each page, so that they don't map to the same sets of a cache.
        let stride = PAGE + LINE;
        let memory = &mut memory[..pages * stride / size_of::<usize>()];
        let first = link(memory, stride, Order::Random, 0);
        chase(
            bench,
            format_args!("pages={pages}"),
            first,
            2 * pages as u64,
        );
    }
    Ok(())
}

/// Measures passes over arrays that fit into one level of the caches after the other, and into
/// none.
fn streams(
    bench: &mut Bench<'_>,
    around: &Context<'_>,
    arrays: usize,
    mut pass: impl FnMut([*mut u64; 3], u64) -> u64,
) -> Result<(), Why> {
    let memory = large(around, arrays * array(around.plan.cache))?;
    let most = size_of_val(memory) / arrays;
    let apart = most / size_of::<usize>();
    let start = memory.as_mut_ptr().cast::<u64>();
    // Offset by a few lines, so that they don't map to the same sets of a cache.
    let of = |array: usize| start.wrapping_add(array.min(arrays - 1) * (apart - 3 * LINE));
    let sizes = [8 << 10, 64 << 10, 1 << 20, most];
    for size in sizes.into_iter().filter(|size| *size <= most) {
        let elements = (size / size_of::<u64>()).min(apart - 6 * LINE) as u64 & !31;
        let bytes = elements * size_of::<u64>() as u64 * arrays as u64;
        bench.passes(format_args!("size={size}"), bytes, || {
            Ok(pass([of(0), of(1), of(2)], elements))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::super::Plan;
    use super::super::bench::why;
    use super::*;

    #[test]
    fn the_grid_rises_in_equal_steps_of_whole_lines() {
        let sizes: Vec<usize> = grid(1 << 10, 8 << 10, 4).collect();
        assert_eq!(
            sizes,
            [
                1024, 1216, 1408, 1664, 2048, 2432, 2880, 3392, 4096, 4864, 5760, 6848, 8192
            ]
        );
        assert_eq!(
            grid(512, 4096, 1).collect::<Vec<_>>(),
            [512, 1024, 2048, 4096]
        );
        assert!(grid(LEAST, UTMOST, STEPS).count() <= MOST_SIZES);
    }

    #[test]
    fn a_few_huge_pages_are_none() {
        let plan = Plan::parse(["workload=primitives", "area=memory"]).unwrap();
        let give = |bytes: usize, pages: Pages| match pages {
            Pages::Huge if bytes > 8 << 20 => Err(why("there are few")),
            _ => Ok(std::vec![0; bytes / size_of::<usize>()].leak()),
        };
        let around = Context {
            plan: &plan,
            hz: 1e9,
            room: &give,
        };
        assert!(room(&around, MOST, Pages::Huge).is_err());
        let arrays = large(&around, 3 * ARRAY).unwrap();
        assert_eq!(size_of_val(arrays), 3 * ARRAY);
    }

    #[test]
    fn arrays_and_curves_go_beyond_the_largest_cache() {
        assert_eq!((most(None), array(None)), (MOST, ARRAY));
        assert_eq!((most(Some(32 << 20)), array(Some(32 << 20))), (MOST, ARRAY));
        let large = Some(384 << 20);
        assert_eq!((most(large), array(large)), (2 << 30, 1 << 30));
        assert_eq!(
            (most(Some(u64::MAX)), array(Some(u64::MAX))),
            (UTMOST, UTMOST / 4)
        );
    }
}
