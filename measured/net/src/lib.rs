//! Network services, and how the unikernel's own network is configured.
//!
//! A service is written once, on the sockets of `edge-nal`. So the same code answers in an image, on the sockets of Linux, and
//! in a process of Linux over a TAP device with the unikernel's stack.
//!
//! * [`settings`]: addresses and routes, from words;
//! * [`filter`]: what the stack gets to see of the network;
//! * [`backlog`]: clients that wait when all connections are taken;
//! * [`sockets`]: sockets that outlast their peers;
//! * [`watch`]: what these see beside the stack, and packets that were dropped;
//! * [`echo`]: sends back what comes;
//! * [`dns`]: an authoritative name server; [`zone`]: what it knows;
//! * `http`: files and figures for browsers and Prometheus.
//!
//! What a service does with a packet is a pure function that knows no socket ([`dns::answer`]); what is left is a loop.
#![no_std]

extern crate alloc;

pub mod backlog;
pub mod dns;
pub mod echo;
pub mod filter;
#[cfg(feature = "http")]
pub mod http;
pub mod settings;
pub mod sockets;
pub mod watch;
pub mod zone;

use core::future::Future;

use edge_nal::{TcpAccept, TcpShutdown};
use embassy_futures::select::{Either, select};
use embedded_io_async::{Read, Write};

/// The least that a service asks of a clock.
pub trait Clock {
    /// Waits so many seconds.
    fn sleep(&self, seconds: u32) -> impl Future<Output = ()>;
}

/// Who accepts connections.
pub trait Accept {
    /// Waits for a connection. `None` if there is nothing to accept it with: later there is.
    fn accept(&self) -> impl Future<Output = Option<impl Read + Write + TcpShutdown>>;
}

impl<T: TcpAccept> Accept for T {
    async fn accept(&self) -> Option<impl Read + Write + TcpShutdown> {
        let accepted = TcpAccept::accept(self).await;
        accepted.ok().map(|(_, connection)| connection)
    }
}

/// How long a connection may be silent, in seconds: a peer that has vanished does not keep its place for ever.
pub const SILENCE_SECONDS: u32 = 30;

/// Waits for something of a peer, but no longer than it may be silent. `None` if it was.
pub async fn unless_silent<T>(clock: &impl Clock, something: impl Future<Output = T>) -> Option<T> {
    match select(something, clock.sleep(SILENCE_SECONDS)).await {
        Either::First(something) => Some(something),
        Either::Second(()) => None,
    }
}

/// Ends a connection at once, and tells a peer that is still there.
pub async fn abort(clock: &impl Clock, mut connection: impl TcpShutdown) {
    const SECONDS: u32 = 1;
    // It is over, whatever becomes of the reset.
    let _ = select(connection.abort(), clock.sleep(SECONDS)).await;
}
