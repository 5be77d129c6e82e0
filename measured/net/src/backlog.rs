//! Lets clients wait for a connection when all are taken.
//!
//! A kernel holds connections back until a service accepts them. The stack here has no such queue: when no socket listens on a
//! port, it refuses. So the refusals of a port on which a service does listen, only not just now, are not sent: for the client
//! its packet is lost, and it sends another one after a second or so (RFC 6298). Nothing is stored for it, so a flood takes no
//! memory; but who has the sockets is told ([`TurnedAway`]).

use core::task::Context;

use embassy_net::driver::{Capabilities, Driver, HardwareAddress, LinkState, TxToken};
use embassy_sync::blocking_mutex::raw::NoopRawMutex;
use embassy_sync::signal::Signal;

/// The header of Ethernet, in bytes.
const ETHERNET: usize = 14;
/// The header of IPv4 without options, as the stack sends it, in bytes.
const IPV4: usize = 20;
/// The header of IPv6, in bytes.
const IPV6: usize = 40;
/// The header of TCP without options, in bytes. A refusal has no more.
const TCP: usize = 20;
/// The number of TCP among the protocols of IP.
const TCP_NUMBER: u8 = 6;
/// The flags RST and ACK.
const REFUSED: u8 = 0x14;

/// Tells that a client found no place.
pub type TurnedAway = Signal<NoopRawMutex, ()>;

/// A device that does not send the refusals of one port.
pub struct Backlog<D> {
    device: D,
    port: u16,
    turned_away: &'static TurnedAway,
}

impl<D> Backlog<D> {
    /// Lets clients wait for the service on a port.
    pub const fn new(device: D, port: u16, turned_away: &'static TurnedAway) -> Self {
        Self {
            device,
            port,
            turned_away,
        }
    }
}

impl<D: Driver> Driver for Backlog<D> {
    type RxToken<'a>
        = D::RxToken<'a>
    where
        Self: 'a;
    type TxToken<'a>
        = ToSend<D::TxToken<'a>>
    where
        Self: 'a;

    fn receive(
        &mut self,
        context: &mut Context<'_>,
    ) -> Option<(Self::RxToken<'_>, Self::TxToken<'_>)> {
        let (port, turned_away) = (self.port, self.turned_away);
        let (received, token) = self.device.receive(context)?;
        let token = ToSend {
            token,
            port,
            turned_away,
        };
        Some((received, token))
    }

    fn transmit(&mut self, context: &mut Context<'_>) -> Option<Self::TxToken<'_>> {
        let (port, turned_away) = (self.port, self.turned_away);
        let token = self.device.transmit(context)?;
        Some(ToSend {
            token,
            port,
            turned_away,
        })
    }

    fn link_state(&mut self, context: &mut Context<'_>) -> LinkState {
        self.device.link_state(context)
    }

    fn capabilities(&self) -> Capabilities {
        self.device.capabilities()
    }

    fn hardware_address(&self) -> HardwareAddress {
        self.device.hardware_address()
    }
}

/// A packet to be sent, unless it refuses.
pub struct ToSend<T> {
    token: T,
    port: u16,
    turned_away: &'static TurnedAway,
}

impl<T: TxToken> TxToken for ToSend<T> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, fill: F) -> R {
        let mut longest = [0; ETHERNET + IPV6 + TCP];
        // What is longer is no refusal, and is filled where it is sent from.
        let Some(packet) = longest.get_mut(..bytes) else {
            return self.token.consume(bytes, fill);
        };
        let filled = fill(packet);
        if refuses(packet, self.port) {
            self.turned_away.signal(());
        } else {
            self.token.consume(bytes, |to| to.copy_from_slice(packet));
        }
        filled
    }
}

/// Whether a packet says to someone who wants a connection to a port that nobody listens there (RFC 9293 section 3.10.7.1).
fn refuses(packet: &[u8], port: u16) -> bool {
    let (protocol, bytes) = match packet.get(12..ETHERNET) {
        Some([0x08, 0x00]) => (9, IPV4),
        Some([0x86, 0xdd]) => (6, IPV6),
        _ => return false,
    };
    let (ip, tcp) = packet[ETHERNET..]
        .split_at_checked(bytes)
        .unwrap_or_default();
    // Other resets carry a number of the connection that they end, and do not acknowledge.
    tcp.len() == TCP
        && ip[protocol] == TCP_NUMBER
        && tcp[..2] == port.to_be_bytes()
        && tcp[4..8] == [0; 4]
        && tcp[13] == REFUSED
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    use super::*;

    struct Wire<'a>(&'a mut Vec<u8>);

    impl TxToken for Wire<'_> {
        fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, fill: F) -> R {
            self.0.resize(bytes, 0);
            fill(self.0)
        }
    }

    /// Makes a packet of TCP from port 80.
    fn packet(ethertype: [u8; 2], ip: usize, number: u32, flags: u8) -> Vec<u8> {
        let mut packet = alloc::vec![0; ETHERNET + ip + TCP];
        packet[12..14].copy_from_slice(&ethertype);
        packet[ETHERNET + if ip == IPV4 { 9 } else { 6 }] = TCP_NUMBER;
        let tcp = &mut packet[ETHERNET + ip..];
        tcp[1] = 80;
        tcp[4..8].copy_from_slice(&number.to_be_bytes());
        tcp[13] = flags;
        packet
    }

    /// Returns what becomes of a packet.
    fn sent(packet: &[u8], port: u16) -> Vec<u8> {
        let mut wire = Vec::new();
        let turned_away: &TurnedAway = Box::leak(Box::new(TurnedAway::new()));
        let token = ToSend {
            token: Wire(&mut wire),
            port,
            turned_away,
        };
        token.consume(packet.len(), |to| to.copy_from_slice(packet));
        assert_eq!(
            turned_away.signaled(),
            wire.is_empty() && !packet.is_empty()
        );
        wire
    }

    #[test]
    fn only_refusals_of_the_port_are_held_back() {
        for (ethertype, ip) in [([0x08, 0x00], IPV4), ([0x86, 0xdd], IPV6)] {
            let refusal = packet(ethertype, ip, 0, REFUSED);
            assert_eq!(sent(&refusal, 80), []);
            assert_eq!(sent(&refusal, 81), refusal);
            let longer = [&refusal[..], &[0; 100]].concat();
            for other in [
                packet(ethertype, ip, 1, REFUSED),
                packet(ethertype, ip, 0, 0x12),
                packet(ethertype, ip, 7, 0x04),
                packet([0x08, 0x06], ip, 0, REFUSED),
                longer,
            ] {
                assert_eq!(sent(&other, 80), other);
            }
        }
    }

    #[test]
    fn what_is_short_is_sent_as_it_is() {
        let whole = packet([0x86, 0xdd], IPV6, 1, REFUSED);
        for bytes in 0..whole.len() {
            assert_eq!(sent(&whole[..bytes], 80), whole[..bytes]);
        }
    }
}
