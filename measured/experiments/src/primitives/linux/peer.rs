//! The other side of the network primitives, on one port for TCP and UDP.
//!
//! The first byte of a connection selects the service: [`ECHO`] sends each byte back, [`SINK`]
//! reads blocks and acknowledges each of them with a byte. Connections are served one after the
//! other. A datagram is sent back, unless its first byte is [`SINK`]: those are counted, and
//! [`COUNT`] is answered with the number of both.

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use crate::primitives::bench::{Why, why};

use super::ipc::{BYTES, drain, echo};
use super::kernel::{Partner, put};

/// Requests that each byte is sent back.
pub(crate) const ECHO: u8 = b'e';
/// Requests that blocks are read, or that datagrams are counted.
pub(crate) const SINK: u8 = b's';
/// Requests the number of counted datagrams.
pub(crate) const COUNT: u8 = b'c';
/// The timeout for the other side's answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);
/// The timeout for a silent client: shorter, since another client may be waiting.
const SILENCE: Duration = Duration::from_secs(3);
/// The pause after an error, which concerns one connection or is temporary.
const PAUSE: Duration = Duration::from_millis(100);

/// Processes that answer, until this is dropped.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The address of the server.
    pub(crate) address: SocketAddr,
    _tcp: Partner,
    _udp: Partner,
}

impl Peer {
    /// Starts them on a loopback address, pinned if a CPU is given.
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

/// Answers on an address until the process is killed.
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
        // On failure, no client waits for the answer.
        let _ = connection.set_nodelay(true);
        // Measuring clients never pause that long, and others are waiting.
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
        // On failure, no client waits for the answer.
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

/// Connects to a peer and selects the service, with timeouts.
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
