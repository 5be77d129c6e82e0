//! Sockets of the unikernel's own stack, which outlast their peers.
//!
//! * Who begins a connection and then says nothing loses its place, sooner if others need it; and one that is over before a service has seen
//!   it is none.
//! * Datagrams to someone who is not there wait in front of all others: the stack keeps them for ever, so they are thrown away here. Those
//!   that can't be answered at all, since they came to a group or from where no route leads, are passed over.

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
use crate::watch::{Dropped, Watch};

/// How long a peer may take to answer when a connection begins, if nobody else needs the place: it is asked three times.
#[cfg(feature = "tcp")]
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long it may take even if somebody does.
#[cfg(feature = "tcp")]
const ROUND_TRIP: Duration = Duration::from_millis(100);
/// How long a datagram may wait. A neighbour's address is asked for once in a second, whoever needs one.
const PATIENCE: Duration = Duration::from_secs(2);

/// As many connections to a port as there are sockets.
#[cfg(feature = "tcp")]
pub struct Connections {
    places: Vec<Place>,
    watch: &'static Watch,
}

/// A place for a connection.
#[cfg(feature = "tcp")]
struct Place {
    socket: RefCell<TcpSocket<'static>>,
    is_taken: Cell<bool>,
    /// When a connection began that is not complete.
    begun: Cell<Option<Instant>>,
}

#[cfg(feature = "tcp")]
impl Connections {
    /// Makes so many sockets for the service, with so many bytes for each direction.
    #[must_use]
    pub fn new(stack: Stack<'static>, count: usize, window: usize, watch: &'static Watch) -> Self {
        let buffer = || Box::leak(vec![0; window].into_boxed_slice());
        let place = |_| Place {
            socket: RefCell::new(TcpSocket::new(stack, buffer(), buffer())),
            is_taken: Cell::new(false),
            begun: Cell::new(None),
        };
        Self {
            places: (0..count).map(place).collect(),
            watch,
        }
    }

    /// Returns how many connections there may be at once.
    #[must_use]
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Takes the place from the connection that began first and is not complete, whenever a client found none free, for ever.
    pub async fn make_room(&self) -> ! {
        loop {
            self.watch.turned_away.wait().await;
            let is_free = |place: &Place| {
                let socket = place.socket.try_borrow();
                socket.is_ok_and(|socket| socket.state() == State::Listen)
            };
            if self.places.iter().any(is_free) {
                continue;
            }
            let begun = self.places.iter().filter(|place| {
                let may_take_long = place.begun.get().is_none_or(|at| at.elapsed() < ROUND_TRIP);
                !may_take_long && place.socket.borrow().state() == State::SynReceived
            });
            if let Some(place) = begun.min_by_key(|place| place.begun.get()) {
                // A listener that was bound before is again.
                let _ = self.listen(place);
            }
        }
    }

    /// Starts to listen at a place, whatever is left of the last connection.
    fn listen(&self, place: &Place) -> Result<(), tcp::AcceptError> {
        let mut socket = place.socket.borrow_mut();
        socket.abort();
        socket.set_timeout(Some(HANDSHAKE));
        place.begun.set(None);
        match poll_once(socket.accept(self.watch.port)) {
            Poll::Ready(failed) => failed,
            Poll::Pending => Ok(()),
        }
    }

    /// Waits until a connection at a place is complete, or over.
    fn poll_complete(place: &Place, context: &mut Context<'_>) -> Poll<()> {
        let socket = place.socket.borrow();
        // Only to be woken by changes: nothing can be written before.
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
        let taken = Taken(place);
        loop {
            self.listen(place).ok()?;
            poll_fn(|context| Self::poll_complete(place, context)).await;
            place.begun.set(None);
            let mut socket = place.socket.borrow_mut();
            socket.set_timeout(None);
            if socket.state() != State::Closed {
                let _taken = taken;
                return Some(Connection { socket, _taken });
            }
        }
    }
}

/// A place that is taken until this is dropped.
#[cfg(feature = "tcp")]
struct Taken<'a>(&'a Place);

#[cfg(feature = "tcp")]
impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.is_taken.set(false);
    }
}

/// A connection, whose place is free again when this is dropped.
#[cfg(feature = "tcp")]
struct Connection<'a> {
    // Given back before the place.
    socket: RefMut<'a, TcpSocket<'static>>,
    _taken: Taken<'a>,
}

#[cfg(feature = "tcp")]
impl ErrorType for Connection<'_> {
    type Error = tcp::Error;
}

#[cfg(feature = "tcp")]
impl Read for Connection<'_> {
    async fn read(&mut self, to: &mut [u8]) -> Result<usize, tcp::Error> {
        self.socket.read(to).await
    }
}

#[cfg(feature = "tcp")]
impl Write for Connection<'_> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, tcp::Error> {
        self.socket.write(bytes).await
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
    /// When something was sent, as far as is known: when nothing waited, or more has gone in than can wait.
    sent: Instant,
    /// How many have gone in since then.
    put: usize,
    /// How many have come.
    got: u64,
    watch: &'static Watch,
}

impl Datagrams {
    /// Makes a socket on which so many datagrams of so many bytes in all may wait in each direction. `None` if the port is taken.
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
            put: 0,
            got: 0,
            watch,
        })
    }

    /// Tells whether a datagram came to this machine alone, and from where a route leads.
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
                // Only with SLAAC there is an address on the link itself.
                let leads_there = cfg!(feature = "slaac") && from.is_unicast_link_local()
                    || self.stack.config_v6().is_some_and(|config| {
                        config.gateway.is_some() || config.address.contains_addr(&from)
                    });
                leads_there && !to.is_multicast()
            }
            _ => false,
        }
    }

    /// Throws away what waits: at most what has gone in.
    fn clear(&mut self) {
        let waiting = self.put.min(self.socket.packet_send_capacity());
        self.watch.lose(Dropped::Peer, waiting as u64);
        self.socket.close();
        // It was bound to this one before.
        let _ = self.socket.bind(self.port);
        self.moves();
    }

    /// Takes note that something was sent.
    fn moves(&mut self) {
        (self.sent, self.put) = (Instant::now(), 0);
    }
}

impl ErrorType for Datagrams {
    type Error = ErrorKind;
}

impl UdpReceive for Datagrams {
    async fn receive(&mut self, to: &mut [u8]) -> Result<(usize, SocketAddr), ErrorKind> {
        loop {
            if self.port == self.watch.port && !self.socket.may_recv() {
                self.watch.got(self.got);
            }
            let received = self.socket.recv_from(to).await;
            self.got += 1;
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
                self.put += 1;
                if self.put > self.socket.packet_send_capacity() {
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
