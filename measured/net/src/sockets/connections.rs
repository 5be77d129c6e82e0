//! The sockets of TCP.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell, RefMut};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll};

use edge_nal::{Close, TcpShutdown};
use embassy_futures::poll_once;
use embassy_net::tcp::{self, State, TcpSocket};
use embassy_net::{IpEndpoint, Stack};
use embassy_time::{Duration, Instant};
use embedded_io_async::{ErrorType, Read, Write};

use crate::Accept;
use crate::watch::{Watch, numbers};

/// Time limit for a handshake while no other client needs the socket: the stack asks three times.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time for a handshake even if another client needs the socket.
const ROUND_TRIP: Duration = Duration::from_millis(100);
/// Time for a connection even if it is the slowest one and another client needs its socket.
const BEGINNING: Duration = Duration::from_secs(1);

/// The sockets for connections to a port.
pub struct Connections {
    places: Vec<Place>,
    watch: &'static Watch,
}

/// A socket for one connection.
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

impl Place {
    /// Returns whether a connection is slower than another, in bytes per time since its start.
    fn is_slower(&self, other: &Self) -> bool {
        let rate = |of: &Self, by: &Self| {
            u128::from(of.moved.get()) * u128::from(by.connected.get().elapsed().as_ticks())
        };
        rate(self, other) < rate(other, self)
    }
}

impl Connections {
    /// Makes `count` sockets for the service, with `window` bytes for each direction.
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
struct InUse<'a>(&'a Place);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.is_taken.set(false);
    }
}

/// A connection, which frees its place when dropped.
struct Connection<'a> {
    // Dropped before the place.
    socket: RefMut<'a, TcpSocket<'static>>,
    place: InUse<'a>,
}

impl Connection<'_> {
    /// Records bytes that were moved.
    fn moves(&self, moved: Result<usize, tcp::Error>) -> Result<usize, tcp::Error> {
        let count = &self.place.0.moved;
        count.set(count.get() + *moved.as_ref().unwrap_or(&0) as u64);
        moved
    }
}

impl ErrorType for Connection<'_> {
    type Error = tcp::Error;
}

impl Read for Connection<'_> {
    async fn read(&mut self, to: &mut [u8]) -> Result<usize, tcp::Error> {
        let read = self.socket.read(to).await;
        self.moves(read)
    }
}

impl Write for Connection<'_> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, tcp::Error> {
        let written = self.socket.write(bytes).await;
        self.moves(written)
    }

    async fn flush(&mut self) -> Result<(), tcp::Error> {
        self.socket.flush().await
    }
}

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
