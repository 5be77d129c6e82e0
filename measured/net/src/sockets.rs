//! Sockets of the unikernel's stack, with time limits.
//!
//! * A client that begins a connection and falls silent loses its socket, sooner if another client
//!   needs one; then the slowest of the others loses it, too. A connection that ends before a service
//!   has seen it is ignored.
//! * The stack keeps datagrams to a neighbour that does not exist until it answers, in front of all
//!   others, so they are dropped here after a time. Datagrams without a possible answer, from
//!   outside all routes or to a multicast group, are ignored.

use alloc::boxed::Box;
use alloc::vec;
use core::net::SocketAddr;

use edge_nal::{UdpReceive, UdpSend};
use embassy_futures::poll_once;
use embassy_net::udp::{PacketMetadata, UdpMetadata, UdpSocket};
use embassy_net::{IpAddress, IpEndpoint, Stack};
use embassy_time::{Duration, Instant, with_timeout};
use embedded_io_async::{ErrorKind, ErrorType};

use crate::watch::{Dropped, Watch};

#[cfg(feature = "tcp")]
mod connections;

#[cfg(feature = "tcp")]
pub use connections::Connections;

/// Time limit for a waiting datagram. The stack asks for one neighbour's address per second.
const PATIENCE: Duration = Duration::from_secs(2);

/// A socket for datagrams.
pub struct Datagrams {
    stack: Stack<'static>,
    socket: UdpSocket<'static>,
    port: u16,
    /// When it was first seen since then that something waits to be sent.
    waits: Option<Instant>,
    /// The number of datagrams queued since something was surely sent: nothing was waiting, or more
    /// had been queued than can wait.
    queued: usize,
    /// The number of datagrams received.
    received: u64,
    watch: &'static Watch,
}

impl Datagrams {
    /// Makes a socket with room for `count` datagrams and `bytes` bytes in each direction. None if
    /// the port is in use.
    pub fn new(
        stack: Stack<'static>,
        port: u16,
        count: usize,
        bytes: usize,
        watch: &'static Watch,
    ) -> Option<Self> {
        let packets = || Box::leak(vec![PacketMetadata::EMPTY; count].into_boxed_slice());
        let buffer = || Box::leak(vec![0; bytes].into_boxed_slice());
        let mut socket = UdpSocket::new(stack, packets(), buffer(), packets(), buffer());
        socket.bind(port).ok()?;
        Some(Self {
            stack,
            socket,
            port,
            waits: None,
            queued: 0,
            received: 0,
            watch,
        })
    }

    /// Returns whether a datagram was sent to this machine alone, from where a route leads.
    fn can_be_answered(&self, about: &UdpMetadata) -> bool {
        match (about.endpoint.addr, about.local_address) {
            (IpAddress::Ipv4(from), Some(IpAddress::Ipv4(to))) => {
                self.stack.config_v4().is_some_and(|config| {
                    config.address.address() == to
                        && (config.gateway.is_some() || config.address.contains_addr(&from))
                })
            }
            #[cfg(feature = "ipv6")]
            (IpAddress::Ipv6(from), Some(IpAddress::Ipv6(to))) => {
                // Only SLAAC sets a link-local address.
                let leads_there = cfg!(feature = "slaac") && from.is_unicast_link_local()
                    || self.stack.config_v6().is_some_and(|config| {
                        config.gateway.is_some() || config.address.contains_addr(&from)
                    });
                leads_there && !to.is_multicast()
            }
            _ => false,
        }
    }

    /// Drops the waiting datagrams.
    fn clear(&mut self) {
        let waiting = self.queued.min(self.socket.packet_send_capacity());
        self.watch.lose(Dropped::Peer, waiting as u64);
        self.socket.close();
        // The socket was bound to this port before.
        let _ = self.socket.bind(self.port);
        self.moves();
    }

    /// Records that something was sent.
    fn moves(&mut self) {
        (self.waits, self.queued) = (None, 0);
    }
}

impl ErrorType for Datagrams {
    type Error = ErrorKind;
}

impl UdpReceive for Datagrams {
    async fn receive(&mut self, to: &mut [u8]) -> Result<(usize, SocketAddr), ErrorKind> {
        loop {
            if self.port == self.watch.port && !self.socket.may_recv() {
                self.watch.got(self.received);
            }
            let received = self.socket.recv_from(to).await;
            self.received += 1;
            let (bytes, about) = received.map_err(|_| ErrorKind::InvalidData)?;
            if self.can_be_answered(&about) {
                let from = about.endpoint;
                return Ok((bytes, SocketAddr::new(from.addr.into(), from.port)));
            }
            self.watch.lose(Dropped::Route, 1);
        }
    }
}

impl UdpSend for Datagrams {
    async fn send(&mut self, to: SocketAddr, datagram: &[u8]) -> Result<(), ErrorKind> {
        let to: IpEndpoint = match to {
            SocketAddr::V4(to) => to.into(),
            #[cfg(feature = "ipv6")]
            SocketAddr::V6(to) => to.into(),
            #[cfg(not(feature = "ipv6"))]
            SocketAddr::V6(_) => return Err(ErrorKind::Unsupported),
        };
        if poll_once(self.socket.flush()).is_ready() {
            self.moves();
        } else if self.waits.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            self.clear();
        }
        match with_timeout(PATIENCE, self.socket.send_to(datagram, to)).await {
            Ok(sent) => {
                self.queued += 1;
                if self.queued > self.socket.packet_send_capacity() {
                    self.moves();
                }
                sent.map_err(|_| ErrorKind::InvalidInput)
            }
            Err(_) => {
                self.clear();
                self.watch.lose(Dropped::Peer, 1);
                Err(ErrorKind::TimedOut)
            }
        }
    }
}
