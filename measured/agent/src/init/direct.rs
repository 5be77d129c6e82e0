//! The shortest way to a plan that only starts: the duration of a guest is measured from outside.
//!
//! No module is loaded and no port opened. The first process itself carries out the plan, writes
//! its records to the console, reports how it ended, and resets the machine, which ends a guest
//! that does not reboot.

use std::fs::OpenOptions;
use std::io::{self, Write};

use rustix::stdio::dup2_stdout;
use rustix::system::{RebootCommand, reboot};
use rustix::termios::tcdrain;
use tare_measured::platform::StartTimes;
use tare_wire::guest::Message;

use super::file_systems;
use super::order::Order;
use crate::{Linux, status};

/// Returns the order if it is to be carried out this way.
pub fn order() -> Option<Order> {
    file_systems::processes().ok()?;
    let order = Order::read().ok()?;
    (order.direct && !order.root).then_some(order)
}

/// Carries out the order, and ends the guest.
pub fn run(order: &Order, environment: &'static str, began: StartTimes) -> ! {
    // A unit's standard output is the journal.
    let console = OpenOptions::new().write(true).open("/dev/console");
    let _ = console.map(dup2_stdout);
    let status = status(&order.plan, &[], &mut Linux::within(environment, began));
    let mut out = io::stdout();
    let _ = writeln!(out, "{}", Message::Ended(status));
    let _ = out.flush();
    // Otherwise the rest in the serial port's queue would be lost.
    let _ = tcdrain(&out);
    loop {
        let _ = reboot(RebootCommand::Restart);
    }
}
