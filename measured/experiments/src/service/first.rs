//! The first right answer of a server.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::ipproto::ICMP;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::http;
use super::message::{self, LONGEST, Message};
use super::{Plan, Protocol};

/// The time between two probes.
const PROBE: Duration = Duration::from_millis(1);

/// Opens a socket to the server of a plan.
pub(super) fn socket(plan: &Plan) -> io::Result<UdpSocket> {
    if plan.protocol == Protocol::Ping {
        // A socket for the echo messages of ICMP is one for datagrams, with a number for a port.
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, Some(ICMP))?;
        let socket = UdpSocket::from(socket);
        socket.connect((plan.address, plan.port as u16))?;
        return Ok(socket);
    }
    let any: IpAddr = match plan.address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((plan.address, plan.port as u16))?;
    Ok(socket)
}

/// Asks the server of a plan for a host again and again until its first right answer. Returns false
/// if none came within the plan's patience.
///
/// # Errors
///
/// Returns the kernel's error if there is no way to the server.
pub fn answers(plan: &Plan, host: u64) -> io::Result<bool> {
    let until = Instant::now() + Duration::from_nanos(plan.patience_ns);
    // Answers to probes must not come among those that are measured.
    let socket = socket(plan)?;
    socket.set_read_timeout(Some(PROBE))?;
    for id in (0..=u16::MAX).cycle() {
        if Instant::now() >= until {
            break;
        }
        let begin = Instant::now();
        let is_right = match plan.protocol {
            Protocol::Http => has_page(plan, until),
            _ => is_answered(plan, &socket, id, host, until),
        };
        if let Ok(true) = is_right {
            return Ok(true);
        }
        // Nobody listens yet, or not with the right answer.
        thread::sleep(PROBE.saturating_sub(begin.elapsed()));
    }
    Ok(false)
}

/// Sends a request, and reads the answers that come until the next one or a time. Returns whether one
/// is right.
fn is_answered(
    plan: &Plan,
    socket: &UdpSocket,
    id: u16,
    host: u64,
    until: Instant,
) -> io::Result<bool> {
    let mut answer = [0; LONGEST];
    socket.send(Message::request(plan.protocol, id, host).bytes())?;
    while Instant::now() < until {
        let bytes = match socket.recv(&mut answer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            bytes => bytes?,
        };
        let answer = &answer[..bytes];
        // That of an earlier probe is as good.
        let id = message::number(plan.protocol, answer).unwrap_or(id);
        let request = Message::request(plan.protocol, id, host);
        if request.is_answered_by(plan.protocol, host, answer) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Asks for the page over a connection. Returns whether it came before a time.
fn has_page(plan: &Plan, until: Instant) -> io::Result<bool> {
    // The kernel refuses a limit of zero.
    let left = || until.saturating_duration_since(Instant::now()).max(PROBE);
    let to = SocketAddr::new(plan.address, plan.port as u16);
    let mut stream = TcpStream::connect_timeout(&to, left())?;
    stream.write_all(http::REQUEST)?;
    let mut answer = Vec::new();
    let mut piece = [0; LONGEST];
    while answer.len() < LONGEST && http::length(&answer).is_none_or(|all| answer.len() < all) {
        if Instant::now() >= until {
            return Ok(false);
        }
        stream.set_read_timeout(Some(left()))?;
        match stream.read(&mut piece)? {
            0 => break,
            bytes => answer.extend_from_slice(&piece[..bytes]),
        }
    }
    Ok(http::is_right(&answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_waited_for_no_longer_than_allowed() {
        let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let plan = Plan {
            port: silent.local_addr().unwrap().port().into(),
            patience_ns: 20_000_000,
            ..Plan::default()
        };
        assert!(!answers(&plan, 0).unwrap());
        // Nor one that refuses.
        drop(silent);
        assert!(!answers(&plan, 0).unwrap());
    }
}
