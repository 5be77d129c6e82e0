//! A socket of the client, by UDP or TCP.

use std::io::{self, ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use rustix::net::sockopt::{
    set_socket_recv_buffer_size, set_socket_recv_buffer_size_force, set_tcp_nodelay,
};
use rustix::net::{AddressFamily, SocketAddrAny, SocketFlags, SocketType, connect, socket_with};

use crate::service::message::LONGEST;
use crate::service::{Plan, Protocol, first, http};

/// Bytes of a socket's buffer for answers: those of a quarter of a second at 10,000 a second.
const BUFFER: usize = 2 << 20;

/// A socket that is connected to the server of a plan, and never waits.
pub enum Connection {
    Udp(UdpSocket),
    /// The received part of the answer to the only request that is on its way.
    Tcp(std::net::TcpStream, Vec<u8>),
}

impl Connection {
    /// Opens one. By TCP, what is sent before the server has accepted it is refused.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error.
    pub fn open(plan: &Plan) -> io::Result<Self> {
        let to = std::net::SocketAddr::new(plan.address, plan.port as u16);
        if plan.protocol == Protocol::Http {
            return Ok(Self::Tcp(begin(to)?, Vec::with_capacity(LONGEST)));
        }
        let socket = first::socket(plan)?;
        socket.set_nonblocking(true)?;
        // Only root may exceed the limit of ordinary users, who get as much as that allows.
        let _ = set_socket_recv_buffer_size_force(&socket, BUFFER)
            .or_else(|_| set_socket_recv_buffer_size(&socket, BUFFER));
        Ok(Self::Udp(socket))
    }

    /// Has an epoll report its answers under a number.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error.
    pub fn watch(&self, epoll: &OwnedFd, number: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(number);
        Ok(epoll::add(epoll, self, data, epoll::EventFlags::IN)?)
    }

    /// Sends a request.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error if it does not take it as a whole at once.
    pub fn send(&mut self, request: &[u8]) -> io::Result<()> {
        let sent = match self {
            Self::Udp(socket) => socket.send(request)?,
            Self::Tcp(stream, _) => stream.write(request)?,
        };
        match sent == request.len() {
            true => Ok(()),
            false => Err(ErrorKind::WriteZero.into()),
        }
    }

    /// Receives an answer, and returns its length; by TCP, `None` until it is whole.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WouldBlock`] if there is none. By TCP, any other means that the connection has
    /// ended.
    pub fn receive(&mut self, answer: &mut [u8; LONGEST]) -> io::Result<Option<usize>> {
        let (stream, received) = match self {
            Self::Udp(socket) => return socket.recv(answer).map(Some),
            Self::Tcp(stream, received) => (stream, received),
        };
        let room = &mut answer[received.len()..];
        // An answer longer than any right one ends the connection.
        let got = match stream.read(room)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            got => &room[..got],
        };
        received.extend_from_slice(got);
        let whole = http::length(received).filter(|length| *length <= received.len());
        if let Some(length) = whole {
            answer[..length].copy_from_slice(&received[..length]);
            received.drain(..length);
        }
        Ok(whole)
    }

    /// Returns the own port, by UDP.
    pub fn udp_port(&self) -> Option<u16> {
        match self {
            Self::Udp(socket) => Some(socket.local_addr().ok()?.port()),
            Self::Tcp(..) => None,
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Udp(socket) => socket.as_fd(),
            Self::Tcp(stream, _) => stream.as_fd(),
        }
    }
}

/// Begins a connection by TCP.
fn begin(to: std::net::SocketAddr) -> io::Result<std::net::TcpStream> {
    let family = match to {
        std::net::SocketAddr::V4(_) => AddressFamily::INET,
        std::net::SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    set_tcp_nodelay(&socket, true)?;
    match connect(&socket, &SocketAddrAny::from(to)) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}
