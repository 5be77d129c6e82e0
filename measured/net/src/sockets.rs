//! Sockets of the unikernel's own stack, which outlast their peers.
//!
//! * Who begins a connection and then says nothing loses its place, and one that is over before a service has seen it is none.
//! * Datagrams to someone who is not there, or to whom there is no route, wait in front of all others: the stack keeps them for
//!   ever, so they are thrown away here.

use alloc::boxed::Box;
use alloc::vec;
#[cfg(feature = "tcp")]
use alloc::vec::Vec;
#[cfg(feature = "tcp")]
use core::cell::{RefCell, RefMut};
use core::net::SocketAddr;

#[cfg(feature = "tcp")]
use edge_nal::{Close, TcpShutdown};
use edge_nal::{UdpReceive, UdpSend};
use embassy_futures::poll_once;
#[cfg(feature = "tcp")]
use embassy_net::tcp::{self, State, TcpSocket};
use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{IpEndpoint, Stack};
use embassy_time::{Duration, Instant, with_timeout};
use embedded_io_async::{ErrorKind, ErrorType};
#[cfg(feature = "tcp")]
use embedded_io_async::{Read, Write};

#[cfg(feature = "tcp")]
use crate::Accept;

/// How long a peer may take to answer when a connection begins: it is asked three times.
#[cfg(feature = "tcp")]
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a datagram may wait. A neighbour's address is asked for once in a second, whoever needs one.
const PATIENCE: Duration = Duration::from_secs(2);

/// As many connections to a port as there are sockets.
#[cfg(feature = "tcp")]
pub struct Connections {
    port: u16,
    sockets: Vec<RefCell<TcpSocket<'static>>>,
}

#[cfg(feature = "tcp")]
impl Connections {
    /// Makes so many sockets, with so many bytes for each direction.
    #[must_use]
    pub fn new(stack: Stack<'static>, port: u16, count: usize, window: usize) -> Self {
        let buffer = || Box::leak(vec![0; window].into_boxed_slice());
        let socket = |_| RefCell::new(TcpSocket::new(stack, buffer(), buffer()));
        let sockets = (0..count).map(socket).collect();
        Self { port, sockets }
    }

    /// Returns how many connections there may be at once.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sockets.len()
    }
}

#[cfg(feature = "tcp")]
impl Accept for Connections {
    async fn accept(&self) -> Option<impl Read + Write + TcpShutdown> {
        let mut free = self
            .sockets
            .iter()
            .filter_map(|one| one.try_borrow_mut().ok());
        let mut connection = free.next().map(Connection)?;
        let socket = &mut connection.0;
        loop {
            // What is left of the last connection.
            socket.abort();
            socket.set_timeout(Some(HANDSHAKE));
            socket.accept(self.port).await.ok()?;
            socket.set_timeout(None);
            if socket.state() != State::Closed {
                return Some(connection);
            }
        }
    }
}

/// A connection, whose socket is free again when this is dropped.
#[cfg(feature = "tcp")]
struct Connection<'a>(RefMut<'a, TcpSocket<'static>>);

#[cfg(feature = "tcp")]
impl ErrorType for Connection<'_> {
    type Error = tcp::Error;
}

#[cfg(feature = "tcp")]
impl Read for Connection<'_> {
    async fn read(&mut self, to: &mut [u8]) -> Result<usize, tcp::Error> {
        self.0.read(to).await
    }
}

#[cfg(feature = "tcp")]
impl Write for Connection<'_> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, tcp::Error> {
        self.0.write(bytes).await
    }

    async fn flush(&mut self) -> Result<(), tcp::Error> {
        self.0.flush().await
    }
}

#[cfg(feature = "tcp")]
impl TcpShutdown for Connection<'_> {
    async fn close(&mut self, what: Close) -> Result<(), tcp::Error> {
        if matches!(what, Close::Write | Close::Both) {
            self.0.close();
            self.0.flush().await?;
        }
        if matches!(what, Close::Read | Close::Both) {
            while self.0.read(&mut [0; 64]).await? > 0 {}
        }
        Ok(())
    }

    async fn abort(&mut self) -> Result<(), tcp::Error> {
        self.0.abort();
        self.0.flush().await
    }
}

/// A socket for datagrams.
pub struct Datagrams {
    socket: UdpSocket<'static>,
    port: u16,
    /// When nothing waited to be sent.
    sent: Instant,
}

impl Datagrams {
    /// Makes a socket on which so many datagrams of so many bytes in all may wait in each direction. `None` if the port is taken.
    #[must_use]
    pub fn new(stack: Stack<'static>, port: u16, count: usize, bytes: usize) -> Option<Self> {
        let packets = || Box::leak(vec![PacketMetadata::EMPTY; count].into_boxed_slice());
        let buffer = || Box::leak(vec![0; bytes].into_boxed_slice());
        let mut socket = UdpSocket::new(stack, packets(), buffer(), packets(), buffer());
        socket.bind(port).ok()?;
        let sent = Instant::now();
        Some(Self { socket, port, sent })
    }

    /// Throws away what waits.
    fn clear(&mut self) {
        self.socket.close();
        // It was bound to this one before.
        let _ = self.socket.bind(self.port);
    }
}

impl ErrorType for Datagrams {
    type Error = ErrorKind;
}

impl UdpReceive for Datagrams {
    async fn receive(&mut self, to: &mut [u8]) -> Result<(usize, SocketAddr), ErrorKind> {
        let received = self.socket.recv_from(to).await;
        let (bytes, about) = received.map_err(|_| ErrorKind::InvalidData)?;
        let from = about.endpoint;
        Ok((bytes, SocketAddr::new(from.addr.into(), from.port)))
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
            self.sent = Instant::now();
        } else if self.sent.elapsed() > PATIENCE {
            self.clear();
        }
        match with_timeout(PATIENCE, self.socket.send_to(datagram, to)).await {
            Ok(sent) => sent.map_err(|_| ErrorKind::InvalidInput),
            Err(_) => {
                self.clear();
                Err(ErrorKind::TimedOut)
            }
        }
    }
}
