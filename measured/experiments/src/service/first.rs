//! The first right answer of a server.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use super::http;
use super::message::{self, LONGEST, Message};
use super::{Plan, Protocol};

/// The time between two probes.
const PROBE: Duration = Duration::from_millis(1);

/// Opens a socket to the server of a plan.
pub(super) fn socket(plan: &Plan) -> io::Result<UdpSocket> {
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
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let is_right = match plan.protocol {
            Protocol::Http => has_page(plan, left),
            _ => is_answered(plan, &socket, id, host),
        };
        match is_right {
            Ok(true) => return Ok(true),
            // Nobody listens yet.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => thread::sleep(PROBE),
            Ok(false) | Err(_) => {}
        }
    }
    Ok(false)
}

/// Sends a request, and reads the answers that come until the next one. Returns whether one is
/// right.
fn is_answered(plan: &Plan, socket: &UdpSocket, id: u16, host: u64) -> io::Result<bool> {
    let mut answer = [0; LONGEST];
    socket.send(Message::request(plan.protocol, id, host).bytes())?;
    loop {
        let bytes = match socket.recv(&mut answer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            bytes => bytes?,
        };
        let answer = &answer[..bytes];
        // That of an earlier probe is as good.
        let id = message::number(answer).unwrap_or(id);
        let request = Message::request(plan.protocol, id, host);
        if request.is_answered_by(plan.protocol, host, answer) {
            return Ok(true);
        }
    }
}

/// Asks for the page over a connection. Returns whether it came within a time.
fn has_page(plan: &Plan, limit: Duration) -> io::Result<bool> {
    let to = SocketAddr::new(plan.address, plan.port as u16);
    let mut stream = TcpStream::connect_timeout(&to, limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.write_all(http::REQUEST)?;
    let mut answer = Vec::new();
    let mut piece = [0; LONGEST];
    while answer.len() < LONGEST && http::length(&answer).is_none_or(|all| answer.len() < all) {
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
