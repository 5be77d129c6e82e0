//! Measures wake-ups on two CPUs for a reader that goes away just before they begin, and tests
//! whether the other CPU is free again afterwards.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

#[path = "../../src/bin/bench/machine.rs"]
mod machine;

use core::sync::atomic::{AtomicBool, Ordering};

use tare_measured::bare::{Bare, experiments};
use tare_measured::platform::{Memory, MemoryError, Platform, Prepared, StartTimes, WriteError};
use tare_measured::session::Stop;
use tare_measured::table::{Failure, find};
use tare_unikernel::boot::Boot;
use tare_unikernel::console::Console;
use tare_unikernel::exit::Status;
use tare_unikernel::{cpu, smp};
use tare_wire::image::Settings;

use self::machine::Machine;

tare_unikernel::image!(main);

const PLAN: &str = "workload=wakeup interval=1ms duration=20ms threads=2";

/// A machine whose records are read up to those of the calibration.
struct Unread {
    machine: Machine,
    flushes: u32,
}

impl Platform for Unread {
    type Error = Stop;

    fn version(&self) -> &'static str {
        self.machine.version()
    }

    fn environment(&self) -> &'static str {
        self.machine.environment()
    }

    fn prepare(&mut self, cpu: Option<u32>) -> Result<Prepared, &'static str> {
        self.machine.prepare(cpu)
    }

    fn memory(&mut self, bytes: usize) -> Result<Memory, MemoryError> {
        self.machine.memory(bytes)
    }

    fn frequency(&self) -> Option<tare_wire::record::Frequency<'static>> {
        self.machine.frequency()
    }

    fn write(&mut self, _bytes: &[u8]) -> Result<(), WriteError> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        // After the first record, after the calibration, and before the first wake-up.
        self.flushes += 1;
        match self.flushes {
            3 => Err(WriteError),
            _ => Ok(()),
        }
    }
}

impl Bare for Unread {
    fn settings(&self) -> Settings<'static> {
        self.machine.settings()
    }

    fn leave_timer(&mut self) {
        self.machine.leave_timer();
    }
}

static IS_FREE: AtomicBool = AtomicBool::new(false);

fn main(boot: &'static Boot) -> Status {
    let words = || PLAN.split_ascii_whitespace();
    let settings = Settings::parse(boot.command_line.split_ascii_whitespace());
    let (Ok(settings), Ok(wakeup)) = (settings, find(words(), experiments())) else {
        return Status::Misused;
    };
    let _ = smp::start(settings.cpus);
    let mut unread = Unread {
        machine: Machine::new(settings, StartTimes::default()),
        flushes: 0,
    };
    let ran = (wakeup.run)(&mut words(), &mut unread);
    if !matches!(ran, Err(Failure::Measurement(Stop::Write(_)))) {
        Console.texts(&["unread: the plan was not given up when it could not be written\n"]);
        return Status::Failed;
    }
    let _ = smp::on_cpu(1, || IS_FREE.store(true, Ordering::Release));
    for _ in 0..1_000_000_000_u64 {
        if IS_FREE.load(Ordering::Acquire) {
            return Status::Done;
        }
        core::hint::spin_loop();
    }
    cpu::disable_interrupts();
    Console.texts(&["unread: the other CPU still measures\n"]);
    Status::Failed
}
