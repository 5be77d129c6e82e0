//! The bare machine as the platform of the measured code.

use core::cell::OnceCell;

use tare_measured::bare::{Bare, counters};
use tare_measured::cpuid;
use tare_measured::platform::{Memory, MemoryError, Platform, Prepared, StartTimes, WriteError};
use tare_measured::session::Stop;
use tare_unikernel::clock::{self, Source};
use tare_unikernel::local::local;
use tare_unikernel::paging::{self, PageSize};
use tare_unikernel::timer::{self, TimerError};
use tare_unikernel::{console, cpu, memory, smp};
use tare_wire::image::{Pages, Settings};
use tare_wire::record::{Frequency, FrequencySource};

/// The machine that runs the measured code.
pub struct Machine {
    settings: Settings<'static>,
    began: StartTimes,
    frequency: OnceCell<Option<Frequency<'static>>>,
    /// The size of the pages that map the buffers.
    pages: Option<Pages>,
}

impl Machine {
    /// Changes nothing yet.
    pub fn new(settings: Settings<'static>, began: StartTimes) -> Self {
        Self {
            settings,
            began,
            frequency: OnceCell::new(),
            pages: None,
        }
    }
}

impl Bare for Machine {
    fn settings(&self) -> Settings<'static> {
        self.settings
    }

    fn leave_timer(&mut self) {
        self.settings.timer_hz = None;
    }
}

impl Platform for Machine {
    type Error = Stop;

    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    fn environment(&self) -> &'static str {
        "unikernel"
    }

    fn began(&self) -> StartTimes {
        self.began
    }

    fn prepare(&mut self, cpu: Option<u32>) -> Result<Prepared, &'static str> {
        if smp::count() != self.settings.cpus || cpu.unwrap_or(0) != local().number() {
            return Err(
                "not all requested CPUs started: give the machine that many (QEMU: -smp), and the \
                 word cpus= the same number, which is greater than that of cpu=",
            );
        }
        if !cpu::has_rdtscp() {
            return Err(
                "this CPU has no RDTSCP, by which the measured code takes its time stamps: choose \
                 another one (QEMU: -cpu max, or host with KVM)",
            );
        }
        cpu::disable_interrupts();
        if let Some(hz) = self.settings.timer_hz {
            let tsc_hz = || cpuid::hz().or_else(|| self.frequency().map(|claim| claim.hz));
            timer::start(hz, tsc_hz).map_err(|error| match error {
                TimerError::NoFrequency => {
                    "the timer's frequency is unknown here: measure with irq=off"
                }
                TimerError::Rate => "the timer can't tick at the rate of timer-hz=",
            })?;
        }
        Ok(Prepared {
            // Nothing idles: the CPU is never asked to sleep.
            latency_held: true,
            notice: None,
        })
    }

    fn memory(&mut self, bytes: usize) -> Result<Memory, MemoryError> {
        let taken = match self.settings.pages {
            None => memory::take(bytes),
            Some(Pages::Small) => paging::take(bytes, PageSize::Small),
            Some(Pages::Large) => paging::take(bytes, PageSize::Large),
            Some(Pages::Giant) => paging::take(bytes, PageSize::Giant),
        };
        let bytes = taken.ok_or(MemoryError {
            wanted_bytes: bytes,
            reason: match self.settings.pages {
                Some(Pages::Giant) => {
                    "this CPU has no pages of 1 GiB (QEMU: -cpu max, or host with KVM), or the \
                     guest has no whole GiB free below 3 GiB (QEMU: -m)"
                }
                _ => "the guest has less free memory below 4 GiB (QEMU: -m)",
            },
        })?;
        // The first ones may be among the first 4 MiB.
        let last = bytes.as_ptr().addr() + bytes.len().saturating_sub(1);
        self.pages = Some(match paging::size_at(last) {
            PageSize::Small => Pages::Small,
            PageSize::Large => Pages::Large,
            PageSize::Giant => Pages::Giant,
        });
        Ok(Memory {
            bytes,
            locked: true,
        })
    }

    fn fact(&mut self, number: usize) -> Option<(&'static str, &str)> {
        let pages = self.pages.filter(|_| number == 0)?;
        Some(("pages of the buffers", pages.word()))
    }

    fn frequency(&self) -> Option<Frequency<'static>> {
        *self.frequency.get_or_init(|| {
            if cpuid::hz().is_some() {
                return None;
            }
            let found = clock::tsc_frequency(None)?;
            let (source, detail) = match found.source {
                Source::ParavirtualClock => (FrequencySource::ParavirtualClock, "kvmclock"),
                Source::Pit => (
                    FrequencySource::HardwareTimer,
                    "1.5 ms compared with the PIT",
                ),
                Source::ApicTimer => (
                    FrequencySource::HardwareTimer,
                    "1.5 ms compared with the APIC's timer, assumed to run at 1 GHz",
                ),
            };
            Some(Frequency {
                source,
                hz: found.rate.hz,
                uncertainty_ppm: Some(found.rate.uncertainty_ppm),
                detail,
            })
        })
    }

    fn counters(&self) -> [Option<(&'static str, u64)>; 4] {
        let [a, b, c] = counters();
        [Some(a), Some(b), Some(c), None]
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        console::write(bytes);
        Ok(())
    }
}
