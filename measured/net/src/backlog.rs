//! Connection attempts while all sockets are in use.
//!
//! A kernel queues connections until a service accepts them. `smoltcp` has no such queue: it
//! refuses connections when no socket listens on a port. [`crate::filter`] drops these refusals for
//! the port of the service: the client regards its packet as lost and sends another after about a
//! second (RFC 6298). Nothing is stored for it, so a flood takes no memory. [`crate::watch`]
//! reports the attempt, so that an incomplete connection can give up its socket.

/// The header of Ethernet, in bytes.
const ETHERNET: usize = 14;
/// The header of IPv4 without options, as the stack sends it, in bytes.
const IPV4: usize = 20;
/// The header of IPv6, in bytes.
const IPV6: usize = 40;
/// The header of TCP without options, in bytes: a whole refusal.
const TCP: usize = 20;
/// The protocol number of TCP.
const TCP_NUMBER: u8 = 6;
/// The flags RST and ACK.
const RST_ACK: u8 = 0x14;

/// Maximum size of a refusal, in bytes.
pub(crate) const LONGEST: usize = ETHERNET + IPV6 + TCP;

/// Returns whether a packet refuses a connection to a port (RFC 9293, section 3.10.7.1).
pub(crate) fn refuses(packet: &[u8], port: u16) -> bool {
    let (protocol, bytes) = match packet.get(12..ETHERNET) {
        Some([0x08, 0x00]) => (9, IPV4),
        Some([0x86, 0xdd]) => (6, IPV6),
        _ => return false,
    };
    let (ip, tcp) = packet[ETHERNET..]
        .split_at_checked(bytes)
        .unwrap_or_default();
    // Other resets carry a sequence number and do not acknowledge.
    tcp.len() == TCP
        && ip[protocol] == TCP_NUMBER
        && tcp[..2] == port.to_be_bytes()
        && tcp[4..8] == [0; 4]
        && tcp[13] == RST_ACK
}

/// Returns a refusal of a port over IPv4.
#[cfg(test)]
pub(crate) fn refusal(port: u16) -> alloc::vec::Vec<u8> {
    let mut packet = tests::packet([0x08, 0x00], IPV4, 0, RST_ACK);
    packet[ETHERNET + IPV4..][..2].copy_from_slice(&port.to_be_bytes());
    packet
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Returns a TCP packet from port 80.
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
            let refusal = packet(ethertype, ip, 0, RST_ACK);
            assert!(refuses(&refusal, 80) && !refuses(&refusal, 81));
            let longer = [&refusal[..], &[0; 100]].concat();
            for other in [
                packet(ethertype, ip, 1, RST_ACK),
                packet(ethertype, ip, 0, 0x12),
                packet(ethertype, ip, 7, 0x04),
                packet([0x08, 0x06], ip, 0, RST_ACK),
                longer,
            ] {
                assert!(!refuses(&other, 80));
            }
            let is_cut = |bytes| refuses(&refusal[..bytes], 80);
            assert!(!(0..refusal.len()).any(is_cut));
        }
    }
}
