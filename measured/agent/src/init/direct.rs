//! The shortest way to a plan that only starts: how long a guest takes is measured from outside.
//!
//! No module is loaded and no port opened. The first process itself does what the plan says, writes its records to the
//! console, says how it ended, and resets the machine, which ends a guest that is not to start anew.

use std::fs::OpenOptions;
use std::io::{self, Write};

use rustix::stdio::dup2_stdout;
use rustix::system::{RebootCommand, reboot};
use rustix::termios::tcdrain;
use tare_measured::platform::Began;
use tare_wire::guest::Message;

use super::file_systems;
use super::order::Order;
use crate::{Linux, status};

/// Returns what is asked for, if it is to be done on this way.
pub fn order() -> Option<Order> {
    file_systems::processes().ok()?;
    let order = Order::read().ok()?;
    (order.direct && !order.root).then_some(order)
}

/// Does what is asked for, and ends the guest.
pub fn run(order: &Order, environment: &'static str, began: Began) -> ! {
    // A unit's standard output is the journal.
    let console = OpenOptions::new().write(true).open("/dev/console");
    let _ = console.map(dup2_stdout);
    let status = status(&order.plan, &[], &mut Linux::within(environment, began));
    let mut out = io::stdout();
    let _ = writeln!(out, "{}", Message::Ended(status));
    let _ = out.flush();
    // What is still in the queue of the serial port would be lost.
    let _ = tcdrain(&out);
    loop {
        let _ = reboot(RebootCommand::Restart);
    }
}
