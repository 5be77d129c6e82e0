//! Reads the command line and measures.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicPtr, Ordering};

use tare_measured::bare::{experiments, reporting_cpu};
use tare_measured::platform::StartTimes;
use tare_measured::table::{self, Failure, Measurement, Threads};
use tare_unikernel::boot::Boot;
use tare_unikernel::console::Console;
use tare_unikernel::cpu;
use tare_unikernel::exit::{Status, exit};
use tare_unikernel::smp;
use tare_wire::image::{self, Settings};
use tare_wire::words::PlanError;

use crate::machine::Machine;

#[used]
// SAFETY: the section is for notes, and this is one.
#[unsafe(link_section = ".note.tare")]
static NOTE: [u32; 6] = image::NOTE;

/// Carries out the order on the command line; `more` are experiments in addition to those of tare.
pub fn run(boot: &'static Boot, more: &[Measurement<Machine>]) -> Status {
    let began = StartTimes {
        entry_tsc: Some(boot.entry_tsc),
        main_tsc: Some(cpu::tsc()),
        main_ns: None,
    };
    let order = match Order::parse(boot.command_line, began, more) {
        Ok(order) => order,
        Err(error) => return misused(&error),
    };
    match order.settings.service {
        None | Some("bench") => {}
        Some(other) => {
            return misused(&format_args!(
                "this is the image of service=bench, not of service={other}"
            ));
        }
    }
    // If that fails, the experiment reports it in a record.
    let _ = smp::start(order.settings.cpus);
    ORDER.store((&raw const order).cast_mut(), Ordering::Release);
    match smp::on_cpu(reporting_cpu(order.threads), measure_here) {
        Ok(()) => cpu::stop(),
        Err(_) => measure(&order),
    }
}

/// The order on the command line.
struct Order {
    line: &'static str,
    began: StartTimes,
    settings: Settings<'static>,
    measurement: Measurement<Machine>,
    threads: Threads,
}

impl Order {
    fn parse(
        line: &'static str,
        began: StartTimes,
        more: &[Measurement<Machine>],
    ) -> Result<Self, PlanError<'static>> {
        let settings = Settings::parse(line.split_ascii_whitespace())?;
        let measurement = table::find(words(line), experiments().chain(more.iter().copied()))?;
        Ok(Self {
            line,
            began,
            settings,
            threads: (measurement.threads)(&mut words(line))?,
            measurement,
        })
    }
}

/// Returns the words of the plan.
fn words(line: &'static str) -> impl Iterator<Item = &'static str> {
    let words = line.split_ascii_whitespace();
    words.filter(|word| Settings::is_for_service(word))
}

fn measure(order: &Order) -> Status {
    let mut machine = Machine::new(order.settings, order.began);
    match (order.measurement.run)(&mut words(order.line), &mut machine) {
        Ok(()) => Status::Done,
        Err(Failure::Plan(error)) => misused(&error),
        Err(Failure::Measurement(_)) => Status::Failed,
    }
}

/// The order, for the CPU that carries it out; the first CPU keeps it, and never returns.
static ORDER: AtomicPtr<Order> = AtomicPtr::new(core::ptr::null_mut());

fn measure_here() {
    // SAFETY: stored before this function was started, by a function that does not return.
    let order = unsafe { &*ORDER.load(Ordering::Acquire) };
    exit(measure(order))
}

fn misused(error: &impl fmt::Display) -> Status {
    // Writing to the console does not fail.
    let _ = writeln!(Console, "unikernel: {error}");
    Status::Misused
}
