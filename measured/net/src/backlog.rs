//! Lets clients wait for a connection when all are taken.
//!
//! A kernel holds connections back until a service accepts them. The stack here has no such queue: when no socket listens on a
//! port, it refuses. So the refusals of a port on which a service does listen, only not just now, are not sent ([`crate::filter`]): for the
//! client its packet is lost, and it sends another one after a second or so (RFC 6298). Nothing is stored for it, so a flood takes no
//! memory; but who has the sockets is told ([`crate::watch`]).

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

/// The longest refusal, in bytes.
pub(crate) const LONGEST: usize = ETHERNET + IPV6 + TCP;

/// Whether a packet says to someone who wants a connection to a port that nobody listens there (RFC 9293 section 3.10.7.1).
pub(crate) fn refuses(packet: &[u8], port: u16) -> bool {
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

/// Makes a refusal of a port by IPv4.
#[cfg(test)]
pub(crate) fn refusal(port: u16) -> alloc::vec::Vec<u8> {
    let mut packet = tests::packet([0x08, 0x00], IPV4, 0, REFUSED);
    packet[ETHERNET + IPV4..][..2].copy_from_slice(&port.to_be_bytes());
    packet
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Makes a packet of TCP from port 80.
    pub fn packet(ethertype: [u8; 2], ip: usize, number: u32, flags: u8) -> Vec<u8> {
        let mut packet = alloc::vec![0; ETHERNET + ip + TCP];
        packet[12..14].copy_from_slice(&ethertype);
        packet[ETHERNET + if ip == IPV4 { 9 } else { 6 }] = TCP_NUMBER;
        let tcp = &mut packet[ETHERNET + ip..];
        tcp[1] = 80;
        tcp[4..8].copy_from_slice(&number.to_be_bytes());
        tcp[13] = flags;
        packet
    }

    #[test]
    fn only_refusals_of_the_port_are_held_back() {
        for (ethertype, ip) in [([0x08, 0x00], IPV4), ([0x86, 0xdd], IPV6)] {
            let refusal = packet(ethertype, ip, 0, REFUSED);
            assert!(refuses(&refusal, 80) && !refuses(&refusal, 81));
            let longer = [&refusal[..], &[0; 100]].concat();
            for other in [
                packet(ethertype, ip, 1, REFUSED),
                packet(ethertype, ip, 0, 0x12),
                packet(ethertype, ip, 7, 0x04),
                packet([0x08, 0x06], ip, 0, REFUSED),
                longer,
            ] {
                assert!(!refuses(&other, 80));
            }
            let is_cut = |bytes| refuses(&refusal[..bytes], 80);
            assert!(!(0..refusal.len()).any(is_cut));
        }
    }
}
