//! `prime`: counts the primes below a limit by trial division, in registers only.
//!
//! For every n in 2 ‥ limit − 1 the divisors 2, 3, … are tried until one divides n; n is prime if
//! that divisor is n itself. One inner step is one 32-bit `div` and the loop around it. Limit 22
//! takes 84 divisions, as in kot-2019.
//!
//! It is assembly so that nothing spills: the repetition touches no memory, so its delays are not
//! its own cache misses.
//!
//! # When the method lies
//!
//! On many CPUs a division's duration depends on its operands, and the branch predictor learns the
//! loop over the first repetitions: the first samples of a batch are slower. Only the work is
//! constant; compare a limit only with the same limit.

use core::arch::asm;

use crate::noise::{Code, Kind, Size, Timed, Workload};
use crate::timing::{Fenced, Published, Stamp, Timing, batch};

/// The descriptor.
pub const WORKLOAD: Workload = Workload {
    code: Code {
        id: "prime",
        size: Some(Size {
            key: "limit",
            least: MIN_LIMIT as u64,
            most: MAX_LIMIT as u64,
            // The single run of kot-2019.
            default: 22,
            meaning: "Count the primes below N",
        }),
        kind: Kind::Timed(Timed {
            fenced,
            published,
            room: |_| 0,
            prepare: |_| (),
            steps: |limit| divisions(limit as u32),
        }),
    },
    symbols: &["tare_prime_fenced", "tare_prime_published"],
    repetitions: 1_000_000,
    // A 32-bit division with the loop around it takes about 3 ns.
    ns: |limit| roughly(limit) * 3.0,
    keywords: "registers only",
    does: "computes in registers only",
    method: "counts the primes below a limit by trial division, in registers only, and times every repetition. No \
             repetition touches memory, so its own cache misses do not delay it.",
    steps: "integer divisions in one repetition",
    is_linear: true,
    uses_memory: false,
};

/// The smallest limit: below it nothing is divided.
pub const MIN_LIMIT: u32 = 3;

/// The largest limit: one repetition then takes about a second.
pub const MAX_LIMIT: u32 = 65_536;

unsafe extern "C" fn fenced(limit: u64, _: *mut u64, repetitions: u64, out: *mut Stamp) -> u64 {
    // SAFETY: passed on to the caller.
    unsafe { tare_prime_fenced(limit as u32, repetitions, out).into() }
}

unsafe extern "C" fn published(limit: u64, _: *mut u64, repetitions: u64, out: *mut Stamp) -> u64 {
    // SAFETY: passed on to the caller.
    unsafe { tare_prime_published(limit as u32, repetitions, out).into() }
}

/// Returns the number of divisions in one repetition.
///
/// Runs outside the timed code, and computes the number rather than simulating the loop: for n the
/// number of divisors tried is its smallest prime factor minus one.
pub fn divisions(limit: u32) -> u64 {
    (2..limit).map(|n| u64::from(smallest_factor(n)) - 1).sum()
}

/// Approximates the divisions by the prime number theorem: primes dominate, each p costs p − 1
/// divisions, and the primes below x sum to about x² / (2 ln x). The exact count would take too
/// long for a plan of many limits.
fn roughly(limit: u64) -> f64 {
    let x = limit.max(2) as f64;
    // log₂ by linear interpolation between powers of 2, as `core` has no logarithm.
    let power = limit.max(2).ilog2();
    let log2 = f64::from(power) - 1.0 + x / (1_u64 << power) as f64;
    x * x / (2.0 * core::f64::consts::LN_2 * log2)
}

/// Counts the primes below `limit` by a different method from the measured code's.
#[cfg(test)]
fn primes_below(limit: u32) -> u32 {
    (2..limit).map(|n| u32::from(smallest_factor(n) == n)).sum()
}

fn smallest_factor(n: u32) -> u32 {
    (2..)
        .take_while(|d| d * d <= n)
        .find(|d| n.is_multiple_of(*d))
        .unwrap_or(n)
}

/// Counts the primes below `limit` `repetitions` times between fenced stamps.
///
/// Returns the count of the last repetition.
///
/// # Safety
///
/// `out` must be valid for writing `repetitions` stamps.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_prime_fenced(limit: u32, repetitions: u64, out: *mut Stamp) -> u32 {
    // SAFETY: passed on to the caller.
    unsafe { run::<Fenced>(limit, repetitions, out) }
}

/// Counts the primes below `limit` `repetitions` times between bare `rdtscp`.
///
/// Returns the count of the last repetition.
///
/// # Safety
///
/// `out` must be valid for writing `repetitions` stamps.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_prime_published(
    limit: u32,
    repetitions: u64,
    out: *mut Stamp,
) -> u32 {
    // SAFETY: passed on to the caller.
    unsafe { run::<Published>(limit, repetitions, out) }
}

#[inline(always)]
unsafe fn run<T: Timing>(limit: u32, repetitions: u64, out: *mut Stamp) -> u32 {
    let mut primes = 0;
    // SAFETY: passed on to the caller.
    unsafe { batch::<T>(repetitions, out, || primes = count(limit)) };
    primes
}

#[inline(always)]
fn count(limit: u32) -> u32 {
    let primes: u32;
    // SAFETY: works in registers only. The divisor is never 0, and n / d with d >= 2 and a zero
    // high half cannot overflow.
    unsafe {
        asm!(
            "xor {primes:e}, {primes:e}",
            "mov {n:e}, 2",
            "cmp {limit:e}, 2",
            "jbe 5f",
            "2:",                        // next n
            "mov {divisor:e}, 1",
            "3:",                        // next divisor
            "inc {divisor:e}",
            "mov eax, {n:e}",
            "xor edx, edx",
            "div {divisor:e}",
            "test edx, edx",
            "jnz 3b",
            "cmp {divisor:e}, {n:e}",    // n divides itself only: prime
            "jne 4f",
            "inc {primes:e}",
            "4:",
            "inc {n:e}",
            "cmp {n:e}, {limit:e}",
            "jb 2b",
            "5:",
            primes = out(reg) primes,
            n = out(reg) _,
            divisor = out(reg) _,
            limit = in(reg) limit,
            out("eax") _,
            out("edx") _,
            options(nostack, nomem),
        );
    }
    primes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_22_takes_the_84_divisions_of_the_study() {
        assert_eq!(divisions(22), 84);
        assert_eq!(divisions(3), 1);
    }

    #[test]
    fn the_approximation_is_within_a_fifth_of_the_count() {
        for limit in [10, 22, 46, 1_000, 10_000, MAX_LIMIT] {
            let ratio = roughly(limit.into()) / divisions(limit) as f64;
            assert!((0.8..1.25).contains(&ratio), "{limit}: {ratio}");
        }
    }

    #[test]
    fn measured_code_counts_primes_for_every_small_limit() {
        let mut out = [Stamp::default(); 2];
        for limit in 0..2_000 {
            // SAFETY: `out` holds two stamps.
            let (fenced, published) = unsafe {
                (
                    tare_prime_fenced(limit, 2, out.as_mut_ptr()),
                    tare_prime_published(limit, 2, out.as_mut_ptr()),
                )
            };
            assert_eq!(fenced, primes_below(limit), "limit {limit}");
            assert_eq!(published, fenced);
        }
    }

    #[test]
    fn the_number_of_divisions_is_what_the_loop_executes() {
        for limit in 3..300 {
            let mut executed = 0;
            for n in 2..limit {
                let mut divisor = 2;
                executed += 1;
                while n % divisor != 0 {
                    divisor += 1;
                    executed += 1;
                }
            }
            assert_eq!(divisions(limit), executed, "limit {limit}");
        }
    }

    #[test]
    fn every_repetition_is_stamped_in_order() {
        let mut out = [Stamp::default(); 100];
        // SAFETY: `out` holds a hundred stamps.
        unsafe { tare_prime_fenced(22, 100, out.as_mut_ptr()) };
        assert!(out.iter().all(|s| s.start < s.end));
        assert!(out.windows(2).all(|w| w[0].end <= w[1].start));
    }
}
