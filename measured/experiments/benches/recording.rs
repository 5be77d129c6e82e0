//! The cost of recording one wake-up: `cargo bench -p tare-measured --bench recording`.
//!
//! Between two wake-ups a measuring thread sleeps, and other programs evict its cache lines. So
//! besides the mean of many consecutive records, single records are timed after all of their memory
//! was flushed from every cache.

use std::arch::x86_64::{__rdtscp, _mm_clflush, _mm_lfence, _mm_mfence};
use std::hint::black_box;
use std::time::Instant;

use tare_measured::wakeup::{Plan, Recorder, arena_bytes};

/// The interval, of which recording may take 2 %.
const INTERVAL_NS: u64 = 100_000;
/// How many wake-ups are timed one by one.
const COLD: u64 = 300;

fn main() {
    // The most that is ever stored: a day.
    let plan = Plan::new(INTERVAL_NS, 86_400_000_000_000);
    let bytes = arena_bytes(&plan, 0);
    let lines = vec![Line([0; 64]); bytes.div_ceil(64)].leak();
    let start = lines.as_mut_ptr().cast::<u8>();
    // SAFETY: a block of `bytes` bytes that is never freed and is lent once.
    let memory = unsafe { std::slice::from_raw_parts_mut(start, bytes) };
    let mut recorder = Recorder::new(&plan, 0, memory);
    let clock = Instant::now();
    let now_ns = || clock.elapsed().as_nanos() as u64;

    recorder.calibrate(now_ns);
    println!(
        "of many values, on end: {} ns (recording_ns)",
        recorder.recording_ns()
    );

    let begin = now_ns();
    for activation in 0..1_000_000 {
        recorder.record(activation, 2_000 + activation % 1_000);
    }
    let mean = (now_ns() - begin) as f64 / 1e6;
    println!("of a thousand values, on end: {mean:.1} ns");

    let (ticks, ns) = (ticks(), now_ns());
    let mut cold: Vec<u64> = (0..COLD)
        .map(|k| {
            let activation = 1_000_000 + k;
            throw_out(start, bytes);
            // The flushed lines take a while to reach memory.
            let thrown_out = now_ns();
            while now_ns() - thrown_out < INTERVAL_NS {
                std::hint::spin_loop();
            }
            let begin = self::ticks();
            recorder.record(black_box(activation), black_box(2_000 + k * 7_919 % 1_000));
            self::ticks() - begin
        })
        .collect();
    let ns_per_tick = (now_ns() - ns) as f64 / (self::ticks() - ticks) as f64;
    cold.sort_unstable();
    let at = |part: u64| cold[(COLD * part / 100) as usize] as f64 * ns_per_tick;
    let (median, p99) = (at(50), at(99));
    println!(
        "of a thousand values, each from memory: median {median:.0} ns, 99 % below {p99:.0} ns"
    );
    let share = 100.0 * median / INTERVAL_NS as f64;
    println!("that is {share:.2} % of an interval of 100 µs");
}

#[derive(Clone)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Reads the TSC after all earlier instructions are done and before any later one begins.
fn ticks() -> u64 {
    let mut cpu = 0;
    // SAFETY: every CPU that runs the benchmark has both instructions.
    unsafe {
        let ticks = __rdtscp(&raw mut cpu);
        _mm_lfence();
        ticks
    }
}

/// Flushes a block of memory from all caches.
fn throw_out(start: *const u8, bytes: usize) {
    for offset in (0..bytes).step_by(64) {
        // SAFETY: within the block.
        unsafe { _mm_clflush(start.add(offset)) };
    }
    // SAFETY: waits for the flushes.
    unsafe { _mm_mfence() };
}
