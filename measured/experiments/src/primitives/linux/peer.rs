//! The other side of the network primitives: it answers on one port, TCP and UDP.
//!
//! The first byte of a connection says what is wanted: [`ECHO`] that each byte is sent back, [`SINK`] that blocks are read
//! and each of them acknowledged by a byte. Connections are served one after the other. A datagram is sent back, unless its first byte is
//! [`SINK`]: those are counted, and one with [`COUNT`] is answered by how many of both have come.

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use crate::primitives::bench::{Why, why};

use super::ipc::{BYTES, drain, echo};
use super::kernel::{Partner, put};

/// Asks for each byte to be sent back.
pub(crate) const ECHO: u8 = b'e';
/// Asks for blocks to be read, or for datagrams to be counted.
pub(crate) const SINK: u8 = b's';
/// Asks how many datagrams have been counted.
pub(crate) const COUNT: u8 = b'c';
/// How long the other side is waited for.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);
/// How long it waits for one that says nothing: less, since another one may be waiting.
const SILENCE: Duration = Duration::from_secs(3);
/// How long it waits after an error, which is of one connection, or goes by.
const PAUSE: Duration = Duration::from_millis(100);

/// Processes that answer, until this is dropped.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Where they answer.
    pub(crate) address: SocketAddr,
    _tcp: Partner,
    _udp: Partner,
}

impl Peer {
    /// Starts them on a loopback address, on a CPU or wherever they may run.
    pub(crate) fn start(cpu: Option<u32>) -> Result<Self, Why> {
        let (tcp, udp) = bind("127.0.0.1:0")
            .map_err(|error| why(format_args!("nothing can answer on 127.0.0.1: {error}")))?;
        let address = tcp.local_addr();
        let address = address.map_err(|error| why(format_args!("no address: {error}")))?;
        Ok(Self {
            address,
            _tcp: Partner::start(cpu, || serve(&tcp))?,
            _udp: Partner::start(cpu, || answer(&udp))?,
        })
    }
}

/// Answers on an address until the process is ended.
///
/// # Errors
///
/// Returns why it can't.
pub fn run(address: &str) -> Result<Infallible, String> {
    let failed = |error: io::Error| format!("can't answer on '{address}': {error}");
    let (tcp, udp) = bind(address).map_err(failed)?;
    let own = tcp.local_addr().map_err(failed)?;
    let _udp = Partner::start(None, || answer(&udp)).map_err(|why| why.as_str().to_owned())?;
    println!("answering on {own}");
    serve(&tcp)
}

fn bind(address: &str) -> io::Result<(TcpListener, UdpSocket)> {
    let tcp = TcpListener::bind(address)?;
    let udp = UdpSocket::bind(tcp.local_addr()?)?;
    Ok((tcp, udp))
}

fn serve(listener: &TcpListener) -> ! {
    loop {
        let Ok((mut connection, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        let mut wanted = [0];
        let socket = connection.as_raw_fd();
        // What can't be sent has nobody who waits for it.
        let _ = connection.set_nodelay(true);
        // Who is measured never pauses so long, and others are waiting.
        let _ = connection.set_read_timeout(Some(SILENCE));
        match connection.read(&mut wanted) {
            Ok(1) if wanted[0] == ECHO => {
                put(socket);
                echo((socket, socket));
            }
            Ok(1) if wanted[0] == SINK => {
                put(socket);
                while drain(socket, BYTES) && put(socket) {}
            }
            _ => {}
        }
    }
}

fn answer(socket: &UdpSocket) -> ! {
    let mut datagram = [0; 2_048];
    let mut counted = 0_u32;
    loop {
        let Ok((bytes, from)) = socket.recv_from(&mut datagram) else {
            thread::sleep(PAUSE);
            continue;
        };
        let counting = [SINK, COUNT].contains(&datagram[0]) && bytes > 1;
        counted = counted.wrapping_add(u32::from(counting));
        // Likewise.
        let _ = match datagram[0] {
            SINK if counting => continue,
            COUNT if counting => {
                let number = std::mem::take(&mut counted);
                socket.send_to(&number.to_ne_bytes(), from)
            }
            _ => socket.send_to(&datagram[..bytes], from),
        };
    }
}

/// Connects to a peer, which does what is wanted. One that no longer answers is not waited for for ever.
pub(crate) fn connect(address: SocketAddr, wanted: u8) -> Result<TcpStream, Why> {
    let connected = || {
        let mut connection = TcpStream::connect_timeout(&address, ANSWER)?;
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(ANSWER))?;
        connection.set_write_timeout(Some(ANSWER))?;
        connection.write_all(&[wanted])?;
        connection.read_exact(&mut [0])?;
        Ok(connection)
    };
    connected().map_err(|error: io::Error| {
        let told = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".to_owned(),
            _ => error.to_string(),
        };
        why(format_args!(
            "no connection to {address}: {told}; is 'tare-agent peer' running there?"
        ))
    })
}
