//! The cost of the stamps and of the loop on this CPU, and the frequency of the TSC.

use tare_wire::record::{Calibration, Frequency, FrequencySource, Record};
use tare_workloads::calibration::{
    UNROLLED_READS, tare_empty_fenced, tare_empty_published, tare_loop, tare_unrolled_timer,
};
use tare_workloads::timing::{Stamp, bare_rdtsc};

use crate::arena::Arena;
use crate::cpuid;
use crate::output::Output;
use crate::platform::{Platform, WriteError};

/// The number of empty repetitions in one round.
const REPETITIONS: usize = 1_000;
/// The number of rounds. Each figure is the median over them, so interrupted rounds do not show.
const ROUNDS: usize = 21;
/// The number of unrolled passes in one round.
const PASSES: u64 = 16;
/// The number of iterations of the empty loop in one round: as in cse221-2022.
const ITERATIONS: u64 = 10_000;

/// Returns how many bytes of the arena [`costs`] uses.
pub fn arena_bytes() -> usize {
    Arena::bytes::<Stamp>(REPETITIONS)
}

/// Measures the cost of the stamps and of the loop.
pub fn costs(arena: &mut Arena) -> Calibration {
    let stamps = arena.take::<Stamp>(REPETITIONS);
    let (fenced_region_cycles, fenced_cost_cycles) = empty(stamps, tare_empty_fenced);
    let (published_region_cycles, published_cost_cycles) = empty(stamps, tare_empty_published);
    Calibration {
        fenced_region_cycles,
        fenced_cost_cycles,
        published_region_cycles,
        published_cost_cycles,
        bare_read_cycles: median(|| tare_unrolled_timer(PASSES)) / (PASSES * UNROLLED_READS) as f64,
        step_cycles: step(),
        loop_cycles: median(|| tare_loop(ITERATIONS)) / ITERATIONS as f64,
    }
}

/// Returns the shortest duration of an empty region, and the median cost of a repetition.
fn empty(stamps: &mut [Stamp], measured: unsafe extern "C" fn(u64, *mut Stamp)) -> (u64, f64) {
    let mut least = u64::MAX;
    let cost = median(|| {
        // SAFETY: there is room for as many stamps.
        unsafe { measured(stamps.len() as u64, stamps.as_mut_ptr()) };
        least = stamps.iter().map(|s| s.cycles()).fold(least, u64::min);
        stamps[stamps.len() - 1].end.wrapping_sub(stamps[0].start)
    });
    (least, cost / stamps.len() as f64)
}

fn median(mut round: impl FnMut() -> u64) -> f64 {
    let mut rounds = [0; ROUNDS];
    for value in &mut rounds {
        *value = round();
    }
    rounds.sort_unstable();
    rounds[ROUNDS / 2] as f64
}

/// The number of short intervals from which the timer's step is derived.
const INTERVALS: usize = 4_000;
/// The longest interval used, in ticks. With a fractional step, rounding errors add up beyond it.
const LONGEST: u64 = 512;

/// Finds the step of the timer from intervals of many lengths.
fn step() -> u64 {
    let mut intervals = [0_u16; INTERVALS];
    let mut used = 0;
    // A bound on the attempts, for timers on which no interval is short.
    for attempt in 0..4 * INTERVALS as u64 {
        let ticks = tare_loop(attempt % 97);
        if (1..=LONGEST).contains(&ticks) && used < INTERVALS {
            intervals[used] = ticks as u16;
            used += 1;
        }
    }
    step_of(&intervals[..used])
}

/// Returns the largest step of which practically all intervals are multiples, or 1.
///
/// Under a hypervisor that scales the TSC, a step is not a whole number of ticks (25.96 on one
/// machine), so intervals may differ from a multiple by one tick; steps below 8 ticks must fit
/// exactly. At least three different multiples must occur: a single one fits any step.
fn step_of(intervals: &[u16]) -> u64 {
    if intervals.len() < INTERVALS / 10 {
        return 1;
    }
    (2..=256_u16)
        .rev()
        .find(|step| fits(intervals, *step))
        .map_or(1, u64::from)
}

fn fits(intervals: &[u16], step: u16) -> bool {
    let slack = u16::from(step >= 8);
    let mut multiples = [false; LONGEST as usize + 1];
    let mut off_by_one = 0;
    for interval in intervals {
        let rest = interval % step;
        if rest.min(step - rest) > slack {
            off_by_one += 1;
        } else {
            multiples[usize::from((interval + slack) / step)] = true;
        }
    }
    let distinct = multiples.iter().filter(|seen| **seen).count();
    off_by_one * 200 <= intervals.len() && distinct >= 3
}

/// The shortest time over which the frequency is measured. Both ends are known to some tens of ns,
/// so the result is better than 1 ppm.
const SPAN_NS: u64 = 100_000_000;
/// How many readings are tried at each end; the tightest is used.
const BRACKETS: usize = 200;

/// Compares the TSC with the platform's reference clock from the start of a run to its end.
pub struct Clock {
    start: Option<Bracket>,
}

/// One reading of the reference clock between two of the TSC.
#[derive(Clone, Copy)]
struct Bracket {
    /// TSC half-way between the two reads.
    tsc: u64,
    /// Distance between the two reads.
    width: u64,
    ns: u64,
}

impl Clock {
    /// Reads both clocks.
    pub fn start(platform: &impl Platform) -> Self {
        Self {
            start: bracket(platform),
        }
    }

    /// Returns an estimate of the frequency in Hz, good to some 0.1 %: enough for a threshold. None
    /// if there is no source.
    pub fn estimate_hz(&self, platform: &impl Platform) -> Option<f64> {
        let measured = self.start.zip(bracket(platform));
        measured
            .map(|(start, end)| rate(start, end).0)
            .or_else(cpuid::hz)
            .or_else(|| platform.frequency().map(|claim| claim.hz))
    }

    /// Reads both clocks again, at least 100 ms after the first time, and writes the frequency by
    /// this and all other sources.
    pub fn finish(self, output: &mut Output<'_, impl Platform>) -> Result<(), WriteError> {
        use FrequencySource::{CpuidCrystal, CpuidHypervisor, DisciplinedClock, KernelClock};
        const STEERED: &str = "rate of the synchronised system clock";
        let platform = &mut *output.platform;
        let mut kernel = None;
        let reference = crate::output::text(&platform.reference_detail());
        let steered = platform.steering_ppm();
        let own = platform.frequency();
        if let Some((start, now)) = self.start.zip(platform.reference_ns()) {
            platform.pause(SPAN_NS.saturating_sub(now.saturating_sub(start.ns)));
            kernel = bracket(platform).map(|end| rate(start, end));
        }
        let disciplined = |((hz, _), ppm): (_, f64)| hz / (1.0 + ppm * 1e-6);
        let claim = |source, uncertainty_ppm, detail| {
            move |hz| Frequency {
                source,
                hz,
                uncertainty_ppm,
                detail,
            }
        };
        let claims = [
            kernel.map(|(hz, ppm)| claim(KernelClock, Some(ppm), &*reference)(hz)),
            (kernel.zip(steered).map(disciplined)).map(claim(DisciplinedClock, None, STEERED)),
            cpuid::crystal_hz().map(claim(CpuidCrystal, None, "CPUID leaf 0x15")),
            cpuid::hypervisor_hz().map(claim(
                CpuidHypervisor,
                Some(cpuid::HYPERVISOR_PPM),
                "CPUID leaf 0x40000010",
            )),
            own,
        ];
        let mut claims = claims.into_iter().flatten();
        claims.try_for_each(|claim| output.put(&Record::Frequency(claim)))
    }
}

fn bracket(platform: &impl Platform) -> Option<Bracket> {
    let mut best: Option<Bracket> = None;
    for _ in 0..BRACKETS {
        let before = bare_rdtsc();
        let ns = platform.reference_ns()?;
        let width = bare_rdtsc().wrapping_sub(before);
        if best.is_none_or(|best| width < best.width) {
            let tsc = before.wrapping_add(width / 2);
            best = Some(Bracket { tsc, width, ns });
        }
    }
    best
}

/// Returns the frequency in Hz and its uncertainty in ppm: each end is known to half its bracket.
fn rate(start: Bracket, end: Bracket) -> (f64, f64) {
    let ticks = end.tsc.wrapping_sub(start.tsc) as f64;
    let ns = end.ns.saturating_sub(start.ns).max(1) as f64;
    let slack = (start.width + end.width) as f64 / 2.0;
    (ticks * 1e9 / ns, slack / ticks.max(1.0) * 1e6)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn intervals(tick: impl Fn(u64) -> u64) -> Vec<u16> {
        let reads = (0..INTERVALS as u64).map(|k| (k * 1_009, 20 + k % 97));
        reads
            .map(|(start, length)| (tick(start + length) - tick(start)) as u16)
            .collect()
    }

    #[test]
    fn a_timer_without_steps_has_step_1() {
        assert_eq!(step_of(&intervals(|t| t)), 1);
    }

    #[test]
    fn a_whole_step_is_found() {
        assert_eq!(step_of(&intervals(|t| t / 22 * 22)), 22);
        assert_eq!(step_of(&intervals(|t| t / 2 * 2)), 2);
    }

    #[test]
    fn a_step_of_25_96_ticks_reads_as_26() {
        let scaled = |t: u64| ((t as f64 / 25.96).floor() * 25.96) as u64;
        assert_eq!(step_of(&intervals(scaled)), 26);
    }

    #[test]
    fn one_interval_alone_tells_no_step() {
        assert_eq!(step_of(&[26; INTERVALS]), 1);
        assert_eq!(step_of(&[]), 1);
    }

    #[test]
    fn frequency_and_uncertainty_follow_from_the_brackets() {
        let at = |tsc, ns| Bracket {
            tsc,
            width: 100,
            ns,
        };
        let (hz, ppm) = rate(at(u64::MAX - 99, 0), at(250_000_000 - 100, 100_000_000));
        assert_eq!(hz, 2.5e9);
        assert!((ppm - 0.4).abs() < 1e-9);
    }
}
