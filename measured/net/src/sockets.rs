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
#[cfg(feature = "tcp")]
use alloc::vec::Vec;
#[cfg(feature = "tcp")]
use core::cell::{Cell, RefCell, RefMut};
#[cfg(feature = "tcp")]
use core::future::{Future, poll_fn};
use core::net::SocketAddr;
#[cfg(feature = "tcp")]
use core::pin::pin;
#[cfg(feature = "tcp")]
use core::task::{Context, Poll};

#[cfg(feature = "tcp")]
use edge_nal::{Close, TcpShutdown};
use edge_nal::{UdpReceive, UdpSend};
use embassy_futures::poll_once;
#[cfg(feature = "tcp")]
use embassy_net::tcp::{self, State, TcpSocket};
use embassy_net::udp::{PacketMetadata, UdpMetadata, UdpSocket};
use embassy_net::{IpAddress, IpEndpoint, Stack};
use embassy_time::{Duration, Instant, with_timeout};
use embedded_io_async::{ErrorKind, ErrorType};
#[cfg(feature = "tcp")]
use embedded_io_async::{Read, Write};

#[cfg(feature = "tcp")]
use crate::Accept;
#[cfg(feature = "tcp")]
use crate::watch::numbers;
use crate::watch::{Dropped, Watch};

/// Time limit for a handshake while no other client needs the socket: the stack asks three times.
#[cfg(feature = "tcp")]
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time for a handshake even if another client needs the socket.
#[cfg(feature = "tcp")]
const ROUND_TRIP: Duration = Duration::from_millis(100);
/// Time for a connection even if it is the slowest one and another client needs its socket.
#[cfg(feature = "tcp")]
const BEGINNING: Duration = Duration::from_secs(1);
/// Time limit for a waiting datagram. The stack asks for one neighbour's address per second.
const PATIENCE: Duration = Duration::from_secs(2);

/// The sockets for connections to a port.
#[cfg(feature = "tcp")]
pub struct Connections {
    places: Vec<Place>,
    watch: &'static Watch,
}

/// A socket for one connection.
#[cfg(feature = "tcp")]
struct Place {
    socket: RefCell<TcpSocket<'static>>,
    is_taken: Cell<bool>,
    /// The start of a handshake that is not complete.
    begun: Cell<Option<Instant>>,
    /// The start of the connection, the bytes that it has moved since then, and its peer.
    connected: Cell<Instant>,
    moved: Cell<u64>,
    peer: Cell<Option<IpEndpoint>>,
}

#[cfg(feature = "tcp")]
impl Place {
    /// Returns whether a connection is slower than another, in bytes per time since its start.
    fn is_slower(&self, other: &Self) -> bool {
        let rate = |of: &Self, by: &Self| {
            u128::from(of.moved.get()) * u128::from(by.connected.get().elapsed().as_ticks())
        };
        rate(self, other) < rate(other, self)
    }
}

#[cfg(feature = "tcp")]
impl Connections {
    /// Makes `count` sockets for the service, with `window` bytes for each direction.
    #[must_use]
    pub fn new(stack: Stack<'static>, count: usize, window: usize, watch: &'static Watch) -> Self {
        let buffer = || Box::leak(vec![0; window].into_boxed_slice());
        let place = |_| Place {
            socket: RefCell::new(TcpSocket::new(stack, buffer(), buffer())),
            is_taken: Cell::new(false),
            begun: Cell::new(None),
            connected: Cell::new(Instant::MIN),
            moved: Cell::new(0),
            peer: Cell::new(None),
        };
        Self {
            places: (0..count).map(place).collect(),
            watch,
        }
    }

    /// Returns the maximum number of connections at once.
    #[must_use]
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Ends the oldest incomplete connection, or else the slowest one, whenever a client finds all
    /// sockets in use. Never returns.
    pub async fn make_room(&self) -> ! {
        loop {
            self.watch.turned_away.wait().await;
            let is_free = |place: &Place| {
                let socket = place.socket.try_borrow();
                socket.is_ok_and(|socket| socket.state() == State::Listen)
            };
            // One that is ending is free at once.
            if self.places.iter().any(is_free) || self.watch.is_ending() {
                continue;
            }
            let begun = self.places.iter().filter(|place| {
                let may_take_long = place.begun.get().is_none_or(|at| at.elapsed() < ROUND_TRIP);
                !may_take_long && place.socket.borrow().state() == State::SynReceived
            });
            if let Some(place) = begun.min_by_key(|place| place.begun.get()) {
                // It cannot fail for a socket that has listened before.
                let _ = self.listen(place);
                continue;
            }
            let connected = self.places.iter().filter(|place| {
                place.peer.get().is_some() && place.connected.get().elapsed() >= BEGINNING
            });
            let slowest = connected.reduce(|slowest, place| {
                if place.is_slower(slowest) {
                    place
                } else {
                    slowest
                }
            });
            if let Some(peer) = slowest.and_then(|place| place.peer.get()) {
                self.watch.end(peer);
            }
        }
    }

    /// Starts to listen, and drops the last connection.
    fn listen(&self, place: &Place) -> Result<(), tcp::AcceptError> {
        let mut socket = place.socket.borrow_mut();
        socket.abort();
        if let Some(peer) = place.peer.take() {
            self.watch.forget(&numbers(peer));
        }
        socket.set_timeout(Some(HANDSHAKE));
        place.begun.set(None);
        match poll_once(socket.accept(self.watch.port)) {
            Poll::Ready(failed) => failed,
            Poll::Pending => Ok(()),
        }
    }

    /// Waits until a connection is complete or over.
    fn poll_complete(place: &Place, context: &mut Context<'_>) -> Poll<()> {
        let socket = place.socket.borrow();
        // Registers the waker: nothing can be written before.
        let _ = pin!(socket.wait_write_ready()).poll(context);
        match socket.state() {
            State::Listen => Poll::Pending,
            State::SynReceived => {
                if place.begun.get().is_none() {
                    place.begun.set(Some(Instant::now()));
                }
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}

#[cfg(feature = "tcp")]
impl Accept for Connections {
    async fn accept(&self) -> Option<impl Read + Write + TcpShutdown> {
        let place = self
            .places
            .iter()
            .find(|place| !place.is_taken.replace(true))?;
        let in_use = InUse(place);
        loop {
            self.listen(place).ok()?;
            poll_fn(|context| Self::poll_complete(place, context)).await;
            place.begun.set(None);
            let mut socket = place.socket.borrow_mut();
            socket.set_timeout(None);
            if socket.state() != State::Closed {
                place.connected.set(Instant::now());
                place.moved.set(0);
                place.peer.set(socket.remote_endpoint());
                let peers = self.places.iter().filter_map(|place| place.peer.get());
                self.watch.forget_others(peers);
                return Some(Connection {
                    socket,
                    place: in_use,
                });
            }
        }
    }
}

/// A guard that marks a place as in use.
#[cfg(feature = "tcp")]
struct InUse<'a>(&'a Place);

#[cfg(feature = "tcp")]
impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.is_taken.set(false);
    }
}

/// A connection, which frees its place when dropped.
#[cfg(feature = "tcp")]
struct Connection<'a> {
    // Dropped before the place.
    socket: RefMut<'a, TcpSocket<'static>>,
    place: InUse<'a>,
}

#[cfg(feature = "tcp")]
impl Connection<'_> {
    /// Records bytes that were moved.
    fn moves(&self, moved: Result<usize, tcp::Error>) -> Result<usize, tcp::Error> {
        let count = &self.place.0.moved;
        count.set(count.get() + *moved.as_ref().unwrap_or(&0) as u64);
        moved
    }
}

#[cfg(feature = "tcp")]
impl ErrorType for Connection<'_> {
    type Error = tcp::Error;
}

#[cfg(feature = "tcp")]
impl Read for Connection<'_> {
    async fn read(&mut self, to: &mut [u8]) -> Result<usize, tcp::Error> {
        let read = self.socket.read(to).await;
        self.moves(read)
    }
}

#[cfg(feature = "tcp")]
impl Write for Connection<'_> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, tcp::Error> {
        let written = self.socket.write(bytes).await;
        self.moves(written)
    }

    async fn flush(&mut self) -> Result<(), tcp::Error> {
        self.socket.flush().await
    }
}

#[cfg(feature = "tcp")]
impl TcpShutdown for Connection<'_> {
    async fn close(&mut self, what: Close) -> Result<(), tcp::Error> {
        if matches!(what, Close::Write | Close::Both) {
            self.socket.close();
            self.socket.flush().await?;
        }
        if matches!(what, Close::Read | Close::Both) {
            while self.socket.read(&mut [0; 64]).await? > 0 {}
        }
        Ok(())
    }

    async fn abort(&mut self) -> Result<(), tcp::Error> {
        self.socket.abort();
        self.socket.flush().await
    }
}

/// A socket for datagrams.
pub struct Datagrams {
    stack: Stack<'static>,
    socket: UdpSocket<'static>,
    port: u16,
    /// The last time at which something was surely sent: nothing was waiting, or more had been
    /// queued than can wait.
    sent: Instant,
    /// The number of datagrams queued since then.
    queued: usize,
    /// The number of datagrams received.
    received: u64,
    watch: &'static Watch,
}

impl Datagrams {
    /// Makes a socket with room for `count` datagrams and `bytes` bytes in each direction. None if
    /// the port is in use.
    #[must_use]
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
        let sent = Instant::now();
        Some(Self {
            stack,
            socket,
            port,
            sent,
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
        (self.sent, self.queued) = (Instant::now(), 0);
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
        } else if self.sent.elapsed() > PATIENCE {
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
