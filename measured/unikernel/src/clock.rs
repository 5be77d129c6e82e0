//! The frequency of the TSC, where CPUID does not report it: from the hypervisor's paravirtual
//! clock, or from at most 2 ms of comparison with a timer of known frequency; and the time of day.
//! Nothing is measured before the first request, or before [`begin`].

use core::arch::x86_64::__cpuid;
use core::ptr::read_volatile;

use crate::apic;
use crate::cpu::{self, in8, out8, tsc};
use crate::rate::{self, PIT_HZ, Rate, Reading};
use crate::wall_clock;

/// The TSC's frequency with its source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frequency {
    /// The frequency.
    pub rate: Rate,
    /// The source.
    pub source: Source,
}

/// A source of the TSC's frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// KVM's paravirtual clock.
    ParavirtualClock,
    /// The PIT, channel 2.
    Pit,
    /// The APIC's timer, which runs with 1 GHz in QEMU and KVM.
    ApicTimer,
}

/// Determines the frequency, in less time by the APIC's timer if [`begin`] has let it run. None if there
/// is no source.
pub fn tsc_frequency(begun: Option<Reading>) -> Option<Frequency> {
    let with_apic_timer = |start| Some((Source::ApicTimer, with_apic_timer(start)?));
    paravirtual()
        // The timer stops at 0, four seconds after its start.
        .or_else(|| with_apic_timer(begun.filter(|_| apic::count() > 0)?))
        .or_else(|| with_pit().map(|rate| (Source::Pit, rate)))
        .or_else(|| with_apic_timer(begin()?))
        .map(|(source, rate)| Frequency { rate, source })
}

/// Lets the APIC's timer run, with its interrupts masked, and returns a first reading, if its frequency
/// is known: what an image does until it asks for the TSC's frequency takes the place of waiting.
pub fn begin() -> Option<Reading> {
    apic_timer_hz()?;
    apic::enable();
    Some(apic_start())
}

/// Returns the frequency of the APIC's timer in Hz if it is known without measuring: it is 1 GHz
/// under KVM and QEMU's emulation.
pub fn apic_timer_hz() -> Option<f64> {
    let known: [&[u8; 12]; 2] = [b"KVMKVMKVM\0\0\0", b"TCGTCGTCGTCG"];
    known.contains(&&cpu::hypervisor()?).then_some(1e9)
}

/// Measures the frequency of the APIC's timer in Hz with the PIT. None without PIT.
pub fn measure_apic_timer_hz() -> Option<f64> {
    apic::set_timer(apic::Mode::OneShot, None);
    apic::set_count(u32::MAX);
    let pit = Pit::start();
    let start = (apic::count(), pit.reading());
    let end = pit
        .spin(start.1)
        .map(|(reading, _)| (apic::count(), reading));
    apic::set_count(0);
    let (count, reading) = end?;
    let counted = f64::from(start.0.checked_sub(count)?);
    let steps = reading.count.checked_sub(start.1.count)?;
    Some(counted * PIT_HZ / steps as f64)
}

/// Counts the APIC's timer against the TSC for 100 ms, with interrupts of the timer masked. Returns
/// how many ticks of the TSC one step takes; None if it does not count.
pub fn tsc_per_apic_step(tsc_hz: f64) -> Option<Rate> {
    const PART_OF_A_SECOND: f64 = 10.0;
    let span = (tsc_hz / PART_OF_A_SECOND) as u64;
    let start = apic_start();
    while tsc().wrapping_sub(start.after) < span {
        core::hint::spin_loop();
    }
    let end = apic_reading();
    apic::set_count(0);
    rate::between(start, end, 1.0)
}

/// Returns the time of day in seconds since 1970. None if there is no clock, or it shows no valid
/// time.
pub fn wall_seconds() -> Option<u64> {
    /// The register with the update flag, which is set once per second for up to 2 ms.
    const STATUS_A: u8 = 10;
    const CHANGES: u8 = 1 << 7;
    /// The maximum number of readings until two are equal. A reading takes 7 µs or more.
    const READINGS: u32 = 100_000;
    let read = |register| {
        // SAFETY: ports of the clock, which touch no memory.
        unsafe {
            out8(0x70, register);
            in8(0x71)
        }
    };
    let mut last = None;
    for _ in 0..READINGS {
        if read(STATUS_A) & CHANGES != 0 {
            continue;
        }
        let reading = wall_clock::REGISTERS.map(read);
        if last == Some(reading) {
            return wall_clock::since_1970(reading, read(wall_clock::STATUS_B));
        }
        last = Some(reading);
    }
    None
}

/// KVM's page for one CPU (Documentation/virt/kvm/x86/msr.rst, `pvclock_vcpu_time_info`).
#[repr(C, align(32))]
#[derive(Default)]
struct ParavirtualClock {
    version: u32,
    padding: u32,
    tsc: u64,
    ns: u64,
    factor: u32,
    shift: i8,
    flags: u8,
    more_padding: [u8; 2],
}

fn paravirtual() -> Option<(Source, Rate)> {
    const FEATURES: u32 = 0x4000_0001;
    const HAS_CLOCK: u32 = 1 << 3;
    const CLOCK: u32 = 0x4b56_4d01;
    const ENABLED: u64 = 1;
    /// A factor has 32 bits, of which the highest is set.
    const UNCERTAINTY_PPM: f64 = 0.0005;
    if cpu::hypervisor()? != *b"KVMKVMKVM\0\0\0" || __cpuid(FEATURES).eax & HAS_CLOCK == 0 {
        return None;
    }
    let page = ParavirtualClock::default();
    let place = &raw const page;
    // SAFETY: KVM has the register. It writes to `page` until disabled, two lines below; the page
    // is read as shared memory.
    let (factor, shift) = unsafe {
        cpu::write_msr(CLOCK, place as u64 | ENABLED);
        let read = (
            read_volatile(&raw const (*place).factor),
            read_volatile(&raw const (*place).shift),
        );
        cpu::write_msr(CLOCK, 0);
        read
    };
    let rate = Rate {
        hz: rate::paravirtual_hz(factor, shift)?,
        uncertainty_ppm: UNCERTAINTY_PPM,
    };
    Some((Source::ParavirtualClock, rate))
}

/// The PIT's channel 2, which counts down from 65,535 without side effects.
struct Pit;

/// The number of PIT steps to wait for: 1.5 ms.
const PIT_STEPS: u64 = 1_790;
/// The number of readings without a step after which there is no PIT.
const PATIENCE: u32 = 1_000;

impl Pit {
    fn start() -> Self {
        // SAFETY: ports of the PIT and of its gate; they touch no memory.
        unsafe {
            let gate = in8(0x61) & !2 | 1;
            out8(0x61, gate); // gate open, speaker off
            out8(0x43, 0b1011_0000); // channel 2, both bytes, counts down once
            out8(0x42, 0xff);
            out8(0x42, 0xff);
        }
        Self
    }

    fn reading(&self) -> Reading {
        let before = tsc();
        // SAFETY: as above. The first write latches the count.
        let left = unsafe {
            out8(0x43, 0b1000_0000);
            u16::from_le_bytes([in8(0x42), in8(0x42)])
        };
        Reading {
            before,
            after: tsc(),
            count: (u16::MAX - left).into(),
        }
    }

    /// Reads until [`PIT_STEPS`] after `start`. Returns the last reading, and the longest time from
    /// one to the next, in ticks of the TSC.
    fn spin(&self, start: Reading) -> Option<(Reading, u64)> {
        let (mut last, mut gap) = (start, start.after - start.before);
        let mut still = 0;
        while last.count.checked_sub(start.count)? < PIT_STEPS {
            let reading = self.reading();
            still = if reading.count == last.count {
                still + 1
            } else {
                0
            };
            if still > PATIENCE {
                return None;
            }
            gap = gap.max(reading.after.wrapping_sub(last.before));
            last = reading;
        }
        Some((last, gap))
    }
}

/// Counts again if this CPU was interrupted: then a reading took long, or the PIT went round.
fn with_pit() -> Option<Rate> {
    const ATTEMPTS: u32 = 32;
    /// The part of the time that it may have been away.
    const AWAY: u64 = 16;
    let attempt = || {
        let pit = Pit::start();
        // The first reading after the count was loaded may still show the old one.
        let _ = pit.reading();
        let start = pit.reading();
        let (end, gap) = pit.spin(start)?;
        let span = end.after.wrapping_sub(start.before);
        Some((rate::between(start, end, PIT_HZ)?, gap < span / AWAY))
    };
    let mut best: Option<Rate> = None;
    for number in 0..ATTEMPTS {
        match attempt() {
            Some((rate, true)) => return Some(rate),
            Some((rate, false))
                if best.is_none_or(|best| rate.uncertainty_ppm < best.uncertainty_ppm) =>
            {
                best = Some(rate);
            }
            Some(_) => {}
            None if best.is_none() && number >= 2 => return None,
            None => {}
        }
    }
    best
}

fn with_apic_timer(start: Reading) -> Option<Rate> {
    const STEPS: u64 = 1_500_000;
    let hz = apic_timer_hz()?;
    while u64::from(u32::MAX - apic::count()) - start.count < STEPS {}
    let end = apic_reading();
    apic::set_count(0);
    rate::between(start, end, hz)
}

/// Lets the APIC's timer run down once, with its interrupts masked. Returns a first reading.
fn apic_start() -> Reading {
    apic::set_timer(apic::Mode::OneShot, None);
    apic::set_count(u32::MAX);
    apic_reading()
}

/// Reads how far the APIC's timer has counted: the tightest of some readings.
fn apic_reading() -> Reading {
    const READINGS: u32 = 20;
    let reading = || {
        let before = tsc();
        let count = u32::MAX - apic::count();
        Reading {
            before,
            after: tsc(),
            count: count.into(),
        }
    };
    let width = |reading: &Reading| reading.after.wrapping_sub(reading.before);
    (1..READINGS).fold(reading(), |best, _| {
        core::cmp::min_by_key(best, reading(), width)
    })
}
