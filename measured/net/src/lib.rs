//! Network services, and the configuration of the unikernel's network.
//!
//! A service is written once, on the sockets of `edge-nal`, which the unikernel's stack
//! (`embassy-net`, on `smoltcp`) and Linux both have. So an image, a process on the kernel's
//! sockets and a process over a TAP device with the unikernel's stack run the same code, and the
//! difference between them is the operating system.
//!
//! * [`settings`]: addresses and routes, from words;
//! * [`filter`]: packets that the stack cannot handle safely, dropped before they reach it;
//! * [`backlog`]: clients that wait while all connections are in use;
//! * [`sockets`]: sockets with time limits;
//! * [`watch`]: counts of dropped packets;
//! * [`echo`]: the echo service;
//! * [`dns`]: an authoritative name server, and [`zone`], its records;
//! * [`asking`]: a client of it, for checks; [`resolver`]: queries for the addresses of a name;
//! * `http`: a server of files and figures.
//!
//! The answer to a packet is a pure function ([`dns::answer`]), tested without sockets.
//!
//! # Why `embassy-net`
//!
//! A name server on `smoltcp` alone took 71 kB with IPv4, UDP and DHCP, where this one took 95 kB
//! (90 by now), and 18 instead of 21 µs of QEMU's CPU time per query (TCG, user-mode network,
//! median of three on a busy machine). It had no time limits, no filter and no version for Linux:
//! the sockets of `edge-nal` and the tasks that wait for them are the other 24 kB.
#![no_std]

extern crate alloc;

pub mod asking;
pub mod backlog;
pub mod dns;
pub mod echo;
pub mod filter;
#[cfg(feature = "http")]
pub mod http;
pub mod resolver;
pub mod settings;
pub mod sockets;
pub mod watch;
pub mod zone;

use core::future::Future;

use edge_nal::{TcpAccept, TcpShutdown};
use embassy_futures::select::{Either, select};
use embedded_io_async::{Read, Write};

/// A clock for the time limits of a service.
pub trait Clock {
    /// Waits for some seconds.
    fn sleep(&self, seconds: u32) -> impl Future<Output = ()>;
}

/// A listener for connections.
pub trait Accept {
    /// Waits for a connection. None if all sockets are in use at the moment.
    fn accept(&self) -> impl Future<Output = Option<impl Read + Write + TcpShutdown>>;
}

impl<T: TcpAccept> Accept for T {
    async fn accept(&self) -> Option<impl Read + Write + TcpShutdown> {
        let accepted = TcpAccept::accept(self).await;
        accepted.ok().map(|(_, connection)| connection)
    }
}

/// Time limit for a silent connection, in seconds, so that a vanished peer loses its place.
pub const SILENCE_SECONDS: u32 = 30;

/// Waits for a peer, at most [`SILENCE_SECONDS`]. None after this time.
pub async fn unless_silent<T>(clock: &impl Clock, something: impl Future<Output = T>) -> Option<T> {
    match select(something, clock.sleep(SILENCE_SECONDS)).await {
        Either::First(something) => Some(something),
        Either::Second(()) => None,
    }
}

/// Resets a connection.
pub async fn abort(clock: &impl Clock, mut connection: impl TcpShutdown) {
    const SECONDS: u32 = 1;
    // The reset may be lost.
    let _ = select(connection.abort(), clock.sleep(SECONDS)).await;
}
