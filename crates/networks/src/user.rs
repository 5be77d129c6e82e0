//! QEMU's network without root.

use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use crate::NetworkError;

/// QEMU's user-mode network, with ports of 127.0.0.1 that are forwarded to the guest.
///
/// Requests of the guest are forwarded as if this process had sent them: QEMU's `restrict=on`
/// would keep it in, but loses the answers to forwarded datagrams, too.
#[derive(Debug, Clone)]
pub struct UserNetwork {
    forwards: Vec<(u16, u16)>,
}

impl UserNetwork {
    /// Finds a free port, by UDP as well as TCP, for each of these ports of a guest.
    ///
    /// Another program can take one before QEMU does: then QEMU ends at once and says so, and a new
    /// network is worth a try.
    ///
    /// # Errors
    ///
    /// [`NetworkError::NoPort`] if there is none.
    pub fn new(ports: &[u16]) -> Result<Self, NetworkError> {
        let forwards = ports.iter().map(|port| Ok((free_port()?, *port)));
        let forwards: Result<_, _> = forwards.collect();
        let forwards = forwards.map_err(NetworkError::NoPort)?;
        Ok(Self { forwards })
    }

    /// Returns where a port of the guest is reached. None if it is not forwarded.
    #[must_use]
    pub fn address(&self, port: u16) -> Option<SocketAddr> {
        let found = self.forwards.iter().find(|(_, to)| *to == port);
        found.map(|(from, _)| (Ipv4Addr::LOCALHOST, *from).into())
    }

    /// Returns the value of QEMU's `-netdev`.
    #[must_use]
    pub fn netdev(&self, id: &str) -> String {
        let mut text = format!("user,id={id}");
        for (from, to) in &self.forwards {
            for by in ["udp", "tcp"] {
                // Writing to a text does not fail.
                let _ = write!(text, ",hostfwd={by}:127.0.0.1:{from}-:{to}");
            }
        }
        text
    }
}

/// Returns a port of 127.0.0.1 that nobody has.
fn free_port() -> std::io::Result<u16> {
    const TRIES: usize = 100;
    let mut tried = Err(std::io::ErrorKind::AddrInUse.into());
    for _ in 0..TRIES {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = socket.local_addr()?.port();
        tried = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(|_| port);
        if tried.is_ok() {
            break;
        }
    }
    tried
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_is_forwarded_by_udp_and_tcp() {
        let network = UserNetwork::new(&[53, 80]).unwrap();
        let dns = network.address(53).unwrap();
        let netdev = network.netdev("net");
        assert!(netdev.starts_with("user,id=net,hostfwd="), "{netdev}");
        assert!(
            netdev.contains(&format!("hostfwd=tcp:{dns}-:53")),
            "{netdev}"
        );
        assert_eq!(netdev.matches("hostfwd=").count(), 4);
        assert_eq!(network.address(22), None);
    }
}
