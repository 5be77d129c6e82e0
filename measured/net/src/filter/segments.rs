//! Segments of TCP that are changed before the stack gets them.
//!
//! * The stack resets a connection for any RST inside of its window, and ignores a SYN in it. By RFC
//!   5961 (sections 3.2 and 4.2) only an RST with exactly the next number resets; other RSTs and each
//!   SYN get a challenge acknowledgement, which a peer that has lost the connection answers with the
//!   right RST. Such segments become ones that the stack answers so: they acknowledge what was never
//!   sent.
//! * The connection whose place another client needs is ended by an RST in its peer's name: no task
//!   that waits for it has to wait for that, too.
//! * A maximum segment size below 64 bytes is dropped, so that the default of 536 applies: a client
//!   that asks for a byte in each packet has it answered in thousands (RFC 9293, section 3.7.1).

use super::rules::{ETHERTYPE_IPV4, IPV4, TCP_NUMBER, bytes, folded, put};
use super::{ETHERNET, Packet};
#[cfg(feature = "ipv6")]
use super::{ETHERTYPE_IPV6, IPV6};
use crate::watch::Watch;

/// The header of TCP without options, in bytes, and its fields.
const TCP: usize = 20;
const ACKNOWLEDGES: usize = 8;
const FLAGS: usize = 13;
const SUM: usize = 16;
/// Flags.
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
/// Options (RFC 9293, section 3.1).
const NOTHING: u8 = 1;
const SEGMENT_SIZE: u8 = 2;
/// The least maximum segment size that is believed, in bytes.
const LEAST_SIZE: u16 = 64;
/// Beyond anything that can have been sent, and not yet before it: a quarter of all numbers.
const NEVER_SENT: u32 = 1 << 30;

/// The address of a peer, of IPv4 in the first bytes, and its port.
pub type Peer = ([u8; 16], [u8; 2]);

/// The numbers of an established connection to the service.
#[derive(Clone, Copy, Debug)]
pub struct Established {
    pub(crate) peer: Peer,
    /// The stack's address, as the peer's, and whether both are of IPv6.
    own: [u8; 16],
    is_6: bool,
    /// The number after all that was sent, and the number that is expected.
    next: u32,
    expected: u32,
}

/// The parts of a segment to or from the service.
struct Segment {
    /// The place of the header, and its end.
    start: usize,
    end: usize,
    /// The bytes behind it.
    bytes: usize,
    /// The other address and port, and the stack's address.
    peer: Peer,
    own: [u8; 16],
    is_6: bool,
    flags: u8,
}

impl Segment {
    /// Finds a segment in a packet, which the service sends or gets.
    fn find(packet: &[u8], is_sent: bool, service: u16) -> Option<Self> {
        let ip = packet.get(ETHERNET..)?;
        let (is_6, protocol, source, width) = match [packet[12], packet[13]] {
            ETHERTYPE_IPV4 => (false, 9, 12, 4),
            #[cfg(feature = "ipv6")]
            ETHERTYPE_IPV6 => (true, 6, 8, 16),
            _ => return None,
        };
        // Most packets are datagrams.
        if *ip.get(protocol)? != TCP_NUMBER {
            return None;
        }
        let (at, length) = match is_6 {
            #[cfg(feature = "ipv6")]
            true => (IPV6, IPV6 + usize::from(u16::from_be_bytes(bytes(ip, 4)?))),
            _ => {
                let length = u16::from_be_bytes(bytes(ip, 2)?);
                (usize::from(ip[0] & 15) * 4, usize::from(length))
            }
        };
        let (from, to) = if is_sent { (1, 0) } else { (0, 1) };
        let mut addresses = [[0; 16]; 2];
        for (place, address) in [(source, from), (source + width, to)] {
            addresses[address][..width].copy_from_slice(ip.get(place..place + width)?);
        }
        let [address, stack] = addresses;
        let tcp = ip.get(..length)?.get(at..)?;
        let (own, its) = (2 * to, 2 * from);
        if at < IPV4 || bytes(tcp, own)? != service.to_be_bytes() {
            return None;
        }
        let head = usize::from(tcp.get(FLAGS - 1)? >> 4) * 4;
        Some(Self {
            start: ETHERNET + at,
            end: ETHERNET + at + head,
            bytes: tcp.len().checked_sub(head)?,
            peer: (address, bytes(tcp, its)?),
            own: stack,
            is_6,
            flags: tcp[FLAGS],
        })
        .filter(|_| head >= TCP)
    }
}

/// Keeps the numbers of a connection from what the service sends.
pub fn sends(packet: &[u8], watch: &Watch) -> Option<()> {
    let segment = Segment::find(packet, true, watch.port)?;
    let tcp = &packet[segment.start..];
    if segment.flags & (RST | SYN) != 0 || segment.flags & ACK == 0 {
        watch.forget(&segment.peer);
        return Some(());
    }
    let length = segment.bytes as u32 + u32::from(segment.flags & FIN);
    let number = u32::from_be_bytes(bytes(tcp, 4)?);
    let now = Established {
        peer: segment.peer,
        own: segment.own,
        is_6: segment.is_6,
        next: number.wrapping_add(length),
        expected: u32::from_be_bytes(bytes(tcp, ACKNOWLEDGES)?),
    };
    let mut established = watch.established.borrow_mut();
    match established.iter_mut().find(|known| known.peer == now.peer) {
        Some(known) => *known = now,
        // One that is not kept is as safe as the stack makes it.
        None => drop(established.push(now)),
    }
    Some(())
}

/// Returns the RST of a peer whose connection is to end.
#[inline(never)]
pub fn ending(watch: &Watch, hardware: &[u8; 6]) -> Option<Packet> {
    const LENGTH: u8 = TCP as u8;
    let peer = watch.ending.take()?;
    let established = watch.established.borrow();
    let known = established.iter().find(|known| known.peer == peer)?;
    let mut tcp = [0; TCP];
    tcp[..2].copy_from_slice(&peer.1);
    tcp[2..4].copy_from_slice(&watch.port.to_be_bytes());
    tcp[4..8].copy_from_slice(&known.expected.to_be_bytes());
    tcp[FLAGS - 1] = (LENGTH / 4) << 4;
    tcp[FLAGS] = RST;
    // Besides the segment and the addresses, the checksum covers the length and the protocol.
    tcp[SUM + 1] = LENGTH + TCP_NUMBER;
    let (ethertype, head, bytes): (_, &[u8], _) = match known.is_6 {
        #[cfg(feature = "ipv6")]
        true => {
            const HEAD: [u8; 8] = [0x60, 0, 0, 0, 0, LENGTH, TCP_NUMBER, 64];
            (&ETHERTYPE_IPV6, &HEAD, 16)
        }
        _ => {
            const ALL: u8 = IPV4 as u8 + LENGTH;
            const HEAD: [u8; 12] = [0x45, 0, 0, ALL, 0, 0, 0x40, 0, 64, TCP_NUMBER, 0, 0];
            (&ETHERTYPE_IPV4, &HEAD, 4)
        }
    };
    let (from, to) = (&peer.0[..bytes], &known.own[..bytes]);
    let mut packet = Packet::new(&[hardware, &[2; 6], ethertype, head, from, to, &tcp]);
    let start = packet.length - TCP;
    packet.complete(start - 2 * bytes..packet.length, start + SUM);
    if !known.is_6 {
        packet.complete(ETHERNET..start, ETHERNET + 10);
    }
    Some(packet)
}

/// Changes a segment to the service where that is called for.
#[inline(never)]
pub fn changes(packet: &mut [u8], watch: &Watch) -> Option<()> {
    let segment = Segment::find(packet, false, watch.port)?;
    if segment.flags & (RST | SYN) == 0 {
        return None;
    }
    let tcp = packet.get_mut(segment.start..segment.end)?;
    let before = folded(tcp);
    let established = watch.established.borrow();
    let known = established.iter().find(|known| known.peer == segment.peer);
    let number = u32::from_be_bytes(bytes(tcp, 4)?);
    match known {
        Some(known) if segment.flags & SYN != 0 || number != known.expected => {
            let never = known.next.wrapping_add(NEVER_SENT);
            tcp[ACKNOWLEDGES..][..4].copy_from_slice(&never.to_be_bytes());
            tcp[FLAGS] = ACK;
        }
        _ => leave_out_small_size(&mut tcp[TCP..]),
    }
    // The difference in ones' complement (RFC 1624).
    put(tcp, SUM, 0);
    let (sum, carry) = before.overflowing_add(!folded(tcp));
    put(tcp, SUM, sum + u16::from(carry));
    Some(())
}

/// Replaces a maximum segment size that is too small to be believed.
fn leave_out_small_size(mut options: &mut [u8]) {
    loop {
        match options {
            [NOTHING, ..] => options = &mut options[1..],
            [SEGMENT_SIZE, 4, high, low, ..] => {
                if u16::from_be_bytes([*high, *low]) < LEAST_SIZE {
                    options[..4].fill(NOTHING);
                }
                return;
            }
            [kind, length, ..] if *kind != 0 && (2..).contains(length) => {
                let length = usize::from(*length).min(options.len());
                options = &mut options[length..];
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    use super::*;

    const SERVICE: u16 = 80;
    const PEER: u16 = 5_000;

    fn watch() -> &'static Watch {
        Box::leak(Box::new(Watch::new(SERVICE)))
    }

    /// A segment from a host to another, with its checksum over the segment alone.
    fn segment(
        ports: [u16; 2],
        numbers: [u32; 2],
        flags: u8,
        options: &[u8],
        is_6: bool,
    ) -> Vec<u8> {
        let mut tcp: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
        tcp.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        tcp.extend([(5 + options.len() as u8 / 4) << 4, flags, 1, 0, 0, 0, 0, 0]);
        tcp.extend(options);
        tcp.extend(b"data");
        let sum = !folded(&tcp);
        tcp[SUM..][..2].copy_from_slice(&sum.to_be_bytes());
        let length = tcp.len() as u16;
        let mut packet = alloc::vec![0; 12];
        if is_6 {
            packet.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            packet.extend(length.to_be_bytes());
            packet.extend([TCP_NUMBER, 64]);
            packet.extend([7; 32]);
        } else {
            packet.extend([0x08, 0x00, 0x45, 0]);
            packet.extend((length + IPV4 as u16).to_be_bytes());
            packet.extend([0, 0, 0, 0, 64, TCP_NUMBER, 0, 0]);
            packet.extend([7; 8]);
        }
        packet.extend(tcp);
        packet
    }

    /// Returns the flags, the number that is acknowledged and whether the checksum is right.
    fn read(packet: &[u8], is_6: bool) -> (u8, u32, bool) {
        let tcp = &packet[ETHERNET + if is_6 { 40 } else { IPV4 }..];
        let acknowledges = u32::from_be_bytes(bytes(tcp, ACKNOWLEDGES).unwrap());
        (tcp[FLAGS], acknowledges, folded(tcp) == u16::MAX)
    }

    #[test]
    fn only_a_reset_with_the_number_that_is_expected_is_one() {
        for is_6 in [false, true] {
            let watch = watch();
            let out = |numbers, flags| {
                sends(&segment([SERVICE, PEER], numbers, flags, b"", is_6), watch);
            };
            let comes = |port, number, flags| {
                let mut packet = segment([port, SERVICE], [number, 9], flags, b"", is_6);
                changes(&mut packet, watch);
                read(&packet, is_6)
            };
            // While it begins, nothing is changed.
            out([999, 500], SYN | ACK);
            assert_eq!(comes(PEER, 500, RST), (RST, 9, true));
            assert_eq!(comes(PEER, 499, SYN), (SYN, 9, true));
            // Four bytes of data follow 1,000.
            out([1_000, 500], ACK);
            let challenged = (ACK, 1_004 + NEVER_SENT, true);
            assert_eq!(comes(PEER, 500, RST), (RST, 9, true));
            assert_eq!(comes(PEER, 501, RST), challenged);
            assert_eq!(comes(PEER, 499, RST | ACK), challenged);
            assert_eq!(comes(PEER, 500, SYN), challenged);
            assert_eq!(comes(PEER, 777, SYN | ACK), challenged);
            // Others, and what is no such segment.
            assert_eq!(comes(PEER + 1, 501, RST), (RST, 9, true));
            assert_eq!(comes(PEER, 501, ACK | FIN), (ACK | FIN, 9, true));
            out([u32::MAX - 2, u32::MAX], ACK | FIN);
            assert_eq!(comes(PEER, 0, RST), (ACK, 2 + NEVER_SENT, true));
            assert_eq!(comes(PEER, u32::MAX, RST), (RST, 9, true));
            // The service gives it up.
            out([5, 5], RST);
            assert_eq!(comes(PEER, 777, SYN), (SYN, 9, true));
        }
    }

    #[test]
    fn the_connection_that_is_to_end_gets_the_right_rst() {
        for is_6 in [false, true] {
            let watch = watch();
            let out = segment([SERVICE, PEER], [1_000, 500], ACK, b"", is_6);
            sends(&out, watch);
            let peer = watch.established.borrow()[0].peer;
            watch.ending.set(Some(peer));
            let reset = ending(watch, &[4; 6]).unwrap();
            assert!(watch.ending.get().is_none() && ending(watch, &[4; 6]).is_none());
            let mut packet = reset.bytes[..reset.length].to_vec();
            assert_eq!(packet[..6], [4; 6]);
            let found = Segment::find(&packet, false, SERVICE).unwrap();
            assert_eq!((found.peer, found.bytes, found.flags), (peer, 0, RST));
            assert_eq!(packet[found.start + 4..][..4], 500_u32.to_be_bytes());
            // All checksums are right, and the filter lets it pass as it is.
            let ip = if is_6 { 8 } else { 12 };
            let pseudo = [&packet[ETHERNET + ip..], &[0, 20, 0, TCP_NUMBER]].concat();
            assert_eq!(folded(&pseudo), u16::MAX);
            assert!(is_6 || folded(&packet[ETHERNET..][..IPV4]) == u16::MAX);
            let before = packet.clone();
            changes(&mut packet, watch);
            assert_eq!(packet, before);
        }
    }

    #[test]
    fn a_tiny_segment_size_is_not_believed_wherever_it_is() {
        let size = |options: &[u8]| {
            let mut packet = segment([PEER, SERVICE], [1, 0], SYN, options, false);
            changes(&mut packet, watch());
            assert!(read(&packet, false).2);
            packet[ETHERNET + IPV4 + TCP..][..options.len()].to_vec()
        };
        for low in 0..64 {
            assert_eq!(size(&[2, 4, 0, low]), [1; 4]);
        }
        assert_eq!(size(&[2, 4, 0, 64]), [2, 4, 0, 64]);
        assert_eq!(size(&[1, 2, 4, 0, 9, 1, 1, 0]), [1, 1, 1, 1, 1, 1, 1, 0]);
        assert_eq!(size(&[4, 2, 8, 3, 9, 2, 4, 0]), [4, 2, 8, 3, 9, 2, 4, 0]);
        for odd in [[3, 0, 2, 4], [3, 1, 0, 9], [3, 255, 2, 4], [0, 2, 4, 0]] {
            assert_eq!(size(&odd), odd);
        }
    }

    #[test]
    fn a_cut_segment_is_left_as_it_is() {
        let watch = watch();
        let whole = segment([PEER, SERVICE], [1, 0], SYN, &[2, 4, 0, 1], false);
        for length in 0..whole.len() {
            let mut cut = whole[..length].to_vec();
            changes(&mut cut, watch);
            sends(&cut, watch);
            assert_eq!(cut, whole[..length], "{length}");
        }
    }
}
